"""The generated streams are what their names say, and the same for the same seed."""

from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import functions as F

from benchmarks.workloads import constant_pace, factory
from factor_windows import OptionError
from factor_windows.spark.generate import devices


def test_a_constant_pace_has_equal_distances(spark):
    made = [row.ts.timestamp() for row in constant_pace(spark, 50, rate=4).orderBy("ts").collect()]
    assert {later - earlier for earlier, later in pairwise(made)} == {0.25}


def test_every_device_sends_about_as_much(spark):
    counts = {row.device: row["count"] for row in devices(spark, 20_000).groupBy("device").count().collect()}
    assert len(counts) == 20
    assert max(counts.values()) < 1.3 * min(counts.values())


def test_the_same_seed_gives_the_same_stream(spark):
    assert devices(spark, 100, seed=3).collect() == devices(spark, 100, seed=3).collect()
    assert devices(spark, 100, seed=3).collect() != devices(spark, 100, seed=4).collect()


def test_the_factory_repeats_its_sample(spark, tmp_path):
    sample = tmp_path / "sample.parquet"
    spark.range(5).select(F.timestamp_micros("id").alias("ts"), (F.col("id") * 7).alias("mf01")).write.parquet(
        str(sample)
    )
    made = factory(spark, 12, sample=sample).orderBy("ts").collect()
    assert [row.v for row in made] == [0, 7, 14, 21, 28, 0, 7, 14, 21, 28, 0, 7]
    assert factory(spark, 10).count() == 10


def test_a_stream_that_cannot_be_made_is_refused(spark):
    with pytest.raises(OptionError, match="there is no sample"):
        factory(spark, 10, sample=Path("nowhere.parquet"))
    with pytest.raises(OptionError, match="both must be positive"):
        constant_pace(spark, 10, rate=0)
