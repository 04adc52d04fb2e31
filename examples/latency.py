"""Latency: the median and the 95th percentile of every service's answers, exact, over five windows.

For those who keep promises about percentiles: they cannot be averaged, but they follow from how often each
millisecond occurs. Prints a service's latest value for each window.
"""

from pyspark.sql import DataFrame, SparkSession

import factor_windows as fw


def answers(spark: SparkSession) -> DataFrame:
    """Make a day of answers of two services, in whole milliseconds; search is slow in the last ten minutes."""
    return spark.range(86_400).selectExpr(
        "timestamp_seconds(1704067200 + id) AS ts",
        "element_at(array('cart', 'search'), CAST(1 + pmod(xxhash64(id), 2) AS INT)) AS service",
        """CAST(20 + pmod(xxhash64(id, 1), 40) + CASE
            WHEN pmod(xxhash64(id, 2), 100) < 4 THEN 300
            WHEN id >= 85800 AND pmod(xxhash64(id), 2) = 1 THEN 150
            ELSE 0
        END AS INT) AS ms""",
    )


def main(spark: SparkSession) -> None:
    """Plan, run, and show the latest windows."""
    query = fw.Query(
        time="ts",
        keys=["service"],
        windows=[fw.tumbling(length) for length in ("1 minute", "5 minutes", "10 minutes", "1 hour", "1 day")],
        aggregates=[
            "median(ms) AS p50",
            "percentile(ms, 0.95) AS p95",
            "count(DISTINCT ms) AS values",
            "avg(ms) AS mean",
        ],
    )
    plan = fw.optimize(query, rate=1, unit="1 second", keys=2, values=80)
    result = plan.run(answers(spark))

    print(f"{plan.explain()}\n")
    midnight = result.where("window_end = '2024-01-02 00:00:00'")
    ordered = midnight.orderBy("service", "window_start", ascending=[True, False])
    ordered.selectExpr("service", "window_id", "p50", "round(p95, 1) AS p95", "values", "round(mean, 1) AS mean").show()


if __name__ == "__main__":
    session = (
        SparkSession.builder.master("local[*]")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", 4)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    main(session)
    session.stop()
