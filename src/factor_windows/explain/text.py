"""A plan as text: the tree, each node's cost, and the predicted gain."""

from __future__ import annotations

from decimal import Decimal

from factor_windows.cost import Cost, SparkCost, share
from factor_windows.explain.alternatives import alternatives, saves
from factor_windows.plan import Plan, PlanNode
from factor_windows.slices import Slices, Tiling
from factor_windows.window import readable


def explain(plan: Plan) -> str:
    """Draw a plan's tree with a line for each node."""
    children: dict[str | None, list[PlanNode]] = {}
    for node in plan.nodes:
        children.setdefault(node.parent, []).append(node)
    lines = [("raw events", "", "", rate(plan))]
    naive_cost = plan.naive_cost
    waiting = [("", node) for node in reversed(children[None])]
    while waiting:
        indent, node = waiting.pop()
        last = node is children[node.parent][-1]
        percent = f"{100 * share(node.cost, naive_cost):.1f} %"
        branch = "└─ " if last else "├─ "
        lines.append((indent + branch + _name(node), number(node.cost), percent, _reads(plan, node)))
        deeper = indent + ("   " if last else "│  ")
        waiting += [(deeper, child) for child in reversed(children.get(node.name, []))]
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    drawn = [
        f"{tree:<{widths[0]}}  {cost:>{widths[1]}}  {percent:>{widths[2]}}  {note}".rstrip()
        for tree, cost, percent, note in lines
    ]
    return "\n".join([*_summary(plan), "", *drawn])


def number(value: Cost) -> str:
    """Write a cost so that a person can read it, however large it is.

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


def _summary(plan: Plan) -> list[str]:
    hidden = sum(not node.exposed for node in plan.nodes)
    added = f", {hidden} hidden node{'s' * (hidden > 1)} added" if hidden else ""
    gain = (
        f"{share(plan.naive_cost, plan.cost):.1f} times cheaper" if plan.cost < plan.naive_cost else "nothing to share"
    )
    asked = ", ".join(aggregate.name for aggregate in plan.query.parsed_aggregates)
    keys = ", ".join(key.name for key in plan.query.parsed_keys)
    count = len(plan.query.names)
    how = f"search {plan.search}, cost {plan.cost_model.name}"
    return [
        f"{asked}{' per ' + keys if keys else ''} over {count} window{'s' * (count > 1)}{added}",
        f"cost {number(plan.cost)} instead of {number(plan.naive_cost)}: {gain} ({how})",
        *([_quality(plan)] if plan.search == "best" else []),
    ]


def _quality(plan: Plan) -> str:
    """Say how good the search's answer is."""
    if plan.status == "optimal":
        return "optimal: no other choice of the hidden windows and slices that were looked at costs less"
    above = share(plan.cost, plan.bound) - 1 if plan.bound else 0.0
    why = "the time limit was reached" if plan.status == "time_limit" else "the set is too large for an exact search"
    return f"{why}: at most {100 * above:.1f} % above the least that is possible with what was looked at"


def rate(plan: Plan) -> str:
    """Say how many events the cost model expects."""
    model = plan.cost_model
    if isinstance(model, SparkCost) and model.assumed:
        return "a dense stream is assumed; say rate= and keys= to be exact"
    keys = f", {number(model.keys)} keys" if isinstance(model, SparkCost) and model.keys != 1 else ""
    return f"{number(model.rate)} event{'s' * (model.rate != 1)} every {readable(model.unit)}{keys}"


def _name(node: PlanNode) -> str:
    return ", ".join(node.shown_as) if node.exposed else f"({node.name})"


def _reads(plan: Plan, node: PlanNode) -> str:
    reads = number(plan.reads(node))
    what = f"reads {reads} event{'s' * (reads != '1')}" if node.parent is None else f"reads {reads} × {node.parent}"
    if not node.exposed:
        return f"{what}, hidden: without it {_signed(saves(plan, node))}"
    lost = next(iter(alternatives(plan, node)), None)
    return f"{what}; {lost.parent or 'raw events'} {_signed(lost.extra)}" if lost else what


def _signed(extra: Cost) -> str:
    return f"+{number(extra)}" if extra >= 0 else f"-{number(-extra)}"


def explain_physical(plan: Plan) -> str:
    """Say how a plan runs on Spark: its levels, how rows come together, and why."""
    from factor_windows.levels import RAW, compile_levels

    physical = compile_levels(plan)
    lines = ["on Spark", *(f"  {note}" for note in physical.notes)]
    for number, level in enumerate(physical.levels, start=1):
        lines.append(f"  level {number}")
        for feed in level.feeds:
            source = "raw events" if feed.source == RAW else plan.nodes[feed.source].name
            target = plan.nodes[feed.target].name
            if feed.source == feed.target:
                lines.append(f"    {target} passes through")
            else:
                times = f", each row into {feed.steps} instances" if feed.steps > 1 else ""
                lines.append(f"    {target} from {source}{times}")
    return "\n".join(lines)


def _open_instances(tiling: Tiling) -> int:
    return 1 if isinstance(tiling, Slices) else -(-tiling.range // tiling.slide)


def explain_streaming(plan: Plan) -> str:
    """Say how a plan runs on a stream: its operators, their state, when results come out, what late events do."""
    from factor_windows.levels import compile_levels

    levels = compile_levels(plan, streaming=True).levels
    count = len(levels)
    chained = "one after the other" if count > 1 else "for all windows"
    lines = ["on a stream, in append mode", f"  {count} stateful operator{'s' * (count > 1)}, {chained}"]
    for number, level in enumerate(levels, start=1):
        nodes = [plan.nodes[position] for position in level.nodes]
        open_instances = sum(_open_instances(node.window) for node in nodes)
        names = ", ".join(_name(node) for node in nodes)
        lines.append(
            f"  operator {number} keeps {names}: at least {open_instances:,} row{'s' * (open_instances > 1)} "
            "for each key, and those of the watermark's delay"
        )
    first = [plan.nodes[position] for position in levels[0].nodes]
    shortest = min(node.window.range for node in first)
    late = (
        f"  an event is late when the watermark has passed the end of its {readable(shortest)}: it is dropped, "
        "for longer windows too"
        if count > 1
        else "  an event is late for a window whose end the watermark has passed: it is dropped there"
    )
    return "\n".join(
        [
            *lines,
            "  a window comes out, once, when the watermark passes its end: the latest event time seen, less the delay",
            late,
            "  in update or complete mode one operator keeps all windows, each fed from the events",
        ]
    )
