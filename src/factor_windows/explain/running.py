"""How a plan runs, as text: its levels on Spark, its operators on a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from factor_windows import physical
from factor_windows.algebra.growing import Growing
from factor_windows.algebra.session import Session
from factor_windows.algebra.slices import Segmentation, Slices, display_key
from factor_windows.algebra.window import Window, readable
from factor_windows.physical import Target
from factor_windows.physical.work import PARTITIONS
from factor_windows.tree import Pass

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def explain_physical(plan: Pass, events: DataFrame | None = None) -> str:
    """Describe how a plan runs on Spark: levels, shuffles, and why; given events, exactly as it will run."""
    if events is None:
        target = Target.assumed(plan.query, partitions=PARTITIONS)
        how = f", with {PARTITIONS} shuffle partitions; explain(events=...) says how it runs on your events"
        return f"on Spark{how}\n{physical.compile(plan, target)}"
    from factor_windows.engines.spark_batch import explained

    return f"on Spark, for these events\n{explained(plan, events)}"


def _open_instances(segmentation: Segmentation) -> int:
    if isinstance(segmentation, Growing):
        return segmentation.steps
    return 1 if isinstance(segmentation, Slices | Session) else -(-segmentation.range // segmentation.slide)


def explain_streaming(plan: Pass) -> str:
    """Describe how a plan runs on a stream: operators, their state, when results come out, what late events do."""
    compiled = physical.compile(plan, Target.assumed(plan.query, streaming=True))
    plan, levels = compiled.plan, compiled.layout.levels
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
    shortest = min(first, key=lambda node: display_key(node.window)).window
    length = readable(shortest.range) if isinstance(shortest, Window) and not shortest.clock else shortest.label
    late = (
        f"  an event is late when the watermark has passed the end of its {length}: it is dropped, "
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
