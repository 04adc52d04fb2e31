"""Half a plan: partial results of any split of the events, merged, are what the plan gives of all of them."""

import json
import random
from datetime import timedelta

import pytest
from comparing import by_instance, columns_of
from test_store import BASE, CALENDAR, FIXED, SESSIONS, assert_same, frame, query_of, rows_of

import factor_windows as fw

SETS = {
    "fixed": (FIXED, ("min(v)", "sum(i)", "avg(v) AS m", "stddev(v)", "first(i)", "corr(i, v)", "max_by(i, v)")),
    "no common divisor": ([fw.tumbling("15s"), fw.tumbling("17s"), fw.hopping("19m", "7m")], ("sum(v)", "max(i)")),
    "calendar": (CALENDAR, ("max(v)", "count(i)", "max(v) - min(v) AS spread")),
    "sessions": ([*SESSIONS, *FIXED], ("max(v)", "sum(i)")),
    "one window": ([fw.tumbling("1 hour")], ("sum(v)", "approx_count_distinct(i)")),
    "counted": (FIXED, ("median(i)", "count(DISTINCT i)", "sum(v)")),
    "counted twice": (FIXED[:2], ("median(i)", "count(DISTINCT k)", "sum(v)", "count(*) FILTER (WHERE i > 3)")),
    "counted in sessions": ([*SESSIONS[:2], *FIXED[:1]], ("median(i)", "sum(v)")),
}


def split(spark, rows, number, seed):
    """Split events at random, each batch with events of all times."""
    drawn = random.Random(seed)
    parts = [[] for _ in range(number)]
    for row in rows:
        drawn.choice(parts).append(row)
    return [frame(spark, part) for part in parts]


@pytest.mark.long
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("keys", [("k",), ()], ids=["keyed", "not keyed"])
def test_partials_of_any_split_merge_to_what_a_run_gives(spark, name, keys):
    windows, aggregates = SETS[name]
    query = query_of(windows, aggregates, keys)
    plan, rows = fw.optimize(query), rows_of(f"{name} {keys}", 150)
    first, *others = (plan.partials(part) for part in split(spark, rows, 3, name))
    panes = first
    for other in others:
        panes = panes.unionByName(other)
    expected = plan.run(frame(spark, rows), statistics=None)
    merged = plan.merge(panes)
    if name != "one window":
        # One window runs as the user's own query, whose times Spark takes for nullable.
        assert columns_of(merged) == columns_of(expected)
    assert_same(by_instance(query, merged), by_instance(query, expected))


@pytest.mark.long
def test_several_queries_merge_by_name(spark):
    queries = [
        query_of(FIXED, ["sum(v)"], name="all"),
        query_of([fw.tumbling("1 day")], ["max(i)"], keys=(), where="v < 0.5", name="some"),
        query_of([fw.session("1 hour")], ["median(i)"], name="visits"),
    ]
    plan, rows = fw.optimize(queries), rows_of("several", 150)
    one, two = (plan.partials(part) for part in split(spark, rows, 2, 1))
    with plan.merge(one.unionByName(two)) as merged, plan.run(frame(spark, rows)) as expected:
        for query in queries:
            assert columns_of(merged[query.name]) == columns_of(expected[query.name])
            assert_same(by_instance(query, merged[query.name]), by_instance(query, expected[query.name]))


def test_panes_that_were_written_are_read_by_another_plan(spark, tmp_path):
    query = query_of(FIXED, ["sum(v)", "max(i)", "count(*)"])
    plan, rows = fw.optimize(query), rows_of("written", 150)
    for number, part in enumerate(split(spark, rows, 3, 2)):
        plan.partials(part).write.mode("append" if number else "error").parquet(str(tmp_path / "panes"))
    panes = spark.read.parquet(str(tmp_path / "panes"))
    other = query_of([fw.tumbling("2 hours"), fw.session("1 hour")], ["max(i)"])
    found = by_instance(other, fw.optimize(other).merge(panes))
    assert_same(found, by_instance(other, fw.optimize(other).run(frame(spark, rows))))


def test_panes_have_the_columns_that_the_page_names(spark):
    query = query_of(FIXED, ["sum(v)", "median(i)"], keys=("k", "i + 1"))
    panes = fw.optimize(query).partials(frame(spark, rows_of(1, 20)))
    names = ["pane_node", "pane_start", "pane_first", "pane_last", "k", "key_1", "value_0"]
    # How often a value occurs is the count of all events that is always kept.
    assert panes.columns == [*names, "state_0", "state_1"]
    note = json.loads(panes.schema["pane_start"].metadata["factor_windows.panes"])
    assert note["format"] == 1
    assert note["passes"][0]["keys"] == ["k", "i + 1"]


def test_without_notes_the_schema_of_the_events_is_needed(spark):
    query = query_of(FIXED)
    plan, events = fw.optimize(query), frame(spark, rows_of(2))
    bare = plan.partials(events).withMetadata("pane_start", {})
    with pytest.raises(fw.PlanError, match=r"give the events, or their schema"):
        plan.merge(bare)
    expected = by_instance(query, plan.run(events))
    assert_same(by_instance(query, plan.merge(bare, schema=events.schema)), expected)
    assert_same(by_instance(query, plan.merge(bare, schema=events)), expected)


@pytest.mark.parametrize("kind", ["timestamp_ntz", "date"])
def test_other_times_than_timestamps_come_back_as_they_were(spark, kind):
    query = query_of([fw.tumbling("1 day"), fw.tumbling("3 days")])
    plan = fw.optimize(query)
    events = frame(spark, rows_of(3)).selectExpr(f"CAST(ts AS {kind}) AS ts", "k", "i", "v")
    panes = plan.partials(events)
    assert columns_of(plan.merge(panes)) == columns_of(plan.run(events))
    assert_same(by_instance(query, plan.merge(panes)), by_instance(query, plan.run(events)))


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.session.timeZone", "America/New_York"),
        ("spark.sql.retainGroupColumns", "false"),
        ("spark.sql.caseSensitive", "true"),
    ],
)
def test_settings_of_the_session_change_nothing(spark, tmp_path, setting, value):
    query = query_of([*FIXED[:2], *CALENDAR[:1]])
    rows = rows_of("settings", 60)
    before = spark.conf.get(setting)
    spark.conf.set(setting, value)
    try:
        expected = by_instance(query, fw.optimize(query).run(frame(spark, rows)))
        store = fw.Store.create(spark, tmp_path / "store", query)
        for part in split(spark, rows, 2, 5):
            store.append(part)
            store.compact()
        store.append(frame(spark, [(BASE + timedelta(days=40), "a", 1, 1.0)]))
        found = by_instance(query, store.read(until=BASE + timedelta(days=30)))
        assert_same(found, expected)
    finally:
        spark.conf.set(setting, before)


def test_mistakes_get_one_sentence(spark):
    events = frame(spark, rows_of(4, 20))
    plan = fw.optimize(query_of(FIXED, ["sum(v)"]))
    panes = plan.partials(events)
    with pytest.raises(fw.PlanError, match=r"kurtosis\(v\) needs all events at once"):
        fw.optimize(query_of(FIXED, ["kurtosis(v)"])).partials(events)
    with pytest.raises(fw.PlanError, match=r"these rows have no column pane_start"):
        plan.merge(events)
    with pytest.raises(fw.PlanError, match=r"these panes keep no max\(v\), which the query needs"):
        fw.optimize(query_of(FIXED, ["max(v)"])).merge(panes)
    with pytest.raises(fw.PlanError, match=r"their keys are k, not none"):
        fw.optimize(query_of(FIXED, ["sum(v)"], keys=())).merge(panes)
    with pytest.raises(fw.PlanError, match=r"their condition is none, not i > 3"):
        fw.optimize(query_of(FIXED, ["sum(v)"], where="i > 3")).merge(panes)
    with pytest.raises(fw.WindowError, match=r"the window 10 minutes cannot be made of panes of 1 hour"):
        fw.optimize(query_of([fw.tumbling("10 minutes")], ["sum(v)"])).merge(panes)
    with pytest.raises(fw.PlanError, match=r"these panes cannot answer the query: .*there is no column i;"):
        fw.optimize(query_of(FIXED, ["median(i)"])).merge(panes)
    later = json.dumps({"format": 99, "passes": []})
    with pytest.raises(fw.PlanError, match=r"these panes are of format 99"):
        plan.merge(panes.withMetadata("pane_start", {"factor_windows.panes": later}))
    with pytest.raises(fw.OptionError, match=r"these events are a stream"):
        plan.partials(spark.readStream.format("rate").load())
