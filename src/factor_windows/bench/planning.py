"""How long planning takes, for the paper's window sets and for sets that are harder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter

from factor_windows.bench.window_sets import GENERATORS
from factor_windows.query import Query
from factor_windows.search import optimize
from factor_windows.search.divisors import divisors
from factor_windows.window import Window, hopping, tumbling

SETS_PER_CASE = 10
WEEK = 604_800


@dataclass(frozen=True, slots=True)
class Case:
    """Window sets to plan with `factor`, and the time that the slowest may take."""

    name: str
    function: str
    make: Callable[[int], tuple[Window, ...]]
    limit_seconds: float
    sets: int = SETS_PER_CASE
    unit: str = "1 second"


@dataclass(frozen=True, slots=True)
class Measured:
    """One case's planning times and its predicted gain."""

    case: Case
    seconds: tuple[float, ...]
    gain: float

    @property
    def within_limit(self) -> bool:
        """Say whether every set was planned in time."""
        return max(self.seconds) <= self.case.limit_seconds

    def __str__(self) -> str:
        verdict = "ok" if self.within_limit else "TOO SLOW"
        return (
            f"{self.case.name:<44} {1000 * median(self.seconds):9.2f} ms {1000 * max(self.seconds):9.2f} ms "
            f"{1000 * self.case.limit_seconds:7.0f} ms  {self.gain:7.1f}  {verdict}"
        )


HEADER = f"{'planning with search=factor':<44} {'median':>12} {'slowest':>12} {'limit':>10}  {'gain':>7}"


def cases() -> Iterator[Case]:
    """List what is measured: the paper's sets, a thousand windows, and very long or very fine windows."""
    for size in (5, 10, 15, 20):
        for letter, generate in GENERATORS.items():
            yield Case(f"{letter}-{size}-tumbling", "sum(v)", partial(_drawn, generate, size, True), 0.010)
            yield Case(f"{letter}-{size}-hopping", "min(v)", partial(_drawn, generate, size, False), 0.050)
    for letter, generate in GENERATORS.items():
        for kind, function in (("tumbling", "sum(v)"), ("hopping", "min(v)")):
            make = partial(_drawn, generate, 1000, kind == "tumbling", multiplier=5000)
            yield Case(f"{letter}-1000-{kind}", function, make, 5.0, sets=3)
    yield Case("1,000 hopping windows of one slide", "min(v)", _one_slide, 5.0, sets=3)
    yield Case("weeks, microsecond unit, tumbling", "sum(v)", _weeks, 0.010, unit="1 microsecond")
    yield Case("weeks, prime slide, microsecond unit, hopping", "min(v)", _prime_weeks, 0.050, unit="1 microsecond")
    yield Case("weeks by minutes, microsecond unit, hopping", "min(v)", _weeks_by_minutes, 0.050, unit="1 microsecond")


def _drawn(
    generate: Callable[..., tuple[Window, ...]], size: int, tumbling: bool, seed: int, **options: int
) -> tuple[Window, ...]:
    return generate(size, tumbling=tumbling, seed=seed, **options)


def _one_slide(seed: int) -> tuple[Window, ...]:
    return tuple(hopping(f"{length} seconds", "1 second") for length in range(2, 1002))


def _weeks(seed: int) -> tuple[Window, ...]:
    return tuple(tumbling(f"{times} weeks") for times in range(2, 22))


def _weeks_by_minutes(seed: int) -> tuple[Window, ...]:
    return tuple(hopping(f"{times} weeks", f"{times} minutes") for times in range(2, 22))


def _prime_weeks(seed: int) -> tuple[Window, ...]:
    slide = 604_800_000_011
    return tuple(Window(range=times * slide, slide=slide) for times in range(2, 22))


def measure(case: Case) -> Measured:
    """Plan every set of a case, each time as if for the first time."""
    seconds = []
    gains = []
    for seed in range(case.sets):
        query = Query(time="ts", windows=case.make(seed), aggregates=[case.function])
        divisors.cache_clear()
        begin = perf_counter()
        plan = optimize(query, search="factor", cost="paper", unit=case.unit)
        seconds.append(perf_counter() - begin)
        gains.append(float(plan.naive_cost / plan.cost))
    return Measured(case, tuple(seconds), sum(gains) / len(gains))
