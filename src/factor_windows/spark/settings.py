"""What the settings of a session are, where it tells them: serverless sessions tell few, and have Spark's defaults."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from factor_windows.spark.restricted import is_refusal


def setting(spark: SparkSession, name: str, default: str) -> str:
    """Return a setting, in small letters; `default` is Spark's own."""
    try:
        return str(spark.conf.get(name, default)).lower()
    except PySparkException as trouble:
        if not is_refusal(trouble):
            raise
        return default


def is_case_sensitive(spark: SparkSession) -> bool:
    """Say whether names of columns that differ in case are different names."""
    return setting(spark, "spark.sql.caseSensitive", "false") == "true"


def keeps_groups(rows: DataFrame) -> bool:
    """Say whether Spark adds the columns that rows are grouped by to a result, as a setting has it."""
    return setting(rows.sparkSession, "spark.sql.retainGroupColumns", "true") == "true"


def shuffle_partitions(spark: SparkSession) -> int | None:
    """Return how many partitions a shuffle makes; nothing if Spark decides that (`auto`, on Databricks)."""
    found = setting(spark, "spark.sql.shuffle.partitions", "200")
    return int(found) if found.isdigit() else None
