"""The place of a store: a folder of files, or a table in a format with its own transactions."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from factor_windows.engines.spark_panes import NODE, START
from factor_windows.store.manifest import Manifest, Part

CUT = ("pane_kind", "pane_chunk")
"""The columns by which files are split: the kind of panes, and the number of a stretch of time."""
Stretch = tuple[int, int]
"""A kind of panes, and the number of a stretch of time."""


class Place(Protocol):
    """What a store needs from its place: versions that appear as a whole, one after the other."""

    format: str

    @property
    def location(self) -> str:
        """Return the location, as `Store.open` takes it."""

    def create(self, document: dict[str, Any], manifest: Manifest) -> None:
        """Create a store, unless there is one."""

    def open(self) -> dict[str, Any]:
        """Read what a store was created for."""

    def load(self, known: Manifest | None = None) -> Manifest:
        """Return the latest version: the `known` one, if it still is."""

    def load_version(self, version: int) -> Manifest:
        """Return an earlier version, if it still exists."""

    def commit(
        self,
        manifest: Manifest,
        rows: DataFrame | None = None,
        *,
        gone: Collection[Part] = (),
        stretches: Collection[Stretch] = (),
    ) -> Manifest:
        """Make a version the latest, with more rows and without some parts, unless another one was committed before.

        If parts are removed, rows are written within `stretches`, all of whose old rows are removed.
        """

    def read(self, spark: SparkSession, manifest: Manifest, parts: Iterable[Part], schema: StructType) -> DataFrame:
        """Read parts of a version as one DataFrame."""

    def clean(self, manifest: Manifest, retain: float) -> None:
        """Remove what has not been read for this many seconds."""

    def extent(self, manifest: Manifest) -> dict[str, int]:
        """Return the number of files and their total size."""


def cut(rows: DataFrame, length: str) -> DataFrame:
    """Add the columns by which files are split, for stretches of time of this length, in SQL."""
    kind, chunk = CUT
    return rows.selectExpr("*", f"{NODE} AS {kind}", f"({START} - pmod({START}, {length})) div {length} AS {chunk}")
