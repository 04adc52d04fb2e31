"""Load: a hundred million events generated on the fly, a thousand windows, memory monitored, sums checked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from math import isclose
from pathlib import Path
from time import perf_counter

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.batch import known
from benchmarks.results import Result
from factor_windows.algebra.window import Window, tumbling
from factor_windows.engines.spark_stream import use_rocksdb
from factor_windows.plan import Plan
from factor_windows.query import Query
from factor_windows.search import optimize
from factor_windows.spark.generate import EPOCH

RATE = 1_000
"""Events per second."""
DEVICES = 100
SIZES = (1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000)
COUNTS = (1, 3, 10, 30, 100, 300, 1_000)
TWENTY = tuple(tumbling(f"{minutes} minutes") for minutes in (1, *range(2, 40, 2)))
STREAMED = 100_000_000
PER_BATCH = 5_000_000
REPEATS = 3
SAMPLES = 60
"""The number of memory figures kept for a run."""


@dataclass(frozen=True, slots=True)
class Case:
    """A number of events, in a batch or as a stream, over a number of windows."""

    setup: str
    events: int
    windows: tuple[Window, ...]

    @property
    def name(self) -> str:
        """Return a name that identifies the case."""
        return f"soak, {self.setup}, {self.events:,} events, {len(self.windows)} windows"

    @property
    def query(self) -> Query:
        """Return the query to compute: sums that can be checked."""
        return Query(time="ts", keys=["device"], windows=self.windows, aggregates=["count(*) AS n", "sum(v) AS total"])


def cases() -> Iterator[Case]:
    """List the cases to run: more and more events, more and more windows, and a long stream."""
    for events in SIZES:
        yield Case("events", events, TWENTY)
    for count in COUNTS:
        yield Case("windows", 1_000_000, tuple(tumbling(f"{60 + 10 * number} seconds") for number in range(count)))
    yield Case("stream", STREAMED, TWENTY)


def events_of(spark: SparkSession, count: int) -> DataFrame:
    """Generate events on the fly: nothing is stored."""
    return _columns(spark.range(count), "id")


def _columns(rows: DataFrame, number: str) -> DataFrame:
    time = F.timestamp_micros(F.lit(EPOCH) + F.col(number) * (1_000_000 // RATE))
    device = F.pmod(F.hash(number), F.lit(DEVICES))
    return rows.select(time.alias("ts"), device.alias("device"), F.pmod(F.col(number), F.lit(1009)).alias("v"))


def measure(spark: SparkSession, case: Case) -> Result:
    """Run a case, monitor Spark's memory, and check the sums of each window."""
    plan = optimize(case.query, statistics=known(RATE, DEVICES, case.events))
    if case.setup != "stream":
        # Code is generated and compiled before timing starts.
        _sums(plan.run(events_of(spark, SIZES[0] // 10)))
    with Memory(spark) as memory:
        if case.setup == "stream":
            found, seconds = _streamed(spark, case, plan)
        else:
            seconds = []
            for _ in range(REPEATS):
                begin = perf_counter()
                found = _sums(plan.run(events_of(spark, case.events)))
                seconds.append(perf_counter() - begin)
    right = _right_of_closed(spark, case, found) if case.setup == "stream" else _right(case, found)
    wrong = () if right else ("best",)
    return Result(
        case.name, "soak", "made on the fly", case.events, case.setup, 0, "count+sum", len(case.windows),
        {} if wrong else {"best": [round(each, 3) for each in seconds]},
        rows=sum(rows for rows, _, _, _ in found.values()),
        state={"memory": {"most": max(memory.megabytes), "samples": len(memory.megabytes)},
               "samples": {str(place): value for place, value in enumerate(memory.sampled())}},
        wrong=wrong,
    )  # fmt: skip


Sums = dict[str, tuple[int, int, int, object]]
"""For each window its rows, the sum of its counts, the sum of its totals, and the end of its last instance."""


def _sums(result: DataFrame) -> Sums:
    rows = result.groupBy("window_id").agg(F.count("*"), F.sum("n"), F.sum("total"), F.max("window_end")).collect()
    return {name: (count, events, total, end) for name, count, events, total, end in rows}


def _right(case: Case, found: Sums) -> bool:
    """Check the sums: every event is in one instance of each tumbling window, so each sums to the whole stream."""
    whole, rest = divmod(case.events, 1009)
    total = whole * (1008 * 1009 // 2) + rest * (rest - 1) // 2
    return len(found) == len(case.windows) and all(
        events == case.events and isclose(sums, total) for _, events, sums, _ in found.values()
    )


def _streamed(spark: SparkSession, case: Case, plan: Plan) -> tuple[Sums, list[float]]:
    """Run the events as a stream of micro-batches; keep only sums of the output."""
    use_rocksdb(spark)
    source = (
        spark.readStream.format("rate-micro-batch").option("rowsPerBatch", PER_BATCH).option("numPartitions", 4).load()
    )
    result = plan.run(_columns(source, "value").withWatermark("ts", "1 minute"))
    kept: dict[str, list[tuple[int, int, int, object]]] = {}

    def keep(batch: DataFrame, number: int) -> None:
        for name, sums in _sums(batch).items():
            kept.setdefault(name, []).append(sums)

    running = result.writeStream.foreachBatch(keep).start()
    seconds: list[float] = []
    seen = -1
    try:
        while (seen + 1) * PER_BATCH < case.events:
            running.awaitTermination(1)
            for report in running.recentProgress:
                if report["batchId"] > seen and report["numInputRows"]:
                    seen = report["batchId"]
                    seconds.append(report["durationMs"]["triggerExecution"] / 1000)
    finally:
        running.stop()
    return {
        name: (
            sum(rows for rows, _, _, _ in parts),
            sum(events for _, events, _, _ in parts),
            sum(total for _, _, total, _ in parts),
            max((end for *_, end in parts), key=str),
        )
        for name, parts in kept.items()
    }, seconds


def _right_of_closed(spark: SparkSession, case: Case, found: Sums) -> bool:
    """Check that the closed windows of a stream contain each event before the end of the last of them once."""
    for _, events, total, end in found.values():
        micros = spark.range(1).select(F.unix_micros(F.lit(end))).first()
        before = (micros[0] - EPOCH) // (1_000_000 // RATE) if micros is not None else -1
        whole, rest = divmod(before, 1009)
        if events != before or total != whole * (1008 * 1009 // 2) + rest * (rest - 1) // 2:
            return False
    return len(found) == len(case.windows)


class Memory:
    """Monitors the memory of the process of Spark's driver, in megabytes."""

    def __init__(self, spark: SparkSession, every: float = 0.5) -> None:
        gateway = getattr(spark.sparkContext, "_gateway", None)
        process = getattr(gateway, "proc", None)
        self._pid = process.pid if process is not None else None
        self._every = every
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self.megabytes: list[int] = []

    def __enter__(self) -> Memory:
        self._watcher.start()
        return self

    def __exit__(self, *trouble: object) -> None:
        self._over.set()
        self._watcher.join()

    def sampled(self) -> list[int]:
        """Return some of the figures, evenly spaced."""
        step = max(1, len(self.megabytes) // SAMPLES)
        return self.megabytes[::step]

    def _watch(self) -> None:
        while True:
            self.megabytes.append(self._now())
            if self._over.wait(self._every):
                return

    def _now(self) -> int:
        """Read the memory used by the driver's Java process; 0 where there is no /proc."""
        try:
            lines = Path(f"/proc/{self._pid}/status").read_text(encoding="utf-8").splitlines()
        except OSError:
            return 0
        return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS")), 0)
