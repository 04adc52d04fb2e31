"""Burn rates: how fast a service uses up its error budget, over 5 minutes to 3 days, and whom to wake for it.

For those who promise 99.9 % of good answers and alert on several windows at once: the long one says that it matters,
the short one that it still goes on. Prints which alerts fire on the fourth day, when all windows are full.
"""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import factor_windows as fw

BUDGET = 0.001
RULES = [
    ("page", "1h", "5m", 14.4),
    ("page", "6h", "30m", 6.0),
    ("ticket", "1d", "1h", 3.0),
    ("ticket", "3d", "6h", 1.0),
]
"""What to do when both windows burn the budget so many times faster than it lasts for."""


def requests(spark: SparkSession) -> DataFrame:
    """Make four days of requests; on the fourth, checkout has an outage, and search gets a little worse."""
    return (
        spark.range(4 * 86_400 * 2)
        .selectExpr(
            "timestamp_seconds(1704067200 + id DIV 2) AS ts",
            "if(id % 2 = 0, 'checkout', 'search') AS service",
            "pmod(xxhash64(id), 100000) / 100000 AS luck",
        )
        .selectExpr(
            "ts",
            "service",
            """luck < CASE
                WHEN service = 'checkout' AND ts BETWEEN '2024-01-04 14:00:00' AND '2024-01-04 14:29:59' THEN 0.1
                WHEN service = 'search' AND ts >= '2024-01-04 06:00:00' THEN 0.005
                ELSE 0.0004
            END AS failed""",
        )
    )


def main(spark: SparkSession) -> None:
    """Plan, run, and say which alerts fire."""
    query = fw.Query(
        time="ts",
        keys=["service"],
        windows=[fw.hopping(length, "5m", name=length) for length in ("5m", "30m", "1h", "6h", "1d", "3d")],
        aggregates=["count(*) AS requests", "count_if(failed) AS errors"],
    )
    plan = fw.optimize(query, rate=2, unit="1 second", keys=2)
    result = plan.run(requests(spark))

    burn = f"errors / requests / {BUDGET} AS burn"
    burns = fw.wide(result.selectExpr("service", "window_id", "window_start", "window_end", burn))
    fired = [
        F.when(
            (F.col(f"burn_{long}") > times) & (F.col(f"burn_{short}") > times),
            F.lit(f"{what}: {times} times over {long} and {short}"),
        )
        for what, long, short, times in RULES
    ]
    fourth_day = burns.where("window_end > '2024-01-04 00:00:00' AND window_end <= '2024-01-05 00:00:00'")
    alerts = fourth_day.select("service", "window_end", F.explode(F.array_compact(F.array(*fired))).alias("alert"))
    spans = alerts.groupBy("service", "alert").agg(
        F.expr("min(window_end) AS `from`"), F.expr("max(window_end) AS until")
    )

    print(f"{plan.naive_cost / plan.cost:.1f} times cheaper than window by window, by the cost model\n")
    spans.orderBy("service", "from", "alert").show(truncate=False)


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
