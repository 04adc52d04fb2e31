"""How much quicker a micro-batch is with a plan than with what people write today, as ratios within one run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from factor_windows.bench.batch import HOPPING, TUMBLING
from factor_windows.bench.workloads import devices
from factor_windows.query import Query
from factor_windows.search import optimize
from factor_windows.spark.naive import naive
from factor_windows.spark.stream import use_rocksdb
from factor_windows.window import Window, hopping, tumbling

BATCH = 250_000
"""Events in a micro-batch."""
WARM_UP = 3
"""How many micro-batches are not counted."""


@dataclass(frozen=True, slots=True)
class Steady:
    """What a running stream settles to."""

    seconds: float
    """The median time of a micro-batch."""
    rows: int
    """The largest number of rows in the state."""
    bytes: int
    """The largest memory of the state, as Spark reports it."""
    operators: int


@dataclass(frozen=True, slots=True)
class Measured:
    """One set of windows, naive and planned."""

    name: str
    naive: Steady
    plan: Steady

    def __str__(self) -> str:
        return (
            f"{self.name:<28} {self.naive.seconds:7.2f} s {self.plan.seconds:7.2f} s "
            f"{self.naive.seconds / self.plan.seconds:6.1f} {self.naive.operators:5d} {self.plan.operators:4d} "
            f"{self.naive.rows:9,d} {self.plan.rows:9,d} {self.naive.bytes / 1e6:8.1f} {self.plan.bytes / 1e6:8.1f}"
        )


HEADER = (
    f"{'streaming, median batch':<28} {'naive':>9} {'plan':>9} {'times':>6} {'operators':>10} "
    f"{'state rows':>19} {'state MB':>17}"
)


def run(spark: SparkSession, *, batches: int = 12, batch: int = BATCH, only: str = "") -> Iterator[Measured]:
    """Measure ten tumbling, ten hopping and twenty tumbling windows over a source of files."""
    use_rocksdb(spark)
    twenty = (*TUMBLING, *(tumbling(f"{seconds} seconds") for seconds in range(120, 220, 10)))
    twice = (*HOPPING, *(hopping(f"{seconds} seconds", f"{seconds // 2} seconds") for seconds in range(120, 220, 10)))
    with TemporaryDirectory(prefix="factor-windows-") as folder:
        events = devices(spark, batches * batch)
        events.repartitionByRange(batches, "ts").write.parquet(f"{folder}/in")
        _in_order(Path(folder) / "in")
        for name, windows in (
            ("10 tumbling", TUMBLING),
            ("10 hopping", HOPPING),
            ("20 tumbling", twenty),
            ("20 hopping", twice),
        ):
            if only in name:
                yield _measure(spark, f"{folder}/in", events.schema, name, windows)


def _in_order(folder: Path) -> None:
    """Let the files be read in the order of their names, which is that of time."""
    for number, path in enumerate(sorted(folder.glob("*.parquet"))):
        os.utime(path, (number + 1, number + 1))


def _measure(spark: SparkSession, folder: str, schema: StructType, name: str, windows: tuple[Window, ...]) -> Measured:
    query = Query(time="ts", keys=["device"], windows=windows, aggregates=["min(v)"])
    stream = (
        spark.readStream.schema(schema)
        .option("maxFilesPerTrigger", 1)
        .parquet(folder)
        .withWatermark("ts", "10 seconds")
    )
    plan = optimize(query, rate=100, unit="1 second", keys=20)
    return Measured(name, naive=_steady(naive(query, stream)), plan=_steady(plan.run(stream)))


def _steady(result: DataFrame) -> Steady:
    query = result.writeStream.format("noop").outputMode("append").trigger(availableNow=True).start()
    query.awaitTermination()
    reports = [report for report in query.recentProgress if report["numInputRows"]]
    states = [report["stateOperators"] for report in reports]
    return Steady(
        seconds=median(report["durationMs"]["triggerExecution"] / 1000 for report in reports[WARM_UP:]),
        rows=max(sum(state["numRowsTotal"] for state in operators) for operators in states),
        bytes=max(sum(state["memoryUsedBytes"] for state in operators) for operators in states),
        operators=len(states[-1]),
    )
