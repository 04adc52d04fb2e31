"""Measure Spark's prices: run small plans of every kind, and fit prices to their times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from pyspark.sql import SparkSession

from factor_windows.algebra.pane_row import Packing
from factor_windows.algebra.window import Window, hopping, tumbling
from factor_windows.cost.prices import Prices
from factor_windows.physical.choose import choose_layout, spark_cost
from factor_windows.physical.work import Work
from factor_windows.plan import Plan
from factor_windows.query import Query
from factor_windows.request import Search
from factor_windows.search import optimize
from factor_windows.spark.files import discard
from factor_windows.spark.generate import devices
from factor_windows.tree import Pass

EVENTS = 2_000_000
MANY = 6_000_000
"""The number of events for measuring work that takes little time per event."""
REPEATS = 3
RATE = 100
"""Events per second in the measured streams."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One plan: the work counted for it, and the time it took."""

    name: str
    counts: dict[str, float]
    seconds: float

    def predicted(self, prices: Prices) -> float:
        """Return the predicted time in seconds."""
        return prices.total(self.counts) / 1e9


@dataclass(frozen=True, slots=True)
class Fit:
    """Fitted prices, with the measurements they were fitted to."""

    prices: Prices
    measured: tuple[Measured, ...]

    @property
    def error(self) -> float:
        """Return the median error of the predictions, as a share of the measured time."""
        return median(abs(each.predicted(self.prices) / each.seconds - 1) for each in self.measured)


def _seconds(*lengths: int, slide: int | None = None) -> tuple[Window, ...]:
    if slide is None:
        return tuple(tumbling(f"{length} seconds") for length in lengths)
    return tuple(hopping(f"{length} seconds", f"{slide} seconds") for length in lengths)


@dataclass(frozen=True, slots=True)
class _Case:
    """A plan in which some price has more weight than in others."""

    name: str
    windows: tuple[Window, ...]
    search: Search = "best"
    devices: int = 20
    events: int = EVENTS
    by_device: bool = True

    def plan(self) -> Plan:
        keys = ["device"] if self.by_device else []
        query = Query(time="ts", keys=keys, windows=self.windows, aggregates=["min(v)"])
        return optimize(query, search=self.search, rate=RATE, unit="1 second", keys=self.devices if keys else 1)


CASES = (
    _Case("one window", _seconds(60), "none"),
    _Case("one window, few events", _seconds(60), "none", events=EVENTS // 10),
    _Case("one window, many events", _seconds(60), "none", events=MANY),
    _Case("four windows from events", _seconds(30, 40, 50, 70), "none", events=MANY),
    _Case("ten copies of each event", _seconds(100, slide=10), "none", events=MANY),
    _Case("many groups", _seconds(30, slide=2), "none"),
    _Case("panes", _seconds(*range(20, 120, 10)), "factor"),
    _Case("panes, few events", _seconds(*range(20, 120, 10)), "factor", events=EVENTS // 10),
    _Case("short panes, many updates", _seconds(30, slide=1), "factor"),
    _Case("longer panes, many updates", _seconds(150, slide=5), "factor"),
    _Case("a ladder", _seconds(720, slide=1)),
    _Case("three progressions", _seconds(15, 17, 19), "slicing"),
    _Case("eight progressions", _seconds(23, 29, 31, 37, 41, 43, 47, 53), "slicing", events=MANY),
    _Case(
        "thirteen progressions",
        _seconds(61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109, 113),
        "slicing",
        events=MANY,
    ),
    _Case("many keys, one window", _seconds(60), "none", devices=20_000),
    _Case("many keys, long windows", _seconds(2_000, 3_000), "none", devices=20_000),
    _Case("many keys, eight windows", _seconds(*range(400, 1_200, 100)), "none", devices=20_000),
    _Case("no keys, one window", _seconds(60), "none", by_device=False, events=MANY),
    _Case("no keys, four windows from events", _seconds(30, 40, 50, 70), "none", by_device=False, events=MANY),
    _Case("no keys, ten copies of each event", _seconds(100, slide=10), "none", by_device=False, events=MANY),
    _Case("no keys, many groups", (hopping("2 seconds", "0.1 seconds"),), "none", by_device=False),
    _Case("no keys, panes", _seconds(*range(20, 120, 10)), "factor", by_device=False, events=MANY),
    _Case("no keys, many updates of panes", _seconds(30, slide=1), "factor", by_device=False),
)


def measure(spark: SparkSession, *, repeats: int = REPEATS) -> Iterator[Measured]:
    """Run each plan a few times in shuffled order, after one run that does not count; yield the medians."""
    with TemporaryDirectory(prefix="factor-windows-") as folder:
        plans = {case: case.plan() for case in CASES}
        for number, size in {(case.devices, case.events) for case in CASES}:
            devices(spark, size, rate=RATE, devices=number).write.parquet(f"{folder}/{number}-{size}")
        took: dict[_Case, list[float]] = {case: [] for case in CASES}
        random = Random(7)
        for case in (case for _ in range(repeats + 1) for case in random.sample(CASES, len(CASES))):
            begin = perf_counter()
            events = spark.read.parquet(f"{folder}/{case.devices}-{case.events}")
            discard(plans[case].run(events, statistics=None))
            took[case].append(perf_counter() - begin)
        for case, plan in plans.items():
            counts = counted(plan.passes[0], case.events, packing=Packing.of(plan.query))
            yield Measured(case.name, counts, median(took[case][1:]))


def counted(plan: Pass, events: int, *, packing: Packing | None) -> dict[str, float]:
    """Count the work of a plan over this many events, by the names of the prices."""
    cost = spark_cost(plan)
    units = events / cost.rate
    counts = Work(plan, replace(cost, units=units)).count(choose_layout(plan, packing=packing))
    return {name: count * units for name, count in counts.items()}


def fit(measured: tuple[Measured, ...]) -> Fit:
    """Fit non-negative prices that minimize the squares of the relative errors.

    Work that no measured plan does, such as one more state of several queries, keeps its price in updates.
    """
    import numpy as np
    from scipy.optimize import nnls

    shipped = Prices()
    names = [field.name for field in fields(Prices) if any(each.counts.get(field.name) for each in measured)]
    counts = np.array([[each.counts.get(name, 0.0) / each.seconds for name in names] for each in measured])
    scale = counts.max(axis=0)
    found, _ = nnls(counts / scale, np.ones(len(measured)))
    prices = {name: float(value) for name, value in zip(names, found / scale * 1e9, strict=True)}
    update = max(prices["update"], 1.0)
    others = {field.name: shipped.relative(field.name) * update for field in fields(Prices)}
    return Fit(Prices(**(others | prices | {"update": update})), measured)
