"""Search for the cheapest plan: one file per algorithm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from factor_windows.algebra.window import Duration
from factor_windows.cost.model import Rate
from factor_windows.cost.prices import Prices
from factor_windows.cost.statistics import Statistics
from factor_windows.errors import OptionError
from factor_windows.plan import Plan
from factor_windows.query import Query
from factor_windows.request import COST_MODELS, SEARCHES, Costs, Options, Request, Search
from factor_windows.search.plan_request import plan_request

__all__ = ["COST_MODELS", "SEARCHES", "optimize", "plan_request"]


def optimize(
    query: Query | Sequence[Query],
    *,
    search: Search = "best",
    cost: Costs = "spark",
    rate: Rate | None = None,
    unit: Duration | None = None,
    keys: int | None = None,
    statistics: Statistics | None = None,
    slices: bool = True,
    time_limit: float = 1.0,
    prices: Prices | None = None,
    selectivity: Mapping[str, float] | None = None,
    values: Rate | Sequence[Rate] | None = None,
) -> Plan:
    """Find a cheap plan for a query, or one for several queries over the same stream.

    `rate` is the number of events per `unit` of time, over all `keys` together. `statistics`, from `analyze`, replace
    all three. The search `best` may use `slices`, and returns the best plan found after `time_limit` seconds. `prices`,
    from `factor-windows calibrate`, describe your Spark. For several queries, `selectivity` gives, by query name, the
    share of the events that each condition keeps. `values` is the number of distinct values per key that a median, a
    mode or a DISTINCT works on: these are computed from how often each value occurs.

    >>> from factor_windows.algebra.window import tumbling
    >>> windows = [tumbling("20m"), tumbling("30m"), tumbling("40m")]
    >>> query = Query(time="ts", windows=windows, aggregates=["min(t)"])
    >>> plan = optimize(query, search="factor", cost="paper", unit="1 minute")
    >>> int(plan.naive_cost), int(plan.cost), plan.nodes[0].name
    (360, 150, '10 minutes')
    >>> plan = optimize(query, cost="paper", unit="1 minute")
    >>> int(plan.cost), plan.nodes[0].name, plan.status
    (142, 'slices at 20 minutes, 30 minutes', 'optimal')
    """
    events = inf
    if statistics is not None:
        rate, unit, keys, events = statistics.rate, "1 second", statistics.keys, statistics.events
    options = Options(search, cost, rate, unit, keys, slices, time_limit, prices, events, values)
    if isinstance(query, Query):
        return plan_request(Request((query,), options, is_single=True))
    if not isinstance(query, Sequence) or not query or not all(isinstance(each, Query) for each in query):
        raise OptionError(
            f"{query!r} is not a Query; make one with Query(time=..., windows=..., aggregates=...), "
            "or give a list of them"
        )
    known = dict(statistics.selectivity) if statistics is not None else {}
    combinations = dict(statistics.combinations) if statistics is not None else {}
    shares = known | dict(selectivity or {})
    return plan_request(Request(tuple(query), options, selectivity=shares, combinations=combinations))
