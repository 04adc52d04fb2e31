"""The source: readings of devices, as a table of the pipeline. Put your own in its place."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()


@dp.materialized_view
def readings() -> DataFrame:
    """Three days of readings, one every ten minutes, from three devices in turn."""
    return spark.range(432).selectExpr(
        "timestamp_seconds(1704067200 + id * 600) AS ts",
        "id % 3 AS device",
        "CAST(id * 7 % 31 AS DOUBLE) AS temperature",
    )
