"""Sessions give on Spark what session_window gives: in batch, in SQL, on DuckDB and on streams."""

import random
from datetime import UTC, datetime, timedelta
from itertools import cycle, pairwise

import duckdb
import pytest
from comparing import assert_equal, by_instance, columns_of
from file_streams import EPOCH, finish, stream_of, watermark_of, write_batches
from pyspark.sql import functions as F

import factor_windows as fw
from factor_windows import OptionError, QueryError, optimize, physical
from factor_windows.engines import spark_batch
from factor_windows.engines.python import evaluate
from factor_windows.engines.spark_columns import SparkColumns
from factor_windows.physical.layout import Distribution, Layout, layouts
from factor_windows.spark.compare import differing_rows
from factor_windows.spark.naive import naive

AGGREGATES = ["sum(v)", "avg(v) AS mean", "count(*) AS n", "min(v)", "stddev_pop(v) AS s"]
SECOND = 1_000_000
SETS = {
    "one gap": [fw.session("5 seconds")],
    "five gaps": [fw.session(gap) for gap in ("1 microsecond", "2 seconds", "5 seconds", "30 seconds", "1 hour")],
    "beside other windows": [
        fw.session("5 seconds"),
        fw.session("20 seconds", name="visits"),
        fw.tumbling("4 seconds"),
        fw.hopping("1 minute", "10 seconds"),
        fw.calendar("1 day", zone="Europe/Berlin"),
        fw.cumulating("1 minute", step="20 seconds"),
    ],
}


def rows_of(rng, count=150):
    """Events with ties, gaps that are met exactly and missed by a microsecond, null keys, times before 1970."""
    times, at = [], -300 * SECOND
    for _ in range(count):
        at += rng.choice([0, 1, SECOND, 2 * SECOND, 5 * SECOND, 5 * SECOND + 1, 20 * SECOND, 20 * SECOND + 1])
        times.append(at)
    rows = [{"ts": time, "k": rng.choice(["a", "b", None]), "v": rng.choice([None, 1, 2, 3])} for time in times]
    return [*rows, {"ts": 3600 * SECOND, "k": "only", "v": 1}, {"ts": None, "k": "a", "v": 9}]


def frame_of(spark, rows, kind="timestamp"):
    events = spark.createDataFrame([tuple(row.values()) for row in rows], "ts bigint, k string, v int")
    ntz = "TIMESTAMP_NTZ '1970-01-01' + INTERVAL '0.000001' SECOND * ts"
    return events.withColumn("ts", F.expr({"timestamp": "timestamp_micros(ts)", "timestamp_ntz": ntz}[kind]))


@pytest.mark.parametrize("keys", [["k"], []])
@pytest.mark.parametrize("name", SETS)
def test_plans_give_what_session_window_and_the_definition_give(spark, name, keys):
    rows = rows_of(random.Random(f"{name} {keys}"))
    query = fw.Query(time="ts", keys=keys, windows=SETS[name], aggregates=AGGREGATES)
    events = frame_of(spark, rows, "timestamp_ntz" if keys and "gap" in name else "timestamp")
    expected = by_instance(query, naive(query, events))
    plain = optimize(query).run(events, statistics=None)
    assert columns_of(plain) == columns_of(naive(query, events))
    for result in (plain, optimize(query, rate=1, keys=3, unit="2 seconds").run(events), optimize(query).run(events)):
        assert_equal(query, by_instance(query, result), expected)
    width = len(keys) + 3
    by_definition = {tuple(row.values())[:width]: tuple(row.values())[width:] for row in evaluate(query, rows)}
    in_micros = {(*group[:-2], *(_micros(each) for each in group[-2:])): values for group, values in expected.items()}
    assert_equal(query, in_micros, by_definition)


def _micros(text):
    time = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return (time - EPOCH) // timedelta(microseconds=1)


@pytest.mark.long
def test_layouts_of_all_depths_give_what_session_window_gives(spark):
    query = fw.Query(time="ts", keys=["k"], windows=SETS["beside other windows"], aggregates=AGGREGATES)
    events = frame_of(spark, rows_of(random.Random(5)))
    plan = optimize(query, rate=1000, unit="1 second").passes[0]
    on_spark = SparkColumns(query, events, text_as_bytes=True)
    target = spark_batch.compile_for(plan, on_spark).target
    expected = by_instance(query, naive(query, events))
    ways = {len(each.levels): each.levels for each in layouts(plan, None)}
    assert len(ways) > 2
    for depth, distribution in zip(
        ways, cycle([Distribution.EVENTS_BY_KEY, Distribution.BY_KEY, Distribution.BY_LEVEL])
    ):
        steps = physical.compile(plan, target, Layout(ways[depth], distribution))
        assert_equal(query, by_instance(query, spark_batch.render(steps, on_spark, events)), expected)


def test_holistic_functions_filters_and_conditions_go_with_sessions(spark):
    aggregates = ["median(v) AS m", "count(DISTINCT v) AS d", "max(v) FILTER (WHERE v > 1) AS f"]
    query = fw.Query(
        time="ts", keys=["k"], windows=SETS["five gaps"], aggregates=aggregates, where="v IS NULL OR v < 3"
    )
    events = frame_of(spark, rows_of(random.Random(6)))
    expected = by_instance(query, naive(query, events))
    assert_equal(query, by_instance(query, optimize(query).run(events)), expected)


def test_panes_are_read_instead_of_events_where_these_are_dense(spark):
    events = spark.range(20_000).selectExpr("timestamp_micros(id * 1000 + id div 2000 * 60000000) AS ts", "id % 7 AS v")
    query = fw.Query(
        time="ts", windows=[fw.session("5 seconds"), fw.session("30 seconds")], aggregates=["sum(v)", "count(*) AS n"]
    )
    plan = optimize(query, rate=1000, unit="1 second")
    assert any(node.parent == "5 seconds" for node in plan.nodes)
    assert differing_rows(plan.run(events), naive(query, events)) == 0
    assert plan.run(events).where("window_id = 'session 30 seconds'").count() == 10


STATEMENTS = {
    "a struct": "SELECT k, session_window, count(*) AS n FROM events GROUP BY k, session_window(ts, '5 seconds')",
    "its ends": "SELECT session_window.start AS s, session_window.end AS e, sum(v) AS v FROM events "
    "GROUP BY session_window(ts, '20 seconds')",
    "a union": "SELECT k, session_window.start AS s, count(*) AS n FROM events GROUP BY k, "
    "session_window(ts, '5 seconds') UNION ALL SELECT k, window.start, count(*) FROM events GROUP BY k, "
    "window(ts, '10 seconds')",
    "a union with other conditions": "SELECT session_window.start AS s, count(*) AS n FROM events WHERE v > 1 GROUP BY "
    "session_window(ts, '5 seconds') UNION ALL SELECT session_window.start, count(*) FROM events GROUP BY "
    "session_window(ts, '20 seconds')",
    "having": "SELECT k, session_window.end AS e, max(v) AS m FROM events GROUP BY k, session_window(ts, '5 seconds') "
    "HAVING count(*) > 2",
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_sql_with_session_window_gives_what_spark_gives(spark, name):
    frame_of(spark, rows_of(random.Random(name))).createOrReplaceTempView("events")
    found, expected = fw.sql(spark, STATEMENTS[name]), spark.sql(STATEMENTS[name])
    assert columns_of(found) == columns_of(expected)
    assert differing_rows(found, expected) == 0
    assert found.count() > 3


def test_flinks_session_and_windows_name_the_same_sessions(spark):
    frame_of(spark, rows_of(random.Random(8))).createOrReplaceTempView("events")
    expected = spark.sql(
        "SELECT k, session_window.start AS s, count(*) AS n FROM events GROUP BY k, session_window(ts, '5 seconds')"
    )
    flink = "SELECT k, SESSION_START(ts, INTERVAL '5' SECOND) AS s, count(*) AS n FROM events GROUP BY k, "
    assert differing_rows(fw.sql(spark, f"{flink}SESSION(ts, INTERVAL '5' SECOND)"), expected) == 0
    several = "SELECT k, window_start AS s, count(*) AS n FROM events GROUP BY k, WINDOWS(ts, 'SESSION 5 seconds')"
    assert differing_rows(fw.sql(spark, several), expected) == 0


@pytest.mark.parametrize("search", ["best", "none", "factor"])
def test_the_text_of_a_plan_gives_the_same_on_spark_and_duckdb(spark, search):
    rows = rows_of(random.Random(9))
    windows = [*SETS["beside other windows"][:4], fw.session("1 hour")]
    aggregates = ["sum(v) AS total", "count(*) AS n"]
    query = fw.Query(time="ts", keys=["k"], windows=windows, aggregates=aggregates)
    plan = optimize(query, search=search)
    events = frame_of(spark, rows)
    events.createOrReplaceTempView("events")
    expected = by_instance(query, naive(query, events))
    assert_equal(query, by_instance(query, spark.sql(plan.sql())), expected)
    with duckdb.connect() as db:
        db.execute("CREATE TABLE raw (ts BIGINT, k VARCHAR, v INT)")
        db.executemany("INSERT INTO raw VALUES (?, ?, ?)", [tuple(row.values()) for row in rows])
        db.execute("CREATE TABLE events AS SELECT * REPLACE (make_timestamp(ts) AS ts) FROM raw")
        times = "epoch_us(window_start), epoch_us(window_end)"
        found = db.execute(f"SELECT k, window_id, {times}, total, n FROM ({plan.sql(dialect='duckdb')})").fetchall()
    in_micros = {(*group[:-2], *map(_micros, group[-2:])): values for group, values in expected.items()}
    assert {row[:4]: (int(row[4]) if row[4] is not None else None, row[5]) for row in found} == in_micros


def batches_of(rng):
    """Bursts of events, out of order within the delay, in several micro-batches."""
    seconds, at = [], 10
    while len(seconds) < 200:
        at += rng.choice([0, 1, 1, 2, 5, 6, 20, 21, 45])
        seconds.append(at)
    seconds.sort(key=lambda second: second + rng.randrange(20))
    edges = [0, 40, 41, 90, 150, 200]
    return [
        [
            {"ts": second, "k": rng.choice("ab"), "v": rng.choice([None, rng.randrange(9)])}
            for second in seconds[low:high]
        ]
        for low, high in pairwise(edges)
    ]


STREAM_SETS = {
    "one gap": [fw.session("5 seconds")],
    "gaps and others": [
        fw.session("5 seconds"),
        fw.session("20 seconds"),
        fw.tumbling("5 seconds"),
        fw.hopping("30 seconds", "10 seconds"),
        fw.tumbling("1 minute"),
    ],
}


@pytest.mark.long
@pytest.mark.usefixtures("chained")
@pytest.mark.parametrize("search", ["best", "none"])
@pytest.mark.parametrize(("name", "keys"), [("one gap", ["k"]), ("gaps and others", ["k"]), ("gaps and others", [])])
def test_a_stream_gives_batchs_sessions_and_flush_the_rest(spark, tmp_path, name, keys, search):
    rng = random.Random(f"{name} {keys}")
    schema = "ts timestamp, k string, v int"
    events = write_batches(spark, tmp_path / "in", batches_of(rng), schema)
    query = fw.Query(
        time="ts", keys=keys, windows=STREAM_SETS[name], aggregates=["sum(v)", "avg(v) AS m", "count(*) AS n"]
    )
    plan = optimize(query, search=search, rate=100, unit="1 second")
    running = finish(plan.run(stream_of(spark, tmp_path / "in", schema)), "sessions")
    found, everything = by_instance(query, spark.table("sessions")), by_instance(query, plan.run(events))
    # Panes of five seconds come out when they are whole: a session may wait as long for its last one.
    watermark = watermark_of(running)
    due = {group for group in everything if _end(group) + timedelta(seconds=5) <= watermark}
    assert 3 < len(due) <= len(found) < len(everything)
    assert due <= found.keys()
    assert_equal(query, found, {group: everything[group] for group in found})
    whole = spark.table("sessions").unionAll(plan.flush(events, running))
    assert_equal(query, by_instance(query, whole), everything)
    assert len(running.lastProgress["stateOperators"]) == (2 if search == "best" else 1)


def _end(group):
    return datetime.fromisoformat(group[-1]).replace(tzinfo=UTC)


@pytest.mark.long
def test_a_stream_in_complete_mode_has_sessions_and_one_that_updates_has_none(spark, tmp_path):
    schema = "ts timestamp, k string, v int"
    events = write_batches(spark, tmp_path / "in", batches_of(random.Random(3)), schema)
    query = fw.Query(time="ts", keys=["k"], windows=STREAM_SETS["gaps and others"], aggregates=["sum(v)"])
    plan = optimize(query)
    stream = stream_of(spark, tmp_path / "in", schema)
    finish(plan.run(stream, mode="complete"), "complete", "complete")
    assert_equal(query, by_instance(query, spark.table("complete")), by_instance(query, plan.run(events)))
    with pytest.raises(OptionError, match="mode 'update' has no sessions"):
        plan.run(stream, mode="update")


def test_several_queries_with_sessions_run_on_a_batch_and_not_on_one_stream(spark, tmp_path):
    schema = "ts timestamp, k string, v int"
    events = write_batches(spark, tmp_path / "in", batches_of(random.Random(4)), schema)
    visits = fw.Query(
        time="ts", keys=["k"], windows=[fw.session("5 s")], aggregates=["sum(v)"], where="v > 3", name="a"
    )
    totals = fw.Query(time="ts", windows=[fw.session("5 s"), fw.tumbling("5 s")], aggregates=["sum(v)"], name="b")
    plan = optimize([visits, totals])
    for query in (visits, totals):
        assert differing_rows(plan.run(events)[query.name], naive(query, events)) == 0
    with pytest.raises(QueryError, match="sessions"):
        plan.run(stream_of(spark, tmp_path / "in", schema))
