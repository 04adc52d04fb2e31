"""A store: panes of partial results, appended batch by batch, and read as any windows that they add up to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from math import inf
from os import PathLike, fspath
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from factor_windows.algebra.calendar import AnyWindow
from factor_windows.algebra.growing import Growing
from factor_windows.algebra.session import Session
from factor_windows.algebra.slices import slices_of
from factor_windows.algebra.window import Duration, Window, duration, readable, tumbling
from factor_windows.errors import OptionError, PlanError
from factor_windows.functions.table import Kind
from factor_windows.plan import Plan
from factor_windows.query import Query
from factor_windows.serialize import query_document, read_query
from factor_windows.spark import lakehouse
from factor_windows.spark.checkpoint import name_of_stream
from factor_windows.spark.messages import check_events
from factor_windows.store.adopt import adopt_stream
from factor_windows.store.answer import check_upserts, explain_reading, read_changes, read_windows
from factor_windows.store.append import append_batch, append_micro_batch
from factor_windows.store.compact import compact, expire
from factor_windows.store.folder import Folder
from factor_windows.store.instants import as_text, micros_of
from factor_windows.store.manifest import Adopted, Manifest
from factor_windows.store.panes import StoredPanes, plan_queries, sizes
from factor_windows.store.place import Place
from factor_windows.store.reading import Range
from factor_windows.store.resolutions import choose_resolutions
from factor_windows.store.table import Table, find_place

FORMATS = ("parquet", *lakehouse.FORMATS)
Moment = datetime | date | str


class Store:
    """Roll-ups that stay up to date.

    A store holds partial results for each key and pane of time. An append only adds rows, so late events may arrive at
    any time, and a batch appended again under the same name counts once. You can read any windows that the panes add up
    to.
    """

    def __init__(self, spark: SparkSession, place: Place, document: Mapping[str, Any]) -> None:
        """Use `create` or `open` instead."""
        queries = [read_query(each) for each in document["queries"]]
        self.spark = spark
        self._panes = StoredPanes(spark, place, queries, is_single=bool(document["is_single"]))
        self._delay: int | None = document["delay"]

    def __repr__(self) -> str:
        return f"<Store: {self.location}, version {self.version}>"

    @classmethod
    def create(
        cls,
        spark: SparkSession,
        location: str | PathLike[str],
        query: Query | Plan | Sequence[Query],
        *,
        finest: Duration | None = None,
        delay: Duration | None = None,
        format: str = "parquet",
    ) -> Store:
        """Create a store for one query, or several that share panes, in a new or empty folder.

        With `format` "delta" or "iceberg", the location is the name of a new table (for Delta also a path), and
        versions are transactions of that format.

        The panes are the coarsest that add up to all windows. `finest` makes them finer, so that other windows can be
        read later. `delay` is how long after its end a window accepts events before `changes` calls it final.
        """
        if format not in FORMATS:
            raise OptionError(f"format {format!r} is unknown; allowed are {', '.join(FORMATS)}")
        asked = query.queries if isinstance(query, Plan) else query
        is_single = isinstance(query, Query) or (isinstance(query, Plan) and query.is_single)
        queries = (asked,) if isinstance(asked, Query) else tuple(asked) if isinstance(asked, Sequence) else ()
        if not queries or not all(isinstance(each, Query) for each in queries):
            raise OptionError(f"query {query!r} is not a query, or a list of queries; fw.Query(...) makes one")
        plan = plan_queries(queries, is_single=is_single)
        for each in plan.queries:
            _check_functions(each)
        panes = [tumbling(finest)] if finest is not None else []
        resolutions = choose_resolutions(plan.passes[0], panes)
        document = {
            "queries": [query_document(each) for each in plan.queries],
            "is_single": is_single,
            "delay": None if delay is None else _positive("delay", delay),
        }
        place: Place = Folder(fspath(location)) if format == "parquet" else Table(spark, fspath(location), format)
        place.create(document, Manifest(0, resolutions))
        return cls(spark, place, document)

    @classmethod
    def open(cls, spark: SparkSession, location: str | PathLike[str]) -> Store:
        """Open an existing store, in a folder or a table."""
        place = find_place(spark, fspath(location))
        return cls(spark, place, place.open())

    @property
    def location(self) -> str:
        """Return the folder or the table of the store."""
        return self._panes.place.location

    @property
    def version(self) -> int:
        """Return the number of the latest version; each append, compaction and expiry makes a new one."""
        return self._panes.load().version

    @property
    def queries(self) -> tuple[Query, ...]:
        """List the queries that the store was created for."""
        return self._panes.queries

    def append(self, events: DataFrame, *, batch: str | None = None) -> int:
        """Add a batch of events and return the version that contains them.

        A batch whose name is already in the store is skipped. Without a name, a repeated batch counts twice.
        """
        check_events(events)
        if events.isStreaming:
            raise OptionError("these events are a stream; write_stream() appends its micro-batches")
        if batch is not None and (not isinstance(batch, str) or not batch):
            raise OptionError(f"batch {batch!r} is not text; name the batch, such as '2024-01-31'")
        return append_batch(self._panes, events, batch)

    def write_stream(
        self,
        events: DataFrame,
        *,
        checkpoint: str | PathLike[str],
        trigger: Mapping[str, Any] | None = None,
        on_changes: Callable[[DataFrame, int], None] | None = None,
    ) -> StreamingQuery:
        """Append every micro-batch of a stream exactly once, and return the running query.

        No watermark is needed: late events count. `trigger` is Spark's, such as {"availableNow": True}. `on_changes` is
        called after each micro-batch with the changed rows, as `changes` returns them, and the version; after a failure
        it may be called again with the same rows.
        """
        check_events(events)
        if not events.isStreaming:
            raise OptionError("these events are a batch; append() adds them")
        if on_changes is not None:
            check_upserts(plan_queries(self.queries, is_single=self._panes.is_single))
        location, place = self.location, fspath(checkpoint).rstrip("/")
        # Where Spark runs this in another process, nothing of this process is available.
        opened: dict[str, Any] = {}

        def write(rows: DataFrame, number: int) -> None:
            spark = rows.sparkSession
            if "store" not in opened:
                opened["store"], opened["name"] = Store.open(spark, location), name_of_stream(spark, place)
            store: Store = opened["store"]
            version = append_micro_batch(store._panes, rows, opened["name"], number)
            if on_changes is not None:
                on_changes(store.changes(since=version - 1), version)

        writer = events.writeStream.foreachBatch(write).option("checkpointLocation", place)
        return (writer.trigger(**trigger) if trigger else writer).start()

    def adopt(self, events: DataFrame, *, checkpoint: str | PathLike[str]) -> int:
        """Take over the open windows of a stopped stream, and return the version that contains them.

        The stream must be a `plan.run(events, checkpoint=...)` in append mode, and the store must still be empty. The
        stream's state is read and set aside, as `state.adopted`, so `write_stream(events, checkpoint=...)` continues in
        the same checkpoint: no event is lost or counted twice. Rows that the stream has written stay unchanged. Its
        open windows become the store's, and appear among the store's changes. Windows that the stream did not compute
        start after the last event it has seen.
        """
        check_events(events)
        if not events.isStreaming:
            raise OptionError("these events are a batch; adopt() takes the stream, with spark.readStream")
        return adopt_stream(self._panes, events, fspath(checkpoint).rstrip("/"))

    def read(
        self,
        windows: Sequence[AnyWindow] | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        *,
        version: int | None = None,
    ) -> Any:
        """Compute windows from the panes: those the store was created for, or any others that the panes add up to.

        Return the windows that start at or after `since` and before `until`, without expired ones: a DataFrame, or for
        several queries a mapping from names to DataFrames. An earlier `version` can be read as long as the format keeps
        it.
        """
        if version is not None and (not isinstance(version, int) or not 0 <= version <= self.version):
            raise OptionError(f"version {version!r} is not among the versions 0 to {self.version} of the store")
        manifest = self._panes.load_some(version)
        return read_windows(self._panes, manifest, windows, self._starts(manifest, since, until), self._zone(manifest))

    def changes(self, since: int, *, windows: Sequence[AnyWindow] | None = None, delay: Duration | None = None) -> Any:
        """Return the rows that changed since a version, as upserts by keys, `window_id` and `window_start`.

        Only windows with new events are computed. With a `delay`, given here or when the store was created, a window is
        final once there are events that far past its end: the column `is_final` says so, and windows that have just
        become final are returned again. Without a delay no window is final, since more events may still arrive.
        """
        manifest = self._panes.load_some()
        if not isinstance(since, int) or not 0 <= since <= manifest.version:
            raise OptionError(f"since {since!r} is not among the versions 0 to {manifest.version} of the store")
        return read_changes(
            self._panes, manifest, windows, since, self._delay if delay is None else _positive("delay", delay)
        )

    def explain(
        self, windows: Sequence[AnyWindow] | None = None, since: Moment | None = None, until: Moment | None = None
    ) -> str:
        """Say which panes a read uses, of which resolution, and in how many files."""
        manifest = self._panes.load_some()
        starts = self._starts(manifest, since, until)
        return explain_reading(self._panes, manifest, windows, starts, self._zone(manifest))

    def compact(self, *, retain: Duration = "1 hour") -> int:
        """Merge appended rows, build coarser panes, and return the version.

        Files that are no longer read are kept for the time `retain`, for readers that may have started with them.
        """
        kept = _positive("retain", retain) / 1e6
        manifest = compact(self._panes)
        self._panes.place.clean(manifest, kept)
        return manifest.version

    def expire(self, age: Duration, *, keep: Duration | AnyWindow | None = None, retain: Duration = "1 hour") -> int:
        """Drop panes that are older than the last event by `age`, and return the version.

        Panes of `keep`, such as "1 hour", and coarser ones stay, so that their windows can still be read;
        all other windows can then only be read from that point on. Without `keep`, nothing that old stays.
        """
        kept = _positive("retain", retain) / 1e6
        window = tumbling(keep) if isinstance(keep, str | timedelta) else keep
        if window is not None and not isinstance(window, Window | Growing | Session):
            raise OptionError(f"keep {keep!r} is not a length, such as '1 hour', or a window")
        panes = None if window is None else slices_of([window])
        manifest = expire(self._panes, _positive("age", age), panes)
        self._panes.place.clean(manifest, kept)
        return manifest.version

    def describe(self) -> dict[str, Any]:
        """Describe the store as plain values."""
        manifest = self._panes.load()
        zone = self._zone(manifest)
        return {
            "location": self.location,
            "format": self._panes.place.format,
            "version": manifest.version,
            "queries": [query_document(each) for each in self.queries],
            "delay": None if self._delay is None else readable(self._delay),
            "batches": len(manifest.batches),
            "streams": len(manifest.streams),
            "last_event": None if manifest.latest is None else as_text(manifest.latest, zone),
            "resolutions": [
                {
                    "panes": each.panes.label,
                    "since": None if each.since is None else as_text(each.since, zone),
                    **sizes([part for part in manifest.parts if part.node == number]),
                }
                for number, each in enumerate(manifest.resolutions)
            ],
            "appended": sizes([part for part in manifest.parts if not part.is_compact]),
            **({} if manifest.adopted is None else {"adopted": _described(manifest.adopted, zone)}),
            **sizes(manifest.every_part),
            **self._panes.place.extent(manifest),
        }

    def _starts(self, manifest: Manifest, since: Moment | None, until: Moment | None) -> Range:
        """Return the range of start times of the requested windows."""
        zone = self._zone(manifest)
        low = -inf if since is None else micros_of("since", since, zone)
        high = inf if until is None else micros_of("until", until, zone)
        if low > high:
            raise OptionError(f"since {since!r} is after until {until!r}")
        return low, high

    def _zone(self, manifest: Manifest) -> str:
        """Return the time zone for times without one; nothing if the events' times are local already."""
        if manifest.is_local:
            return ""
        return self.spark.conf.get("spark.sql.session.timeZone") or "UTC"


def _positive(option: str, given: Duration) -> int:
    length = duration(given)
    if length < 0:
        raise OptionError(f"{option} {given!r} is negative; it is a length of time, such as '1 hour'")
    return length


def _described(adopted: Adopted, zone: str) -> dict[str, Any]:
    windows = [window.label for window in adopted.windows]
    return {"windows": windows, "closed_until": as_text(adopted.edge, zone), **sizes(adopted.parts)}


def _check_functions(query: Query) -> None:
    for each in query.parsed_aggregates:
        if each.kind is Kind.HOLISTIC:
            raise PlanError(f"{each.sql} needs all events at once, so a store cannot keep partial results of it")
