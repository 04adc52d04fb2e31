"""From a request to a plan: which queries share a pass over the events, and what each pass computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from factor_windows.cost.spark import SparkCost
from factor_windows.errors import QueryError
from factor_windows.functions.expression import determinants
from factor_windows.plan import Plan
from factor_windows.query import Query
from factor_windows.request import Request
from factor_windows.search.plan_workload import Combinations, plan_workload
from factor_windows.tree import Pass
from factor_windows.workload import Workload, can_share, merge_queries


def plan_request(request: Request) -> Plan:
    """Plan queries that share a stream, in one pass unless several are cheaper or one is impossible."""
    if request.is_single:
        return Plan((plan_workload(Workload.of_query(request.queries[0]), request.options),), request)
    planner = _Planner(request)
    if request.in_one_pass:
        _check_one_time(request.queries)
        _check_no_sessions(request.queries)
        parts = [list(request.queries)]
    else:
        by_time: dict[str, list[Query]] = {}
        for query in filter(can_share, request.queries):
            by_time.setdefault(query.parsed_time.sql, []).append(query)
        parts = [part for sharing in by_time.values() for part in planner.split_into_passes(sharing)]
        parts += [[query] for query in request.queries if not can_share(query)]
    return Plan(tuple(planner.plan(part) for part in parts), request)


def plan_in_one_pass(plan: Plan) -> Plan:
    """Return a plan with one pass for all queries, as a stream needs."""
    request = replace(plan.request, in_one_pass=True)
    return replace(plan, request=request) if len(plan.passes) == 1 else plan_request(request)


def _check_one_time(queries: Sequence[Query]) -> None:
    times = dict.fromkeys(query.parsed_time.sql for query in queries)
    if len(times) > 1:
        raise QueryError(
            f"the queries have different time columns, {' and '.join(sorted(times))}, and a stream has one event time; "
            "start a stream for each"
        )


def _check_no_sessions(queries: Sequence[Query]) -> None:
    own = next((query for query in queries if query.has_sessions), None)
    if own is not None and len(queries) > 1:
        raise QueryError(
            f"query {own.name!r} has sessions, which depend on which events count, so it cannot share a stream with "
            "other queries; start one of its own for it"
        )


class _Planner:
    """Plans sets of queries, each set once."""

    def __init__(self, request: Request) -> None:
        self.request, self.options = request, request.options
        self.known: dict[tuple[str, ...], Pass] = {}

    def split_into_passes(self, queries: list[Query]) -> list[list[Query]]:
        """Give queries with the same condition a pass of their own, if it keeps so few events that this pays.

        In a shared pass, an event costs something for every state that it might be added to. In a separate pass, the
        events that the condition drops only cost reading, but all events are read once more.
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

    def plan(self, queries: Sequence[Query]) -> Pass:
        """Plan queries that share a pass."""
        names = tuple(query.name for query in queries)
        if names not in self.known:
            workload = merge_queries(queries, flag=self.request.flag, derive=self.request.derive)
            passing = self._passing(workload)
            options = self.options
            if options.rate is not None and passing < 1:
                options = replace(options, rate=float(options.rate) * passing, events=options.events * passing)
            self.known[names] = plan_workload(workload, options, self._combinations(workload))
        return self.known[names]

    def _share(self, query: Query) -> float:
        return self.request.selectivity.get(query.name, 1.0)

    def _passing(self, workload: Workload) -> float:
        """Return an upper bound on the share of the events that at least one query of a workload selects."""
        by_condition = {member.query.where: self._share(member.query) for member in workload.members}
        return min(1.0, max(1e-9, sum(by_condition.values())))

    def _total(self, queries: list[Query]) -> float:
        """Return the cost of a pass: its nodes, the reading of events that it drops, and its states."""
        found = self.plan(queries)
        model = found.cost_model
        assert isinstance(model, SparkCost)
        dropped = model.rate / self._passing(found.workload) - model.rate
        states = (found.workload.states - 1) * model.rate * model.prices.relative("state")
        return float(found.cost) + dropped * model.prices.relative("scan") + states

    def _combinations(self, workload: Workload) -> Combinations:
        """Return the number of combinations of each set of keys, as measured, or assuming that keys are independent."""
        sets = {each.node.keys for each in workload.outputs}
        sets.add(frozenset[str]().union(*sets))
        every = determinants(frozenset(key.sql for key in workload.query.parsed_keys))
        whole = float(self.options.keys or 1)
        found = {}
        for keys in sets:
            own = determinants(keys)
            guess = whole ** (len(own) / len(every)) if every else 1.0
            found[keys] = float(self.request.combinations.get(own, guess))
        return found
