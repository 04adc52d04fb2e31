"""Search for the cheapest plan: one file per algorithm."""

from __future__ import annotations

from typing import Protocol

from factor_windows.cost import CostModel, PaperCost, Rate, SparkCost
from factor_windows.errors import OptionError
from factor_windows.graph import CoverageGraph
from factor_windows.plan import Plan
from factor_windows.query import Query
from factor_windows.search.best import with_panes
from factor_windows.search.coverage import cheapest_parents
from factor_windows.search.factor import with_factor_windows
from factor_windows.search.none import read_raw
from factor_windows.window import Duration


class Statistics(Protocol):
    """What `analyze` measures and a plan can use."""

    @property
    def rate(self) -> float:
        """Return the events per second, over all keys together."""

    @property
    def keys(self) -> int:
        """Return the number of combinations of keys."""


SEARCHES = {
    "none": read_raw,
    "coverage": cheapest_parents,
    "factor": with_factor_windows,
    "best": with_panes,
}
COST_MODELS: dict[str, type[SparkCost | PaperCost]] = {"spark": SparkCost, "paper": PaperCost}


def optimize(
    query: Query,
    *,
    search: str = "best",
    cost: str = "spark",
    rate: Rate | None = None,
    unit: Duration | None = None,
    keys: int | None = None,
    statistics: Statistics | None = None,
) -> Plan:
    """Find a cheap plan for a query; `rate` is the number of events per `unit` of time, over all `keys` together.

    `statistics`, from `analyze`, stand for all three.

    >>> from factor_windows.window import tumbling
    >>> windows = [tumbling("20m"), tumbling("30m"), tumbling("40m")]
    >>> plan = optimize(Query(time="ts", windows=windows, aggregates=["min(t)"]), cost="paper", unit="1 minute")
    >>> int(plan.naive_cost), int(plan.cost), plan.nodes[0].name
    (360, 150, '10 minutes')
    """
    if not isinstance(query, Query):
        raise OptionError(f"{query!r} is not a Query; make one with Query(time=..., windows=..., aggregates=...)")
    for option, value, allowed in (("search", search, SEARCHES), ("cost", cost, COST_MODELS)):
        if not isinstance(value, str) or value not in allowed:
            raise OptionError(f"{option} {value!r} is unknown; allowed are {', '.join(allowed)}")
    if statistics is not None:
        rate, unit, keys = statistics.rate, "1 second", statistics.keys
    cost_model: CostModel = COST_MODELS[cost].of_query(query, rate=rate, unit=unit, keys=keys)
    tree = SEARCHES[search](CoverageGraph.of_query(query), cost_model)
    return Plan.of_tree(query, tree, search=search, cost_model=cost_model, status="heuristic")
