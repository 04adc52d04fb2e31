"""Features: how many payments an account made in the last hour, day and week, and of how much, as one row.

For those who train or feed a model that wants one row per account and time. Prints such rows, as of one hour.
"""

from pyspark.sql import DataFrame, SparkSession

import factor_windows as fw


def payments(spark: SparkSession) -> DataFrame:
    """Make two weeks of payments by six accounts, some much busier than others."""
    return (
        spark.range(14 * 1_440)
        .selectExpr(
            "timestamp_seconds(1704067200 + id * 60) AS ts",
            "concat('account ', CAST(6 - floor(sqrt(pmod(xxhash64(id), 36))) AS int)) AS account",
            "5 + pmod(xxhash64(id, 1), 200) AS amount",
        )
        .where("account <> 'account 6' OR ts < '2024-01-13 00:00:00'")
    )


def main(spark: SparkSession) -> None:
    """Plan, run, and show the rows of one hour."""
    query = fw.Query(
        time="ts",
        keys=["account"],
        windows=[fw.hopping(length, "1h", name=length) for length in ("1h", "24h", "7d")],
        aggregates=["count(*) AS payments", "sum(amount) AS paid"],
    )
    plan = fw.optimize(query, rate=1, unit="1 minute", keys=6)
    features = fw.wide(plan.run(payments(spark))).na.fill(0)

    print(f"{plan.naive_cost / plan.cost:.1f} times cheaper than window by window, by the cost model\n")
    features.where("window_end = '2024-01-14 12:00:00'").drop("window_end").orderBy("account").show()


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
