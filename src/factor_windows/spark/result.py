"""A result: what the query does after its aggregates, and what is noted on its columns."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factor_windows.query import Query

WINDOW_NAMES = "factor_windows.windows"
"""Where a result notes, on its `window_id`, the names of its windows."""


def apply_post_aggregation(query: Query, result: DataFrame) -> DataFrame:
    """Do what the query does after its aggregates."""
    if query.kept:
        result = result.where(query.kept)
    if query.parsed_output:
        result = result.select(*(F.expr(column.sql).alias(column.name) for column in query.parsed_output))
    return result.sparkSession.sql(query.outer, result=result) if query.outer else result


def keeps_groups(rows: DataFrame) -> bool:
    """Say whether Spark adds the columns that rows are grouped by to a result, as a setting has it."""
    return rows.sparkSession.conf.get("spark.sql.retainGroupColumns", "true") == "true"
