"""One query, or several made one, to a plan: the cost model, the graph, the search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Protocol

from factor_windows.algebra.graph import CoverageGraph
from factor_windows.algebra.window import Duration
from factor_windows.cost.model import CostModel, PaperCost, Rate, SparkCost
from factor_windows.cost.prices import Prices
from factor_windows.errors import OptionError
from factor_windows.plan import Output, Plan
from factor_windows.query import Query
from factor_windows.search.best import Found, best
from factor_windows.search.cheapest_parents import cheapest_parents
from factor_windows.search.factor import with_factor_windows
from factor_windows.search.none import read_raw
from factor_windows.search.slicing import flat_slices


class Statistics(Protocol):
    """What `analyze` measures and a plan can use."""

    @property
    def rate(self) -> float:
        """Return the events per second, over all keys together."""

    @property
    def keys(self) -> int:
        """Return the number of combinations of keys."""

    @property
    def events(self) -> int:
        """Return the number of events."""

    @property
    def combinations(self) -> Mapping[frozenset[str], int]:
        """Return the number of combinations of each set of keys, if several queries were looked at."""

    @property
    def selectivity(self) -> Mapping[str, float]:
        """Return the share of the events that each query's condition keeps, by its name."""


SIMPLE = {
    "none": read_raw,
    "coverage": cheapest_parents,
    "factor": with_factor_windows,
    "slicing": flat_slices,
}
SEARCHES = (*SIMPLE, "best")
COST_MODELS = ("spark", "paper")


@dataclass(frozen=True, slots=True)
class Options:
    """What the caller of `optimize` may choose."""

    search: str = "best"
    cost: str = "spark"
    rate: Rate | None = None
    unit: Duration | None = None
    keys: int | None = None
    slices: bool = True
    time_limit: float = 1.0
    prices: Prices | None = None
    events: float = inf
    combinations: Mapping[frozenset[str], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for option, value, allowed in (("search", self.search, SEARCHES), ("cost", self.cost, COST_MODELS)):
            if not isinstance(value, str) or value not in allowed:
                raise OptionError(f"{option} {value!r} is unknown; allowed are {', '.join(allowed)}")
        if not isinstance(self.time_limit, int | float) or not self.time_limit > 0:
            raise OptionError(f"time_limit {self.time_limit!r} is not a positive number of seconds")


def plan_workload(query: Query, asked: tuple[Output, ...], options: Options) -> Plan:
    """Find a cheap plan for what is asked of a query."""
    sparse_covers = options.search == "best"
    model: CostModel
    if options.cost == "paper":
        model = PaperCost.of_query(
            query, rate=options.rate, unit=options.unit, keys=options.keys, sparse_covers=sparse_covers
        )
    else:
        model = SparkCost.of_query(
            query,
            rate=options.rate,
            unit=options.unit,
            keys=options.keys,
            sparse_covers=sparse_covers,
            prices=options.prices,
            events=options.events,
            combinations=options.combinations,
        )
    graph = CoverageGraph.of_nodes((each.node for each in asked), query.kind)
    if options.search == "best":
        found = best(graph, model, slices=options.slices, seconds=options.time_limit)
    else:
        found = Found(SIMPLE[options.search](graph, model), "heuristic", 0)
    return Plan.of_tree(
        query,
        found.tree,
        search=options.search,
        cost_model=model,
        status=found.status,
        bound=found.bound,
        asked=asked,
    )
