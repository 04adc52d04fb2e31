"""A shop's own calendar: sales by its local days, ISO weeks, months, fiscal year, and the month so far.

For those whose days are not UTC's. The shop is in Berlin and its till rings once a minute, all year round, so that each
count is a number of minutes: the days on which clocks change have 23 and 25 hours of them. All counts are compared with
what Python's zoneinfo says about the same year.
"""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from pyspark.sql import DataFrame, SparkSession

import factor_windows as fw

ZONE = "Europe/Berlin"


def sales(spark: SparkSession) -> DataFrame:
    """Make a sale of one to five euros every minute, from April 2024 to the end of March 2025, local time."""
    first, last = (datetime(year, 4, 1, tzinfo=ZoneInfo(ZONE)) for year in (2024, 2025))
    minutes = counted_by_hand(first, last)
    begin = int(first.timestamp())
    return spark.range(minutes).selectExpr(f"timestamp_seconds({begin} + id * 60) AS ts", "1 + id % 5 AS euros")


def counted_by_hand(start: datetime, end: datetime) -> int:
    """Count the minutes between two local midnights, as instants."""
    return int((end.astimezone(UTC) - start.astimezone(UTC)).total_seconds()) // 60


def main(spark: SparkSession) -> None:
    """Plan, run, show the days that are unlike others, and compare all days with zoneinfo."""
    query = fw.Query(
        time="ts",
        windows=[
            fw.calendar("1 day", zone="Europe/Berlin", name="day"),
            fw.calendar("1 week", zone="Europe/Berlin", name="ISO week"),
            fw.calendar("1 month", zone="Europe/Berlin", name="month"),
            fw.calendar("1 month", zone="Europe/Berlin", step="1 day", name="month to date"),
            fw.calendar("1 year", zone="Europe/Berlin", origin="2024-04-01", name="fiscal year"),
        ],
        aggregates=["count(*) AS sales", "sum(euros) AS euros"],
    )
    plan = fw.optimize(query, rate=1, unit="1 minute")
    result = plan.run(sales(spark)).cache()
    print(plan.explain(), "\n")

    local = [
        f"date(from_utc_timestamp(window_{end}, '{ZONE}')) AS {name}"
        for end, name in (("start", "starts"), ("end", "ends"))
    ]
    shown = result.selectExpr("window_id", *local, "sales", "euros")
    odd = "(window_id = 'day' AND sales <> 1440) OR window_id = 'fiscal year'"
    march = "window_id IN ('month', 'month to date') AND ends BETWEEN '2025-03-30' AND '2025-04-01'"
    shown.where(f"{odd} OR {march}").orderBy("starts", "ends", "window_id").show(truncate=False)

    days = {row.starts: row.sales for row in shown.where("window_id = 'day'").collect()}
    one = timedelta(days=1)
    midnights = [datetime(2024, 4, 1, tzinfo=ZoneInfo(ZONE)) + place * one for place in range(366)]
    by_hand = {start.date(): counted_by_hand(start, start + one) for start in midnights[:-1]}
    print(f"{len(days)} days, {sum(days[day] != by_hand.get(day) for day in days)} differ from zoneinfo's")
    assert days == by_hand
    assert by_hand[date(2024, 10, 27)] == 25 * 60


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
