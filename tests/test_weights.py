"""Sketches and lists are merged where that is cheaper than Spark's own functions, by what they weigh."""

from dataclasses import replace
from math import inf

import pytest

import factor_windows as fw
from factor_windows import Query, hopping, optimize, physical, tumbling
from factor_windows.cost.statistics import Look
from factor_windows.engines import spark_batch
from factor_windows.functions.aggregate import Aggregate
from factor_windows.functions.weights import Weights
from factor_windows.physical.work import Work
from factor_windows.spark.naive import naive

TWO = [tumbling("1 minute"), tumbling("5 minutes")]
TEN = [tumbling(f"{minutes} minutes") for minutes in (1, 2, 3, 4, 5, 6, 10, 12, 15, 20)]
HOPS = [hopping(f"{2 * minutes} minutes", f"{minutes} minutes") for minutes in (1, 2, 3, 4, 5, 6, 10, 12, 15, 20)]
SPARSE, DENSE = 2.5, 2_500.0
"""Events a second of 50 keys: 3 in a minute of a key, or 3,000."""


def cheapest(aggregates, windows, rate, *, events=200_000):
    """Say which of the three ways is priced lowest: states, one scan of the events, or the query as it is."""
    query = Query(time="ts", keys=["k"], windows=windows, aggregates=aggregates)
    [one] = optimize(query, rate=rate, unit="1 second", keys=50).passes
    one = replace(one, cost_model=one.cost_model.seen(Look(events)))
    work = Work(one, one.cost_model, 8)
    layout = physical.compile(one, physical.Target.assumed(query, partitions=8)).layout
    prices = {"states": work.price(layout), "scan": work.fan_out_price, "own": work.naive_price}
    return min(prices, key=prices.get)


@pytest.mark.parametrize("windows", [TWO, TEN, HOPS])
def test_sketches_of_few_events_are_not_worth_it_and_those_of_many_are(windows):
    assert cheapest(["approx_percentile(v, 0.5)"], windows, SPARSE) == "own"
    assert cheapest(["approx_percentile(v, 0.5)"], windows, DENSE, events=2_000_000) == "states"


def test_a_plain_sum_beside_a_sketch_is_computed_as_the_sketch_is():
    mixed = ["sum(v)", "approx_percentile(v, 0.5)"]
    assert cheapest(mixed, TEN, SPARSE) == "own"
    assert cheapest(["sum(v)"], TEN, SPARSE) == "states"


def test_the_less_accuracy_is_asked_for_the_sooner_a_sketch_is_worth_it():
    assert cheapest(["approx_percentile(v, 0.5)"], TEN, SPARSE) == "own"
    assert cheapest(["approx_percentile(v, 0.5, 100)"], TEN, SPARSE) == "states"


def test_lists_and_sets_are_merged_where_many_windows_share_them():
    for text in ("collect_list(v)", "collect_set(v)", "listagg(v)"):
        assert cheapest([text], HOPS, DENSE) == "states"
        assert cheapest([text], TEN, SPARSE) == "states"


def test_equal_states_weigh_once():
    one, other = (Aggregate.read(f"approx_percentile(v, {share})") for share in (0.5, 0.9))
    assert Weights.of([one, other]).states == Weights.of([one]).states > 0
    assert Weights.of([Aggregate.read(text) for text in ("avg(v)", "min(v)", "stddev(v)", "median(v)")]) == Weights()


def test_a_plan_without_statistics_is_the_same_tree_whether_it_looks_or_not():
    query = Query(time="ts", keys=["k"], windows=TEN, aggregates=["approx_percentile(v, 0.5)"])
    plan = optimize(query)
    assert any(node.parent for node in plan.nodes)
    assert plan.cost_model.units == inf
    assert fw.Plan.from_json(plan.to_json()) == plan


def saved(spark, path, per_minute, minutes):
    """Write events of two keys, so many a minute each."""
    every = 60_000_000 // (2 * per_minute)
    rows = spark.range(2 * per_minute * minutes)
    rows.selectExpr(f"timestamp_micros(id * {every}) AS ts", "id % 2 AS k", "id % 1000 AS v").write.parquet(str(path))
    return spark.read.parquet(str(path))


def rows_of(frame):
    return sorted(map(tuple, frame.collect()), key=str)


@pytest.mark.parametrize("aggregates", [["approx_percentile(v, 0.5) AS p"], ["approx_percentile(v, 0.5)", "sum(v)"]])
def test_sparse_groups_run_as_the_query_is_and_explain_says_why(spark, tmp_path, aggregates):
    events = saved(spark, tmp_path / "events", per_minute=3, minutes=6_000)
    query = Query(time="ts", keys=["k"], windows=TWO, aggregates=aggregates)
    plan = optimize(query, rate=0.1, unit="1 second", keys=2)
    text = plan.explain(events=events)
    assert spark_batch.OWN_QUERIES in text
    assert spark_batch.STATES_TOO_HEAVY in text
    assert rows_of(plan.run(events)) == rows_of(naive(query, events))
    assert "kll" in physical_text(plan.run(events, statistics=None))


def test_dense_groups_are_merged_from_sketches(spark, tmp_path):
    events = saved(spark, tmp_path / "events", per_minute=10_000, minutes=4)
    plan = optimize(
        Query(time="ts", keys=["k"], windows=TEN, aggregates=["approx_percentile(v, 0.5)"]),
        rate=333,
        unit="1 second",
        keys=2,
    )
    assert spark_batch.STATES_TOO_HEAVY not in plan.explain(events=events)
    assert "kll_merge_agg" in physical_text(plan.run(events))


@pytest.mark.long
def test_several_queries_with_sparse_sketches_read_the_events_once(spark, tmp_path):
    """They cannot run as they are, each by itself; Spark's own functions compute all their windows in one scan."""
    events = saved(spark, tmp_path / "events", per_minute=3, minutes=2_000)
    queries = [
        Query(time="ts", keys=keys, windows=TWO, aggregates=aggregates, where=where, name=name)
        for name, keys, aggregates, where in (
            ("by_key", ["k"], ["approx_percentile(v, 0.5) AS p", "count(*) AS n"], "v > 10"),
            ("all", [], ["approx_percentile(v, 0.9) AS p", "collect_set(k) AS s"], ""),
        )
    ]
    with optimize(queries).run(events) as results:
        for query in queries:
            assert results[query.name].columns == naive(query, events).columns
            assert results[query.name].count() == naive(query, events).count()


def physical_text(frame):
    return frame._jdf.queryExecution().optimizedPlan().toString()
