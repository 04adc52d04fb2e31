"""Aggregates over many windows of one stream at about the cost of one. Importing this package starts no JVM."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Literal

from factor_windows.algebra.calendar import AnyWindow, calendar, cumulating
from factor_windows.algebra.session import Session, session
from factor_windows.algebra.window import Window, hopping, tumbling
from factor_windows.errors import (
    AggregateError,
    FactorWindowsError,
    OptionError,
    PlanError,
    QueryError,
    SqlError,
    StoreConflictError,
    StoreError,
    WindowError,
)
from factor_windows.plan import Plan, SharedPlan
from factor_windows.query import Query
from factor_windows.search import optimize
from factor_windows.sql.parse import parse
from factor_windows.tree import PlanNode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from factor_windows.cost.statistics import Statistics
    from factor_windows.engines.spark_stream import use_rocksdb
    from factor_windows.spark.analyze import analyze
    from factor_windows.spark.split_by_query import split_by_query
    from factor_windows.spark.split_by_query import split_by_query as fan_out
    from factor_windows.spark.wide import wide
    from factor_windows.store import Store
    from factor_windows.store.upsert import upsert

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
    "Session",
    "SharedPlan",
    "SqlError",
    "Store",
    "StoreConflictError",
    "StoreError",
    "Window",
    "WindowError",
    "aggregate",
    "analyze",
    "calendar",
    "cumulating",
    "fan_out",
    "hopping",
    "optimize",
    "parse",
    "session",
    "split_by_query",
    "sql",
    "tumbling",
    "upsert",
    "use_rocksdb",
    "wide",
]
_ON_SPARK = {
    "Store": "store",
    "analyze": "spark.analyze",
    "fan_out": "spark.split_by_query",
    "split_by_query": "spark.split_by_query",
    "upsert": "store.upsert",
    "use_rocksdb": "engines.spark_stream",
    "wide": "spark.wide",
}
"""The modules of functions that need Spark; `fan_out` is the former name of `split_by_query`."""


def aggregate(
    events: DataFrame,
    *,
    time: str,
    windows: Sequence[AnyWindow],
    aggregates: Sequence[str],
    keys: Sequence[str] = (),
    statistics: Statistics | Literal["auto"] | None = "auto",
) -> DataFrame:
    """Aggregate a DataFrame over many windows: build the query, plan it and run it in one call.

    By default, the plan is chosen after a quick look at a batch: how many events there are and, if there are many, what
    the first few thousand are like. For exact numbers, pass `statistics` from `analyze`; `None` assumes a dense stream.
    """
    from factor_windows.engines.spark_batch import plan_and_run
    from factor_windows.spark.messages import check_events

    query = Query(time=time, keys=keys, windows=windows, aggregates=aggregates)
    check_events(events)
    if statistics == "auto":
        return plan_and_run(optimize(query), events)
    given: Literal["auto"] | None = None if statistics is None else "auto"
    result: DataFrame = optimize(query, statistics=statistics).run(events, statistics=given)
    return result


def sql(
    spark: SparkSession,
    text: str,
    *,
    dialect: str | None = None,
    time: str | None = None,
    statistics: Literal["auto"] | None = "auto",
) -> DataFrame:
    """Run a SQL query over many windows, written for Spark, Azure Stream Analytics or Flink, on a Spark session.

    The plan is chosen after a quick look at the events, unless `statistics` is `None`.
    """
    from factor_windows.engines.spark_statement import sql as run

    return run(spark, text, dialect=dialect, time=time, looks=statistics == "auto")


def __getattr__(name: str) -> object:
    """Load functions that need PySpark on first use."""
    if name not in _ON_SPARK:
        raise AttributeError(f"module 'factor_windows' has no attribute {name!r}")
    return getattr(import_module(f"factor_windows.{_ON_SPARK[name]}"), "split_by_query" if name == "fan_out" else name)


def __dir__() -> list[str]:
    return [*globals(), *_ON_SPARK]
