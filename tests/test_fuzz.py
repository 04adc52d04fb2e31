"""A fixed part of the fuzzer, and what it found, kept as tests. `make fuzz` looks further."""

import os

import pytest
from fuzz import QUICK, cases_of, check, many_of, stream_of

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
