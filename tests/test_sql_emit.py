"""Rewritten SQL gives the rows that the original gives, on Spark and on DuckDB."""

import os
import random
from pathlib import Path

import duckdb
import pytest
from comparing import equal

import factor_windows as fw
from factor_windows.engines.spark_statement import run, run_naively
from factor_windows.engines.sql import emit_statement
from factor_windows.sql.parse import read
from factor_windows.sql.script import plan_script

CASES = int(os.environ.get("FACTOR_WINDOWS_CASES", "6"))
"""How many generated queries run on Spark; all hundred run on DuckDB."""
GOLDEN = Path(__file__).parent / "golden" / "sql"
AGGREGATES = [
    "min(v)", "max(v)", "count(*)", "count(v)", "sum(n)", "avg(n)", "max(v) - min(v)", "sum(v) / count(*)",
    "count(*) FILTER (WHERE n > 3)", "stddev_pop(v)", "var_samp(n)", "min_by(n, v)", "bool_or(v > 4)", "bit_or(n)",
    "count(DISTINCT n)", "median(n)", "first(n)", "coalesce(sum(n), 0) * 2",
]  # fmt: skip
WHERES = ["", "WHERE v > 0", "WHERE n IS NOT NULL AND k <> 'z'"]
HAVINGS = ["", "HAVING count(*) > 1"]


def rows_of(rng):
    size = rng.choice([0, 1, 40, 150])
    start = rng.choice([0, -300, 1_700_000_000]) * 1_000_000
    return [
        (
            None if rng.random() < 0.05 else start + rng.randrange(1200) * 500_000,
            rng.choice(["a", "b", None, "ü'x"]),
            rng.choice([None, rng.uniform(-5, 9)]),
            rng.choice([None, rng.randrange(9)]),
        )
        for _ in range(size)
    ]


def windows_of(rng):
    made = []
    for _ in range(rng.choice([1, 2, 3, 5])):
        slide = rng.choice([2, 3, 4, 5, 6, 10, 30])
        length = slide * rng.choice([1, 1, 2, 3, 12]) + rng.choice([0, 0, 0, 1])
        made.append((length, slide, rng.choice([0, 0, 1])))
    return list(dict.fromkeys(made))


def texts_of(rng):
    """The same query for Spark, and for DuckDB in plain SQL that knows nothing of windows."""
    shown = rng.sample(AGGREGATES, rng.randrange(1, 4))
    holistic = any(function in text for text in shown for function in ("median", "DISTINCT"))
    where, having = rng.choice(WHERES), rng.choice(HAVINGS)
    spark, duck = [], []
    for length, slide, offset in windows_of(rng):
        own_where = rng.choice(WHERES) if not holistic and rng.random() < 0.3 else where
        values = ", ".join(f"{text} AS x{place}" for place, text in enumerate(shown))
        spark.append(
            f"SELECT k AS key, '{length}/{slide}' AS id, window.start AS s, window.end AS e, {values} FROM r "
            f"{own_where} GROUP BY k, window(ts, '{length} seconds', '{slide} seconds', '{offset} seconds') {having}"
        )
        us = 1_000_000
        last = f"(floor((epoch_us(ts) - {offset * us}) / {slide * us}) * {slide * us} + {offset * us})::BIGINT"
        starts = f"unnest(range({last}, epoch_us(ts) - {length * us}, -{slide * us}))"
        condition = f"{own_where} AND" if own_where else "WHERE"
        in_duckdb = values.replace("first(n)", "arg_min_null(n, ts)").replace("min_by", "arg_min_null")
        duck.append(
            f"SELECT k AS key, '{length}/{slide}' AS id, make_timestamp(b) AS s, "
            f"make_timestamp(b + {length * us}) AS e, {in_duckdb} "
            f"FROM (SELECT *, {starts} AS b FROM r {condition} ts IS NOT NULL) GROUP BY k, b {having}"
        )
    return " UNION ALL ".join(spark), " UNION ALL ".join(duck)


def sorted_rows(rows):
    return sorted((tuple(row) for row in rows), key=lambda row: tuple(map(repr, row[:4])))


def assert_same(found, expected):
    found, expected = sorted_rows(found), sorted_rows(expected)
    assert len(found) == len(expected)
    for left, right in zip(found, expected, strict=True):
        for one, other in zip(left, right, strict=True):
            both_numbers = isinstance(one, int | float) and isinstance(other, int | float)
            assert equal(float(one), float(other)) if both_numbers else one == other, (left, right)


@pytest.mark.parametrize("seed", range(100))
def test_a_rewritten_query_gives_the_same_rows_on_duckdb(seed):
    rng = random.Random(seed)
    rows = rows_of(rng)
    spark_text, duckdb_text = texts_of(rng)
    [statement] = read(spark_text)
    plans = [fw.optimize(query, rate=rng.choice([5, 50, 5000]), unit="1 second") for query in statement.queries]
    with duckdb.connect() as db:
        db.execute("CREATE TABLE raw (t BIGINT, k VARCHAR, v DOUBLE, n BIGINT)")
        if rows:
            db.executemany("INSERT INTO raw VALUES (?, ?, ?, ?)", rows)
        db.execute("CREATE TABLE r AS SELECT make_timestamp(t) AS ts, k, v, n FROM raw")
        # Where several events are first, any of them is; one for each time makes both sides certain.
        db.execute("DELETE FROM r WHERE rowid NOT IN (SELECT min(rowid) FROM r GROUP BY ts, k)")
        expected = db.execute(duckdb_text).fetchall()
        found = db.execute(emit_statement(statement, plans, dialect="duckdb")).fetchall()
    assert_same(found, expected)


@pytest.mark.parametrize("seed", range(200, 200 + CASES))
def test_a_rewritten_query_gives_the_same_rows_on_spark(request, spark, seed):
    if seed % 6 == 0:
        request.getfixturevalue("compiled")
    rng = random.Random(seed)
    schema = "t bigint, k string, v double, n bigint"
    rows = list({row[:2]: row for row in rows_of(rng)}.values())
    spark.createDataFrame(rows, schema).selectExpr("timestamp_micros(t) AS ts", "k", "v", "n").createOrReplaceTempView(
        "r"
    )
    text, _ = texts_of(rng)
    [statement] = read(text)
    plans = [fw.optimize(query) for query in statement.queries]
    # Spark's own first() goes by no order; ours goes by time.
    expected = spark.sql(text.replace("first(n)", "min_by(n, ts)")).collect()
    assert_same(spark.sql(emit_statement(statement, plans, dialect="spark")).collect(), expected)
    result = fw.sql(spark, text)
    assert result.columns == spark.sql(text).columns
    assert_same(result.collect(), expected)


NAMES = [
    "my key",
    "a`b",
    "it's",
    'say "x"',
    "x.y",
    "größe",
    "select",
    "window_id",
    "fw_node",
    "level_1",
    "); DROP TABLE r",
]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_works_as_key_value_alias_and_table(spark, name):
    quoted = f"`{name.replace('`', '``')}`"
    frame = spark.range(50).selectExpr("timestamp_seconds(id * 7) AS ts", f"id % 3 AS {quoted}", "id AS v")
    frame.createOrReplaceTempView(quoted)
    text = (
        f"SELECT {quoted} AS {quoted}, window.start AS s, max({quoted} + v) AS `max {name.replace('`', '``')}` "
        f"FROM {quoted} GROUP BY {quoted}, window(ts, '1 minute') UNION ALL "
        f"SELECT {quoted}, window.start, max({quoted} + v) FROM {quoted} GROUP BY {quoted}, window(ts, '2 minutes')"
    )
    expected = sorted(map(tuple, spark.sql(text).collect()))
    result = fw.sql(spark, text)
    assert result.columns == [name, "s", f"max {name}"]
    assert sorted(map(tuple, result.collect())) == expected
    plan = fw.optimize(fw.parse(text))
    assert sorted(map(tuple, spark.sql(plan.sql()).collect())) == expected
    with duckdb.connect() as db:
        in_duckdb = '"' + name.replace('"', '""') + '"'
        db.execute(
            f"CREATE TABLE {in_duckdb} AS SELECT make_timestamp(i * 7000000) AS ts, i % 3 AS {in_duckdb}, i AS v "
            "FROM range(50) t(i)"
        )
        assert sorted(db.execute(plan.sql(dialect="duckdb")).fetchall()) == expected
        assert db.execute("SELECT count(*) FROM information_schema.tables").fetchone() == (1,)


@pytest.mark.parametrize(
    "windows", ["'1 hour SLIDE 10 seconds'", "'1 hour SLIDE 10 seconds', '20 seconds', '1 minute'"]
)
def test_a_long_range_with_a_small_slide_is_written_too(spark, windows):
    text = f"SELECT k, window_id AS i, window_start AS s, count(*) AS c FROM r GROUP BY k, WINDOWS(ts, {windows})"
    plan = fw.optimize(fw.parse(text))
    spark.range(50).selectExpr("timestamp_seconds(id * 7) AS ts", "id % 2 AS k").createOrReplaceTempView("r")
    expected = sorted(map(tuple, plan.run(spark.table("r")).collect()), key=repr)
    assert len(expected) > 700
    assert sorted(map(tuple, spark.sql(plan.sql()).collect()), key=repr) == expected
    with duckdb.connect() as db:
        db.execute("CREATE TABLE r AS SELECT make_timestamp(i * 7000000) AS ts, i % 2 AS k FROM range(50) t(i)")
        assert sorted(db.execute(plan.sql(dialect="duckdb")).fetchall(), key=repr) == expected


EXAMPLES = {
    "paper-azure": "SELECT DeviceID, System.Window().Id AS w, MIN(T) AS min_t FROM Input TIMESTAMP BY EntryTime "
    "GROUP BY DeviceID, Windows(Window('20 min', TumblingWindow(minute, 20)), Window('30 min', "
    "TumblingWindow(minute, 30)), Window('40 min', TumblingWindow(minute, 40)))",
    "tumbling-spark": "SELECT k, window.start, avg(v) AS m FROM r GROUP BY k, window(ts, '10 minutes') UNION ALL "
    "SELECT k, window.start, avg(v) FROM r GROUP BY k, window(ts, '20 minutes')",
    "hopping-flink": "SELECT k, window_start, window_end, SUM(v) AS s FROM TABLE(HOP(TABLE r, DESCRIPTOR(ts), "
    "INTERVAL '5' MINUTES, INTERVAL '1' HOUR)) GROUP BY k, window_start, window_end",
    "wished-for": "SELECT device, window_id, window_start, max(t) - min(t) AS spread FROM r GROUP BY device, "
    "WINDOWS(ts, '20 minutes', '1 hour SLIDE 10 minutes' AS hourly) HAVING count(*) > 2",
    "where": "SELECT window.end AS e, sum(v) AS s FROM r WHERE ok AND v > 0 GROUP BY window(ts, '1 hour')",
    "other-conditions": "SELECT k, min(v) AS x FROM r WHERE a > 1 GROUP BY k, window(ts, '10 minutes') UNION ALL "
    "SELECT k, max(v) FROM r WHERE b GROUP BY k, window(ts, '20 minutes')",
    "reference-data": "WITH counted AS (SELECT k, System.Timestamp() AS t, COUNT(*) AS n FROM r TIMESTAMP BY ts "
    "GROUP BY k, Windows(TumblingWindow(minute, 10), HoppingWindow(minute, 30, 10))) "
    "SELECT c.k, c.t, c.n INTO alerts FROM counted c JOIN ref ON c.k = ref.k WHERE c.n > ref.most",
    "join-before": "SELECT r.name, window.end AS e, sum(v) AS s FROM input i JOIN ref r ON i.k = r.k "
    "GROUP BY r.name, window(i.ts, '10 minutes') ORDER BY e",
    "offsets": "SELECT min(v) AS low FROM r "
    "GROUP BY WINDOWS(ts, '1 hour OFFSET 5 minutes', '2 hours OFFSET 5 minutes')",
    "prime": "SELECT min(v) AS low FROM r GROUP BY WINDOWS(ts, '15 minutes', '17 minutes', '19 minutes')",
    "odd-ratio": "SELECT sum(v) AS s FROM r "
    "GROUP BY WINDOWS(ts, '1 hour SLIDE 25 minutes', '17 minutes OFFSET 1 minute')",
    "ladder": "SELECT sum(v) AS s FROM r GROUP BY WINDOWS(ts, '1 hour SLIDE 1 minute', '1 hour SLIDE 10 minutes')",
    "median": "SELECT k, median(v) AS mid FROM r GROUP BY k, WINDOWS(ts, '10 minutes', '30 minutes')",
    "apart": "SELECT k, min(v) AS x FROM r GROUP BY k, window(ts, '10 minutes') UNION ALL "
    "SELECT s, max(v) FROM r GROUP BY s, window(ts, '20 minutes')",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_rewriting_reads_like_this(golden, name):
    [statement] = read(EXAMPLES[name])
    plans = [fw.optimize(query) for query in statement.queries]
    golden(GOLDEN / f"{name}.sql", emit_statement(statement, plans, dialect="spark"))


def test_flinks_nodes_rename_their_bounds_and_announce_long_numbers():
    windows = [fw.tumbling("50s"), fw.tumbling("100s"), fw.tumbling("12500ms")]
    text = fw.optimize(fw.Query(time="ts", windows=windows, aggregates=["min(v)"])).sql(dialect="flink")
    assert text.count("window_start AS fw_start, window_end AS fw_end") == text.count("fw_start AS window_start") == 3
    assert "INTERVAL '100' SECOND(3)" in text
    assert "INTERVAL '50' SECOND)" in text
    assert "INTERVAL '12.500' SECOND(2, 3)" in text


def test_flink_gets_its_own_windows(golden):
    plan = fw.optimize(fw.parse(EXAMPLES["hopping-flink"]))
    golden(GOLDEN / "hopping-flink.flink.sql", plan.sql(dialect="flink"))
    with pytest.raises(fw.QueryError, match="cannot be written for Flink"):
        fw.optimize(fw.parse(EXAMPLES["median"])).sql(dialect="flink")


def test_an_unknown_dialect_is_refused():
    with pytest.raises(fw.OptionError, match="allowed are spark, duckdb, flink"):
        fw.optimize(fw.parse(EXAMPLES["where"])).sql(dialect="oracle")


def test_azures_examples_run_and_equal_the_naive_way(spark):
    from test_sql_parse import AZURE_EXAMPLES

    events = spark.range(400).selectExpr("timestamp_seconds(id * 23) AS ts", "id % 3 AS k", "id % 11 AS v")
    events.createOrReplaceTempView("r")
    spark.sql(
        "SELECT k, id, 10L AS limit_n FROM VALUES (0, '10 min'), (1, '60 min') AS t(k, id)"
    ).createOrReplaceTempView("ref")
    for text, _ in AZURE_EXAMPLES.values():
        [statement] = read(text)
        found = sorted(map(tuple, run(spark, plan_script([statement]))[0].collect()), key=repr)
        assert found == sorted(map(tuple, run_naively(spark, statement).collect()), key=repr)
        assert found
