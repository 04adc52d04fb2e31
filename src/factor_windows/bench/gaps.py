"""How far the paper's plans are from the optimum, on the paper's window sets, by the paper's costs: no Spark needed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from statistics import mean

from factor_windows.bench.window_sets import GENERATORS
from factor_windows.query import Query
from factor_windows.search import optimize

WAYS: dict[str, dict[str, str | bool]] = {
    "Algorithm 1": {"search": "coverage"},
    "Algorithm 3": {"search": "factor"},
    "optimum": {"search": "best", "slices": False},
    "with slices": {"search": "best"},
}


def table(*, sets: int = 10, sizes: tuple[int, ...] = (5, 10, 15, 20)) -> Iterator[str]:
    """Write, line by line, the mean predicted gain over naive of every set-up; tumbling as SUM, hopping as MIN."""
    yield f"| set | events per unit | {' | '.join(WAYS)} |"
    yield f"|---|---|{'---|' * len(WAYS)}"
    for is_tumbling, letter, size, rate in product((True, False), GENERATORS, sizes, (1, 100)):
        made = [GENERATORS[letter](size, tumbling=is_tumbling, seed=seed) for seed in range(sets)]
        function = "sum(v)" if is_tumbling else "min(v)"
        queries = [Query(time="ts", windows=windows, aggregates=[function]) for windows in made]
        gains = [mean(_gain(query, rate, way) for query in queries) for way in WAYS.values()]
        kind = "tumbling" if is_tumbling else "hopping"
        yield f"| {letter}-{size}-{kind} | {rate} | {' | '.join(f'{gain:.1f}' for gain in gains)} |"


def _gain(query: Query, rate: int, way: dict[str, str | bool]) -> float:
    plan = optimize(query, cost="paper", rate=rate, unit="1 second", time_limit=10.0, **way)  # type: ignore[arg-type]
    return float(plan.naive_cost / plan.cost)
