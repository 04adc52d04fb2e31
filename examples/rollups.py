"""A year of readings in a store: appended batch by batch, read in windows that nobody had asked for.

For those who compute the same roll-ups of the same year every night. The months until November come as one batch each,
December day by day. One device reports three weeks late, and somebody wants windows that were not planned. All rows are
compared with what a plan over all raw events gives.
"""

import calendar
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame, SparkSession

import factor_windows as fw

JANUARY, DECEMBER, DAY = 1_704_067_200, 1_733_011_200, 86_400
"""The first seconds of both months, in 2024."""


def readings(spark: SparkSession, first: int, last: int, devices: str = "device <> 3") -> DataFrame:
    """Make two readings an hour of five devices."""
    slots = spark.range((last - first) // 1800).selectExpr(f"{first} + id * 1800 AS second")
    each = slots.selectExpr("second", "explode(sequence(0, 4)) AS device").where(devices)
    noise = "pmod(hash(second, device), 100) / 10"
    return each.selectExpr("timestamp_seconds(second) AS ts", "device", f"CAST({noise} AS DOUBLE) AS power")


def main(spark: SparkSession) -> None:
    """Keep a year of panes, read them, take late events, read other windows, and compare with all raw events."""
    query = fw.Query(
        time="ts",
        keys=["device"],
        windows=[fw.tumbling("6 hours"), fw.tumbling("1 day"), fw.hopping("7 days", "1 day")],
        aggregates=["count(*) AS n", "max(power) AS peak"],
    )
    folder = TemporaryDirectory()
    store = fw.Store.create(spark, Path(folder.name) / "power", query, finest="1 hour")
    for month in range(1, 12):
        first, last = (calendar.timegm((2024, month + more, 1, 0, 0, 0)) for more in (0, 1))
        store.append(readings(spark, first, last), batch=f"2024-{month:02d}")
    store.compact()
    for day in range(3):
        first = DECEMBER + day * DAY
        store.append(readings(spark, first, first + DAY), batch=f"2024-12-0{day + 1}")
    # A job that runs twice does no harm.
    store.append(readings(spark, DECEMBER, DECEMBER + DAY), batch="2024-12-01")
    print(store.explain(since="2024-11-25"), "\n")

    before = store.version
    late = readings(spark, DECEMBER - 21 * DAY, DECEMBER, "device = 3")
    store.append(late, batch="device 3, late")
    changed = store.changes(since=before)
    changed.groupBy("window_id", "device").count().orderBy("window_id").show()

    new = [fw.tumbling("2 hours"), fw.calendar("1 month"), fw.hopping("28 days", "7 days")]
    wanted = store.read(windows=new, since="2024-11-01")
    wanted.groupBy("window_id").count().orderBy("window_id").show()

    everything = readings(spark, JANUARY, DECEMBER + 3 * DAY).union(late)
    differing = 0
    for windows in (query.windows, new):
        ours = store.read(windows=windows)
        theirs = fw.aggregate(everything, time="ts", keys=["device"], windows=windows, aggregates=query.aggregates)
        differing += ours.exceptAll(theirs).count() + theirs.exceptAll(ours).count()
    print(f"{store.describe()['rows']:,} rows of panes of {everything.count():,} readings, {differing} rows differ")
    assert differing == 0
    folder.cleanup()


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
