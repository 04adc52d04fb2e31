"""Aggregates over many windows of one stream for about the price of one. Importing this starts no JVM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from factor_windows.algebra.window import Window, hopping, tumbling
from factor_windows.errors import (
    AggregateError,
    FactorWindowsError,
    OptionError,
    PlanError,
    QueryError,
    SqlError,
    WindowError,
)
from factor_windows.plan import Plan, SharedPlan
from factor_windows.query import Query
from factor_windows.search import optimize
from factor_windows.sql.parse import parse
from factor_windows.tree import PlanNode

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from factor_windows.cost.statistics import Statistics

__version__ = "0.2.0.dev0"
__all__ = [
    "AggregateError",
    "FactorWindowsError",
    "OptionError",
    "Plan",
    "PlanError",
    "PlanNode",
    "Query",
    "QueryError",
    "SharedPlan",
    "SqlError",
    "Window",
    "WindowError",
    "aggregate",
    "analyze",
    "fan_out",
    "hopping",
    "optimize",
    "parse",
    "split_by_query",
    "sql",
    "tumbling",
    "use_rocksdb",
    "wide",
]


def aggregate(
    events: DataFrame,
    *,
    time: str,
    windows: Sequence[Window],
    aggregates: Sequence[str],
    keys: Sequence[str] = (),
    statistics: Statistics | None = None,
) -> DataFrame:
    """Aggregate a DataFrame over many windows: a query, its plan and its run in one call."""
    query = Query(time=time, keys=keys, windows=windows, aggregates=aggregates)
    result: DataFrame = optimize(query, statistics=statistics).run(events)
    return result


def analyze(
    events: DataFrame,
    *,
    time: str = "",
    keys: Sequence[str] = (),
    sample: float = 0.01,
    queries: Sequence[Query] = (),
) -> Statistics:
    """Measure rate, keys and span of a DataFrame of events from a sample, for `optimize(query, statistics=...)`.

    For several `queries` it also measures how many combinations of keys each has, and what its condition keeps.
    """
    from factor_windows.spark.analyze import analyze as measure

    return measure(events, time=time, keys=keys, sample=sample, queries=queries)


def sql(spark: SparkSession, text: str, *, dialect: str | None = None, time: str | None = None) -> DataFrame:
    """Run a SQL query over many windows, of Spark, Azure Stream Analytics or Flink, on a Spark session."""
    from factor_windows.engines.spark_statement import sql as run

    return run(spark, text, dialect=dialect, time=time)


def split_by_query(batch: DataFrame, *, plan: Plan | None = None) -> dict[str, DataFrame]:
    """Tell the queries of a shared plan's stream apart: in `foreachBatch`, each query's rows with its own columns.

    The queries are known in the process that planned them. Elsewhere, as in `foreachBatch` through Spark Connect, pass
    the `plan`.
    """
    from factor_windows.spark.split_by_query import split_by_query as split

    return split(batch, plan=plan)


def use_rocksdb(spark: SparkSession) -> None:
    """Keep the state of a session's streams in RocksDB: recommended for many keys or long windows."""
    from factor_windows.engines.spark_stream import use_rocksdb as use

    use(spark)


def wide(
    result: DataFrame, *, latest: bool = False, at: datetime | None = None, name: str = "{aggregate}_{window}"
) -> DataFrame:
    """Turn a result into a feature table: a row for each key and `window_end`, a column for each aggregate and window.

    A value is null where a window has no instance that ends then. With `latest` there is one row for each key, with the
    last instance of each window that ended by the time `at`. Instances without events have no row in a result, so a
    window may show an older instance than another. `name` says what the columns are called.
    """
    from factor_windows.spark.wide import wide as widened

    return widened(result, latest=latest, at=at, name=name)


fan_out = split_by_query
"""The name that `split_by_query` had before."""
