"""How much quicker plans run on Spark than what people write today, as ratios within one run."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from pyspark.sql import DataFrame, SparkSession

from factor_windows.bench.naive import naive
from factor_windows.bench.workloads import constant_pace, devices
from factor_windows.plan import Plan
from factor_windows.query import Query
from factor_windows.search import optimize
from factor_windows.window import Window, hopping, tumbling

TUMBLING = tuple(tumbling(f"{seconds} seconds") for seconds in range(20, 120, 10))
HOPPING = tuple(hopping(f"{seconds} seconds", f"{seconds // 2} seconds") for seconds in range(20, 120, 10))
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
    events: int | None = None


def cases() -> Iterator[Case]:
    """List what is measured."""
    for label, functions in FUNCTIONS.items():
        yield Case(f"devices, 10 tumbling, {label}", "devices", ("device",), TUMBLING, functions, 100, 20, 7)
        yield Case(f"devices, 10 hopping, {label}", "devices", ("device",), HOPPING, functions, 100, 20, 10)
        yield Case(f"no key, 10 tumbling, {label}", "constant pace", (), TUMBLING, functions, 1, 1, 5)
        yield Case(f"no key, 10 hopping, {label}", "constant pace", (), HOPPING, functions, 1, 1, 5)
    hour = (hopping("1 hour", "10 seconds"),)
    yield Case("devices, 1 hour by 10 seconds, min", "devices", ("device",), hour, ("min(v)",), 100, 20, 20, 1_000_000)
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
    operators: tuple[int, int]
    """Lines of the naive and of the plan's physical plan."""

    def __str__(self) -> str:
        return (
            f"{self.case.name:<40} {self.naive:7.2f} s {self.plan:7.2f} s {self.naive / self.plan:6.1f} "
            f"{self.case.target:7.2f} {self.plan / self.one_window:8.2f} "
            f"{self.exchanges[0]:5d} {self.exchanges[1]:3d} {self.operators[0]:6d} {self.operators[1]:4d}"
        )


HEADER = (
    f"{'batch, median seconds':<40} {'naive':>9} {'plan':>9} {'times':>6} {'target':>7} {'/ window':>8} "
    f"{'exchanges':>9} {'operators':>11}"
)


def run(spark: SparkSession, *, events: int, repeats: int, only: str = "") -> Iterator[Measured]:
    """Measure the cases: contenders in random order, a first round to warm up, medians of the others."""
    with TemporaryDirectory(prefix="factor-windows-") as folder:
        streams = {
            "devices": devices(spark, events),
            "constant pace": constant_pace(spark, events),
            "sparse": devices(spark, events, devices=1_000_000),
        }
        written: dict[str, DataFrame] = {}
        for case in (case for case in cases() if only in case.name):
            if case.stream not in written:
                path = f"{folder}/{case.stream}"
                streams[case.stream].write.parquet(path)
                written[case.stream] = spark.read.parquet(path)
            stream = written[case.stream]
            yield measure(case, stream.limit(case.events) if case.events else stream, repeats)


def measure(case: Case, events: DataFrame, repeats: int) -> Measured:
    """Time one case."""
    query = Query(time="ts", keys=case.keys, windows=case.windows, aggregates=case.aggregates)
    first = Query(time="ts", keys=case.keys, windows=case.windows[:1], aggregates=case.aggregates)
    plan: Plan = optimize(query, rate=case.rate, unit="1 second", keys=case.number_of_keys)
    contenders: dict[str, Callable[[], DataFrame]] = {
        "naive": lambda: naive(query, events),
        "plan": lambda: plan.run(events),
        "one window": lambda: naive(first, events),
    }
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    random = Random(7)
    for repeat in range(repeats + 1):
        for name in random.sample(list(contenders), len(contenders)):
            begin = perf_counter()
            contenders[name]().write.format("noop").mode("overwrite").save()
            if repeat:
                seconds[name].append(perf_counter() - begin)
    plans = [_physical(contenders[name]()) for name in ("naive", "plan")]
    return Measured(
        case,
        naive=median(seconds["naive"]),
        plan=median(seconds["plan"]),
        one_window=median(seconds["one window"]),
        exchanges=(plans[0].count("Exchange "), plans[1].count("Exchange ")),
        operators=(len(plans[0].splitlines()), len(plans[1].splitlines())),
    )


def _physical(frame: DataFrame) -> str:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        frame.explain()
    return text.getvalue()
