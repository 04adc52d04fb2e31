"""Where a store is: a folder of files, or a table of a format with transactions of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from factor_windows.engines.spark_panes import NODE, START
from factor_windows.store.manifest import Manifest, Part

CUT = ("pane_kind", "pane_chunk")
"""The columns that files are cut by: the kind of panes, and the number of a stretch of time."""
Stretch = tuple[int, int]
"""A kind of panes, and the number of a stretch of time."""


class Place(Protocol):
    """What a store needs of the place that it is in: versions that come into being whole, one after the other."""

    format: str

    @property
    def location(self) -> str:
        """Return where it is, as `Store.open` takes it."""

    def create(self, document: dict[str, Any], manifest: Manifest) -> None:
        """Begin a store, unless there is one."""

    def open(self) -> dict[str, Any]:
        """Read what a store was created for."""

    def load(self, known: Manifest | None = None) -> Manifest:
        """Return the newest version; the `known` one, if it still is."""

    def load_version(self, version: int) -> Manifest:
        """Return an earlier version, if it is there."""

    def commit(
        self,
        manifest: Manifest,
        rows: DataFrame | None = None,
        *,
        gone: Collection[Part] = (),
        stretches: Collection[Stretch] = (),
    ) -> Manifest:
        """Make a version the newest, with more rows and without some parts, unless another has come before.

        Where parts are gone, rows are written within `stretches`, of which all that there was is gone.
        """

    def read(self, spark: SparkSession, manifest: Manifest, parts: Iterable[Part], schema: StructType) -> DataFrame:
        """Read parts of a version as one DataFrame."""

    def clean(self, manifest: Manifest, retain: float) -> None:
        """Remove what has not been read for so many seconds."""

    def extent(self, manifest: Manifest) -> dict[str, int]:
        """Return how many files there are, and how large they are."""


def cut(rows: DataFrame, length: str) -> DataFrame:
    """Add the columns that files are cut by, for stretches of time of a length, in SQL."""
    kind, chunk = CUT
    return rows.selectExpr("*", f"{NODE} AS {kind}", f"({START} - pmod({START}, {length})) div {length} AS {chunk}")
