"""Percentiles, modes and DISTINCT from counts of values give what Spark's own functions give, to the last digit."""

import random
from dataclasses import replace

import pytest
from comparing import by_instance, columns_of
from generated import windows_of
from pyspark.sql import functions as F

import factor_windows as fw
from factor_windows import Query, hopping, optimize, physical, tumbling
from factor_windows.algebra.growing import Growing
from factor_windows.cost.statistics import Look
from factor_windows.engines import spark_batch
from factor_windows.engines.spark_columns import SparkColumns
from factor_windows.functions.aggregate import Aggregate
from factor_windows.functions.table import Kind
from factor_windows.physical.counting_work import CountingWork
from factor_windows.physical.layout import Distribution, layouts
from factor_windows.spark.naive import naive

INFINITE = float("inf")
NUMBERS = [
    "median({})", "percentile({}, 0.25)", "percentile({}, array(0.0, 0.33, 1.0))", "percentile({}, 0.4, 3) AS thrice",
    "percentile({}, 0.7, often) AS weighted", "percentile({}, array(0.1, 0.9), often) FILTER (WHERE ok) AS both",
    "percentile_cont(0.3) WITHIN GROUP (ORDER BY {})", "percentile_cont(0.3) WITHIN GROUP (ORDER BY {} DESC)",
    "percentile_cont(array(0.2, 0.75)) WITHIN GROUP (ORDER BY {} DESC) FILTER (WHERE ok) AS falling",
    "percentile_disc(0.3) WITHIN GROUP (ORDER BY {})", "percentile_disc(0.0) WITHIN GROUP (ORDER BY {} DESC)",
    "percentile_disc(array(0.2, 1.0)) WITHIN GROUP (ORDER BY {}) FILTER (WHERE ok) AS steps",
    "avg(DISTINCT {}) AS mean", "sum(DISTINCT {}) FILTER (WHERE ok) AS total", "stddev(DISTINCT {}) AS spread",
    "median(DISTINCT {})", "percentile(DISTINCT {}, 0.3)", "kurtosis(DISTINCT {}) AS tails",
]  # fmt: skip
EVERYTHING = [
    "mode({}, true) AS usual", "mode() WITHIN GROUP (ORDER BY {})", "mode() WITHIN GROUP (ORDER BY {} DESC) AS last",
    "mode({}, true) FILTER (WHERE ok) AS usual_ok", "count(DISTINCT {})", "count(DISTINCT {}) FILTER (WHERE ok)",
    "count(DISTINCT {}, ok)", "min(DISTINCT {})", "max(DISTINCT {}) FILTER (WHERE ok)",
]  # fmt: skip
COLUMNS = {
    "v": "double", "f": "float", "n": "bigint", "i": "int", "d": "decimal(12,3)", "huge": "decimal(38,2)",
    "s": "string", "day": "date", "at": "timestamp", "flag": "boolean", "bytes": "binary",
    "pair": "struct<a: int, b: string>", "list": "array<int>", "gap": "interval day to second",
    "months": "interval year to month",
}  # fmt: skip
ROUNDED = ("avg", "sum", "stddev_samp", "kurtosis")
"""Floating sums of the distinct values: the order in which they are added is nobody's."""


def events_of(rng, spark, size=150):
    """Events whose values repeat, with all that is awkward about values."""
    floats = [0.0, -0.0, 1.5, 1.5, -2.25, 0.1, 1e300, -1e300, INFINITE, -INFINITE, float("nan"), None]
    rows = [
        (
            rng.choice([rng.randrange(-60, 300), rng.randrange(20), None]),
            rng.choice(["a", "b", None]),
            rng.choice(floats),
            rng.choice([None, -7, 0, 3, 3, 2**40, -(2**40)]),
            rng.choice([None, "1.500", "-2.250", "0.000", "999999999.999"]),
            rng.choice([None, "", "x", "ü", "X"]),
            rng.choice([None, True, False]),
            rng.choice([None, 0, 1, 2, 5]),
        )
        for _ in range(size)
    ]
    raw = "second int, k string, v double, n bigint, d string, s string, ok boolean, often int"
    return spark.createDataFrame(rows, raw).selectExpr(
        "timestamp_micros(second * 500000L) AS ts", "k", "v", "CAST(v AS FLOAT) AS f", "n",
        "CAST(n % 5 AS INT) AS i", "CAST(d AS DECIMAL(12, 3)) AS d", "CAST(d AS DECIMAL(38, 2)) AS huge", "s", "ok",
        "often", "date_add(DATE '2024-01-01', CAST(n % 3 AS INT)) AS day", "timestamp_seconds(n % 4) AS at",
        "n > 0 AS flag", "CAST(s AS BINARY) AS bytes", "named_struct('a', CAST(n % 2 AS INT), 'b', s) AS pair",
        "array(CAST(n % 2 AS INT), 1) AS list", "make_dt_interval(CAST(n % 3 AS INT), 1) AS gap",
        "make_ym_interval(0, CAST(n % 3 AS INT)) AS months",
    )  # fmt: skip


def forced(plan, events, distribution=None, *, depth=None):
    """Run a plan from counts of values, whatever the costs say; nothing, if a distribution is none here."""
    [one] = plan.passes
    on_spark = SparkColumns(plan.query, events, text_as_bytes=True, counts_values=True)
    values = on_spark.types.values
    assert values.keys, "these values are not counted"
    target = physical.Target(on_spark.names, values, 2)
    every = [each for each in layouts(one, None) if depth is None or len(each.levels) == depth]
    layout = every[-1]
    if distribution is not None:
        if distribution is Distribution.BY_KEY_AND_CHUNK and any(
            isinstance(node.window, Growing) for node in one.nodes
        ):
            return None
        layout = replace(layout, distribution=distribution, chunk=one.longest, partitions=2)
    return spark_batch.render(physical.compile(one, target, layout), on_spark, events)


def assert_same(query, found, events):
    """Compare with Spark's own query: names, types, nullability, and every value as it is written."""
    expected = naive(query, events)
    assert columns_of(found) == columns_of(expected)
    left, right = by_instance(query, shown(query, found)), by_instance(query, shown(query, expected))
    assert left.keys() == right.keys()
    for instance, values in right.items():
        for aggregate, ours, theirs in zip(query.parsed_aggregates, left[instance], values, strict=True):
            assert ours == theirs, f"{aggregate.sql} at {instance}: {ours} instead of {theirs}"


def shown(query, frame):
    """Write values as text, which tells all of them apart, but for the sign of zero and the last digits of sums."""
    columns = []
    for aggregate in query.parsed_aggregates:
        value = F.col(f"`{aggregate.name}`")
        kind = frame.schema[aggregate.name].dataType.simpleString()
        if kind == "double":
            value = F.format_string("%.9e", value) if aggregate.function.name in ROUNDED else value + F.lit(0.0)
        elif kind == "float":
            value = value + F.lit(0.0).cast("float")
        elif kind.startswith("array"):
            value = F.to_json(F.array_sort(value) if aggregate.function.name.startswith("collect") else value)
            value = F.regexp_replace(value, r"-0\.0\b", "0.0")
        columns.append(value.cast("string").alias(aggregate.name))
    return frame.select(*frame.columns[: -len(columns)], *columns)


def query_of(aggregates, windows=None, **parts):
    windows = windows or [tumbling("2 seconds"), hopping("6 seconds", "2 seconds"), tumbling("12 seconds")]
    return Query(time="ts", windows=windows, aggregates=aggregates, **{"keys": ["k"], **parts})


def of_column(templates, column):
    return [f"{text.partition(' AS ')[0]} AS a{place}".format(column) for place, text in enumerate(templates)]


@pytest.mark.parametrize("column", ["v", "f", "n", "d", "huge"])
def test_functions_of_numbers_are_sparks_own_to_the_last_digit(spark, column):
    for seed in range(1):
        events = events_of(random.Random(f"{column} {seed}"), spark)
        numbers = [text for text in NUMBERS if column in "vnd" or "kurtosis" not in text]
        if column in "vf":
            # Sums of infinities and NaN beside finite numbers depend on nothing, and those of 1e300 on the order.
            numbers = [text for text in numbers if "DISTINCT" not in text or "median" in text]
        query = query_of(of_column(numbers + EVERYTHING, column))
        assert_same(query, forced(optimize(query), events), events)


@pytest.mark.parametrize("column", [name for name in COLUMNS if name not in ("v", "f", "n", "d", "huge")])
def test_values_of_every_type_are_counted(spark, column):
    events = events_of(random.Random(column), spark)
    own = NUMBERS[:5] if column in ("gap", "months") else NUMBERS if column == "i" else []
    query = query_of(of_column(own + EVERYTHING, column))
    assert events.schema[column].dataType.simpleString().startswith(COLUMNS[column].split("<")[0].split("(")[0])
    assert_same(query, forced(optimize(query), events), events)


SEVERAL = [
    "median(v)", "median(n) AS mn", "count(DISTINCT s, ok)", "count(DISTINCT v)", "mode(s, true) AS m", "sum(n)",
    "avg(i)", "count(*)", "count(*) FILTER (WHERE ok) AS oks", "min(v)", "collect_set(s)", "stddev(i) AS dev",
    "max_by(n, n)", "sum(d)", "bool_or(ok)", "percentile_disc(0.5) WITHIN GROUP (ORDER BY n DESC) FILTER (WHERE ok)",
]  # fmt: skip
LAYOUTS = [None, *Distribution]


@pytest.mark.long
@pytest.mark.parametrize("distribution", LAYOUTS, ids=str)
@pytest.mark.parametrize("aggregates", [["median(v)", "sum(n)"], SEVERAL, ["count(DISTINCT s)"]], ids=len)
def test_every_way_to_shuffle_gives_the_same(spark, distribution, aggregates):
    events = events_of(random.Random(5), spark)
    query = query_of(aggregates)
    for depth in (1, None):
        if depth is None or distribution in (None, Distribution.BY_LEVEL, Distribution.EVENTS_BY_KEY):
            assert_same(query, forced(optimize(query), events, distribution, depth=depth), events)


WINDOWS = {
    "calendar": [
        fw.calendar("1 day", zone="Europe/Berlin"),
        fw.calendar("1 month", zone="Europe/Berlin"),
        tumbling("1 hour"),
    ],
    "cumulating": [fw.cumulating("12 seconds", step="2 seconds"), tumbling("4 seconds")],
    "nothing in common": [
        tumbling("3 seconds"),
        tumbling("5 seconds"),
        hopping("7 seconds", "2 seconds", offset="1 second"),
    ],
    "one long": [hopping("48 seconds", "1 second")],
}


@pytest.mark.parametrize("windows", WINDOWS)
@pytest.mark.parametrize(
    "parts", [{}, {"keys": []}, {"keys": ["upper(k) AS u", "ok"], "where": "n IS NOT NULL"}], ids=str
)
def test_every_kind_of_window_and_keys(spark, windows, parts):
    events = events_of(random.Random(8), spark, 80)
    query = query_of(SEVERAL[:7], WINDOWS[windows], **parts)
    assert_same(query, forced(optimize(query), events), events)


@pytest.mark.parametrize("seed", range(4))
def test_windows_functions_and_layouts_drawn_at_random(spark, seed):
    rng = random.Random(seed)
    events = events_of(rng, spark, rng.choice([0, 1, 40, 120]))
    every = SEVERAL + of_column(NUMBERS[:12] + EVERYTHING, rng.choice("nid"))
    chosen = rng.sample(every, 5)
    if all(Aggregate.read(text).kind is not Kind.COUNTED for text in chosen):
        chosen.append("median(i)")
    query = query_of(list(dict.fromkeys(chosen)), windows_of(rng), keys=rng.choice([["k"], []]))
    search = rng.choice(["none", "coverage", "factor", "slicing", "best"])
    distribution = rng.choice([None, Distribution.BY_LEVEL, Distribution.BY_KEY_AND_CHUNK])
    assert_same(query, forced(optimize(query, search=search), events, distribution), events)


@pytest.mark.long
def test_generated_code_and_no_ansi_mode_give_the_same(spark, compiled):
    events = events_of(random.Random(2), spark)
    query = query_of(SEVERAL)
    for ansi in ("true", "false"):
        spark.conf.set("spark.sql.ansi.enabled", ansi)
        try:
            assert_same(query, forced(optimize(query), events), events)
        finally:
            spark.conf.unset("spark.sql.ansi.enabled")


def test_values_are_computed_only_where_their_filter_holds(spark):
    rows = "VALUES (0, 'n', '7'), (1, 'n', '9'), (3, 't', 'seven') AS rows(second, kind, code)"
    events = spark.sql(f"SELECT timestamp_seconds(second) AS ts, kind, code FROM {rows}")
    query = query_of(["median(CAST(code AS INT)) FILTER (WHERE kind = 'n') AS m", "count(*)"], keys=[])
    assert_same(query, forced(optimize(query), events), events)


def test_a_negative_frequency_is_sparks_own_error(spark):
    rows = "VALUES (0, 1, 5), (1, 1, -1), (5, 2, 3) AS rows(second, v, often)"
    events = spark.sql(f"SELECT timestamp_seconds(second) AS ts, v, often FROM {rows}")
    query = query_of(["percentile(v, 0.5, often)"], keys=[])
    for frame in (naive(query, events), forced(optimize(query), events)):
        with pytest.raises(Exception, match="NEGATIVE_VALUES_IN_FREQUENCY_EXPRESSION"):
            frame.collect()


def test_an_aggregate_that_one_window_is_asked_for_is_shown_there_only(spark):
    events = events_of(random.Random(1), spark)
    windows = [tumbling("2 seconds"), tumbling("6 seconds")]
    query = replace(query_of(["count(DISTINCT n) AS ns", "median(n) AS mid"], windows), asked=[[0], [0, 1]])
    rows = forced(optimize(query), events).collect()
    assert {row["window_id"] for row in rows if row["mid"] is not None} == {"6 seconds"}
    expected = naive(query_of(["median(n) AS mid"], windows[1:]), events).collect()
    found = [row for row in rows if row["window_id"] == "6 seconds"]
    assert {(row["k"], row["window_start"]): row["mid"] for row in found} == {
        (row["k"], row["window_start"]): row["mid"] for row in expected
    }


@pytest.mark.parametrize(
    "text",
    ["mode(c)", "count(DISTINCT c)", "median(s)", "mode(m)", "percentile_disc(0.5) WITHIN GROUP (ORDER BY gap)"],
)
def test_what_would_not_be_exact_is_computed_from_events(spark, text):
    events = events_of(random.Random(4), spark).selectExpr(
        "ts", "k", "s COLLATE UTF8_LCASE AS c", "CAST(n AS STRING) AS s", "map(1, n) AS m", "gap"
    )
    query = query_of([text])
    on_spark = SparkColumns(query, events, counts_values=True)
    assert not on_spark.types.shared
    assert not on_spark.types.value_keys
    assert not on_spark.types.states
    assert optimize(query, values=2, rate=1e6, unit="1 second").run(events).count() == naive(query, events).count()


def test_the_legacy_discrete_percentile_is_computed_from_events(spark):
    query, events = query_of(["percentile_disc(0.5) WITHIN GROUP (ORDER BY n)"]), events_of(random.Random(4), spark)
    assert SparkColumns(query, events, counts_values=True).types.shared
    spark.conf.set("spark.sql.legacy.percentileDiscCalculation", "true")
    try:
        assert not SparkColumns(query, events, counts_values=True).types.shared
    finally:
        spark.conf.unset("spark.sql.legacy.percentileDiscCalculation")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *((text.format("v"), Kind.COUNTED) for text in NUMBERS + EVERYTHING),
        *((text, Kind.HOLISTIC) for text in ("kurtosis(v)", "first(DISTINCT v)", "min_by(DISTINCT v, n)")),
        *((text, Kind.HOLISTIC) for text in ("collect_list(v) RESPECT NULLS", "percentile(DISTINCT v, 0.5, n)")),
        *((text, Kind.MERGEABLE) for text in ("sum(v)", "avg(v)")),
    ],
)
def test_what_is_counted_and_what_is_not(text, kind):
    assert Aggregate.read(text).kind is kind


def saved(spark, path, values):
    """Write a dense stream of events with a value each."""
    events = spark.range(30_000).selectExpr("timestamp_millis(id * 100) AS ts", "id % 3 AS k", f"{values} AS v")
    events.write.parquet(str(path))
    return spark.read.parquet(str(path))


@pytest.mark.long
@pytest.mark.parametrize(("values", "note"), [("id % 7", "COUNTS_VALUES"), ("rand(3)", "VALUES_DIFFER")])
def test_values_are_counted_where_they_repeat_and_explain_says_so(spark, tmp_path, monkeypatch, values, note):
    monkeypatch.setattr(spark_batch, "HEAD_NANOSECONDS", 0)
    events = saved(spark, tmp_path / "events", values)
    query = query_of(["median(v)", "count(DISTINCT v)"], [tumbling(f"{n} minutes") for n in (1, 2, 5, 10)])
    plan = optimize(query)
    text = plan.explain(events=events)
    assert getattr(spark_batch, note) in text
    assert "of a key" in text
    for frame in (plan.run(events), fw.aggregate(events, **{part: getattr(query, part) for part in PARTS})):
        assert_same(query, frame, events)
        assert ("__fw_c0" in physical_text(frame)) == (note == "COUNTS_VALUES")


PARTS = ("time", "keys", "windows", "aggregates")


def physical_text(frame):
    return frame._jdf.queryExecution().optimizedPlan().toString()


def test_where_nobody_knows_whether_values_repeat_events_are_read(spark):
    events = events_of(random.Random(0), spark)
    plan = optimize(query_of(["median(v)"]))
    assert spark_batch.VALUES_UNKNOWN in plan.explain(events=events)
    assert "__fw_c0" not in physical_text(plan.run(events, statistics=None))
    given = optimize(query_of(["median(n)"]), rate=1e5, unit="1 second", keys=2, values=5)
    assert spark_batch.COUNTS_VALUES in given.explain(events=events)
    assert_same(given.query, given.run(events, statistics=None), events)


def test_never_repeating_values_do_not_pay_whatever_the_windows():
    for windows in ([tumbling(f"{n} minutes") for n in (1, 5, 60)], [hopping("1 hour", "5 minutes"), tumbling("5m")]):
        for values, pays in ((2, True), (1e9, False)):
            plan = optimize(query_of(["median(v)"], windows), rate=1000, unit="1 second", keys=10, values=values)
            [one] = plan.passes
            layout = physical.compile(one, physical.Target.assumed(plan.query, partitions=4)).layout
            assert CountingWork(one, one.cost_model, 4).pays(layout) is pays


def test_values_that_never_repeat_leave_medians_of_many_events_to_your_own_query():
    for aggregate, events, is_better in (
        ("median(v)", 1e7, True),
        ("count(DISTINCT v)", 1e7, False),
        ("median(v)", 1, False),
    ):
        query = query_of([aggregate], [tumbling(f"{n} minutes") for n in (1, 2, 5, 10, 20, 60)])
        plan = optimize(query, rate=1000, unit="1 second", keys=10, values=1e9)
        model = plan.cost_model.seen(Look(events))
        assert CountingWork(plan.passes[0], model, 4).is_naive_better_than_a_scan is is_better


def test_more_values_cost_more_and_a_plan_keeps_what_it_was_made_for():
    plans = [optimize(query_of(["median(v)"]), rate=1000, unit="1 second", values=values) for values in (2, 50, 900)]
    assert sorted(plan.cost for plan in plans) == [plan.cost for plan in plans]
    assert all(plan.cost < plan.naive_cost for plan in plans)
    again = fw.Plan.from_json(plans[1].to_json())
    assert again == plans[1]
    assert again.cost_model.values == (50.0,)
    assert (
        optimize([plans[1].query], values=50).to_json()
        == fw.Plan.from_json(optimize([plans[1].query], values=50).to_json()).to_json()
    )
    with pytest.raises(fw.OptionError, match="values 0 is not a positive number"):
        optimize(query_of(["median(v)"]), values=0)
    with pytest.raises(fw.OptionError, match="2 numbers for 1 counted"):
        optimize(query_of(["median(v)"]), values=[3, 4])


def test_streams_and_text_compute_every_window_from_events(spark, tmp_path):
    query = query_of(["median(v)", "count(DISTINCT n)"])
    plan = optimize(query)
    assert any(node.parent is not None for node in plan.nodes)
    text = optimize(replace(query, source="events")).sql()
    assert "level_1" in text
    assert "level_2" not in text
    assert "median(v)" in text
    assert "1 stateful operator, for all windows" in plan.explain(streaming=True)
    types = SparkColumns(query, events_of(random.Random(0), spark)).types
    assert not types.shared
    assert not types.states
    assert not types.value_keys


def test_several_queries_keep_a_pass_of_their_own_for_counted_functions():
    medians, sums = (query_of([text]) for text in ("median(v)", "sum(v)"))
    plan = optimize([replace(medians, name="medians"), replace(sums, name="sums")])
    assert sorted([member.name for member in each.workload.members] for each in plan.passes) == [["medians"], ["sums"]]


def test_a_mode_is_named_as_spark_names_it(spark):
    events = events_of(random.Random(0), spark, 5)
    for text in ("mode(n, true)", "mode(n, false)", "mode(n)"):
        assert query_of([text]).columns[-1] == events.agg(F.expr(text)).columns[0]
