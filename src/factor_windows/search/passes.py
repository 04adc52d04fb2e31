"""Several queries to one plan: who shares a pass over the events, and what each pass computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from factor_windows.cost.model import SparkCost
from factor_windows.errors import OptionError, QueryError
from factor_windows.functions.expression import determinants
from factor_windows.plan import Plan
from factor_windows.query import Query
from factor_windows.search.plan_workload import Options, plan_workload
from factor_windows.shared import Group, SharedPlan
from factor_windows.workload import FLAG, Workload, can_share, merged, named

Combinations = Mapping[frozenset[str], float]


def plan_together(
    queries: Sequence[Query],
    options: Options,
    *,
    selectivity: Mapping[str, float],
    combinations: Combinations,
    together: bool = False,
    flag: str = FLAG,
    derive: bool = True,
) -> SharedPlan:
    """Plan queries that share a stream, in one group unless several are cheaper or there is no other way."""
    queries = named(queries)
    unknown = selectivity.keys() - {query.name for query in queries}
    if unknown:
        raise OptionError(f"selectivity names {sorted(unknown)[0]!r}, which is none of the queries")
    for name, share in selectivity.items():
        if not 0 <= share <= 1:
            raise OptionError(f"selectivity {share!r} of {name!r} is not a share of the events, from 0 to 1")
    planner = _Planner(options, selectivity, combinations, flag, derive)
    if together:
        _check_one_time(queries)
        parts = [list(queries)]
    else:
        by_time: dict[str, list[Query]] = {}
        for query in filter(can_share, queries):
            by_time.setdefault(query.parsed_time.sql, []).append(query)
        parts = [part for sharing in by_time.values() for part in planner.split_into_passes(sharing)]
        parts += [[query] for query in queries if not can_share(query)]
    again = partial(
        _again,
        queries,
        options=options,
        selectivity=selectivity,
        combinations=combinations,
        together=together,
        flag=flag,
        derive=derive,
    )
    return SharedPlan(queries, tuple(planner.group(part) for part in parts), again)


def _again(every: Sequence[Query], some: Sequence[Query] | None = None, /, **how: Any) -> SharedPlan:
    """Plan queries, or some of them, anew; selectivities of the others mean nothing then."""
    queries = some or every
    names = {query.name for query in queries}
    known = {name: share for name, share in how.pop("selectivity").items() if name in names}
    given = {name: how.pop(name) for name in ("rate", "unit") if name in how}
    return plan_together(queries, replace(how.pop("options"), **given), selectivity=known, **how)


def _check_one_time(queries: Sequence[Query]) -> None:
    times = dict.fromkeys(query.parsed_time.sql for query in queries)
    if len(times) > 1:
        raise QueryError(
            f"the queries have different time columns, {' and '.join(sorted(times))}, and a stream has one event time; "
            "start a stream for each"
        )


class _Planner:
    def __init__(
        self,
        options: Options,
        selectivity: Mapping[str, float],
        combinations: Combinations,
        flag: str,
        derive: bool,
    ) -> None:
        self.options, self.selectivity, self.combinations = options, selectivity, combinations
        self.flag, self.derive = flag, derive
        self.known: dict[tuple[str, ...], Group] = {}

    def split_into_passes(self, queries: list[Query]) -> list[list[Query]]:
        """Part the queries of a condition from the others, where it is known to keep so few events that this pays.

        An event costs something for every state that it might be added to. Apart from the others, the events that a
        condition drops cost no more than their reading, but all are read once more.
        """
        parts = [queries]
        if self.options.cost == "paper":
            return parts
        for condition in dict.fromkeys(query.where for query in queries):
            rest = [query for query in parts[0] if query.where != condition]
            own = [query for query in parts[0] if query.where == condition]
            share = max(self._share(query) for query in own) if own else 1.0
            if rest and share < 1 and self._total(own) + self._total(rest) < self._total(parts[0]):
                parts = [rest, *parts[1:], own]
        return parts

    def group(self, queries: Sequence[Query]) -> Group:
        """Plan queries that share a pass."""
        names = tuple(query.name for query in queries)
        if names not in self.known:
            workload = merged(queries, flag=self.flag, derive=self.derive)
            self.known[names] = Group(workload, self._plan(workload))
        return self.known[names]

    def _share(self, query: Query) -> float:
        return self.selectivity.get(query.name, 1.0)

    def _passing(self, workload: Workload) -> float:
        """Return the share of the events that at least one query of a workload is about, at most."""
        by_condition = {member.query.where: self._share(member.query) for member in workload.members}
        return min(1.0, max(1e-9, sum(by_condition.values())))

    def _plan(self, workload: Workload) -> Plan:
        options = self.options
        passing = self._passing(workload)
        if options.rate is not None and passing < 1:
            options = replace(options, rate=float(options.rate) * passing, events=options.events * passing)
        return plan_workload(workload.query, workload.asked, replace(options, combinations=self._counted(workload)))

    def _total(self, queries: list[Query]) -> float:
        """Return what a group costs: its plan, the reading of events that it drops, and its states."""
        group = self.group(queries)
        model = group.plan.cost_model
        assert isinstance(model, SparkCost)
        dropped = model.rate / self._passing(group.workload) - model.rate
        states = (group.workload.states - 1) * model.rate * model.prices.relative("state")
        return float(group.plan.cost) + dropped * model.prices.relative("scan") + states

    def _counted(self, workload: Workload) -> Combinations:
        """Say how many combinations each set of keys has: as measured, or as if keys were independent of each other."""
        sets = {each.node.keys for each in workload.asked}
        sets.add(frozenset[str]().union(*sets))
        every = determinants(frozenset(key.sql for key in workload.query.parsed_keys))
        whole = float(self.options.keys or 1)
        found = {}
        for keys in sets:
            own = determinants(keys)
            guess = whole ** (len(own) / len(every)) if every else 1.0
            found[keys] = float(self.combinations.get(own, guess))
        return found
