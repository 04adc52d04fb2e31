"""A fixed part of the fuzzer, and what it found, kept as tests. `make fuzz` looks further."""

import os
import random

import pytest
from fuzz import QUICK, Case, Data, cases_of, check, many_of, stream_of

from factor_windows import Query, Window

SEEDS = int(os.environ.get("FACTOR_WINDOWS_SEEDS", "1"))


@pytest.fixture(autouse=True)
def quick(spark):
    before = {name: spark.conf.get(name) for name in QUICK}
    for name, value in QUICK.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_generated_queries_give_what_naive_spark_duckdb_and_the_reference_give(spark, seed):
    assert check(spark, cases_of(seed)[:6]) == []


@pytest.mark.parametrize("seed", range(1000, 1000 + max(1, SEEDS // 2)))
def test_generated_sets_of_queries_give_what_naive_spark_gives(spark, seed):
    assert many_of(spark, seed) == []


@pytest.mark.parametrize("seed", range(2000, 2000 + max(1, SEEDS // 2)))
def test_generated_streams_give_what_batch_gives(spark, seed):
    assert stream_of(spark, seed) == []


@pytest.mark.parametrize("way", ["nothing", "chunks"])
def test_moments_of_parts_are_merged_again_and_again(spark, way):
    rng = random.Random(5)
    rows = []
    for second in [*range(60), *range(40, 60), *range(55, 60)] * 2:
        number = rng.uniform(-9, 9) + second
        rows.append(
            (second * 1_000_000, "a", 0, 1, "p", None, True, number, 0.5, second**2, second % 5, 0, "1", "1", "x")
        )
    windows = [Window(seconds * 1_000_000, seconds * 1_000_000) for seconds in (5, 10, 30, 60)]
    aggregates = ["var_pop(v)", "stddev(n)", "covar_pop(v, n)", "corr(v, i)"]
    query = Query(time="ts", keys=["k"], windows=windows, aggregates=aggregates)
    case = Case(Data("timestamp", rows), query, {"search": "coverage", "rate": 100, "unit": "1 second"}, way)
    assert check(spark, [case]) == []
