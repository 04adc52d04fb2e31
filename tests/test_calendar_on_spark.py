"""Calendar windows and windows that grow give on Spark, on streams and on DuckDB what the reference gives."""

import os
import random
import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import duckdb
import pytest
from comparing import assert_equal, by_instance
from file_streams import EPOCH, assert_closed, finish, stream_of, watermark_of, write_batches
from pyspark.sql import functions as F
from ticking import tick

import factor_windows as fw
from factor_windows import QueryError
from factor_windows.engines.python import evaluate
from factor_windows.search import SEARCHES
from factor_windows.spark.compare import differing_rows
from factor_windows.spark.naive import naive

CASES = int(os.environ.get("FACTOR_WINDOWS_CASES", "1"))
"""How many queries are generated for each change of clocks; if more than one, all searches run each of them."""
BERLIN = "Europe/Berlin"
SESSIONS = ["UTC", "America/New_York", "Asia/Kathmandu"]
CHANGES = [
    (BERLIN, "2024-03-31T01:00"),
    (BERLIN, "2024-10-27T01:00"),
    ("Australia/Lord_Howe", "2024-04-06T15:00"),
    ("America/Havana", "2024-11-03T05:00"),
    ("Africa/Cairo", "2024-04-25T22:00"),
    ("America/St_Johns", "2010-11-07T02:31"),
    ("Pacific/Apia", "2011-12-30T10:00"),
    ("Pacific/Kiritimati", "1994-12-31T10:00"),
    ("Africa/Monrovia", "1972-01-07T00:44"),
    ("Pacific/Kwajalein", "1969-09-30T13:00"),
    ("America/Toronto", "1919-03-31T04:30"),
    (BERLIN, "1892-12-31T23:06"),
]
"""Zones, and when their clocks were set, in UTC."""


@pytest.fixture
def session_zone(spark):
    """Let a test set the session's time zone."""
    before = spark.conf.get("spark.sql.session.timeZone")
    yield lambda zone: spark.conf.set("spark.sql.session.timeZone", zone)
    spark.conf.set("spark.sql.session.timeZone", before)


def micros(time):
    return (time - EPOCH) // timedelta(microseconds=1)


def windows_of(rng, zone):
    """Five windows of all kinds; three of them of one zone, and one of these its days."""
    local = [
        *(fw.calendar(each, zone=zone) for each in ("2 days", "1 week", "1 month", "1 quarter", "1 year")),
        fw.calendar("7 days", slide="1 day", zone=zone),
        fw.calendar("3 days", slide="2 days", zone=zone),
        fw.calendar("3 months", slide="1 month", zone=zone),
        fw.calendar("1 month", step="1 day", zone=zone),
        fw.calendar("1 week", step="1 day", zone=zone),
        fw.calendar("1 year", step="1 quarter", zone=zone),
        fw.calendar("1 week", origin="2024-01-07", zone=zone, name="Sundays"),
    ]
    others = [
        fw.tumbling("15 minutes"),
        fw.tumbling("1 day"),
        fw.hopping("6 hours", "1 hour", offset="30 minutes"),
        fw.hopping("7 days", "1 day"),
        fw.cumulating("1 day", step="6 hours"),
        fw.cumulating("2 hours", step="30 minutes", offset="10 minutes"),
        fw.calendar("1 month"),
        fw.calendar("1 day", zone="Asia/Kolkata"),
        fw.calendar("1 year", origin="2024-04-01", zone="Asia/Kolkata"),
    ]
    return [fw.calendar("1 day", zone=zone), *rng.sample(local, 2), *rng.sample(others, 2)]


def rows_of(rng, zone, change):
    """Events around a change of clocks, some of them at the very edges of local days and just before."""
    at = datetime.fromisoformat(change).replace(tzinfo=UTC)
    day = at.astimezone(ZoneInfo(zone)).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    midnights = [(day + timedelta(days=n)).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC) for n in (-1, 0, 1, 2)]
    times = [edge + timedelta(microseconds=off) for edge in [at, *midnights] for off in (-1, 0)]
    times += [at + timedelta(seconds=rng.uniform(-span, span)) for span in [7_200] * 20 + [3 * 86_400] * 20]
    times += [at + timedelta(days=rng.uniform(-100, 100)) for _ in range(20)]
    return [{"ts": micros(time), "k": rng.choice("ab"), "v": rng.choice([None, *range(9)])} for time in times]


def frame_of(spark, rows):
    raw = spark.createDataFrame([tuple(row.values()) for row in rows], "t bigint, k string, v bigint")
    return raw.selectExpr("timestamp_micros(t) AS ts", "k", "v")


def by_reference(query, rows):
    return sorted(map(repr, (tuple(row.values()) for row in evaluate(query, rows))))


def collected(frames):
    """Collect results of one query in one job, times as microseconds: {name: sorted rows}."""
    times = {name: F.unix_micros(name) for name in ("window_start", "window_end")}
    tagged = [frame.withColumns(times).select(F.lit(name).alias("of"), "*") for name, frame in frames.items()]
    united = tagged[0]
    for each in tagged[1:]:
        united = united.unionAll(each)
    found = {name: [] for name in frames}
    for name, *values in united.collect():
        found[name].append(repr(tuple(values)))
    return {name: sorted(rows) for name, rows in found.items()}


@pytest.mark.parametrize("number", range(len(CHANGES) * CASES))
def test_every_search_and_its_text_and_naive_give_what_the_reference_gives(request, spark, session_zone, number):
    if number == 1:
        request.getfixturevalue("compiled")
    zone, change = CHANGES[number % len(CHANGES)]
    rng = random.Random(f"{zone} {change} {number}")
    session_zone(SESSIONS[number % 3])
    rows = rows_of(rng, zone, change)
    events = frame_of(spark, rows)
    events.createOrReplaceTempView("events")
    aggregates = [["sum(v)", "count(*) AS n", "min(v)"], ["min(v)", "max(v)"]][number % 2]
    query = fw.Query(time="ts", keys=["k"], windows=windows_of(rng, zone), aggregates=aggregates)
    searches = SEARCHES if CASES > 1 else [SEARCHES[number % len(SEARCHES)]]
    plans = {search: fw.optimize(query, search=search) for search in searches}
    frames = {search: plan.run(events) for search, plan in plans.items()}
    frames |= {f"text of {search}": spark.sql(plan.sql(dialect="spark")) for search, plan in plans.items()}
    if number % 3 == 0:
        frames["naive"] = naive(query, events)
    expected = by_reference(query, rows)
    for name, found in collected(frames).items():
        assert found == expected, name


def test_a_window_that_grows_over_a_skipped_day_counts_each_event_once(spark):
    window = fw.calendar("1 month", step="1 day", zone="Pacific/Apia")
    query = fw.Query(time="ts", keys=["k"], windows=[window], aggregates=["count(*) AS n"])
    rows = [{"ts": second * 1_000_000, "k": "a", "v": 1} for second in (1_325_220_000, 1_325_260_000)]
    events = frame_of(spark, rows)
    found = collected({"run": fw.optimize(query).run(events), "naive": naive(query, events)})
    # 29 December is followed by 31 December.
    skipped = [
        ("a", window.name, 1_322_733_600_000_000, end * 1_000_000, n)
        for end, n in ((1_325_239_200, 1), (1_325_325_600, 2))
    ]
    assert by_reference(query, rows) == list(map(repr, skipped))
    assert found == {name: list(map(repr, skipped)) for name in found}


@pytest.mark.parametrize(("zone", "year"), [("Africa/Kinshasa", 1900), ("Africa/Harare", 1905)])
def test_plans_give_what_naive_gives_where_java_knows_another_past_than_python(spark, zone, year):
    """Before 1970 the tables of a zone depend on who built them, so no plan may rely on Python's."""
    events = frame_of(spark, rows_of(random.Random(1), zone, f"{year}-01-01T00:00"))
    windows = [fw.hopping("6 hours", "1 hour"), fw.calendar("1 day", zone=zone)]
    query = fw.Query(time="ts", keys=["k"], windows=windows, aggregates=["sum(v)", "count(*) AS n"])
    plan = fw.optimize(query, search="slicing", rate=1000, unit="1 second")
    found = collected({"run": plan.run(events), "naive": naive(query, events)})
    assert found["run"] == found["naive"]


@pytest.mark.long
@pytest.mark.parametrize(("zone", "change"), CHANGES)
def test_duckdb_gives_what_the_reference_gives(zone, change):
    for number in range(CASES):
        rng = random.Random(f"{zone} {change} {number}")
        rows = rows_of(rng, zone, change)
        query = fw.Query(time="ts", keys=["k"], windows=windows_of(rng, zone), aggregates=["min(v)", "count(*) AS n"])
        with duckdb.connect() as db:
            db.execute(f"SET TimeZone = '{rng.choice(SESSIONS)}'")
            db.execute("CREATE TABLE raw (ts BIGINT, k VARCHAR, v BIGINT)")
            db.executemany("INSERT INTO raw VALUES (?, ?, ?)", [tuple(row.values()) for row in rows])
            db.execute("CREATE TABLE events AS SELECT * REPLACE (make_timestamptz(ts) AS ts) FROM raw")
            db.execute(f"CREATE TABLE result AS {fw.optimize(query).sql(dialect='duckdb')}")
            times = "epoch_us(window_start) AS window_start, epoch_us(window_end) AS window_end"
            found = db.execute(f"SELECT * REPLACE ({times}) FROM result").fetchall()
        assert sorted(map(repr, found)) == by_reference(query, rows)


UNITS = {"day": "start + 1", "week": "start + 7"} | {
    unit: f"add_months(start, {months})" for unit, months in {"month": 1, "quarter": 3, "year": 12}.items()
}
"""Units, and where an instance that starts on a local date ends."""


@pytest.fixture(scope="module")
def readings(real_data, request):
    """Real readings of some devices, each moved to days of its own, so that they lie all over two years."""
    file = real_data / "tracebase-2012-01-20.parquet"
    if not file.exists():
        pytest.skip(f"no real data at {file}; FACTOR_WINDOWS_DATA says where it is")
    frame = request.getfixturevalue("spark").read.parquet(str(file)).where("pmod(hash(device, ts), 50) = 0")
    moved = "timestamp_micros(unix_micros(ts) + pmod(hash(device), 500) * 86400000000)"
    frame = frame.selectExpr("device", f"{moved} AS ts", "power_1s").cache()
    yield frame
    frame.unpersist()


@pytest.mark.long
@pytest.mark.parametrize("zone", [BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"])
def test_real_readings_give_what_sparks_own_date_trunc_gives(readings, session_zone, zone):
    session_zone(zone)
    windows = [fw.calendar(f"1 {unit}", zone=zone, name=unit) for unit in UNITS]
    aggregates = ["min(power_1s)", "sum(power_1s)", "count(*)"]
    found = fw.optimize(fw.Query(time="ts", keys=["device"], windows=windows, aggregates=aggregates)).run(readings)
    expected = None
    for unit, end in UNITS.items():
        start = F.date_trunc(unit, "ts").alias("window_start")
        grouped = readings.groupBy("device", F.lit(unit).alias("window_id"), start).agg(*map(F.expr, aggregates))
        dated = grouped.withColumn("start", F.expr("CAST(window_start AS DATE)"))
        own = dated.withColumn("window_end", F.expr(f"CAST({end} AS TIMESTAMP)")).select(found.columns)
        expected = own if expected is None else expected.unionAll(own)
    assert differing_rows(found, expected) == 0


def test_a_day_with_two_midnights_is_one_day_where_date_trunc_makes_two(spark, session_zone):
    session_zone("America/Havana")
    rows = [{"ts": second * 1_000_000, "k": "a", "v": 1} for second in (1_352_003_400, 1_352_007_000)]
    events = frame_of(spark, rows)
    query = fw.Query(time="ts", windows=[fw.calendar("1 day", zone="America/Havana")], aggregates=["count(*)"])
    assert collected({"": fw.optimize(query).run(events)})[""] == by_reference(query, rows)
    assert [row["window_start"] for row in evaluate(query, rows)] == [1_352_001_600_000_000]
    assert events.select(F.date_trunc("day", "ts")).distinct().count() == 2


def test_a_statement_by_date_trunc_is_refused_where_days_start_twice(spark, session_zone):
    """Spark tells the two midnights apart, and gives two rows for one day."""
    session_zone("America/Havana")
    rows = [{"ts": second * 1_000_000, "k": "a", "v": 1} for second in (1_352_003_400, 1_352_007_000)]
    frame_of(spark, rows).createOrReplaceTempView("events")
    text = "SELECT date_trunc('day', ts) AS day, count(*) AS n FROM events GROUP BY date_trunc('day', ts)"
    assert spark.sql(text).count() == 2
    with pytest.raises(fw.SqlError, match="some days start twice"):
        fw.sql(spark, text)


SCHEMA = "ts timestamp, k string, v bigint"
STREAMED = [
    fw.tumbling("6 hours"),
    fw.calendar("1 day", zone=BERLIN),
    fw.calendar("1 week", zone=BERLIN),
    fw.calendar("3 days", slide="1 day", zone=BERLIN),
    fw.calendar("1 month", step="1 day", zone=BERLIN),
    fw.cumulating("1 day", step="6 hours"),
]
QUERY = fw.Query(time="ts", keys=["k"], windows=STREAMED, aggregates=["sum(v)", "max(v)", "count(*) AS n"])


def batches_of(rng, files=3):
    """Events from before to after the night in which Berlin's clocks go forward, by micro-batch, none of them late."""
    begin = micros(datetime(2024, 3, 28, tzinfo=UTC)) // 1_000_000
    seconds = sorted(begin + rng.randrange(7 * 86_400) for _ in range(120))
    seconds.sort(key=lambda second: second + rng.randrange(3_000))
    size = -(-len(seconds) // files)
    return [
        [{"ts": second, "k": rng.choice("ab"), "v": rng.randrange(9)} for second in seconds[low : low + size]]
        for low in range(0, len(seconds), size)
    ]


def stream_in(spark, folder):
    return stream_of(spark, folder / "in", SCHEMA, delay="1 hour")


@pytest.mark.long
def test_a_stream_over_a_change_of_clocks_gives_batchs_rows_and_flush_the_rest(spark, one_partition, tmp_path):
    rng = random.Random(1)
    events = write_batches(spark, tmp_path / "in", batches_of(rng), SCHEMA)
    plan = fw.optimize(QUERY)
    running = finish(plan.run(stream_in(spark, tmp_path)), "calendar_appended")
    found, everything = spark.table("calendar_appended"), by_instance(QUERY, naive(QUERY, events))
    assert_closed(QUERY, found, everything, watermark_of(running))
    assert_equal(QUERY, by_instance(QUERY, found.unionAll(plan.flush(events, running))), everything)


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_update_and_complete_end_with_what_batch_gives(spark, one_partition, tmp_path, mode):
    rng = random.Random(mode)
    events = write_batches(spark, tmp_path / "in", batches_of(rng, files=2), SCHEMA)
    finish(fw.optimize(QUERY).run(stream_in(spark, tmp_path), mode=mode), f"calendar_{mode}", mode)
    found = spark.table(f"calendar_{mode}")
    if mode == "update":
        # A row comes again whenever it changes, and its count only grows.
        found = found.groupBy(*found.columns[:4]).agg(F.max_by(F.struct(*found.columns[4:]), "n").alias("last"))
        found = found.select(*found.columns[:4], "last.*")
    assert_equal(QUERY, by_instance(QUERY, found), by_instance(QUERY, naive(QUERY, events)))


@pytest.mark.long
def test_a_checkpoint_goes_on_in_the_middle_of_local_days(spark, one_partition, tmp_path):
    rng, place = random.Random(3), tmp_path / "state"
    batches = batches_of(rng, files=2)
    write_batches(spark, tmp_path / "in", batches[:1], SCHEMA)
    plan = fw.optimize(QUERY)
    tick(plan.run(stream_in(spark, tmp_path), checkpoint=place), tmp_path / "out", place)
    (tmp_path / "in").rename(tmp_path / "before")
    events = write_batches(spark, tmp_path / "in", batches, SCHEMA)
    again = fw.Plan.from_json(plan.to_json())
    running = tick(again.run(stream_in(spark, tmp_path), checkpoint=place), tmp_path / "out", place)
    found = spark.read.parquet(f"{tmp_path}/out")
    everything = by_instance(QUERY, naive(QUERY, events))
    assert_closed(QUERY, found, everything, watermark_of(running))
    left = again.flush(events, checkpoint=place)
    assert_equal(QUERY, by_instance(QUERY, found.unionAll(left)), everything)


def test_a_checkpoint_of_another_zone_is_refused(spark, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "state").mkdir()
    stream = stream_in(spark, tmp_path)

    def run(zone):
        query = fw.Query(time="ts", windows=[fw.calendar("1 day", zone=zone)], aggregates=["max(v)"])
        return fw.optimize(query).run(stream, checkpoint=tmp_path / "state")

    run(BERLIN)
    (tmp_path / "state" / "metadata").write_text('{"id":"0"}', encoding="utf-8")
    assert run(BERLIN).isStreaming
    with pytest.raises(fw.PlanError, match=r"1 day \[Europe/Paris\] is new"):
        run("Europe/Paris")


@pytest.fixture(scope="module")
def march(spark):
    """A batch of events over the night in which Berlin's clocks go forward."""
    rows = [row | {"ts": row["ts"] * 1_000_000} for batch in batches_of(random.Random(5)) for row in batch]
    frame = frame_of(spark, rows).cache()
    yield frame, rows
    frame.unpersist()


def test_several_queries_with_calendars_give_together_what_each_gives(march):
    events, rows = march
    days, mtd = fw.calendar("1 day", zone=BERLIN), fw.calendar("1 month", step="1 day", zone=BERLIN)
    queries = [
        fw.Query(time="ts", keys=["k"], windows=[days, mtd, fw.tumbling("1h")], aggregates=["sum(v)"], name="a"),
        fw.Query(time="ts", windows=[fw.calendar("1 week", zone=BERLIN), days], aggregates=["max(v)"], name="b"),
        fw.Query(time="ts", keys=["k"], windows=[fw.calendar("1 day", zone="Asia/Tokyo"), mtd], aggregates=["sum(v)"]),
    ]
    plan = fw.optimize(queries)
    with plan.run(events) as results:
        for query in plan.queries:
            [found] = collected({"": results[query.name]}).values()
            assert found == by_reference(query, rows), query.name


def test_a_wide_result_has_a_column_for_each_calendar_window(march):
    events, rows = march
    windows = [fw.calendar("1 day", zone=BERLIN), fw.calendar("1 month", step="1 day", zone=BERLIN, name="mtd")]
    query = fw.Query(time="ts", keys=["k"], windows=windows, aggregates=["sum(v) AS s"])
    wide = fw.wide(fw.optimize(query).run(events))
    assert wide.columns == ["k", "window_end", "s_1 day [Europe/Berlin]", "s_mtd"]
    found = {(row[0], micros(row[1].astimezone(UTC))): tuple(row[2:]) for row in wide.collect()}
    long = {(row["k"], row["window_end"], row["window_id"]): row["s"] for row in evaluate(query, rows)}
    assert {key[:2] for key in long} == set(found)
    for key, values in found.items():
        assert values == tuple(long.get((*key, window.name)) for window in windows)


def test_a_plan_that_was_written_and_read_still_runs(march):
    events, rows = march
    plan = fw.optimize(QUERY)
    again = fw.Plan.from_json(plan.to_json())
    assert again == plan
    assert again.explain() == plan.explain()
    assert collected({"": again.run(events)})[""] == by_reference(QUERY, rows)


def test_all_explanations_name_the_zone(march):
    plan = fw.optimize(QUERY)
    texts = [plan.explain(), plan.explain(physical=True), plan.explain(streaming=True), plan.explain(events=march[0])]
    mermaid = re.sub(r"#(\d+);", lambda sign: chr(int(sign[1])), plan.to_mermaid())
    for text in [*texts, plan.to_html(), mermaid, plan.to_dot(), plan.naive().explain()]:
        assert "1 day [Europe/Berlin]" in text
        assert "1 month + 1 day [Europe/Berlin]" in text


def test_the_command_line_takes_zones_and_steps(command):
    windows = ("--window", "1month[Europe/Berlin]", "--window", "1d+1h", "--window", "1d[Europe/Berlin]")
    for more in ((), ("--json",), ("--operators", "--candidates"), ("--cost", "paper")):
        code, out, error = command("explain", *windows, *more)
        assert (code, error) == (0, "")
        assert "1 month [Europe/Berlin]" in out
        assert "1 day + 1 hour" in out


LOCAL = {"timestamp_ntz": 86_399_999_999, "date": 0}
"""Types of local times, and a time of day that they can have."""


def local_events(spark, kind):
    days = random.Random(kind).sample(range(19_700, 20_200), 40)
    rows = [{"ts": day * 86_400_000_000 + LOCAL[kind], "k": "ab"[day % 2], "v": day % 7} for day in days]
    raw = spark.createDataFrame([tuple(row.values()) for row in rows], "t bigint, k string, v bigint")
    wall = "TIMESTAMP_NTZ'1970-01-01' + make_dt_interval(0, 0, 0, t / 1000000BD)"
    return raw.selectExpr(f"CAST({wall} AS {kind}) AS ts", "k", "v"), rows


def in_utc(frame):
    """Read local times as those of UTC, which is what the reference does."""
    assert frame.schema["window_start"].dataType.simpleString() == "timestamp_ntz"
    ends = ("window_start", "window_end")
    return frame.withColumns({end: F.expr(f"CAST(concat(CAST({end} AS string), 'Z') AS timestamp)") for end in ends})


@pytest.mark.parametrize(("kind", "zone"), list(zip(LOCAL, SESSIONS[1:], strict=True)))
def test_local_times_have_calendars_without_a_zone_whatever_the_session(spark, session_zone, kind, zone):
    session_zone(zone)
    events, rows = local_events(spark, kind)
    events.createOrReplaceTempView("events")
    months = [fw.calendar("1 month"), fw.calendar("1 year", step="1 month"), fw.calendar("1 month", step="1 day")]
    query = fw.Query(time="ts", keys=["k"], windows=[*months, fw.calendar("1 week")], aggregates=["sum(v)"])
    plan, own = fw.optimize(query), fw.Query(time="ts", keys=["k"], windows=months, aggregates=["sum(v)"])
    frames = {"run": plan.run(events), "text": spark.sql(plan.sql(dialect="spark"))}
    for name, found in collected({name: in_utc(frame) for name, frame in frames.items()}).items():
        assert found == by_reference(query, rows), name
    assert collected({"": in_utc(naive(own, events))})[""] == by_reference(own, rows)


@pytest.mark.parametrize("kind", LOCAL)
def test_naive_has_local_times_for_fixed_windows_beside_calendars(spark, session_zone, kind):
    session_zone("Asia/Kathmandu")
    events, rows = local_events(spark, kind)
    windows = [fw.calendar("1 month"), fw.calendar("1 week")]
    query = fw.Query(time="ts", keys=["k"], windows=windows, aggregates=["sum(v)"])
    assert collected({"": in_utc(naive(query, events))})[""] == by_reference(query, rows)


@pytest.mark.parametrize("kind", LOCAL)
def test_weeks_of_local_times_are_the_same_with_and_without_months(spark, session_zone, kind):
    session_zone("Asia/Kathmandu")
    events, _ = local_events(spark, kind)
    week, month = fw.calendar("1 week"), fw.calendar("1 month")
    alone, beside = (
        fw.optimize(fw.Query(time="ts", keys=["k"], windows=windows, aggregates=["sum(v)"])).run(events)
        for windows in ([week], [week, month])
    )
    told = (
        frame.where(F.col("window_id") == week.name).select(F.col("window_start").cast("string"), "k", "sum(v)")
        for frame in (alone, beside)
    )
    found, expected = (sorted(map(tuple, frame.collect())) for frame in told)
    assert found == expected


@pytest.mark.parametrize("kind", ["timestamp_ntz", "date"])
def test_a_zone_for_local_times_is_refused_with_one_sentence(spark, kind):
    events = spark.sql(f"SELECT CAST('2024-03-31' AS {kind}) AS ts, 1 AS v")
    plan = fw.optimize(fw.Query(time="ts", windows=[fw.calendar("1 day", zone=BERLIN)], aggregates=["max(v)"]))
    with pytest.raises(QueryError, match=f"is of type {kind}, which is local time already.*'Europe/Berlin'") as found:
        plan.run(events)
    assert "\n" not in str(found.value)


def test_flink_gets_cumulate_and_no_zone():
    def text(*windows):
        return fw.optimize(fw.Query(time="ts", windows=windows, aggregates=["max(v)"])).sql(dialect="flink")

    lengths = "INTERVAL '1' HOUR, INTERVAL '1' DAY, INTERVAL '30' MINUTE"
    written = text(fw.cumulating("1 day", step="1 hour", offset="30 minutes"))
    assert re.search(rf"TABLE\(CUMULATE\(TABLE \w+, DESCRIPTOR\(fw_time\), {lengths}\)\)", written)
    with pytest.raises(QueryError, match=r"1 month \[Europe/Berlin\]") as found:
        text(fw.tumbling("1h"), fw.calendar("1 month", zone=BERLIN))
    assert "\n" not in str(found.value)


def test_dates_are_local_to_queries_with_calendars_only(spark):
    """Alone, each query has its own reading; together they would have one, so they are refused."""
    dates = spark.sql("SELECT DATE '2024-01-05' AS d, 1 AS v")
    month = fw.Query(time="d", windows=[fw.calendar("1 month")], aggregates=["sum(v)"], name="month")
    hour = fw.Query(time="d", windows=[fw.cumulating("1 day", step="12 hours")], aggregates=["sum(v)"], name="hour")
    for query, kind in ((month, "timestamp_ntz"), (hour, "timestamp")):
        found, expected = fw.optimize(query).run(dates), naive(query, dates)
        assert found.schema["window_start"].dataType.simpleString() == kind
        assert found.schema["window_start"].dataType == expected.schema["window_start"].dataType
        assert sorted(found.collect()) == sorted(expected.collect())
    with pytest.raises(QueryError, match="time 'd' is a date, which is a local day to a query with a calendar"):
        fw.optimize([month, hour]).run(dates)
