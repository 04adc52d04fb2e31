"""Read what was adopted from a stream: merged with what the panes have of the same instances, if any."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from pyspark.sql import DataFrame

from factor_windows.algebra.session import Session
from factor_windows.engines.spark_panes import PaneReader
from factor_windows.physical import PhysicalPlan
from factor_windows.search.plan_panes import every_key
from factor_windows.store.manifest import Adopted, Manifest, Part
from factor_windows.store.panes import StoredPanes
from factor_windows.store.reading import Range
from factor_windows.tree import Pass


def adopted_parts(manifest: Manifest, plan: Pass, starts: Range = (-inf, inf)) -> tuple[Part, ...]:
    """Find the parts of adopted windows that are read and start in a range."""
    adopted = manifest.adopted
    if adopted is None:
        return ()
    nodes, (low, high) = _nodes(adopted, plan), starts
    # An instance of a growing window is identified by its last step: it may start earlier.
    return tuple(
        part
        for part in adopted.parts
        if part.node in nodes and part.last >= low and part.first < high + plan.nodes[nodes[part.node]].window.longest
    )


def merge_adopted(
    panes: StoredPanes,
    manifest: Manifest,
    reader: PaneReader,
    compiled: PhysicalPlan,
    rows: DataFrame,
    starts: Range = (-inf, inf),
    *,
    dated: bool = False,
) -> DataFrame:
    """Merge rows of instances with what was adopted of the same instances."""
    parts = adopted_parts(manifest, reader.plan, starts)
    if manifest.adopted is None or not parts:
        return rows
    nodes = _nodes(manifest.adopted, reader.plan)
    found = {part.node: nodes[part.node] for part in parts}
    return reader.merged_with(compiled, rows, reader.given(panes.rows(manifest, parts), dated=dated, nodes=found))


def is_whole(manifest: Manifest, reader: PaneReader, compiled: PhysicalPlan) -> str:
    """Write when an instance has all its events, although a stream saw some; nothing if there was no stream.

    Instances that the stream has closed are its own. For windows that it did not have, it is unknown which events it
    saw.
    """
    adopted = manifest.adopted
    if adopted is None:
        return ""
    words, taken = reader.on_spark.words, set(_nodes(adopted, reader.plan).values())
    start, end = words.term(compiled.show.start), words.term(compiled.show.end)
    cases = []
    for place, node in enumerate(reader.plan.nodes):
        gap = node.window.gap if isinstance(node.window, Session) else 0
        if place in taken:
            cases.append(f"WHEN {place} THEN {end} > {adopted.edge}L")
        elif node.exposed:
            # An event that the stream saw may have been within a gap of the first event that panes have.
            cases.append(f"WHEN {place} THEN {start} >= {adopted.until + gap}L")
    return f"CASE {reader.on_spark.names.node} {' '.join(cases)} END"


def _nodes(adopted: Adopted, plan: Pass) -> Mapping[int, int]:
    """Return the adopted nodes of a plan, by the numbers of their rows: windows by the stream's own keys."""
    keys, numbers = every_key(plan), adopted.numbers
    return {
        numbers[node.window]: place
        for place, node in enumerate(plan.nodes)
        if node.exposed and node.node.keys == keys and node.window in numbers
    }
