"""A wide result holds what the long one holds, in other places."""

from datetime import UTC, datetime

import pytest
from pyspark.sql import functions as F

import factor_windows as fw
from factor_windows.spark.result import WINDOW_NAMES

WINDOWS = [fw.tumbling("20m"), fw.tumbling("1 hour", name="it's `hourly`.x"), fw.hopping("1h", "20m")]
AGGREGATES = ["count(*) AS n", "max(v)", "collect_set(s) AS seen"]


@pytest.fixture(scope="module")
def events(spark):
    """Three keys, one of them null, with gaps, and values that are sometimes null for a whole window."""
    return spark.range(60).selectExpr(
        "timestamp_seconds(id * id * 7) AS ts",
        "nullif(id % 3, 2) AS `a.b c``d`",
        "CASE WHEN id % 5 > 1 THEN id * 0.5D END AS v",
        "CAST(id % 2 AS string) AS s",
    )


def result_of(events, keys=("`a.b c``d`",)):
    return fw.aggregate(events, time="ts", keys=keys, windows=WINDOWS, aggregates=AGGREGATES)


@pytest.fixture(scope="module")
def result(events):
    return result_of(events).cache()


def by_place(frame, keys):
    """Collect a wide frame as {(keys, time): {column: value}}; sets in order."""
    found, rows = {}, frame.collect()
    for row in rows:
        *group, end = row[: keys + 1]
        values = zip(frame.columns[keys + 1 :], row[keys + 1 :], strict=True)
        found[tuple(group), end] = {name: sorted(v) if isinstance(v, list) else v for name, v in values}
    assert len(found) == len(rows), "a key and time has two rows"
    return found


def slowly(result, keys, *, latest=False, at=None):
    """Make a result wide as one would by hand."""
    rows = [row for row in result.collect() if at is None or row.window_end <= at]
    places = {}
    for row in sorted(rows, key=lambda row: row.window_end):
        group = tuple(row[:keys])
        end = max(other.window_end for other in rows if tuple(other[:keys]) == group) if latest else row.window_end
        empty = {f"{name}_{window.name}": None for name in ("n", "max(v)", "seen") for window in WINDOWS}
        values = places.setdefault((group, end), empty)
        for name in ("n", "max(v)", "seen"):
            values[f"{name}_{row.window_id}"] = sorted(row[name]) if name == "seen" else row[name]
    return places


def test_a_row_for_each_key_and_time_holds_every_window_that_ends_then(result):
    made = fw.wide(result)
    assert made.columns[:3] == ["a.b c`d", "window_end", "n_20 minutes"]
    assert len(made.columns) == 2 + len(WINDOWS) * len(AGGREGATES)
    expected = slowly(result, 1)
    assert by_place(made, 1) == expected
    held = [values for values in expected.values() if values["n_20 minutes"]]
    assert any(values["max(v)_20 minutes"] is None for values in held), "no aggregate is null where there are events"
    assert any(values["n_it's `hourly`.x"] is None for values in held), "no window is missing anywhere"


@pytest.mark.parametrize("hour", [None, 0, 3])
def test_the_latest_row_of_a_key_holds_the_last_instance_of_each_window(result, hour):
    at = None if hour is None else datetime.fromtimestamp(hour * 3600)
    assert by_place(fw.wide(result, latest=True, at=at), 1) == slowly(result, 1, latest=True, at=at)
    if at is not None:
        aware = by_place(fw.wide(result, latest=True, at=at.astimezone(UTC)), 1)
        assert aware == slowly(result, 1, latest=True, at=at)


@pytest.mark.parametrize("latest", [False, True])
def test_a_result_without_keys_has_a_row_for_each_time(events, latest):
    result = result_of(events, keys=())
    assert by_place(fw.wide(result, latest=latest), 0) == slowly(result, 0, latest=latest)
    assert fw.wide(result.where("false"), latest=latest).collect() == []


def test_times_without_a_zone_are_compared_as_they_are(events):
    result = result_of(events.withColumn("ts", F.expr("CAST(ts AS timestamp_ntz)")))
    at = datetime(1970, 1, 1, 3)
    assert by_place(fw.wide(result, latest=True, at=at), 1) == slowly(result, 1, latest=True, at=at)


def test_the_columns_are_known_without_a_job_and_in_the_querys_order(events):
    failing = events.withColumn("v", F.raise_error("a job was run").cast("double"))
    result = fw.aggregate(failing, time="ts", windows=WINDOWS[::-1], aggregates=["max(v) AS top"])
    assert fw.wide(result).columns == ["window_end", *(f"top_{window.name}" for window in WINDOWS[::-1])]
    part = result.where("window_id = '1 hour'").withColumn("more", F.lit(1))
    assert fw.wide(part).columns[-1] == "more_20 minutes"


def test_windows_whose_names_were_changed_are_found_shortest_first(events):
    changed = result_of(events, keys=()).withColumn("window_id", F.expr("upper(window_id)"))
    names = ["20 MINUTES", "1 HOUR / 20 MINUTES", "IT'S `HOURLY`.X"]
    assert fw.wide(changed).columns[1:4] == [f"n_{name}" for name in names]
    with pytest.raises(fw.QueryError, match="has no rows"):
        fw.wide(changed.where("false"))


def test_the_same_window_under_two_names_has_two_columns(events):
    windows = [fw.tumbling("60m", name="hourly"), fw.tumbling("1h"), fw.tumbling("1h")]
    made = fw.wide(fw.aggregate(events, time="ts", windows=windows, aggregates=["count(*) AS n"]))
    assert made.columns == ["window_end", "n_hourly", "n_1 hour"]
    assert made.where("NOT n_hourly <=> `n_1 hour`").isEmpty()


def test_columns_can_be_named_otherwise(result):
    assert "n over 20 minutes" in fw.wide(result, name="{aggregate} over {window}").columns


@pytest.mark.parametrize("name", ["{window}", "same", "{agg}_{window}", "{}", "{aggregate", 7, None])
def test_a_name_that_does_not_tell_columns_apart_is_refused(result, name):
    with pytest.raises(fw.OptionError, match=r"\{aggregate\} over \{window\}"):
        fw.wide(result, name=name)


def test_names_that_would_meet_are_refused(events):
    windows = [fw.tumbling("1h", name="b_c"), fw.tumbling("2h", name="c")]
    result = fw.aggregate(events, time="ts", windows=windows, aggregates=["count(*) AS A", "max(v) AS a_b"])
    with pytest.raises(fw.OptionError, match="two columns would be named 'a_b_c'"):
        fw.wide(result)


@pytest.mark.parametrize(
    "columns", [["k"], ["window_id", "k", "window_end"], ["window_id", "window_start", "window_end"]]
)
def test_what_is_no_result_is_refused(spark, columns):
    frame = spark.range(1).select(*(F.lit(1).alias(column) for column in columns))
    with pytest.raises(fw.QueryError, match=f"takes the result of a plan.*not {', '.join(columns)}"):
        fw.wide(frame)
    with pytest.raises(fw.QueryError, match="takes the result of a plan"):
        fw.wide(columns)


def test_a_time_that_is_none_or_is_not_needed_is_refused(result):
    with pytest.raises(fw.OptionError, match="give a datetime"):
        fw.wide(result, latest=True, at="1970-01-01")
    with pytest.raises(fw.OptionError, match="set latest=True"):
        fw.wide(result, at=datetime(1970, 1, 1))


def test_windows_that_a_union_brought_along_are_not_dropped_in_silence(events):
    hourly, daily = (
        fw.aggregate(events, time="ts", windows=[fw.tumbling(length)], aggregates=["count(*) AS n"])
        for length in ("1 hour", "1 day")
    )
    with pytest.raises(Exception, match="make each of them wide"):
        fw.wide(hourly.union(daily)).collect()


def test_a_stream_is_made_wide_batch_by_batch(spark, tmp_path):
    spark.range(100).selectExpr("timestamp_seconds(id * 60) AS ts").write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema("ts timestamp").parquet(str(tmp_path / "in")).withWatermark("ts", "0 seconds")
    windows = [fw.tumbling("20m"), fw.tumbling("30m"), fw.tumbling("1 day")]
    result = fw.aggregate(stream, time="ts", windows=windows, aggregates=["count(*) AS n"])
    with pytest.raises(fw.QueryError, match="foreachBatch"):
        fw.wide(result)
    made = []

    def keep(batch, _):
        assert WINDOW_NAMES in batch.schema["window_id"].metadata
        made.extend(fw.wide(batch).collect())

    running = result.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "checkpoint"))
    running.trigger(availableNow=True).start().awaitTermination()
    assert {(row["n_20 minutes"], row["n_30 minutes"], row["n_1 day"]) for row in made} == {
        (20, None, None), (None, 30, None), (20, 30, None)
    }  # fmt: skip
