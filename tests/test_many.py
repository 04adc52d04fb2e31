"""Several queries by one plan give what each gives alone: on Spark, on streams, from SQL, and on DuckDB."""

import json
import os
import pickle
import random
from collections import defaultdict
from datetime import datetime
from itertools import pairwise

import duckdb
import pytest
from comparing import assert_equal, by_instance, columns_of, equal
from file_streams import assert_closed, stream_of, watermark_of, write_batches
from generated import EXACT, FLOATING, HOLISTIC, events_of, windows_of
from pyspark.sql import functions as F

from factor_windows import (
    OptionError,
    Plan,
    Query,
    QueryError,
    analyze,
    fan_out,
    hopping,
    optimize,
    parse,
    split_by_query,
    sql,
    tumbling,
)
from factor_windows.spark.compare import differing_rows
from factor_windows.spark.naive import naive
from factor_windows.spark.result import WINDOW_NAMES, apply_post_aggregation, notes_of
from factor_windows.spark.split_by_query import QUERIES

CASES = int(os.environ.get("FACTOR_WINDOWS_CASES", "3"))
KEYS = [[], ["k"], ["site"], ["k", "site"], ["upper(k) AS key"], ["coalesce(site, 7) + 1"], ["v"], ["abs(v)", "k"]]
WHERES = ["", "", "ok", "n > 0", "ok AND n > 0", "n > 0 AND s <> 'x'", "false"]


def queries_of(rng, most=12):
    """A set of queries that differ in all that queries may differ in."""
    queries = []
    for number in range(rng.choice([1, 2, 3, 5, 8, most])):
        functions = rng.choice([EXACT, FLOATING, EXACT + FLOATING, ["min(v)", "max(n)"], EXACT + HOLISTIC[:1]])
        queries.append(
            Query(
                time="ts",
                keys=rng.choice(KEYS),
                windows=rng.sample(found := windows_of(rng), rng.randrange(1, len(found) + 1)),
                aggregates=rng.sample(functions, min(len(functions), rng.randrange(1, 4))),
                where=rng.choice(WHERES),
                having=rng.choice(["", "", "", "window_start IS NOT NULL"]),
                name=rng.choice(["", f"the {number}th 'query'"]),
            )
        )
    return queries


def test_a_naive_plan_and_one_that_was_read_give_the_same_rows(spark):
    rng = random.Random(7)
    events = events_of(rng, spark)
    hours = [tumbling("1 hour"), hopping("2 hours", "30 minutes")]
    queries = [
        Query(time="ts", keys=["k"], windows=hours, aggregates=["min(v)", "count(*)"], where="n > 0", name="a"),
        Query(time="ts", windows=hours[1:], aggregates=["max(n)"], name="b"),
    ]
    plan = optimize(queries)
    with plan.run(events) as expected:
        for other in (plan.naive(), Plan.from_json(plan.to_json())):
            with other.run(events) as found:
                assert [differing_rows(found[name], expected[name]) for name in expected] == [0, 0]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(CASES))
def test_generated_queries_give_together_what_each_gives_alone(request, spark, seed):
    if seed % 5 == 2:
        request.getfixturevalue("compiled")
    rng = random.Random(seed)
    events = events_of(rng, spark)
    queries = queries_of(rng)
    plan = optimize(
        queries,
        search=rng.choice(["none", "coverage", "factor", "slicing", "best", "best", "best"]),
        rate=rng.choice([None, 0.01, 1, 1000]),
        unit="1 second",
        keys=rng.choice([None, 1, 500, 100_000]),
    )
    with plan.run(events) as results:
        assert list(results) == [query.name for query in plan.queries]
        for query in plan.queries:
            expected, found = apply_post_aggregation(query, naive(query, events)), results[query.name]
            assert columns_of(found) == columns_of(expected)
            assert_equal(query, by_instance(query, found), by_instance(query, expected))


PLAIN = ["count(*)", "sum(n)", "min(v)", "max(v)", "avg(n)", "stddev_pop(v)", "count(v)"]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(700, 700 + CASES))
def test_generated_queries_give_what_duckdb_gives(spark, seed):
    rng = random.Random(seed)
    rows = [
        (rng.randrange(-200, 200) * 500_000, rng.choice("ab"), rng.randrange(3), rng.uniform(-5, 5), rng.randrange(9))
        for _ in range(rng.choice([1, 40, 150]))
    ]
    frame = spark.createDataFrame(rows, "t bigint, k string, site int, v double, n bigint")
    events = frame.selectExpr("timestamp_micros(t) AS ts", "*")
    queries = [
        Query(
            time="ts",
            keys=rng.choice([[], ["k"], ["site"], ["k", "site"]]),
            windows=windows_of(rng)[:2],
            aggregates=rng.sample(PLAIN, rng.randrange(1, 4)),
            where=rng.choice(["", "n > 3", "v > 0 AND n > 3"]),
        )
        for _ in range(rng.choice([2, 4, 10, 30]))
    ]
    plan = optimize(queries)
    with duckdb.connect() as db, plan.run(events) as results:
        db.execute("CREATE TABLE r (t BIGINT, k VARCHAR, site INT, v DOUBLE, n BIGINT)")
        db.executemany("INSERT INTO r VALUES (?, ?, ?, ?, ?)", rows)
        for query in plan.queries:
            found = sorted(map(tuple, in_microseconds(results[query.name]).collect()), key=repr)
            expected = sorted(db.execute(in_duckdb(query)).fetchall(), key=repr)
            assert len(found) == len(expected)
            for ours, theirs in zip(found, expected, strict=True):
                assert all(
                    equal(float(a), float(b)) if isinstance(b, float) else a == b
                    for a, b in zip(ours, theirs, strict=True)
                )


def in_microseconds(frame):
    times = {name: F.unix_micros(name) for name in ("window_start", "window_end")}
    return frame.withColumns(times)


def in_duckdb(query):
    """Write a query in plain SQL that knows nothing of windows."""
    keys = "".join(f"{key}, " for key in query.keys)
    parts = []
    for window in query.windows:
        last = f"(floor((t - {window.offset}) / {window.slide}) * {window.slide} + {window.offset})::BIGINT"
        starts = f"unnest(range({last}, t - {window.range}, -{window.slide}))"
        where = f"WHERE {query.where}" if query.where else ""
        parts.append(
            f"SELECT {keys}'{window.name}', b, b + {window.range}, {', '.join(query.aggregates)} "
            f"FROM (SELECT *, {starts} AS b FROM r {where}) GROUP BY {keys}b"
        )
    return " UNION ALL ".join(parts)


def test_all_results_come_from_one_pass_over_the_events(spark, tmp_path):
    passes = spark.sparkContext.accumulator(0)

    def counted(number):
        passes.add(1)
        return datetime.fromtimestamp(number * 7), number % 5, number % 3

    numbers = spark.sparkContext.parallelize(range(1000), 2).map(counted)
    events = spark.createDataFrame(numbers, "ts timestamp, k bigint, v bigint")
    queries = [
        Query(time="ts", keys=["k"], windows=[tumbling("10m")], aggregates=["avg(v)"], name="a"),
        Query(time="ts", windows=[tumbling("1h")], aggregates=["max(v)"], where="v > 0", name="b"),
        Query(time="ts", windows=[hopping("1h", "10m")], aggregates=["count(*)"], name="c"),
    ]
    with optimize(queries).run(events) as results:
        for name, result in results.items():
            result.write.parquet(str(tmp_path / name))
    assert passes.value == 1000


def test_a_result_that_is_let_go_can_still_be_computed(spark):
    events = spark.range(100).selectExpr("timestamp_seconds(id) AS ts", "id AS v")
    queries = [
        Query(time="ts", windows=[tumbling("10s")], aggregates=["count(*) AS n"], name=name) for name in ("a", "b")
    ]
    results = optimize(queries).run(events)
    assert results["a"].count() == 10
    results.unpersist()
    assert results["b"].count() == 10


def test_keys_that_are_equal_and_differ_are_not_computed_from_each_other(spark):
    rows = [(0, 0.0), (1, -0.0), (2, 2.0)]
    events = spark.createDataFrame(rows, "t bigint, v double").selectExpr("timestamp_seconds(t) AS ts", "v")
    queries = [
        Query(time="ts", keys=["v"], windows=[tumbling("1h")], aggregates=["count(*) AS n"], name="value"),
        Query(
            time="ts", keys=["CAST(v AS STRING)"], windows=[tumbling("1h")], aggregates=["count(*) AS n"], name="text"
        ),
        Query(
            time="ts",
            keys=["v", "CAST(v AS STRING)"],
            windows=[tumbling("1h")],
            aggregates=["count(*) AS n"],
            name="both",
        ),
    ]
    results = optimize(queries).run(events)
    for query in queries:
        assert differing_rows(results[query.name], naive(query, events)) == 0


def test_columns_named_like_our_own_do_no_harm(spark):
    events = spark.range(60).selectExpr(
        "timestamp_seconds(id) AS ts", "id % 2 AS __fw_flag_0", "id % 3 AS key_0", "id AS value_0", "id % 5 AS query_id"
    )
    queries = [
        Query(time="ts", keys=["__fw_flag_0"], windows=[tumbling("20s")], aggregates=["sum(value_0)"], name="a"),
        Query(time="ts", keys=["key_0", "query_id"], windows=[tumbling("20s")], aggregates=["max(value_0)"], name="b"),
        Query(
            time="ts",
            windows=[tumbling("1m")],
            aggregates=["count(*) AS value_0"],
            where="__fw_flag_0 = 1",
            name="window_id",
        ),
    ]
    results = optimize(queries).run(events)
    for query in queries:
        assert differing_rows(results[query.name], naive(query, events)) == 0


def test_analyze_measures_keys_and_conditions_of_several_queries(spark):
    events = spark.range(20_000).selectExpr("timestamp_seconds(id) AS ts", "id % 50 AS d", "id % 7 AS s", "id AS v")
    queries = [
        Query(time="ts", keys=["d"], windows=[tumbling("1m")], aggregates=["sum(v)"], where="v % 4 <> 0", name="a"),
        Query(time="ts", keys=["d", "s"], windows=[tumbling("1m")], aggregates=["sum(v)"], name="b"),
        Query(time="ts", windows=[tumbling("1m")], aggregates=["sum(v)"], name="c"),
    ]
    measured = analyze(events, queries=queries, sample=1.0)
    assert measured.combinations == {frozenset("d"): 50, frozenset("ds"): 350, frozenset(): 1}
    assert measured.selectivity == {"a": pytest.approx(0.75)}
    plan = optimize(queries, statistics=measured)
    assert plan.passes[0].cost_model.combinations[frozenset("d")] == 50
    with pytest.raises(OptionError, match="analyze needs time= or queries="):
        analyze(events)


@pytest.mark.parametrize(
    "grouping",
    [
        "window(ts, '10 seconds'), ROLLUP(k, s)",
        "window(ts, '10 seconds'), CUBE(k, s)",
        "GROUPING SETS ((window(ts, '10 seconds'), k), (window(ts, '10 seconds')), (window(ts, '10 seconds'), k, s))",
        "k, window(ts, '20 seconds', '10 seconds'), GROUPING SETS ((s), ())",
    ],
)
def test_grouping_sets_give_what_spark_gives(spark, grouping):
    spark.range(200).selectExpr(
        "timestamp_seconds(id) AS ts", "id % 2 AS k", "CASE WHEN id % 5 > 0 THEN id % 3 END AS s", "id AS v"
    ).createOrReplaceTempView("r")
    text = (
        f"SELECT k, s AS site, window.start AS begin, sum(v) AS total, count(s) AS c, grouping(s) AS g "
        f"FROM r GROUP BY {grouping}"
    )
    # Spark itself cannot name the window's parts beside GROUPING SETS, so the window is made first.
    length = "'20 seconds', '10 seconds'" if "'20 seconds'" in grouping else "'10 seconds'"
    by_hand = text.replace(f"window(ts, {length})", "w").replace("window.start", "w.start")
    expected = spark.sql(by_hand.replace("FROM r", f"FROM (SELECT *, window(ts, {length}) AS w FROM r)"))
    found = sql(spark, text)
    assert found.columns == expected.columns
    assert found.count() == expected.count() > 20
    assert differing_rows(found, expected.select(*(F.col(f.name).cast(f.dataType) for f in found.schema))) == 0


def test_a_set_without_the_window_is_refused():
    with pytest.raises(QueryError, match="a set of keys has no window"):
        parse("SELECT k, count(*) AS n FROM r GROUP BY GROUPING SETS ((window(ts, '1 hour'), k), (k))")


SCHEMA = "ts timestamp, k string, site int, v double"


def written(spark, folder, rng):
    edges = [0, 60, 61, 120, 200]
    seconds = sorted(range(10, 610, 3), key=lambda second: second + rng.randrange(20))
    batches = [
        [
            {"ts": second, "k": rng.choice("ab"), "site": rng.randrange(3), "v": rng.uniform(-9, 9)}
            for second in seconds[low:high]
        ]
        for low, high in pairwise(edges)
    ]
    return write_batches(spark, folder, batches, SCHEMA)


def stream_queries(rng):
    return [
        Query(
            time="ts",
            keys=rng.choice([[], ["k"], ["site"], ["k", "site"]]),
            windows=rng.sample([tumbling("20s"), tumbling("1m"), hopping("1m", "20s"), tumbling("90s")], 2),
            aggregates=rng.sample(["count(*) AS n", "avg(v) AS mean", "max(v)", "stddev_pop(v) AS sd", "sum(v)"], 2),
            where=rng.choice(["", "v > 0", "site = 1"]),
            having=rng.choice(["", "window_start IS NOT NULL"]),
            name=f"q {number}",
        )
        for number in range(rng.choice([2, 4, 7]))
    ]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(900, 900 + max(1, CASES // 4)))
def test_a_stream_of_several_queries_gives_each_its_rows(spark, one_partition, tmp_path, seed):
    rng = random.Random(seed)
    events = written(spark, tmp_path / "in", rng)
    queries = stream_queries(rng)
    plan = optimize(queries)
    stream = stream_of(spark, tmp_path / "in", SCHEMA)

    kept, schemas = defaultdict(list), {}

    def keep(batch, number):
        batch.persist()
        for name, rows in fan_out(batch).items():
            schemas[name] = rows.schema
            kept[name] += rows.collect()
        batch.unpersist()

    running = (
        plan.run(stream, checkpoint=f"{tmp_path}/state")
        .writeStream.foreachBatch(keep)
        .option("checkpointLocation", f"{tmp_path}/state")
        .trigger(availableNow=True)
        .start()
    )
    running.awaitTermination()
    assert len(running.lastProgress["stateOperators"]) <= 3
    left = plan.flush(events, running)
    for query in plan.queries:
        expected = naive(query, events)
        everything = by_instance(query, expected)
        found = spark.createDataFrame(kept[query.name], schemas[query.name])
        assert found.columns == expected.columns
        assert_closed(query, found, everything, watermark_of(running))
        whole = found.unionAll(left[query.name])
        assert_equal(query, by_instance(query, whole), everything)


def rows_of_two(spark):
    """Two queries, and rows as a stream of both would write them."""
    low = Query(time="ts", windows=[tumbling("1m")], aggregates=["min(v)"], having="`min(v)` > 1", name="low")
    counted = Query(time="ts", windows=[tumbling("1m")], aggregates=["count(*) AS n"], output=["n + 1 AS m"], name="n")
    plan = optimize([low, counted])
    window = "'1 minute' AS window_id, timestamp_seconds(0) AS window_start, timestamp_seconds(60) AS window_end"
    rows = spark.sql(
        f"SELECT 'low' AS query_id, struct({window}, 7D AS `min(v)`) AS low, NULL AS n UNION ALL "
        f"SELECT 'low', struct({window}, 1D), NULL UNION ALL SELECT 'n', NULL, struct({window}, 3L AS n)"
    )
    return plan, rows


def test_rows_are_split_by_a_plan_that_was_sent_elsewhere(spark):
    plan, rows = rows_of_two(spark)
    split = split_by_query(rows, plan=pickle.loads(pickle.dumps(plan)))
    assert {name: frame.drop("window_start", "window_end").collect() for name, frame in split.items()} == {
        "low": [("1 minute", 7.0)],
        "n": [(4,)],
    }
    assert split["low"].schema["window_id"].metadata == notes_of(plan.queries[0])


def test_nothing_that_is_written_on_a_column_is_executed(spark):
    _, rows = rows_of_two(spark)
    spark.sql("SELECT 'hidden' AS secret").createOrReplaceTempView("hidden")
    follows = json.dumps({"having": "", "output": [], "outer": "SELECT secret FROM hidden, {result}"})
    for noted in ({"factor_windows.query": follows}, {QUERIES: follows}, {QUERIES: "0" * 64}):
        forged = rows.withMetadata("low", noted | {WINDOW_NAMES: ["1 minute"]})
        with pytest.raises(OptionError, match=r"split_by_query"):
            fan_out(forged)
    with pytest.raises(OptionError) as refused:
        split_by_query(rows.withMetadata("n", {QUERIES: "0" * 64}))
    assert str(refused.value) == (
        "these rows are for queries that were not planned in this process; "
        "pass their plan: split_by_query(batch, plan=plan)"
    )
    spark.catalog.dropTempView("hidden")


def test_split_by_query_takes_only_what_a_shared_plan_made(spark):
    plan, rows = rows_of_two(spark)
    with pytest.raises(
        OptionError, match="split_by_query takes the rows of a shared plan's stream; these have no query_id"
    ):
        split_by_query(spark.range(3))
    for other in (rows.drop("n"), rows.drop("query_id")):
        with pytest.raises(OptionError, match="no query_id, or no column for each of the plan's queries"):
            split_by_query(other, plan=plan)


@pytest.mark.parametrize("name", ["query_id", "Window_Start"])
def test_a_stream_refuses_queries_named_like_its_own_columns(spark, name):
    stream = spark.readStream.format("rate").load().withWatermark("timestamp", "1 second")
    query = Query(time="timestamp", windows=[tumbling("1m")], aggregates=["count(*) AS n"], name=name)
    with pytest.raises(QueryError) as refused:
        optimize([query]).run(stream)
    assert str(refused.value) == (
        f"a query is named {name!r}, as a column that every row of a stream of several queries has; "
        "give it another name with Query(..., name=...)"
    )
