"""Streams from a real Kafka broker: order, partitions, faults, and the command line."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import kafka_job
import pytest
from conftest import lake_settings
from kafka_job import QUERY, SCHEMA, events_of

import factor_windows as fw
from factor_windows.spark.compare import differing_rows
from factor_windows.spark.naive import naive

KILLS = int(os.environ.get("FACTOR_WINDOWS_KILLS", "5"))
SECONDS = 60
"""How long a test waits for anything."""
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
SMALL = fw.Query(
    time="ts",
    keys=["device"],
    windows=[fw.tumbling("20s"), fw.hopping("60s", "20s")],
    aggregates=["max(t)", "count(*)"],
)


def reading(second, device="a", t=1.0):
    return json.dumps({"ts": (FIRST + timedelta(seconds=second)).isoformat(), "device": device, "t": t})


def readings(count, rng, *, every=3, jitter=60):
    """Make readings of three devices that come out of order, but none much later than the others."""
    order = sorted(range(count), key=lambda number: number * every + rng.randrange(jitter))
    return [reading(number * every, f"d{rng.randrange(3)}", rng.randrange(100) / 4) for number in order]


@pytest.fixture
def send(spark, broker):
    """Send messages to a topic, to one partition or to both in turn, each in the order in which they are given."""

    def send(topic, messages, partition=None):
        rows = [(number % 2 if partition is None else partition, text) for number, text in enumerate(messages)]
        frame = spark.createDataFrame(rows, "partition int, value string").coalesce(1)
        writer = frame.write.format("kafka").option("kafka.bootstrap.servers", broker.servers)
        writer.option("topic", topic).save()

    return send


def everything(spark, broker, topic, query):
    """The query over the whole topic, window by window, as a batch."""
    return naive(query, events_of(spark.read, broker.servers, topic))


def wait_until(true, running=None):
    give_up = time.monotonic() + SECONDS
    while not true():
        assert running is None or running.exception() is None, running.exception()
        assert time.monotonic() < give_up, "waited too long"
        time.sleep(0.1)


@pytest.mark.parametrize("partition", [None, 1], ids=["two partitions", "one of them idle"])
def test_messages_that_come_out_of_order_give_what_a_batch_gives(spark, broker, send, tmp_path, partition):
    topic = f"shuffled-{partition}"
    send(topic, readings(200, random.Random(5)), partition)
    stream = events_of(spark.readStream, broker.servers, topic).withWatermark("ts", "5 minutes")
    plan = fw.optimize(SMALL)
    result = plan.run(stream, checkpoint=tmp_path / "checkpoint")
    writer = result.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    running = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    assert running.awaitTermination(SECONDS)
    closed = spark.read.parquet(str(tmp_path / "out"))
    assert closed.count() > 0
    rest = plan.flush(events_of(spark.read, broker.servers, topic), checkpoint=tmp_path / "checkpoint")
    assert differing_rows(closed.union(rest), everything(spark, broker, topic, SMALL)) == 0


def test_a_stream_goes_on_when_its_broker_has_died_and_is_back(spark, broker, send, tmp_path):
    messages = readings(200, random.Random(6))
    send("restarted", messages[:100])
    stream = events_of(spark.readStream, broker.servers, "restarted").withWatermark("ts", "5 minutes")
    plan = fw.optimize(SMALL)
    table, checkpoint = str(tmp_path / "table"), str(tmp_path / "checkpoint")
    writer = plan.run(stream, checkpoint=checkpoint).writeStream.option("checkpointLocation", checkpoint)
    running = writer.foreachBatch(lambda batch, _: fw.upsert(batch, table, format="delta")).start()
    try:
        wait_until(lambda: read_by(running) >= 60, running)
        broker.kill()
        time.sleep(1)
        broker.start()
        send("restarted", messages[100:])
        wait_until(lambda: read_by(running) == 200, running)
    finally:
        running.stop()
    fw.upsert(plan.flush(events_of(spark.read, broker.servers, "restarted"), checkpoint=checkpoint), table)
    assert differing_rows(spark.read.format("delta").load(table), everything(spark, broker, "restarted", SMALL)) == 0


def read_by(running):
    batches = {each["batchId"]: each["numInputRows"] for each in running.recentProgress}
    return sum(batches.values())


def test_ten_windows_into_delta_killed_five_times_are_those_of_a_batch(spark, broker, send, tmp_path):
    rng = random.Random(7)
    send(kafka_job.TOPIC, readings(420, rng))
    events, table = events_of(spark.read, broker.servers), str(tmp_path / "table")
    seen = [_killed(broker, tmp_path, rng) for _ in range(KILLS)]
    print("killed in micro-batches", seen)
    running = kafka_job.start(spark, broker.servers, str(tmp_path))
    assert running.awaitTermination(2 * SECONDS)
    # They came further from kill to kill, and the last had still work to do.
    assert seen == sorted(seen)
    assert seen[-1] > 0
    assert read_by(running) > 0
    assert len(QUERY.windows) == 10
    closed = spark.read.format("delta").load(table).count()
    fw.upsert(fw.optimize(QUERY).flush(events, checkpoint=f"{tmp_path}/checkpoint"), table)
    found = spark.read.format("delta").load(table)
    assert 0 < closed < found.count()
    assert differing_rows(found, naive(QUERY, events)) == 0


def _killed(broker, folder, rng):
    """Let a job go on for some micro-batches, kill it in the middle of one, and say in which it was."""
    command = [sys.executable, kafka_job.__file__, broker.servers, str(folder)]
    paths = os.pathsep.join(path for path in sys.path if path)
    with (
        subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, start_new_session=True, env={**os.environ, "PYTHONPATH": paths}
        ) as job,
    ):
        watch = _ends_after(job, 2 * SECONDS)
        try:
            for _ in range(rng.randint(2, 4)):
                line = job.stdout.readline()
                assert line.startswith("micro-batch"), line
            time.sleep(rng.uniform(0, 1))
            assert job.poll() is None, "the job had ended before it was killed"
        finally:
            watch.cancel()
            # The group: Python and the JVM together, as when a machine dies.
            os.killpg(job.pid, signal.SIGKILL)
        return int((job.stdout.read().split() or line.split())[-1])


def _ends_after(job, seconds):
    """Kill a job that hangs, so that whoever reads from it goes on."""
    from threading import Timer

    watch = Timer(seconds, lambda: os.killpg(job.pid, signal.SIGKILL))
    watch.start()
    return watch


SQL = """
SELECT device, '20s' AS w, window.start AS s, max(t) AS high, count(*) AS n FROM readings WHERE t >= 1
GROUP BY device, window(ts, '20 seconds')
UNION ALL
SELECT device, '60s', window.start, max(t), count(*) FROM readings WHERE t >= 1
GROUP BY device, window(ts, '60 seconds', '20 seconds')
"""


@pytest.fixture
def run(broker, inside, tmp_path):
    """Run a query over a topic on the command line."""
    path = tmp_path / "q.sql"

    def run(topic, output, *more, text=SQL, checkpoint=tmp_path / "checkpoint"):
        path.write_text(text)
        address = f"readings=kafka://{broker.servers}/{topic}"
        options = ("--schema", SCHEMA, "--watermark", "5 minutes", "--checkpoint", checkpoint, "--json")
        code, out, err = inside("run", path, "--input", address, "--output", output, *options, *more)
        return code, json.loads(out) if out else {}, err

    return run


def as_batch(spark, broker, topic, text=SQL):
    """What Spark gives of the SQL over the topic as a batch."""
    events_of(spark.read, broker.servers, topic).createOrReplaceTempView("readings")
    return spark.sql(text)


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_the_command_line_upserts_early_results_and_corrections(spark, broker, send, run, format):
    topic, table = f"updated-{format}", {"delta": "updated", "iceberg": "ice.db.updated"}[format]
    messages = readings(60, random.Random(8))
    send(topic, messages[:40])
    code, _, err = run(topic, table, "--mode", "update")
    assert (code, f"there is no table {table}; --format delta or --format iceberg creates it" in err) == (2, True)
    code, came, err = run(topic, table, "--mode", "update", "--format", format)
    assert (code, came["messages"], came["without_time"]) == (0, 40, 0), err
    first = as_batch(spark, broker, topic)
    assert differing_rows(spark.table(table), first) == 0
    assert came["rows"] == first.count()
    send(topic, messages[40:])
    code, came, err = run(topic, table, "--mode", "update")
    assert (code, came["messages"]) == (0, 20), err
    # Iceberg shows a session what it has looked up before, for half a minute.
    spark.catalog.refreshTable(table)
    assert differing_rows(spark.table(table), as_batch(spark, broker, topic)) == 0
    code, came, err = run(topic, table, "--mode", "update")
    assert (code, came["messages"], came["rows"]) == (0, 0, 0), err


def test_the_command_line_appends_to_files_and_counts_messages_without_a_time(spark, broker, send, run, tmp_path):
    bad = ["not JSON", "{}", '{"ts": "yesterday", "device": "d0", "t": 1}', ""]
    good = [*readings(40, random.Random(9)), '{"ts": "2024-01-01T00:00:01Z", "device": "d0", "t": "warm"}']
    send("files", [*good, *bad])
    out = tmp_path / "out.csv"
    code, came, err = run("files", out, text=SQL.replace("WHERE t >= 1", ""))
    assert (code, came["messages"], came["without_time"], came["rows"]) == (0, 45, 4, 0), err
    assert "read 45 messages in 2 micro-batches; 4 without a time count in no window" in err
    send("files", [reading(10_000, "end")] * 2)
    code, came, err = run("files", out, text=SQL.replace("WHERE t >= 1", ""))
    assert code == 0, err
    found = spark.read.option("header", True).csv(str(out))
    expected = as_batch(spark, broker, "files", SQL.replace("WHERE t >= 1", "")).where("device <> 'end'")
    assert (found.count(), found.agg({"n": "sum"}).first()[0]) == (came["rows"], 4 * 41.0)
    assert found.count() == expected.count()
    code, _, err = run("files", out, checkpoint=tmp_path / "another")
    assert (code, "exists already, but the checkpoint" in err) == (2, True)
    code, _, err = run("files", out, text=SQL.replace("20 seconds", "10 seconds"))
    assert (code, "belongs to another plan" in err) == (2, True)


def test_a_query_that_reads_no_stream_is_refused(spark, send, run, tmp_path):
    spark.range(3).selectExpr("timestamp_seconds(id) AS ts", "'a' AS device", "1.5 AS t").write.parquet(
        str(tmp_path / "in.parquet")
    )
    send("unread", [reading(1)])
    text = SQL.replace("FROM readings", "FROM other")
    code, _, err = run("unread", tmp_path / "o.csv", "--input", f"other={tmp_path}/in.parquet", text=text)
    assert (code, err.strip()) == (2, "error: --input readings is not in the query, which reads other")


def test_a_broker_that_is_not_there_is_one_sentence(broker, inside, tmp_path):
    from benchmarks.kafka_broker import free_ports

    path = tmp_path / "q.sql"
    path.write_text(SQL)
    quick = "kafka.default.api.timeout.ms=2000&kafka.request.timeout.ms=1000&fetchOffset.numRetries=1"
    address = f"readings=kafka://127.0.0.1:{free_ports(1)[0]}/nowhere?{quick}"
    options = ("--schema", SCHEMA, "--watermark", "5 minutes", "--checkpoint", tmp_path / "ck")
    code, _, err = inside("run", path, "--input", address, "--output", tmp_path / "o.parquet", *options)
    assert (code, len(err.splitlines())) == (3, 1), err
    assert err.startswith("error: Spark failed: ")


def test_follow_goes_on_until_it_is_interrupted(spark, broker, send, tmp_path):
    messages = readings(60, random.Random(10))
    send("followed", messages[:30])
    path, table = tmp_path / "q.sql", tmp_path / "table"
    path.write_text(SQL)
    command = [sys.executable, "-m", "factor_windows", "run", path, "--output", table, "--format", "delta", "--follow"]
    command += ["--input", f"readings=kafka://{broker.servers}/followed", "--mode", "update"]
    command += ["--schema", SCHEMA, "--watermark", "5 minutes", "--checkpoint", tmp_path / "checkpoint"]
    for name, value in lake_settings(tmp_path / "warehouse").items():
        if not name.startswith("spark.driver."):
            command += ["--conf", f"{name}={value}"]
    with subprocess.Popen([*map(str, command)], stderr=subprocess.PIPE, text=True, start_new_session=True) as job:
        watch = _ends_after(job, 2 * SECONDS)
        try:
            told = _until(job.stderr, "read 30 messages")
            send("followed", messages[30:])
            told += _until(job.stderr, "read 60 messages")
            os.kill(job.pid, signal.SIGINT)
            told += job.stderr.read()
            assert job.wait(SECONDS) == 0, told
        finally:
            watch.cancel()
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGKILL)
    assert "Traceback" not in told
    assert Counter(told.split())["wrote"] == 1
    assert differing_rows(spark.read.format("delta").load(str(table)), as_batch(spark, broker, "followed")) == 0


def _until(stream, text):
    """Read lines until one has a text; return all of them."""
    lines = ""
    while text not in lines:
        line = stream.readline()
        assert line, lines
        lines += line
    return lines


def test_the_example_prints_a_table_that_is_corrected(spark, broker, capsys, tmp_path):
    import runpy

    example = Path(__file__).parents[2] / "examples" / "kafka.py"
    runpy.run_path(str(example))["main"](spark, broker.servers, folder=str(tmp_path))
    _, first, second, third = capsys.readouterr().out.split("more readings:")
    row = "|pump 1| 5 minutes|09:00|       {}|   {}|"
    assert row.format(1, 60.0) in first
    assert row.format(1, 60.0) in second
    assert row.format(2, 91.0) in third
