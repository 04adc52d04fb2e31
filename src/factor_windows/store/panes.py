"""The panes of a store on Spark: the contents of its place, and their readers and writers, each made only once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from math import log2
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from factor_windows.algebra.calendar import AnyWindow
from factor_windows.algebra.growing import Growing
from factor_windows.algebra.session import Session
from factor_windows.algebra.slices import Segmentation, mean_length
from factor_windows.algebra.window import Window
from factor_windows.cost.model import CostModel
from factor_windows.cost.spark import SparkCost
from factor_windows.engines.spark_columns import with_columns
from factor_windows.engines.spark_panes import Kept, PaneMerger, PaneReader, PaneWriter
from factor_windows.engines.spark_queries import fit_to_events, split_results
from factor_windows.errors import OptionError, StoreError
from factor_windows.plan import Plan
from factor_windows.query import Query
from factor_windows.request import Options, Request
from factor_windows.search.plan_panes import plan_panes
from factor_windows.search.plan_request import plan_request
from factor_windows.store.manifest import Manifest, Part
from factor_windows.store.place import Place, Stretch
from factor_windows.store.reading import usable
from factor_windows.tree import Pass

Made = TypeVar("Made")


class StoredPanes:
    """The panes of one store, for the queries that it was created for."""

    def __init__(self, spark: SparkSession, place: Place, queries: Sequence[Query], *, is_single: bool) -> None:
        self.spark, self.place = spark, place
        self.queries, self.is_single = tuple(queries), is_single
        self._manifest: Manifest | None = None
        self._made: dict[Any, Any] = {}

    def load(self) -> Manifest:
        """Return the latest version."""
        self._manifest = self.place.load(self._manifest)
        return self._manifest

    def load_some(self, version: int | None = None) -> Manifest:
        """Return the latest version of a store that has events, or an earlier one."""
        manifest = self.load() if version is None else self.place.load_version(version)
        if manifest.kept is None:
            raise StoreError(f"the store in {self.place.location} has no events yet; append some first")
        return manifest

    def commit(
        self,
        manifest: Manifest,
        rows: DataFrame | None = None,
        *,
        gone: Collection[Part] = (),
        stretches: Collection[Stretch] = (),
    ) -> Manifest:
        """Make a version the latest."""
        self._manifest = self.place.commit(manifest, rows, gone=gone, stretches=stretches)
        return self._manifest

    def planned(self, manifest: Manifest, windows: Sequence[AnyWindow] | None = None) -> Plan:
        """Return the queries, with other windows if requested, as one pass over the events."""
        asked: tuple[AnyWindow, ...] | None = None
        if windows is not None:
            several = [windows] if isinstance(windows, _ANY_WINDOW) or not isinstance(windows, Iterable) else windows
            asked = tuple(several)
            if not all(isinstance(window, _ANY_WINDOW) for window in asked):
                raise OptionError(f"windows {windows!r} are not windows; fw.tumbling('1 hour') makes one")

        def make() -> Plan:
            queries = self.queries
            if asked is not None:
                queries = tuple(replace(each, windows=asked, asked=()) for each in queries)
            plan = plan_queries(queries, is_single=self.is_single)
            return plan if plan.is_single else fit_to_events(plan, self.empty(manifest))

        return self._once(("plan", asked and (asked, tuple(window.name for window in asked)), _held(manifest)), make)

    def empty(self, manifest: Manifest) -> DataFrame:
        """Return a DataFrame with the columns of events, but without rows."""
        return self._once(
            ("empty", _held(manifest)), lambda: self.spark.createDataFrame([], schema=kept_in(manifest).events)
        )

    def computed(self, plan: Plan, manifest: Manifest, compute: Callable[[Pass, DataFrame], DataFrame]) -> Any:
        """Compute the pass of a plan, and split the results of several queries."""
        empty = self.empty(manifest)
        return compute(plan.passes[0], empty) if plan.is_single else split_results(plan, empty, compute)

    def writer(self, manifest: Manifest, events: DataFrame) -> tuple[PaneWriter, DataFrame]:
        """Return the writer of panes for events of these types, and the events with the columns that it needs."""
        panes = manifest.resolutions[0].panes
        plan = self._once("plan to write", lambda: plan_queries(self.queries, is_single=self.is_single))
        plan = plan if plan.is_single else fit_to_events(plan, events)
        [each] = plan.passes
        own = with_columns(events, each.workload.derived)
        return self._once(("writer", events.schema.json(), panes), lambda: PaneWriter(each, own, panes)), own

    def reader(self, manifest: Manifest, each: Pass, empty: DataFrame) -> PaneReader:
        """Return the reader that merges the existing kinds of panes into the windows of a pass."""
        panes = [manifest.resolutions[number].panes for number in usable(manifest)]
        every = [resolution.panes for resolution in manifest.resolutions]
        since = {each.panes: float(each.since) for each in manifest.resolutions if each.since is not None}

        def make() -> PaneReader:
            plan = plan_panes(each.with_query(each.query.bare), panes, since)
            return PaneReader(plan, kept_in(manifest), empty, every)

        asked = each.query.window_names, each.outputs
        return self._once(("reader", _held(manifest), asked, tuple(panes), tuple(since.items())), make)

    def merger(self, manifest: Manifest, panes: Sequence[Segmentation]) -> PaneMerger:
        """Return the merger that makes coarser panes from the finest."""

        def make() -> PaneMerger:
            [each] = self.planned(manifest).passes
            empty = with_columns(self.empty(manifest), each.workload.derived)
            return PaneMerger(each, kept_in(manifest), empty, panes)

        return self._once(("merger", _held(manifest), tuple(panes)), make)

    def rows(self, manifest: Manifest, parts: Sequence[Part]) -> DataFrame:
        """Read parts as rows of panes."""
        return self.place.read(self.spark, manifest, parts, columns_of(manifest))

    def _once(self, key: Any, make: Callable[[], Made]) -> Made:
        if key not in self._made:
            self._made[key] = make()
        made: Made = self._made[key]
        return made


_ANY_WINDOW = (Window, Growing, Session)


def plan_queries(queries: Sequence[Query], *, is_single: bool) -> Plan:
    """Plan queries in one pass over the events, each window on its own; its panes are chosen later."""
    options = Options(search="none")
    return plan_request(Request(tuple(queries), options, is_single=is_single, in_one_pass=True))


def kept_in(manifest: Manifest) -> Kept:
    """Return the contents of a store's rows."""
    assert manifest.kept is not None
    return Kept.of_document(manifest.kept)


def columns_of(manifest: Manifest) -> T.StructType:
    """Return the columns of a store's rows, with their types."""
    assert manifest.rows is not None
    return T.StructType.fromJson(dict(manifest.rows))


def priced(plan: Pass, rows: float, span: float, finest: Segmentation) -> CostModel:
    """Return the costs of a pass from the number of rows of the finest panes and the time that they span."""
    model, length = plan.cost_model, float(mean_length(finest))
    if not isinstance(model, SparkCost):
        return model
    # Powers of two, so that a few more events do not make another plan.
    keys = 2.0 ** round(log2(max(1.0, rows * length / max(span, length))))
    units = 2.0 ** round(log2(max(1.0, span / model.unit)))
    return replace(model, keys=keys, rate=model.rate / model.keys * keys, units=units, assumed=False)


def _held(manifest: Manifest) -> str:
    return str(manifest.kept)


def sizes(parts: Sequence[Part]) -> dict[str, int]:
    """Add up the sizes of parts."""
    return {
        "rows": sum(part.rows for part in parts),
        "files": sum(part.files for part in parts),
        "bytes": sum(part.size for part in parts),
    }
