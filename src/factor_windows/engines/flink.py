"""A plan in Flink SQL: a step of WITH for each node, with Flink's own TUMBLE and HOP over the node it reads.

Flink's windows chain through `window_time`, which lies in the last instant of the instance that made a row. A row of a
hopping window does not say where its instance began, so a node below one reads that one's own parent instead. A
node's own columns `window_start` and `window_end` are renamed: its readers get new ones of the same names.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from factor_windows.algebra.graph import CoverageGraph, window_of
from factor_windows.algebra.slices import Slices
from factor_windows.algebra.window import MICROSECONDS, Window
from factor_windows.engines.read_columns import ReadColumns
from factor_windows.engines.sql_steps import free
from factor_windows.errors import QueryError
from factor_windows.functions.aggregate import Aggregate
from factor_windows.functions.columns import StateColumns
from factor_windows.functions.expression import quoted, sql_of, tree_of
from factor_windows.functions.table import Engines, Kind, State
from factor_windows.query import Query
from factor_windows.search.factor import with_factor_windows
from factor_windows.sql.dialects import Flink
from factor_windows.tree import Pass, PlanNode


def emit_flink(plan: Pass) -> str:
    """Write a plan for Flink."""
    query = plan.query
    if any(isinstance(node.window, Slices) or not (node.exposed or node.window.is_tumbling) for node in plan.nodes):
        # Flink's windows have no edges but their own, and do not say which instance a row of a hopping one was.
        tree = with_factor_windows(CoverageGraph.of_query(query), plan.cost_model)
        plan = Pass.of_tree(plan.workload, tree, search="factor", cost_model=plan.cost_model, status="heuristic")
    for aggregate in query.parsed_aggregates:
        if aggregate.function.engines < Engines.ALL or aggregate.kind is Kind.HOLISTIC:
            raise QueryError(
                f"{aggregate.sql} cannot be written for Flink, which cannot merge its parts; "
                "min, max, count, sum and avg can"
            )
    if query.outer or not query.parsed_time.sql.replace("`", "").isidentifier():
        raise QueryError("only plain window aggregates over a time column can be written for Flink")
    texts = (*query.keys, *query.aggregates, query.where, query.time)
    own = f"{free(('fw_',), ' '.join(texts))}fw_"
    prefix = free(("events", "node_", "computed"), query.source or "events")
    columns = StateColumns(f"{own}s")
    lowers = [columns.add(a, a.states(time=query.time), a.function.lower) for a in query.parsed_aggregates]
    keys = [quoted(key.name) for key in query.parsed_keys]
    events, lifts = _events(query, columns.states, own)
    steps = [f"-- events\n{prefix}events AS (\n  SELECT {events}\n)"]
    numbers = {node.name: f"{prefix}node_{number}" for number, node in enumerate(plan.nodes, start=1)}
    for node in plan.nodes:
        parent = _readable_parent(plan, node)
        made = lifts if parent is None else [state.combine for state in columns.states]
        values = [f"{value} AS {state.name}" for value, state in zip(made, columns.states, strict=True)]
        listed = [*keys, *(f"window_{name} AS {own}{name}" for name in ("start", "end", "time")), *values]
        source = f"{prefix}events" if parent is None else numbers[parent.name]
        shown = " = ".join(node.shown_as) if node.exposed else f"{node.name} (hidden)"
        comment = " ".join(f"{shown}: from {source}".split())
        steps.append(
            f"-- {comment}\n{numbers[node.name]} AS (\n  SELECT {', '.join(listed)}\n"
            f"  FROM TABLE({_call(window_of(node.node), source, f'{own}time')})\n"
            f"  GROUP BY {', '.join([*keys, 'window_start', 'window_end', 'window_time'])}\n)"
        )
    results = [
        _shown(query.parsed_aggregates, lowers, keys, name, numbers[node.name], own)
        for node in plan.nodes
        for name in node.shown_as
    ]
    united = "\nUNION ALL\n".join(results)
    if not query.parsed_output and not query.having:
        return _with(steps, united)
    inner = "\n".join(f"  {line}" for line in united.splitlines())
    steps.append(f"-- every window under its name\n{prefix}computed AS (\n{inner}\n)")
    chosen = ", ".join(f"{column.sql} AS {quoted(column.name)}" for column in query.parsed_output)
    having = f"\nWHERE {query.kept}" if query.having else ""
    return _with(steps, f"SELECT {chosen or '*'}\nFROM {prefix}computed{having}")


def _with(steps: list[str], final: str) -> str:
    listed = ",\n".join(steps)
    return f"WITH\n{listed}\n{final}"


def _events(query: Query, states: Sequence[State], own: str) -> tuple[str, list[str]]:
    """Select keys, the columns that are read, and the time; return that, and how these columns lift to states."""
    taken = [*(key.name for key in query.parsed_keys), "window_start", "window_end", "window_time"]
    columns = ReadColumns(own, taken=taken)
    lifts = [sql_of(columns.take(tree_of(state.lift))) for state in states]
    keys = [f"{key.sql} AS {quoted(key.name)}" for key in query.parsed_keys]
    listed = [*keys, *map(sql_of, columns.selected), f"{query.parsed_time.sql} AS {own}time"]
    where = f" WHERE {query.where}" if query.where else ""
    return f"{', '.join(listed)} FROM {query.source or 'events'}{where}", lifts


def _readable_parent(plan: Pass, node: PlanNode) -> PlanNode | None:
    by_name = {other.name: other for other in plan.nodes}
    parent = by_name[node.parent] if node.parent else None
    while parent is not None and not window_of(parent.node).is_tumbling:
        parent = by_name[parent.parent] if parent.parent else None
    return parent


def _call(window: Window, source: str, time: str) -> str:
    lengths = [_interval(window.range)] if window.is_tumbling else [_interval(window.slide), _interval(window.range)]
    if window.offset:
        lengths.append(_interval(window.offset))
    function = "TUMBLE" if window.is_tumbling else "HOP"
    return f"{function}(TABLE {source}, DESCRIPTOR({time}), {', '.join(lengths)})"


def _interval(microseconds: int) -> str:
    for unit in ("day", "hour", "minute", "second"):
        if microseconds % MICROSECONDS[unit] == 0:
            number = str(microseconds // MICROSECONDS[unit])
            # Flink takes two digits, unless more are announced.
            return f"INTERVAL '{number}' {unit.upper()}" + (f"({len(number)})" if len(number) > 2 else "")
    if microseconds % 1000:
        raise QueryError("Flink's windows are whole milliseconds long; this plan has a finer one")
    seconds, milliseconds = divmod(microseconds // 1000, 1000)
    return f"INTERVAL '{seconds}.{milliseconds:03}' SECOND({max(2, len(str(seconds)))}, 3)"


def _shown(
    aggregates: tuple[Aggregate, ...], lowers: list[str], keys: list[str], name: str, node: str, own: str
) -> str:
    window_id = exp.Literal.string(name).sql(dialect=Flink)
    values = [f"{lower} AS {quoted(aggregate.name)}" for aggregate, lower in zip(aggregates, lowers, strict=True)]
    listed = [*keys, f"{window_id} AS window_id", f"{own}start AS window_start", f"{own}end AS window_end", *values]
    return f"SELECT {', '.join(listed)}\nFROM {node}"
