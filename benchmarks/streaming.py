"""How much faster a micro-batch is with a plan than with what people write today, as ratios within one run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame, SparkSession

from benchmarks.experiments import TEN_HOPPING, TEN_TUMBLING
from benchmarks.results import Result
from factor_windows.algebra.window import Window
from factor_windows.engines.spark_stream import use_rocksdb
from factor_windows.query import Query
from factor_windows.search import optimize
from factor_windows.spark.compare import compared
from factor_windows.spark.generate import devices
from factor_windows.spark.naive import naive

BATCH = 250_000
"""Events in a micro-batch."""
BATCHES = 8
FILES = 2
"""Files in a micro-batch, each read by a task: like a topic's partitions, they keep all cores busy."""
WARM_UP = 3
"""The number of micro-batches that are not counted."""
WATERMARK = "10 seconds"


@dataclass(frozen=True, slots=True)
class Case:
    """Windows over a stream of files."""

    setup: str
    windows: tuple[Window, ...]

    @property
    def name(self) -> str:
        """Return a name that identifies the case."""
        return f"streaming, {self.setup}, {BATCHES} micro-batches of {BATCH:,}"


def cases() -> Iterator[Case]:
    """List the cases to measure: ten windows, tumbling and hopping."""
    yield Case("ten tumbling", TEN_TUMBLING)
    yield Case("ten hopping", TEN_HOPPING)


def measure(spark: SparkSession, case: Case) -> Result:
    """Run a stream to its end naively and planned, and check that the plan returns naive's rows."""
    use_rocksdb(spark)
    query = Query(time="ts", keys=["device"], windows=case.windows, aggregates=["min(v)"])
    plan = optimize(query, rate=100, unit="1 second", keys=20)
    seconds, state = {}, {}
    with TemporaryDirectory(prefix="factor-windows-") as folder:
        stream = stream_of(devices(spark, BATCHES * BATCH), Path(folder) / "in", BATCHES)
        for name, frame in (("naive", naive(query, stream)), ("best", plan.run(stream))):
            seconds[name], state[name] = steady(frame, name)
    count, different = _compared(spark.table("naive"), spark.table("best"))
    wrong = ("best",) if different else ()
    for name in wrong:
        del seconds[name]
    for name in state:
        spark.catalog.dropTempView(name)
    events_in_all = BATCHES * BATCH
    return Result(
        case.name, "streaming", "devices", events_in_all, case.setup, 0, "min", len(case.windows), seconds,
        rows=count, state=state, wrong=wrong,
    )  # fmt: skip


def stream_of(events: DataFrame, folder: Path, batches: int) -> DataFrame:
    """Write events to files in order of time, and read them as a stream of that many micro-batches."""
    events.repartitionByRange(batches * FILES, "ts").write.parquet(str(folder))
    # Spark reads the oldest files first.
    for number, path in enumerate(sorted(folder.glob("*.parquet"))):
        os.utime(path, (number + 1, number + 1))
    reader = events.sparkSession.readStream.schema(events.schema).option("maxFilesPerTrigger", FILES)
    return reader.parquet(str(folder)).withWatermark("ts", WATERMARK)


def _compared(naive: DataFrame, best: DataFrame) -> tuple[int, int]:
    """Count the rows of the windows that both have closed, and those that differ; a plan may close one window later."""
    closed = [frame.agg({"window_end": "max"}).first() for frame in (naive, best)]
    until = min(row[0] for row in closed if row is not None)
    return compared(*(frame.where(frame.window_end <= until) for frame in (best, naive)))


def steady(result: DataFrame, name: str) -> tuple[list[float], dict[str, int]]:
    """Run a stream to its end, into a table in memory; return the later micro-batches' times and the largest state."""
    writer = result.writeStream.format("memory").queryName(name).outputMode("append").trigger(availableNow=True)
    query = writer.start()
    query.awaitTermination()
    reports = [report for report in query.recentProgress if report["numInputRows"]]
    states = [report["stateOperators"] for report in reports]
    return [report["durationMs"]["triggerExecution"] / 1000 for report in reports[WARM_UP:]], {
        "operators": len(states[-1]),
        "rows": max(sum(state["numRowsTotal"] for state in operators) for operators in states),
        "bytes": max(sum(state["memoryUsedBytes"] for state in operators) for operators in states),
    }
