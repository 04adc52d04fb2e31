"""Search for the cheapest plan: one file per algorithm."""

from __future__ import annotations

from math import inf
from typing import Protocol

from factor_windows.cost import CostModel, PaperCost, Rate, SparkCost
from factor_windows.errors import OptionError
from factor_windows.graph import CoverageGraph
from factor_windows.plan import Plan
from factor_windows.prices import Prices
from factor_windows.query import Query
from factor_windows.search.best import Found, best
from factor_windows.search.coverage import cheapest_parents
from factor_windows.search.factor import with_factor_windows
from factor_windows.search.none import read_raw
from factor_windows.search.slicing import flat_slices
from factor_windows.window import Duration


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


SIMPLE = {
    "none": read_raw,
    "coverage": cheapest_parents,
    "factor": with_factor_windows,
    "slicing": flat_slices,
}
SEARCHES = (*SIMPLE, "best")
COST_MODELS = ("spark", "paper")


def optimize(
    query: Query,
    *,
    search: str = "best",
    cost: str = "spark",
    rate: Rate | None = None,
    unit: Duration | None = None,
    keys: int | None = None,
    statistics: Statistics | None = None,
    slices: bool = True,
    time_limit: float = 1.0,
    prices: Prices | None = None,
) -> Plan:
    """Find a cheap plan for a query; `rate` is the number of events per `unit` of time, over all `keys` together.

    `statistics`, from `analyze`, stand for all three. The search `best` may use `slices`, and returns what it has after
    `time_limit` seconds. `prices`, from `factor-windows calibrate`, are those of your Spark.

    >>> from factor_windows.window import tumbling
    >>> windows = [tumbling("20m"), tumbling("30m"), tumbling("40m")]
    >>> query = Query(time="ts", windows=windows, aggregates=["min(t)"])
    >>> plan = optimize(query, search="factor", cost="paper", unit="1 minute")
    >>> int(plan.naive_cost), int(plan.cost), plan.nodes[0].name
    (360, 150, '10 minutes')
    >>> plan = optimize(query, cost="paper", unit="1 minute")
    >>> int(plan.cost), plan.nodes[0].name, plan.status
    (142, 'slices at 20 minutes, 30 minutes', 'optimal')
    """
    if not isinstance(query, Query):
        raise OptionError(f"{query!r} is not a Query; make one with Query(time=..., windows=..., aggregates=...)")
    for option, value, allowed in (("search", search, SEARCHES), ("cost", cost, COST_MODELS)):
        if not isinstance(value, str) or value not in allowed:
            raise OptionError(f"{option} {value!r} is unknown; allowed are {', '.join(allowed)}")
    if not isinstance(time_limit, int | float) or not time_limit > 0:
        raise OptionError(f"time_limit {time_limit!r} is not a positive number of seconds")
    events = inf
    if statistics is not None:
        rate, unit, keys, events = statistics.rate, "1 second", statistics.keys, statistics.events
    thrifty = search == "best"
    model: CostModel
    if cost == "paper":
        model = PaperCost.of_query(query, rate=rate, unit=unit, keys=keys, thrifty=thrifty)
    else:
        model = SparkCost.of_query(
            query, rate=rate, unit=unit, keys=keys, thrifty=thrifty, prices=prices, events=events
        )
    graph = CoverageGraph.of_query(query)
    if search == "best":
        found = best(graph, model, slices=slices, seconds=time_limit)
    else:
        found = Found(SIMPLE[search](graph, model), "heuristic", 0)
    return Plan.of_tree(query, found.tree, search=search, cost_model=model, status=found.status, bound=found.bound)
