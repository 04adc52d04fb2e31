"""Plans on streams give what batch gives, for every window that the watermark has closed."""

import os
import random
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from itertools import pairwise

import killed_job
import pytest
from comparing import assert_equal, by_instance
from file_streams import assert_closed, finish, stream_of, watermark_of, write_batches
from pyspark.sql import functions as F

from factor_windows import (
    OptionError,
    Query,
    QueryError,
    hopping,
    optimize,
    tumbling,
    use_rocksdb,
)
from factor_windows.cost.prices import Prices
from factor_windows.engines.spark_stream import CHANGELOG, STATE_STORE
from factor_windows.physical.choose import choose_layout
from factor_windows.spark.compare import differing_rows
from factor_windows.spark.naive import naive
from factor_windows.spark.watermark import OF_A_WINDOW, WATERMARK

KILLS = int(os.environ.get("FACTOR_WINDOWS_KILLS", "1"))
SCHEMA = "ts timestamp, k string, v double"
AGGREGATES = ["min(v)", "avg(v) AS mean", "count(*) AS n", "stddev_pop(v) AS s"]
WINDOWS = {
    "tumbling": [tumbling("20s"), tumbling("30s"), tumbling("40s"), tumbling("60s")],
    "hopping": [hopping("20s", "10s"), hopping("60s", "20s"), hopping("90s", "30s")],
    "mixed": [tumbling("20s", name="a"), tumbling("20s", name="b"), hopping("50s", "20s", offset="5s"), tumbling("2m")],
}


def batches_of(order, rng):
    """Seconds of events by micro-batch: in order, out of order within the delay, or with gaps, late and few events."""
    seconds = list(range(10, 600, 3))
    if order == "shuffled":
        seconds.sort(key=lambda second: second + rng.randrange(25))
    edges = [0, 40, 41, 90, 140, len(seconds)]
    batches = [seconds[low:high] for low, high in pairwise(edges)]
    if order == "gaps":
        batches = [[second + 5000 * number for second in batch] for number, batch in enumerate(batches)]
        # Hours late, for every window: no way of running would take it.
        batches[3] = [*batches[3], 7]
    return batches


def write(spark, folder, batches, rng):
    late = 7
    rows = [
        [{"ts": second, "k": rng.choice("ab"), "v": rng.choice([None, rng.uniform(-9, 9)])} for second in batch]
        for batch in batches
    ]
    events = write_batches(spark, folder, rows, SCHEMA)
    return events.where(F.unix_seconds("ts") != late) if any(late in batch for batch in batches) else events


def stream_in(spark, folder):
    return stream_of(spark, folder / "in", SCHEMA)


@pytest.mark.long
@pytest.mark.parametrize(
    ("windows", "order", "operators"),
    [("tumbling", "ordered", 2), ("hopping", "shuffled", 2), ("hopping", "shuffled", 1), ("mixed", "gaps", 2)],
)
def test_a_stream_gives_batchs_rows_and_flush_the_rest(request, spark, tmp_path, windows, order, operators):
    if windows == "mixed":
        request.getfixturevalue("compiled")
    if operators > 1:
        request.getfixturevalue("chained")
    rng = random.Random(f"{windows} {order}")
    events = write(spark, tmp_path / "in", batches_of(order, rng), rng)
    query = Query(time="ts", keys=["k"], windows=WINDOWS[windows], aggregates=AGGREGATES)
    plan = optimize(query)
    running = finish(plan.run(stream_in(spark, tmp_path)), "appended")
    found, everything = spark.table("appended"), by_instance(query, plan.run(events))
    assert_closed(query, found, everything, watermark_of(running))
    whole = found.unionAll(plan.flush(events, running))
    assert_equal(query, by_instance(query, whole), everything)
    assert len(running.lastProgress["stateOperators"]) == operators


def test_flush_goes_by_the_watermark_whatever_the_time_zone(spark):
    plan = optimize(Query(time="ts", windows=[tumbling("1h"), hopping("3h", "1h")], aggregates=["count(*) AS n"]))
    events = spark.range(48).selectExpr("TIMESTAMP_NTZ '2024-03-30 12:00:00' + make_dt_interval(0, id) AS ts")
    watermark = datetime(2024, 3, 31, 18, 30, tzinfo=UTC)
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        for other in ("UTC", "Europe/Berlin", "Asia/Tokyo"):
            spark.conf.set("spark.sql.session.timeZone", other)
            left = plan.run(events).where("window_end > TIMESTAMP_NTZ '2024-03-31 18:30:00'")
            assert differing_rows(plan.flush(events, watermark), left) == 0
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_update_and_complete_give_what_naive_gives_with_one_operator(spark, tmp_path, mode):
    rng = random.Random(mode)
    write(spark, tmp_path / "in", batches_of("shuffled", rng)[:3], rng)
    query = Query(time="ts", keys=["k"], windows=WINDOWS["hopping"], aggregates=AGGREGATES)
    running = finish(optimize(query).run(stream_in(spark, tmp_path), mode=mode), "ours", mode)
    assert len(running.lastProgress["stateOperators"]) == 1
    union = naive(query, stream_in(spark, tmp_path))
    finish(union, "naively", mode)
    if mode == "complete":
        assert_equal(query, by_instance(query, spark.table("ours")), by_instance(query, spark.table("naively")))
    else:
        assert differing_rows(spark.table("ours"), spark.table("naively")) == 0


@pytest.mark.usefixtures("chained")
def test_slices_run_on_a_stream(spark, tmp_path):
    rng = random.Random(4)
    events = write(spark, tmp_path / "in", batches_of("shuffled", rng), rng)
    windows = [tumbling("15s"), tumbling("17s", offset="2s"), hopping("60s", "25s"), tumbling("19s")]
    query = Query(time="ts", keys=["k"], windows=windows, aggregates=["sum(v)", "max(v)"])
    plan = optimize(query, rate=20, unit="1 second", prices=Prices(edge=0))
    first = choose_layout(plan.passes[0], streaming=True).levels[0]
    assert [len(feed.edges) > 1 for feed in first.assigners] == [True]
    running = finish(plan.run(stream_in(spark, tmp_path)), "sliced")
    assert_closed(query, spark.table("sliced"), by_instance(query, naive(query, events)), watermark_of(running))


@pytest.mark.long
@pytest.mark.usefixtures("chained")
def test_ladders_run_as_one_chain(spark, tmp_path):
    rng = random.Random(3)
    events = write(spark, tmp_path / "in", batches_of("shuffled", rng), rng)
    windows = [hopping("480s", "1s"), tumbling("17s"), hopping("60s", "25s")]
    query = Query(time="ts", windows=windows, aggregates=["sum(v)", "max(v)"])
    plan = optimize(query, rate=100, unit="1 second")
    running = finish(plan.run(stream_in(spark, tmp_path)), "deep")
    assert len(running.lastProgress["stateOperators"]) == 4
    levels = choose_layout(plan.passes[0], streaming=True).levels
    assert max(each.steps for level in levels for each in level.assigners) < 120
    assert_closed(query, spark.table("deep"), by_instance(query, plan.run(events)), watermark_of(running))


def test_spark_marks_event_time_as_we_do(spark):
    """If this fails, Spark has changed how it marks event time, and spark/stream.py must follow."""
    stream = spark.readStream.format("rate").load().withWatermark("timestamp", "1 second")
    assert stream.schema["timestamp"].metadata[WATERMARK] == 1000
    window = stream.select(F.window("timestamp", "10 seconds")).schema["window"]
    assert set(window.metadata) == set(OF_A_WINDOW)
    assert window.metadata["spark.timeWindow"] == OF_A_WINDOW["spark.timeWindow"]


def test_mistakes_are_explained(spark, tmp_path):
    stream = spark.readStream.format("rate").load()
    plan = optimize(Query(time="timestamp", windows=[tumbling("1m")], aggregates=["count(*)"]))
    with pytest.raises(QueryError, match=r"events.withWatermark\('timestamp', '10 minutes'\)"):
        plan.run(stream)
    with pytest.raises(OptionError, match="allowed are append, update, complete"):
        plan.run(stream, mode="often")
    other = stream.withColumn("other", F.col("timestamp")).withWatermark("other", "1 second")
    with pytest.raises(QueryError, match="watermark is on 'other'"):
        plan.run(other)
    with pytest.raises(OptionError, match="as a batch"):
        plan.flush(stream, datetime.now(UTC))
    assert plan.run(stream, mode="update").isStreaming


def test_state_can_live_in_rocksdb(spark, tmp_path):
    before = spark.conf.get(STATE_STORE)
    rng = random.Random(1)
    events = write(spark, tmp_path / "in", batches_of("ordered", rng)[:2], rng)
    try:
        use_rocksdb(spark)
        query = Query(time="ts", windows=WINDOWS["tumbling"], aggregates=["max(v)"])
        plan = optimize(query)
        running = finish(plan.run(stream_in(spark, tmp_path)), "rocks")
        assert "rocksdbCommitFlushLatency" in running.lastProgress["stateOperators"][0]["customMetrics"]
        assert_closed(query, spark.table("rocks"), by_instance(query, plan.run(events)), watermark_of(running))
    finally:
        spark.conf.set(STATE_STORE, before)
        spark.conf.unset(CHANGELOG)


CHAINS = """
A union of three or more chains of two stateful operators loses rows in Spark 4.3: the third never sees a watermark.
"""


@pytest.mark.long
def test_spark_still_loses_rows_in_a_union_of_three_chains(spark, tmp_path):
    """If this fails, Spark has mended it; plans would still be one chain, as that is quicker."""
    rng = random.Random(5)
    write(spark, tmp_path / "in", batches_of("ordered", rng)[:4], rng)
    chains = []
    stream = stream_in(spark, tmp_path)
    panes = stream.groupBy(F.window("ts", "10 seconds").alias("w")).agg(F.min("v").alias("m"))
    for length in ("20 seconds", "30 seconds", "40 seconds"):
        grouped = panes.groupBy(F.window(F.window_time("w"), length).alias("w")).agg(F.min("m").alias("m"))
        chains.append(grouped.select(F.lit(length).alias("id"), "w.start", "m"))
    finish(chains[0].unionAll(chains[1]).unionAll(chains[2]), "chains")
    counts = {row.id: row["count"] for row in spark.table("chains").groupBy("id").count().collect()}
    assert counts["20 seconds"] > 0
    assert "40 seconds" not in counts, (counts, CHAINS)


@pytest.mark.long
def test_a_killed_stream_goes_on_where_it_was(spark, one_partition, tmp_path):
    rng = random.Random(9)
    seconds = [list(range(low, low + 90, 3)) for low in range(0, 720, 90)]
    events = write(spark, tmp_path / "in", seconds, rng)
    for _ in range(KILLS):
        command = [sys.executable, killed_job.__file__, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as job:
            assert job.stdout.readline() == "started\n"
            time.sleep(rng.uniform(1.5, 6))
            # The group: Python and the JVM together, as when a machine dies.
            os.killpg(job.pid, signal.SIGKILL)
    running = killed_job.start(spark, tmp_path)
    running.awaitTermination()
    query = killed_job.QUERY
    everything = by_instance(query, optimize(query).run(events))
    assert_closed(query, spark.read.parquet(f"{tmp_path}/out"), everything, watermark_of(running))
