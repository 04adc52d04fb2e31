"""How long planning takes, for the paper's window sets and for harder ones, and its gain by its own costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from statistics import mean
from time import perf_counter
from typing import Any

from benchmarks.experiments import SIZES
from benchmarks.results import Result
from benchmarks.window_sets import GENERATORS
from factor_windows.algebra import slices
from factor_windows.algebra.window import Window, hopping, tumbling
from factor_windows.query import Query
from factor_windows.request import Search
from factor_windows.search import optimize
from factor_windows.search.cheapest_parents import longest_first
from factor_windows.search.divisors import divisors

CACHED = (divisors, longest_first, slices.pieces_of, slices._mean_length, slices._nominal)
"""The caches that last from plan to plan, to be cleared."""
SETS = 10
SEARCHES: tuple[Search, ...] = ("factor", "best")
WAYS: dict[str, dict[str, str | bool]] = {
    "coverage": {"search": "coverage"},
    "factor": {"search": "factor"},
    "optimum without slices": {"search": "best", "slices": False},
    "best": {"search": "best"},
    "slicing": {"search": "slicing"},
}


@dataclass(frozen=True, slots=True)
class Case:
    """Window sets to plan."""

    setup: str
    function: str
    make: Callable[[int], tuple[Window, ...]]
    sets: int = SETS
    unit: str = "1 second"

    @property
    def name(self) -> str:
        """Return a name that identifies the case."""
        return f"planning, {self.setup}"

    def queries(self) -> Iterator[Query]:
        """Make a query of each of the sets."""
        for seed in range(self.sets):
            yield Query(time="ts", windows=self.make(seed), aggregates=[self.function])


def cases(*, quick: bool = False) -> Iterator[Case]:
    """List the cases to measure: the paper's sets, a thousand windows, and very long or very fine windows."""
    for size, (letter, generate) in product((5, 10) if quick else SIZES, GENERATORS.items()):
        yield Case(f"{letter}-{size}-tumbling", "sum(v)", partial(_drawn, generate, size, True))
        yield Case(f"{letter}-{size}-hopping", "min(v)", partial(_drawn, generate, size, False))
    if quick:
        return
    for letter, generate in GENERATORS.items():
        for kind, function in (("tumbling", "sum(v)"), ("hopping", "min(v)")):
            make = partial(_drawn, generate, 1000, kind == "tumbling", multiplier=5000)
            yield Case(f"{letter}-1000-{kind}", function, make, sets=3)
    yield Case("1,000 hopping windows of one slide", "min(v)", _one_slide, sets=3)
    yield Case("weeks, microsecond unit, tumbling", "sum(v)", _weeks, unit="1 microsecond")
    yield Case("weeks, prime slide, microsecond unit, hopping", "min(v)", _prime_weeks, unit="1 microsecond")
    yield Case("weeks by minutes, microsecond unit, hopping", "min(v)", _weeks_by_minutes, unit="1 microsecond")


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


def measure(case: Case) -> Result:
    """Plan every set of a case with every search, each time as if for the first time."""
    seconds: dict[str, list[float]] = {name: [] for name in SEARCHES}
    count = 0
    optimize(next(case.queries()), unit=case.unit)  # The solver is imported when it is first needed.
    for query in case.queries():
        count = len(query.windows)
        for search in SEARCHES:
            for cached in CACHED:
                cached.cache_clear()
            begin = perf_counter()
            optimize(query, search=search, cost="paper", unit=case.unit)
            seconds[search].append(round(perf_counter() - begin, 5))
    return Result(case.name, "planning", "", 0, case.setup, 0, case.function, count, seconds)


@dataclass(frozen=True, slots=True)
class Gap:
    """Window sets of the paper at one rate, with the paper's own costs."""

    letter: str
    size: int
    is_tumbling: bool
    rate: int

    @property
    def setup(self) -> str:
        """Name the set-up as the paper does."""
        return f"{self.letter}-{self.size}-{'tumbling' if self.is_tumbling else 'hopping'}"

    @property
    def name(self) -> str:
        """Return a name that identifies the case."""
        return f"gaps, {self.setup}, {self.rate} events per unit"


def gaps(*, sizes: tuple[int, ...] = SIZES) -> Iterator[Gap]:
    """List the cases that compare the paper's plans with the optimum; they only run if requested by name."""
    for is_tumbling, letter, size, rate in product((True, False), GENERATORS, sizes, (1, 100)):
        yield Gap(letter, size, is_tumbling, rate)


def predict(gap: Gap, *, sets: int = SETS) -> Result:
    """Find the mean predicted gain over naive of every search; tumbling as SUM, hopping as MIN."""
    function = "sum(v)" if gap.is_tumbling else "min(v)"
    made = [GENERATORS[gap.letter](gap.size, tumbling=gap.is_tumbling, seed=seed) for seed in range(sets)]
    queries = [Query(time="ts", windows=windows, aggregates=[function]) for windows in made]
    gains = {way: round(mean(_gain(query, gap.rate, options) for query in queries), 3) for way, options in WAYS.items()}
    return Result(gap.name, "gaps", "", 0, gap.setup, gap.rate, function, gap.size, {}, gains=gains)


def _gain(query: Query, rate: int, way: Mapping[str, Any]) -> float:
    plan = optimize(query, cost="paper", rate=rate, unit="1 second", time_limit=10.0, **way)
    return float(plan.naive_cost / plan.cost)
