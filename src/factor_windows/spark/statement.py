"""SQL statements on a Spark session: the window aggregates by plans, the rest by Spark itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from factor_windows.errors import QueryError, SqlError
from factor_windows.query import Query
from factor_windows.search import optimize
from factor_windows.spark.chain import finished
from factor_windows.spark.columns import first_sentence
from factor_windows.spark.naive import naive
from factor_windows.sql.parse import read
from factor_windows.sql.statement import Statement

Compute = Callable[[Query, DataFrame], DataFrame]


def sql(spark: SparkSession, text: str, *, dialect: str | None = None, time: str | None = None) -> DataFrame:
    """Run one statement, with tables looked up in the session."""
    statements = read(text, dialect=dialect, time=time)
    if len(statements) > 1:
        raise SqlError(f"the text has {len(statements)} statements; run them one at a time")
    return run(spark, statements[0])


def run(spark: SparkSession, statement: Statement) -> DataFrame:
    """Run a statement by the best plans of its queries."""
    return _run(spark, statement, lambda query, events: optimize(query).run(events))


def run_naively(spark: SparkSession, statement: Statement) -> DataFrame:
    """Run a statement window by window, as Spark would."""
    return _run(spark, statement, lambda query, events: finished(query, naive(query, events)))


def _run(spark: SparkSession, statement: Statement, compute: Compute) -> DataFrame:
    try:
        results = [compute(query, spark.sql(f"SELECT * FROM {query.source}")) for query in statement.queries]
        if not statement.outer:
            return results[0]
        named: dict[str, Any] = {f"result{number}": result for number, result in enumerate(results)}
        return spark.sql(statement.outer, **named)
    except AnalysisException as mistake:
        raise QueryError(f"Spark cannot run the query: {first_sentence(mistake)}") from None
