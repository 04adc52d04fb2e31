"""Nothing is evaluated for events or windows that did not ask for it: what Spark runs, a plan runs."""

import pytest
from comparing import assert_equal, by_instance

import factor_windows as fw
from factor_windows.spark.naive import naive

WINDOWS = [fw.tumbling("1m"), fw.tumbling("2m"), fw.hopping("4m", "2m")]

pytestmark = pytest.mark.usefixtures("compiled")
"""Generated code computes what several expressions have in common before it looks at their conditions."""


@pytest.fixture(scope="module")
def events(spark):
    """Readings of two kinds; only those of kind r have a time and a number that are some."""
    rows = [
        (second, kind, f"1970-01-01 00:{second // 60:02}:{second % 60:02}" if kind == "r" else "n/a", number)
        for second in range(0, 600, 7)
        for kind, number in (("r", str(second % 5)), ("x", "none"))
    ]
    return spark.createDataFrame(rows, "s bigint, kind string, sts string, num string").selectExpr(
        "timestamp_seconds(s) AS ts", "kind", "sts", "num", "s AS v"
    )


def query(name="", **parts):
    return fw.Query(**{"time": "ts", "windows": WINDOWS, "aggregates": ["count(*) AS n"], "name": name} | parts)


def assert_each_is_naive(events, *queries):
    with fw.optimize(list(queries)).run(events) as results:
        for each in queries:
            assert_equal(each, by_instance(each, results[each.name]), by_instance(each, naive(each, events)))


def test_the_time_is_read_only_where_the_condition_holds(events):
    asked = query(time="CAST(sts AS TIMESTAMP)", where="kind = 'r'")
    found, expected = (by_instance(asked, frame) for frame in (fw.optimize(asked).run(events), naive(asked, events)))
    assert len(expected) == 21
    assert_equal(asked, found, expected)


def test_a_querys_key_is_computed_for_its_own_events_only(events):
    by_number = query("a", keys=["CAST(num AS INT) AS number"], where="kind = 'r'")
    assert_each_is_naive(events, by_number, query("b", keys=["kind"]), query("c"))


def test_a_condition_is_evaluated_after_what_stands_before_it(events):
    assert_each_is_naive(
        events,
        query("a", where="kind = 'r' AND CAST(num AS INT) > 2"),
        query("b", where="kind = 'r' AND CAST(num AS INT) > 1", keys=["num"]),
        query("c", where="kind <> 'x' AND CAST(num AS INT) > 1"),
    )


def test_analyze_computes_keys_and_times_for_their_own_events_only(events):
    by_number = query("a", keys=["CAST(num AS INT) AS number"], where="kind = 'r'")
    found = fw.analyze(events, queries=[by_number, query("b", keys=["kind"])], sample=1.0)
    assert found.events == events.count()
    assert found.selectivity == {"a": 0.5}
    assert found.combinations[frozenset({"kind"})] == 2
    timed = query("a", time="CAST(sts AS TIMESTAMP)", where="kind = 'r'")
    assert fw.analyze(events, queries=[timed], sample=1.0).events == events.count() // 2


def test_arguments_are_evaluated_for_their_own_events_only(events):
    own = ["sum(CAST(num AS INT)) AS s", "avg(CAST(num AS INT)) AS a", "min(CAST(num AS INT)) AS m"]
    assert_each_is_naive(events, query("a", where="kind = 'r'", aggregates=own), query("b", keys=["kind"]))
    alone = query(aggregates=["sum(CAST(num AS BIGINT)) FILTER (WHERE kind = 'r') AS a", "count(*) AS n"])
    found, expected = (by_instance(alone, frame) for frame in (fw.optimize(alone).run(events), naive(alone, events)))
    assert_equal(alone, found, expected)


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_sum_that_overflows_is_none_of_the_business_of_windows_that_do_not_show_it(spark, ansi):
    rows = spark.range(40).selectExpr(
        "timestamp_seconds(id * 20) AS ts",
        "CASE WHEN id % 3 = 0 THEN 9223372036854775807 ELSE 0 END AS big",
        "CASE WHEN id % 3 = 0 THEN CAST('9e37' AS DECIMAL(38, 0)) ELSE 1 END AS wide",
    )
    rows.createOrReplaceTempView("overflowing")
    text = " UNION ALL ".join(
        f"SELECT window.start AS s, {shown} AS x, {other} AS y FROM overflowing GROUP BY window(ts, '{length}')"
        for length, shown, other in (("1 minute", "sum(big)", "sum(wide)"), ("6 minutes", "max(big)", "max(wide)"))
    )
    before = spark.conf.get("spark.sql.ansi.enabled")
    try:
        spark.conf.set("spark.sql.ansi.enabled", ansi)
        expected, found = spark.sql(text), fw.sql(spark, text)
        assert found.schema == expected.schema
        assert sorted(found.collect()) == sorted(expected.collect())
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


def test_a_sum_of_one_query_that_overflows_in_the_windows_of_another_is_not_computed(spark):
    """All that several queries show is kept in one table, so what nobody asked for would be computed there."""
    rows = spark.range(40).selectExpr(
        "timestamp_seconds(id * 20) AS ts", "CASE WHEN id % 3 = 0 THEN 9223372036854775807 ELSE 0 END AS big"
    )
    queries = [
        fw.Query(time="ts", windows=[fw.tumbling("1 minute")], aggregates=["sum(big)"], name="sums"),
        fw.Query(time="ts", windows=[fw.tumbling("6 minutes")], aggregates=["max(big)"], name="peaks"),
    ]
    # From the events at once, so that no level drops the states that a window does not need.
    with fw.optimize(queries, search="none").run(rows) as found:
        for query in queries:
            assert sorted(found[query.name].collect()) == sorted(naive(query, rows).collect())
