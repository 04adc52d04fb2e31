"""The window coverage graph: which node can be computed from which (Paper: sections II-C and IV-A)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from factor_windows.algebra.calendar import AnyWindow
from factor_windows.algebra.clock import Clock
from factor_windows.algebra.coverage import covers, partitions, tiles
from factor_windows.algebra.growing import Growing
from factor_windows.algebra.session import Session
from factor_windows.algebra.slices import Segmentation, Slices, display_key, is_partition, refines, topological_key
from factor_windows.algebra.window import Window
from factor_windows.functions.expression import determinants
from factor_windows.functions.table import Kind

if TYPE_CHECKING:
    from factor_windows.query import Query

RELATIONS: Mapping[Kind, Callable[[Window, Window], bool]] = {Kind.OVERLAP_SAFE: covers, Kind.MERGEABLE: partitions}
"""The relation required for the paper's edges; holistic functions have none and read raw events only."""


@dataclass(frozen=True, slots=True)
class Node:
    """What a plan computes once: a window for a set of keys. Functions and filters are states that it carries."""

    window: Segmentation
    keys: frozenset[str] = frozenset()
    _hash: int = field(init=False, repr=False, compare=False)
    """Stored, because searches look nodes up thousands of times."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.window, self.keys)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Node], tuple[Segmentation, frozenset[str]]]:
        # Hashes of strings differ between processes.
        return Node, (self.window, self.keys)

    @property
    def label(self) -> str:
        """Name the node by what it computes.

        >>> from factor_windows.algebra.window import tumbling
        >>> Node(tumbling("1 hour"), frozenset({"site", "device"})).label
        '1 hour by device, site'
        """
        keys = sorted(determinants(self.keys))
        return f"{self.window.label} by {', '.join(keys)}" if keys else self.window.label

    @property
    def topological_key(self) -> tuple[int | Fraction, int, int]:
        """Return a key that is smaller for every node that this one can read; no two nodes can read each other."""
        return (*topological_key(self.window), -len(self.keys))

    def can_read(self, parent: Node, kind: Kind) -> bool:
        """Say whether this node can be computed from another, by any relation, for functions of this kind.

        >>> from factor_windows.algebra.window import tumbling
        >>> site_hours = Node(tumbling("1 hour"), frozenset({"site"}))
        >>> site_hours.can_read(Node(tumbling("10 minutes"), frozenset({"site", "device"})), Kind.MERGEABLE)
        True
        """
        if isinstance(self.window, Session) and self.keys != parent.keys:
            # Instances of several keys overlap in time, and sessions are found in pieces that follow each other.
            return False
        return self.keys <= parent.keys and can_make(parent.window, self.window, kind)


def window_of(node: Node) -> Window:
    """Return the window of a node of the paper's graph, which has no slices and no growing windows."""
    assert isinstance(node.window, Window)
    return node.window


def stands_for(node: Node) -> Window:
    """Return the window to plan for instead of a shown node: itself, a growing window's step, or a session's pane."""
    window = shown_window(node)
    if isinstance(window, Session):
        return window.pane
    return window.step if isinstance(window, Growing) else window


def shown_window(node: Node) -> AnyWindow:
    """Return the window of a shown node, which is never slices."""
    assert not isinstance(node.window, Slices)
    return node.window


def can_make(parent: Segmentation, child: Segmentation, kind: Kind) -> bool:
    """Say whether instances of `parent` make up every instance of `child`, for functions of this kind.

    >>> from factor_windows.algebra.window import hopping
    >>> minutes = [hopping(f"{length} minutes", "1 minute") for length in (8, 10)]
    >>> can_make(*minutes, Kind.OVERLAP_SAFE), can_make(*minutes, Kind.MERGEABLE)
    (True, False)
    """
    if kind is Kind.HOLISTIC:
        return False
    if isinstance(child, Session):
        shorter = isinstance(parent, Session) and parent.gap < child.gap
        return shorter or (is_partition(parent) and parent.longest <= child.gap)
    if is_partition(parent):
        return refines(parent, child)
    if not isinstance(parent, Window) or not isinstance(child, Window) or parent.skips:
        # An instance that would start on a skipped day does not exist, so it cannot be read.
        return False
    return tiles(parent, child) or (kind is Kind.OVERLAP_SAFE and covers(parent, child))


def keys_of(query: Query) -> frozenset[str]:
    """Return a query's keys as nodes identify them: by their expressions, not by their names."""
    return frozenset(key.sql for key in query.parsed_keys)


@dataclass(frozen=True, slots=True)
class CoverageGraph:
    """Nodes with every valid edge between them; `None` is the virtual root, the raw events.

    >>> from factor_windows.algebra.window import tumbling
    >>> ten, twenty, thirty = (Node(tumbling(f"{n} minutes")) for n in (10, 20, 30))
    >>> graph = CoverageGraph.of((ten, twenty, thirty), Kind.MERGEABLE)
    >>> graph.children[ten] == (twenty, thirty), graph.children[None] == (ten,)
    (True, True)
    """

    kind: Kind
    parents: Mapping[Node, tuple[Node, ...]]
    """The nodes that each node can read."""
    children: Mapping[Node | None, tuple[Node, ...]]
    """The nodes that can read each node; the virtual root's are those that can read no other (Paper: section IV-A)."""

    @classmethod
    def of(cls, nodes: Iterable[Node], kind: Kind) -> CoverageGraph:
        """Build the graph with every edge that is valid for functions of this kind."""
        distinct = tuple(dict.fromkeys(nodes))
        parents = _parents(distinct, kind)
        children: dict[Node | None, list[Node]] = {None: [], **{node: [] for node in distinct}}
        for child in distinct:
            for parent in parents[child] or (None,):
                children[parent].append(child)
        return cls(kind, parents, {parent: tuple(found) for parent, found in children.items()})

    @classmethod
    def of_query(cls, query: Query) -> CoverageGraph:
        """Build the graph of a query's own windows, in an order that does not depend on the query's."""
        return cls.of_nodes((Node(window, keys_of(query)) for window in query.names), query.kind)

    @classmethod
    def of_nodes(cls, nodes: Iterable[Node], kind: Kind) -> CoverageGraph:
        """Build the graph of some nodes, in an order that does not depend on theirs."""

        def place(node: Node) -> tuple[tuple[int, ...], str, list[str]]:
            return display_key(node.window), node.window.label, sorted(node.keys)

        return cls.of(sorted(nodes, key=place), kind)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """List the nodes, without the virtual root."""
        return tuple(self.parents)

    def parents_with(self, factors: Iterable[Node]) -> dict[Node, tuple[Node, ...]]:
        """Return the nodes that each node can read if factor windows are added."""
        return _parents(tuple(dict.fromkeys((*self.nodes, *factors))), self.kind)


def _parents(nodes: tuple[Node, ...], kind: Kind) -> dict[Node, tuple[Node, ...]]:
    """Find each node's parents: those on its own clock by Theorem 1, others by their edges."""
    by_clock: dict[Clock | None, list[Node]] = {}
    for node in nodes:
        if isinstance(node.window, Window):
            by_clock.setdefault(node.window.clock, []).append(node)
    near = {clock: _by_slide(own, kind) for clock, own in by_clock.items()}
    same: dict[Segmentation, list[Node]] = {}
    for node in nodes if kind in RELATIONS else ():
        same.setdefault(node.window, []).append(node)
    tumbling = {clock: [node for node in own if is_partition(node.window)] for clock, own in by_clock.items()}
    parents: dict[Node, tuple[Node, ...]] = {}
    for child in nodes:
        clock = child.window.clock if isinstance(child.window, Window) else _NO_CLOCK
        found = _near_parents(child, near[clock]) if clock in near else []
        if isinstance(child.window, Window) and not child.window.skips:
            found += (node for node in same.get(child.window, ()) if child.keys < node.keys)
        others = [node for other, several in tumbling.items() if other != clock for node in several]
        if isinstance(child.window, Session):
            others += [node for node in nodes if isinstance(node.window, Session)]
        parents[child] = (*found, *(node for node in others if child.can_read(node, kind)))
    return parents


_NO_CLOCK = Clock("", "day")
"""Stands for no clock: a growing window reads by its edges only."""
_BySlide = dict[int, dict[tuple[int, int], dict[frozenset[str], list[Node]]]]


def _by_slide(nodes: Iterable[Node], kind: Kind) -> _BySlide:
    """Index the nodes of one clock that others may read, so that not all pairs are tested: 1,000 windows have many.

    The index is by slide, then by residues, then by keys, then by range.
    """
    found: _BySlide = {}
    for node in sorted(nodes, key=lambda node: (sorted(node.keys), window_of(node).range)):
        window = window_of(node)
        if kind in RELATIONS and (kind is Kind.OVERLAP_SAFE or window.is_tumbling) and not window.skips:
            alike = found.setdefault(window.slide, {}).setdefault((window.range % window.slide, window.offset), {})
            alike.setdefault(node.keys, []).append(node)
    return found


def _near_parents(child: Node, by_slide: _BySlide) -> list[Node]:
    """Find a node's parents on its own clock: the shorter ones with matching slides and residues (Theorem 1)."""
    window = window_of(child)
    found: list[Node] = []
    for slide, by_residues in by_slide.items():
        if window.slide % slide == 0:
            for keys, alike in by_residues.get((window.range % slide, window.offset % slide), {}).items():
                if child.keys <= keys:
                    found += alike[: bisect_left(alike, window.range, key=lambda node: window_of(node).range)]
    return found
