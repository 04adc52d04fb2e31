"""Twelve dashboards over one stream: one by one, as people run them, and with one shared plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.results import Result
from benchmarks.streaming import BATCH, steady, stream_of
from factor_windows.algebra.calendar import AnyWindow, parse_window
from factor_windows.engines import spark_queries as many
from factor_windows.engines.spark_stream import use_rocksdb
from factor_windows.query import Query
from factor_windows.search import optimize
from factor_windows.spark.analyze import analyze
from factor_windows.spark.compare import differing_rows
from factor_windows.spark.generate import devices
from factor_windows.spark.naive import naive
from factor_windows.spark.split_by_query import split_by_query

BATCHES = 5
"""Micro-batches of the stream, of which the last two count."""
SITES = 4
WARM_UP = 2
"""The number of warm-up runs of each contender."""
SINGLE = "planned one by one"
DEAREST = "dearest alone"
TOGETHER = "best"


def _query(name: str, keys: str, windows: str, aggregates: str, where: str = "") -> Query:
    lengths: list[AnyWindow] = [parse_window(text) for text in windows.split()]
    return Query(
        time="ts", keys=keys.split(), windows=lengths, aggregates=aggregates.split(", "), where=where, name=name
    )


DASHBOARDS = (
    _query("live", "device", "1m", "avg(v) AS mean, count(*) AS n"),
    _query("sites", "site", "5m", "count(*) AS n, avg(v) AS mean"),
    _query("spread", "device", "1h", "count(*) AS n, stddev(v) AS sd"),
    _query("peak", "", "1d", "max(v) AS high"),
    _query("healthy", "device", "15m", "min(v) AS low, max(v) AS high", "ok"),
    _query("healthy_sites", "site", "1h", "avg(v) AS mean", "ok"),
    _query("load", "device", "10m/1m", "sum(v) AS total"),
    _query("trend", "", "1h/5m", "avg(v) AS mean, count(*) AS n"),
    _query("quiet", "site", "6h", "min(v) AS low"),
    _query("alarms", "device", "1d", "count(*) AS n", "v > 90"),
    _query("alarms_now", "", "5m 30m", "count(*) AS n, sum(v) AS total", "v > 90"),
    _query("report", "site", "1d", "stddev(v) AS sd, avg(v) AS mean, count(*) AS n", "NOT ok"),
)


@dataclass(frozen=True, slots=True)
class Case:
    """All dashboards over a batch of events, or over a stream of micro-batches."""

    events: int
    streaming: bool = False

    @property
    def name(self) -> str:
        """Return a name that identifies the case."""
        how = f"{BATCHES} micro-batches of {BATCH:,}" if self.streaming else f"{self.events:,} events"
        return f"dashboards, twelve queries, {how}"


def cases(events: int) -> Iterator[Case]:
    """List the cases to measure."""
    yield Case(events)
    yield Case(BATCH * BATCHES, streaming=True)


def readings(spark: SparkSession, events: int) -> DataFrame:
    """Make readings of twenty devices at four sites, a fifth of them not ok."""
    number = F.regexp_extract("device", r"\d+", 0).cast("int")
    site = F.concat(F.lit("site-"), (number % SITES).cast("string"))
    return devices(spark, events).select("*", site.alias("site"), (F.pmod(F.hash("v"), F.lit(5)) > 0).alias("ok"))


def measure(spark: SparkSession, case: Case, *, repeats: int, random: Random) -> Result:
    """Time all dashboards; each result is first compared with naive Spark's, on a tenth of the events."""
    with TemporaryDirectory(prefix="factor-windows-") as folder:
        if case.streaming:
            seconds, state, wrong = _on_a_stream(spark, Path(folder))
        else:
            seconds, wrong = _in_a_batch(spark, case.events, folder, repeats, random)
            state = {}
    windows = sum(len(query.windows) for query in DASHBOARDS)
    return Result(
        case.name, "dashboards", "devices", case.events, "streaming" if case.streaming else "batch", 0, "many", windows,
        seconds, state=state, wrong=wrong,
    )  # fmt: skip


def _in_a_batch(
    spark: SparkSession, events: int, folder: str, repeats: int, random: Random
) -> tuple[dict[str, list[float]], tuple[str, ...]]:
    readings(spark, events // 10).write.parquet(f"{folder}/few")
    readings(spark, events).write.parquet(f"{folder}/all")
    few, every = (spark.read.parquet(f"{folder}/{part}") for part in ("few", "all"))
    statistics = analyze(every, queries=DASHBOARDS)
    plan = optimize(DASHBOARDS, statistics=statistics)
    with many.batch(plan, few) as results:
        wrong = [query.name for query in DASHBOARDS if differing_rows(results[query.name], naive(query, few))]
    alone: dict[str, list[float]] = {query.name: [] for query in DASHBOARDS}

    def one_by_one(compute: Callable[[Query, DataFrame], DataFrame], keep: bool) -> None:
        for query in DASHBOARDS:
            begin = perf_counter()
            _computed(compute(query, every))
            if keep:
                alone[query.name].append(perf_counter() - begin)

    def together() -> None:
        with many.batch(plan, every) as results:
            for result in results.values():
                _computed(result)

    contenders: dict[str, Callable[[], None]] = {
        "naive": lambda: one_by_one(naive, keep=True),
        SINGLE: lambda: one_by_one(lambda query, rows: optimize(query, statistics=statistics).run(rows), keep=False),
        TOGETHER: together,
    }
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    # Spark caches the compiled code of a hundred stages, and these are more: each contender warms up by itself.
    for name in random.sample(sorted(contenders), len(contenders)):
        for turn in range(WARM_UP + repeats):
            begin = perf_counter()
            contenders[name]()
            if turn >= WARM_UP:
                seconds[name].append(perf_counter() - begin)
    dearest = max(alone, key=lambda name: median(alone[name][WARM_UP:]))
    seconds[DEAREST] = alone[dearest][WARM_UP:]
    return seconds, tuple(wrong)


def _computed(result: DataFrame) -> None:
    result.write.format("noop").mode("overwrite").save()


def _on_a_stream(
    spark: SparkSession, folder: Path
) -> tuple[dict[str, list[float]], dict[str, dict[str, int]], tuple[str, ...]]:
    use_rocksdb(spark)
    events = readings(spark, BATCH * BATCHES)
    plan = optimize(DASHBOARDS, rate=100, unit="1 second", keys=20)
    stream = stream_of(events, folder / "in", BATCHES)
    shared = many.stream(plan, stream, mode="append", checkpoint=None)
    seconds, state = {}, {}
    seconds[TOGETHER], state[TOGETHER] = steady(shared, "together")
    each = [steady(naive(query, stream), f"alone_{place}") for place, query in enumerate(DASHBOARDS)]
    seconds["naive"] = [sum(parts) for parts in zip(*(taken for taken, _ in each), strict=True)]
    state["naive"] = {part: sum(state[part] for _, state in each) for part in ("operators", "rows", "bytes")}
    told_apart = split_by_query(spark.table("together"))
    wrong = []
    for place, query in enumerate(DASHBOARDS):
        ours, theirs = told_apart[query.name], spark.table(f"alone_{place}")
        closed = [frame.agg({"window_end": "max"}).first() for frame in (ours, theirs)]
        ends = [row[0] for row in closed if row is not None and row[0] is not None]
        if ends and differing_rows(*(frame.where(frame.window_end <= min(ends)) for frame in (ours, theirs))):
            wrong.append(query.name)
        spark.catalog.dropTempView(f"alone_{place}")
    spark.catalog.dropTempView("together")
    return seconds, state, tuple(wrong)
