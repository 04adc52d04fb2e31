"""Engines that a user would choose instead, each with the query as its users write it, and ours rewritten for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.experiments import Case
from factor_windows.algebra.window import Window
from factor_windows.plan import Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PEERS = ("duckdb", "duckdb rewritten", "polars")
COLUMNS = "device, window_id, window_start, window_end, value"


@dataclass(frozen=True, slots=True)
class Peers:
    """DuckDB and Polars over the Parquet files of one stream."""

    case: Case
    folder: Path
    plan: Plan

    @property
    def contenders(self) -> dict[str, Callable[[], None]]:
        """Return functions that compute the case in each engine, including all rows."""
        return {
            "duckdb": lambda: self._consume(self.union()),
            "duckdb rewritten": lambda: self._consume(self.rewritten()),
            "polars": self._collect,
        }

    def union(self) -> str:
        """Write the query for DuckDB as its users do: a time bucket for each window, and a union."""
        return " UNION ALL ".join(map(self._select, self.case.windows))

    def _select(self, window: Window) -> str:
        slide, count = f"INTERVAL {window.slide} MICROSECONDS", window.range // window.slide
        start = f"time_bucket({slide}, ts, TIMESTAMP '1970-01-01')" + (f" - n * {slide}" if count > 1 else "")
        copies = f", range({count}) AS copies(n)" if count > 1 else ""
        return (
            f"SELECT device, '{window.name}' AS window_id, {start} AS window_start, "
            f"window_start + INTERVAL {window.range} MICROSECONDS AS window_end, {self.case.function}(v) AS value "
            f"FROM events{copies} GROUP BY ALL"
        )

    def rewritten(self) -> str:
        """Write our plan for DuckDB."""
        return self.plan.sql(dialect="duckdb")

    def polars(self) -> Any:
        """Compute the query with Polars as its users do: a group for each window, and a concatenation."""
        import polars as pl

        events = pl.scan_parquet(self.folder / "*.parquet").with_columns(pl.col("ts").cast(pl.Datetime("us")))
        value = getattr(pl.col("v"), self.case.function)().alias("value")
        parts = []
        for window in self.case.windows:
            slide, count = f"{window.slide}us", window.range // window.slide
            grouped = events
            start = pl.col("ts").dt.truncate(slide)
            if count > 1:
                grouped = events.with_columns(n=pl.lit(list(range(count)))).explode("n")
                start -= pl.col("n") * pl.duration(microseconds=window.slide)
            grouped = grouped.group_by("device", start.alias("window_start")).agg(value)
            parts.append(
                grouped.select(
                    "device",
                    pl.lit(window.name).alias("window_id"),
                    "window_start",
                    (pl.col("window_start") + pl.duration(microseconds=window.range)).alias("window_end"),
                    "value",
                )
            )
        return pl.concat(parts).collect(engine="streaming")

    def differing(self, right: DataFrame) -> list[str]:
        """Name the engines whose rows are not exactly these, which Spark computed."""
        expected = self.folder.with_name(self.folder.name + "-expected")
        right.toDF(*COLUMNS.split(", ")).write.mode("overwrite").parquet(str(expected))
        polars = self.folder.with_name(self.folder.name + "-polars.parquet")
        self.polars().write_parquet(polars)
        sources = {
            "duckdb": self.union(),
            "duckdb rewritten": self.rewritten(),
            "polars": f"SELECT * FROM '{polars}'",
        }
        wrong = []
        for name, source in sources.items():
            cast = "device, window_id, window_start::TIMESTAMP, window_end::TIMESTAMP, value"
            rows = f"SELECT {cast} FROM ({source}) AS rows({COLUMNS})"
            wanted = f"SELECT {cast} FROM '{expected}/*.parquet'"
            query = f"SELECT count(*) FROM (({rows} EXCEPT ALL {wanted}) UNION ALL ({wanted} EXCEPT ALL {rows}))"
            if self._connection().execute(query).fetchall() != [(0,)]:
                wrong.append(name)
        return wrong

    def _collect(self) -> None:
        self.polars()

    def _consume(self, query: str) -> None:
        """Compute all rows, and hash them."""
        connection = self._connection()
        connection.execute(f"SELECT count(*), bit_xor(hash(rows)) FROM ({query}) AS rows").fetchall()

    def _connection(self) -> Any:
        import duckdb

        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"CREATE VIEW events AS SELECT * FROM '{self.folder}/*.parquet'")
        return connection


def peers_of(case: Case, folder: Path, plans: Mapping[str, Plan]) -> Peers:
    """Return the peers for a case, with the best plan to rewrite."""
    return Peers(case, folder, plans["best"])
