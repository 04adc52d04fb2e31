"""A streaming table, and two materialized views of one plan, over files that are there before the pipeline runs.

What is there can be asked about outside of flow functions, so `plan.run` is called there and its results are returned.
"""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

import factor_windows as fw

spark = SparkSession.active()
files = spark.conf.get("temperatures.files")
schema = "ts TIMESTAMP, device BIGINT, temperature DOUBLE"

hourly = fw.Query(
    time="ts",
    keys=["device"],
    windows=[fw.tumbling("1 hour"), fw.tumbling("3 hours")],
    aggregates=["max(temperature) AS high"],
    name="hourly",
)
daily = fw.Query(time="ts", windows=[fw.tumbling("1 day")], aggregates=["count(*) AS n"], name="daily")

closed = fw.optimize(hourly).run(spark.readStream.schema(schema).parquet(files).withWatermark("ts", "1 hour"))
results = fw.optimize([hourly, daily]).run(spark.read.schema(schema).parquet(files))


@dp.table
def closed_windows() -> DataFrame:
    """Windows as they close, appended by a stream whose checkpoint the pipeline keeps."""
    return closed


@dp.materialized_view
def highs() -> DataFrame:
    """The first of two queries that share a pass over the files."""
    return results["hourly"]


@dp.materialized_view
def counts() -> DataFrame:
    """The second."""
    return results["daily"]
