"""A plan: a tree in which every window reads the raw events or one node that covers it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from factor_windows.algebra.graph import Node, keys_of
from factor_windows.algebra.slices import Segmentation, Slices, display_key
from factor_windows.algebra.window import Window
from factor_windows.cost.model import Cost, CostModel
from factor_windows.errors import PlanError
from factor_windows.functions.table import Kind
from factor_windows.query import Query

if TYPE_CHECKING:
    from datetime import datetime
    from os import PathLike

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

Tree = Mapping[Node, Node | None]
"""Each node's parent; `None` is the raw events. What a search returns."""


@dataclass(frozen=True, slots=True)
class Output:
    """A node whose results are shown: under which names, and which of the query's aggregates they are."""

    node: Node
    names: tuple[str, ...]
    aggregates: tuple[int, ...]
    """The places of the aggregates in the query."""

    @classmethod
    def of_query(cls, query: Query) -> tuple[Output, ...]:
        """Return a query's windows, each for all its keys and with the aggregates that are asked of it."""
        every = range(len(query.parsed_aggregates))
        asked = query.asked or [every] * len(query.windows)
        places: dict[Window, set[int]] = {}
        for window, own in zip(query.windows, asked, strict=True):
            places.setdefault(window, set()).update(own)
        return tuple(
            cls(Node(window, keys_of(query)), names, tuple(sorted(places[window])))
            for window, names in query.names.items()
        )


@dataclass(frozen=True, slots=True)
class PlanNode:
    """One node of a plan, with what it reads and what that costs."""

    name: str
    node: Node
    parent: str | None
    """The name of the node it reads, or `None` for the raw events."""
    shown_as: tuple[str, ...]
    """The window names under which its results are shown; empty for a factor window."""
    cost: Cost

    @property
    def window(self) -> Segmentation:
        """Return the window that the node computes, or, for hidden nodes only, the slices."""
        return self.node.window

    @property
    def exposed(self) -> bool:
        """Say whether the user sees the node's results."""
        return bool(self.shown_as)

    @property
    def label(self) -> str:
        """Return the names under which the node is shown, or, for a hidden one, its own in parentheses."""
        return ", ".join(self.shown_as) if self.exposed else f"({self.name})"

    @property
    def kind(self) -> str:
        """Say whether the user asked for the node, or the optimizer added it."""
        return "window" if self.exposed else "slices" if isinstance(self.window, Slices) else "factor"


@dataclass(frozen=True, slots=True)
class Plan:
    """A way to compute a query that is known to be right: it checks itself when it is made.

    >>> import factor_windows as fw
    >>> query = fw.Query(time="ts", windows=[fw.tumbling("10m"), fw.tumbling("20m")], aggregates=["min(t)"])
    >>> [(node.name, node.parent) for node in fw.optimize(query).nodes]
    [('10 minutes', None), ('20 minutes', '10 minutes')]
    """

    query: Query
    nodes: tuple[PlanNode, ...]
    """The nodes, each after the one it reads."""
    search: str
    cost_model: CostModel
    status: str
    """How good the search's answer is: `optimal`, `heuristic` or `time_limit`."""
    bound: Cost = 0
    """What no plan of those that were looked at can cost less than."""
    asked: tuple[Output, ...] = ()
    """What is shown; by default each of the query's windows, for all its keys and with all its aggregates."""

    @classmethod
    def of_tree(
        cls,
        query: Query,
        tree: Tree,
        *,
        search: str,
        cost_model: CostModel,
        status: str,
        bound: Cost = 0,
        asked: tuple[Output, ...] = (),
    ) -> Plan:
        """Name the nodes of a tree, put them in order and price them."""
        asked = asked or Output.of_query(query)
        shown_as = {each.node: each.names for each in asked}
        names = _node_names(tree, shown_as)
        nodes = []
        for node in _parents_first(tree):
            parent = tree[node]
            nodes.append(
                PlanNode(
                    name=names[node],
                    node=node,
                    parent=None if parent is None else names[parent],
                    shown_as=shown_as.get(node, ()),
                    cost=cost_model.price(node, parent),
                )
            )
        return cls(query, tuple(nodes), search, cost_model, status, bound, asked)

    def __post_init__(self) -> None:
        if not self.asked:
            object.__setattr__(self, "asked", Output.of_query(self.query))
        earlier: dict[str, PlanNode] = {}
        for node in self.nodes:
            if node.name in earlier:
                raise PlanError(f"two nodes are named {node.name!r}; a plan's nodes have names of their own")
            if node.parent is not None:
                _check_edge(node, earlier.get(node.parent), self.query.kind)
            earlier[node.name] = node
        shown = {node.node: node.shown_as for node in self.nodes if node.exposed}
        asked = {each.node: each.names for each in self.asked}
        if shown != asked or len(shown) != sum(node.exposed for node in self.nodes):
            windows = [sorted((node.window.label, names) for node, names in each.items()) for each in (shown, asked)]
            if windows[0] == windows[1] and len(shown) == sum(node.exposed for node in self.nodes):
                raise PlanError("the plan does not compute the query's windows for the query's keys")
            raise PlanError("the plan does not show each of the query's windows exactly once, under its own names")
        read = {node.parent for node in self.nodes}
        for node in self.nodes:
            if not node.exposed and node.name not in read:
                raise PlanError(f"factor window {node.name!r} is read by no one")

    @property
    def cost(self) -> Cost:
        """Return the cost of the whole plan."""
        return sum(node.cost for node in self.nodes)

    @property
    def has_several_keys(self) -> bool:
        """Say whether nodes group by different keys, as those of several queries may."""
        return len({node.node.keys for node in self.nodes}) > 1

    @property
    def naive_cost(self) -> Cost:
        """Return the cost of computing every window from the raw events."""
        return sum(self.cost_model.naive(each.node) for each in self.asked)

    def children(self, name: str | None) -> tuple[PlanNode, ...]:
        """List the nodes that read the named one, or the raw events."""
        return tuple(node for node in self.nodes if node.parent == name)

    def reads(self, node: PlanNode) -> Cost:
        """Count what one instance of a node reads: events, or instances of its parent."""
        above = next((other.window for other in self.nodes if other.name == node.parent), None)
        return self.cost_model.instance_cost(node.window, above)

    def naive(self) -> Plan:
        """Return the plan that computes every window from the raw events."""
        tree = {node.node: None for node in self.nodes if node.exposed}
        return Plan.of_tree(
            self.query, tree, search="none", cost_model=self.cost_model, status="heuristic", asked=self.asked
        )

    def explain(self, *, physical: bool = False, streaming: bool = False, events: DataFrame | None = None) -> str:
        """Draw the tree as text: names, costs, reads, the predicted gain; and how it runs on Spark or on a stream.

        Given the `events`, it shows what `run` would do with them: their types and the session's number of shuffle
        partitions decide too.
        """
        from factor_windows.explain.text import explain, explain_physical, explain_streaming

        parts = [explain(self)]
        parts += [explain_physical(self, events)] if physical or events is not None else []
        parts += [explain_streaming(self)] if streaming else []
        return "\n\n".join(parts)

    def to_html(self, *, measured: Mapping[str, float] | None = None) -> str:
        """Write a page that explains the plan, one file with everything in it; `measured` are the seconds of a run."""
        from factor_windows.explain.page import page

        return page(self, measured=measured)

    def to_mermaid(self) -> str:
        """Draw the plan as a Mermaid flowchart."""
        from factor_windows.explain.diagrams import mermaid

        return mermaid(self)

    def to_dot(self) -> str:
        """Draw the plan as a graph for Graphviz."""
        from factor_windows.explain.diagrams import dot

        return dot(self)

    def _repr_html_(self) -> str:
        """Show the plan in a notebook: what it gains, and its tree as a picture."""
        from factor_windows.explain.picture import figure

        return figure(self)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": self.explain(), "text/html": self._repr_html_()}

    def to_json(self) -> str:
        """Write the plan as JSON, with the query and the costs that it was chosen by; `from_json` reads it."""
        from factor_windows.serialize import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Read what `to_json` wrote, with this version or an earlier one."""
        from factor_windows.serialize import from_json

        return from_json(text)

    def sql(self, *, dialect: str = "spark") -> str:
        """Write the plan as SQL that runs without this library, in the dialect of spark, duckdb or flink."""
        from factor_windows.engines.sql import emit

        return emit(self, dialect=dialect)

    def run(
        self, events: DataFrame, *, mode: str = "append", checkpoint: str | PathLike[str] | None = None
    ) -> DataFrame:
        """Compute the plan over a PySpark DataFrame of events, a batch or a stream.

        For streams, `mode` is the output mode in which the result will be written: append, update or complete. Given
        the `checkpoint` that it will be written with, a plan that does not fit the state there is refused.
        """
        from factor_windows.engines import spark_batch as batch
        from factor_windows.engines import spark_stream as stream
        from factor_windows.spark.messages import check_events

        check_events(events)
        if events.isStreaming:
            return stream.run(self, events, mode=mode, checkpoint=checkpoint)
        return batch.run(self, events)

    def flush(
        self,
        events: DataFrame,
        stopped: StreamingQuery | datetime | None = None,
        *,
        checkpoint: str | PathLike[str] | None = None,
    ) -> DataFrame:
        """Compute the windows that a stream had not closed when it stopped, from all its events read as a batch.

        `stopped` is the streaming query, or the time up to which its windows were closed. A query that was started
        again, and had nothing to do, does not know that time; its `checkpoint` does.
        """
        from factor_windows.engines.spark_stream import flush

        return flush(self, events, stopped, checkpoint=checkpoint)


def _parents_first(tree: Tree) -> Iterator[Node]:
    """Walk the tree depth first, shorter windows before longer ones."""
    children: dict[Node | None, list[Node]] = {}
    for node in sorted(
        tree, key=lambda node: (display_key(node.window), len(node.keys), sorted(node.keys)), reverse=True
    ):
        children.setdefault(tree[node], []).append(node)
    waiting = children.get(None, [])
    while waiting:
        node = waiting.pop()
        yield node
        waiting += children.get(node, [])


def _node_names(tree: Tree, shown_as: Mapping[Node, tuple[str, ...]]) -> dict[Node, str]:
    """Call a shown node by its first name, and a hidden one by its label unless a user's name is in the way."""
    taken = {name for names in shown_as.values() for name in names}
    several_keys = len({node.keys for node in tree}) > 1
    names: dict[Node, str] = {}
    for node in tree:
        shown = shown_as.get(node)
        name = shown[0] if shown else node.label if several_keys else node.window.label
        while not shown and name in taken:
            name += " (factor)"
        taken.add(name)
        names[node] = name
    return names


def _check_edge(child: PlanNode, parent: PlanNode | None, kind: Kind) -> None:
    if parent is None:
        raise PlanError(f"node {child.name!r} reads {child.parent!r}, which does not come before it in the plan")
    if not child.node.can_read(parent.node, kind):
        raise PlanError(f"node {child.name!r} reads {parent.name!r}, which cannot make it up for such functions")
