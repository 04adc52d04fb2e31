"""A plan for several queries over one stream: what they share is computed once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from factor_windows.algebra.graph import Node, keys_of
from factor_windows.cost.model import Cost
from factor_windows.plan import Plan, PlanNode
from factor_windows.query import Query
from factor_windows.workload import Member, Workload

if TYPE_CHECKING:
    from datetime import datetime
    from os import PathLike

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from factor_windows.engines.spark_queries import Results


@dataclass(frozen=True, slots=True)
class Group:
    """Queries that share one pass over the events, and the plan that computes them all."""

    workload: Workload
    plan: Plan

    @property
    def readers(self) -> dict[str, tuple[str, ...]]:
        """List for each node the queries that need it, for themselves or for what they read."""
        own: dict[str, dict[str, None]] = {node.name: {} for node in self.plan.nodes}
        names = {node.node: node.name for node in self.plan.nodes}
        for member in self.workload.members:
            for node in member.nodes.values():
                own[names[node]][member.name] = None
        for each in reversed(self.plan.nodes):
            if each.parent is not None:
                own[each.parent] |= own[each.name]
        order = {member.name: place for place, member in enumerate(self.workload.members)}
        return {name: tuple(sorted(found, key=order.__getitem__)) for name, found in own.items()}

    def plan_of(self, member: Member) -> Plan:
        """Return the nodes that one query needs as a plan of its own: over its own events, by its own keys only."""
        nodes = {node.name: node for node in self.plan.nodes}
        names = {node.node: node.name for node in self.plan.nodes}
        keys = keys_of(member.query)
        tree: dict[Node, Node | None] = {}
        for shown in member.nodes.values():
            node: PlanNode | None = nodes[names[shown]]
            while node is not None and (own := Node(node.window, keys)) not in tree:
                above = nodes.get(node.parent or "")
                # The same window by more keys is the same node by these.
                while above is not None and above.window == node.window:
                    above = nodes.get(above.parent or "")
                tree[own] = None if above is None else Node(above.window, keys)
                node = above
        return Plan.of_tree(
            member.query, tree, search=self.plan.search, cost_model=self.plan.cost_model, status="heuristic"
        )


@dataclass(frozen=True, slots=True)
class SharedPlan:
    """A way to compute several queries with as few passes over the events, and as little work, as there can be.

    >>> import factor_windows as fw
    >>> devices = fw.Query(time="ts", keys=["device"], windows=[fw.tumbling("5m")], aggregates=["avg(t)"], name="a")
    >>> hours = fw.Query(time="ts", windows=[fw.tumbling("1h")], aggregates=["max(t)"], name="b")
    >>> plan = fw.optimize([devices, hours])
    >>> [(node.name, node.parent) for node in plan.nodes]
    [('5 minutes by device', None), ('1 hour', '5 minutes by device')]
    """

    queries: tuple[Query, ...]
    groups: tuple[Group, ...]
    again: Callable[..., SharedPlan] = field(repr=False, compare=False)
    """Plans the queries, or some of them, anew: `together` in one group, with another `flag`, or to `derive` no key."""

    @property
    def nodes(self) -> tuple[PlanNode, ...]:
        """List all nodes, each after the one it reads."""
        return tuple(node for group in self.groups for node in group.plan.nodes)

    @property
    def cost(self) -> Cost:
        """Return the cost of the whole plan."""
        return sum(group.plan.cost for group in self.groups)

    @property
    def naive_cost(self) -> Cost:
        """Return the cost of computing every window of every query from the raw events."""
        prices = (
            group.plan.cost_model.naive(node)
            for group in self.groups
            for member in group.workload.members
            for node in member.nodes.values()
        )
        return sum(prices)

    @property
    def search(self) -> str:
        """Return the name of the search that found the plan."""
        return self.groups[0].plan.search

    @property
    def status(self) -> str:
        """Say how good the search's answer is: `optimal` if it is so for all groups."""
        found = {group.plan.status for group in self.groups}
        return next(status for status in ("time_limit", "heuristic", "optimal") if status in found)

    @property
    def plans(self) -> dict[str, Plan]:
        """Return for each query, by its name, what it needs of the plan."""
        found = {member.name: group.plan_of(member) for group in self.groups for member in group.workload.members}
        return {query.name: found[query.name] for query in self.queries}

    def shares(self) -> dict[str, Cost]:
        """Divide the cost among the queries: what several need is paid by them in equal parts."""
        paid: dict[str, Cost] = {query.name: 0 for query in self.queries}
        for group in self.groups:
            readers = group.readers
            for node in group.plan.nodes:
                for name in readers[node.name]:
                    paid[name] += node.cost / len(readers[node.name])
        return paid

    def explain(
        self,
        *,
        physical: bool = False,
        streaming: bool = False,
        since: SharedPlan | None = None,
        events: DataFrame | None = None,
    ) -> str:
        """Draw the trees as text, with who reads what and who pays for it; or what has changed `since` another plan.

        Given the `events`, it shows what `run` would do with them.
        """
        from factor_windows.explain.several import changes, explain

        if since is not None:
            return changes(since, self)
        return explain(self, physical=physical or events is not None, streaming=streaming, events=events)

    def sql(self, *, dialect: str = "spark") -> str:
        """Write one statement for each query, with those steps of the plan that it needs; see `Plan.sql`."""
        from factor_windows.engines.sql import emit_shared

        return emit_shared(self, dialect=dialect)

    def run(
        self, events: DataFrame, *, mode: str = "append", checkpoint: str | PathLike[str] | None = None
    ) -> Mapping[str, DataFrame] | DataFrame:
        """Compute the plan over a PySpark DataFrame of events.

        A batch gives a mapping from each query's name to its result; they share one pass, whose outcome Spark keeps
        until `unpersist()` is called on the mapping. A stream gives one DataFrame for all queries, with a `query_id`;
        `factor_windows.split_by_query` tells them apart in each micro-batch.
        """
        from factor_windows.engines import spark_queries as many
        from factor_windows.spark.messages import check_events

        check_events(events)
        if events.isStreaming:
            return many.stream(self, events, mode=mode, checkpoint=checkpoint)
        return many.batch(self, events)

    def flush(
        self,
        events: DataFrame,
        stopped: StreamingQuery | datetime | None = None,
        *,
        checkpoint: str | PathLike[str] | None = None,
    ) -> Results:
        """Compute the windows that a stream had not closed when it stopped, from all its events read as a batch."""
        from factor_windows.engines.spark_queries import flush

        return flush(self, events, stopped, checkpoint=checkpoint)

    def to_html(self, *, measured: Mapping[str, float] | None = None) -> str:
        """Write a page that explains the plan, with a SQL statement for each query; see `Plan.to_html`."""
        from factor_windows.explain.page import page_of_many

        return page_of_many(self, measured=measured)

    def _repr_html_(self) -> str:
        """Show the plan in a notebook: a picture of each tree."""
        from factor_windows.explain.picture import figure

        return "".join(figure(group.plan) for group in self.groups)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": self.explain(), "text/html": self._repr_html_()}
