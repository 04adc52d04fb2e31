"""A shared plan as text: the trees, who reads which node, what each query costs alone and together, what changed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from factor_windows.cost.model import Cost, SparkCost, share
from factor_windows.explain.text import explain_physical, explain_streaming, number, rate, tree
from factor_windows.shared import Group, SharedPlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LISTED = 4
"""How many queries a line names before it only counts the others."""


def explain(
    plan: SharedPlan, *, physical: bool = False, streaming: bool = False, events: DataFrame | None = None
) -> str:
    """Draw a shared plan's trees, and say who pays for what."""
    if events is not None:
        from factor_windows.engines.spark_queries import fitting

        plan = fitting(plan, events)
    lines = list(_summary(plan))
    for place, group in enumerate(plan.groups, start=1):
        title = f"pass {place}: {_listed([member.name for member in group.workload.members])}"
        lines += ["", *([title] if len(plan.groups) > 1 else []), *_drawn(group)]
        lines += ["", _physical(group, events)] if physical else []
    lines += ["", *_bill(plan)]
    if streaming:
        together = plan if len(plan.groups) == 1 else plan.again(together=True)
        lines += ["", explain_streaming(together.groups[0].plan)]
    return "\n".join(lines)


def _physical(group: Group, events: DataFrame | None) -> str:
    if events is None:
        return explain_physical(group.plan)
    from factor_windows.engines.spark_queries import flagged

    return explain_physical(group.plan, flagged(group, events))


def changes(before: SharedPlan, after: SharedPlan) -> str:
    """Say what a plan has that another had not, and what it means for a running stream."""
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
    units = {group.plan.cost_model.unit for plan in (before, after) for group in plan.groups}
    cost = [f"cost {number(after.cost)}, it was {number(before.cost)}"] if len(units) == 1 else []
    same = len(lines) == 1 and _states(before) == _states(after)
    meaning = (
        "a running stream goes on with its checkpoint"
        if same
        else "a running stream needs a new checkpoint: its state is that of the old nodes"
    )
    return "\n".join([*lines, *cost, meaning])


def alone(plan: SharedPlan) -> dict[str, Cost]:
    """Return what each query would cost with a plan of its own."""
    found: dict[str, Cost] = {}
    for group in plan.groups:
        model = group.plan.cost_model
        # The same events in the same unit of time, whatever a query would have been assumed to have alone.
        same: dict[str, Any] = {"unit": timedelta(microseconds=model.unit)}
        same |= {"rate": model.rate} if isinstance(model, SparkCost) and model.assumed else {}
        for member in group.workload.members:
            found[member.name] = plan.again([member.query], **same).cost
    return {query.name: found[query.name] for query in plan.queries}


def _summary(plan: SharedPlan) -> list[str]:
    queries, passes = len(plan.queries), len(plan.groups)
    windows = sum(len(query.names) for query in plan.queries)
    hidden = sum(not node.exposed for node in plan.nodes)
    added = f", {hidden} hidden node{'s' * (hidden > 1)} added" if hidden else ""
    times = dict.fromkeys(query.parsed_time.sql for query in plan.queries)
    gain = f"{share(plan.naive_cost, plan.cost):.1f} times cheaper than window by window"
    return [
        f"{queries} quer{'ies' if queries > 1 else 'y'} over {windows} window{'s' * (windows > 1)} "
        f"in {passes} pass{'es' * (passes > 1)} over the events{added}",
        *([f"queries by different times do not share: {', '.join(times)}"] if len(times) > 1 else []),
        f"cost {number(plan.cost)} instead of {number(plan.naive_cost)}: {gain} (search {plan.search}, {plan.status})",
    ]


def _drawn(group: Group) -> list[str]:
    """Draw a tree, with the queries that need each node."""
    readers = group.readers
    drawn = tree(group.plan)
    names = [line.branch + line.name for line in drawn]
    widths = max(map(len, names)), max(len(line.cost) for line in drawn)
    notes = [rate(group.plan), *(f"for {_listed(readers[line.node])}" for line in drawn[1:])]
    return [
        f"{name:<{widths[0]}}  {line.cost:>{widths[1]}}  {note}".rstrip()
        for name, line, note in zip(names, drawn, notes, strict=True)
    ]


def _bill(plan: SharedPlan) -> list[str]:
    """List what each query costs alone, and its part of what is shared."""
    single, paid = alone(plan), plan.shares()
    rows = [(name, number(single[name]), number(paid[name])) for name in paid]
    rows += [("together", number(sum(single.values())), number(plan.cost))]
    widths = [max(map(len, column)) for column in zip(("query", "alone", "shared"), *rows, strict=True)]
    head = f"{'query':<{widths[0]}}  {'alone':>{widths[1]}}  {'shared':>{widths[2]}}"
    return [head, *(f"{name:<{widths[0]}}  {a:>{widths[1]}}  {b:>{widths[2]}}" for name, a, b in rows)]


def _listed(names: tuple[str, ...] | list[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def _states(plan: SharedPlan) -> list[tuple[str, ...]]:
    return [tuple(group.workload.query.aggregates) for group in plan.groups]
