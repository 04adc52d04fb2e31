"""Seeded streams of events to measure with: at a constant pace, from many devices, late, and from a real factory."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.experiments import PLUGS, STREAMS
from factor_windows.errors import OptionError

EPOCH = 1_700_000_000_000_000
"""When streams begin, in microseconds since 1970."""
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
    # One small file would be read by one core.
    return spark.read.parquet(str(data / READINGS)).repartitionByRange("ts").sortWithinPartitions("ts")


def constant_pace(spark: SparkSession, events: int, *, rate: float = 1.0, seed: int = 7) -> DataFrame:
    """Make the paper's Synthetic-1M and -10M: (ts, v), one event after the other at the same distance, no key."""
    return _paced(spark, events, rate).select("ts", (F.rand(seed) * 100).alias("v"))


def devices(
    spark: SparkSession, events: int, *, rate: float = 100.0, devices: int = 20, skew: float = 0.0, seed: int = 7
) -> DataFrame:
    """Make readings of many devices: (ts, device, v); with a skew above 0 the first devices send more than the last.

    The rate is that of all devices together. A skew of 1 gives a device's share of the events a power law.
    """
    place = F.pow(F.rand(seed), F.lit(1.0 + 3.0 * skew)) * devices
    device = F.concat(F.lit("device-"), F.floor(place).cast("string"))
    return _paced(spark, events, rate).select("ts", device.alias("device"), (F.rand(seed + 1) * 100).alias("v"))


def late(events: DataFrame, *, share: float = 0.1, most_seconds: float = 60.0, seed: int = 7) -> DataFrame:
    """Let events arrive out of order: (arrival, ...), a share of them up to so many seconds after their time."""
    delay = F.when(F.rand(seed) < share, F.rand(seed + 1) * most_seconds).otherwise(F.lit(0.0))
    arrival = F.timestamp_micros(F.unix_micros("ts") + (delay * 1_000_000).cast("bigint"))
    return events.select(arrival.alias("arrival"), "*").orderBy("arrival")


def factory(spark: SparkSession, events: int, *, sample: Path | None = None, seed: int = 7) -> DataFrame:
    """Make a stand-in for the paper's Real-32M: (ts, v), the DEBS 2012 sample repeated and shifted in time.

    Without the sample, values of the same shape: a steady level with small noise and rare steps.
    """
    if sample is None:
        level = 13_000 + 500 * (F.hash(F.floor(F.col("id") / 5000)) % 5)
        return _paced(spark, events, SAMPLE_RATE).select("ts", (level + F.randn(seed) * 20).cast("int").alias("v"))
    if not sample.exists():
        raise OptionError(f"there is no sample at {str(sample)!r}")
    values = [row.mf01 for row in spark.read.parquet(str(sample)).orderBy("ts").select("mf01").collect()]
    looked_up = F.element_at(F.array(*(F.lit(value) for value in values)), (F.col("id") % len(values) + 1).cast("int"))
    return _paced(spark, events, SAMPLE_RATE).select("ts", looked_up.alias("v"))


def _paced(spark: SparkSession, events: int, rate: float) -> DataFrame:
    if events < 0 or rate <= 0:
        raise OptionError(f"{events} events at {rate} per second cannot be made; both are positive")
    time: Column = EPOCH + (F.col("id") * (1_000_000 / rate)).cast("bigint")
    return spark.range(events).select("id", F.timestamp_micros(time).alias("ts"))
