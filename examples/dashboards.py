"""Dashboards: requests per service over the last minute, 5 and 15 minutes, hour and day.

For those whose dashboard shows the same numbers at several zoom levels. Prints the plan, and what each window says at
midnight, when the checkout has been slow for ten minutes: the short windows see it, the day does not.
"""

from pyspark.sql import DataFrame, SparkSession

import factor_windows as fw


def requests(spark: SparkSession) -> DataFrame:
    """Make a day of requests, two a second, to three services."""
    return (
        spark.range(2 * 86_400)
        .selectExpr(
            "timestamp_millis(1704067200000 + id * 500) AS ts",
            "element_at(array('cart', 'checkout', 'search'), CAST(1 + pmod(xxhash64(id), 3) AS int)) AS service",
            "20 + pmod(xxhash64(id, 1), 80) AS normal_ms",
        )
        .selectExpr(
            "ts",
            "service",
            "normal_ms + if(service = 'checkout' AND ts >= '2024-01-01 23:50:00', 400, 0) AS ms",
        )
    )


def main(spark: SparkSession) -> None:
    """Plan, run, and show the end of the day."""
    query = fw.Query(
        time="ts",
        keys=["service"],
        windows=[fw.tumbling(length) for length in ("1 minute", "5 minutes", "15 minutes", "1 hour", "1 day")],
        aggregates=["count(*) AS requests", "avg(ms) AS mean_ms", "max(ms) AS slowest_ms"],
    )
    plan = fw.optimize(query, rate=2, unit="1 second", keys=3)
    result = plan.run(requests(spark))

    print(f"{plan.explain()}\n")
    midnight = result.where("window_end = '2024-01-02 00:00:00'")
    ordered = midnight.orderBy("service", "window_start", ascending=[True, False])
    ordered.selectExpr("service", "window_id", "requests", "round(mean_ms, 1) AS mean_ms", "slowest_ms").show()


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
