"""Plans on Spark give what the user's own query gives."""

import os
import random

import duckdb
import pytest
from comparing import assert_equal, by_instance, columns_of, equal
from generated import EXACT, FLOATING, HOLISTIC, events_of, seeds, windows_of
from pyspark.sql import functions as F

from factor_windows import (
    OptionError,
    Query,
    QueryError,
    aggregate,
    analyze,
    calendar,
    cumulating,
    hopping,
    optimize,
    tumbling,
)
from factor_windows.cost.prices import Prices
from factor_windows.engines import spark_batch as batch
from factor_windows.engines.python import evaluate
from factor_windows.physical import choose, layout, work
from factor_windows.spark.compare import differing_rows
from factor_windows.spark.naive import naive

CASES = int(os.environ.get("FACTOR_WINDOWS_CASES", "15"))
"""How many queries are generated; each takes a second or more, so a longer look is for those who ask for it."""


@pytest.mark.parametrize("seed", seeds(range(CASES)))
def test_a_generated_query_gives_what_naive_spark_gives(request, spark, monkeypatch, seed):
    if seed % 5 == 0:
        request.getfixturevalue("compiled")
    if seed % 2:
        monkeypatch.setattr(work, "FEW_GROUPS", 0)
    rng = random.Random(seed)
    events = events_of(rng, spark)
    functions = rng.choice(
        [EXACT, FLOATING, EXACT + FLOATING, EXACT + HOLISTIC, HOLISTIC, ["min(v)", "max(n)", "min(s)"]]
    )
    query = Query(
        time="ts",
        keys=rng.choice([[], ["k"], ["k", "site"], ["upper(k) AS key", "coalesce(site, 7) + 1"]]),
        windows=windows_of(rng),
        aggregates=rng.sample(functions, min(len(functions), rng.randrange(1, 6))),
    )
    plan = optimize(
        query,
        search=rng.choice(["none", "coverage", "factor", "slicing", "best", "best"]),
        rate=rng.choice([None, 0.01, 1, 1000]),
        unit="1 second",
        keys=rng.choice([None, 1, 500, 100_000]),
    )
    expected = naive(query, events)
    found = plan.run(events)
    assert columns_of(found) == columns_of(expected)
    assert_equal(query, by_instance(query, found), by_instance(query, expected))


IN_DUCKDB = [
    "min(v)",
    "max(v)",
    "count(*)",
    "count(v)",
    "sum(v)",
    "avg(v)",
    "stddev_pop(v)",
    "var_samp(v)",
    "bit_or(i)",
]


@pytest.mark.parametrize("seed", range(1000, 1000 + CASES // 3))
def test_a_generated_query_gives_what_duckdb_and_the_reference_give(spark, seed):
    rng = random.Random(seed)
    rows = [
        (
            rng.randrange(-300, 300) * 1_000_000,
            rng.choice("ab"),
            rng.choice([None, rng.uniform(-9, 9)]),
            rng.randrange(99),
        )
        for _ in range(rng.choice([0, 1, 200]))
    ]
    events = spark.createDataFrame(rows, "t bigint, k string, v double, i int").selectExpr(
        "timestamp_micros(t) AS ts", "k", "v", "i"
    )
    query = Query(time="ts", keys=["k"], windows=windows_of(rng), aggregates=IN_DUCKDB)
    found = by_instance(query, optimize(query).run(events).withColumnRenamed("count(1)", "count"))
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE events (t BIGINT, k VARCHAR, v DOUBLE, i INTEGER)")
        if rows:
            connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", rows)
        expected = {}
        for window in query.windows:
            computed = connection.execute(
                f"""
                SELECT k, strftime(make_timestamp(s), '%Y-%m-%d %H:%M:%S.%f'),
                       strftime(make_timestamp(s + {window.range}), '%Y-%m-%d %H:%M:%S.%f'), {", ".join(IN_DUCKDB)}
                FROM (SELECT *, unnest(range(
                        {window.offset} + floor((t - {window.offset} - {window.range}) / {window.slide})::BIGINT
                          * {window.slide},
                        t + 1, {window.slide})) AS s FROM events)
                WHERE s <= t AND t < s + {window.range} GROUP BY k, s
                """
            ).fetchall()
            for key, start, end, *values in computed:
                expected[key, window.name, _short(start), _short(end)] = tuple(values)
    assert_equal(query, found, expected)
    plain = [{"ts": t, "k": k, "v": v, "i": i} for t, k, v, i in rows]
    by_reference = evaluate(query, plain)
    by_start = {(key, name, _micros(start)): values for (key, name, start, _), values in found.items()}
    assert len(by_reference) == len(found)
    for row in by_reference:
        values = by_start[row["k"], row["window_id"], row["window_start"]]
        assert all(equal(a, b) for a, b in zip(values, list(row.values())[4:], strict=True))


def _short(text):
    """Write a time as Spark does, without the zeros at the end."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def _micros(text):
    from datetime import UTC, datetime, timedelta

    return (datetime.fromisoformat(text).replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(
        microseconds=1
    )


def exchanges(frame):
    """Count the shuffles in the physical plan."""
    import contextlib
    import io

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        frame.explain()
    return text.getvalue().count("Exchange "), text.getvalue().count("HashAggregate")


def test_rows_move_three_times_at_most_whatever_the_number_of_windows(spark):
    events = spark.range(1000).selectExpr(
        "timestamp_micros(id * 1000000) AS ts", "id % 3 AS k", "CAST(id AS double) AS v"
    )
    counts = []
    for size in (2, 10, 100):
        windows = [tumbling(f"{10 * n} seconds") for n in range(2, size + 2)]
        query = Query(time="ts", keys=["k"], windows=windows, aggregates=["min(v)"])
        counts.append(exchanges(optimize(query, search="factor").run(events, statistics=None)))
    assert [moved for moved, _ in counts] == [1, 2, 3]
    # Three levels at most; older releases of Spark keep the two halves of each aggregation apart.
    assert max(aggregations for _, aggregations in counts) <= 6


def test_a_single_window_moves_once_as_in_sparks_own_plan(spark):
    events = spark.range(10).selectExpr("timestamp_micros(id * 1000000) AS ts", "CAST(id AS double) AS v")
    query = Query(time="ts", windows=[tumbling("10s")], aggregates=["min(v)"])
    assert exchanges(optimize(query).run(events))[0] == 1


def test_sparse_keys_move_raw_events_once(spark):
    events = spark.range(1000).selectExpr("timestamp_micros(id * 1000000) AS ts", "id AS k", "CAST(id AS double) AS v")
    query = Query(time="ts", keys=["k"], windows=[tumbling("20s"), tumbling("30s")], aggregates=["min(v)"])
    plan = optimize(query, rate=1, unit="1s", keys=1000)
    assert exchanges(plan.run(events))[0] == 1
    assert_equal(query, by_instance(query, plan.run(events)), by_instance(query, naive(query, events)))


@pytest.mark.long
def test_a_hundred_windows_and_a_long_hop_run(spark):
    events = spark.range(300).selectExpr("timestamp_micros(id * 1000000) AS ts", "CAST(id % 7 AS double) AS v")
    windows = [tumbling(f"{n} seconds") for n in range(2, 100)] + [
        hopping("1 hour", "2 seconds"),
        hopping("100s", "7s"),
    ]
    query = Query(time="ts", windows=windows, aggregates=["sum(v)", "max(v)"])
    found = optimize(query).run(events).selectExpr("window_id", "unix_micros(window_start)", "`sum(v)`", "`max(v)`")
    rows = [{"ts": second * 1_000_000, "v": float(second % 7)} for second in range(300)]
    expected = evaluate(query, rows)
    assert sorted(map(tuple, found.collect())) == sorted(
        (row["window_id"], row["window_start"], row["sum(v)"], row["max(v)"]) for row in expected
    )


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz", "date"])
def test_every_kind_of_time_in_every_zone(spark, zone, kind):
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        texts = [
            "2024-03-10 01:59:59.123456",
            "2024-03-10 03:00:00",
            "2024-11-03 01:30:00",
            "1969-12-31 23:59:59.9",
            None,
        ]
        events = spark.createDataFrame([(text, n) for n, text in enumerate(texts)], "t string, v int").selectExpr(
            f"CAST(t AS {kind}) AS ts", "v"
        )
        windows = [tumbling("1 hour"), hopping("2 hours", "30 minutes"), tumbling("1 day", offset="5 hours")]
        query = Query(time="ts", windows=windows, aggregates=["count(*)", "min(v)", "first(v)", "last(v)"])
        expected_query = Query(
            time="ts",
            windows=windows,
            aggregates=["count(*)", "min(v)", "min_by(v, ts) AS `first(v)`", "max_by(v, ts) AS `last(v)`"],
        )
        found, expected = optimize(query).run(events), naive(expected_query, events)
        assert columns_of(found) == columns_of(expected)
        assert_equal(query, by_instance(query, found), by_instance(query, expected))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_variance_keeps_its_digits(compiled, spark):
    events = spark.range(20_000).selectExpr(
        "timestamp_micros(id * 100000) AS ts", "1e6 + 1.7 * sin(id) + IF(id > 9000, 1e6, 0) AS v"
    )
    windows = [tumbling("10s"), tumbling("1 minute"), hopping("10 minutes", "1 minute"), tumbling("20s")]
    query = Query(time="ts", windows=windows, aggregates=["var_pop(v)", "var_samp(v)", "stddev(v)", "stddev_pop(v)"])
    found, expected = by_instance(query, optimize(query).run(events)), by_instance(query, naive(query, events))
    assert found.keys() == expected.keys()
    worst = max(abs(a - b) / b for group, values in expected.items() for a, b in zip(found[group], values, strict=True))
    assert worst < 1e-9


def test_constant_values_have_no_variance(spark):
    events = spark.range(5000).selectExpr("timestamp_micros(id * 100000) AS ts", "0.1 * (id div 1000) AS v")
    query = Query(
        time="ts", windows=[tumbling("1s"), tumbling("10s"), hopping("20s", "5s")], aggregates=["stddev(v) AS s"]
    )
    assert_equal(query, by_instance(query, optimize(query).run(events)), by_instance(query, naive(query, events)))


@pytest.mark.long
def test_sketches_stay_within_their_error(compiled, spark):
    events = spark.range(15_000).selectExpr(
        "timestamp_micros(id * 10000) AS ts",
        "hash(id) % 5000 AS n",
        "CAST(hash(id, 1) % 10000 AS double) AS v",
        "cast(id % 700 as string) AS s",
    )
    windows = [tumbling("10s"), tumbling("20s"), hopping("2 minutes", "30 seconds")]
    query = Query(
        time="ts",
        windows=windows,
        aggregates=[
            "approx_count_distinct(n) AS a",
            "approx_count_distinct(v) AS b",
            "approx_count_distinct(s, 0.01) AS c",
            "approx_percentile(v, 0.9) AS p",
            "approx_percentile(n, array(0.1, 0.5)) AS q",
        ],
    )
    exact = Query(
        time="ts",
        windows=windows,
        aggregates=["count(DISTINCT n) AS a", "count(DISTINCT v) AS b", "count(DISTINCT s) AS c",
                    "percentile(v, 0.9) AS p", "percentile(n, array(0.1, 0.5)) AS q"],
    )  # fmt: skip
    plan = optimize(query)
    assert plan.run(events).schema["p"].dataType.simpleString() == "double"
    assert plan.run(events).schema["q"].dataType.simpleString() == "array<int>"
    found, expected = by_instance(query, plan.run(events)), by_instance(exact, naive(exact, events))
    assert found.keys() == expected.keys()
    for group, (a, b, c, p, q) in expected.items():
        close = found[group]
        for left, right, error in ((close[0], a, 0.05), (close[1], b, 0.05), (close[2], c, 0.03)):
            assert abs(left - right) <= 3 * error * right + 1
        assert abs(close[3] - p) <= 0.01 * 20_000
        assert all(abs(left - right) <= 0.01 * 10_000 for left, right in zip(close[4], q, strict=True))


def test_decimals_keep_sparks_types_and_digits(spark):
    events = spark.range(3000).selectExpr(
        "timestamp_micros(id * 1000000) AS ts",
        "CAST(id * 1.2345678901 AS decimal(38,10)) AS wide",
        "CAST(id / 7 AS decimal(10,2)) AS narrow",
        "CAST(hash(id) AS decimal(20,0)) AS whole",
    )
    windows = [tumbling("7s"), tumbling("14s"), hopping("70s", "14s")]
    query = Query(
        time="ts", windows=windows,
        aggregates=["sum(wide)", "avg(wide)", "sum(narrow)", "avg(narrow)", "avg(whole)", "sum(whole)", "min(wide)"],
    )  # fmt: skip
    found, expected = optimize(query).run(events), naive(query, events)
    assert columns_of(found) == columns_of(expected)
    assert_equal(query, by_instance(query, found), by_instance(query, expected))


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_overflow_behaves_as_the_session_says(spark, ansi):
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        events = spark.range(4).selectExpr("timestamp_micros(id * 1000000) AS ts", "9223372036854775800L AS n")
        query = Query(time="ts", windows=[tumbling("1s"), tumbling("4s")], aggregates=["sum(n)", "avg(n)"])
        if ansi == "true":
            for frame in (optimize(query).run(events), naive(query, events)):
                with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
                    frame.collect()
        else:
            found, expected = (
                by_instance(query, frame) for frame in (optimize(query).run(events), naive(query, events))
            )
            assert_equal(query, found, expected)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")


def test_names_of_any_kind_work(spark):
    events = spark.range(50).selectExpr(
        "timestamp_micros(id * 1000000) AS `my time`",
        "id % 3 AS `a.b`",
        "id AS `select`",
        "id % 2 AS `__fw_t`",
        "id AS `ü``x`",
    )
    query = Query(
        time="`my time`",
        keys=["`a.b`", "`__fw_t` AS `window start`"],
        windows=[tumbling("10s", name='it\'s "ten"'), tumbling("20s", name="`twenty`")],
        aggregates=["sum(`select`)", "max(`ü``x`) AS `ü x`"],
    )
    found = optimize(query).run(events)
    assert found.columns == ["a.b", "window start", "window_id", "window_start", "window_end", "sum(select)", "ü x"]
    expected = [
        (row.a, row.b, name, row.s * seconds, (row.s + 1) * seconds, row.n, row.m)
        for name, seconds in (('it\'s "ten"', 10), ("`twenty`", 20))
        for row in spark.sql(
            f"SELECT id % 3 AS a, id % 2 AS b, id DIV {seconds} AS s, sum(id) AS n, max(id) AS m FROM range(50)"
            " GROUP BY ALL"
        ).collect()
    ]
    times = {name: F.unix_seconds(name) for name in ("window_start", "window_end")}
    assert sorted(map(tuple, found.withColumns(times).collect())) == sorted(expected)


@pytest.mark.parametrize("few", [0, work.FEW_GROUPS])
def test_text_of_any_kind_is_a_key(spark, monkeypatch, few):
    """Inside, text may be grouped as bytes: what is shown is text again, and null stays apart from the empty text."""
    monkeypatch.setattr(work, "FEW_GROUPS", few)
    texts = [
        "'a'",
        "'A'",
        "'a '",
        "''",
        "NULL",
        "'ä'",
        "concat('a', decode(X'CC88', 'UTF-8'))",
        "CAST(X'FF41' AS STRING)",
    ]
    events = spark.range(400).selectExpr(
        "timestamp_micros(id * 1000000) AS ts",
        "id AS v",
        f"element_at(array({', '.join(texts)}), CAST(1 + id % 8 AS INT)) AS k",
    )
    windows = [tumbling("20s"), tumbling("30s"), hopping("40s", "20s")]
    query = Query(time="ts", keys=["k", "upper(k) AS u"], windows=windows, aggregates=["sum(v) AS s"])
    plan = optimize(query, rate=1, unit="1 second", keys=8)
    assert batch.explained(plan.passes[0], events).layout.groups_text == bool(few)
    found = plan.run(events)
    assert [field.dataType.simpleString() for field in found.schema][:2] == ["string", "string"]
    assert differing_rows(found, naive(query, events)) == 0
    assert found.select(F.hex("k")).distinct().count() == 8
    noted = events.withMetadata("k", {"comment": "who"})
    assert optimize(query).run(noted).schema["k"].metadata == {"comment": "who"}


def test_text_that_is_equal_by_its_collation_stays_one_key(spark):
    events = spark.range(100).selectExpr(
        "timestamp_micros(id * 1000000) AS ts",
        "CASE WHEN id % 2 = 0 THEN 'a' ELSE 'A' END COLLATE UTF8_LCASE AS k",
    )
    windows = [tumbling("10s"), tumbling("20s"), tumbling("30s")]
    found = optimize(Query(time="ts", keys=["k"], windows=windows, aggregates=["count(*) AS n"])).run(events)
    counts = {(row.window_id, row.n) for row in found.where("window_end <= timestamp_seconds(60)").collect()}
    assert counts == {("10 seconds", 10), ("20 seconds", 20), ("30 seconds", 30)}
    assert found.schema["k"].dataType == events.schema["k"].dataType


def test_a_window_with_two_names_is_shown_twice(spark):
    events = spark.range(50).selectExpr("timestamp_micros(id * 1000000) AS ts")
    windows = [tumbling("10s", name="a"), tumbling("10s", name="b"), tumbling("20s")]
    query = Query(time="ts", windows=windows, aggregates=["count(*) AS n"])
    assert_equal(query, by_instance(query, optimize(query).run(events)), by_instance(query, naive(query, events)))


def test_a_function_without_a_sketch_for_its_type_runs_directly(spark):
    events = spark.range(300).selectExpr("timestamp_micros(id * 1000000) AS ts", "CAST(id % 9 AS decimal(9,2)) AS d")
    windows = [tumbling("20s"), tumbling("30s"), hopping("40s", "20s")]
    query = Query(time="ts", windows=windows, aggregates=["approx_percentile(d, 0.5) AS p", "sum(d) AS s"])
    plan = optimize(query)
    assert any(not node.exposed for node in plan.nodes)
    assert_equal(query, by_instance(query, plan.run(events)), by_instance(query, naive(query, events)))


def test_very_long_windows_run(spark):
    events = spark.range(300).selectExpr("timestamp_micros(id * 86400000000) AS ts", "id AS v")
    windows = [tumbling("3650 days"), hopping("36500 days", "7300 days"), tumbling("730000 days"), tumbling("365 days")]
    query = Query(time="ts", windows=windows, aggregates=["sum(v) AS s"])
    found = optimize(query).run(events).selectExpr("window_id", "unix_micros(window_start)", "s").collect()
    rows = [{"ts": day * 86_400_000_000, "v": day} for day in range(300)]
    expected = [(row["window_id"], row["window_start"], row["s"]) for row in evaluate(query, rows)]
    assert sorted(map(tuple, found)) == sorted(expected)


@pytest.mark.parametrize("seed", range(2000, 2005))
def test_chunks_as_short_as_the_longest_window_lose_nothing_at_their_edges(spark, monkeypatch, seed):
    """Chunks are so long that few instances reach from one into the next; here nearly all do, and plans are deep."""
    monkeypatch.setattr(choose, "CHUNK_RANGES", 1)
    monkeypatch.setattr(choose, "WORTH_A_LEVEL", 1.0)
    monkeypatch.setattr(work, "STAGES", {layout.Distribution.BY_KEY_AND_CHUNK: -1e6})
    rng = random.Random(seed)
    fixed = [tumbling("2s"), hopping("24s", "12s"), tumbling("12s"), hopping("36s", "12s")]
    windows = list(dict.fromkeys([*windows_of(rng), *fixed]))
    query = Query(
        time="ts", keys=rng.choice([[], ["k"]]), windows=windows, aggregates=[rng.choice(["min(v)", "sum(n)"])]
    )
    events = events_of(rng, spark)
    plan = optimize(query)
    assert choose.choose_layout(plan.passes[0]).distribution is layout.Distribution.BY_KEY_AND_CHUNK
    assert_equal(query, by_instance(query, plan.run(events, statistics=None)), by_instance(query, naive(query, events)))


def only_packed(layouts):
    """Leave no choice but packs where there are some."""

    def chosen(plan, packing, **options):
        found = list(layouts(plan, packing, **options))
        return [each for each in found if each.pane_row] or found

    return chosen


@pytest.mark.parametrize("seed", seeds(range(3000, 3000 + CASES)))
def test_packed_panes_give_what_naive_spark_gives(request, spark, monkeypatch, seed):
    """Nulls, empty slots, offsets, times before 1970, several states, and chunks whose edges many instances cross."""
    monkeypatch.setattr(choose, "CHUNK_RANGES", 1)
    monkeypatch.setattr(work, "STAGES", {layout.Distribution.BY_KEY_AND_CHUNK: -1e6 * (seed % 2)})
    monkeypatch.setattr(choose, "layouts", only_packed(choose.layouts))
    if seed % 3:
        monkeypatch.setattr(work, "FEW_GROUPS", 0)
    if seed % 5 == 0:
        request.getfixturevalue("compiled")
    rng = random.Random(seed)
    fixed = [tumbling("2s"), tumbling("4s"), tumbling("6s"), hopping("24s", "8s"), tumbling("14s")]
    shifted = [tumbling(f"{n}s", offset="1500ms") for n in (3, 6, 9, 21)]
    functions = [function for function in EXACT + FLOATING if "(s)" not in function and "collect" not in function]
    query = Query(
        time="ts",
        keys=rng.choice([[], ["k"], ["k", "site"]]),
        windows=rng.choice([fixed, fixed[:3], shifted, [*fixed, tumbling("22s")]]),
        aggregates=rng.sample(functions, rng.randrange(1, 3)),
    )
    plan = optimize(query, search=rng.choice(["factor", "best"]), slices=False, rate=1, unit="1 second")
    events = events_of(rng, spark)
    found, expected = plan.run(events), naive(query, events)
    assert columns_of(found) == columns_of(expected)
    assert_equal(query, by_instance(query, found), by_instance(query, expected))


def test_a_pane_of_nulls_only_is_a_row_and_an_empty_one_is_not(spark, monkeypatch):
    monkeypatch.setattr(choose, "layouts", only_packed(choose.layouts))
    events = spark.sql(
        "SELECT timestamp_micros(t * 1000000) AS ts, CAST(null AS double) AS v FROM VALUES 1, 3, 25 AS _(t)"
    )
    query = Query(time="ts", windows=[tumbling("2s"), tumbling("6s")], aggregates=["min(v) AS low", "sum(v) AS total"])
    plan = optimize(query)
    found = plan.run(events).selectExpr("window_id", "unix_seconds(window_start) AS start", "low", "total").collect()
    starts = sorted((row["window_id"], row["start"]) for row in found)
    assert starts == [("2 seconds", 0), ("2 seconds", 2), ("2 seconds", 24), ("6 seconds", 0), ("6 seconds", 24)]
    assert {(row["low"], row["total"]) for row in found} == {(None, None)}


def test_a_hidden_pane_whose_windows_are_all_merged_inside_packs_is_not_shown(spark, monkeypatch):
    monkeypatch.setattr(choose, "layouts", only_packed(choose.layouts))
    events = spark.range(90).selectExpr("timestamp_micros(id * 1000000) AS ts", "id % 2 AS k", "id AS v")
    query = Query(time="ts", keys=["k"], windows=[tumbling("20s"), tumbling("30s")], aggregates=["sum(v)"])
    plan = optimize(query)
    assert not plan.nodes[0].exposed
    assert_equal(query, by_instance(query, plan.run(events)), by_instance(query, naive(query, events)))


def only_scanned(layouts):
    """Leave no choice but prefix and suffix scans."""

    def chosen(plan, packing, **options):
        return [each for each in layouts(plan, None, scans=True) if any(level.scanned for level in each.levels)]

    return chosen


@pytest.mark.parametrize("seed", seeds(range(6000, 6000 + CASES)))
def test_prefix_and_suffix_scans_give_what_naive_spark_gives(request, spark, monkeypatch, seed):
    """Functions of every kind, null as a key, panes that are shown, offsets, and chunks that instances reach across."""
    monkeypatch.setattr(choose, "CHUNK_RANGES", 1)
    monkeypatch.setattr(work, "STAGES", {layout.Distribution.BY_KEY_AND_CHUNK: -1e6 * (seed % 2)})
    monkeypatch.setattr(choose, "layouts", only_scanned(choose.layouts))
    if seed % 5 == 0:
        request.getfixturevalue("compiled")
    rng = random.Random(seed)
    shifted = hopping("27s", "3s", offset="1500ms")
    sets = [
        [hopping("24s", "2s")],
        [shifted, tumbling("3s", offset="1500ms")],
        [hopping("1m", "2s"), hopping("8s", "4s")],
    ]
    functions = EXACT + FLOATING
    query = Query(
        time="ts",
        keys=rng.choice([[], ["k"], ["k", "site"]]),
        windows=sets[seed % 3],
        aggregates=functions[seed % 6 :: 6],
    )
    plan = optimize(query, rate=1000, unit="1 second")
    events = events_of(rng, spark)
    found, expected = plan.run(events, statistics=None), naive(query, events)
    assert columns_of(found) == columns_of(expected)
    assert_equal(query, by_instance(query, found), by_instance(query, expected))


def only_asides(layouts):
    """Leave no choice but levels that show what they compute, the deepest ones."""

    def chosen(plan, packing, **options):
        found = [each for each in layouts(plan, None, **options) if each.asides]
        return found[-1:] or layouts(plan, packing)

    return chosen


@pytest.mark.parametrize("seed", seeds(range(4000, 4000 + CASES)))
def test_levels_that_show_what_they_compute_give_what_naive_spark_gives(spark, monkeypatch, seed):
    """Windows that are shown and read, hidden ones beside them, slices that are a window since 1970."""
    monkeypatch.setattr(choose, "layouts", only_asides(choose.layouts))
    rng = random.Random(seed)
    zone = rng.choice(["Europe/Berlin", "America/St_Johns", "Pacific/Apia", "UTC"])
    days = [calendar("1 day", zone=zone), calendar("1 month", zone=zone), cumulating("6 hours", step="2 hours")]
    fixed = [tumbling("2s"), tumbling("4s"), hopping("24s", "8s"), hopping("7s", "3s"), tumbling("15m")]
    query = Query(
        time="ts",
        keys=rng.choice([[], ["k"], ["k", "site"]]),
        windows=rng.sample(fixed, rng.randrange(2, 5)) + rng.sample(days, rng.randrange(3)),
        aggregates=rng.sample(EXACT + FLOATING, rng.randrange(1, 3)),
    )
    events = events_of(rng, spark)
    found = optimize(query, search=rng.choice(["factor", "best"])).run(events, statistics=None)
    expected = naive(query, events)
    assert columns_of(found) == columns_of(expected)
    assert_equal(query, by_instance(query, found), by_instance(query, expected))


@pytest.mark.parametrize(
    "windows",
    [
        [tumbling("2s"), hopping("7s", "3s"), tumbling("1m")],
        [tumbling("15m"), calendar("1 day", zone="Europe/Berlin"), calendar("1 month", zone="Europe/Berlin")],
    ],
)
def test_what_several_levels_read_is_shuffled_once(spark, monkeypatch, capsys, windows):
    """Spark moves conditions as far down as it can, which must not make two shuffles of one."""
    monkeypatch.setattr(choose, "layouts", only_asides(choose.layouts))
    events = spark.range(90).selectExpr("timestamp_micros(id * 1000000) AS ts", "id % 2 AS k", "id AS v")
    query = Query(time="ts", keys=["k"], windows=windows, aggregates=["sum(v)", "avg(v)"])
    plan = optimize(query, rate=1000, unit="1 second")
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        plan.run(events, statistics=None).explain()
        text = capsys.readouterr().out
        spark.conf.set("spark.sql.exchange.reuse", "false")
        plan.run(events, statistics=None).explain()
        other = capsys.readouterr().out
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
        spark.conf.unset("spark.sql.exchange.reuse")
    assert text.count("Union") == 1
    assert text.count("Range (") == 1
    assert "ReusedExchange" in text
    assert (other.count("Union"), other.count("Range (")) == (0, 1)


def test_slices_run_on_spark_and_as_sql(spark):
    """Events before 1970 too, offsets, and a range that is no multiple of its slide; on Spark, and as text for both."""
    windows = [tumbling("15s"), tumbling("17s", offset="2s"), hopping("60s", "25s"), tumbling("19s")]
    query = Query(time="ts", keys=["k"], windows=windows, aggregates=["sum(v)", "max(v)", "count(*)"])
    plan = optimize(query, rate=20, unit="1 second", prices=Prices(edge=0))
    assert [len(feed.edges) > 1 for feed in choose.choose_layout(plan.passes[0]).levels[0].assigners] == [True]
    events = spark.range(-400, 400).selectExpr(
        "timestamp_micros(id * 1370000) AS ts", "id % 3 AS k", "CAST(id * id % 11 AS double) AS v"
    )
    expected = by_instance(query, naive(query, events))
    assert_equal(query, by_instance(query, plan.run(events)), expected)
    events.createOrReplaceTempView("events")
    assert_equal(query, by_instance(query, spark.sql(plan.sql())), expected)
    with duckdb.connect() as db:
        db.execute(
            "CREATE TABLE events AS SELECT make_timestamp(i * 1370000) AS ts, i % 3 AS k, (i * i % 11)::DOUBLE AS v "
            "FROM range(-400, 400) t(i)"
        )
        rows = db.execute(plan.sql(dialect="duckdb")).fetchall()
    assert {(row[0], row[1], str(row[2]), str(row[3])): row[4:] for row in rows} == expected


def test_a_very_deep_plan_runs_in_few_levels():
    chain = [hopping(f"{n}s", "1s") for n in range(2, 400)]
    plan = optimize(Query(time="ts", windows=chain, aggregates=["min(v)"]), search="coverage")
    assert len(choose.choose_layout(plan.passes[0]).levels) <= layout.MOST_LEVELS


def test_one_call_does_it_all(spark):
    events = spark.range(50).selectExpr("timestamp_micros(id * 1000000) AS ts", "id AS v")
    shown = aggregate(events, time="ts", windows=[tumbling("10s"), tumbling("20s")], aggregates=["min(v) AS low"])
    assert sorted(row.low for row in shown.where("window_id = '20 seconds'").collect()) == [0, 20, 40]


def test_columns_are_named_as_spark_names_them(spark):
    events = spark.range(5).selectExpr("timestamp_micros(id * 1000000) AS ts", "id AS v", "id > 2 AS ok", "'x' AS s")
    written = [
        "min(-v)",
        "max(v IS NOT NULL)",
        "first(v, true)",
        "percentile(v, 0.5)",
        "count(*) FILTER (WHERE ok AND v != 3)",
        "max(s IN ('x', 'y'))",
        "sum(IF(ok, 1, 0))",
        "approx_percentile(v, 0.5)",
        "stddev(v)",
        "count(DISTINCT v)",
    ]
    shown = aggregate(
        events, time="ts", keys=["-v", "v between 1 and 2"], windows=[tumbling("10s")], aggregates=written
    )
    by_spark = events.groupBy().agg(*(F.expr(text) for text in written)).columns
    keys = events.selectExpr("-v", "v between 1 and 2").columns
    assert shown.columns == [*keys, "window_id", "window_start", "window_end", *by_spark]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"aggregates": ["min(missing)"]}, "cannot read the query"),
        ({"keys": ["nobody"]}, "cannot read the query"),
        ({"time": "v"}, "time 'v' is of type bigint; it must be a timestamp"),
        ({"time": "nothing"}, "cannot read the query"),
        ({"aggregates": ["sum(ok)"]}, "cannot read the query"),
    ],
)
def test_a_mistake_about_the_data_gets_one_clear_sentence(spark, changes, message):
    events = spark.range(5).selectExpr("timestamp_micros(id * 1000000) AS ts", "id AS v", "id > 2 AS ok")
    given = {"time": "ts", "windows": [tumbling("10s"), tumbling("20s")], "aggregates": ["min(v)"]} | changes
    with pytest.raises(QueryError) as error:
        aggregate(events, **given)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_analyze_measures_the_stream(spark):
    events = spark.range(200_000).selectExpr("timestamp_micros(id * 10000) AS ts", "hash(id) % 50 AS k")
    measured = analyze(events, time="ts", keys=["k"], sample=0.05)
    assert measured.rate == pytest.approx(100, rel=0.1)
    assert measured.keys == pytest.approx(99, rel=0.1)
    assert measured.events_per_key == pytest.approx(2000, rel=0.2)
    query = Query(time="ts", keys=["k"], windows=[tumbling("1m"), tumbling("2m")], aggregates=["count(*)"])
    assert optimize(query, statistics=measured).cost < optimize(query, statistics=measured).naive_cost


def test_analyze_sees_that_keys_are_sparse(spark):
    events = spark.range(300_000).selectExpr("timestamp_micros(id * 10000) AS ts", "id % 100000 AS k")
    assert analyze(events, time="ts", keys=["k"], sample=0.05).keys > 30_000


def test_analyze_says_when_there_is_nothing(spark):
    events = spark.range(0).selectExpr("timestamp_micros(id) AS ts")
    with pytest.raises(QueryError, match="no event with a time"):
        analyze(events, time="ts")


def test_first_goes_by_event_time_beside_a_function_that_cannot_be_shared(spark):
    rows = [(second, (second * 37) % 100) for second in range(99, -1, -1)]
    events = spark.createDataFrame(rows, "s bigint, v bigint").selectExpr("timestamp_seconds(s) AS ts", "v")
    query = Query(
        time="ts", windows=[tumbling("50s"), tumbling("100s")], aggregates=["first(v)", "last(v)", "median(v)"]
    )
    found = {(row[0], row[1].timestamp()): row[3:5] for row in optimize(query).run(events).collect()}
    assert {key[0]: tuple(value) for key, value in found.items() if key[1] == 0} == {
        "50 seconds": (0, 13),
        "1 minute 40 seconds": (0, 63),
    }


def test_braces_in_a_users_text_are_only_characters(spark):
    events = spark.range(100).selectExpr(
        "timestamp_seconds(id) AS ts", "if(id % 3 = 0, '{v}', '{{0}}') AS `{name}`", "id AS v"
    )
    query = Query(
        time="ts",
        keys=["`{name}`"],
        windows=[tumbling("20s"), tumbling("30s")],
        aggregates=["sum(v) FILTER (WHERE `{name}` = '{v}') AS `{v}`", "max(`{name}`) AS m"],
        where="`{name}` <> '{'",
    )
    assert differing_rows(optimize(query, search="factor").run(events), naive(query, events)) == 0


@pytest.mark.parametrize("name", ["__FW_t", "__FW_start", "__fw_S0", "__FW_NODE", "__FW_"])
def test_a_column_named_like_a_hidden_one_in_any_case_is_only_a_column(spark, name):
    events = spark.range(90).selectExpr("timestamp_seconds(id * 3) AS ts", "id % 3 AS k", f"id * 2 AS `{name}`")
    query = Query(
        time="ts", keys=["k"], windows=[tumbling("1m"), tumbling("2m")], aggregates=[f"sum(`{name}`) AS s", "count(*)"]
    )
    found = optimize(query, rate=100, unit="1 second").run(events)
    assert_equal(query, by_instance(query, found), by_instance(query, naive(query, events)))


def test_explain_shows_the_physical_plan_that_runs(spark):
    windows = [tumbling(f"{seconds}s") for seconds in (10, 20, 30, 60)]
    query = Query(time="ts", keys=["k"], windows=windows, aggregates=["sum(v)", "max(v)"])
    plan = optimize(query, rate=1000, unit="1 second", keys=100)
    events = spark.range(9).selectExpr("timestamp_seconds(id) AS ts", "id AS k", "CAST(id AS DECIMAL(38, 2)) AS v")
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    try:
        spark.conf.set("spark.sql.shuffle.partitions", 8)
        ran = batch.explained(plan.passes[0], events).layout
        text = plan.explain(events=events)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", partitions)
    told = text.split("on Spark, for these events\n")[1].splitlines()
    assert [line.strip() for line in told[: len(ran.notes)]] == list(ran.notes)
    assert sum(line.startswith("  level ") for line in told) == len(ran.levels)
    assert ran.notes != choose.choose_layout(plan.passes[0]).notes


def test_what_is_no_dataframe_is_refused_in_words(spark):
    plan = optimize(Query(time="ts", windows=[tumbling("1m")], aggregates=["count(*)"]))
    several = optimize([plan.query])
    calls = [
        plan.run,
        several.run,
        lambda events: plan.explain(events=events),
        lambda events: aggregate(events, time="ts", windows=[tumbling("1m")], aggregates=["count(*)"]),
        lambda events: analyze(events, time="ts"),
    ]
    for call in calls:
        with pytest.raises(OptionError, match=r"events 'events' is not a PySpark DataFrame; give one, such as spark\."):
            call("events")
