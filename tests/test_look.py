"""A quick look at a batch of events: what it finds, what it costs, and what is chosen by it."""

from __future__ import annotations

import random
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as T

import factor_windows as fw
from factor_windows.algebra.pane_row import Packing
from factor_windows.cost.statistics import Look
from factor_windows.engines import spark_batch
from factor_windows.engines.spark_columns import SparkColumns
from factor_windows.physical import choose
from factor_windows.physical.work import Work
from factor_windows.spark import footers
from factor_windows.spark.compare import differing_rows
from factor_windows.spark.naive import naive

SECOND = 1_000_000


def query_of(*windows, keys=("k",), aggregates=("sum(v)",)):
    return fw.Query(time="ts", keys=keys, windows=windows, aggregates=aggregates)


def saved(folder, times, *, keys=20, name="events.parquet"):
    """Write events at some times, in microseconds, as Parquet without Spark."""
    table = pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            "k": pa.array([f"key {place % keys}" for place in range(len(times))]),
            "v": pa.array([float(place % 7) for place in range(len(times))]),
        }
    )
    pq.write_table(table, folder / name, row_group_size=1000)
    return str(folder / name)


@pytest.mark.parametrize("rows", [0, 1, 300_001])
def test_footers_say_how_many_rows_there_are(tmp_path, rows):
    wide = {f"column {place}": pa.array([place] * rows, pa.int64()) for place in range(40)}
    flags = {"flag": pa.array([True] * rows), "list": pa.array([[1.5]] * rows), "text": pa.array(["é"] * rows)}
    for place, version in enumerate(("1.0", "2.6")):
        pq.write_table(pa.table(wide | flags), tmp_path / f"{place}.parquet", version=version, row_group_size=7_000)
    found = footers.count_rows([f"file://{tmp_path}/0.parquet", str(tmp_path / "1.parquet")])
    assert found == (2 * rows if rows else 0)


def test_of_many_files_some_footers_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(footers, "MOST_FILES", 2)
    files = [saved(tmp_path, range(100), name=f"{place}.parquet") for place in range(10)]
    assert footers.count_rows(files) == pytest.approx(1000)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"ts,v\n1,2\n", b"\xff" * 40 + b"\x10\0\0\0PAR1", b"xxxxxxxxPARE"])
def test_what_is_not_parquet_has_no_footer(tmp_path, content):
    (tmp_path / "events").write_bytes(content)
    assert footers.count_rows([str(tmp_path / "events")]) is None
    assert footers.count_rows([f"{tmp_path}/none"]) is None
    assert footers.count_rows(["s3a://bucket/events.parquet"]) is None
    assert footers.count_rows([]) is None


def look_at(query, events):
    plan = fw.optimize(query).passes[0]
    return spark_batch.look_at(plan, SparkColumns(query, events, text_as_bytes=True), events)[0]


@pytest.mark.parametrize("is_shuffled", [False, True])
def test_a_head_says_how_dense_events_are_in_any_order(spark, tmp_path, monkeypatch, is_shuffled):
    monkeypatch.setattr(spark_batch, "HEAD_NANOSECONDS", -1)
    monkeypatch.setattr(spark_batch, "FEW_EVENTS", 0)
    monkeypatch.setattr(spark_batch, "VERY_FEW_EVENTS", 0)
    times = [place * SECOND // 10 for place in range(20_000)]
    keys = [place % 20 for place in range(20_000)]
    both = list(zip(times, keys, strict=True))
    if is_shuffled:
        random.Random(7).shuffle(both)
    path = saved(tmp_path, [time for time, _ in both])
    events = spark.read.parquet(path)
    found = look_at(query_of(fw.tumbling("1m")), events)
    assert found.events == 20_000
    assert found.rate == pytest.approx(10, rel=0.05)
    assert found.keys == 20


def test_few_events_are_counted_and_nothing_runs_on_spark(spark, tmp_path):
    events = spark.read.parquet(saved(tmp_path, range(5_000)))
    query = query_of(fw.tumbling("1m"), fw.tumbling("2m"))
    with NoJobs(spark):
        assert look_at(query, events) == Look(5_000)
        fw.optimize(query).run(events)
        fw.aggregate(events, time="ts", keys=["k"], windows=query.windows, aggregates=["sum(v)"])


def test_what_costs_a_pass_is_not_looked_at(spark, monkeypatch):
    monkeypatch.setattr(spark_batch, "HEAD_NANOSECONDS", -1)
    monkeypatch.setattr(spark_batch, "FEW_EVENTS", 0)
    monkeypatch.setattr(spark_batch, "VERY_FEW_EVENTS", 0)
    events = spark.range(1_000).selectExpr("timestamp_seconds(id) AS ts", "id % 3 AS k", "id AS v")
    query = query_of(fw.tumbling("1m"), fw.tumbling("2m"))
    with NoJobs(spark):
        for made in (events.orderBy("v"), events.join(events.select("k").distinct(), "k"), events.distinct()):
            assert look_at(query, made).rate is None
        fw.optimize(query).run(events, statistics=None)
    assert look_at(query, events.where("v > 7")).rate == pytest.approx(1)


class NoJobs:
    """Fail if a job has run on Spark."""

    def __init__(self, spark):
        self.context = spark.sparkContext

    def __enter__(self):
        self.context.setJobGroup("looked", "what a look runs")

    def __exit__(self, *trouble):
        jobs = self.context.statusTracker().getJobIdsForGroup("looked")
        self.context.setLocalProperty("spark.jobGroup.id", None)
        assert not list(jobs)


def test_spark_does_not_know_how_many_rows_a_collection_has(spark):
    events = spark.createDataFrame([(1, 2.0)], "k int, v double").selectExpr("current_timestamp() AS ts", "*")
    assert str(look_at(query_of(fw.tumbling("1m")), events)) in ("an unknown number of events", "1 events")


def test_few_events_are_fanned_out_at_once_and_many_go_through_panes(spark):
    windows = [fw.tumbling(f"{seconds}s") for seconds in range(20, 120, 10)]
    plan = fw.optimize(query_of(*windows)).passes[0]
    levels = {}
    for count in (1_000, 50_000_000):
        events = spark.range(count).selectExpr("timestamp_millis(id * 10) AS ts", "id % 20 AS k", "id AS v")
        compiled = spark_batch.explained(plan, events)
        levels[count] = len(compiled.layout.levels)
        assert f"{count:,} events" in compiled.layout.notes[0]
    assert levels == {1_000: 1, 50_000_000: 2}


def test_a_head_is_looked_at_only_where_it_can_pay_for_itself(spark):
    def events(count):
        return spark.range(count).selectExpr("timestamp_millis(id * 10) AS ts", "id % 20 AS k", "id AS v")

    two = query_of(fw.tumbling("1m"), fw.tumbling("5m"))
    ten = query_of(*(fw.tumbling(f"{seconds}s") for seconds in range(20, 120, 10)))
    with NoJobs(spark):
        assert look_at(two, events(3_000_000)) == Look(3_000_000)
        assert look_at(ten, events(100_000)) == Look(100_000)
    for query, count in ((two, 100_000_000), (ten, 3_000_000)):
        assert look_at(query, events(count)).rate == pytest.approx(100, rel=0.01)


@pytest.mark.parametrize("count", [1e4, 1e6, 1e7, 1e9])
def test_without_a_head_the_layout_is_one_that_loses_little_whatever_the_density(count):
    """At the density that is taken, the best layout of any other may lose more than the regret, but not it."""
    query = query_of(fw.tumbling("1m"), fw.tumbling("15m"), fw.tumbling("1h"))
    plan = fw.optimize(query).passes[0]
    counted = replace(plan, cost_model=choose.spark_cost(plan).seen(Look(count)))
    packing = Packing.of(query)
    regret, model = choose.least_regret(counted, partitions=8, packing=packing)
    taken = choose.choose_layout(replace(plan, cost_model=model), partitions=8, packing=packing)
    for density in choose.DENSITIES:
        rate = density * model.keys * model.unit / min(window.range for window in query.windows)
        other = replace(model, rate=rate, units=count / rate)
        best = choose.choose_layout(replace(plan, cost_model=other), partitions=8, packing=packing)
        costs = [Work(plan, other, 8).price(each) * other.units for each in (taken, best)]
        assert costs[0] - costs[1] <= regret + 1


def test_two_windows_that_share_too_little_run_as_the_query_is(spark):
    """A fan-out makes two rows of an event, which costs more than reading it twice; panes of many keys do not help."""
    events = spark.range(3_000_000).selectExpr("timestamp_seconds(id) AS ts", "id % 500000 AS k", "id AS v")
    query = query_of(fw.tumbling("1m"), fw.tumbling("5m"), aggregates=("avg(v)", "max(v)", "count(*)"))
    plan = fw.optimize(query)
    assert spark_batch.OWN_QUERIES in plan.explain(events=events)
    few = events.limit(1_000)
    assert sorted(map(str, plan.run(few).collect())) == sorted(map(str, naive(query, few).collect()))
    first = query_of(fw.tumbling("1m"), fw.tumbling("5m"), aggregates=("first(v)",))
    assert spark_batch.OWN_QUERIES not in fw.optimize(first).explain(events=events)


def test_sparse_events_are_not_grouped_twice(spark):
    windows = [fw.tumbling("1m"), fw.tumbling("2m"), fw.tumbling("5m")]
    events = spark.range(20_000_000).selectExpr("timestamp_seconds(id) AS ts", "uuid() AS k", "id AS v")
    compiled = spark_batch.explained(fw.optimize(query_of(*windows)).passes[0], events)
    assert compiled.layout.distribution.value == "events by key" or len(compiled.layout.levels) == 1


def test_a_plan_of_one_window_is_the_users_own_query(spark):
    events = spark.range(100).selectExpr("timestamp_seconds(id) AS ts", "id % 3 AS k", "id AS v")
    query = query_of(fw.tumbling("1m"))
    plan = fw.optimize(query)
    assert spark_batch.OWN_QUERY in plan.explain(events=events)
    assert fw.wide(plan.run(events)).count() == 6


def test_first_and_last_of_one_window_are_those_by_time(spark):
    events = spark.range(100).selectExpr("timestamp_seconds(99 - id) AS ts", "id % 3 AS k", "id AS v").repartition(4)
    query = query_of(fw.tumbling("1h"), keys=(), aggregates=("first(v) AS f", "last(v) AS l"))
    [row] = fw.optimize(query).run(events).collect()
    assert (row.f, row.l) == (99, 0)


@pytest.mark.parametrize("slide", ["10s", "500 milliseconds"])
def test_times_without_a_zone_are_counted_by_the_clock_also_before_1970(spark, slide):
    """Whole seconds are enough for windows of whole seconds; a second that began before 1970 is not cut to the next."""
    micros = [-1, -500_000, -1_000_000, -1_000_001, 0, 1, 999_999, 10_000_000, -10_000_001, 1_710_037_800_123_456]
    events = spark.createDataFrame([(each,) for each in micros], "us bigint").selectExpr(
        "TIMESTAMP_NTZ '1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, us / 1000000BD) AS ts", "us AS v"
    )
    query = query_of(fw.tumbling(slide), fw.tumbling("20s"), keys=(), aggregates=("count(*)", "min(v)"))
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        results = fw.optimize(query).run(events), naive(query, events)
        found, expected = (sorted(map(str, rows.collect())) for rows in results)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert found == expected


@pytest.mark.parametrize("lengths", [["20s"], ["20s", "30s", "1m"]])
def test_a_session_may_leave_out_what_it_groups_by(spark, lengths):
    events = spark.range(100).selectExpr("timestamp_seconds(id) AS ts", "id % 3 AS k", "id AS v")
    query = query_of(*map(fw.tumbling, lengths))
    expected = sorted(map(str, naive(query, events).collect()))
    try:
        spark.conf.set("spark.sql.retainGroupColumns", "false")
        results = fw.optimize(query).run(events, statistics=None), naive(query, events)
        found, by_hand = (sorted(map(str, rows.collect())) for rows in results)
    finally:
        spark.conf.unset("spark.sql.retainGroupColumns")
    assert found == by_hand == expected


def test_so_may_a_session_in_which_results_are_compared_widened_or_analyzed(spark):
    events = spark.range(100).selectExpr("timestamp_seconds(id) AS ts", "id % 3 AS `k ey`", "id AS v")
    query = fw.Query(time="ts", keys=["`k ey`"], windows=[fw.tumbling("20s")], aggregates=["sum(v) AS s"])

    def seen():
        result = fw.optimize(query).run(events)
        wide = fw.wide(result), fw.wide(result, latest=True), fw.wide(result.selectExpr("*"))
        rows = [sorted(map(str, each.collect())) for each in wide]
        measured = fw.analyze(events, time="ts", keys=["`k ey`"], sample=1)
        return rows, measured, differing_rows(result, naive(query, events))

    expected = seen()
    try:
        spark.conf.set("spark.sql.retainGroupColumns", "false")
        assert seen() == expected
    finally:
        spark.conf.unset("spark.sql.retainGroupColumns")
    assert expected[-1] == 0


@pytest.mark.parametrize(("name", "aggregate"), [("true", "max(true)"), ("a b", "max(`a b`)"), ("V", "max(v)")])
def test_a_columns_type_is_known_without_spark_only_where_its_name_means_the_column(spark, name, aggregate):
    """A literal is no column, whatever the columns' names, and Spark tells names apart without case."""
    events = spark.range(3).selectExpr("timestamp_seconds(id) AS ts", f"'x' AS `{name}`")
    query = fw.Query(time="ts", windows=[fw.tumbling("1s"), fw.tumbling("2s")], aggregates=[aggregate])
    expected = T.BooleanType() if name == "true" else T.StringType()
    assert SparkColumns(query, events).types.results[0].type == expected
    assert fw.optimize(query).run(events).count() == 5


@pytest.mark.parametrize("lengths", [["20s"], ["20s", "1m"]])
def test_what_is_made_of_several_calls_is_shown_by_its_name(spark, lengths):
    events = spark.range(100).selectExpr("timestamp_seconds(id) AS ts", "id AS v")
    windows = list(map(fw.tumbling, lengths))
    found = fw.aggregate(events, time="ts", windows=windows, aggregates=["max(v) - min(v) AS spread"])
    assert {row["spread"] for row in found.where("window_id = '20 seconds'").collect()} == {19}


@pytest.mark.parametrize("condition", ["1 = 0", "device = -1"])
def test_no_events_have_no_windows(spark, condition):
    windows = [fw.tumbling("20m"), fw.tumbling("30m"), fw.tumbling("1h")]
    events = spark.range(10).selectExpr("timestamp_seconds(id) AS ts", "id AS device").where(condition)
    for run in (fw.aggregate, lambda events, **asked: fw.optimize(fw.Query(**asked)).run(events)):
        for rows in (events, events.limit(0)):
            assert run(rows, time="ts", keys=["device"], windows=windows, aggregates=["count(*)"]).count() == 0
