"""One pass over the events: a tree in which every window reads the raw events or one node that covers it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from factor_windows.algebra.graph import Node, keys_of
from factor_windows.algebra.slices import Segmentation, Slices, display_key
from factor_windows.cost.model import Cost, CostModel
from factor_windows.errors import PlanError
from factor_windows.functions.table import Kind
from factor_windows.query import Query
from factor_windows.request import Search
from factor_windows.workload import Member, Output, Workload

Tree = Mapping[Node, Node | None]
"""Each node's parent, `None` for the raw events: the result of a search."""


@dataclass(frozen=True, slots=True)
class PlanNode:
    """One node of a plan, with the node it reads and its cost."""

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
        """Return the names under which the node is shown, or a hidden node's own name in parentheses."""
        return ", ".join(self.shown_as) if self.exposed else f"({self.name})"

    @property
    def kind(self) -> str:
        """Return `window` for a node that the user asked for, `slices` or `factor` for one that the optimizer added."""
        return "window" if self.exposed else "slices" if isinstance(self.window, Slices) else "factor"


@dataclass(frozen=True, slots=True)
class Pass:
    """A way to compute a workload in one pass; it checks that it is correct when it is made."""

    workload: Workload
    nodes: tuple[PlanNode, ...]
    """The nodes, each after the one it reads."""
    search: Search
    cost_model: CostModel
    status: str
    """How good the search's answer is: `optimal`, `heuristic` or `time_limit`."""
    bound: Cost = 0
    """A lower bound: no plan in the search space costs less."""

    @classmethod
    def of_tree(
        cls, workload: Workload, tree: Tree, *, search: Search, cost_model: CostModel, status: str, bound: Cost = 0
    ) -> Pass:
        """Name the nodes of a tree, order them and price them."""
        shown_as = {each.node: each.names for each in workload.outputs}
        names = _node_names(tree, shown_as)
        nodes = []
        for node in _parents_first(tree):
            parent = tree[node]
            above = None if parent is None else names[parent]
            nodes.append(PlanNode(names[node], node, above, shown_as.get(node, ()), cost_model.price(node, parent)))
        return cls(workload, tuple(nodes), search, cost_model, status, bound)

    def __post_init__(self) -> None:
        earlier: dict[str, PlanNode] = {}
        for node in self.nodes:
            if node.name in earlier:
                raise PlanError(f"two nodes are named {node.name!r}; a plan's nodes have names of their own")
            if node.parent is not None:
                _check_edge(node, earlier.get(node.parent), self.query.kind)
            earlier[node.name] = node
        shown = {node.node: node.shown_as for node in self.nodes if node.exposed}
        asked = {each.node: each.names for each in self.outputs}
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
    def query(self) -> Query:
        """Return the merged query of the workload."""
        return self.workload.query

    @property
    def outputs(self) -> tuple[Output, ...]:
        """List the outputs of the workload."""
        return self.workload.outputs

    @property
    def cost(self) -> Cost:
        """Return the cost of all nodes."""
        return sum(node.cost for node in self.nodes)

    @property
    def naive_cost(self) -> Cost:
        """Return the cost of computing every output from the raw events."""
        return sum(self.cost_model.naive(each.node) for each in self.outputs)

    @property
    def places(self) -> dict[str, int]:
        """Map each node's name to its position."""
        return {node.name: place for place, node in enumerate(self.nodes)}

    @property
    def longest(self) -> int:
        """Return a length in microseconds that no instance of a node exceeds."""
        return max(node.window.longest for node in self.nodes)

    def needs(self, columns: Sequence[Collection[str]]) -> list[set[str]]:
        """List for each node the columns that it needs, for its own results or for the nodes that read it.

        `columns` gives, for each of the query's aggregates, the columns that it is made from.
        """
        number = self.places
        asked = {each.node: each.aggregates for each in self.outputs}
        found = [{name for place in asked.get(node.node, ()) for name in columns[place]} for node in self.nodes]
        for node in reversed(self.nodes):
            if node.parent is not None:
                found[number[node.parent]] |= found[number[node.name]]
        return found

    @property
    def has_several_keys(self) -> bool:
        """Say whether nodes group by different keys, as those of several queries may."""
        return len({node.node.keys for node in self.nodes}) > 1

    @property
    def readers(self) -> dict[str, tuple[str, ...]]:
        """Map each node to the queries that need it, directly or through the nodes that read it."""
        own: dict[str, set[str]] = {node.name: set() for node in self.nodes}
        names = {node.node: node.name for node in self.nodes}
        for member in self.workload.members:
            for node in member.nodes.values():
                own[names[node]].add(member.name)
        for each in reversed(self.nodes):
            if each.parent is not None:
                own[each.parent] |= own[each.name]
        every = [member.name for member in self.workload.members]
        return {name: tuple(filter(found.__contains__, every)) for name, found in own.items()}

    def children(self, name: str | None) -> tuple[PlanNode, ...]:
        """List the nodes that read the named node, or the raw events."""
        return tuple(node for node in self.nodes if node.parent == name)

    def reads(self, node: PlanNode) -> Cost:
        """Count what one instance of a node reads: events, or instances of its parent."""
        above = next((other.window for other in self.nodes if other.name == node.parent), None)
        return self.cost_model.instance_cost(node.window, above)

    def naive(self) -> Pass:
        """Return the pass that computes every output from the raw events instead."""
        tree = {node.node: None for node in self.nodes if node.exposed}
        return Pass.of_tree(self.workload, tree, search="none", cost_model=self.cost_model, status="heuristic")

    def with_query(self, query: Query) -> Pass:
        """Return the pass with the same nodes, for a query that uses them differently."""
        return replace(self, workload=replace(self.workload, query=query))

    def for_member(self, member: Member) -> Pass:
        """Keep the nodes that one query needs, over its own events and by its own keys only."""
        nodes = {node.name: node for node in self.nodes}
        names = {node.node: node.name for node in self.nodes}
        keys = keys_of(member.query)
        tree: dict[Node, Node | None] = {}
        for shown in member.nodes.values():
            node: PlanNode | None = nodes[names[shown]]
            while node is not None and (own := Node(node.window, keys)) not in tree:
                above = nodes.get(node.parent or "")
                # The same window with more keys becomes the same node with these keys.
                while above is not None and above.window == node.window:
                    above = nodes.get(above.parent or "")
                tree[own] = None if above is None else Node(above.window, keys)
                node = above
        workload = Workload.of_query(member.query)
        return Pass.of_tree(workload, tree, search=self.search, cost_model=self.cost_model, status="heuristic")


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
    """Name a shown node by its first name, and a hidden one by its label, with a suffix if a user took that name."""
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
