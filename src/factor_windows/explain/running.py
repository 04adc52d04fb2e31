"""How a plan runs, as text: its levels on Spark, its operators on a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from factor_windows.algebra.slices import Segmentation, Slices
from factor_windows.algebra.window import readable
from factor_windows.tree import Pass

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def explain_physical(plan: Pass, events: DataFrame | None = None) -> str:
    """Say how a plan runs on Spark: its levels, how rows come together, and why; for given events, just as it will."""
    from factor_windows.algebra.packs import Packing
    from factor_windows.physical.levels import PARTITIONS, RAW, compile_levels

    if events is None:
        physical = compile_levels(plan, packing=Packing.of(plan.query))
        lines = [f"on Spark, with {PARTITIONS} shuffle partitions; explain(events=...) says how it runs on your events"]
    else:
        from factor_windows.engines.spark_batch import physical_of
        from factor_windows.engines.spark_chain import with_columns

        plan, physical = physical_of(plan, with_columns(events, plan.workload.derived))
        lines = ["on Spark, for these events"]
    lines += [f"  {note}" for note in physical.notes]
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
        if physical.pack and number == 1:
            pane = plan.nodes[level.nodes[0]].name
            lines += [f"    {plan.nodes[place].name} from {pane}, inside rows" for place in level.nodes[1:]]
    return "\n".join(lines)


def _open_instances(segmentation: Segmentation) -> int:
    return 1 if isinstance(segmentation, Slices) else -(-segmentation.range // segmentation.slide)


def explain_streaming(plan: Pass) -> str:
    """Say how a plan runs on a stream: its operators, their state, when results come out, what late events do."""
    from factor_windows.physical.levels import compile_levels

    levels = compile_levels(plan, streaming=True).levels
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
