"""Answer from a store: windows made from its panes, all of them or only those that contain new events."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factor_windows.algebra.calendar import AnyWindow
from factor_windows.algebra.session import Session
from factor_windows.algebra.slices import Segmentation, mean_length
from factor_windows.algebra.window import Window
from factor_windows.engines.spark_columns import with_columns
from factor_windows.engines.spark_panes import APPENDED, NODE, START, PaneReader
from factor_windows.errors import QueryError, StoreError
from factor_windows.physical import PhysicalPlan
from factor_windows.plan import Plan
from factor_windows.query import Query
from factor_windows.spark.result import apply_post_aggregation
from factor_windows.spark.types import microseconds
from factor_windows.store.adopted import adopted_parts, is_whole, merge_adopted
from factor_windows.store.instants import as_text
from factor_windows.store.manifest import Manifest
from factor_windows.store.panes import StoredPanes, priced, sizes
from factor_windows.store.reading import (
    Range,
    Reading,
    choose_parts,
    condition,
    conditions,
    ranges_around,
    ranges_of_starts,
    reach_of,
    rows_within,
    varying,
)
from factor_windows.tree import Pass

FEW_UPDATES = 1_000_000
"""Up to this many rows are assigned to instances in one task, rather than in several with planning and shuffles."""


def read_windows(
    panes: StoredPanes, manifest: Manifest, windows: Sequence[AnyWindow] | None, starts: Range, zone: str
) -> Any:
    """Compute windows that start in a range."""
    plan = panes.planned(manifest, windows)

    def compute(each: Pass, empty: DataFrame) -> DataFrame:
        reader = panes.reader(manifest, each, empty)
        reading = choose_reading(manifest, reader.plan, starts, zone)
        compiled = _compiled(manifest, reader, reading, dated=False)
        rows = reader.merged(compiled, reader.given(_rows(panes, manifest, reader, reading, compiled)))
        rows = merge_adopted(panes, manifest, reader, compiled, rows, starts)
        start = reader.on_spark.words.term(compiled.show.start)
        within = condition(f"({start})", (starts,), varies=compiled.target.are_few)
        rows = _where(rows, within, _not_expired(manifest, reader, compiled), is_whole(manifest, reader, compiled))
        return apply_post_aggregation(each.query, reader.show(compiled, rows))

    return panes.computed(plan, manifest, compute)


def read_changes(
    panes: StoredPanes, manifest: Manifest, windows: Sequence[AnyWindow] | None, since: int, delay: int | None
) -> Any:
    """Compute windows that have new events since a version, or have become final since."""
    plan = panes.planned(manifest, windows)
    check_upserts(plan)
    latest, before = manifest.latest, manifest.latest_in(since)

    def compute(each: Pass, empty: DataFrame) -> DataFrame:
        reader = panes.reader(manifest, each, empty)
        reading = _touched(manifest, reader.plan, since, delay)
        compiled = _compiled(manifest, reader, reading, dated=True)
        rows = reader.merged(compiled, reader.given(_rows(panes, manifest, reader, reading, compiled), dated=True))
        rows = merge_adopted(panes, manifest, reader, compiled, rows, dated=True)
        is_new = f"{reader.version} > {varying(since, reader.version)}"
        if delay is not None and latest is not None:
            final = ((-inf if before is None else before - delay + 1, latest - delay + 1),)
            end = f"({reader.on_spark.words.term(compiled.show.end)})"
            is_new += f" OR {condition(end, final, varies=True)}"
        rows = _where(rows, is_new, _not_expired(manifest, reader, compiled), is_whole(manifest, reader, compiled))
        shown = reader.show(compiled, rows)
        return _finish(each.query, _with_finality(shown, latest, delay)) if plan.is_single else shown

    found = panes.computed(plan, manifest, compute)
    if not plan.is_single:
        for name, rows in found.items():
            found[name] = _with_finality(rows, latest, delay)
    return found


def explain_reading(
    panes: StoredPanes, manifest: Manifest, windows: Sequence[AnyWindow] | None, starts: Range, zone: str
) -> str:
    """Say which panes answer a read, and in how many files they are."""
    [each] = panes.planned(manifest, windows).passes
    plan = panes.reader(manifest, each, with_columns(panes.empty(manifest), each.workload.derived)).plan
    reading = choose_reading(manifest, plan, starts, zone)
    lines = []
    for number, made in sorted(reach_of(plan, manifest.resolutions).items()):
        label = manifest.resolutions[number].panes.label
        lines.append(f"panes of {label}: {_amount(reading.compact[number])}, compact")
        lines += [f"  {window.label}" for window in made]
    finest = manifest.resolutions[0].panes.label
    lines.append(f"appended since the last compaction: {_amount(reading.appended)}, of {finest}")
    if adopted := adopted_parts(manifest, plan, starts):
        lines.append(f"adopted from a stream: {_amount(adopted)}")
    return "\n".join(lines)


def choose_reading(manifest: Manifest, plan: Pass, starts: Range, zone: str) -> Reading:
    """Find the parts for windows that start in a range; refuse a range that has expired."""
    low, high = starts
    ranges = {}
    for number, windows in reach_of(plan, manifest.resolutions).items():
        resolution = manifest.resolutions[number]
        if resolution.since is not None and -inf < low < resolution.since:
            raise StoreError(
                f"panes of {resolution.panes.label} before {as_text(resolution.since, zone)} have expired, so "
                f"{windows[0].label} cannot be read since {as_text(int(low), zone)}; read it since then, or read "
                "windows of the panes that are left"
            )
        ranges[number] = ranges_of_starts(windows, low, high)
    return choose_parts(manifest, ranges)


def _touched(manifest: Manifest, plan: Pass, since: int, delay: int | None) -> Reading:
    """Find the parts with panes that share a window with new panes, or with one that has become final."""
    has_expired = manifest.resolutions[0].since is not None
    new = [part for part in manifest.parts if part.version > since and (has_expired or part.is_finest)]
    new += [part for part in adopted_parts(manifest, plan) if part.version > since]
    touched: list[Range] = [(part.first, part.last + 1) for part in new]
    latest, before = manifest.latest, manifest.latest_in(since)
    if delay is not None and latest is not None:
        touched.append((-inf if before is None else before - delay, latest - delay + 1))
    found = {}
    for number, windows in reach_of(plan, manifest.resolutions).items():
        # Coarse panes start earlier than the new rows in them.
        early = manifest.resolutions[number].panes.longest
        found[number] = ranges_around(windows, [(low - early, high) for low, high in touched])
    return choose_parts(manifest, found)


def _compiled(manifest: Manifest, reader: PaneReader, reading: Reading, *, dated: bool) -> PhysicalPlan:
    """Compile a reader for the number of rows to read."""
    finest = manifest.resolutions[0].panes
    made = reach_of(reader.plan, manifest.resolutions)
    counts = {number: rows_within(parts, reading.ranges[number]) for number, parts in reading.compact.items()}
    appended = rows_within(reading.appended, reading.everywhere)
    # Appended rows first become rows of each kind of panes, fewer of coarser ones.
    updates = appended * len(made)
    for number, windows in made.items():
        share = float(mean_length(finest) / mean_length(manifest.resolutions[number].panes))
        updates += (counts[number] + appended * share) * sum(map(_instances, windows))
    if updates <= FEW_UPDATES:
        return reader.compiled(dated=dated, are_few=True, has_appended=bool(reading.appended))
    parts = reading.parts
    ends = (min(part.first for part in parts), max(part.last for part in parts))
    low, high = max(ends[0], reading.everywhere[0][0]), min(ends[1], reading.everywhere[-1][1])
    rows = counts.get(0, 0.0) + appended or sum(counts.values())
    model = priced(reader.plan, rows, high - low, finest)
    return reader.compiled(dated=dated, has_appended=bool(reading.appended), cost_model=model)


def _instances(window: Segmentation) -> int:
    """Return the number of instances that a pane is assigned to."""
    return -(-window.range // window.slide) if isinstance(window, Window) else getattr(window, "steps", 1)


def _rows(
    panes: StoredPanes, manifest: Manifest, reader: PaneReader, reading: Reading, compiled: PhysicalPlan
) -> DataFrame:
    """Read panes of all kinds that are needed; if few, all rows of their files, which needs no newly compiled code."""
    varies = compiled.target.are_few and sum(part.rows for part in reading.parts) <= FEW_UPDATES
    coarsens = bool(reading.appended) and not reader.is_apart and set(reading.ranges) != {0}
    parts = reading.parts if not coarsens else tuple(part for part in reading.parts if part.is_compact)
    ranges = {**reading.ranges, APPENDED: reading.everywhere}
    found = {part.node for part in parts}
    text = conditions(NODE, START, {number: own for number, own in ranges.items() if number in found}, varies=varies)
    rows = _where(panes.rows(manifest, parts), text)
    if not coarsens:
        return rows
    merger = panes.merger(manifest, [resolution.panes for resolution in manifest.resolutions])
    appended = _where(panes.rows(manifest, reading.appended), condition(START, reading.everywhere))
    numbers = ", ".join(map(str, reading.ranges))
    return rows.unionByName(merger.coarsen(appended).where(f"{NODE} IN ({numbers})"))


def _where(rows: DataFrame, *texts: str) -> DataFrame:
    wanted = [f"({text})" for text in texts if text]
    return rows.where(" AND ".join(wanted)) if wanted else rows


def _not_expired(manifest: Manifest, reader: PaneReader, compiled: PhysicalPlan) -> str:
    """Write when an instance is complete, although panes have expired; nothing if none have."""
    since: dict[Segmentation, int] = {}
    for number, windows in reach_of(reader.plan, manifest.resolutions).items():
        gone = manifest.resolutions[number].since
        if gone is not None:
            # A deleted event may have been within a gap of the first remaining one, and some time after the edge: a
            # pane that starts before the edge is deleted as a whole.
            early = manifest.resolutions[number].panes.longest
            since |= {window: gone + (window.gap + early if isinstance(window, Session) else 0) for window in windows}
    cases = [
        f"WHEN {place} THEN {since[node.window]}L"
        for place, node in enumerate(reader.plan.nodes)
        if node.exposed and node.window in since
    ]
    if not cases:
        return ""
    start = reader.on_spark.words.term(compiled.show.start)
    return f"{start} >= CASE {reader.on_spark.names.node} {' '.join(cases)} ELSE {start} END"


def _finish(query: Query, rows: DataFrame) -> DataFrame:
    """Show the query's columns, and what is final, by the window's own end, whatever is shown under this name."""
    if not query.parsed_output:
        return rows
    return rows.select(*(F.expr(column.sql).alias(column.name) for column in query.parsed_output), "is_final")


def check_upserts(plan: Plan) -> None:
    """Refuse queries whose results cannot be upserted."""
    for query in plan.queries:
        sessions = [window for window in query.windows if isinstance(window, Session)]
        if sessions:
            raise QueryError(
                f"{sessions[0].label} may merge with its neighbours when late events arrive, which an upsert cannot "
                "express; name the other windows, changes(since, windows=[...]), and read() sessions"
            )
        if query.having or query.outer:
            raise QueryError(
                "a condition on results may later drop a row, which an upsert cannot express; create the store without "
                "it, and apply it to what is read"
            )
        missing = [name for name in ("window_id", "window_start", "window_end") if name not in query.columns]
        if missing:
            raise QueryError(f"changes need the column {missing[0]}; leave it in the query's output")
        if query.output and not plan.is_single:
            raise QueryError(
                f"query {query.name!r} has an output of its own, and changes of several queries have theirs; create "
                "the store without it"
            )


def _with_finality(rows: DataFrame, latest: int | None, delay: int | None) -> DataFrame:
    if delay is None or latest is None:
        return rows.withColumn("is_final", F.lit(False))
    end = microseconds("window_end", rows.schema["window_end"].dataType)
    return rows.withColumn("is_final", F.expr(f"coalesce({end} <= {latest - delay}L, false)"))


def _amount(parts: Sequence[Any]) -> str:
    total = sizes(parts)
    files = f" in {total['files']:,} file{'s' * (total['files'] != 1)}"
    # Only the format itself knows the number of a table's files.
    return f"{total['rows']:,} rows{files if total['files'] or not parts else ''}"
