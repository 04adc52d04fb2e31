"""How far a stream has come: what flush goes by, which settings are refused, and event time that goes on."""

import random
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from file_streams import finish, stream_of, write_batches
from pyspark.sql import Row
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampNTZType, TimestampType

from factor_windows import OptionError, Query, QueryError, hopping, optimize, tumbling
from factor_windows.spark.naive import naive
from factor_windows.spark.watermark import CHAINS, CLOSED, closed_until

pytestmark = pytest.mark.usefixtures("one_partition")

SCHEMA = "ts timestamp, k string, v double"
QUERY = Query(
    time="ts",
    keys=["k"],
    windows=[tumbling("20s"), tumbling("30s"), hopping("60s", "20s")],
    aggregates=["count(*) AS n", "max(v) AS high"],
)


def write(spark, folder, *batches):
    """Write a file for each micro-batch, with events at these seconds; return all of them as a batch."""
    rng = random.Random(7)
    rows = [
        [{"ts": second, "k": rng.choice("ab"), "v": float(rng.randrange(99))} for second in seconds]
        for seconds in batches
    ]
    return write_batches(spark, folder, rows, SCHEMA)


def stream_in(spark, folder, delay="5 seconds"):
    return stream_of(spark, folder / "in", SCHEMA, delay)


def rows_of(frame):
    return sorted(map(tuple, frame.collect()))


def test_flush_after_a_restart_with_nothing_new_goes_by_the_checkpoint(spark, tmp_path):
    events = write(spark, tmp_path / "in", range(0, 60, 4), range(60, 120, 4))
    plan, place = optimize(QUERY), tmp_path / "state [1]"
    result = plan.run(stream_in(spark, tmp_path), checkpoint=place)

    def start():
        writer = result.writeStream.foreachBatch(lambda rows, _: rows.write.mode("append").parquet(f"{tmp_path}/out"))
        query = writer.option("checkpointLocation", str(place)).trigger(availableNow=True).start()
        query.awaitTermination()
        return query

    left = rows_of(plan.flush(events, start()))
    assert rows_of(spark.read.parquet(f"{tmp_path}/out")) == sorted(set(rows_of(naive(QUERY, events))) - set(left))
    again = start()
    with pytest.raises(OptionError) as refused:
        plan.flush(events, again)
    assert str(refused.value) == (
        "the query tells no watermark, as one that was started again with nothing new to read; pass a time instead of "
        "the query, such as max(window_end) of all rows that the stream has written: flush(events, datetime(...)), "
        "or flush(events, checkpoint=...)"
    )
    assert rows_of(plan.flush(events, again, checkpoint=place)) == left
    assert rows_of(plan.flush(events, checkpoint=str(place))) == left
    with pytest.raises(OptionError, match="holds no stream that was started"):
        plan.flush(events, checkpoint=tmp_path / "elsewhere")


@pytest.mark.long
def test_flush_after_a_join_of_streams_loses_no_window(spark, tmp_path):
    # A join drops what is not after Spark's first watermark, 1970.
    events = write(spark, tmp_path / "in", *(range(low, low + 30, 5) for low in range(1, 121, 30)))
    stream = stream_in(spark, tmp_path)
    other = stream_in(spark, tmp_path).selectExpr("ts AS ts2", "k AS k2", "v AS v2")
    same = "k = k2 AND v = v2 AND ts2 BETWEEN ts AND ts + INTERVAL 20 SECONDS"
    plan = optimize(QUERY)
    query = finish(plan.run(stream.join(other, F.expr(same)).drop("k2", "v2", "ts2")), "joined")
    batch = events.join(events.selectExpr("ts AS ts2", "k AS k2", "v AS v2"), F.expr(same)).drop("k2", "v2", "ts2")
    written, left = rows_of(spark.table("joined")), rows_of(plan.flush(batch, query))
    assert len(written) == 22
    assert sorted(written + left) == rows_of(naive(QUERY, batch))
    last = spark.table("joined").agg(F.max("window_end")).first()[0]
    assert rows_of(plan.flush(batch, last)) == left


def progress(batch, *, watermark="1970-01-01T00:01:00.000Z", operators=("stateStoreSave",), **ends):
    return {
        "batchId": batch,
        "eventTime": {"watermark": watermark} if watermark else {},
        "stateOperators": [{"operatorName": name} for name in operators],
        "observedMetrics": {CLOSED + name: Row(windows=1, end=end) for name, end in ends.items()},
    }


def test_what_a_query_tells_of_its_progress_is_used_where_it_is_the_plans_own(spark):
    def until(*told):
        return closed_until(spark, SimpleNamespace(recentProgress=list(told)), None, TimestampType())

    join = {"operators": ("stateStoreSave", "symmetricHashJoin")}
    assert until(progress(7), progress(8, watermark="")) == 60_000_000
    assert until(progress(3, **join, a=20), progress(4, **join, a=None)) == 20
    assert until(progress(0, **join, a=None)) == 0
    connect = progress(3, **join)
    fields = [{"name": "windows"}, {"name": "end"}]
    connect["observedMetrics"] = {f"{CLOSED}a": Row(values=[1, 20], schema={"type": "struct", "fields": fields})}
    assert until(connect) == 20
    for told in ([progress(3, **join, a=None)], [progress(3, **join, a=20, b=30)], [progress(3, **join)]):
        with pytest.raises(OptionError, match="joins streams, so its watermark is not that of the plan; pass a time"):
            until(*told)
    with pytest.raises(OptionError, match="the query tells no watermark"):
        until()


def test_a_time_without_a_zone_is_the_events_own(spark):
    assert closed_until(spark, datetime(1970, 1, 2), None, TimestampNTZType()) == 86_400_000_000
    aware = datetime(1970, 1, 2, tzinfo=UTC)
    assert closed_until(spark, aware, None, TimestampNTZType()) == 86_400_000_000
    assert closed_until(spark, aware.astimezone().replace(tzinfo=None), None, TimestampType()) == 86_400_000_000


@pytest.mark.usefixtures("chained")
def test_a_chain_is_refused_where_spark_has_one_watermark_for_all_operators(spark, tmp_path):
    write(spark, tmp_path / "in", [1])
    stream = stream_in(spark, tmp_path)
    spark.conf.set(CHAINS, "false")
    try:
        with pytest.raises(OptionError) as refused:
            optimize(QUERY).run(stream)
        assert optimize(QUERY, search="none").run(stream).columns == list(QUERY.columns)
        assert optimize(QUERY).run(stream, mode="update").columns == list(QUERY.columns)
    finally:
        spark.conf.unset(CHAINS)
    assert str(refused.value) == (
        "spark.sql.streaming.statefulOperator.allowMultiple is false, which makes Spark lose rows between the 2 "
        "operators of this plan; set it to true, or plan with optimize(query, search='none'), which needs one operator"
    )


@pytest.mark.long
def test_windows_across_1970_are_those_of_the_window_by_window_query(spark, tmp_path):
    write(spark, tmp_path / "in", range(-95, -40, 5), range(-40, 5, 5), range(5, 40, 5), [90])
    stream = stream_in(spark, tmp_path, "0 seconds")
    finish(optimize(QUERY).run(stream), "ours")
    finish(naive(QUERY, stream), "naively")
    found = rows_of(spark.table("ours"))
    assert found == rows_of(spark.table("naively"))
    assert sum(row[2] < datetime(1970, 1, 1) < row[3] for row in found) == 4


def test_the_end_of_a_window_is_event_time_for_what_follows(spark, tmp_path):
    seconds = sorted(range(0, 400, 4), key=lambda second: second + random.Random(second).randrange(5))
    events = write(spark, tmp_path / "in", seconds[:30], seconds[30:31], seconds[31:80], seconds[80:])
    plan = optimize(QUERY)

    def by_minute(result):
        minute = F.window("window_end", "1 minute").alias("minute")
        return result.groupBy("k", minute).agg(F.count("*").alias("windows"), F.sum("n").alias("n"))

    query = finish(by_minute(plan.run(stream_in(spark, tmp_path))), "minutes")
    watermark = datetime.fromisoformat(query.lastProgress["eventTime"]["watermark"])
    closed = by_minute(plan.run(events)).where(F.col("minute.end") <= F.lit(watermark))
    found = rows_of(spark.table("minutes"))
    assert len(found) == 12
    assert found == rows_of(closed)


def test_the_times_name_may_differ_in_case(spark, tmp_path):
    write(spark, tmp_path / "in", [1])
    stream = stream_in(spark, tmp_path)
    upper = Query(time="TS", windows=QUERY.windows, aggregates=QUERY.aggregates)
    assert optimize(upper).run(stream).columns == list(upper.columns)
    for time in ("nope", "CAST(ts AS DATE)"):
        other = Query(time=time, windows=QUERY.windows, aggregates=QUERY.aggregates)
        with pytest.raises(QueryError) as refused:
            optimize(other).run(stream)
        assert str(refused.value) == (
            f"the stream's watermark is on 'ts', but the query's time is {time!r}; "
            "put the watermark on the query's time column"
        )
