"""A plan as text: its trees, each node's cost, which query reads and pays for what, the predicted gain, the changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from factor_windows.algebra.graph import Node
from factor_windows.algebra.window import readable
from factor_windows.cost.model import Cost, share
from factor_windows.cost.spark import SparkCost
from factor_windows.explain.alternatives import alternatives, saves
from factor_windows.explain.running import explain_physical, explain_streaming
from factor_windows.plan import Plan
from factor_windows.search.plan_request import plan_in_one_pass, plan_request
from factor_windows.tree import Pass, PlanNode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LISTED = 4
"""The number of queries that a line names before it only counts the others."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a plan's tree."""

    branch: str
    name: str
    cost: str
    part: float
    """The node's cost, as a share of the naive plan's cost."""
    note: str
    hidden: bool = False
    node: str = ""
    """The name of the node; none for the raw events."""

    @property
    def percent(self) -> str:
        """Return the share as a readable percentage."""
        return f"{100 * self.part:.1f} %" if self.cost else ""


def explain(plan: Plan, *, physical: bool, streaming: bool, events: DataFrame | None) -> str:
    """Draw a plan's trees with a line for each node; for several queries, say which of them read and pay for what."""
    if events is not None and not plan.is_single:
        from factor_windows.engines.spark_queries import fit_to_events

        plan = fit_to_events(plan, events)
    blocks = [summary(plan.passes[0]) if plan.is_single else _summary_of_several(plan)]
    for place, each in enumerate(plan.passes, start=1):
        title = f"pass {place}: {listed([member.name for member in each.workload.members])}"
        blocks.append([*([title] if len(plan.passes) > 1 else []), *_drawn(each, is_single=plan.is_single)])
        blocks += [[explain_physical(each, events)]] if physical else []
    blocks += [] if plan.is_single else [_aligned([("query", "alone", "shared"), *bill(plan)], "<>>")]
    blocks += [[explain_streaming(plan_in_one_pass(plan).passes[0])]] if streaming else []
    return "\n\n".join("\n".join(block) for block in blocks)


def headline(plan: Plan) -> str:
    """Say in half a line what a plan computes, what it costs, and how good it is."""
    windows, passes = sum(len(query.names) for query in plan.queries), len(plan.passes)
    keys = "" if not plan.is_single else ", ".join(plan.query.shown_keys)
    parts = [
        *([] if plan.is_single else [_several(len(plan.queries), "query", "queries")]),
        _several(windows, "window") + (f" by {keys}" if keys else ""),
        *([f"{passes} passes"] if passes > 1 else []),
        *([_several(hidden, "hidden node")] if (hidden := _hidden(plan.nodes)) else []),
        f"cost {number(plan.cost)} instead of {number(plan.naive_cost)}",
        plan.status,
    ]
    return ", ".join(parts)


def changes(before: Plan, after: Plan) -> str:
    """List what differs between two plans, and say what this means for a running stream."""
    old = {node.name: node.parent for node in before.nodes}
    new = {node.name: node.parent for node in after.nodes}
    queries = {query.name for query in before.queries}, {query.name for query in after.queries}
    lines = [
        *(f"+ query {name}" for name in sorted(queries[1] - queries[0])),
        *(f"- query {name}" for name in sorted(queries[0] - queries[1])),
        *(f"+ node {name}, which reads {new[name] or 'raw events'}" for name in new if name not in old),
        *(f"- node {name}" for name in old if name not in new),
        *(
            f"~ node {name} reads {new[name] or 'raw events'}, no longer {old[name] or 'raw events'}"
            for name in new
            if name in old and new[name] != old[name]
        ),
    ]
    kept = sum(name in old and old[name] == new[name] for name in new)
    lines.append(f"{kept} node{'s' * (kept != 1)} as before, under the same name{'s' * (kept != 1)}")
    units = {each.cost_model.unit for plan in (before, after) for each in plan.passes}
    cost = [f"cost {number(after.cost)}, it was {number(before.cost)}"] if len(units) == 1 else []
    meaning = (
        "a running stream goes on with its checkpoint"
        if len(lines) == 1 and _states(before) == _states(after)
        else "a running stream needs a new checkpoint: its state is that of the old nodes"
    )
    return "\n".join([*lines, *cost, meaning])


def _states(plan: Plan) -> set[tuple[str, str, Node, str]]:
    """List the state that a stream keeps: which aggregates at which node, of which events."""
    return {
        (each.query.parsed_time.sql, each.query.where, output.node, each.query.parsed_aggregates[place].sql)
        for each in plan.passes
        for output in each.outputs
        for place in output.aggregates
    }


def costs_alone(plan: Plan) -> dict[str, Cost]:
    """Return the cost of each query with a plan of its own."""
    found: dict[str, Cost] = {}
    for each in plan.passes:
        model = each.cost_model
        # The same events in the same unit of time, whatever would be assumed for the query alone.
        options = replace(plan.request.options, unit=timedelta(microseconds=model.unit))
        if isinstance(model, SparkCost) and model.assumed:
            options = replace(options, rate=model.rate)
        for member in each.workload.members:
            found[member.name] = plan_request(plan.request.for_query(member.query, options)).cost
    return {query.name: found[query.name] for query in plan.queries}


def tree(plan: Pass) -> list[Line]:
    """List the lines of a plan's tree, the raw events first."""
    children: dict[str | None, list[PlanNode]] = {}
    for node in plan.nodes:
        children.setdefault(node.parent, []).append(node)
    lines = [Line("", "raw events", "", 0.0, rate(plan))]
    naive_cost = plan.naive_cost
    waiting = [("", node) for node in reversed(children[None])]
    while waiting:
        indent, node = waiting.pop()
        last = node is children[node.parent][-1]
        branch = indent + ("└─ " if last else "├─ ")
        part = share(node.cost, naive_cost)
        note = _note(plan, node)
        lines.append(Line(branch, node.label, number(node.cost), part, note, not node.exposed, node.name))
        deeper = indent + ("   " if last else "│  ")
        waiting += [(deeper, child) for child in reversed(children.get(node.name, []))]
    return lines


def number(value: Cost) -> str:
    """Write a cost in readable form, however large it is.

    >>> from fractions import Fraction
    >>> number(14535), number(Fraction(25, 2)), number(12 * 10**400)
    ('14,535', '12.5', '1.20e+401')
    """
    if value == value // 1 and value < 10**15:
        return f"{int(value):,}"
    if value < 10**15:
        return f"{float(value):,.1f}" if value >= 1 else f"{float(value):.3g}"
    digits = Decimal(int(value))
    return f"{digits:.2e}"


def summary(plan: Pass) -> list[str]:
    """Say in two or three lines what is requested, what it costs, and how good the plan is."""
    gain = (
        f"{share(plan.naive_cost, plan.cost):.1f} times cheaper" if plan.cost < plan.naive_cost else "nothing to share"
    )
    how = f"search {plan.search}, cost {plan.cost_model.name}"
    return [
        f"{_asked(plan)}{_added(plan.nodes)}",
        f"cost {number(plan.cost)} instead of {number(plan.naive_cost)}: {gain} ({how})",
        *([_quality(plan)] if plan.search == "best" else []),
    ]


def _asked(plan: Pass) -> str:
    """Describe the request: the aggregates and keys of one query, or the names of several."""
    if len(members := plan.workload.members) > 1:
        windows = sum(len(member.query.names) for member in members)
        names = listed([member.name for member in members])
        return f"{_several(len(members), 'query', 'queries')} over {_several(windows, 'window')}: {names}"
    asked, keys = ", ".join(plan.query.shown_aggregates), ", ".join(plan.query.shown_keys)
    return f"{asked}{' per ' + keys if keys else ''} over {_several(len(plan.query.names), 'window')}"


def _quality(plan: Pass) -> str:
    """Say how good the search's answer is."""
    if plan.status == "optimal":
        return "optimal: no other choice of the hidden windows and slices that were looked at costs less"
    above = share(plan.cost, plan.bound) - 1 if plan.bound else 0.0
    why = "the time limit was reached" if plan.status == "time_limit" else "the set is too large for an exact search"
    return f"{why}: at most {100 * above:.1f} % above the least that is possible with what was looked at"


def rate(plan: Pass) -> str:
    """Say how many events the cost model expects."""
    model = plan.cost_model
    if isinstance(model, SparkCost) and model.assumed:
        return "assuming a dense stream; set rate and keys for a better plan"
    keys = f", {number(model.keys)} keys" if isinstance(model, SparkCost) and model.keys != 1 else ""
    return f"{number(model.rate)} event{'s' * (model.rate != 1)} every {readable(model.unit)}{keys}"


def reads(plan: Pass, node: PlanNode) -> str:
    """Say what one instance of a node reads."""
    count = number(plan.reads(node))
    return f"{count} event{'s' * (count != '1')}" if node.parent is None else f"{count} × {node.parent}"


def _note(plan: Pass, node: PlanNode) -> str:
    what = f"reads {reads(plan, node)}"
    if not node.exposed:
        return f"{what}, hidden: without it {signed(saves(plan, node))}"
    if (saved := rows_saved(plan, node)) is not None:
        what += f", saves {number(saved)} row{'s' * (saved != 1)}/s"
    lost = next(iter(alternatives(plan, node)), None)
    return f"{what}; {lost.parent or 'raw events'} {signed(lost.extra)}" if lost else what


def signed(extra: Cost) -> str:
    """Write a difference of costs with its sign."""
    return f"+{number(extra)}" if extra >= 0 else f"-{number(-extra)}"


def rows_saved(plan: Pass, node: PlanNode) -> Cost | None:
    """Count the rows per second that a node saves by not reading the events, if their rate is known."""
    model = plan.cost_model
    if node.parent is None or not isinstance(model, SparkCost) or model.assumed:
        return None
    spared = model.instance_cost(node.window, None) - plan.reads(node)
    return model.recurrence_count(node.window) * spared * 1_000_000 / model.unit


def _summary_of_several(plan: Plan) -> list[str]:
    windows, passes = sum(len(query.names) for query in plan.queries), len(plan.passes)
    times = dict.fromkeys(query.parsed_time.sql for query in plan.queries)
    gain = f"{share(plan.naive_cost, plan.cost):.1f} times cheaper than window by window"
    return [
        f"{_several(len(plan.queries), 'query', 'queries')} over {_several(windows, 'window')} "
        f"in {_several(passes, 'pass', 'passes')} over the events{_added(plan.nodes)}",
        *([f"queries by different times do not share: {', '.join(times)}"] if len(times) > 1 else []),
        f"cost {number(plan.cost)} instead of {number(plan.naive_cost)}: {gain} (search {plan.search}, {plan.status})",
    ]


def _drawn(plan: Pass, *, is_single: bool) -> list[str]:
    """Draw a tree, with what each node reads, or with the queries that need it."""
    lines = tree(plan)
    if is_single:
        return _aligned([(line.branch + line.name, line.cost, line.percent, line.note) for line in lines], "<>><")
    readers = plan.readers
    notes = [rate(plan), *(f"for {listed(readers[line.node])}" for line in lines[1:])]
    rows = [(line.branch + line.name, line.cost, note) for line, note in zip(lines, notes, strict=True)]
    return _aligned(rows, "<><")


def bill(plan: Plan) -> list[tuple[str, str, str]]:
    """List what each query costs alone, and its share of the common plan; the totals come last."""
    alone, paid = costs_alone(plan), plan.shares()
    rows = [(name, number(alone[name]), number(paid[name])) for name in paid]
    return [*rows, ("together", number(sum(alone.values())), number(plan.cost))]


def _aligned(rows: Sequence[tuple[str, ...]], sides: str) -> list[str]:
    """Align cells in columns, each column to its side."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)).rstrip()
        for row in rows
    ]


def listed(names: Sequence[str]) -> str:
    """List the first few names, and count the others."""
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def _several(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _hidden(nodes: Sequence[PlanNode]) -> int:
    return sum(not node.exposed for node in nodes)


def _added(nodes: Sequence[PlanNode]) -> str:
    hidden = _hidden(nodes)
    return f", {_several(hidden, 'hidden node')} added" if hidden else ""
