"""Visits to a shop: sessions of two gaps, hours and days in one plan.

For those who ask how long people stay and what a visit brings, beside the usual numbers per hour. A visit ends after
half an hour without a click, a look at a product after two minutes. All rows are compared with what Spark's own
session_window and window give.
"""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import factor_windows as fw


def clicks(spark: SparkSession) -> DataFrame:
    """Make 300 customers who come a few times a day and click every few seconds while they are there."""
    visits = spark.range(300).selectExpr("id AS customer", "explode(sequence(0, id % 5)) AS visit")
    came = "1717200000 + pmod(hash(customer, visit), 86400)"
    steps = "explode(sequence(0, 5 + pmod(hash(visit, customer), 60)))"
    each = visits.selectExpr("customer", f"{came} AS came", f"{steps} AS step")
    wait = "step * 7 + CASE WHEN step > 20 THEN 300 ELSE 0 END"
    return each.selectExpr("customer", f"timestamp_seconds(came + {wait}) AS ts", "pmod(hash(came, step), 40) AS euros")


def main(spark: SparkSession) -> None:
    """Plan, run, show what a visit is like, and compare with Spark's own."""
    query = fw.Query(
        time="ts",
        keys=["customer"],
        windows=[
            fw.session("2 minutes", name="look"),
            fw.session("30 minutes", name="visit"),
            fw.tumbling("1 hour"),
            fw.tumbling("1 day"),
        ],
        aggregates=["count(*) AS clicks", "sum(euros) AS euros"],
    )
    plan = fw.optimize(query, rate=0.3, unit="1 second", keys=300)
    events = clicks(spark)
    result = plan.run(events).cache()
    print(plan.explain(), "\n")

    minutes = "round(avg(timestampdiff(SECOND, window_start, window_end)) / 60, 1)"
    columns = {
        "rows": "count(*)",
        "minutes": minutes,
        "clicks": "round(avg(clicks), 1)",
        "euros": "round(avg(euros), 1)",
    }
    shown = result.groupBy("window_id").agg(*(F.expr(text).alias(name) for name, text in columns.items()))
    shown.orderBy("rows", ascending=False).show(truncate=False)

    windows = {
        "look": F.session_window("ts", "2 minutes"),
        "visit": F.session_window("ts", "30 minutes"),
        "1 hour": F.window("ts", "1 hour"),
        "1 day": F.window("ts", "1 day"),
    }
    differing = 0
    for name, window in windows.items():
        own = events.groupBy("customer", window.alias("w")).agg(
            F.count("*").alias("clicks"), F.sum("euros").alias("euros")
        )
        own = own.select("customer", F.lit(name), "w.start", "w.end", "clicks", "euros")
        ours = result.where(F.col("window_id") == name)
        differing += ours.exceptAll(own).count() + own.exceptAll(ours).count()
    print(f"{result.count()} rows, {differing} differ from Spark's own")
    assert differing == 0


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
