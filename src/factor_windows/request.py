"""Requests to the planner: queries, and how to plan them. A plan keeps its request, so that it can be made again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Literal, get_args

from factor_windows.algebra.window import Duration
from factor_windows.cost.model import Rate
from factor_windows.cost.prices import Prices
from factor_windows.errors import OptionError
from factor_windows.query import Query
from factor_windows.workload import FLAG, name_queries

Search = Literal["none", "coverage", "factor", "slicing", "best"]
Costs = Literal["spark", "paper"]
Mode = Literal["append", "update", "complete"]
Dialect = Literal["spark", "duckdb", "flink"]
SEARCHES: tuple[Search, ...] = get_args(Search)
COST_MODELS: tuple[Costs, ...] = get_args(Costs)


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `optimize`."""

    search: Search = "best"
    cost: Costs = "spark"
    rate: Rate | None = None
    unit: Duration | None = None
    keys: int | None = None
    slices: bool = True
    time_limit: float = 1.0
    prices: Prices | None = None
    events: float = inf
    values: Rate | Sequence[Rate] | None = None

    def __post_init__(self) -> None:
        for option, value, allowed in (("search", self.search, SEARCHES), ("cost", self.cost, COST_MODELS)):
            if not isinstance(value, str) or value not in allowed:
                raise OptionError(f"{option} {value!r} is unknown; allowed are {', '.join(allowed)}")
        if not isinstance(self.time_limit, int | float) or not self.time_limit > 0:
            raise OptionError(f"time_limit {self.time_limit!r} is not a positive number of seconds")


@dataclass(frozen=True, slots=True)
class Request:
    """Queries, and how to plan them; `search.plan_request` makes the plan.

    >>> from factor_windows.algebra.window import tumbling
    >>> query = Query(time="ts", windows=[tumbling("1 hour")], aggregates=["count(*)"])
    >>> [each.name for each in Request((query, query)).queries]
    ['query_1', 'query_2']
    """

    queries: tuple[Query, ...]
    options: Options = field(default_factory=Options)
    is_single: bool = False
    """Whether a single query was given by itself: the result is then a DataFrame, not a mapping from names."""
    selectivity: Mapping[str, float] = field(default_factory=dict)
    """The share of the events that each query's condition keeps, by the query's name."""
    combinations: Mapping[frozenset[str], float] = field(default_factory=dict)
    """How many combinations each set of keys has, where measured."""
    in_one_pass: bool = False
    """Whether all queries share one pass over the events; the queries of a stream must."""
    flag: str = FLAG
    """The prefix of the columns that say which queries an event is for."""
    derive: bool = True
    """Whether keys may be computed from other keys."""

    def __post_init__(self) -> None:
        if not self.is_single:
            object.__setattr__(self, "queries", name_queries(self.queries))
        unknown = self.selectivity.keys() - {query.name for query in self.queries}
        if unknown:
            raise OptionError(f"selectivity names {sorted(unknown)[0]!r}, which is not one of the queries")
        for name, share in self.selectivity.items():
            if not 0 <= share <= 1:
                raise OptionError(f"selectivity {share!r} of {name!r} is not a share of the events, from 0 to 1")

    def for_query(self, query: Query, options: Options) -> Request:
        """Return the request for one of the queries alone; it ignores the selectivities of the others."""
        known = {name: share for name, share in self.selectivity.items() if name == query.name}
        return replace(self, queries=(query,), options=options, selectivity=known)
