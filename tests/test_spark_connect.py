"""Plans run through Spark Connect too: only the public API of PySpark is used."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import datetime, tempfile
from pathlib import Path
from pyspark.sql import SparkSession
import factor_windows as fw
spark = (
    SparkSession.builder.remote("local[2]")
    .config("spark.sql.session.timeZone", "UTC").config("spark.sql.shuffle.partitions", "1")
    .config("spark.ui.enabled", "false").getOrCreate()
)
assert "connect" in type(spark).__module__, type(spark)
events = spark.range(600).selectExpr(
    "timestamp_seconds(id * 10 - 900) AS ts", "id % 3 AS k", "CAST(id * 7 % 31 AS double) AS v", "id % 5 AS n")
windows = [fw.tumbling("20m"), fw.tumbling("30m"), fw.hopping("1h", "10m", name="hourly")]
aggregates = ["min(v)", "avg(v) AS mean", "stddev(v) AS s", "count(*) FILTER (WHERE n > 1) AS c", "first(v) AS f",
              "approx_count_distinct(n) AS d", "approx_percentile(v, 0.5) AS p"]
query = fw.Query(time="ts", keys=["k"], windows=windows, aggregates=aggregates[:5])
from factor_windows.spark.naive import naive
from factor_windows.spark.compare import differing_rows
query_of_first = fw.Query(time="ts", keys=["k"], windows=windows, aggregates=aggregates[:4])
assert differing_rows(fw.optimize(query_of_first).run(events), naive(query_of_first, events)) == 0
assert fw.aggregate(events, time="ts", keys=["k"], windows=windows, aggregates=aggregates).count() > 0
assert fw.aggregate(events, time="ts", windows=windows, aggregates=["median(v)"]).count() > 0
assert fw.analyze(events, time="ts", keys=["k"], sample=1).keys == 3
labels = spark.sql("SELECT 1L AS k, timestamp_seconds(3000) AS at UNION ALL SELECT NULL, NULL")
past = fw.optimize(query, rate=1, unit="1 second", keys=3).at(labels, events)
seen = {row["window_id"]: row["c"] for row in past.where("at IS NOT NULL").collect()}
near = "k = 1 AND n > 1 AND ts < timestamp_seconds(3000) AND ts >= timestamp_seconds(3000 - {})"
assert seen == {window.name: events.where(near.format(window.range // 10**6)).count() for window in windows}, seen
assert fw.optimize(query_of_first).at(labels, events).where("at IS NULL AND c = 0").count() == 3
events.createOrReplaceTempView("events")
text = "SELECT k, window.end AS e, max(v) AS m FROM events GROUP BY k, window(ts, '20 minutes') ORDER BY e, k"
assert [tuple(row) for row in fw.sql(spark, text).collect()] == [tuple(row) for row in spark.sql(text).collect()]
with tempfile.TemporaryDirectory() as folder:
    ticks = spark.readStream.format("rate-micro-batch").options(rowsPerBatch=4, advanceMillisPerBatch=30000).load()
    stream = ticks.withWatermark("timestamp", "1 second")
    query = fw.Query(time="timestamp", windows=[fw.tumbling("20s"), fw.tumbling("30s")], aggregates=["max(value)"])
    place = Path(folder) / "state [1]"
    for _ in range(2):
        result = fw.optimize(query).run(stream, checkpoint=place)
        writer = result.writeStream.option("checkpointLocation", str(place)).option("path", f"{folder}/out")
        writer.trigger(availableNow=True).start().awaitTermination()
    batch = spark.range(8).selectExpr("timestamp_seconds(id DIV 4 * 30) AS timestamp", "id AS value")
    left = fw.optimize(query).flush(batch, checkpoint=place)
    rows, rest = spark.read.parquet(f"{folder}/out").collect(), left.collect()
    assert sorted(map(tuple, rows + rest)) == sorted(map(tuple, naive(query, batch).collect()))
    assert len(rest) == 3
    try:
        fw.optimize(fw.Query(time="timestamp", windows=[fw.tumbling("40s")], aggregates=["max(value)"])).run(
            stream, checkpoint=place)
    except fw.PlanError as mistake:
        print(mistake)
halves = fw.optimize(query_of_first)
panes = halves.partials(events.where("n > 2")).unionByName(halves.partials(events.where("n <= 2")))
assert differing_rows(halves.merge(panes), naive(query_of_first, events)) == 0
with tempfile.TemporaryDirectory() as folder:
    store = fw.Store.create(spark, f"{folder}/a b [1]", query_of_first)
    store.append(events.where("n > 2"), batch="one")
    store.append(events.where("n > 2"), batch="one")
    store.compact()
    store.append(events.where("n <= 2"))
    assert differing_rows(store.read(), naive(query_of_first, events)) == 0
    assert differing_rows(store.changes(since=0).drop("is_final"), naive(query_of_first, events)) == 0
    ticks = spark.readStream.format("rate-micro-batch").options(rowsPerBatch=4, advanceMillisPerBatch=30000).load()
    query = fw.Query(time="timestamp", windows=[fw.tumbling("20s"), fw.tumbling("30s")], aggregates=["max(value)"])
    store = fw.Store.create(spark, f"{folder}/stream", query)
    for _ in range(2):
        store.write_stream(ticks, checkpoint=f"{folder}/checkpoint", trigger={"availableNow": True}).awaitTermination()
    batch = spark.range(8).selectExpr("timestamp_seconds(id DIV 4 * 30) AS timestamp", "id AS value")
    assert differing_rows(store.read(), naive(query, batch)) == 0
try:
    fw.aggregate(events, time="nope", windows=windows, aggregates=["min(v)"])
except fw.QueryError as mistake:
    print(mistake)
spark.stop()
print("equal")
"""


@pytest.mark.long
def test_a_plan_runs_through_spark_connect(interpreting):
    # The server runs what a stream calls for each micro-batch in a Python of its own, which needs what this one has.
    with_this = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300, env=with_this)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "equal"
    assert "belongs to another plan: 40 seconds is new" in done.stdout.splitlines()[0]
    assert "nope" in done.stdout.splitlines()[1]
