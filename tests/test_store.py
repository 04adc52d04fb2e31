"""A store gives what a batch over all its events gives, whatever happened on the way."""

import json
import random
from datetime import datetime, timedelta

import pytest
from comparing import by_instance, columns_of, equal

import factor_windows as fw

SCHEMA = "ts timestamp, k string, i int, v double"
BASE = datetime(2024, 3, 29)
FIXED = [fw.tumbling("1 hour"), fw.hopping("6 hours", "2 hours"), fw.hopping("3 days", "1 day")]
OTHERS = [fw.tumbling("2 hours"), fw.hopping("5 hours", "1 hour"), fw.calendar("1 month"), fw.session("90 minutes")]
CALENDAR = [
    fw.calendar("1 day", zone="Europe/Berlin"),
    fw.calendar("1 month", zone="Europe/Berlin"),
    fw.cumulating("1 day", step="6 hours"),
    fw.tumbling("45 minutes"),
]
SESSIONS = [fw.session("30 minutes"), fw.session("3 hours"), fw.tumbling("1 day")]


def rows_of(seed, number=120, days=8):
    drawn = random.Random(seed)
    return [
        (
            BASE + timedelta(seconds=drawn.randrange(days * 86_400), microseconds=drawn.randrange(1_000_000)),
            drawn.choice(["a", "b", None]),
            drawn.randrange(20),
            drawn.choice([None, drawn.random()]),
        )
        for _ in range(number)
    ]


def frame(spark, rows):
    return spark.createDataFrame(rows, SCHEMA)


def query_of(windows, aggregates=("sum(v)", "max(i)", "avg(v) AS mean", "count(*)"), keys=("k",), **more):
    return fw.Query(time="ts", keys=keys, windows=windows, aggregates=aggregates, **more)


def expected(spark, query, rows):
    return by_instance(query, fw.optimize(query).run(frame(spark, rows), statistics=None))


def same(values, others):
    return others is not None and all(map(equal, values, others))


def assert_same(found, every):
    assert found.keys() == every.keys()
    assert [group for group, values in every.items() if not same(found[group], values)] == []


def assert_reads(spark, store, query, rows, **given):
    found = store.read(**given)
    windows = given.get("windows")
    asked = query if windows is None else query_of(windows, query.aggregates, query.keys, where=query.where)
    assert_same(by_instance(asked, found), expected(spark, asked, rows))


SETS = {
    "fixed": (FIXED, ("sum(v)", "max(i)", "avg(v) AS mean", "count(*)")),
    "calendar": (CALENDAR, ("min(v)", "stddev(v)", "last(i)")),
    "sessions": (SESSIONS, ("sum(i)", "count(v)")),
    "counted": (FIXED, ("median(i)", "count(DISTINCT i)", "sum(v)")),
    "formulas": (FIXED, ("max(v) - min(v) AS spread", "count(*)")),
}


@pytest.mark.long
@pytest.mark.parametrize("name", SETS)
def test_a_history_of_appends_reads_like_a_batch(spark, tmp_path, name):
    windows, aggregates = SETS[name]
    query = query_of(windows, aggregates)
    drawn = random.Random(name)
    store = fw.Store.create(spark, tmp_path / "store", query, finest="15 minutes" if name == "fixed" else None)
    rows = rows_of(name)
    drawn.shuffle(rows)
    there = []
    for number in range(5):
        batch = rows[number * 24 : (number + 1) * 24]
        there += batch
        store.append(frame(spark, batch), batch=f"batch {number}")
        if number in (1, 3):
            store.append(frame(spark, batch), batch=f"batch {number}")
            store.compact()
        if number in (0, 1, 4):
            assert_reads(spark, store, query, there)
    if name == "fixed":
        assert_reads(spark, store, query, there, windows=OTHERS)
        store.compact()
        assert_reads(spark, store, query, there, windows=OTHERS)
    assert_reads(spark, fw.Store.open(spark, tmp_path / "store"), query, there)


def test_the_columns_are_those_of_a_run(spark, tmp_path):
    query = query_of(FIXED)
    store = fw.Store.create(spark, tmp_path / "store", query)
    events = frame(spark, rows_of(1))
    store.append(events)
    assert columns_of(store.read()) == columns_of(fw.optimize(query).run(events, statistics=None))


def upserted(table, query, changes):
    for group, values in by_instance(query, changes.drop("is_final")).items():
        table[group] = values


@pytest.mark.long
@pytest.mark.parametrize("name", ["fixed", "calendar", "counted"])
def test_changes_applied_as_upserts_are_what_is_read(spark, tmp_path, name):
    windows, aggregates = SETS[name]
    query = query_of(windows, aggregates)
    store = fw.Store.create(spark, tmp_path / "store", query)
    rows, table, version, there = rows_of(name), {}, 0, []
    for number in range(5):
        batch = rows[number * 24 : (number + 1) * 24]
        there += batch
        store.append(frame(spark, batch))
        if number == 2:
            store.compact()
        if number != 1:
            upserted(table, query, store.changes(since=version))
            version = store.version
            assert_same(table, by_instance(query, store.read()))
    store.compact()
    assert store.changes(since=version).count() == 0
    assert_same(table, expected(spark, query, there))


def test_only_windows_that_new_events_are_in_change(spark, tmp_path):
    query = query_of(FIXED)
    store = fw.Store.create(spark, tmp_path / "store", query)
    store.append(frame(spark, rows_of(1)))
    for compacts in (False, True):
        before = by_instance(query, store.read())
        version = store.version
        store.append(frame(spark, [(BASE + timedelta(days=2, hours=3), "a", 7, 0.5)]))
        if compacts:
            store.compact()
        now = by_instance(query, store.read())
        changed = by_instance(query, store.changes(since=version).drop("is_final"))
        differing = {group for group, values in now.items() if not same(values, before.get(group))}
        assert changed.keys() == differing
        assert {group[0] for group in changed} == {"a"}


def test_a_window_is_final_once_events_went_so_much_further(spark, tmp_path):
    query = query_of([fw.tumbling("1 hour")], ["count(*)"], keys=())
    store = fw.Store.create(spark, tmp_path / "store", query, delay="30 minutes")

    def told(since):
        return {row.window_start.hour: row.is_final for row in store.changes(since=since).collect()}

    def append(*times):
        store.append(frame(spark, [(BASE + timedelta(minutes=each), "a", 1, 1.0) for each in times]))

    append(10, 70)
    assert told(0) == {0: False, 1: False}
    append(95)
    # The first hour has no new event, and has become final.
    assert told(1) == {0: True, 1: False}
    append(96, 20)
    assert told(2) == {0: True, 1: False}
    append(200)
    assert told(3) == {1: True, 3: False}
    assert told(0) == {0: True, 1: True, 3: False}
    assert {row.is_final for row in store.changes(since=0, delay="1 day").collect()} == {False}


def test_reads_between_two_times_give_the_windows_that_start_there(spark, tmp_path):
    query = query_of([*FIXED, *CALENDAR, *SESSIONS[:1]])
    store = fw.Store.create(spark, tmp_path / "store", query)
    rows = rows_of(3)
    store.append(frame(spark, rows[:60]))
    store.compact()
    store.append(frame(spark, rows[60:]))
    every = expected(spark, query, rows)
    low, high = BASE + timedelta(days=2, hours=1), BASE + timedelta(days=4)
    found = by_instance(query, store.read(since=low, until=str(high)))
    inside = {group: values for group, values in every.items() if str(low) <= group[2] < str(high)}
    assert 0 < len(inside) < len(every)
    assert_same(found, inside)
    assert_same(
        by_instance(query, store.read(since=low)),
        {group: values for group, values in every.items() if str(low) <= group[2]},
    )


def test_panes_expire_and_coarser_ones_stay(spark, tmp_path):
    windows = [fw.tumbling("30 minutes"), *FIXED, fw.session("30 minutes")]
    query = query_of(windows)
    store = fw.Store.create(spark, tmp_path / "store", query)
    rows = rows_of(4)
    store.append(frame(spark, rows[:90]))
    store.expire("3 days", keep="1 hour")
    late = [(BASE + timedelta(hours=5), "a", 3, 0.25)]
    rows = [*rows[:90], *late, *rows[90:]]
    store.append(frame(spark, rows[90:]))
    gone = max(row[0] for row in rows[:90]) - timedelta(days=3)
    every = expected(spark, query, rows)

    def is_left(group):
        if group[1] == "30 minutes":
            return group[2] >= str(gone)
        return group[1] != "session 30 minutes" or group[2] >= str(gone + timedelta(minutes=60))

    left = {group: values for group, values in every.items() if is_left(group)}
    assert len(left) < len(every)
    for _ in range(2):
        assert_same(by_instance(query, store.read()), left)
        store.compact()
    with pytest.raises(fw.StoreError, match="have expired, so 30 minutes cannot be read since"):
        store.read(since=BASE)
    assert_reads(spark, store, query, rows, windows=FIXED)
    store.expire("3 days", keep="1 hour")
    store.expire("1 day")
    assert {each["since"] for each in store.describe()["resolutions"]} != {None}
    assert 0 < store.read(windows=FIXED).count() < len(every)
    with pytest.raises(fw.StoreError, match="can no longer be built from them"):
        store.expire("1 day", keep="90 minutes")


def test_a_session_whose_first_pane_has_expired_is_not_shown(spark, tmp_path):
    store = fw.Store.create(spark, tmp_path / "store", query_of([fw.session("10 minutes")]))
    store.append(frame(spark, [(BASE + timedelta(minutes=each), "a", 1, 1.0) for each in (8, 16, 65)]))
    store.expire("60 minutes")
    store.append(frame(spark, [(BASE + timedelta(minutes=66), "a", 1, 1.0)]))
    store.compact()
    assert [row.window_start.hour for row in store.read().collect()] == [1]


def test_what_is_final_goes_by_the_windows_own_end(spark, tmp_path):
    output = ["k", "window_id", "window_start", "date(window_end) AS window_end", "n"]
    query = query_of([fw.tumbling("1 hour")], ["count(*) AS n"], output=output)
    store = fw.Store.create(spark, tmp_path / "store", query, delay="1 hour")
    store.append(frame(spark, [(BASE + timedelta(hours=12, minutes=30), "a", 1, 1.0)]))
    [row] = store.changes(since=0).collect()
    assert (row.n, row.is_final) == (1, False)


@pytest.mark.parametrize(
    ("time", "windows"),
    [("CAST(ts AS TIMESTAMP_NTZ)", FIXED[:1]), ("CAST(ts AS DATE)", [fw.tumbling("1 day"), fw.calendar("1 month")])],
)
def test_local_times_are_asked_for_as_they_are(spark, tmp_path, time, windows):
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        query = fw.Query(time=time, windows=windows, aggregates=["count(*)"])
        store = fw.Store.create(spark, tmp_path / "store", query)
        store.append(spark.sql("SELECT '2024-03-30' AS ts UNION ALL SELECT '2024-03-31' UNION ALL SELECT '2024-04-01'"))
        day = [
            row for row in store.read(since="2024-03-31", until="2024-04-01").collect() if "month" not in row.window_id
        ]
        assert [str(row.window_start) for row in day] == ["2024-03-31 00:00:00"]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_keys_may_have_any_name(spark, tmp_path):
    names = ("kind", "chunk", "pane_kind", "state_0")
    events = frame(spark, rows_of(7, 20)).selectExpr("*", *(f"i % 2 AS {name}" for name in names))
    query = query_of(FIXED, ["sum(v)"], keys=names)
    store = fw.Store.create(spark, tmp_path / "store", query)
    store.append(events)
    store.compact()
    assert_same(by_instance(query, store.read()), by_instance(query, fw.optimize(query).run(events)))


def test_several_queries_share_panes(spark, tmp_path):
    queries = [
        query_of(FIXED, name="all"),
        query_of([fw.tumbling("1 day")], ["max(v)", "count(*)"], keys=(), where="i < 10", name="few"),
    ]
    store = fw.Store.create(spark, tmp_path / "store", queries)
    rows = rows_of(5)
    store.append(frame(spark, rows[:50]))
    store.compact()
    store.append(frame(spark, rows[50:]))
    assert "panes of" in store.explain()
    found = store.read()
    changed = store.changes(since=0)
    for query in queries:
        every = expected(spark, query, rows)
        assert_same(by_instance(query, found[query.name]), every)
        assert_same(by_instance(query, changed[query.name].drop("is_final")), every)


def test_explain_says_which_panes_answer(spark, tmp_path):
    store = fw.Store.create(spark, tmp_path / "store", query_of(FIXED))
    store.append(frame(spark, rows_of(6)))
    assert "appended since the last compaction" in store.explain()
    store.compact()
    text = store.explain()
    assert text.splitlines()[0].startswith("panes of 1 hour")
    assert "panes of 1 day" in text
    assert "  3 days / 1 day" in text
    assert text.splitlines()[-1] == "appended since the last compaction: 0 rows in 0 files, of 1 hour"


def test_describe_is_plain(spark, tmp_path):
    store = fw.Store.create(spark, tmp_path / "store", query_of(FIXED), delay="1 hour")
    assert store.describe()["last_event"] is None
    store.append(frame(spark, rows_of(6)), batch="one")
    told = json.loads(json.dumps(store.describe()))
    assert told["version"] == store.version == 1
    assert told["batches"] == 1
    assert told["appended"]["files"] > 0


def test_an_earlier_version_is_read_as_it_was(spark, tmp_path):
    query = query_of(FIXED)
    store = fw.Store.create(spark, tmp_path / "store", query)
    rows = rows_of("travel", 60)
    for begin in (0, 20, 40):
        store.append(frame(spark, rows[begin : begin + 20]))
    for version in (1, 2, 3):
        assert_same(by_instance(query, store.read(version=version)), expected(spark, query, rows[: version * 20]))
    store.compact(retain="0 seconds")
    with pytest.raises(fw.StoreError, match=r"version 2 of the store in .* is no longer there"):
        store.read(version=2)
    with pytest.raises(fw.OptionError, match="version 9 is not among the versions 0 to 4 of the store"):
        store.read(version=9)
