"""Seeded streams of events for measurements: at a constant pace, from many devices, and from a real factory."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.experiments import PLUGS, STREAMS
from factor_windows.errors import OptionError
from factor_windows.spark.generate import devices, paced

SAMPLE_RATE = 100
"""Events per second in the factory's sample."""
SAMPLE = "debs2012-sample.parquet"
READINGS = "tracebase-2012-01-20.parquet"


def stream(spark: SparkSession, name: str, events: int, *, data: Path | None = None, seed: int = 7) -> DataFrame:
    """Make one of the named streams; `data` is the folder with the real ones."""
    if name not in STREAMS:
        raise OptionError(f"stream {name!r} is unknown; there are {', '.join(STREAMS)}")
    rate, keys = STREAMS[name].rate, STREAMS[name].keys
    if name == "plugs":
        readings = plugs(spark, data)
        return readings if events >= PLUGS else readings.limit(events)
    if name == "factory":
        sample = data / SAMPLE if data else None
        return factory(spark, events, sample=sample if sample and sample.exists() else None, seed=seed)
    if keys > 1:
        return devices(spark, events, rate=rate, devices=keys, seed=seed)
    return constant_pace(spark, events, rate=rate, seed=seed)


def plugs(spark: SparkSession, data: Path | None) -> DataFrame:
    """Read the real smart plugs: two days of 45 devices (tracebase, ODbL 1.0)."""
    if data is None or not (data / READINGS).exists():
        raise OptionError(f"the real readings, {READINGS}, are not there; --data or FACTOR_WINDOWS_DATA says where")
    # One small file would be read by a single core.
    return spark.read.parquet(str(data / READINGS)).repartitionByRange("ts").sortWithinPartitions("ts")


def constant_pace(spark: SparkSession, events: int, *, rate: float = 1.0, seed: int = 7) -> DataFrame:
    """Make the paper's Synthetic-1M and -10M: (ts, v), events at equal distances, without a key."""
    return paced(spark, events, rate).select("ts", (F.rand(seed) * 100).alias("v"))


def factory(spark: SparkSession, events: int, *, sample: Path | None = None, seed: int = 7) -> DataFrame:
    """Make a stand-in for the paper's Real-32M: (ts, v), the DEBS 2012 sample repeated and shifted in time.

    Without the sample, the values have the same shape: a steady level with small noise and rare steps.
    """
    if sample is None:
        level = 13_000 + 500 * (F.hash(F.floor(F.col("id") / 5000)) % 5)
        return paced(spark, events, SAMPLE_RATE).select("ts", (level + F.randn(seed) * 20).cast("int").alias("v"))
    if not sample.exists():
        raise OptionError(f"there is no sample at {str(sample)!r}")
    values = [row.mf01 for row in spark.read.parquet(str(sample)).orderBy("ts").select("mf01").collect()]
    looked_up = F.element_at(F.array(*(F.lit(value) for value in values)), (F.col("id") % len(values) + 1).cast("int"))
    return paced(spark, events, SAMPLE_RATE).select("ts", looked_up.alias("v"))
