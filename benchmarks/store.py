"""The store: a day appended and refreshed, and a week read, compared with computing from raw events; and streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.experiments import TEN_HOPPING, TEN_TUMBLING
from benchmarks.results import Result
from benchmarks.streaming import BATCH, BATCHES, WARM_UP, stream_of
from benchmarks.timing import rounds
from factor_windows.algebra.window import Window, hopping, tumbling
from factor_windows.engines.spark_stream import use_rocksdb
from factor_windows.query import Query
from factor_windows.search import optimize
from factor_windows.spark.files import discard
from factor_windows.spark.generate import devices
from factor_windows.spark.naive import naive
from factor_windows.store import Store

TEN_TO_A_QUARTER = (
    *(tumbling(f"{hours} hours") for hours in (1, 3, 6, 12, 24)),
    *(hopping(f"{days} days", "1 day") for days in (7, 14, 30, 60, 90)),
)
"""Ten windows, from an hour to 90 days by a day."""
AGGREGATES = ("min(v)", "count(*)", "avg(v)")
START = 1_640_995_200
"""The first second of 2022."""
DAY = 86_400
ROUNDS = 8
"""The number of days appended, one by one, and of reads of a week."""
WARM = 3
"""The number of these that are not counted."""


@dataclass(frozen=True, slots=True)
class Case:
    """Days of events of 20 devices, or a stream of them."""

    setup: str
    days: int
    events: int
    windows: tuple[Window, ...]
    naive: bool = True
    """Whether the unchanged query runs, too, which takes minutes."""

    @property
    def name(self) -> str:
        """Return a name that identifies the case."""
        return f"store, {self.setup}, {self.events:,} events"


def cases(*, quick: bool) -> Iterator[Case]:
    """List the cases to measure."""
    yield Case("730 days, ten windows", 730, 10_000_000, TEN_TO_A_QUARTER, naive=not quick)
    yield Case("stream, ten tumbling", 0, BATCHES * BATCH, TEN_TUMBLING)
    yield Case("stream, ten hopping", 0, BATCHES * BATCH, TEN_HOPPING)


def measure(spark: SparkSession, case: Case, *, random: Random) -> Result:
    """Measure one case."""
    query = Query(time="ts", keys=["device"], windows=case.windows, aggregates=AGGREGATES)
    with TemporaryDirectory(prefix="factor-windows-") as folder:
        if case.days:
            seconds, state = _refreshed(spark, case, query, Path(folder), random)
        else:
            seconds, state = _streamed(spark, case, query, Path(folder)), {}
    return Result(
        case.name, "store", "devices", case.events, case.setup, 0, "min, count, avg", len(case.windows), seconds,
        state=state,
    )  # fmt: skip


def _refreshed(
    spark: SparkSession, case: Case, query: Query, folder: Path, random: Random
) -> tuple[dict[str, list[float]], dict[str, dict[str, int]]]:
    """Append days to a store with two years of data, refresh, and read; compute the same from raw events."""
    raw = folder / "raw"
    _days(spark, case, 0, case.days).write.parquet(str(raw))
    more = [folder / f"day-{number}" for number in range(ROUNDS + WARM)]
    for number, place in enumerate(more):
        _days(spark, case, case.days + number, case.days + number + 1).write.parquet(str(place))
    events, plan = spark.read.parquet(str(raw)), optimize(query)
    store = Store.create(spark, folder / "store", query)
    store.append(events, batch="two years")
    store.compact()
    week = f"timestamp_seconds({START + (case.days - 7) * DAY})"
    since = spark.sql(f"SELECT CAST({week} AS STRING)").collect()[0][0]
    waiting = iter(more)

    def refresh() -> None:
        before = store.version
        store.append(spark.read.parquet(str(next(waiting))))
        discard(store.changes(since=before))

    contenders: dict[str, Callable[[], None]] = {
        "best": lambda: discard(plan.run(events)),
        "append a day and refresh": refresh,
        "read the last week": lambda: discard(store.read(since=since)),
    }
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in rounds(contenders, repeats=WARM, random=random):
        pass
    for name, taken, _ in rounds(contenders, repeats=ROUNDS, random=random):
        seconds[name].append(taken)
    if case.naive:
        for name, frame in (("naive", events), ("naive, the last week", events.where(f"ts >= {week}"))):
            begin = perf_counter()
            discard(naive(query, frame))
            seconds[name] = [perf_counter() - begin]
    bytes_of = {"raw": sum(path.stat().st_size for path in raw.glob("*.parquet")), "store": store.describe()["bytes"]}
    return seconds, {"bytes": bytes_of}


def _days(spark: SparkSession, case: Case, first: int, last: int) -> DataFrame:
    each = case.events // case.days
    step = DAY * 1_000_000 // each
    at = f"timestamp_micros({START * 1_000_000} + id div {each} * {DAY * 1_000_000} + id % {each} * {step}) AS ts"
    device = "concat('device ', CAST(pmod(xxhash64(id), 20) AS STRING)) AS device"
    return spark.range(first * each, last * each).selectExpr(at, device, "pmod(xxhash64(id, 2), 1000) / 10.0D AS v")


def _streamed(spark: SparkSession, case: Case, query: Query, folder: Path) -> dict[str, list[float]]:
    """Run the same stream through the plan's operators, into a store, and into a store that reports changes."""
    use_rocksdb(spark)
    events = devices(spark, case.events)
    stream = stream_of(events, folder / "in", BATCHES)
    chain = optimize(query, rate=100, unit="1 second", keys=20).run(stream)
    writer = chain.writeStream.format("noop").option("checkpointLocation", str(folder / "chain"))
    seconds = {"two operators": _batch_times(writer.outputMode("append").trigger(availableNow=True).start())}
    for name, emits in (("into a store", False), ("into a store, with changes", True)):
        store = Store.create(spark, folder / name, query)
        running = store.write_stream(
            stream,
            checkpoint=folder / f"{name} checkpoint",
            trigger={"availableNow": True},
            on_changes=(lambda rows, _: discard(rows)) if emits else None,
        )
        seconds[name] = _batch_times(running)
    return seconds


def _batch_times(running: StreamingQuery) -> list[float]:
    running.awaitTermination()
    reports = [report for report in running.recentProgress if report["numInputRows"]]
    return [report["durationMs"]["triggerExecution"] / 1000 for report in reports[WARM_UP:]]


def line(result: Result) -> str:
    """Describe in one line how long a case took, and how that compares."""
    typical = {name: median(taken) for name, taken in result.seconds.items()}
    took = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in typical.items())
    if "two operators" in typical:
        others = [name for name in typical if name != "two operators"]
        shares = ", ".join(f"{name} {typical[name] / typical['two operators']:.2f}" for name in others)
        return f"{result.name}: {took}; of two operators: {shares}"
    refresh, read = typical["append a day and refresh"], typical["read the last week"]
    gains = [f"a refresh is {typical['best'] / refresh:.1f} times as fast as plan.run"]
    if "naive" in typical:
        gains.append(f"{typical['naive'] / refresh:.0f} times as fast as raw")
        gains.append(f"a week {typical['naive, the last week'] / read:.0f} times as fast as raw events of that week")
    size = result.state["bytes"]
    gains.append(f"bytes {size['store'] / size['raw']:.3f} of raw")
    return f"{result.name}: {took}; {', '.join(gains)}"
