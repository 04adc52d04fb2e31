"""A fixed part of the fuzzer, and what it found, kept as tests. `make fuzz` looks further."""

import os
import random

import pytest
from fuzzing.batch import Case, check, draw_cases
from fuzzing.data import Data, row
from fuzzing.many import check_many
from fuzzing.results import differing, unlike, values_of
from fuzzing.scalars import check_scalars
from fuzzing.settings import Settings
from fuzzing.statements import check_statements, draw_statements
from fuzzing.streams import check_stream
from pyspark.sql.types import ArrayType, DecimalType, LongType, StructField, StructType

from factor_windows import Query, Window

SEEDS = int(os.environ.get("FACTOR_WINDOWS_SEEDS", "1"))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_generated_queries_give_what_naive_spark_duckdb_and_the_reference_give(spark, seed):
    assert check(spark, draw_cases(seed)[:6]) == []


@pytest.mark.parametrize("seed", range(1000, 1000 + max(1, SEEDS // 2)))
def test_generated_sets_of_queries_give_what_naive_spark_gives(spark, seed):
    assert check_many(spark, seed) == []


@pytest.mark.parametrize("seed", range(2000, 2000 + max(1, SEEDS // 2)))
def test_generated_streams_give_what_batch_gives(spark, seed):
    assert check_stream(spark, seed) == []


@pytest.mark.parametrize("seed", range(3000, 3000 + max(1, SEEDS // 2)))
def test_generated_statements_give_what_spark_gives(spark, seed):
    settings, data, texts = draw_statements(seed)
    assert check_statements(spark, settings, data, texts[:4])[0] == []


@pytest.mark.parametrize("seed", range(4000, 4000 + max(1, SEEDS // 2)))
def test_generated_scalar_functions_mean_the_same_on_duckdb(spark, seed):
    assert check_scalars(spark, seed)[0] == []


@pytest.mark.parametrize("way", ["nothing", "chunks"])
def test_moments_of_parts_are_merged_again_and_again(spark, way):
    rng = random.Random(5)
    seconds = [*range(60), *range(40, 60), *range(55, 60)] * 2
    rows = [
        row(ts=second * 1_000_000, k="a", v=rng.uniform(-9, 9) + second, n=second**2, i=second % 5)
        for second in seconds
    ]
    windows = [Window(seconds * 1_000_000, seconds * 1_000_000) for seconds in (5, 10, 30, 60)]
    aggregates = ["var_pop(v)", "stddev(n)", "covar_pop(v, n)", "corr(v, i)"]
    query = Query(time="ts", keys=["k"], windows=windows, aggregates=aggregates)
    case = Case(Data(rows), query, {"search": "coverage", "rate": 100, "unit": "1 second"}, way)
    assert check(spark, [case]) == []


def test_windows_that_reach_over_the_edge_of_a_chunk_are_whole_and_come_once(spark):
    rows = [row(ts=second * 1_000_000, n=1 + second % 11) for second in range(-30, 60)]
    windows = [Window(range=5_000_000, slide=5_000_000), Window(range=20_000_000, slide=5_000_000)]
    query = Query(time="ts", windows=windows, aggregates=["sum(n)", "max(n)"])
    assert (
        check(spark, [Case(Data(rows), query, {"search": "coverage", "rate": 100, "unit": "1 second"}, "chunks")]) == []
    )


def test_a_session_of_its_own_leaves_other_sessions_as_they_are(spark):
    settings = Settings(zone="Asia/Kolkata", ansi=False, case_sensitive=True, partitions=200)
    before = {name: spark.conf.get(name) for name in settings.values}
    session = settings.session(spark)
    assert {name: session.conf.get(name) for name in settings.values} == settings.values
    assert {name: spark.conf.get(name) for name in settings.values} == before


def test_columns_differ_in_names_types_and_nullability():
    def columns(name, kind, nullable):
        return StructType([StructField(name, kind, nullable)])

    right = columns("n", LongType(), False)
    assert unlike(right, right) == []
    assert unlike(columns("N", LongType(), False), right) == ["name 'N' instead of 'n'"]
    assert unlike(columns("n", DecimalType(10, 0), False), right) == ["type of 'n' is decimal(10,0), not bigint"]
    assert unlike(columns("n", LongType(), True), right) == ["nullability of 'n' is True instead of False"]
    assert unlike(
        columns("n", ArrayType(LongType(), True), False), columns("n", ArrayType(LongType(), False), False)
    ) == ["nullability of 'n' is False['True'] instead of False['False']"]


def test_only_sums_of_floating_numbers_may_differ_in_their_last_digits():
    schema = StructType().add("k", "string").add("d", "decimal(10,2)").add("v", "double").add("m", "double")
    values = values_of(["sum(d)", "sum(v)", "max(v)"], schema)
    right = [("a", "1.00", "0.3", "0.3")]
    assert differing([("a", "1.00", "0.30000000000000004", "0.3")], right, values, 1.0) == ""
    assert differing([("a", "1.000", "0.3", "0.3")], right, values, 1.0) == "sum(d) is 1.000 instead of 1.00 at ('a',)"
    assert differing([("a", "1.00", "0.3", "0.30000000000000004")], right, values, 1.0) == (
        "max(v) is 0.30000000000000004 instead of 0.3 at ('a',)"
    )
    assert differing([*right, *right], right, values, 1.0) == "2 rows instead of 1: missing [], extra [('a',)]"
