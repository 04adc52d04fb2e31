"""A session's settings where it reveals them: serverless sessions reveal few, and use Spark's defaults."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from factor_windows.spark.restricted import is_refusal


def setting(spark: SparkSession, name: str, default: str) -> str:
    """Return a setting in lower case; `default` is Spark's own."""
    try:
        return str(spark.conf.get(name, default)).lower()
    except PySparkException as trouble:
        if not is_refusal(trouble):
            raise
        return default


def is_case_sensitive(spark: SparkSession) -> bool:
    """Say whether column names that differ in case are different names."""
    return setting(spark, "spark.sql.caseSensitive", "false") == "true"


def keeps_groups(rows: DataFrame) -> bool:
    """Say whether Spark adds the grouping columns to a result, which a setting decides."""
    return setting(rows.sparkSession, "spark.sql.retainGroupColumns", "true") == "true"


def shuffle_partitions(spark: SparkSession) -> int | None:
    """Return the number of partitions of a shuffle; `None` if Spark decides it (`auto`, on Databricks)."""
    found = setting(spark, "spark.sql.shuffle.partitions", "200")
    return int(found) if found.isdigit() else None
