"""A fixed part of the fuzzer, and what it found, kept as tests. `make fuzz` looks further."""

import os
import random
from functools import reduce

import pytest
from fuzzing.batch import Case, check, draw_cases
from fuzzing.data import Data, row
from fuzzing.many import check_many
from fuzzing.naive import by_hand
from fuzzing.results import collected, differing, unlike, values_of
from fuzzing.scalars import check_scalars
from fuzzing.settings import Settings
from fuzzing.statements import check_statements, draw_statements
from fuzzing.streams import check_stream
from fuzzing.zones import DAY, ZONES, changes, offset
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DecimalType, LongType, StructField, StructType

from factor_windows import Query, Window, calendar, tumbling

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


def test_what_a_level_shows_aside_comes_once_before_1970_and_since(spark):
    seconds = [*range(1_711_800_000, 1_711_900_000, 5_000), *range(-100_000, 200_000, 9_000), -2_500_000_000]
    windows = [tumbling("1 hour"), calendar("1 day", zone="Europe/Berlin"), calendar("1 month", zone="Europe/Berlin")]
    query = Query(time="ts", keys=["k"], windows=windows, aggregates=["count(*)", "sum(n)"])
    data = Data([row(ts=second * 1_000_000, n=second % 7) for second in seconds])
    case = Case(data, query, {"search": "slicing", "rate": 100, "unit": "1 second"}, "asides")
    assert check(spark, [case]) == []


def test_python_and_java_set_the_clocks_of_the_drawn_zones_alike(spark):
    points = [
        (zone, second, offset(zone, second))
        for zone in ZONES
        for change in changes(zone, -2_208_988_800, 4_102_444_800, probe=14 * DAY)
        for second in (change - 1, change)
    ]
    shifted = "unix_seconds(from_utc_timestamp(timestamp_seconds(second), zone)) - second"
    differing = spark.createDataFrame(points, "zone string, second bigint, shift bigint").where(f"{shifted} <> shift")
    assert differing.collect() == []


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Africa/Monrovia"])
def test_what_is_looked_up_by_hand_is_what_date_trunc_gives(spark, zone):
    """These zones have each midnight once. Elsewhere date_trunc counts otherwise; docs/theory.md says how."""
    units = {"day": "1 day", "week": "1 week", "month": "1 month", "quarter": "3 months", "year": "1 year"}
    edges = changes(zone, 0, 40 * 366 * DAY, probe=DAY)[:60]
    seconds = [*(edge + away for edge in edges for away in (-7_200, -1, 0, 80_000)), *range(0, 10**8, 10**6)]
    data = Data([row(ts=second * 1_000_000 + second % 2, n=1) for second in seconds])
    windows = [calendar(length, zone=zone, name=unit) for unit, length in units.items()]
    events = data.frame(spark)
    found = by_hand(Query(time="ts", windows=windows, aggregates=["sum(n)"]), events, data.times)
    grouped = []
    for unit, length in units.items():
        local = F.date_trunc(unit, F.from_utc_timestamp("ts", zone))
        ends = [F.to_utc_timestamp(each, zone) for each in (local, local + F.expr(f"INTERVAL {length}"))]
        grouped.append(events.groupBy(F.lit(unit), *ends).agg(F.sum("n")))
    both = collected({"by hand": found, "date_trunc": reduce(DataFrame.unionAll, grouped)})
    assert sorted(both["by hand"]) == sorted(both["date_trunc"])


def test_what_reads_a_window_that_is_slices_reads_the_slices(spark):
    """Levels that show what they compute have hours of before 1970 only: two hours are made of the slices."""
    windows = [calendar("1 month", zone="Europe/Berlin"), tumbling("1 hour"), tumbling("2 hours")]
    query = Query(time="ts", windows=windows, aggregates=["sum(n)"])
    data = Data([row(ts=1_700_000_000_000_000, n=1), row(ts=-1_700_000_000_000_000, n=2)])
    assert check(spark, [Case(data, query, {"search": "best"}, "asides")]) == []


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
