"""A checkpoint goes on with the plan that it was begun with, and is refused where its state cannot answer."""

import json
from pathlib import Path
from zipfile import ZipFile

import pytest
from pyspark.sql import functions as F
from ticking import STEP, tick, ticked, ticking

from factor_windows import PlanError, Query, hopping, optimize, split_by_query, tumbling
from factor_windows.spark.checkpoint import read_note
from factor_windows.spark.naive import naive
from factor_windows.spark.types import types_of

pytestmark = pytest.mark.usefixtures("one_partition")

KEPT = Path(__file__).parent / "kept" / "checkpoints.zip"
"""Two checkpoints after three ticks, written by version 0.1.0 as it was before notes told the flags of queries."""
COMMON = {"time": "timestamp", "keys": ["value % 2 AS odd"]}
WINDOWS = [tumbling("20s"), tumbling("30s"), hopping("60s", "20s")]
TWO = {"time": "timestamp", "windows": [tumbling("1m")], "aggregates": ["count(*) AS n"]}


def begin(place):
    """Leave what Spark leaves as soon as a stream starts."""
    (place / "metadata").write_text('{"id":"0"}', encoding="utf-8")


def rows_of(frame):
    return sorted(map(tuple, frame.collect()))


def closed(query, events, after, until):
    """The rows that a window by window query writes while the watermark goes from one second to another."""
    end = F.unix_seconds("window_end")
    return rows_of(naive(query, events).where((end > after) & (end <= until)))


def plan_of(*lengths, search="best", **changed):
    windows = [tumbling(f"{length} minutes") for length in lengths]
    return optimize(
        Query(**{"time": "timestamp", "windows": windows, "aggregates": ["max(value)"]} | changed), search=search
    )


@pytest.mark.long
def test_what_is_named_otherwise_reordered_or_left_out_goes_on(spark, tmp_path):
    stream, place = ticking(spark), tmp_path / "state"
    first = Query(**COMMON, windows=WINDOWS, aggregates=["sum(value)", "max(value)", "count(*) AS n"])
    tick(optimize(first).run(stream, checkpoint=place), tmp_path / "first", place, times=3)
    again = Query(
        **COMMON,
        windows=[tumbling("30s", name="half"), tumbling("20s"), tumbling("20s", name="b")],
        aggregates=["count(*)", "sum(value) AS total"],
        where="true",
        having="total > 0",
        output=["window_id AS id", "odd", "window_start", "window_end", "total", "`count(1)` AS n"],
    )
    result = optimize(again).run(stream, checkpoint=place)
    tick(result, tmp_path / "again", place, times=2)
    bare = Query(**COMMON, windows=again.windows, aggregates=again.aggregates)
    expected = naive(bare, ticked(spark, 5)).selectExpr(
        "window_id AS id", "odd", "window_start", "window_end", "total", "`count(1)` AS n"
    )
    end = F.unix_seconds("window_end")
    found = spark.read.parquet(f"{tmp_path}/again")
    assert found.columns == expected.columns
    assert [field.dataType for field in result.schema] == [field.dataType for field in expected.schema]
    assert result.schema == optimize(again).run(stream).schema
    assert rows_of(found) == rows_of(expected.where((end > 2 * STEP - 1) & (end <= 4 * STEP - 1)))
    assert found.count() == 6


@pytest.mark.usefixtures("chained")
def test_a_stream_goes_on_with_the_plan_that_it_was_begun_with(spark, tmp_path):
    stream, place = ticking(spark), tmp_path / "state"
    query = Query(time="timestamp", windows=[tumbling("15s"), tumbling("17s")], aggregates=["sum(value)"])
    first = optimize(query)
    tick(first.run(stream, checkpoint=place), tmp_path / "out", place, times=2)
    # A search that is cut short, or another version of it, may find another tree for the same query.
    other = optimize(query, search="coverage")
    assert other.nodes != first.nodes
    running = tick(other.run(stream, checkpoint=place), tmp_path / "out", place, times=2)
    assert read_note(spark, str(place)).plan == first.passes[0]
    assert len(running.lastProgress["stateOperators"]) == 2
    assert rows_of(spark.read.parquet(f"{tmp_path}/out")) == closed(query, ticked(spark, 4), 0, 3 * STEP - 1)


@pytest.mark.usefixtures("chained")
def test_a_plan_that_the_state_cannot_answer_is_refused_with_what_differs(spark, tmp_path):
    stream = ticking(spark)
    plan_of(20, 30).run(stream, checkpoint=tmp_path)
    begin(tmp_path)
    plan_of(30, where="TRUE").run(stream, checkpoint=tmp_path)
    for other, reason in (
        (plan_of(20, 40), "40 minutes is new"),
        (
            plan_of(20, 30, aggregates=["min(value)"]),
            "min(value) of 20 minutes is new, min(value) of 30 minutes is new",
        ),
        (plan_of(20, 30, keys=["value"]), "20 minutes is new, 30 minutes is new"),
        (plan_of(20, 30, where="value > 0"), "its condition is none, not value > 0"),
        (plan_of(20, 30, time="`timestamp`"), "its time is timestamp, not `timestamp`"),
        (
            plan_of(20, 30, search="none"),
            "its plan is of search 'best', not of search 'none', which feeds all windows from events",
        ),
    ):
        with pytest.raises(PlanError) as refused:
            other.run(stream, checkpoint=tmp_path)
        assert str(refused.value) == (
            f"the checkpoint {str(tmp_path)!r} belongs to another plan: {reason}; "
            "use a new checkpoint, or go back to the old query"
        )
    with pytest.raises(PlanError, match="its mode is append, not update"):
        plan_of(20, 30).run(stream, checkpoint=tmp_path, mode="update")
    [note] = (tmp_path / "factor-windows").glob("part-*")
    text = note.read_text(encoding="utf-8").replace('["max(value)", ', '["max(value + 0)", ')
    (note.parent / f".{note.name}.crc").unlink()
    note.write_text(text, encoding="utf-8")
    with pytest.raises(PlanError, match="its states are others than those of this version, or of these types"):
        plan_of(20, 30).run(stream, checkpoint=tmp_path)


def test_what_each_node_of_several_queries_holds_is_compared(spark, tmp_path):
    stream = ticking(spark)

    def plan(*aggregates, condition="value > 90"):
        both = Query(time="timestamp", windows=[tumbling("20s")], aggregates=["max(value)", "min(value)"], name="a")
        high = Query(time="timestamp", windows=[tumbling("10m")], aggregates=aggregates, name="b")
        some = Query(**TWO, where=condition, name="c")
        return optimize([both, high, some])

    plan("max(value)").run(stream, checkpoint=tmp_path)
    begin(tmp_path)
    plan("max(value) AS high").run(stream, checkpoint=tmp_path)
    with pytest.raises(PlanError, match=r"belongs to another plan: min\(value\) of 10 minutes is new;"):
        plan("max(value)", "min(value)").run(stream, checkpoint=tmp_path)
    with pytest.raises(PlanError, match=r"WHERE coalesce\(value > 80, FALSE\)\) of 1 minute is new"):
        plan("max(value)", condition="value > 80").run(stream, checkpoint=tmp_path)


def test_columns_that_are_dropped_stay_in_the_state(spark, tmp_path):
    stream, place = ticking(spark), tmp_path / "state"
    query = Query(time="timestamp", windows=[tumbling("20s"), tumbling("30s")], aggregates=["max(value)", "min(value)"])
    plan = optimize(query)
    tick(plan.run(stream, checkpoint=place).drop("min(value)"), tmp_path / "first", place, times=2)
    tick(plan.run(stream, checkpoint=place).drop("max(value)"), tmp_path / "again", place, times=2)
    expected = naive(query, ticked(spark, 4)).where(F.unix_seconds("window_end") <= 3 * STEP - 1)
    assert rows_of(spark.read.parquet(f"{tmp_path}/again")) == rows_of(expected.drop("max(value)"))


@pytest.mark.long
def test_a_query_that_is_gone_leaves_the_others_as_they_were(spark, tmp_path):
    stream, place = ticking(spark), tmp_path / "state"
    low = Query(**TWO | {"windows": [tumbling("20s")]}, where="value % 2 = 0", name="low")
    every = Query(**TWO | {"windows": [tumbling("30s")]}, name="all")
    tick(optimize([low, every]).run(stream, checkpoint=place), tmp_path / "both", place, times=2)
    plan = optimize([every])
    tick(plan.run(stream, checkpoint=place), tmp_path / "one", place, times=3)
    found = split_by_query(spark.read.parquet(f"{tmp_path}/one"), plan=plan)["all"]
    assert rows_of(found) == closed(every, ticked(spark, 5), 0, 4 * STEP - 1)
    assert found.count() == 1


def test_a_checkpoint_that_was_begun_without_a_note_is_refused(spark, tmp_path):
    stream = ticking(spark)
    begin(tmp_path)
    with pytest.raises(PlanError) as refused:
        plan_of(20).run(stream, checkpoint=tmp_path)
    assert str(refused.value) == (
        f"the checkpoint {str(tmp_path)!r} was started without checkpoint=, so its state is unknown; use a new "
        "one, and pass its place to run(..., checkpoint=...) too"
    )


def test_a_plan_that_was_only_looked_at_blocks_no_other(spark, tmp_path):
    stream = ticking(spark)
    plan_of(20).run(stream, checkpoint=tmp_path)
    plan_of(40).run(stream, checkpoint=tmp_path)
    assert read_note(spark, str(tmp_path)) is None
    begin(tmp_path)
    assert [node.name for node in read_note(spark, str(tmp_path)).plan.nodes] == ["40 minutes"]


@pytest.mark.parametrize("name", ["ck[1]", "ck {a,b}", "a*b?", "back\\slash", "per%20cent"])
def test_a_checkpoint_is_guarded_whatever_its_path(spark, tmp_path, name):
    place = tmp_path / name
    plan_of(20).run(ticking(spark), checkpoint=f"file://{place}/")
    begin(place)
    plan_of(20).run(ticking(spark), checkpoint=place)
    with pytest.raises(PlanError, match="40 minutes is new"):
        plan_of(40).run(ticking(spark), checkpoint=str(place))


def test_a_damaged_note_is_refused(spark, tmp_path):
    begin(tmp_path)
    (tmp_path / "factor-windows").mkdir()
    (tmp_path / "factor-windows" / "part-0.txt").write_text('{"levels": []}\n', encoding="utf-8")
    with pytest.raises(
        PlanError, match=r"the note in .*/factor-windows is damaged: KeyError 'states'; use a new checkpoint"
    ):
        plan_of(20).run(ticking(spark), checkpoint=tmp_path)


@pytest.mark.long
def test_a_checkpoint_of_an_earlier_version_goes_on(spark, tmp_path):
    ZipFile(KEPT).extractall(tmp_path)
    place = tmp_path / "one_query"
    query = Query(**COMMON, windows=WINDOWS, aggregates=["sum(value) AS total", "count(*) AS n"])
    tick(optimize(query).run(ticking(spark), checkpoint=place), tmp_path / "out", place, times=2)
    assert rows_of(spark.read.parquet(f"{tmp_path}/out")) == closed(query, ticked(spark, 5), 0, 4 * STEP - 1)
    low = Query(time="timestamp", windows=[tumbling("20s")], aggregates=["max(value)", "min(value)"], name="a")

    def plan(*aggregates):
        high = Query(time="timestamp", windows=[tumbling("60s")], aggregates=aggregates, name="b")
        return optimize([low, high])

    place = tmp_path / "two_queries"
    with pytest.raises(PlanError, match=r"min\(value\) of 1 minute is new"):
        plan("max(value)", "min(value)").run(ticking(spark), checkpoint=place)
    tick(plan("max(value)").run(ticking(spark), checkpoint=place), tmp_path / "two", place, times=1)
    found = split_by_query(spark.read.parquet(f"{tmp_path}/two"))["a"]
    assert rows_of(found) == closed(low, ticked(spark, 4), 0, 3 * STEP - 1)


def test_the_states_of_an_earlier_version_are_known(spark):
    events = spark.sql(
        "SELECT timestamp_seconds(1) AS ts, 1L AS n, 1 AS i, 1.5D AS v, CAST(1 AS DECIMAL(12, 3)) AS d, "
        "CAST(1 AS DECIMAL(38, 4)) AS wide, 'a' AS s, true AS ok"
    )
    kept = json.loads((Path(__file__).parent / "kept" / "states-0.1.0.json").read_text(encoding="utf-8"))
    found = {}
    for aggregate in kept:
        query = Query(time="ts", windows=[tumbling("1m")], aggregates=[aggregate])
        types = types_of(query, events, "__fw_", earlier=True)
        found[aggregate] = [[state.lift, state.combine] for state in types.states]
    assert found == kept
