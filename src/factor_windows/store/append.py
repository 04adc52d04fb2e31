"""Append events to a store: they become rows of panes in new files, which a new version names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from factor_windows.engines.spark_panes import APPENDED, VERSION, PaneWriter
from factor_windows.errors import StoreError
from factor_windows.spark.look import number_of
from factor_windows.store.attempts import try_until_first
from factor_windows.store.manifest import Manifest
from factor_windows.store.panes import StoredPanes, kept_in
from factor_windows.store.place import cut
from factor_windows.store.reading import varying
from factor_windows.store.zones import depends_on_zone

FEW_EVENTS = 100_000
"""Up to this many events of a batch are grouped by one task, which is faster than a shuffle."""


def append_batch(panes: StoredPanes, events: DataFrame, name: str | None) -> int:
    """Add a batch, unless one with this name exists; return the version that contains it."""

    def version_of(manifest: Manifest) -> int | None:
        return manifest.version if name is not None and name in manifest.batches else None

    def mark(manifest: Manifest) -> Manifest:
        return manifest if name is None else replace(manifest, batches=(*manifest.batches, name))

    return _append(panes, events, version_of, mark, is_batch=True)


def append_micro_batch(panes: StoredPanes, events: DataFrame, stream: str, number: int) -> int:
    """Add a micro-batch of a stream, unless it is already there; return the version that it made."""

    def version_of(manifest: Manifest) -> int | None:
        last, version = manifest.streams.get(stream, (-1, 0))
        return version if number <= last else None

    def mark(manifest: Manifest) -> Manifest:
        return replace(manifest, streams={**manifest.streams, stream: (number, manifest.version)})

    return _append(panes, events, version_of, mark)


def _append(
    panes: StoredPanes,
    events: DataFrame,
    version_of: Callable[[Manifest], int | None],
    mark: Callable[[Manifest], Manifest],
    *,
    is_batch: bool = False,
) -> int:
    def write() -> int:
        manifest = panes.load()
        if (version := version_of(manifest)) is not None:
            return version
        following = manifest.version + 1
        writer, own = panes.writer(manifest, events)
        _check_fits(manifest, writer, events)
        length = manifest.resolutions[0].chunk
        few = own.coalesce(1) if is_batch and number_of(events) <= FEW_EVENTS else own
        rows = writer.lift(few, APPENDED, f"{varying(following, writer.on_spark.names.start)} AS {VERSION}")
        marked = mark(with_kept(manifest, writer, rows).following())
        return panes.commit(marked, cut(rows, f"{length}L")).version

    return try_until_first(write)


def _check_fits(manifest: Manifest, writer: PaneWriter, events: DataFrame) -> None:
    """Refuse events whose types differ from those that the store was created with."""
    if manifest.kept is None:
        return
    kept = kept_in(manifest)
    known = {field.name.lower(): field.dataType for field in kept.events}
    for field in writer.kept.events:
        before = known.get(field.name.lower())
        if before is None or before.simpleString() != field.dataType.simpleString():
            what = "not there" if before is None else before.simpleString()
            raise StoreError(
                f"the column {field.name!r} is {field.dataType.simpleString()} in these events, and {what} in those "
                "that the store was created with; cast it"
            )
    if writer.kept.states != kept.states or writer.kept.values != kept.values:
        raise StoreError("the store was written by another version of this library; create a new one")
    if manifest.zone and manifest.zone != (zone := _zone(events)):
        raise StoreError(
            f"the store was created in the time zone {manifest.zone}, which its keys, times or values depend on, and "
            f"this session is in {zone}; set spark.sql.session.timeZone"
        )


def with_kept(manifest: Manifest, writer: PaneWriter, rows: DataFrame) -> Manifest:
    """Record the contents of rows with the first events; later ones may have nulls where these have none."""
    if manifest.kept is None:
        fields = [T.StructField(field.name, field.dataType) for field in rows.schema]
        matters = depends_on_zone(writer.on_spark.query, writer.kept)
        return replace(
            manifest,
            kept=writer.kept.document(),
            rows=T.StructType(fields).jsonValue(),
            zone=_zone(rows) if matters else "",
            is_local=isinstance(writer.on_spark.types.time, T.TimestampNTZType),
        )
    kept = kept_in(manifest)
    nullable = {field.name.lower() for field in writer.kept.events if field.nullable}
    if all(field.nullable or field.name.lower() not in nullable for field in kept.events):
        return manifest
    fields = [
        T.StructField(field.name, field.dataType, field.nullable or field.name.lower() in nullable)
        for field in kept.events
    ]
    return replace(manifest, kept=replace(kept, events=T.StructType(fields)).document())


def _zone(frame: DataFrame) -> str:
    return frame.sparkSession.conf.get("spark.sql.session.timeZone") or "UTC"
