"""Materialized views over tables of the pipeline.

Flow functions are called before these tables exist, so Spark refuses to tell anything about them. Plans are handed
over as SQL, which Spark reads when the tables are there.
"""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

import factor_windows as fw

spark = SparkSession.active()
plan = fw.optimize(
    fw.Query(
        time="ts",
        keys=["device"],
        windows=[fw.tumbling("1 hour"), fw.hopping("6 hours", "1 hour"), fw.calendar("1 day")],
        aggregates=["min(temperature) AS low", "avg(temperature) AS mean"],
        source="readings",
    )
)


@dp.materialized_view
def temperatures() -> DataFrame:
    """A plan for a query in Python."""
    return spark.sql(plan.sql())


@dp.materialized_view
def peaks() -> DataFrame:
    """A query in SQL; `fw.sql` notices that it may not look at the table."""
    return fw.sql(
        spark,
        """
        SELECT device, window_id, window_end, max(temperature) AS peak
        FROM readings
        GROUP BY device, WINDOWS(ts, '1 hour', '6 hours SLIDE 1 hour', '1 day')
        """,
    )
