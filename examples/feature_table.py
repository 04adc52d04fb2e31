"""A feature table: what a machine did in the day, the week and the month before each inspection, and what was found.

For those who train a model on labels, which have times of their own. Prints the rows that a model is trained with.
"""

from pyspark.sql import DataFrame, SparkSession

import factor_windows as fw


def readings(spark: SparkSession) -> DataFrame:
    """Make 60 days of readings of three machines every ten minutes; the press runs hot from 20 February on."""
    return spark.range(60 * 144 * 3).selectExpr(
        "timestamp_seconds(1704067200 + id DIV 3 * 600) AS ts",
        "element_at(array('lathe', 'mill', 'press'), CAST(id % 3 + 1 AS int)) AS machine",
        "60 + pmod(xxhash64(id), 10) + CASE WHEN id % 3 = 2 AND id >= 21600 THEN 15 ELSE 0 END AS celsius",
    )


def inspections(spark: SparkSession) -> DataFrame:
    """Make five inspections: which machine, when, and whether it was found worn. One has no readings yet."""
    return spark.sql("""
        SELECT machine, CAST(at AS timestamp) AS at, worn FROM VALUES
            ('lathe', '2024-01-01 12:05:00', false), ('mill', '2024-02-22 08:30:00', false),
            ('press', '2024-02-20 00:00:00', false), ('press', '2024-02-22 08:30:00', true),
            ('drill', '2024-02-22 09:00:00', false) AS found(machine, at, worn)
    """)


def main(spark: SparkSession) -> None:
    """Plan, compute the windows that end at each inspection, and show them as a table."""
    query = fw.Query(
        time="ts",
        keys=["machine"],
        windows=[fw.tumbling(length, name=length) for length in ("1d", "7d", "30d")],
        aggregates=["count(*) AS readings", "round(avg(celsius), 1) AS mean"],
    )
    plan = fw.optimize(query)
    features = fw.wide(plan.at(inspections(spark), readings(spark)))

    features.drop("window_end").orderBy("at", "machine").show()


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
