"""How much quicker plans run on Spark than what people write today, as ratios within one run."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from urllib.parse import urlsplit
from urllib.request import urlopen

from pyspark.sql import DataFrame, SparkSession

from factor_windows.bench.window_sets import random_windows
from factor_windows.bench.workloads import constant_pace, devices
from factor_windows.plan import Plan
from factor_windows.query import Query
from factor_windows.search import optimize
from factor_windows.spark.naive import naive
from factor_windows.window import Window, hopping, tumbling

TUMBLING = tuple(tumbling(f"{seconds} seconds") for seconds in range(20, 120, 10))
HOPPING = tuple(hopping(f"{seconds} seconds", f"{seconds // 2} seconds") for seconds in range(20, 120, 10))
ENOUGH = 60.0
"""A contender that has taken so many seconds is not repeated."""
FUNCTIONS = {"min": ("min(v)",), "sum, avg, stddev": ("sum(v)", "avg(v)", "stddev(v)")}


@dataclass(frozen=True, slots=True)
class Case:
    """A stream, windows and functions, and how many times naive's speed a plan should have."""

    name: str
    stream: str
    keys: tuple[str, ...]
    windows: tuple[Window, ...]
    aggregates: tuple[str, ...]
    rate: float
    number_of_keys: int
    target: float


def cases() -> Iterator[Case]:
    """List what is measured."""
    for label, functions in FUNCTIONS.items():
        yield Case(f"devices, 10 tumbling, {label}", "devices", ("device",), TUMBLING, functions, 100, 20, 7)
        yield Case(f"devices, 10 hopping, {label}", "devices", ("device",), HOPPING, functions, 100, 20, 10)
        yield Case(f"no key, 10 tumbling, {label}", "constant pace", (), TUMBLING, functions, 1, 1, 5)
        yield Case(f"no key, 10 hopping, {label}", "constant pace", (), HOPPING, functions, 1, 1, 5)
    primes = tuple(tumbling(f"{seconds} seconds") for seconds in (15, 17, 19))
    yield Case("devices, 15 17 19 seconds, min", "devices", ("device",), primes, ("min(v)",), 100, 20, 2.5)
    for size, seed in product((10, 20), range(5)):
        windows = random_windows(size, tumbling=True, seed=seed)
        yield Case(f"devices, R-{size} set {seed}, min", "devices", ("device",), windows, ("min(v)",), 100, 20, 8)
    hour = (hopping("1 hour", "10 seconds"),)
    yield Case("a tenth, 1 hour by 10 seconds, min", "short", ("device",), hour, ("min(v)",), 100, 20, 20)
    minutes = tuple(tumbling(f"{n} minutes") for n in range(1, 11))
    yield Case("sparse keys, 10 tumbling, min", "sparse", ("device",), minutes, ("min(v)",), 100, 1_000_000, 1 / 1.05)


@dataclass(frozen=True, slots=True)
class Measured:
    """One case's median seconds: naive, the plan, and the first window alone."""

    case: Case
    naive: float
    plan: float
    one_window: float
    exchanges: tuple[int, int]
    """Shuffles in the naive and in the plan's physical plan."""
    shuffled: tuple[int, int]
    """Bytes that a naive run and a run of the plan shuffle."""
    operators: tuple[int, int]
    """Operators of the naive and of the plan's physical plan."""

    def __str__(self) -> str:
        return (
            f"{self.case.name:<40} {self.naive:7.2f} s {self.plan:7.2f} s {self.naive / self.plan:6.1f} "
            f"{self.case.target:7.2f} {self.plan / self.one_window:8.2f} "
            f"{self.exchanges[0]:6d} {self.exchanges[1]:2d} {self.operators[0]:6d} {self.operators[1]:4d} "
            f"{self.shuffled[0] / 1e6:8.1f} {self.shuffled[1] / 1e6:6.1f}"
        )


HEADER = (
    f"{'batch, median seconds':<40} {'naive':>9} {'plan':>9} {'times':>6} {'target':>7} {'/ window':>8} "
    f"{'exchanges':>9} {'operators':>11} {'MB shuffled':>15}"
)


def run(spark: SparkSession, *, events: int, repeats: int, only: str = "") -> Iterator[Measured]:
    """Measure the cases: contenders in random order, a first round to warm up, medians of the others."""
    with TemporaryDirectory(prefix="factor-windows-") as folder:
        streams = {
            "devices": devices(spark, events),
            "constant pace": constant_pace(spark, events),
            "sparse": devices(spark, events, devices=1_000_000),
            "short": devices(spark, events // 10),
        }
        written: dict[str, DataFrame] = {}
        for case in (case for case in cases() if only in case.name):
            if case.stream not in written:
                path = f"{folder}/{case.stream}"
                streams[case.stream].write.parquet(path)
                written[case.stream] = spark.read.parquet(path)
            yield measure(case, written[case.stream], repeats)


def measure(case: Case, events: DataFrame, repeats: int) -> Measured:
    """Time one case."""
    query = Query(time="ts", keys=case.keys, windows=case.windows, aggregates=case.aggregates)
    first = Query(time="ts", keys=case.keys, windows=case.windows[:1], aggregates=case.aggregates)
    plan: Plan = optimize(query, rate=case.rate, unit="1 second", keys=case.number_of_keys)
    contenders: dict[str, Callable[[], DataFrame]] = {
        "naive": lambda: naive(query, events),
        "plan": lambda: plan.run(events),
    }
    if len(case.windows) > 1:
        contenders["one window"] = lambda: naive(first, events)
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    shuffled: dict[str, int] = {}
    random = Random(7)
    for repeat in range(repeats + 1):
        for name in random.sample(list(contenders), len(contenders)):
            if sum(seconds[name]) > ENOUGH:
                continue
            before = _shuffled(events.sparkSession)
            begin = perf_counter()
            contenders[name]().write.format("noop").mode("overwrite").save()
            took = perf_counter() - begin
            shuffled[name] = _shuffled(events.sparkSession) - before
            if repeat or took > ENOUGH:
                seconds[name].append(took)
    plans = [_physical(contenders[name]()) for name in ("naive", "plan")]
    return Measured(
        case,
        naive=median(seconds["naive"]),
        plan=median(seconds["plan"]),
        one_window=median(seconds["one window" if len(case.windows) > 1 else "naive"]),
        exchanges=(plans[0].count("Exchange "), plans[1].count("Exchange ")),
        shuffled=(shuffled["naive"], shuffled["plan"]),
        operators=(_operators(plans[0]), _operators(plans[1])),
    )


def operators(spark: SparkSession, counts: Sequence[int] = (2, 10, 100)) -> dict[int, int]:
    """Count the operators of the physical plan for so many tumbling and as many hopping windows."""
    events = devices(spark, 1)
    counted = {}
    for count in counts:
        lengths = range(10, 10 + 10 * count, 10)
        windows = [w for n in lengths for w in (tumbling(f"{n} s"), hopping(f"{2 * n} s", f"{n} s"))][:count]
        query = Query(time="ts", keys=["device"], windows=windows, aggregates=["min(v)"])
        counted[count] = _operators(_physical(optimize(query).run(events)))
    return counted


def _shuffled(spark: SparkSession) -> int:
    """Ask Spark's own status page how many bytes all shuffles wrote so far."""
    address = spark.sparkContext.uiWebUrl
    if address is None:
        return 0
    port = urlsplit(address).port
    with urlopen(f"http://127.0.0.1:{port}/api/v1/applications/{spark.sparkContext.applicationId}/stages") as answer:
        return sum(stage["shuffleWriteBytes"] for stage in json.load(answer))


def _operators(physical: str) -> int:
    return sum("- " in line for line in physical.splitlines())


def _physical(frame: DataFrame) -> str:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        frame.explain()
    return text.getvalue()
