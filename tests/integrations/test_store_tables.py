"""Stores in tables of Delta and Iceberg: versions are transactions of the format's own."""

import random
from uuid import uuid4

import pytest
from comparing import by_instance
from pyspark.sql import functions as F
from test_store import (
    FIXED,
    OTHERS,
    SCHEMA,
    SETS,
    assert_reads,
    assert_same,
    expected,
    frame,
    query_of,
    rows_of,
    upserted,
)

import factor_windows as fw
from factor_windows.store.table import Table


@pytest.mark.parametrize("name", [name for name in SETS if name != "formulas"])
def test_a_history_of_appends_reads_like_a_batch(spark, table, format, name):
    windows, aggregates = SETS[name]
    query = query_of(windows, aggregates)
    store = fw.Store.create(spark, table, query, finest="15 minutes" if name == "fixed" else None, format=format)
    rows, there, upserts, seen = rows_of(name), [], {}, 0
    random.Random(name).shuffle(rows)
    for number in range(3 if name == "fixed" else 2):
        batch = rows[number * 40 : (number + 1) * 40]
        there += batch
        store.append(frame(spark, batch), batch=f"batch {number}")
        if number == 1:
            version = store.version
            assert store.append(frame(spark, batch), batch="batch 1") == version
            store.compact()
        if name != "sessions" and number:
            upserted(upserts, query, store.changes(since=seen))
            seen = store.version
    assert_reads(spark, fw.Store.open(spark, table), query, there)
    if name != "sessions":
        assert_same(upserts, expected(spark, query, there))
    if name == "fixed":
        store.compact()
        assert_reads(spark, store, query, there, windows=OTHERS)


def test_an_earlier_version_is_read_as_it_was(spark, table, format):
    query = query_of(FIXED)
    store = fw.Store.create(spark, table, query, format=format)
    rows = rows_of("travel", 60)
    store.append(frame(spark, rows[:20]))
    store.append(frame(spark, rows[20:40]))
    store.compact()
    store.append(frame(spark, rows[40:]))
    opened = fw.Store.open(spark, table)
    for version, number in ((1, 20), (3, 40)):
        assert_same(by_instance(query, opened.read(version=version)), expected(spark, query, rows[:number]))
    assert_same(by_instance(query, store.read(version=2)), expected(spark, query, rows[:40]))
    with pytest.raises(fw.OptionError, match="version 5 is not among the versions 0 to 4 of the store"):
        store.read(version=5)
    with pytest.raises(fw.StoreError, match="has no events yet"):
        store.read(version=0)


def test_panes_expire_and_coarser_ones_stay(spark, table, format):
    query = query_of([fw.tumbling("15 minutes"), fw.tumbling("1 hour"), fw.tumbling("1 day")])
    store = fw.Store.create(spark, table, query, format=format)
    rows = rows_of("old", days=40)
    store.append(frame(spark, rows))
    store.expire("10 days", keep="1 hour")
    long = [fw.tumbling("1 hour"), fw.tumbling("1 day")]
    assert_reads(spark, store, query, rows, windows=long)
    found = by_instance(query, store.read())
    whole = expected(spark, query, rows)
    assert 0 < len(found) < len(whole)
    assert_same(found, {group: whole[group] for group in found})
    told = store.describe()
    assert (told["format"], told["location"], told["version"]) == (format, table, store.version)
    assert told["files"] > 0
    assert told["bytes"] > 0


def test_events_of_local_time_and_small_numbers_keep_their_types(spark, table, format):
    schema = "ts timestamp_ntz, k smallint, v float"
    query = fw.Query(
        time="ts", keys=["k"], windows=[fw.tumbling("1h"), fw.calendar("1 day")], aggregates=["max(v)", "max(k) AS m"]
    )
    events = spark.createDataFrame([(row[0], row[2], row[3]) for row in rows_of("types")], schema)
    store = fw.Store.create(spark, table, query, format=format)
    store.append(events)
    result = fw.optimize(query).run(events)
    assert [(each.name, each.dataType) for each in store.read().schema] == [
        (each.name, each.dataType) for each in result.schema
    ]
    assert_same(by_instance(query, store.read()), by_instance(query, result))


def test_a_compaction_that_comes_too_late_changes_nothing_and_says_so(spark, table, format, monkeypatch):
    query = query_of(FIXED)
    store = fw.Store.create(spark, table, query, format=format)
    rows = rows_of("late", 40)
    store.append(frame(spark, rows[:20]))
    other, commit = fw.Store.open(spark, table), store._panes.place.commit

    def commit_late(*manifest, **parts):
        monkeypatch.undo()
        other.append(frame(spark, rows[20:]))
        commit(*manifest, **parts)

    monkeypatch.setattr(store._panes.place, "commit", commit_late)
    with pytest.raises(fw.StoreConflictError, match=r"another writer has written version 2 .* try again"):
        store.compact()
    assert_reads(spark, store, query, rows)


def test_a_commit_that_is_sent_twice_counts_once(spark, table, format, monkeypatch):
    query, rows = query_of(FIXED), rows_of("twice", 20)
    store = fw.Store.create(spark, table, query, format=format)
    write = Table._write

    def write_twice(*given):
        # As a client does that has lost its connection after the first time.
        write(*given)
        write(*given)

    monkeypatch.setattr(Table, "_write", write_twice)
    store.append(frame(spark, rows))
    assert_reads(spark, store, query, rows)
    assert store.version == 1


def test_columns_of_an_append_that_failed_do_not_cut_off_values(spark, table, format):
    query = fw.Query(time="ts", windows=[fw.tumbling("1h")], aggregates=["max(v)"])
    store = fw.Store.create(spark, table, query, format=format)
    events = spark.range(3).selectExpr("timestamp_seconds(id) AS ts", "CAST(id AS INT) AS v")
    with pytest.raises(Exception, match="on purpose"):
        store.append(events.withColumn("v", F.expr("v + CAST(raise_error('on purpose') AS INT)")))
    with pytest.raises(fw.StoreError, match=r"is int, and these events make it double; cast them, or create"):
        store.append(events.withColumn("v", F.expr("v + 0.5D")))
    store.append(events)
    assert store.read().first()["max(v)"] == 2


def test_a_table_that_was_restored_takes_no_more(spark):
    query, rows, table = query_of(FIXED), rows_of("restored", 20), f"s{uuid4().hex[:10]}"
    store = fw.Store.create(spark, table, query, format="delta")
    store.append(frame(spark, rows))
    store.append(frame(spark, rows))
    spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF 2")
    assert_reads(spark, store, query, rows)
    with pytest.raises(fw.StoreError, match="if that was restored to an earlier state, create a new store"):
        store.append(frame(spark, rows))


def test_a_stream_is_appended_once_though_a_micro_batch_comes_again(spark, table, format, tmp_path):
    query = query_of(FIXED)
    store = fw.Store.create(spark, table, query, format=format)
    rows = rows_of("stream", 60)
    for number in range(2):
        frame(spark, rows[number * 30 : number * 30 + 30]).coalesce(1).write.json(f"{tmp_path}/in/{number}")
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(f"{tmp_path}/in/*")
    result, upserts = f"{table}_result", 0

    def merge(changes, version):
        nonlocal upserts
        upserts += 1
        fw.upsert(changes, result, format=format)

    def run():
        options = {"checkpoint": tmp_path / "checkpoint", "trigger": {"availableNow": True}}
        running = store.write_stream(stream, on_changes=merge, **options)
        assert running.awaitTermination(300)
        assert running.exception() is None

    run()
    assert upserts == 2
    # As if the process had been killed after the last micro-batch, and before Spark noted that.
    for path in (tmp_path / "checkpoint" / "commits").glob("*1*"):
        path.unlink()
    run()
    assert upserts == 3
    assert_reads(spark, store, query, rows)
    assert_same(by_instance(query, spark.table(result).drop("is_final")), expected(spark, query, rows))


def test_several_queries_share_a_store(spark, table, format):
    queries = [query_of(FIXED, name="devices"), query_of([fw.tumbling("1 day")], ["max(v)"], keys=(), name="days")]
    store = fw.Store.create(spark, table, queries, format=format)
    rows = rows_of("several", 60)
    store.append(frame(spark, rows[:30]))
    store.compact()
    store.append(frame(spark, rows[30:]))
    found = store.read()
    for query in queries:
        assert_same(by_instance(query, found[query.name]), expected(spark, query, rows))


def test_wrong_use_is_answered_in_one_sentence(spark, table, format):
    with pytest.raises(fw.StoreError, match="is not a store"):
        fw.Store.open(spark, table)
    fw.Store.create(spark, table, query_of(FIXED), format=format)
    with pytest.raises(fw.StoreError, match=r"there is a store in .* already; fw.Store.open"):
        fw.Store.create(spark, table, query_of(FIXED), format=format)
    with pytest.raises(fw.OptionError, match="format 'csv' is unknown; allowed are parquet, delta, iceberg"):
        fw.Store.create(spark, table, query_of(FIXED), format="csv")
    other = f"{table}_other"
    spark.range(1).writeTo(other).using(format).create()
    with pytest.raises(fw.StoreError, match="that is not a store"):
        fw.Store.create(spark, other, query_of(FIXED), format=format)
    with pytest.raises(fw.StoreError, match="is not a store"):
        fw.Store.open(spark, other)


def test_a_path_is_that_of_a_delta_table(spark, tmp_path):
    query = query_of(FIXED)
    rows = rows_of("path", 40)
    store = fw.Store.create(spark, tmp_path / "a store", query, format="delta")
    store.append(frame(spark, rows))
    store.compact()
    assert_reads(spark, fw.Store.open(spark, tmp_path / "a store"), query, rows)
