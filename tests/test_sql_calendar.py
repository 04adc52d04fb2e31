"""Calendar windows and windows that grow, read from SQL: WINDOWS(...), Flink's CUMULATE, and Spark's buckets."""

import datetime
from zoneinfo import ZoneInfo

import pytest
from sql_equality import assert_same_sql

import factor_windows as fw
from factor_windows import SqlError, calendar, cumulating, hopping, parse, tumbling
from factor_windows.sql.names import Tables
from factor_windows.sql.parse import read

BERLIN = "Europe/Berlin"
INSTANT = "CASE WHEN NOT window_start IS NULL THEN CAST(window_start AS TIMESTAMP) END"


def of_windows(texts):
    return parse(f"SELECT k, window_id, window_start, max(v) AS m FROM r GROUP BY k, WINDOWS(ts, {texts})")


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("'1 day' IN 'Europe/Berlin'", calendar("1 day", zone=BERLIN)),
        ("'1 month' IN 'Europe/Berlin'", calendar("1 month", zone=BERLIN)),
        ("'1 day' STEP '1 hour'", cumulating("1 day", step="1 hour")),
        ("'1 day STEP 1 hour'", cumulating("1 day", step="1 hour")),
        ("'1 day STEP 1 hour OFFSET 2 hours'", cumulating("1 day", step="1 hour", offset="2 hours")),
        ("'3 months SLIDE 1 month' IN 'Asia/Tokyo'", calendar("3 months", slide="1 month", zone="Asia/Tokyo")),
        ("'3 months' IN 'Asia/Tokyo' SLIDE '1 month'", calendar("3 months", slide="1 month", zone="Asia/Tokyo")),
        ("'1 month' IN 'Europe/Berlin' STEP '1 day'", calendar("1 month", step="1 day", zone=BERLIN)),
        ("'1 month' STEP '1 day' IN 'Europe/Berlin'", calendar("1 month", step="1 day", zone=BERLIN)),
        ("'1 month STEP 1 day' IN 'Europe/Berlin'", calendar("1 month", step="1 day", zone=BERLIN)),
        ("'1 year' IN 'UTC' ORIGIN '2024-04-01'", calendar("1 year", origin="2024-04-01")),
        ("'1 year ORIGIN 2024-04-01'", calendar("1 year", origin="2024-04-01")),
        ("'1 week' ORIGIN '2024-01-07'", calendar("1 week", origin="2024-01-07")),
        ("'1 quarter'", calendar("1 quarter")),
        ("INTERVAL '2' MONTHS", calendar("2 months")),
        ("'2 weeks'", tumbling("14 days")),
        ("'1 day SLIDE 1 hour'", hopping("1 day", "1 hour")),
    ],
)
def test_a_text_is_the_window_that_it_says(text, window):
    assert of_windows(text).windows == (window,)


def test_a_window_is_called_by_its_alias_or_by_its_label():
    query = of_windows(
        "'1 day' IN 'Europe/Berlin', '1 month' IN 'Europe/Berlin' AS monthly, '1 day' STEP '1 hour', "
        "'1 month' IN 'Europe/Berlin' STEP '1 day' AS mtd, '1 year' IN 'UTC' ORIGIN '2024-04-01'"
    )
    assert query.window_names == (
        "1 day [Europe/Berlin]",
        "monthly",
        "1 day + 1 hour",
        "mtd",
        "1 year [UTC] @ 2000-04-01",
    )
    assert query.time == "ts"


def test_windows_of_a_calendar_need_no_time_in_the_call():
    query = parse("SELECT max(v) AS m FROM r TIMESTAMP BY ts GROUP BY WINDOWS('1 day' IN 'Europe/Berlin' AS daily)")
    assert (query.time, query.windows) == ("ts", (calendar("1 day", zone=BERLIN),))


CUMULATE = "SELECT k, window_start AS s, window_end AS e, max(v) AS m FROM {} GROUP BY k, window_start, window_end"


@pytest.mark.parametrize(
    ("table", "window"),
    [
        (
            "TABLE(CUMULATE(TABLE r, DESCRIPTOR(ts), INTERVAL '2' MINUTES, INTERVAL '10' MINUTES))",
            cumulating("10 minutes", step="2 minutes"),
        ),
        (
            "TABLE(CUMULATE(TABLE r, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '1' DAY, INTERVAL '30' MINUTES))",
            cumulating("1 day", step="1 hour", offset="30 minutes"),
        ),
        (
            "TABLE(CUMULATE(DATA => TABLE r, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '1' DAY, "
            "STEP => INTERVAL '1' HOUR))",
            cumulating("1 day", step="1 hour"),
        ),
    ],
)
def test_flinks_cumulate_is_a_window_that_grows(table, window):
    query = parse(CUMULATE.format(table))
    assert (query.windows, query.time, query.source) == ((window,), "ts", "r")
    assert query.output == ("`k` AS `k`", "window_start AS `s`", "window_end AS `e`", "`m` AS `m`")


LOCAL = "from_utc_timestamp(ts, 'Europe/Berlin')"


@pytest.mark.parametrize(
    ("bucket", "window"),
    [
        *((f"date_trunc('{unit}', ts)", calendar("1 month")) for unit in ("month", "MON", "mm")),
        *((f"date_trunc('{unit}', ts)", calendar("1 year")) for unit in ("YEAR", "yyyy", "YY")),
        *((f"date_trunc('{unit}', ts)", tumbling("1 day")) for unit in ("DAY", "dd")),
        ("date_trunc('week', ts)", calendar("1 week")),
        ("date_trunc('quarter', ts)", calendar("1 quarter")),
        ("DATE_TRUNC('HOUR', ts)", tumbling("1 hour")),
        ("date_trunc('second', ts)", tumbling("1 second")),
        ("trunc(ts, 'MONTH')", calendar("1 month")),
        ("trunc(ts, 'week')", calendar("1 week")),
        (f"date_trunc('month', {LOCAL})", calendar("1 month", zone=BERLIN)),
        (f"trunc({LOCAL}, 'month')", calendar("1 month", zone=BERLIN)),
        ("date_trunc('day', convert_timezone('UTC', 'Europe/Berlin', ts))", calendar("1 day", zone=BERLIN)),
        ("date_trunc('day', convert_timezone('Europe/Berlin', ts))", calendar("1 day", zone=BERLIN)),
        (f"to_utc_timestamp(date_trunc('week', {LOCAL}), 'Europe/Berlin')", calendar("1 week", zone=BERLIN)),
        ("time_bucket(INTERVAL '1' MONTH, ts)", calendar("1 month")),
        ("time_bucket(INTERVAL '7' MONTHS, ts)", calendar("7 months", origin="1970-01-01")),
        (
            "time_bucket(INTERVAL '1' YEAR, ts, TIMESTAMP '2024-04-01 00:00:00')",
            calendar("1 year", origin="2024-04-01"),
        ),
        ("time_bucket(INTERVAL '1' WEEK, ts)", tumbling("7 days")),
        ("time_bucket(INTERVAL '15' MINUTES, ts, TIMESTAMP '2024-01-01 00:05:00')", tumbling("15m", offset="5m")),
    ],
)
def test_a_bucket_is_a_window(bucket, window):
    query = parse(f"SELECT k, {bucket} AS start, max(v) AS m FROM r WHERE ts IS NOT NULL GROUP BY k, {bucket}")
    assert (query.windows, query.time) == ((window,), "ts")
    assert query.columns == ("k", "start", "m")
    assert [key.sql for key in query.parsed_keys] == ["k"]


def test_a_bucket_goes_by_the_zone_of_the_session():
    tables = Tables(zone="America/New_York")

    def window(bucket):
        [statement] = read(f"SELECT {bucket}, max(v) AS m FROM r GROUP BY 1", tables=tables)
        return statement.queries[0].windows[0]

    assert window("date_trunc('month', ts)") == calendar("1 month", zone="America/New_York")
    assert window("trunc(ts, 'year')") == calendar("1 year", zone="America/New_York")
    assert window("time_bucket(INTERVAL '2' DAYS, ts)") == calendar(
        "2 days", zone="America/New_York", origin="1970-01-01"
    )
    assert window("time_bucket(INTERVAL '2' HOURS, ts)") == tumbling("2h", offset="5h")


def test_a_bucket_shows_the_start_of_its_window_as_spark_does():
    def shown(bucket):
        return parse(f"SELECT {bucket} AS x, max(v) AS m FROM r GROUP BY {bucket}").output[0].removesuffix(" AS `x`")

    local = "from_utc_timestamp(window_start, 'Europe/Berlin')"
    assert shown("date_trunc('month', ts)") == INSTANT
    assert shown(f"to_utc_timestamp(date_trunc('month', {LOCAL}), 'Europe/Berlin')") == INSTANT
    assert local in shown(f"date_trunc('month', {LOCAL})")
    assert f"CAST({local} AS DATE)" in shown(f"trunc({LOCAL}, 'month')")
    assert "CAST(window_start AS DATE)" in shown("trunc(ts, 'month')")


def test_a_bucket_is_known_wherever_it_stands_but_where():
    query = parse(
        "SELECT date_trunc('day', ts) + INTERVAL 1 DAY AS next, max(date_trunc('day', ts)) AS m FROM r "
        "WHERE date_trunc('day', ts) > '2024-01-01' GROUP BY date_trunc('day', ts) "
        "HAVING DATE_TRUNC('day', (ts)) < now()"
    )
    assert query.output[0].startswith(f"{INSTANT} + INTERVAL '1' DAY")
    assert query.aggregates == ("max(date_trunc('day', ts)) AS `m`",)
    assert query.where == "date_trunc('day', ts) > '2024-01-01'"
    assert query.having.startswith(f"({INSTANT} < ")


def test_buckets_joined_by_union_all_share_one_query():
    units = ("day", "week", "month", "quarter")
    parts = (f"SELECT k, date_trunc('{unit}', ts) AS s, sum(v) AS t FROM r GROUP BY k, s" for unit in units)
    query = parse(
        " UNION ALL ".join([*parts, "SELECT k, window.start, sum(v) FROM r GROUP BY k, window(ts, '1 hour')"])
    )
    assert [window.name for window in query.windows] == [
        "1 day [UTC]",
        "1 week [UTC]",
        "1 month [UTC]",
        "1 quarter [UTC]",
        "1 hour",
    ]


def test_beside_a_window_a_bucket_is_a_key_and_so_is_a_second_bucket():
    query = parse("SELECT date_trunc('day', ts) AS d, max(v) AS m FROM r GROUP BY d, window(ts, '1 hour')")
    assert (query.windows, [key.sql for key in query.parsed_keys]) == ((tumbling("1h"),), ["date_trunc('day', ts)"])
    query = parse("SELECT max(v) AS m FROM r GROUP BY date_trunc('day', ts), date_trunc('year', ts)")
    assert (query.windows, [key.sql for key in query.parsed_keys]) == ((tumbling("1d"),), ["date_trunc('year', ts)"])


@pytest.mark.parametrize(
    "text",
    [
        "SELECT date_trunc('day', s) AS d, avg(m) FROM (SELECT window.start AS s, max(v) AS m FROM r "
        "GROUP BY window(ts, '1 hour')) GROUP BY d",
        "WITH hourly AS (SELECT window.start AS s, max(v) AS m FROM r GROUP BY window(ts, '1 hour')) "
        "SELECT date_trunc('day', s), avg(m) FROM hourly GROUP BY 1",
        "SELECT max(v) AS m FROM r WHERE EXISTS (SELECT count(*) FROM d GROUP BY date_trunc('day', ts)) "
        "GROUP BY window(ts, '1 hour')",
        "SELECT max(m) AS m FROM (SELECT date_trunc('minute', ts) AS t, max(v) AS m FROM r GROUP BY 1) "
        "GROUP BY window(t, '1 hour')",
        "SELECT window.start, max(v) AS m FROM r GROUP BY window(ts, '1 hour') UNION ALL "
        "SELECT date_trunc('fortnight', ts), max(v) FROM r GROUP BY 1",
    ],
)
def test_a_bucket_beside_other_windows_that_cannot_be_one_is_left_to_spark(text):
    [statement] = read(text)
    assert [query.windows for query in statement.queries] == [(tumbling("1 hour"),)]


def test_buckets_of_buckets_are_computed_from_the_inner_ones():
    [statement] = read(
        "WITH daily AS (SELECT date_trunc('day', ts) AS d, count(*) AS c FROM r GROUP BY d), "
        "weekly AS (SELECT date_trunc('week', ts) AS w, count(*) AS c FROM r GROUP BY w) "
        "SELECT date_trunc('month', d) AS m, max(daily.c) AS c FROM daily JOIN weekly ON w = d GROUP BY m"
    )
    assert [query.windows for query in statement.queries] == [(tumbling("1 day"),), (calendar("1 week"),)]
    assert "date_trunc('month', d)" in statement.outer


def test_rows_without_a_time_are_an_error_and_noted(spark):
    """Spark gives them a bucket of their own, which is no window; window() drops them."""
    text = "SELECT date_trunc('day', ts), max(v) AS m FROM r {} GROUP BY 1"
    assert [note[:40] for note in read(text.format(""))[0].notes] == ["a row whose ts is null ends the query wi"]
    assert read(text.format("WHERE v > 0 AND ts IS NOT NULL"))[0].notes == ()
    spark.sql(
        "SELECT CASE WHEN id % 3 > 0 THEN timestamp_seconds(id * 40000) END AS ts, id AS v FROM range(9)"
    ).createOrReplaceTempView("r")
    for where in ("WHERE ts IS NOT NULL", "WHERE v % 3 > 0", "WHERE ts > TIMESTAMP '1970-01-02'"):
        found, expected = (run(text.format(where)) for run in (lambda text: fw.sql(spark, text), spark.sql))
        assert sorted(found.collect()) == sorted(expected.collect())
    with pytest.raises(Exception, match="ts is null, which is no window; add WHERE ts IS NOT NULL"):
        fw.sql(spark, text.format("")).collect()
    beside = "UNION ALL SELECT window.start, max(v) FROM r GROUP BY window(ts, '1 hour')"
    found, expected = (
        run(f"{text.format('WHERE v % 3 > 0')} {beside}") for run in (lambda s: fw.sql(spark, s), spark.sql)
    )
    assert sorted(found.collect()) == sorted(expected.collect())
    with pytest.raises(Exception, match="ts is null"):
        fw.sql(spark, f"{text.format('WHERE v > 0')} {beside}").collect()


BAD = {
    "an unknown zone": ("WINDOWS(ts, '1 day' IN 'Europe/Berlyn')", "zone 'Europe/Berlyn' is unknown; did you mean"),
    "a step that does not divide": ("WINDOWS(ts, '1 day' STEP '7 hours')", "step '7 hours' does not divide"),
    "a calendar's step of weeks": ("WINDOWS(ts, '1 month' STEP '1 week')", "step '1 week' does not divide"),
    "an origin that is not a date": ("WINDOWS(ts, '1 year' ORIGIN 'april')", "origin 'april' is not a date"),
    "an origin within a month": ("WINDOWS(ts, '1 year' ORIGIN '2024-04-02')", "is not the first day of a month"),
    "a unit that does not exist": ("WINDOWS(ts, '1 fortnight' IN 'UTC')", "unit 'fortnight'; calendars have"),
    "hours in a zone": ("WINDOWS(ts, '1 hour' IN 'Europe/Berlin')", "fixed lengths"),
    "an offset of a month": ("WINDOWS(ts, '1 month OFFSET 3 days')", "such as ORIGIN"),
    "a step twice": ("WINDOWS(ts, '1 day STEP 1 hour' STEP '2 hours')", "has STEP twice"),
    "a step and a slide": ("WINDOWS(ts, '1 day SLIDE 1 hour STEP 1 hour')", "SLIDE and STEP"),
    "a month's step and slide": ("WINDOWS(ts, '1 month SLIDE 1 month STEP 1 day')", "has no slide of its own"),
    "a unit that date_trunc has not": ("date_trunc('fortnight', ts)", "no unit 'fortnight'; allowed are week, quarter"),
    "a unit that trunc has not": ("trunc(ts, 'DAY')", "trunc has no unit 'DAY'"),
    "a bucket of an unknown zone": ("date_trunc('day', from_utc_timestamp(ts, 'Mars'))", "zone 'Mars' is unknown"),
    "hours of another zone": (f"date_trunc('hour', {LOCAL})", r"only in UTC.*window\(ts, '1 hour'\)"),
    "two zones in one bucket": (
        f"to_utc_timestamp(date_trunc('day', {LOCAL}), 'Asia/Tokyo')",
        "back from 'Asia/Tokyo'",
    ),
    "an origin of a bucket": ("time_bucket(INTERVAL '1' DAY, ts, TIMESTAMP 'x')", "is no time"),
    "an origin at noon": ("time_bucket(INTERVAL '1' MONTH, ts, TIMESTAMP '2024-01-01 12:00:00')", "no midnight"),
    "GROUPING SETS without the bucket": ("ROLLUP(date_trunc('day', ts))", "a set of keys has no window"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_mistake_gets_one_sentence_with_its_place(name):
    window, problem = BAD[name]
    with pytest.raises(SqlError, match=problem) as caught:
        parse(f"SELECT max(v) AS m FROM r GROUP BY {window}")
    assert str(caught.value).startswith("line 1, column ")
    assert "\n" not in str(caught.value)


def test_a_step_of_cumulate_that_does_not_divide_is_explained():
    table = "TABLE(CUMULATE(TABLE r, DESCRIPTOR(ts), INTERVAL '7' MINUTES, INTERVAL '1' HOUR))"
    with pytest.raises(SqlError, match=r"^line 1, column .*step '7 minutes' does not divide range '1 hour'"):
        parse(CUMULATE.format(table))


@pytest.mark.parametrize(
    ("bucket", "problem"),
    [
        (f"date_trunc('month', {LOCAL})", r"timeZone to UTC, or write WINDOWS\(ts, '1 month' IN 'Europe/Berlin'\)"),
        ("date_trunc('hour', ts)", r"only in UTC, and the zone is 'America/New_York'; write window\(ts, '1 hour'\)"),
        ("time_bucket(INTERVAL '36' HOURS, ts)", "mixes days with hours"),
    ],
)
def test_what_a_zone_makes_ambiguous_is_refused_with_a_way_out(bucket, problem):
    with pytest.raises(SqlError, match=problem):
        read(f"SELECT {bucket}, max(v) FROM r GROUP BY 1", tables=Tables(zone="America/New_York"))


def test_a_session_whose_zone_has_no_name_is_refused():
    with pytest.raises(SqlError, match=r"the session's time zone '\+02:00' is not the name of one; set spark"):
        read("SELECT date_trunc('day', ts), max(v) FROM r GROUP BY 1", tables=Tables(zone="+02:00"))


def events():
    """Make events around both changes of the clock in 2024, in Berlin and in New York, and around a year's end."""
    found = []
    for zone, day in ((BERLIN, "2024-03-31"), (BERLIN, "2024-10-27"), ("America/New_York", "2024-03-10")):
        around = datetime.datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone))
        found += [around.astimezone(datetime.UTC) + datetime.timedelta(minutes=97 * n) for n in range(-30, 60)]
    for day in ("2024-11-03", "2023-12-31"):
        start = datetime.datetime.fromisoformat(day).replace(tzinfo=datetime.UTC)
        found += [start + datetime.timedelta(minutes=53 * n) for n in range(-20, 60)]
    return [(time, "ab"[n % 2], float(n % 11), n % 7) for n, time in enumerate(found)]


@pytest.fixture
def session(spark, one_partition):
    """The session with a table of events around changes of the clock."""
    frame = spark.createDataFrame(events(), "ts timestamp, k string, v double, n int")
    frame.createOrReplaceTempView("sold")
    local = spark.sql("SELECT CAST(ts AS TIMESTAMP_NTZ) AS ts, CAST(ts AS DATE) AS d, k, v FROM sold")
    local.createOrReplaceTempView("sold_locally")
    yield spark
    spark.conf.set(TIME_ZONE, "UTC")


TIME_ZONE = "spark.sql.session.timeZone"
PLAIN = [
    *(f"SELECT date_trunc('{unit}', ts), count(*), max(v) FROM sold GROUP BY 1"
      for unit in ("day", "WEEK", "mon", "quarter", "yyyy")),
    *(f"SELECT k, trunc(ts, '{unit}') AS s, sum(n) AS t FROM sold GROUP BY k, s"
      for unit in ("week", "MM", "quarter", "year")),
    " UNION ALL ".join(
        f"SELECT '{unit}' AS unit, k, date_trunc('{unit}', ts) AS s, sum(n) AS t, avg(v) AS a FROM sold GROUP BY k, 3"
        for unit in ("day", "week", "month", "quarter")
    ),
    "SELECT date_trunc('day', ts) AS d, count(*) AS c FROM sold WHERE date_trunc('month', ts) > '2024-03-02' "
    "GROUP BY ALL HAVING date_trunc('day', ts) <> '2024-03-31' ORDER BY date_trunc('day', ts) DESC",
    "SELECT date_trunc('month', x.ts) AS m, date_trunc('year', x.ts), max(y.v) FROM sold x JOIN sold y ON x.ts = y.ts "
    "GROUP BY date_trunc('month', x.ts), date_trunc('year', x.ts)",
    "SELECT date_trunc('month', d) AS m, max(c) FROM (SELECT date_trunc('day', ts) AS d, count(*) AS c FROM sold "
    "GROUP BY 1) GROUP BY m",
    "SELECT date_trunc('week', ts) AS w, k, lag(sum(n)) OVER (PARTITION BY k ORDER BY date_trunc('week', ts)) AS l "
    "FROM sold GROUP BY date_trunc('week', ts), k",
    "SELECT k, date_trunc('month', ts) AS m, count(*) FROM sold GROUP BY ROLLUP(k), date_trunc('month', ts)",
]  # fmt: skip
ZONED = [
    *(f"SELECT date_trunc('{unit}', {local}) AS s, count(*) AS c, sum(n) AS t FROM sold GROUP BY s"
      for unit in ("day", "week", "month", "quarter", "year")
      for local in (LOCAL, "convert_timezone('UTC', 'Europe/Berlin', ts)")),
    *(f"SELECT to_utc_timestamp(date_trunc('{unit}', {LOCAL}), 'Europe/Berlin'), k, max(v) FROM sold GROUP BY 1, k"
      for unit in ("day", "month")),
    f"SELECT trunc({LOCAL}, 'month'), count(*) FROM sold GROUP BY 1",
    f"SELECT to_utc_timestamp(date_trunc('day', {LOCAL}), 'Europe/Berlin') AS u FROM sold "
    f"GROUP BY date_trunc('day', {LOCAL})",
    "SELECT date_trunc('day', from_utc_timestamp(ts - INTERVAL 2340 DAYS, 'America/Sao_Paulo')), count(*) FROM sold "
    "GROUP BY 1",
    *(f"SELECT date_trunc('{unit}', ts), max(v) FROM sold GROUP BY 1" for unit in ("hour", "MINUTE", "second")),
    *(f"SELECT date_trunc('{unit}', {column}), trunc({column}, 'month'), max(v) FROM sold_locally GROUP BY 1, 2"
      for unit in ("day", "week", "month") for column in ("ts", "d")),
    "SELECT trunc(d, 'month'), max(v) FROM sold_locally GROUP BY 1",
]  # fmt: skip
BUCKETS = [
    f"SELECT time_bucket(INTERVAL {width}, ts{origin}), count(*), max(v) FROM sold GROUP BY 1"
    for width, origin in (
        ("'1' MONTH", ""),
        ("'7' MONTH", ""),
        ("'1' YEAR", ", TIMESTAMP '2024-04-01 00:00:00'"),
        ("'1' DAY", ""),
        ("'1' WEEK", ""),
        ("'3' DAY", ", TIMESTAMP '2024-01-02 00:00:00'"),
        ("'15' MINUTE", ""),
        ("'5' HOUR", ", TIMESTAMP '2024-01-01 00:30:00'"),
    )
]


@pytest.mark.long
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_buckets_give_what_spark_gives_in_any_session(session, zone):
    session.conf.set(TIME_ZONE, zone)
    for text in PLAIN:
        assert_same_sql(session, text)


@pytest.mark.long
def test_buckets_of_another_zone_give_what_spark_gives(session):
    for text in ZONED:
        assert_same_sql(session, text)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_time_bucket_gives_what_spark_gives(session, zone):
    if tuple(map(int, session.version.split(".")[:2])) < (4, 2):
        pytest.skip("Spark has time_bucket since 4.2")
    session.conf.set(TIME_ZONE, zone)
    for text in BUCKETS:
        assert_same_sql(session, text)


def test_buckets_joined_by_union_all_run_in_one_plan(session):
    text = " UNION ALL ".join(
        f"SELECT k, date_trunc('{unit}', ts) AS s, sum(n) AS t FROM sold GROUP BY k, s" for unit in ("day", "month")
    )
    [statement] = read(text)
    assert len(statement.queries) == 1
    assert fw.sql(session, text).count() == session.sql(text).count()


def test_windows_of_a_zone_are_what_its_bucket_is(session):
    ours = fw.sql(
        session, f"SELECT window_start AS s, count(*) AS c FROM sold GROUP BY WINDOWS(ts, '1 week' IN '{BERLIN}')"
    )
    theirs = session.sql(
        f"SELECT to_utc_timestamp(date_trunc('week', {LOCAL}), '{BERLIN}') AS s, count(*) AS c FROM sold GROUP BY 1"
    )
    assert sorted(map(tuple, ours.collect())) == sorted(map(tuple, theirs.collect()))
