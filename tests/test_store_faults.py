"""A store after kills, races and mistakes: the last good version is there, and nothing is lost or doubled."""

import json
import os
import random
import threading
from datetime import timedelta

import pytest
from comparing import by_instance
from file_streams import stream_of, write_batches
from pyspark.errors import StreamingQueryException
from pyspark.sql.readwriter import DataFrameWriter
from test_store import BASE, FIXED, SCHEMA, assert_same, expected, frame, query_of, rows_of

import factor_windows as fw
from factor_windows.store import attempts, files, folder
from factor_windows.store import compact as compaction

OPERATIONS = ("make_folder", "write_draft", "publish", "discard", "discard_folder")
KILLS = int(os.environ.get("FACTOR_WINDOWS_KILLS", "6"))
"""How often a stream is killed."""


class KilledError(Exception):
    """Nothing of the store's own catches it, as nothing catches a kill."""


class Kills:
    """Lets the process die at a given operation on files, before or after it is done; the dead do nothing more."""

    def __init__(self, monkeypatch):
        self.left, self.is_dead, self.number = None, False, 0
        for name in OPERATIONS:
            monkeypatch.setattr(files, name, self.dying(getattr(files, name)))
        monkeypatch.setattr(DataFrameWriter, "parquet", self.dying(DataFrameWriter.parquet))

    def dying(self, operation):
        def call(*arguments, **options):
            self.step()
            done = operation(*arguments, **options)
            self.step()
            return done

        return call

    def step(self):
        self.number += 1
        if self.left is not None:
            self.left -= 1
            self.is_dead = self.is_dead or self.left < 0
        if self.is_dead:
            raise KilledError

    def after(self, number):
        self.left, self.is_dead = number, False

    def never(self):
        self.left, self.is_dead = None, False


@pytest.fixture
def kills(monkeypatch):
    return Kills(monkeypatch)


@pytest.mark.long
def test_a_batch_that_is_killed_anywhere_and_repeated_is_there_once(spark, tmp_path, kills):
    query = query_of(FIXED)
    store = fw.Store.create(spark, tmp_path / "store", query)
    rows, there, drawn, died = rows_of("kills", 160), [], random.Random(7), 0
    for number in range(40):
        batch = rows[number * 4 : number * 4 + 4]
        there += batch
        for place in (drawn.randrange(8), drawn.randrange(8), None):
            kills.after(place) if place is not None else kills.never()
            try:
                store.append(frame(spark, batch), batch=f"{number}")
            except KilledError:
                died += 1
                # What another process would see.
                store = fw.Store.open(spark, tmp_path / "store")
        if number % 10 == 5:
            for place in (drawn.randrange(8), drawn.randrange(24), None):
                kills.after(place) if place is not None else kills.never()
                try:
                    store.compact(retain="0 seconds")
                except KilledError:
                    died += 1
                    store = fw.Store.open(spark, tmp_path / "store")
        kills.never()
        if number % 20 == 19:
            assert_same(by_instance(query, store.read()), expected(spark, query, there))
    assert died >= 50
    store.compact(retain="0 seconds")
    kept = {path.split("/")[1] for path in (part.path for part in store._panes.load().parts)}
    left = {each.name for each in (tmp_path / "store" / "data").iterdir()}
    # What the dead left over is named by nobody, and is removed when it is a day old.
    assert kept <= left
    for orphan in (tmp_path / "store" / "data").iterdir():
        os.utime(orphan, (0, 0))
    store.compact(retain="0 seconds")
    assert {each.name for each in (tmp_path / "store" / "data").iterdir()} == kept
    assert_same(by_instance(query, store.read()), expected(spark, query, there))


@pytest.mark.long
def test_a_stream_that_is_killed_goes_on_and_has_each_event_once(spark, tmp_path, kills, one_partition):
    query = query_of(FIXED[:2], ("sum(i)", "count(*)"))
    drawn = random.Random(3)
    batches = [
        [{"ts": drawn.randrange(200_000), "k": drawn.choice("ab"), "i": drawn.randrange(9), "v": 1.0} for _ in range(8)]
        for _ in range(max(6, KILLS))
    ]
    events = write_batches(spark, tmp_path / "in", batches, SCHEMA)
    fw.Store.create(spark, tmp_path / "store", query)
    table, died = {}, 0

    def upsert(rows, version):
        table.update(by_instance(query, rows.drop("is_final")))

    while True:
        kills.after(drawn.randrange(30 if KILLS < 10 else 12)) if died < KILLS else kills.never()
        store = fw.Store.open(spark, tmp_path / "store")
        running = store.write_stream(
            stream_of(spark, tmp_path / "in", SCHEMA),
            checkpoint=tmp_path / "checkpoint",
            trigger={"availableNow": True},
            on_changes=upsert,
        )
        try:
            running.awaitTermination()
            break
        except StreamingQueryException:
            died += 1
    assert died >= KILLS / 2
    kills.never()
    every = by_instance(query, fw.optimize(query).run(events))
    assert_same(by_instance(query, store.read()), every)
    assert_same(table, every)


def test_of_two_writers_at_once_none_is_lost(spark, tmp_path):
    query = query_of(FIXED)
    fw.Store.create(spark, tmp_path / "store", query)
    rows = rows_of("writers", 60)
    troubles = []

    def write(number):
        try:
            store = fw.Store.open(spark, tmp_path / "store")
            for place in range(3):
                begin = number * 30 + place * 10
                store.append(frame(spark, rows[begin : begin + 10]), batch=f"{number} {place}")
        except Exception as trouble:
            troubles.append(trouble)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert troubles == []
    store = fw.Store.open(spark, tmp_path / "store")
    assert store.version == 6
    assert_same(by_instance(query, store.read()), expected(spark, query, rows))


def test_a_compaction_that_comes_too_late_changes_nothing_and_says_so(spark, tmp_path, monkeypatch):
    query = query_of(FIXED)
    store = fw.Store.create(spark, tmp_path / "store", query)
    rows = rows_of("late", 40)
    store.append(frame(spark, rows[:20]))
    other, commit = fw.Store.open(spark, tmp_path / "store"), store._panes.place.commit

    def commit_late(*manifest, **parts):
        monkeypatch.undo()
        other.append(frame(spark, rows[20:]))
        commit(*manifest, **parts)

    monkeypatch.setattr(store._panes.place, "commit", commit_late)
    with pytest.raises(fw.StoreConflictError, match=r"another writer has written version 2 .* try again"):
        store.compact()
    assert_same(by_instance(query, store.read()), expected(spark, query, rows))


def test_an_append_that_always_comes_too_late_gives_up(spark, tmp_path, monkeypatch):
    store = fw.Store.create(spark, tmp_path / "store", query_of(FIXED))
    monkeypatch.setattr(attempts, "ATTEMPTS", 2)
    monkeypatch.setattr(files, "publish", lambda *_: False)
    with pytest.raises(fw.StoreConflictError, match="try again"):
        store.append(frame(spark, rows_of(1, 5)))


@pytest.mark.long
def test_a_number_that_is_free_again_is_not_taken(spark, tmp_path):
    query = query_of(FIXED)
    store = fw.Store.create(spark, tmp_path / "store", query)
    stale = store._panes.load()
    for number in range(24):
        store.append(frame(spark, rows_of(number, 1)))
    assert not (tmp_path / "store" / "manifests" / "000000001.json").exists()
    with pytest.raises(fw.StoreConflictError):
        store._panes.place.commit(stale.following())
    assert fw.Store.open(spark, tmp_path / "store").version == 24


def test_a_commit_that_others_build_on_at_once_is_none_too_late(spark, tmp_path, monkeypatch):
    query = query_of([fw.tumbling("1 hour")], ["count(*)"])
    store = fw.Store.create(spark, tmp_path / "store", query)
    other, publish = fw.Store.open(spark, tmp_path / "store"), files.publish

    def publish_and_wait(draft, path):
        done = publish(draft, path)
        monkeypatch.undo()
        other.append(frame(spark, [(BASE, "b", 1, 1.0)]))
        return done

    monkeypatch.setattr(files, "publish", publish_and_wait)
    store.append(frame(spark, [(BASE, "a", 1, 1.0)]))
    assert {row.k: row[4] for row in store.read().collect()} == {"a": 1, "b": 1}


def test_what_is_appended_during_an_expiry_counts_once(spark, tmp_path, monkeypatch):
    query = query_of([fw.tumbling("10 minutes")], ["count(*)"], keys=())
    store = fw.Store.create(spark, tmp_path / "store", query)
    store.append(frame(spark, [(BASE, "a", 1, 1.0)]))
    whole = compaction.compact

    def compact_and_wait(panes):
        found = whole(panes)
        fw.Store.open(spark, tmp_path / "store").append(frame(spark, [(BASE, "b", 1, 1.0)]))
        return found

    monkeypatch.setattr(compaction, "compact", compact_and_wait)
    store.expire("1 day", keep="1 hour")
    monkeypatch.undo()
    for _ in range(2):
        assert [row[3] for row in store.read(windows=[fw.tumbling("1 hour")]).collect()] == [2]
        store.compact()


def test_a_list_that_is_gone_is_told(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "_LIST", 2)
    store = fw.Store.create(spark, tmp_path / "store", query_of(FIXED))
    for number in range(3):
        store.append(frame(spark, rows_of(number, 2)), batch=str(number))
    for path in (tmp_path / "store" / "lists").iterdir():
        path.unlink()
    with pytest.raises(fw.StoreError, match="which is gone"):
        fw.Store.open(spark, tmp_path / "store").read()
    # Whoever still knows what was in it writes it again.
    store.append(frame(spark, rows_of(9, 2)))
    assert fw.Store.open(spark, tmp_path / "store").version == 4


def test_a_reader_sees_the_version_that_it_began_with(spark, tmp_path):
    query = query_of(FIXED)
    store = fw.Store.create(spark, tmp_path / "store", query)
    rows = rows_of("reader", 60)
    store.append(frame(spark, rows[:30]))
    before = store.read()
    store.append(frame(spark, rows[30:]))
    middle = store.read()
    store.compact()
    store.expire("1 day")
    assert_same(by_instance(query, before), expected(spark, query, rows[:30]))
    assert_same(by_instance(query, middle), expected(spark, query, rows))


def test_a_full_disk_leaves_the_last_version(spark, tmp_path, monkeypatch):
    query = query_of(FIXED)
    store = fw.Store.create(spark, tmp_path / "store", query)
    rows = rows_of("disk", 20)
    store.append(frame(spark, rows))

    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(files.os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            store.append(frame(spark, rows_of("more", 20)))
    assert [name for name in os.listdir(tmp_path / "store" / "manifests") if name.startswith(".")] == []
    again = fw.Store.open(spark, tmp_path / "store")
    assert again.version == 1
    assert_same(by_instance(query, again.read()), expected(spark, query, rows))


def test_mistakes_get_one_sentence(spark, tmp_path):
    query = query_of([fw.tumbling("1 hour"), fw.calendar("1 week")])
    place = tmp_path / "store"
    with pytest.raises(fw.StoreError, match=r"is not a store; fw.Store.create"):
        fw.Store.open(spark, place)
    with pytest.raises(fw.PlanError, match=r"kurtosis\(v\) needs all events at once"):
        fw.Store.create(spark, place, query_of(FIXED, ["kurtosis(v)"]))
    with pytest.raises(fw.OptionError, match="format 'csv' is unknown"):
        fw.Store.create(spark, place, query, format="csv")
    with pytest.raises(fw.StoreError, match="a folder that this process can reach"):
        fw.Store.create(spark, "s3a://bucket/store", query)
    with pytest.raises(fw.OptionError, match="is not a query"):
        fw.Store.create(spark, place, [])
    store = fw.Store.create(spark, place, query)
    with pytest.raises(fw.StoreError, match=r"there is a store in .* already"):
        fw.Store.create(spark, place, query)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("")
    with pytest.raises(fw.StoreError, match="has files but is not a store"):
        fw.Store.create(spark, tmp_path / "other", query)
    with pytest.raises(fw.StoreError, match="has no events yet"):
        store.read()
    events = frame(spark, rows_of(1, 10))
    with pytest.raises(fw.QueryError, match="Spark cannot read the query"):
        store.append(events.drop("k"))
    with pytest.raises(fw.OptionError, match="batch 7 is not text"):
        store.append(events, batch=7)
    store.append(events, batch="one")
    with pytest.raises(fw.StoreError, match="the column 'i' is bigint in these events, and int in those"):
        store.append(events.withColumn("i", events.i.cast("bigint")))
    with pytest.raises(fw.WindowError, match=r"30 minutes cannot be made of panes of 1 hour"):
        store.read(windows=[fw.tumbling("30 minutes")])
    weeks = fw.Store.create(spark, tmp_path / "weeks", query_of([fw.calendar("1 week")]))
    weeks.append(events)
    with pytest.raises(fw.WindowError, match=r"1 month .*cannot be made of panes of"):
        weeks.read(windows=[fw.calendar("1 month")])
    with pytest.raises(fw.OptionError, match="since 9 is not among the versions 0 to 1"):
        store.changes(since=9)
    with pytest.raises(fw.OptionError, match="since 'soon' is not a time"):
        store.read(since="soon")
    with pytest.raises(fw.OptionError, match="is after until"):
        store.read(since=BASE, until=BASE - timedelta(days=1))
    with pytest.raises(fw.QueryError, match="session 1 hour may merge with its neighbours"):
        store.changes(since=0, windows=[fw.session("1 hour")])
    visits = fw.Store.create(spark, tmp_path / "visits", query_of([fw.session("1 hour")]))
    rate = spark.readStream.format("rate").load()
    with pytest.raises(fw.QueryError, match="may merge with its neighbours"):
        visits.write_stream(rate, checkpoint=tmp_path / "visits checkpoint", on_changes=print)
    with pytest.raises(fw.OptionError, match="age '-1 day' is negative"):
        store.expire("-1 day")
    with pytest.raises(fw.OptionError, match="windows '1 hour' are not windows"):
        store.read("1 hour")
    with pytest.raises(fw.OptionError, match="these events are a batch"):
        store.write_stream(events, checkpoint=tmp_path / "checkpoint")
    document = json.loads((place / "store.json").read_text())
    (place / "store.json").write_text(json.dumps({**document, "format": 99}))
    with pytest.raises(fw.StoreError, match=r"is of format 99, .* install a later one"):
        fw.Store.open(spark, place)
    (place / "store.json").write_text("{")
    with pytest.raises(fw.StoreError, match="is damaged"):
        fw.Store.open(spark, place)


def test_a_zone_that_keys_depend_on_must_stay(spark, tmp_path):
    by_day = query_of(FIXED, keys=("hour(timestamp_seconds(i))",))
    plain = query_of(FIXED)
    events = frame(spark, rows_of(1, 10))
    for name, query in (("by day", by_day), ("plain", plain)):
        fw.Store.create(spark, tmp_path / name, query).append(events)
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        with pytest.raises(fw.StoreError, match=r"created in the time zone UTC, .* this session is in Asia/Tokyo"):
            fw.Store.open(spark, tmp_path / "by day").append(events)
        fw.Store.open(spark, tmp_path / "plain").append(events)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_nulls_that_come_later_are_in_the_schema(spark, tmp_path):
    query = query_of(FIXED)
    store = fw.Store.create(spark, tmp_path / "store", query)
    full = spark.createDataFrame([(BASE, "a", 1, 1.0)], "ts timestamp not null, k string not null, i int, v double")
    store.append(full)
    assert not store.read().schema["k"].nullable
    store.append(frame(spark, [(BASE, None, 1, 1.0)]))
    assert store.read().schema["k"].nullable
    assert {row.k for row in store.read().collect()} == {"a", None}
