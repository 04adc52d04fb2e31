"""A plan as text: the tree, each node's cost, and the predicted gain."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from factor_windows import physical
from factor_windows.algebra.slices import Segmentation, Slices
from factor_windows.algebra.window import readable
from factor_windows.cost.model import Cost, SparkCost, share
from factor_windows.explain.alternatives import alternatives, saves
from factor_windows.physical import Target
from factor_windows.physical.choose import PARTITIONS
from factor_windows.plan import Plan, PlanNode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a plan's tree."""

    branch: str
    name: str
    cost: str
    part: float
    """The node's cost, as a share of what the naive plan costs."""
    note: str
    hidden: bool = False
    node: str = ""
    """The name of the node; none for the raw events."""

    @property
    def percent(self) -> str:
        """Return the share as people read it."""
        return f"{100 * self.part:.1f} %" if self.cost else ""


def explain(plan: Plan) -> str:
    """Draw a plan's tree with a line for each node."""
    lines = tree(plan)
    widths = [
        max(map(len, column)) for column in zip(*((w.branch + w.name, w.cost, w.percent) for w in lines), strict=True)
    ]
    drawn = [
        f"{line.branch + line.name:<{widths[0]}}  {line.cost:>{widths[1]}}  {line.percent:>{widths[2]}}  {line.note}"
        for line in lines
    ]
    return "\n".join([*summary(plan), "", *map(str.rstrip, drawn)])


def tree(plan: Plan) -> list[Line]:
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
        note = _reads(plan, node)
        lines.append(Line(branch, node.label, number(node.cost), part, note, not node.exposed, node.name))
        deeper = indent + ("   " if last else "│  ")
        waiting += [(deeper, child) for child in reversed(children.get(node.name, []))]
    return lines


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


def summary(plan: Plan) -> list[str]:
    """Say in two or three lines what is asked, what it costs, and how good that is."""
    hidden = sum(not node.exposed for node in plan.nodes)
    added = f", {hidden} hidden node{'s' * (hidden > 1)} added" if hidden else ""
    gain = (
        f"{share(plan.naive_cost, plan.cost):.1f} times cheaper" if plan.cost < plan.naive_cost else "nothing to share"
    )
    asked = ", ".join(each.name for each in plan.query.formulas or plan.query.parsed_aggregates)
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


def _reads(plan: Plan, node: PlanNode) -> str:
    reads = number(plan.reads(node))
    what = f"reads {reads} event{'s' * (reads != '1')}" if node.parent is None else f"reads {reads} × {node.parent}"
    if not node.exposed:
        return f"{what}, hidden: without it {signed(saves(plan, node))}"
    if (saved := rows_saved(plan, node)) is not None:
        what += f", saves {number(saved)} row{'s' * (saved != 1)}/s"
    lost = next(iter(alternatives(plan, node)), None)
    return f"{what}; {lost.parent or 'raw events'} {signed(lost.extra)}" if lost else what


def signed(extra: Cost) -> str:
    """Write a difference of costs with its sign."""
    return f"+{number(extra)}" if extra >= 0 else f"-{number(-extra)}"


def rows_saved(plan: Plan, node: PlanNode) -> Cost | None:
    """Count the rows a second that a node need not read because it does not read the events, if their rate is known."""
    model = plan.cost_model
    if node.parent is None or not isinstance(model, SparkCost) or model.assumed:
        return None
    spared = model.instance_cost(node.window, None) - plan.reads(node)
    return model.recurrence_count(node.window) * spared * 1_000_000 / model.unit


def explain_physical(plan: Plan, events: DataFrame | None = None) -> str:
    """Say how a plan runs on Spark: its levels, how rows are shuffled, and why; for given events, just as it will."""
    if events is None:
        target = Target.assumed(plan.query, partitions=PARTITIONS)
        how = f", with {PARTITIONS} shuffle partitions; explain(events=...) says how it runs on your events"
        return f"on Spark{how}\n{physical.compile(plan, target)}"
    from factor_windows.engines.spark_batch import explained

    return f"on Spark, for these events\n{explained(plan, events)}"


def _open_instances(segmentation: Segmentation) -> int:
    return 1 if isinstance(segmentation, Slices) else -(-segmentation.range // segmentation.slide)


def explain_streaming(plan: Plan) -> str:
    """Say how a plan runs on a stream: its operators, their state, when results come out, what late events do."""
    levels = physical.compile(plan, Target.assumed(plan.query, streaming=True)).layout.levels
    count = len(levels)
    chained = "one after the other" if count > 1 else "for all windows"
    lines = ["on a stream, in append mode", f"  {count} stateful operator{'s' * (count > 1)}, {chained}"]
    for number, level in enumerate(levels, start=1):
        nodes = [plan.nodes[position] for position in level.nodes]
        open_instances = sum(_open_instances(node.window) for node in nodes)
        names = ", ".join(node.label for node in nodes)
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
