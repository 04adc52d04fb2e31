"""Packs as Spark SQL: panes into the slots of a row, and out of them again."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from factor_windows.algebra.packs import Pack
from factor_windows.engines.explode_to_windows import after_edges, looked_up
from factor_windows.engines.spark_chain import Chain
from factor_windows.functions.expression import sql_of, tree_of
from factor_windows.functions.table import State
from factor_windows.sql.statement import braced


def packed(rows: str, pack: Pack, chain: Chain) -> str:
    """Group events by keys and stretch of time, each state once for each slot.

    The bits of `feed` say afterwards which slots hold an event: a state alone cannot, as that of a null is null.
    """
    stretch = pack.window
    rows = f"SELECT *, {after_edges([(stretch.range, stretch.offset)], chain.time)} AS {chain.feed} FROM {rows}"
    slot = f"CAST({chain.feed} div {pack.pane.range}L AS INT) AS {chain.step}"
    rows = f"SELECT *, {chain.time} - {chain.feed} AS {chain.start}, {slot} FROM ({rows})"
    lanes = [
        f"{lift} AS {_lane(state.name, number)}"
        for state in chain.types.states
        for number, lift in enumerate(_in_slots(state.lift, chain.step, pack.slots))
    ]
    groups = ", ".join([*chain.keys, chain.start])
    filled = f"bit_or(shiftleft(1, {chain.step})) AS {chain.feed}"
    return f"SELECT {', '.join([groups, filled, *lanes])} FROM ({rows}) GROUP BY {groups}"


def unpacked(rows: str, pack: Pack, nodes: Sequence[int], chain: Chain, *others: str) -> str:
    """Give each filled slot, and each instance that is merged inside, a row of its own, for those nodes that are read.

    A row keeps its keys and `others`.
    """
    entries = [(place, slots) for place in nodes for slots in pack.slots_of(chain.plan.nodes[place].window)]

    def constant(values: list[int], type: str) -> str:
        return looked_up(values, chain.step, type)

    def array(state: State) -> str:
        merged = (_merged(state.fold, [_lane(state.name, slot) for slot in slots]) for _, slots in entries)
        return f"array({', '.join(merged)})"

    first, *more = chain.types.states
    kept = [*chain.keys, chain.start, *others, chain.feed, *(f"{array(state)} AS {state.name}" for state in more)]
    exploded = f"posexplode({array(first)}) AS ({chain.step}, {first.name})"
    rows = f"SELECT {', '.join(kept)}, {exploded} FROM ({rows})"
    masks = constant([sum(1 << slot for slot in slots) for _, slots in entries], "int")
    rows = f"SELECT * FROM ({rows}) WHERE {chain.feed} & {masks} <> 0"
    back = constant([slots.start * pack.pane.range for _, slots in entries], "bigint")
    shown = [*chain.keys, f"{chain.start} + {back} AS {chain.start}", *others]
    shown += [f"{constant([place for place, _ in entries], 'int')} AS {chain.node}", first.name]
    shown += [f"element_at({state.name}, {chain.step} + 1) AS {state.name}" for state in more]
    return f"SELECT {', '.join(shown)} FROM ({rows})"


def _lane(state: str, slot: int) -> str:
    return f"{state}_{slot}"


def _in_slots(lift: str, slot: str, number: int) -> list[str]:
    """Lift only the events of one slot, for each slot."""
    tree = tree_of(lift)
    call, also = tree, ""
    if isinstance(tree, exp.Filter):
        call, also = tree.this, f" AND ({braced(sql_of(tree.expression.this))})"
    return [f"{braced(sql_of(call))} FILTER (WHERE {slot} = {place}{also})" for place in range(number)]


def _merged(fold: str, values: list[str]) -> str:
    """Merge the states of several slots, of which some may be null, as an aggregate would."""
    if len(values) == 1:
        return values[0]
    listed = ", ".join(values)
    if fold == "add":
        added = " + ".join(f"coalesce({value}, 0)" for value in values)
        return f"CASE WHEN coalesce({listed}) IS NOT NULL THEN {added} END"
    return f"{fold}({listed})"
