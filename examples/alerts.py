"""Alerts: pumps whose last minute is unlike their last hour, and pumps that fall silent.

For those who watch machines and compare a short window with a long one. Prints every minute that is out of the
ordinary, beside what is usual.
"""

from pyspark.sql import DataFrame, SparkSession

import factor_windows as fw


def readings(spark: SparkSession) -> DataFrame:
    """Make six hours of temperatures of three pumps: one runs hot for three minutes, one is silent for two."""
    return (
        spark.range(3 * 6 * 1_800)
        .selectExpr(
            "timestamp_seconds(1704067200 + 2 * (id DIV 3)) AS ts",
            "concat('pump ', 1 + id % 3) AS pump",
            "60 + pmod(xxhash64(id), 2000) / 1000 AS celsius",
        )
        .where("NOT (pump = 'pump 3' AND ts BETWEEN '2024-01-01 04:00:00' AND '2024-01-01 04:01:59')")
        .selectExpr(
            "ts",
            "pump",
            """celsius + CASE
                WHEN pump = 'pump 2' AND ts BETWEEN '2024-01-01 03:10:00' AND '2024-01-01 03:12:59' THEN 8
                ELSE 0
            END AS celsius""",
        )
    )


def main(spark: SparkSession) -> None:
    """Plan, run, and show what is out of the ordinary."""
    query = fw.Query(
        time="ts",
        keys=["pump"],
        windows=[fw.tumbling("1 minute", name="now"), fw.hopping("1 hour", "1 minute", name="usual")],
        aggregates=["count(*) AS readings", "avg(celsius) AS mean", "stddev(celsius) AS spread"],
    )
    plan = fw.optimize(query, rate=1.5, unit="1 second", keys=3)
    minutes = fw.wide(plan.run(readings(spark)))
    whole = minutes.where("readings_usual > 1700 AND window_end <= '2024-01-01 06:00:00'")
    alerts = whole.where("mean_now IS NULL OR abs(mean_now - mean_usual) > 3 * spread_usual")

    print(f"{plan.naive_cost / plan.cost:.1f} times cheaper than window by window, by the cost model\n")
    alerts.orderBy("window_end", "pump").selectExpr(
        "pump",
        "window_end AS minute_until",
        "round(mean_now, 1) AS now",
        "round(mean_usual, 1) AS usual",
        "if(mean_now IS NULL, 'silent', 'unusual') AS what",
    ).show()


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
