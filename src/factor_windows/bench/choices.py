"""Whether the cost model chooses well: what plans of every kind should take, beside what they take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import correlation, median
from tempfile import TemporaryDirectory
from time import perf_counter

from pyspark.sql import SparkSession

from factor_windows.bench.calibrate import counted
from factor_windows.bench.window_sets import random_windows, sequential_windows
from factor_windows.bench.workloads import devices
from factor_windows.levels import RAW, compile_levels
from factor_windows.plan import Plan
from factor_windows.prices import Prices
from factor_windows.query import Query
from factor_windows.search import SEARCHES, optimize
from factor_windows.window import Window, hopping, tumbling

RATE = 100
EVENTS = 2_000_000
STREAMS = {"20 keys": (20, 1.0), "200 keys": (200, 1.0), "few events": (20, 0.1), "20,000 keys": (20_000, 0.3)}
"""The name of a stream: how many keys it has, and how many of the events."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One set of windows over one stream: seconds predicted and measured, by search."""

    name: str
    predicted: Mapping[str, float]
    measured: Mapping[str, float]

    @property
    def regret(self) -> float:
        """Return how many times as long `best` took as the fastest of the others; 1 if it chose the same."""
        others = [seconds for search, seconds in self.measured.items() if search != "best"]
        return self.measured["best"] / min(others)

    def __str__(self) -> str:
        pairs = " ".join(f"{self.predicted[s]:6.2f} {self.measured[s]:6.2f}" for s in SEARCHES)
        return f"{self.name:<34} {pairs} {self.regret:6.2f}"


HEADER = f"{'seconds predicted, measured':<34} " + " ".join(f"{search:>13}" for search in SEARCHES) + f" {'regret':>6}"


def distinct(choices: Sequence[Choice]) -> list[tuple[float, float]]:
    """List predicted and measured seconds of all plans; where several searches chose the same, once."""
    return [pair for each in choices for pair in {(each.predicted[s], each.measured[s]) for s in SEARCHES}]


def pearson(choices: Sequence[Choice]) -> float:
    """Return the correlation of predicted and measured seconds."""
    return correlation(*zip(*distinct(choices), strict=True))


def run(spark: SparkSession, *, events: int = EVENTS, repeats: int = 3, only: str = "") -> Iterator[Choice]:
    """Run every search's plan for every set and stream in a shuffled order, after one run that does not count."""
    random = Random(7)
    with TemporaryDirectory(prefix="factor-windows-") as folder:
        for stream, (keys, share) in STREAMS.items():
            count = round(events * share)
            place = f"{folder}/{keys}-{count}"
            devices(spark, count, rate=RATE, devices=keys).write.parquet(place)
            for name, (windows, function) in _sets(random).items():
                if only in f"{name}, {stream}":
                    plans = _plans(windows, function, keys, count)
                    seconds = {search: Prices().total(counted(plan, count)) / 1e9 for search, plan in plans.items()}
                    yield Choice(f"{name}, {stream}", seconds, _measured(spark, place, plans, random, repeats))


def _sets(random: Random) -> dict[str, tuple[tuple[Window, ...], str]]:
    seed = random.randrange(10**6)
    return {
        "2 tumbling": ((tumbling("20s"), tumbling("60s")), "min(v)"),
        "15, 17, 19": (tuple(tumbling(f"{length}s") for length in (15, 17, 19)), "min(v)"),
        "R-5 tumbling": (random_windows(5, tumbling=True, seed=seed), "sum(v)"),
        "R-10 tumbling": (random_windows(10, tumbling=True, seed=seed), "min(v)"),
        "S-10 tumbling": (sequential_windows(10, tumbling=True, seed=seed), "avg(v)"),
        "R-5 hopping": (random_windows(5, tumbling=False, seed=seed), "min(v)"),
        "S-10 hopping": (sequential_windows(10, tumbling=False, seed=seed), "sum(v)"),
        "30 s by 1 s": ((hopping("30s", "1s"),), "sum(v)"),
        "R-20 tumbling": (random_windows(20, tumbling=True, seed=seed + 1), "min(v)"),
        "S-20 tumbling": (sequential_windows(20, tumbling=True, seed=seed + 1), "sum(v)"),
        "R-10 hopping": (random_windows(10, tumbling=False, seed=seed + 1), "sum(v)"),
        "60 s by 25 s and 1 minute": ((hopping("60s", "25s"), tumbling("60s"), tumbling("90s")), "max(v)"),
    }


def _plans(windows: tuple[Window, ...], function: str, keys: int, events: int) -> dict[str, Plan]:
    query = Query(time="ts", keys=["device"], windows=windows, aggregates=[function])
    known = _Known(rate=RATE, keys=keys, events=events)
    return {search: optimize(query, search=search, statistics=known) for search in SEARCHES}


@dataclass(frozen=True, slots=True)
class _Known:
    rate: float
    keys: int
    events: int


def _measured(
    spark: SparkSession, place: str, plans: Mapping[str, Plan], random: Random, repeats: int
) -> dict[str, float]:
    """Take medians; plans that run the same way share their runs."""
    same = {search: _way(plan) for search, plan in plans.items()}
    took: dict[str, list[float]] = {way: [] for way in same.values()}
    for _ in range(repeats + 1):
        for search in random.sample(list(plans), len(plans)):
            begin = perf_counter()
            plans[search].run(spark.read.parquet(place)).write.format("noop").mode("overwrite").save()
            took[same[search]].append(perf_counter() - begin)
    return {search: median(took[way][1:]) for search, way in same.items()}


def _way(plan: Plan) -> str:
    """Describe how a plan runs, whatever the search that found it, and whatever nodes it leaves out."""
    physical = compile_levels(plan)
    label = {place: node.window.label for place, node in enumerate(plan.nodes)} | {RAW: "raw"}
    levels = [sorted((label[feed.source], label[feed.target]) for feed in level.feeds) for level in physical.levels]
    return f"{levels} {physical.together} {physical.chunk}"
