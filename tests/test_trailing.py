"""Trailing windows at given times give what an aggregate over the events just before each of them gives."""

import os
import random
from functools import reduce

import pytest
from comparing import columns_of, equal
from generated import EXACT, FLOATING, HOLISTIC, events_of
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factor_windows import (
    OptionError,
    Query,
    QueryError,
    calendar,
    cumulating,
    hopping,
    optimize,
    parse,
    tumbling,
    wide,
)
from factor_windows.algebra.ladder import Ladder
from factor_windows.engines import spark_trailing
from factor_windows.functions.aggregate import Aggregate
from factor_windows.functions.expression import quoted
from factor_windows.spark.compare import differing_rows

CASES = int(os.environ.get("FACTOR_WINDOWS_CASES", "8"))
SECOND = 1_000_000
MIXED = ["count(*) AS n", "sum(n) AS total", "avg(v) AS mean", "max(s) AS top", "collect_set(i) AS seen"]


def expected(query, labels, events, *, at="at"):
    """Compute the same in the plainest way: join each label with its events, and aggregate those that it found."""
    own = labels.selectExpr("*", "monotonically_increasing_id() AS own_id")
    own = labels.sparkSession.createDataFrame(own.collect(), own.schema)
    where = query.where or "true"
    known = events.where(where).selectExpr(
        "*", *(f"{key.sql} AS own_key_{n}" for n, key in enumerate(query.parsed_keys)), f"{query.time} AS own_time"
    )
    known = known.selectExpr(*known.columns, "true AS own_hit")
    results = []
    for window in query.windows:
        span = f"INTERVAL '{window.range / SECOND:.6f}' SECOND"
        sides = own.alias("l"), known.alias("e")
        same = " AND ".join(f"l.{quoted(key.name)} <=> e.own_key_{n}" for n, key in enumerate(query.parsed_keys))
        near = f"e.own_time < l.{at} AND e.own_time >= l.{at} - {span}"
        both = sides[0].join(sides[1], F.expr(f"{near} AND {same or 'true'}"), "left")
        kept = both.selectExpr("l.own_id", *(f"e.{quoted(name)}" for name in events.columns), "own_time", "own_hit")
        calls = [
            F.expr(Aggregate.read(each.direct(time="own_time")).only("own_hit")).alias(each.name)
            for each in query.parsed_aggregates
        ]
        found = own.join(kept.groupBy("own_id").agg(*calls), "own_id").drop("own_id")
        bounds = f"'{window.name}' AS window_id", f"{at} - {span} AS window_start", f"{at} AS window_end"
        values = [each.name for each in query.parsed_aggregates]
        results.append(found.selectExpr(*labels.columns, *bounds, *map(quoted, values)))
    return reduce(DataFrame.union, results)


def assert_same(found, wanted):
    """Compare rows of results in any order, floating numbers nearly."""
    rows = [sorted(map(tuple, frame.collect()), key=lambda row: repr(_shown(row))) for frame in (found, wanted)]
    assert len(rows[0]) == len(rows[1])
    # Floating sums that differ in their last digit may be sorted apart: labels, windows and counts decide.
    width = found.columns.index("window_end") + 1
    left, right = ({} for _ in range(2))
    for row, into in [*((row, left) for row in rows[0]), *((row, right) for row in rows[1])]:
        into.setdefault(repr(row[:width]), []).append(row[width:])
    assert left.keys() == right.keys()
    for label, values in left.items():
        assert len(values) == len(right[label])
        for one, other in zip(values, right[label], strict=True):
            assert all(map(equal, one, other)), f"{label}: {one} instead of {other}"


def _shown(row):
    return tuple(sorted(map(repr, each)) if isinstance(each, list) else each for each in row)


def labels_of(rng, spark, events):
    """Draw labels at and around the times of events, far from them, twice, without keys and without a time."""
    times = [row[0] for row in events.selectExpr("unix_micros(ts)").collect() if row[0] is not None] or [0]
    rows = []
    for number in range(rng.choice([1, 12])):
        time = rng.choice(times) + rng.choice([0, 0, 1, -1, SECOND, 12 * SECOND, 500_000, 10**12])
        rows.append((number, rng.choice(["a", "b", "c", None]), rng.choice([0, 1, None]), time))
    rows += [rows[0], (99, "a", 0, None)]
    raw = spark.createDataFrame(rows, "label int, k string, site int, t bigint")
    return raw.selectExpr("label", "k", "site", "timestamp_micros(t) AS at")


@pytest.fixture
def panes(monkeypatch):
    """Run with panes of a given length."""

    def use(seconds):
        monkeypatch.setattr(
            spark_trailing, "choose_ladder", lambda ranges, **_: Ladder(round(seconds * SECOND), tuple(ranges))
        )

    return use


@pytest.fixture(scope="module")
def readings(spark):
    """Events of three keys, one of them null, with ties, nulls, and times before 1970."""
    return spark.range(300).selectExpr(
        "timestamp_micros(-60000000 + id * 700000 - id % 3 * 200000) AS ts",
        "CASE id % 4 WHEN 0 THEN 'a' WHEN 1 THEN 'b' WHEN 2 THEN NULL ELSE 'a' END AS k",
        "CASE WHEN id % 7 > 0 THEN CAST(pmod(hash(id), 100) AS double) / 4 END AS v",
        "id * 31 % 17 AS n",
        "CAST(id % 5 AS int) AS i",
        "CAST(pmod(hash(id, 1), 100000) / 100 AS decimal(9,2)) AS d",
        "concat('s', id % 6) AS s",
        "id % 3 = 0 AS ok",
    )


@pytest.fixture(scope="module")
def labels(spark):
    """Labels on and beside edges, before and after all events, twice, and without a key or a time."""
    rows = [
        (-60, "a"),
        (0, "a"),
        (0, None),
        (7, "b"),
        (7, "b"),
        (35, "a"),
        (36, None),
        (149, "b"),
        (900, "a"),
        (-90, "a"),
    ]
    rows += [(None, "a"), (40, "unheard of")]
    frame = spark.createDataFrame([(n, *row) for n, row in enumerate(rows)], "label int, t int, k string")
    return frame.selectExpr("label", "k", "timestamp_seconds(t) AS at")


def query_of(aggregates, windows=("5s", "21s", "2m"), **options):
    return Query(time="ts", keys=["k"], windows=[tumbling(each) for each in windows], aggregates=aggregates, **options)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(CASES))
def test_generated_labels_give_what_a_join_gives(request, spark, panes, seed):
    if seed % 6 == 0:
        request.getfixturevalue("compiled")
    rng = random.Random(seed)
    events = events_of(rng, spark)
    functions = rng.choice([EXACT, FLOATING, EXACT + FLOATING, EXACT + HOLISTIC])
    query = Query(
        time="ts",
        keys=rng.choice([[], ["k"], ["k", "site"]]),
        windows=[
            tumbling(f"{length / 2}s", name=str(length)) for length in rng.sample(range(1, 90), rng.choice([1, 2, 3]))
        ],
        aggregates=rng.sample(functions, min(len(functions), rng.randrange(1, 5))),
        where=rng.choice(["", "", "n IS NULL OR n > -5"]),
    )
    panes(rng.choice([0.3, 0.5, 1, 7, 40, 1000]))
    labels = labels_of(rng, spark, events)
    assert_same(optimize(query).at(labels, events), expected(query, labels, events))


@pytest.mark.parametrize("length", [0.7, 5, 60, 1000])
def test_whatever_the_panes_the_rows_are_the_same(readings, labels, panes, length):
    panes(length)
    query = query_of([*MIXED, "first(n) AS f", "stddev(v) AS sd", "sum(d) AS money"])
    assert_same(optimize(query).at(labels, readings), expected(query, labels, readings))


@pytest.mark.parametrize("length", [3, 1000])
@pytest.mark.parametrize(
    "aggregates",
    [
        ["avg(d) AS mean_d", "min(ts) AS earliest", "last(s) AS l", "count(v) FILTER (WHERE ok) AS c"],
        ["approx_count_distinct(s) AS distinct_s", "approx_percentile(n, 0.5) AS p", "collect_list(i) AS every"],
        ["corr(v, n) AS r", "regr_slope(v, n) AS slope", "bool_and(ok) AS all_ok", "bit_xor(n) AS x"],
        [
            "median(n) AS m",
            "count(DISTINCT s) AS ds",
            "mode(i) FILTER (WHERE i = 2) AS mo",
            "first(v) AS f",
            "count(*) AS n",
        ],
        ["listagg(s) AS texts", "any_value(k) AS own", "max_by(s, n * 1000 + i) AS best", "try_avg(n) AS ta"],
    ],
)
def test_every_kind_of_function_is_what_spark_gives(readings, labels, panes, length, aggregates):
    panes(length)
    query = query_of(aggregates)
    found = optimize(query).at(labels, readings)
    wanted = expected(query, labels, readings)
    if "texts" in found.columns:
        order = "array_join(array_sort(split(texts, 's')), '-')"
        found, wanted = (frame.withColumn("texts", F.expr(order)) for frame in (found, wanted))
    assert_same(found, wanted)


def test_columns_are_the_labels_then_the_window_and_what_spark_calls_the_aggregates(readings, labels, panes):
    calls = [
        "count(*)",
        "sum(n)",
        "avg(d)",
        "max(ts)",
        "collect_list(i)",
        "count_if(ok) AS c",
        "approx_count_distinct(s)",
    ]
    for length in (3, 1000):
        panes(length)
        found = optimize(query_of(calls)).at(labels, readings)
        own = readings.agg(*map(F.expr, calls))
        assert columns_of(found)[:3] == columns_of(labels)
        assert [name for name, *_ in columns_of(found)[3:6]] == ["window_id", "window_start", "window_end"]
        assert columns_of(found)[6:] == columns_of(own)
    holistic = [*calls, "median(n)"]
    assert columns_of(optimize(query_of(holistic)).at(labels, readings))[6:] == columns_of(
        readings.agg(*map(F.expr, holistic))
    )


@pytest.mark.long
@pytest.mark.parametrize("aggregates", [MIXED, ["median(n) AS m", "count(*) AS n"]])
def test_events_at_and_after_a_label_never_change_it(spark, readings, labels, panes, aggregates):
    panes(4)
    query = query_of(aggregates)
    for label in labels.where("at IS NOT NULL").dropDuplicates(["at"]).limit(4).collect():
        mine = labels.where(F.col("label") == label["label"])
        before = optimize(query).at(mine, readings)
        cut = readings.where(F.col("ts") < F.lit(label["at"]))
        later = spark.range(40).select(
            (F.lit(label["at"]) + F.expr("INTERVAL '0.3' SECOND * id")).alias("ts"),
            *(F.expr(sql) for sql in ("CASE WHEN id % 2 = 0 THEN 'a' END AS k", "1e9 * id AS v", "id AS n", "7 AS i")),
            *(F.expr(sql) for sql in ("CAST(9 AS decimal(9,2)) AS d", "'zzz' AS s", "true AS ok")),
        )
        assert_same(optimize(query).at(mine, cut.unionByName(later)), before)


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz", "date"])
@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns"])
def test_times_of_every_kind_in_every_zone(spark, kind, zone):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        days = spark.range(80).selectExpr(
            f"CAST(date_add(DATE '1969-12-01', CAST(id AS int)) AS {kind}) AS ts", "id AS n"
        )
        labels = spark.range(9).selectExpr(f"CAST(date_add(DATE '1969-12-10', CAST(id * 8 AS int)) AS {kind}) AS at")
        query = Query(
            time="ts", windows=[tumbling("1 day"), tumbling("9 days")], aggregates=["sum(n) AS s", "count(*) AS c"]
        )
        found = optimize(query, rate=1, unit="1 day").at(labels, days)
        if kind == "date":
            days, labels = (
                frame.withColumn(name, F.expr(f"CAST({name} AS timestamp)"))
                for frame, name in ((days, "ts"), (labels, "at"))
            )
            found = found.withColumn("at", F.expr("CAST(at AS timestamp)"))
        assert_same(found, expected(query, labels, days))
        assert found.schema["window_end"].dataType == labels.schema["at"].dataType
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_a_date_is_midnight_beside_another_kind_of_time(spark, readings):
    query = Query(time="ts", windows=[tumbling("1m")], aggregates=["count(*) AS c"])
    labels = spark.sql("SELECT DATE '1970-01-01' AS at")
    for events in (readings, readings.withColumn("ts", F.expr("CAST(ts AS timestamp_ntz)"))):
        [row] = optimize(query).at(labels, events).collect()
        assert row["c"] == readings.where("ts >= '1969-12-31 23:59:00' AND ts < '1970-01-01'").count() > 0


def test_a_sum_fails_only_if_a_window_of_its_own_overflows(spark, panes):
    panes(1)
    events = spark.range(8).selectExpr("timestamp_seconds(id) AS ts", "9000000000000000000 AS n")
    labels = spark.sql("SELECT timestamp_seconds(5) AS at")
    safe = Query(time="ts", windows=[tumbling("1s")], aggregates=["sum(n) AS s"])
    assert [row["s"] for row in optimize(safe).at(labels, events).collect()] == [9_000_000_000_000_000_000]
    unsafe = Query(time="ts", windows=[tumbling("4s")], aggregates=["sum(n) AS s"])
    with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
        optimize(unsafe).at(labels, events).collect()
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        found = optimize(unsafe).at(labels, events)
        assert_same(found, expected(unsafe, labels, events))
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")


def test_a_key_with_most_of_the_rows_is_like_any_other(spark, panes, compiled):
    panes(20)
    events = spark.range(20_000).selectExpr(
        "timestamp_millis(id * 250) AS ts", "CASE WHEN id % 50 = 0 THEN id % 7 ELSE 0 END AS k", "hash(id) % 1000 AS n"
    )
    labels = spark.range(60).selectExpr("id AS label", "timestamp_millis(id * 83417) AS at", "id % 9 % 7 AS k")
    query = query_of(["count(*) AS c", "sum(n) AS s", "min(n) AS low"], windows=("7s", "10m", "1h"))
    assert_same(optimize(query).at(labels, events), expected(query, labels, events))


def test_formulas_having_and_where_are_those_of_the_query(readings, labels):
    query = query_of(["max(n) - min(n) AS spread", "count(*) AS c"], where="ok", having="c > 1 AND k = 'a'")
    plain = query_of(["max(n) AS high", "min(n) AS low", "count(*) AS c"], where="ok")
    wanted = expected(plain, labels, readings).where("c > 1 AND k = 'a'")
    found = optimize(query).at(labels, readings)
    assert found.columns == ["label", "k", "at", "window_id", "window_start", "window_end", "spread", "c"]
    assert_same(found, wanted.selectExpr(*found.columns[:6], "high - low AS spread", "c"))
    assert 0 < found.count() < 36


def test_a_plan_of_sql_reads_its_own_source_and_shows_its_own_columns(spark, readings, labels):
    readings.createOrReplaceTempView("trailing_readings")
    query = parse(
        "SELECT k, window_id, max(n) - min(n) AS spread FROM trailing_readings WHERE ok "
        "GROUP BY k, WINDOWS(ts, '5 seconds', '2 minutes')"
    )
    found = optimize(query).at(labels)
    assert found.columns == ["label", "k", "at", "window_id", "window_start", "window_end", "spread"]
    plain = query_of(["max(n) AS high", "min(n) AS low"], where="ok", windows=("5 seconds", "2 minutes"))
    wanted = expected(plain, labels, readings)
    assert_same(found, wanted.selectExpr(*found.columns[:6], "high - low AS spread"))


def test_several_queries_give_a_result_each(readings, labels):
    queries = [query_of(["count(*) AS c"], name="counts"), query_of(["max(n) AS m"], windows=("1m",), name="peaks")]
    found = optimize(queries).at(labels, readings)
    assert list(found) == ["counts", "peaks"]
    for query in queries:
        assert_same(found[query.name], expected(query, labels, readings))


def test_only_the_range_of_a_window_matters_and_a_name_is_its_own(readings, labels):
    windows = [
        hopping("20s", "5s", name="one"),
        tumbling("20s", offset="3s", name="two"),
        tumbling("20s", name="three"),
    ]
    query = Query(time="ts", keys=["k"], windows=windows, aggregates=["count(*) AS c"])
    assert_same(optimize(query).at(labels, readings), expected(query, labels, readings))


def test_keys_may_be_computed_from_labels_and_be_of_a_wider_type(spark, readings):
    labels = spark.sql("SELECT 'A' AS name, CAST(2 AS tinyint) AS i, timestamp_seconds(30) AS moment")
    query = Query(time="ts", keys=["i", "length(s) AS size"], windows=[tumbling("1m")], aggregates=["count(*) AS c"])
    with pytest.raises(QueryError, match="the labels have no column 'size', which is a key of the query; add it"):
        optimize(query).at(labels, readings, time="moment")
    sized = labels.selectExpr("*", "2 AS size")
    [row] = optimize(query).at(sized, readings, time="moment + INTERVAL 1 SECOND").collect()
    near = "ts >= timestamp_seconds(-29) AND ts < timestamp_seconds(31)"
    assert row["c"] == readings.where(f"i = 2 AND {near}").count() > 0
    computed = Query(time="ts", keys=["i % 2 AS odd"], windows=[tumbling("1m")], aggregates=["count(*) AS c"])
    [row] = optimize(computed).at(labels, readings, time="moment + INTERVAL 1 SECOND").collect()
    assert row["c"] == readings.where(f"i % 2 = 0 AND {near}").count() > 0


def test_no_key_is_another_key_than_an_empty_text(spark):
    events = spark.sql("SELECT timestamp_seconds(1) AS ts, '' AS k UNION ALL SELECT timestamp_seconds(2), NULL")
    labels = spark.sql(
        "SELECT timestamp_seconds(2) AS at, CAST(NULL AS string) AS k UNION ALL SELECT timestamp_seconds(2), ''"
    )
    rows = optimize(query_of(["count(*) AS c"], windows=("1m",))).at(labels, events).collect()
    assert {row["k"]: row["c"] for row in rows} == {None: 0, "": 1}


def test_a_result_is_made_wide_with_a_row_for_each_label(readings, labels):
    query = query_of(["count(*) AS c"], windows=("5s", "2m"))
    table = wide(optimize(query).at(labels.where("at IS NOT NULL"), readings))
    assert table.columns == ["label", "k", "at", "window_end", "c_5 seconds", "c_2 minutes"]
    assert table.count() == 11
    assert table.where("`c_5 seconds` IS NULL OR `c_2 minutes` IS NULL").count() == 0


@pytest.mark.long
@pytest.mark.parametrize("rate", [2.0, None])
def test_real_readings_give_what_a_join_gives(compiled, spark, real_data, rate):
    """Readings of the tracebase data set (github.com/areinhardt/tracebase), licence ODbL 1.0."""
    file = real_data / "tracebase-2012-01-20.parquet"
    if not file.exists():
        pytest.skip(f"no real data at {file}; FACTOR_WINDOWS_DATA says where it is")
    plugs = spark.read.parquet(str(file)).where("pmod(hash(device), 20) = 0")
    labels = plugs.sample(0.0005, seed=1).selectExpr("device", "ts AS at").limit(60)
    labels = spark.createDataFrame(labels.collect(), labels.schema)
    assert labels.count() > 20
    windows = [tumbling(each) for each in ("1 minute", "1 hour", "5 hours")]
    aggregates = ["count(*) AS c", "sum(power_1s) AS s", "avg(power_8s) AS mean", "stddev(power_1s) AS sd"]
    query = Query(time="ts", keys=["device"], windows=windows, aggregates=aggregates)
    options = {"rate": rate, "unit": "1 second"} if rate else {}
    assert_same(optimize(query, **options).at(labels, plugs), expected(query, labels, plugs))


def test_columns_named_like_hidden_ones_are_only_columns(spark, readings):
    labels = spark.sql("SELECT 'a' AS k, timestamp_seconds(30) AS at, 5 AS __fw_at, 6 AS __fw_i0")
    [row] = optimize(query_of(["count(*) AS c"], windows=("1m",))).at(labels, readings).collect()
    assert (row["__fw_at"], row["__fw_i0"]) == (5, 6)
    assert row["c"] > 0


def test_events_that_were_looked_at_decide_how_windows_are_made(spark, compiled, tmp_path):
    spark.range(200_000).selectExpr("timestamp_millis(id * 10) AS ts", "id % 2 AS k", "id AS n").write.parquet(
        str(tmp_path / "dense")
    )
    dense = spark.read.parquet(str(tmp_path / "dense"))
    labels = spark.range(1000).selectExpr("CAST(1 AS bigint) AS k", "timestamp_seconds(1000 + id % 2) AS at")
    query = query_of(["count(*) AS c"], windows=("10s", "10m"))
    run = spark_trailing.Trailing(optimize(query), labels, dense, "at")
    assert 0 < run.ladder.pane < 10 * SECOND
    assert run.result().groupBy("window_id").agg(F.sum("c")).orderBy("window_id").collect() == [
        ("10 minutes", 30_000_000),
        ("10 seconds", 500_000),
    ]
    assert spark_trailing.Trailing(optimize(query), labels.limit(1), dense, "at").ladder.rungs == 0
    assert spark_trailing.Trailing(optimize(query, rate=1, unit="1 day"), labels, dense, "at").ladder.rungs == 0
    medians = query_of(["median(n) AS m"], windows=("10s", "10m"))
    assert spark_trailing.Trailing(optimize(medians), labels, dense, "at").ladder.rungs == 0


@pytest.mark.parametrize(
    ("windows", "options", "labels", "message"),
    [
        ([calendar("1 month")], {}, {}, r"window '1 month \[UTC\]' has no fixed length"),
        ([cumulating("1 day", step="1 hour")], {}, {}, "has no fixed length, so it does not say how far back"),
        (
            [tumbling("1m")],
            {},
            {"at": "'soon' AS at"},
            "the labels' time 'at' is of type string; it must be a timestamp",
        ),
        (
            [tumbling("1m")],
            {},
            {"at": "TIMESTAMP_NTZ '2024-01-01' AS at"},
            "which differ by a time zone; cast one of them",
        ),
        ([tumbling("1m")], {}, {"at": "now() AS moment"}, "Spark cannot read the labels' time 'at'"),
        (
            [tumbling("1m")],
            {},
            {"k": "1 AS k"},
            "key 'k' is of type int in the labels and of type string in the events",
        ),
        (
            [tumbling("1m")],
            {},
            {"k": "'a' AS name"},
            "no column 'k', which is a key of the query; add it, or rename one of theirs: name, at",
        ),
        ([tumbling("1m")], {}, {"more": "1 AS Window_ID"}, "the labels have a column 'window_id', as the result has"),
        ([tumbling("1m")], {}, {"more": "1 AS c"}, "the labels have a column 'c', as the result has; rename theirs"),
        ([tumbling("1m")], {"outer": "SELECT * FROM {result} LIMIT 1"}, {}, "sorts or limits its result"),
    ],
)
def test_a_mistake_is_one_sentence(spark, readings, windows, options, labels, message):
    columns = {"k": "'a' AS k", "at": "timestamp_seconds(1) AS at"} | labels
    query = Query(time="ts", keys=["k"], windows=windows, aggregates=["count(*) AS c"], **options)
    with pytest.raises(QueryError, match=message) as mistake:
        optimize(query).at(spark.range(1).selectExpr(*columns.values()), readings)
    assert "\n" not in str(mistake.value)


def test_what_is_no_batch_is_refused(spark, readings, labels):
    plan = optimize(query_of(["count(*)"]))
    stream = spark.readStream.format("rate").load().selectExpr("timestamp AS at", "'a' AS k", "timestamp AS ts")
    with pytest.raises(OptionError, match="the labels are a stream; `at` takes batches"):
        plan.at(stream, readings)
    with pytest.raises(OptionError, match="the events are a stream; `at` takes batches"):
        plan.at(labels, stream)
    with pytest.raises(OptionError, match=r"labels \[1\] is not a PySpark DataFrame"):
        plan.at([1], readings)
    with pytest.raises(OptionError, match="time 3 is not text"):
        plan.at(labels, readings, time=3)


def test_without_events_the_table_of_that_name_is_read(spark, readings, labels):
    plan = optimize(query_of(["count(*)"]))
    spark.catalog.dropTempView("events")
    with pytest.raises(OptionError, match=r"there is no table `events`; pass them, as in plan.at\(labels, events\)"):
        plan.at(labels)
    readings.createOrReplaceTempView("events")
    assert differing_rows(plan.at(labels), plan.at(labels, readings)) == 0
    spark.catalog.dropTempView("events")
