"""Seeded readings of many devices, for the demo and for measuring prices."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from factor_windows.errors import OptionError

EPOCH = 1_700_000_000_000_000
"""When streams start, in microseconds since 1970."""


def devices(spark: SparkSession, events: int, *, rate: float = 100.0, devices: int = 20, seed: int = 7) -> DataFrame:
    """Make readings of many devices: (ts, device, v). The rate is the total over all devices."""
    device = F.concat(F.lit("device-"), F.floor(F.rand(seed) * devices).cast("string"))
    return paced(spark, events, rate).select("ts", device.alias("device"), (F.rand(seed + 1) * 100).alias("v"))


def paced(spark: SparkSession, events: int, rate: float) -> DataFrame:
    """Make events at a constant pace: (id, ts)."""
    if events < 0 or rate <= 0:
        raise OptionError(f"{events} events at {rate} per second cannot be made; both must be positive")
    time: Column = EPOCH + (F.col("id") * (1_000_000 / rate)).cast("bigint")
    return spark.range(events).select("id", F.timestamp_micros(time).alias("ts"))
