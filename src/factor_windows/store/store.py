"""A store: panes of partial results that are appended batch by batch, and read as any windows that they make up."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import reduce
from math import inf, log2
from os import PathLike, fspath
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming.query import StreamingQuery

from factor_windows.algebra.calendar import AnyWindow
from factor_windows.algebra.growing import Growing
from factor_windows.algebra.session import Session
from factor_windows.algebra.slices import Segmentation, mean_length, refines
from factor_windows.algebra.window import Duration, Window, duration, readable, tumbling
from factor_windows.cost.spark import SparkCost
from factor_windows.engines.spark_columns import with_columns
from factor_windows.engines.spark_panes import (
    NODE,
    START,
    VERSION,
    Kept,
    PaneMerger,
    PaneReader,
    PaneWriter,
)
from factor_windows.engines.spark_queries import fit_to_events, split_results
from factor_windows.errors import OptionError, PlanError, QueryError, StoreConflictError, StoreError
from factor_windows.functions.table import Kind
from factor_windows.plan import Plan
from factor_windows.query import Query
from factor_windows.request import Options, Request
from factor_windows.search.plan_panes import cannot_make, plan_panes
from factor_windows.search.plan_request import plan_request
from factor_windows.serialize import query_document, read_query
from factor_windows.spark.checkpoint import name_of_stream
from factor_windows.spark.messages import check_events
from factor_windows.spark.result import apply_post_aggregation
from factor_windows.spark.types import microseconds
from factor_windows.store.folder import CHUNK, Folder
from factor_windows.store.instants import as_text, micros_of
from factor_windows.store.manifest import Manifest, Part, Resolution
from factor_windows.store.reading import (
    Range,
    Reading,
    choose_parts,
    condition,
    ranges_around,
    ranges_of_starts,
    reach_of,
    usable,
)
from factor_windows.store.resolutions import choose_resolutions, chunk_of
from factor_windows.store.zones import depends_on_zone
from factor_windows.tree import Pass

FORMATS = ("parquet",)
ATTEMPTS = 10
"""How often an append is tried if other writers are faster each time."""
ROWS_PER_FILE = 5_000_000
Moment = datetime | date | str


class Store:
    """Roll-ups that are kept up to date.

    A store holds partial results by keys and pane of time. Appending adds rows and changes none, so late events are
    welcome at any time, and a batch that is appended again under its name counts once. Any windows that the panes make
    up can be read.
    """

    def __init__(self, spark: SparkSession, folder: Folder, document: Mapping[str, Any]) -> None:
        """Use `create` or `open`."""
        self.spark, self._folder = spark, folder
        self._queries = tuple(read_query(each) for each in document["queries"])
        self._is_single = bool(document["is_single"])
        self._delay: int | None = document["delay"]
        self._manifest: Manifest | None = None
        self._kept_things: dict[Any, Any] = {}

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
        """Begin a store in a folder that is new or empty, for a query or several that share their panes.

        Its panes are the coarsest that make up all windows. `finest` makes them finer, so that other windows can be
        read later. `delay` is how long after its end a window takes events before `changes` calls it final.
        """
        if format not in FORMATS:
            raise OptionError(f"format {format!r} is unknown; allowed are {', '.join(FORMATS)}")
        asked = query.queries if isinstance(query, Plan) else query
        is_single = isinstance(query, Query) or (isinstance(query, Plan) and query.is_single)
        queries = (asked,) if isinstance(asked, Query) else tuple(asked)
        if not queries or not all(isinstance(each, Query) for each in queries):
            raise OptionError(f"query {query!r} is not a query, or a list of such; fw.Query(...) makes one")
        plan = _plan(queries, is_single=is_single)
        for each in plan.queries:
            _check_functions(each)
        panes = [tumbling(finest)] if finest is not None else []
        resolutions = choose_resolutions(plan.passes[0], panes)
        document = {
            "queries": [query_document(each) for each in plan.queries],
            "is_single": is_single,
            "delay": None if delay is None else duration(delay),
        }
        folder = Folder(fspath(location))
        folder.create(document, Manifest(0, resolutions))
        return cls(spark, folder, document)

    @classmethod
    def open(cls, spark: SparkSession, location: str | PathLike[str]) -> Store:
        """Open a store that is there."""
        folder = Folder(fspath(location))
        return cls(spark, folder, folder.open())

    @property
    def location(self) -> str:
        """Return the folder of the store."""
        return str(self._folder.path)

    @property
    def version(self) -> int:
        """Return the number of the newest version; each append, compaction and expiry makes one."""
        return self._load().version

    @property
    def queries(self) -> tuple[Query, ...]:
        """List the queries that the store was created for."""
        return self._queries

    def append(self, events: DataFrame, *, batch: str | None = None) -> int:
        """Add a batch of events, and return the version that has them.

        A batch that is there under the same name is not added again. Without a name, a repeat counts twice.
        """
        check_events(events)
        if events.isStreaming:
            raise OptionError("these events are a stream; write_stream() appends its micro-batches")
        if batch is not None and not isinstance(batch, str):
            raise OptionError(f"batch {batch!r} is not text; name the batch, such as '2024-01-31'")
        name = batch if batch is not None else uuid4().hex

        def is_there(manifest: Manifest) -> int | None:
            return manifest.version if name in manifest.batches else None

        return self._append(
            events, is_there, lambda found: replace(found, batches=(*found.batches, name)) if batch else found
        )

    def write_stream(
        self,
        events: DataFrame,
        *,
        checkpoint: str | PathLike[str],
        trigger: Mapping[str, Any] | None = None,
        on_changes: Callable[[DataFrame, int], None] | None = None,
    ) -> StreamingQuery:
        """Append every micro-batch of a stream, each exactly once, and return the running query.

        No watermark is needed: late events are welcome. `trigger` is that of Spark, such as {"availableNow": True}.
        `on_changes` is called after each micro-batch with the rows that are new, as `changes` gives them, and with the
        version; after a fault it may be called again with the same rows.
        """
        check_events(events)
        if not events.isStreaming:
            raise OptionError("these events are a batch; append() adds them")
        location, place = self.location, fspath(checkpoint).rstrip("/")
        opened: dict[str, Any] = {}

        def write(rows: DataFrame, number: int) -> None:
            # Where Spark runs this in a process of its own, nothing of this one is there.
            store = opened.get("store")
            if store is None or store.spark is not rows.sparkSession:
                before = store
                store = opened["store"] = Store.open(rows.sparkSession, location)
                if before is not None:
                    store._kept_things, store._folder = before._kept_things, before._folder
            name = opened.get("name") or opened.setdefault("name", name_of_stream(rows.sparkSession, place))
            version = store._append_micro_batch(rows, name, number)
            if on_changes is not None:
                on_changes(store.changes(since=version - 1), version)

        writer = events.writeStream.foreachBatch(write).option("checkpointLocation", place)
        return (writer.trigger(**trigger) if trigger else writer).start()

    def read(
        self, windows: Sequence[AnyWindow] | None = None, since: Moment | None = None, until: Moment | None = None
    ) -> Any:
        """Compute windows from the panes: those that the store was created for, or any others that these make up.

        It gives the windows that start at or after `since` and before `until`. What has expired is not among them. The
        result is a DataFrame, or for several queries a mapping from names to such.
        """
        manifest = self._load_some()
        plan = self._planned(manifest, windows)
        low, high = self._bounds(manifest, since, until)

        def compute(each: Pass, empty: DataFrame) -> DataFrame:
            reader = self._reader(manifest, each, empty)
            reading = self._reading(manifest, reader.plan, low, high, is_asked=since is not None)
            rows = reader.merged(reader.compiled, reader.given(self._rows(manifest, each, empty, reading)))
            conditions = [*_between(reader, low, high), *self._not_expired(manifest, reader)]
            rows = reduce(DataFrame.where, conditions, rows)
            return apply_post_aggregation(each.query, reader.show(reader.compiled, rows))

        return self._computed(plan, manifest, compute)

    def changes(
        self,
        since: int,
        *,
        windows: Sequence[AnyWindow] | None = None,
        delay: Duration | None = None,
    ) -> Any:
        """Return the rows whose value is new since a version, as upserts by keys, `window_id` and `window_start`.

        Only windows are computed that new events are in. With a `delay`, here or when the store was created, rows say
        in `is_final` whether events went so much further than the window's end, and those come again that have just
        become final. Without one nothing is final, as any event may come.
        """
        manifest = self._load_some()
        if not isinstance(since, int) or not 0 <= since <= manifest.version:
            raise OptionError(f"since {since!r} is none of the versions 0 to {manifest.version} of the store")
        wait = self._delay if delay is None else duration(delay)
        plan = self._planned(manifest, windows)
        self._check_upserts(plan)
        latest, before = manifest.latest, manifest.latest_in(since)

        def compute(each: Pass, empty: DataFrame) -> DataFrame:
            reader = self._reader(manifest, each, empty)
            ranges = self._touched(manifest, reader.plan, since, wait)
            reading = choose_parts(manifest, ranges)
            rows = reader.given(self._rows(manifest, each, empty, reading), dated=True)
            rows = reader.merged(reader.dated, rows)
            is_new = f"{reader.version} > {since}"
            if wait is not None and latest is not None:
                end = reader.on_spark.words.term(reader.dated.show.end)
                is_new += f" OR ({end} <= {latest - wait}L"
                is_new += "" if before is None else f" AND {end} > {before - wait}L"
                is_new += ")"
            rows = reduce(DataFrame.where, [is_new, *self._not_expired(manifest, reader)], rows)
            shown = apply_post_aggregation(each.query, reader.show(reader.dated, rows))
            return _with_finality(shown, latest, wait) if plan.is_single else shown

        found = self._computed(plan, manifest, compute)
        if plan.is_single:
            return found
        for name, rows in found.items():
            found[name] = _with_finality(rows, latest, wait)
        return found

    def explain(
        self, windows: Sequence[AnyWindow] | None = None, since: Moment | None = None, until: Moment | None = None
    ) -> str:
        """Say which panes answer a read, of which resolution, and in how many files they are."""
        manifest = self._load_some()
        plan = self._planned(manifest, windows)
        low, high = self._bounds(manifest, since, until)
        [each] = plan.passes
        reader = self._reader(manifest, each, self._empty(manifest))
        reading = self._reading(manifest, reader.plan, low, high, is_asked=since is not None)
        lines = []
        for number, made in sorted(reach_of(reader.plan, manifest.resolutions).items()):
            parts = reading.compact.get(number, ())
            panes = manifest.resolutions[number].panes.label
            lines.append(f"panes of {panes}: {_amount(parts)} compact")
            lines += [f"  {window.label}" for window in made]
        lines.append(f"appended since the last compaction: {_amount(reading.appended)} of the finest panes")
        return "\n".join(lines)

    def compact(self, *, retain: Duration = "1 hour") -> int:
        """Merge what was appended, build coarser panes, and return the version.

        Files that are no longer read stay for as long as `retain` says, since readers may have begun with them.
        """
        manifest = self._load()
        keep = duration(retain) / 1e6
        if any(not part.is_compact for part in manifest.parts):
            manifest = self._commit(self._compacted(manifest))
        self._folder.clean(manifest, keep)
        return manifest.version

    def expire(self, age: Duration, *, keep: Duration | AnyWindow | None = None, retain: Duration = "1 hour") -> int:
        """Drop panes that start so long before the last event, and return the version.

        Those of `keep`, such as "1 hour", and coarser ones stay, so that their windows can still be read; all others
        can be read from there on only. Without it, nothing that old stays.
        """
        self.compact(retain=retain)
        manifest = self._load_some()
        assert manifest.latest is not None
        cutoff = manifest.latest - duration(age)
        if keep is not None:
            panes: Segmentation = tumbling(keep) if isinstance(keep, str | timedelta) else keep
            manifest = self._with_resolution(manifest, panes)
            gone = [refines(each.panes, panes) and each.panes != panes for each in manifest.resolutions]
        else:
            gone = [True] * len(manifest.resolutions)
        resolutions = tuple(
            replace(each, since=max(cutoff, each.since if each.since is not None else cutoff)) if is_gone else each
            for each, is_gone in zip(manifest.resolutions, gone, strict=True)
        )
        old = {part.path for part in manifest.parts if gone[part.node] and part.last < cutoff}
        current = self._load()
        changed = replace(manifest, resolutions=resolutions, version=current.version).replaced(old, (), time.time())
        manifest = self._commit(changed)
        self._folder.clean(manifest, duration(retain) / 1e6)
        return manifest.version

    def describe(self) -> dict[str, Any]:
        """Describe the store by plain values."""
        manifest = self._load()
        zone = self._zone_of_times(manifest)
        return {
            "location": self.location,
            "format": "parquet",
            "version": manifest.version,
            "queries": [query_document(each) for each in self._queries],
            "delay": None if self._delay is None else readable(self._delay),
            "batches": len(manifest.batches),
            "streams": len(manifest.streams),
            "last_event": None if manifest.latest is None else as_text(manifest.latest, zone),
            "resolutions": [
                {
                    "panes": each.panes.label,
                    "since": None if each.since is None else as_text(each.since, zone),
                    **_sizes([part for part in manifest.parts if part.node == number and part.is_compact]),
                }
                for number, each in enumerate(manifest.resolutions)
            ],
            "appended": _sizes([part for part in manifest.parts if not part.is_compact]),
            **_sizes(manifest.parts),
        }

    # What follows is how it is done.

    def _load(self) -> Manifest:
        self._manifest = self._folder.load(self._manifest)
        return self._manifest

    def _load_some(self) -> Manifest:
        manifest = self._load()
        if manifest.kept is None:
            raise StoreError(f"the store in {self.location} has no events yet; append some first")
        return manifest

    def _commit(self, manifest: Manifest) -> Manifest:
        self._folder.commit(manifest)
        self._manifest = manifest
        return manifest

    def _append_micro_batch(self, rows: DataFrame, name: str, number: int) -> int:
        """Add a micro-batch of a stream, unless it is there; return the version that it made."""

        def is_there(manifest: Manifest) -> int | None:
            last, version = manifest.streams.get(name, (-1, 0))
            return version if number <= last else None

        return self._append(
            rows,
            is_there,
            lambda found: replace(found, streams={**found.streams, name: (number, found.version)}),
        )

    def _append(
        self, events: DataFrame, is_there: Callable[[Manifest], int | None], mark: Callable[[Manifest], Manifest]
    ) -> int:
        for attempt in range(ATTEMPTS):
            manifest = self._load()
            if (version := is_there(manifest)) is not None:
                return version
            following = manifest.version + 1
            writer, own = self._writer(manifest, events)
            chunk = manifest.resolutions[0].chunk
            lifted = writer.lift(own).selectExpr(
                "*", f"{following}L AS {VERSION}", f"({START} - pmod({START}, {chunk}L)) div {chunk}L AS {CHUNK}"
            )
            parts = self._folder.write(lifted, version=following, is_compact=False)
            changed = mark(self._with_kept(manifest, writer, lifted).appended(parts))
            try:
                return self._commit(changed).version
            except StoreConflictError:
                if attempt + 1 == ATTEMPTS:
                    raise
        raise AssertionError

    def _writer(self, manifest: Manifest, events: DataFrame) -> tuple[PaneWriter, DataFrame]:
        """Return what makes panes of events of these types, and the events with the columns it needs."""
        asked = "writer", manifest.kept is None, events.schema.json(), manifest.resolutions[0].panes
        plan = _plan(self._queries, is_single=self._is_single)
        plan = plan if plan.is_single else fit_to_events(plan, events)
        [each] = plan.passes
        own = with_columns(events, each.workload.derived)
        if asked not in self._kept_things:
            self._kept_things[asked] = PaneWriter(each, own, manifest.resolutions[0].panes)
        writer: PaneWriter = self._kept_things[asked]
        self._check_fits(manifest, writer, events)
        return writer, own

    def _check_fits(self, manifest: Manifest, writer: PaneWriter, events: DataFrame) -> None:
        """Refuse events whose types are not those that the store was begun with."""
        if manifest.kept is None:
            return
        kept = Kept.of_document(manifest.kept)
        known = {field.name.lower(): field.dataType for field in kept.events}
        for field in writer.kept.events:
            before = known.get(field.name.lower())
            if before is None or before != field.dataType:
                what = "not there" if before is None else before.simpleString()
                raise StoreError(
                    f"the column {field.name!r} is {field.dataType.simpleString()} in these events, and {what} in "
                    "those that the store was begun with; cast it"
                )
        if writer.kept.states != kept.states or writer.kept.values != kept.values:
            raise StoreError("the states of the store are those of another version of this library; begin a new one")
        zone = events.sparkSession.conf.get("spark.sql.session.timeZone", "")
        if manifest.zone and manifest.zone != zone:
            raise StoreError(
                f"the store was begun in the time zone {manifest.zone}, which its keys, times or values depend on, and "
                f"this session is in {zone}; set spark.sql.session.timeZone"
            )

    def _with_kept(self, manifest: Manifest, writer: PaneWriter, lifted: DataFrame) -> Manifest:
        """Note what rows hold, with the first events; later ones may have nulls where these have none."""
        if manifest.kept is None:
            zone = lifted.sparkSession.conf.get("spark.sql.session.timeZone", "") or ""
            fields = [
                T.StructField(field.name, field.dataType) for field in lifted.schema if field.name not in (NODE, CHUNK)
            ]
            matters = depends_on_zone(writer.on_spark.query, writer.kept)
            return replace(
                manifest,
                kept=writer.kept.document(),
                rows=T.StructType(fields).jsonValue(),
                zone=zone if matters else "",
            )
        kept = Kept.of_document(manifest.kept)
        nullable = {field.name.lower() for field in writer.kept.events if field.nullable}
        if all(field.nullable or field.name.lower() not in nullable for field in kept.events):
            return manifest
        fields = [
            T.StructField(field.name, field.dataType, field.nullable or field.name.lower() in nullable)
            for field in kept.events
        ]
        return replace(manifest, kept=replace(kept, events=T.StructType(fields)).document())

    def _planned(self, manifest: Manifest, windows: Sequence[AnyWindow] | None) -> Plan:
        """Return the queries, with other windows if these are asked for, as one pass."""
        asked = None if windows is None else tuple([windows] if isinstance(windows, _WINDOWS) else windows)
        key = "plan", asked and (asked, tuple(window.name for window in asked)), str(manifest.kept)
        if key not in self._kept_things:
            queries = self._queries
            if asked is not None:
                queries = tuple(replace(each, windows=asked, asked=()) for each in queries)
            plan = _plan(queries, is_single=self._is_single)
            self._kept_things[key] = plan if plan.is_single else fit_to_events(plan, self._empty(manifest))
        found: Plan = self._kept_things[key]
        return found

    def _empty(self, manifest: Manifest) -> DataFrame:
        assert manifest.kept is not None
        return self.spark.createDataFrame([], schema=Kept.of_document(manifest.kept).events)

    def _computed(self, plan: Plan, manifest: Manifest, compute: Callable[[Pass, DataFrame], DataFrame]) -> Any:
        empty = self._empty(manifest)
        return compute(plan.passes[0], empty) if plan.is_single else split_results(plan, empty, compute)

    def _reader(self, manifest: Manifest, each: Pass, empty: DataFrame) -> PaneReader:
        """Return what merges panes into the windows of a pass, of the kinds of panes that are there."""
        assert manifest.kept is not None
        each = _priced(each, manifest)
        numbers = usable(manifest)
        panes = [manifest.resolutions[number].panes for number in numbers]
        since = {
            resolution.panes: float(resolution.since)
            for resolution in manifest.resolutions
            if resolution.since is not None
        }
        model = each.cost_model
        size = (model.keys, model.units) if isinstance(model, SparkCost) else ()
        names = tuple(each.query.window_names)
        asked = "reader", str(manifest.kept), names, each.outputs, tuple(panes), tuple(since.items()), size
        if asked not in self._kept_things:
            plan = plan_panes(each.with_query(each.query.bare), panes, since)
            every = [resolution.panes for resolution in manifest.resolutions]
            self._kept_things[asked] = PaneReader(plan, Kept.of_document(manifest.kept), empty, every)
        found: PaneReader = self._kept_things[asked]
        return found

    def _merger(self, manifest: Manifest, each: Pass, empty: DataFrame, panes: Sequence[Segmentation]) -> PaneMerger:
        assert manifest.kept is not None
        asked = "merger", str(manifest.kept), tuple(panes)
        if asked not in self._kept_things:
            self._kept_things[asked] = PaneMerger(each, Kept.of_document(manifest.kept), empty, panes)
        found: PaneMerger = self._kept_things[asked]
        return found

    def _bounds(self, manifest: Manifest, since: Moment | None, until: Moment | None) -> Range:
        zone = self._zone_of_times(manifest)
        low = -inf if since is None else micros_of("since", since, zone)
        high = inf if until is None else micros_of("until", until, zone)
        if low > high:
            raise OptionError(f"since {since!r} is after until {until!r}")
        return low, high

    def _zone_of_times(self, manifest: Manifest) -> str:
        """Return the time zone that times without one are in; nothing if the events' are local already."""
        if manifest.kept is not None:
            kept = Kept.of_document(manifest.kept)
            kinds = {field.name.lower(): field.dataType for field in kept.events}
            if isinstance(kinds.get(kept.time.strip("`").lower()), T.TimestampNTZType):
                return ""
        return self.spark.conf.get("spark.sql.session.timeZone") or "UTC"

    def _reading(self, manifest: Manifest, plan: Pass, low: float, high: float, *, is_asked: bool) -> Reading:
        ranges = {}
        for number, windows in reach_of(plan, manifest.resolutions).items():
            gone = manifest.resolutions[number].since
            if is_asked and gone is not None and low < gone:
                zone = self._zone_of_times(manifest)
                raise StoreError(
                    f"panes of {manifest.resolutions[number].panes.label} before {as_text(gone, zone)} have expired, "
                    f"so {windows[0].label} cannot be read since {as_text(int(low), zone)}; read it since then, or "
                    "read windows of the panes that are left"
                )
            ranges[number] = ranges_of_starts(windows, low, high)
        return choose_parts(manifest, ranges)

    def _touched(self, manifest: Manifest, plan: Pass, since: int, wait: int | None) -> dict[int, tuple[Range, ...]]:
        """Return when panes start that have a window in common with new ones, or with one that has become final."""
        has_expired = manifest.resolutions[0].since is not None
        new = [part for part in manifest.parts if part.version > since and (has_expired or part.node == 0)]
        touched: list[Range] = [(part.first, part.last + 1) for part in new]
        latest, before = manifest.latest, manifest.latest_in(since)
        if wait is not None and latest is not None:
            touched.append((-inf if before is None else before - wait, latest - wait + 1))
        found = {}
        for number, windows in reach_of(plan, manifest.resolutions).items():
            # What starts in a coarse pane began before it.
            early = manifest.resolutions[number].panes.longest
            found[number] = ranges_around(windows, [(low - early, high) for low, high in touched])
        return found

    def _rows(self, manifest: Manifest, each: Pass, empty: DataFrame, reading: Reading) -> DataFrame:
        """Read panes of all kinds that are needed; what was appended is made into each of them."""
        frames = [
            _restricted(self._panes(manifest, number, parts), reading.ranges[number])
            for number, parts in reading.compact.items()
            if parts
        ]
        if reading.appended:
            rows = _restricted(self._panes(manifest, 0, reading.appended), reading.everywhere)
            if set(reading.ranges) != {0}:
                panes = [resolution.panes for resolution in manifest.resolutions]
                numbers = ", ".join(map(str, reading.ranges))
                rows = self._merger(manifest, each, empty, panes).coarsen(rows).where(f"{NODE} IN ({numbers})")
            frames.append(rows)
        return reduce(DataFrame.unionByName, frames) if frames else self._panes(manifest, 0, ())

    def _panes(self, manifest: Manifest, number: int, parts: Sequence[Part]) -> DataFrame:
        assert manifest.rows is not None
        rows = self._folder.read(self.spark, parts, T.StructType.fromJson(dict(manifest.rows)))
        return rows.selectExpr(f"{number} AS {NODE}", "*")

    def _not_expired(self, manifest: Manifest, reader: PaneReader) -> list[str]:
        """Return the conditions under which an instance is whole, though panes have expired."""
        since: dict[int, int] = {}
        for number, windows in reach_of(reader.plan, manifest.resolutions).items():
            gone = manifest.resolutions[number].since
            if gone is not None:
                own = {window: gone + (window.gap if isinstance(window, Session) else 0) for window in windows}
                since |= {place: own[node.window] for place, node in enumerate(reader.plan.nodes) if node.window in own}
        if not since:
            return []
        names, words = reader.on_spark.names, reader.on_spark.words
        cases = " ".join(f"WHEN {place} THEN {edge}L" for place, edge in since.items())
        start = words.term(reader.compiled.show.start)
        return [f"{start} >= CASE {names.node} {cases} ELSE {start} END"]

    def _compacted(self, manifest: Manifest) -> Manifest:
        """Merge what was appended with what it meets, for every kind of panes."""
        plan = self._planned(manifest, None)
        empty = self._empty(manifest)
        [each] = plan.passes
        panes = [resolution.panes for resolution in manifest.resolutions]
        merger = self._merger(manifest, each, with_columns(empty, each.workload.derived), panes)
        appended = [part for part in manifest.parts if not part.is_compact]
        met = [part for part in manifest.parts if part.is_compact and _is_met(part, manifest, appended)]
        frames = [merger.coarsen(self._panes(manifest, 0, appended))]
        for number in range(len(panes)):
            own = [part for part in met if part.node == number]
            if own:
                frames.append(self._panes(manifest, number, own))
        rows = merger.merge(reduce(DataFrame.unionByName, frames))
        return self._written(manifest, rows, {part.path for part in (*appended, *met)})

    def _written(self, manifest: Manifest, rows: DataFrame, gone: set[str]) -> Manifest:
        """Write rows of panes of several kinds instead of some parts."""
        chunks = " ".join(f"WHEN {number} THEN {each.chunk}L" for number, each in enumerate(manifest.resolutions))
        dated = rows.selectExpr("*", f"CASE {NODE} {chunks} END AS {_LENGTH}")
        expired = [(number, each.since) for number, each in enumerate(manifest.resolutions) if each.since is not None]
        for number, since in expired:
            dated = dated.where(f"{NODE} <> {number} OR {START} >= {since}L")
        cut = dated.selectExpr("*", f"({START} - pmod({START}, {_LENGTH})) div {_LENGTH} AS {CHUNK}").drop(_LENGTH)
        ordered = cut.repartition(NODE, CHUNK).sortWithinPartitions(NODE, CHUNK, START)
        parts = self._folder.write(ordered, version=manifest.version + 1, is_compact=True, per_file=ROWS_PER_FILE)
        kept = replace(manifest, removed=self._folder.still_there(manifest.removed))
        return kept.replaced(gone, parts, time.time())

    def _with_resolution(self, manifest: Manifest, panes: Segmentation) -> Manifest:
        """Return the manifest with panes of one more kind, made of the finest; or as it is, if it has them."""
        if any(each.panes == panes for each in manifest.resolutions):
            return manifest
        first = manifest.resolutions[0]
        if not refines(first.panes, panes):
            raise cannot_make(panes, [first.panes])
        if first.since is not None:
            raise StoreError(
                f"panes of {first.panes.label} have expired, so panes of {panes.label} cannot be made of them any "
                f"more; keep one of {', '.join(each.panes.label for each in manifest.resolutions[1:]) or 'none'}"
            )
        [each] = self._planned(manifest, None).passes
        number = len(manifest.resolutions)
        merger = self._merger(
            manifest, each, with_columns(self._empty(manifest), each.workload.derived), [first.panes, panes]
        )
        finest = self._panes(manifest, 0, [part for part in manifest.parts if part.node == 0])
        made = merger.merge(merger.coarsen(finest)).where(f"{NODE} = 1").withColumn(NODE, F.lit(number))
        more = replace(manifest, resolutions=(*manifest.resolutions, Resolution(panes, chunk_of(panes))))
        written = self._written(more, made, set())
        return self._commit(written)

    def _check_upserts(self, plan: Plan) -> None:
        for query in plan.queries:
            sessions = [window for window in query.windows if isinstance(window, Session)]
            if sessions:
                raise QueryError(
                    f"{sessions[0].label} may merge with its neighbours when late events come, which no upsert can "
                    "tell; name the other windows, changes(since, windows=[...]), and read() sessions"
                )
            if query.having or query.outer:
                raise QueryError(
                    "a condition on results may come to drop a row, which no upsert can tell; create the store without "
                    "it, and apply it to what is read"
                )
            if "window_end" not in query.columns:
                raise QueryError("changes need the column window_end; leave it in the query's output")


_LENGTH = "pane_chunk_length"
_WINDOWS = (Window, Growing, Session)


def _plan(queries: Sequence[Query], *, is_single: bool) -> Plan:
    return plan_request(Request(tuple(queries), Options(search="none"), is_single=is_single, in_one_pass=True))


def _check_functions(query: Query) -> None:
    for each in query.parsed_aggregates:
        if each.kind is Kind.HOLISTIC:
            raise PlanError(f"{each.sql} is made of all events at once, so it has no partial results to keep")


def _priced(each: Pass, manifest: Manifest) -> Pass:
    """Price a pass by how many keys there are in the finest panes, and how much time they span."""
    model, first = each.cost_model, manifest.resolutions[0].panes
    parts = [part for part in manifest.parts if part.node == 0]
    if not isinstance(model, SparkCost) or not parts:
        return each
    span = max(part.last for part in parts) - min(part.first for part in parts) + float(mean_length(first))
    keys = max(1.0, sum(part.rows for part in parts) / (span / float(mean_length(first))))
    # Powers of two, so that a few more events make no other plan.
    keys, units = 2.0 ** round(log2(keys)), 2.0 ** round(log2(span / model.unit))
    rate = model.rate / model.keys * keys
    priced = replace(model, keys=keys, rate=rate, units=units, assumed=False)
    return replace(each, cost_model=priced)


def _between(reader: PaneReader, low: float, high: float) -> list[str]:
    start = reader.on_spark.words.term(reader.compiled.show.start)
    text = condition(f"({start})", ((low, high),))
    return [text] if text else []


def _restricted(rows: DataFrame, ranges: Sequence[Range]) -> DataFrame:
    text = condition(START, ranges)
    return rows.where(text) if text else rows


def _is_met(part: Part, manifest: Manifest, appended: Sequence[Part]) -> bool:
    """Say whether rows that were appended may belong to the stretch of time of a compact part."""
    resolution = manifest.resolutions[part.node]
    low, high = part.chunk * resolution.chunk, (part.chunk + 1) * resolution.chunk
    # A coarse pane starts at most its length before the finest ones in it.
    return any(low < each.last + 1 and each.first - resolution.panes.longest < high for each in appended)


def _with_finality(rows: DataFrame, latest: int | None, wait: int | None) -> DataFrame:
    if wait is None or latest is None:
        return rows.withColumn("is_final", F.lit(False))
    end = microseconds("window_end", rows.schema["window_end"].dataType)
    return rows.withColumn("is_final", F.expr(f"coalesce({end} <= {latest - wait}L, false)"))


def _sizes(parts: Sequence[Part]) -> dict[str, int]:
    return {
        "rows": sum(part.rows for part in parts),
        "files": sum(part.files for part in parts),
        "bytes": sum(part.size for part in parts),
    }


def _amount(parts: Sequence[Part]) -> str:
    sizes = _sizes(parts)
    return f"{sizes['rows']:,} rows in {sizes['files']:,} file{'s' * (sizes['files'] != 1)}"
