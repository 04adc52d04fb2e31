"""Compaction and expiry: one row for each pane and keys, coarser panes in addition, and nothing that is too old."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factor_windows.algebra.slices import Segmentation, refines
from factor_windows.engines.spark_panes import NODE, START
from factor_windows.errors import StoreError
from factor_windows.functions.expression import quoted
from factor_windows.search.plan_panes import cannot_make
from factor_windows.store.manifest import Manifest, Part, Resolution
from factor_windows.store.panes import StoredPanes, columns_of
from factor_windows.store.place import CUT, Stretch, cut
from factor_windows.store.resolutions import chunk_of


def compact(panes: StoredPanes) -> Manifest:
    """Merge appended rows with existing ones, for every kind of panes; return the latest version."""
    manifest = panes.load()
    appended = [part for part in manifest.parts if not part.is_compact]
    if not appended:
        return manifest
    merger = panes.merger(manifest, [resolution.panes for resolution in manifest.resolutions])
    stretches = _stretches(manifest, appended)
    met = [part for part in manifest.parts if part.is_compact and (part.node, part.chunk) in stretches]
    frames = [merger.coarsen(panes.rows(manifest, appended)), *([panes.rows(manifest, met)] if met else [])]
    rows = merger.merge(reduce(DataFrame.unionByName, frames))
    return _write(panes, manifest, rows, gone=(*appended, *met), stretches=stretches)


def expire(panes: StoredPanes, age: int, keep: Segmentation | None) -> Manifest:
    """Drop panes that start this long before the last event: all, or only those finer than the panes to keep."""
    compact(panes)
    manifest = panes.load_some()
    if keep is not None:
        manifest = _with_resolution(panes, manifest, keep)
    gone = [keep is None or (each.panes != keep and refines(each.panes, keep)) for each in manifest.resolutions]
    if manifest.latest is None:
        return manifest
    cutoff = manifest.latest - age
    resolutions = tuple(
        replace(each, since=cutoff if each.since is None else max(cutoff, each.since)) if is_gone else each
        for each, is_gone in zip(manifest.resolutions, gone, strict=True)
    )
    old = [part for part in manifest.parts if part.is_compact and gone[part.node] and part.last < cutoff]
    return panes.commit(replace(manifest, resolutions=resolutions).following(old), gone=old)


def _stretches(manifest: Manifest, appended: Sequence[Part]) -> set[Stretch]:
    """Return the stretches of time, of each kind of panes, that appended rows may belong to."""
    # A coarse pane starts at most its length before the finest panes in it.
    return {
        (number, chunk)
        for number, each in enumerate(manifest.resolutions)
        for part in appended
        for chunk in range((part.first - each.panes.longest) // each.chunk, part.last // each.chunk + 1)
    }


def _write(
    panes: StoredPanes,
    manifest: Manifest,
    rows: DataFrame,
    *,
    gone: Collection[Part] = (),
    stretches: Collection[Stretch] = (),
) -> Manifest:
    """Write rows of panes of several kinds to replace some parts."""
    length = (
        f"CASE {NODE} {' '.join(f'WHEN {n} THEN {each.chunk}L' for n, each in enumerate(manifest.resolutions))} END"
    )
    for number, each in enumerate(manifest.resolutions):
        if each.since is not None:
            rows = rows.where(f"{NODE} <> {number} OR {START} >= {each.since}L")
    # Sums of decimals become wider with every merge.
    rows = rows.select(*(rows[quoted(field.name)].cast(field.dataType) for field in columns_of(manifest)))
    ordered = cut(rows, length).repartition(*CUT).sortWithinPartitions(*CUT, START)
    return panes.commit(manifest.following(gone), ordered, gone=gone, stretches=stretches)


def _with_resolution(panes: StoredPanes, manifest: Manifest, wanted: Segmentation) -> Manifest:
    """Return the manifest with one more kind of panes, made from the finest, or unchanged if it already has it."""
    if any(each.panes == wanted for each in manifest.resolutions):
        return manifest
    first = manifest.resolutions[0]
    if not refines(first.panes, wanted):
        raise cannot_make(wanted, [first.panes])
    if first.since is not None:
        raise StoreError(
            f"panes of {first.panes.label} have expired, so panes of {wanted.label} can no longer be built from them; "
            f"keep one of {', '.join(each.panes.label for each in manifest.resolutions[1:]) or 'none'}"
        )
    merger = panes.merger(manifest, [first.panes, wanted])
    finest = panes.rows(manifest, [part for part in manifest.parts if part.node == 0])
    made = merger.merge(merger.coarsen(finest).where(f"{NODE} = 1"))
    more = replace(manifest, resolutions=(*manifest.resolutions, Resolution(wanted, chunk_of(wanted))))
    return _write(panes, more, made.withColumn(NODE, F.lit(len(manifest.resolutions))))
