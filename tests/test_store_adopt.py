"""A store goes on with a stream: what that had closed and what the store reads are what a batch gives of all events."""

import random
import shutil
from datetime import timedelta

import pytest
from comparing import assert_equal, by_instance
from file_streams import EPOCH, finish, stream_of, write_batches

import factor_windows as fw
from factor_windows.engines import spark_stream
from factor_windows.engines.event_time_key import EventTimeKey
from factor_windows.engines.spark_stream import ROCKSDB

pytestmark = pytest.mark.usefixtures("one_partition")

SCHEMA = "ts timestamp, k string, v double, i bigint, n int, d decimal(10, 2), w decimal(35, 2)"
BATCHES = [range(10, 100, 3), range(100, 200, 3), range(200, 260, 3), [191, 215, 229, *range(250, 330, 3)], [400]]
"""The seconds of events, file by file. Some of the fourth file are late, for some windows or for all."""
EDGE, UNTIL = 227, 260
"""How far windows are closed after three files, with a delay of half a minute, and when the last pane ends."""
WINDOWS = [fw.tumbling("20s"), fw.hopping("60s", "20s"), fw.tumbling("30s")]
PLAIN = ("count(*)", "sum(v)", "min(v)", "avg(v) AS mean")
EVERY = (
    *("sum(i)", "sum(n)", "sum(d)", "sum(w)", "avg(d) AS mean_d", "avg(w) AS mean_w", "avg(n) AS mean_n", "max(k)"),
    *("try_sum(n)", "count(v)", "count_if(n > 3)", "sum(v) FILTER (WHERE n > 3) AS some", "bit_xor(n)", "bit_or(n)"),
    *("bool_and(n > 0)", "bool_or(n > 5)", "stddev(v)", "var_pop(n)", "covar_samp(v, n)", "corr(v, n)", "sum(v)"),
    *(
        "regr_avgx(v, n)",
        "regr_count(v, n)",
        "max_by(v, i)",
        "any_value(k)",
        "first(v)",
        "last(n)",
        "avg(v) AS mean",
        "min(ts)",
    ),
)


def rows_of(seconds, seed):
    drawn = random.Random(seed)
    return [
        {
            "ts": second,
            "k": drawn.choice("ab"),
            "v": drawn.choice([None, drawn.uniform(-9, 9)]),
            "i": drawn.choice([None, drawn.randrange(-(2**40), 2**40)]),
            "n": drawn.randrange(7),
            "d": round(drawn.uniform(-99, 99), 2),
            "w": drawn.randrange(999),
        }
        for second in seconds
    ]


def text_of(second):
    return str(EPOCH.replace(tzinfo=None) + timedelta(seconds=second))


def query_of(windows=WINDOWS, aggregates=PLAIN, **more):
    return fw.Query(**{"time": "ts", "keys": ["k"], "windows": windows, "aggregates": aggregates} | more)


class Moved:
    """A stream over the first three files, and what goes on with it; seconds may be longer ones."""

    def __init__(self, spark, folder, query, *, search="best", scale=1):
        self.spark, self.folder, self.query, self.scale = spark, folder, query, scale
        self.batches = {}
        rows = [rows_of((second * scale for second in batch), number) for number, batch in enumerate(BATCHES)]
        write_batches(spark, folder / "all", rows, SCHEMA)
        (folder / "in").mkdir()
        self.arrive(0, 1, 2)
        self.checkpoint = folder / "checkpoint"
        result = fw.optimize(query, search=search).run(self.events, checkpoint=self.checkpoint)
        running = finish(result, "closed", checkpointLocation=str(self.checkpoint))
        self.operators = len(running.lastProgress["stateOperators"])
        self.closed = by_instance(query, spark.table("closed"))

    def arrive(self, *numbers):
        for number in numbers:
            shutil.copy2(self.folder / "all" / f"{number}.json", self.folder / "in")

    @property
    def events(self):
        return stream_of(self.spark, self.folder / "in", SCHEMA, f"{30 * self.scale} seconds")

    def adopt(self, **options):
        store = fw.Store.create(self.spark, self.folder / "store", self.query, **options)
        store.adopt(self.events, checkpoint=self.checkpoint)
        return store

    def write(self, store, **options):
        trigger = {"availableNow": True}
        store.write_stream(self.events, checkpoint=self.checkpoint, trigger=trigger, **options).awaitTermination()

    def batch(self, query=None):
        """Return what a batch gives of all events that have arrived."""
        query = query or self.query
        asked = query, len(list((self.folder / "in").iterdir()))
        if asked not in self.batches:
            events = self.spark.read.schema(SCHEMA).json(str(self.folder / "in"))
            self.batches[asked] = by_instance(query, fw.optimize(query).run(events, statistics=None))
        return self.batches[asked]

    def still_open(self, edge=EDGE):
        edge = text_of(edge * self.scale)
        return {group: values for group, values in self.batch().items() if group[3] > edge}

    def assert_reads(self, store):
        assert_equal(self.query, by_instance(self.query, store.read()), self.still_open())


@pytest.mark.long
@pytest.mark.usefixtures("chained")
def test_what_the_stream_closed_and_what_the_store_reads_are_what_a_batch_gives(spark, tmp_path):
    query = query_of()
    moved = Moved(spark, tmp_path, query)
    assert moved.operators == 2
    assert_equal(query, moved.closed | moved.still_open(), moved.batch())
    more = fw.Store.create(spark, tmp_path / "more", query_of(aggregates=[*PLAIN, "max(v)"]))
    with pytest.raises(fw.StoreError, match=r"the stream keeps no max\(v\) of 20 seconds"):
        more.adopt(moved.events, checkpoint=moved.checkpoint)
    store = moved.adopt(finest="10s")
    assert store.version == 1
    table = by_instance(query, store.changes(since=0).drop("is_final"))
    assert table
    assert_equal(query, table, moved.still_open())
    moved.arrive(3)
    told = []
    moved.write(
        store, on_changes=lambda rows, version: told.append((by_instance(query, rows.drop("is_final")), version))
    )
    [(changed, version)] = told
    moved.assert_reads(store)
    assert 0 < len(changed) < len(moved.still_open())
    table |= changed
    store.compact(retain="0s")
    moved.arrive(4)
    moved.write(store)
    store = fw.Store.open(spark, tmp_path / "store")
    moved.assert_reads(store)
    assert_equal(
        query,
        table | by_instance(query, store.changes(since=version).drop("is_final")),
        by_instance(query, store.read()),
    )
    since = {group: values for group, values in moved.still_open().items() if group[2] >= text_of(201)}
    assert_equal(query, by_instance(query, store.read(since=EPOCH + timedelta(seconds=201))), since)
    assert store.describe()["adopted"]["windows"] == [window.name for window in query.windows]
    assert "adopted from a stream: " in store.explain()
    assert store.adopt(moved.events, checkpoint=moved.checkpoint) == 1

    others = query_of([fw.tumbling("40s"), fw.session("15s"), fw.tumbling("30s")])
    limits = {"40 seconds": text_of(UNTIL), "session 15 seconds": text_of(UNTIL + 15), "30 seconds": text_of(EDGE - 29)}
    whole = {group: values for group, values in moved.batch(others).items() if group[2] >= limits[group[1]]}
    assert {group[1] for group in whole} == limits.keys()
    assert_equal(others, by_instance(others, store.read(windows=others.windows)), whole)


@pytest.mark.long
@pytest.mark.usefixtures("chained")
def test_every_function_whose_state_is_known_goes_on(spark, tmp_path):
    moved = Moved(spark, tmp_path, query_of(aggregates=EVERY))
    assert moved.operators == 2
    store = moved.adopt()
    moved.arrive(3)
    moved.write(store)
    store.compact()
    moved.assert_reads(store)


@pytest.mark.usefixtures("chained")
def test_a_stream_of_an_earlier_version_is_adopted(spark, tmp_path, monkeypatch):
    """Earlier versions kept the start and the end of an instance in a struct."""
    with monkeypatch.context() as earlier:
        earlier.setattr(spark_stream, "EventTimeKey", lambda names, time, _: EventTimeKey(names, time, True))
        moved = Moved(spark, tmp_path, query_of())
    [note] = (moved.checkpoint / "factor-windows").glob("*.txt")
    assert '"keyed_by_window": true' in note.read_text(encoding="utf-8")
    store = moved.adopt()
    moved.arrive(3)
    moved.write(store)
    moved.assert_reads(store)


@pytest.fixture
def rocksdb(spark):
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    yield
    spark.conf.unset("spark.sql.streaming.stateStore.providerClass")


@pytest.mark.long
@pytest.mark.usefixtures("rocksdb")
def test_a_micro_batch_that_the_stream_has_not_finished_is_the_stores(spark, tmp_path):
    zone = {"zone": "Europe/Berlin"}
    windows = [fw.cumulating("1 day", step="6 hours"), fw.calendar("1 day", **zone), fw.hopping("9h", "3h")]
    moved = Moved(spark, tmp_path, query_of(windows, ["sum(n)", "max(v)"]), search="none", scale=3600)
    assert moved.operators == 1
    # After the last file there was a micro-batch that only closed windows.
    for folder, name in (("commits", "2"), ("commits", "3"), ("offsets", "3")):
        (moved.checkpoint / folder / name).unlink()
        (moved.checkpoint / folder / f".{name}.crc").unlink()
    store = moved.adopt()
    moved.arrive(3, 4)
    moved.write(store)
    # The watermark of the second file is that of the first one's last event.
    assert_equal(moved.query, by_instance(moved.query, store.read()), moved.still_open(edge=97 - 30))
    (moved.checkpoint / "state.adopted").rename(moved.checkpoint / "state")
    with pytest.raises(fw.StoreError, match="has continued since it was adopted"):
        store.adopt(moved.events, checkpoint=moved.checkpoint)


def begun(folder, plan, events, **options):
    """Leave what a stream leaves that has done nothing yet."""
    plan.run(events, checkpoint=folder, **options)
    (folder / "metadata").write_text('{"id":"0"}', encoding="utf-8")
    (folder / "commits").mkdir()
    (folder / "commits" / "0").touch()
    (folder / "state").mkdir()
    return folder


@pytest.mark.long
def test_what_a_store_cannot_go_on_with_is_refused(spark, tmp_path):
    (tmp_path / "in").mkdir()
    events = stream_of(spark, tmp_path / "in", SCHEMA)
    store = fw.Store.create(spark, tmp_path / "store", query_of())
    both = [query_of(name="a"), query_of(where="n > 1", name="b")]
    for number, (query, mode, why) in enumerate(
        (
            (query_of(), "update", "its mode is update, in which no window is ever closed"),
            (query_of([*WINDOWS, fw.session("10s")]), "append", "it has sessions"),
            (both, "append", "it computes several queries"),
            (query_of(keys=["n"]), "append", "their keys are k, not n$"),
            (query_of(where="n > 1"), "append", "their condition is none, not n > 1$"),
            (query_of(aggregates=["approx_count_distinct(n)"]), "append", r"approx_count_distinct\(n\) on a stream"),
            (query_of(aggregates=["median(v)"]), "append", "it has no states to take"),
            (query_of(), "append", "has no state left; another store has adopted its stream"),
        )
    ):
        place = begun(tmp_path / f"checkpoint {number}", fw.optimize(query), events, mode=mode)
        if "no state left" in why:
            (place / "state").rmdir()
        with pytest.raises(fw.StoreError, match=why):
            store.adopt(events, checkpoint=place)
    with pytest.raises(fw.StoreError, match="no stream has used the checkpoint"):
        store.adopt(events, checkpoint=tmp_path / "none")
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "metadata").write_text('{"id":"0"}', encoding="utf-8")
    with pytest.raises(fw.PlanError, match="was started without checkpoint="):
        store.adopt(events, checkpoint=tmp_path / "bare")
    with pytest.raises(fw.StoreError, match="is not in a folder that this process can reach"):
        store.adopt(events, checkpoint="s3://jobs/checkpoint")
    with pytest.raises(fw.OptionError, match="these events are a batch"):
        store.adopt(spark.createDataFrame([], SCHEMA), checkpoint=place)
    (place / "commits" / "0").unlink()
    with pytest.raises(fw.StoreError, match="has finished no micro-batch"):
        store.adopt(events, checkpoint=place)
    assert store.version == 0
    store.append(spark.createDataFrame([], SCHEMA))
    with pytest.raises(fw.StoreError, match="has events already"):
        store.adopt(events, checkpoint=place)


def test_a_stream_that_runs_or_keeps_more_than_its_plan_is_refused(spark, tmp_path):
    write_batches(spark, tmp_path / "in", [rows_of(BATCHES[0], 0)], SCHEMA)
    events, place = stream_of(spark, tmp_path / "in", SCHEMA), tmp_path / "checkpoint"
    result = fw.optimize(query_of()).run(events.dropDuplicates(["k", "ts"]), checkpoint=place)
    store = fw.Store.create(spark, tmp_path / "store", query_of())
    running = result.writeStream.format("noop").option("checkpointLocation", str(place)).start()
    running.processAllAvailable()
    with pytest.raises(fw.StoreError, match=r"is running; stop\(\) it first"):
        store.adopt(events, checkpoint=place)
    running.stop()
    with pytest.raises(fw.StoreError, match=r"has the stateful operators .*dedupe"):
        store.adopt(events, checkpoint=place)
