"""From a workload to one pass over the events: the cost model, the graph, the search."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from factor_windows.algebra.graph import CoverageGraph
from factor_windows.cost.model import CostModel
from factor_windows.cost.paper import PaperCost
from factor_windows.cost.spark import SparkCost
from factor_windows.request import Options
from factor_windows.search.best import Found, best
from factor_windows.search.cheapest_parents import cheapest_parents
from factor_windows.search.factor import with_factor_windows
from factor_windows.search.none import read_raw
from factor_windows.search.slicing import flat_slices
from factor_windows.tree import Pass, Tree
from factor_windows.workload import Workload

Combinations = Mapping[frozenset[str], float]
"""The number of combinations of each set of keys."""
SIMPLE: Mapping[str, Callable[[CoverageGraph, CostModel], Tree]] = {
    "none": read_raw,
    "coverage": cheapest_parents,
    "factor": with_factor_windows,
    "slicing": flat_slices,
}


def plan_workload(workload: Workload, options: Options, combinations: Combinations | None = None) -> Pass:
    """Find a cheap way to compute a workload; `combinations` counts those of each set of keys, if nodes differ."""
    query, search = workload.query, options.search
    given: dict[str, Any] = {
        "rate": options.rate,
        "unit": options.unit,
        "keys": options.keys,
        "sparse_covers": search == "best",
    }
    model: CostModel
    if options.cost == "paper":
        model = PaperCost.of_query(query, **given)
    else:
        model = SparkCost.of_query(
            query,
            **given,
            prices=options.prices,
            events=options.events,
            combinations=combinations,
            values=options.values,
        )
    graph = CoverageGraph.of_nodes((each.node for each in workload.outputs), query.kind)
    if search == "best":
        found = best(graph, model, slices=options.slices, seconds=options.time_limit)
    else:
        found = Found(SIMPLE[search](graph, model), "heuristic", 0)
    return Pass.of_tree(workload, found.tree, search=search, cost_model=model, status=found.status, bound=found.bound)
