"""Candles: open, high, low, close and volume of every stock over 1, 5 and 15 minutes and an hour.

For those who draw charts of prices at several intervals. Prints the last candle of each interval, and the last three
hours.
"""

from pyspark.sql import DataFrame, SparkSession

import factor_windows as fw


def trades(spark: SparkSession) -> DataFrame:
    """Make six hours of trades in two stocks, each a trade a second, with prices that wander up and down."""
    return spark.range(6 * 3_600 * 2).selectExpr(
        "timestamp_seconds(1704186000 + id DIV 2) AS ts",
        "if(id % 2 = 0, 'ACME', 'INIT') AS stock",
        """CAST(100 + 50 * (id % 2) + abs(id % 16000 - 8000) / 1000 + pmod(xxhash64(id), 200) / 100
            AS decimal(10, 2)) AS price""",
        "1 + pmod(xxhash64(id, 1), 9) AS shares",
    )


def main(spark: SparkSession) -> None:
    """Plan, run, and show some candles."""
    query = fw.Query(
        time="ts",
        keys=["stock"],
        windows=[fw.tumbling(length) for length in ("1 minute", "5 minutes", "15 minutes", "1 hour")],
        aggregates=[
            "min_by(price, ts) AS open",
            "max(price) AS high",
            "min(price) AS low",
            "max_by(price, ts) AS close",
            "sum(shares) AS volume",
        ],
    )
    plan = fw.optimize(query, rate=2, unit="1 second", keys=2)
    candles = plan.run(trades(spark)).cache()

    print(f"{plan.naive_cost / plan.cost:.1f} times cheaper than window by window, by the cost model\n")
    last = candles.where("window_end = '2024-01-02 15:00:00'").orderBy("stock", "window_start", ascending=[True, False])
    last.drop("window_start", "window_end").show()
    hours = candles.where("window_id = '1 hour' AND stock = 'ACME' AND window_start >= '2024-01-02 12:00:00'")
    hours.drop("stock", "window_id", "window_end").orderBy("window_start").show()


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
