"""The cheapest plan over raw events, the query's windows, hidden windows and slices, with its quality."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from time import monotonic

from factor_windows.algebra.graph import CoverageGraph, Node, stands_for
from factor_windows.algebra.session import Session
from factor_windows.algebra.slices import Segmentation, Slices, display_key, slices_of
from factor_windows.algebra.window import Window
from factor_windows.cost.model import Cost, CostModel
from factor_windows.functions.table import Kind
from factor_windows.search.cheapest_parents import cheapest_parents
from factor_windows.search.exact import cheapest_tree
from factor_windows.search.factor import best_factors, cheapest_with, total
from factor_windows.search.panes import common_panes, ladders, slicings
from factor_windows.tree import Tree

MOST_WINDOWS = 40
"""The most windows for which the search is exact."""
MOST_EDGES = 20_000
"""The most edges for which the search is exact."""
CANDIDATES_PER_KIND = 30
"""The number of hidden nodes considered per kind if there are more windows than that."""
FEWEST_CANDIDATES = 6
"""The least number considered per kind for each set of keys, if there are many of those too."""
LEAST_SECONDS = 0.05
"""The least time for the integer program, even if everything else took too long."""
ROUNDING = 1e-12
"""The share by which two costs may differ and count as equal."""
ROUNDS = 4
"""The number of times slices are added, the last ones fitted to their readers."""


@dataclass(frozen=True, slots=True)
class Found:
    """A tree and its quality."""

    tree: Tree
    status: str
    bound: Cost


def best(graph: CoverageGraph, cost: CostModel, *, slices: bool = True, seconds: float = 1.0) -> Found:
    """Search all plans that may be worthwhile; never worse than the paper's factor windows."""
    if graph.kind is Kind.HOLISTIC:
        tree: Tree = dict.fromkeys(graph.nodes)
        return Found(tree, "optimal", total(tree, cost))
    return _Search(graph, cost, slices, monotonic() + seconds).found()


class _Search:
    def __init__(self, graph: CoverageGraph, cost: CostModel, slices: bool, deadline: float) -> None:
        self.graph, self.cost, self.deadline = graph, cost, deadline
        self.slices = slices
        self.required = graph.nodes
        self.large = len(graph.nodes) > MOST_WINDOWS
        self.key_sets = _key_sets(graph.nodes)
        self.windows = {
            keys: list(dict.fromkeys(stands_for(node) for node in graph.nodes if node.keys <= keys))
            for keys in self.key_sets
        }
        self.panes = {keys: common_panes(windows) for keys, windows in self.windows.items()}
        self.gaps = {node.window.pane for node in graph.nodes if isinstance(node.window, Session)}
        self.factors = best_factors(graph, cost)
        self.shared = cheapest_parents(graph, cost)
        self.options: dict[Node, dict[Node | None, Cost]] = {}
        self.built: frozenset[Node] = frozenset()
        """The hidden nodes of the best tree so far."""
        self.order: dict[Node, tuple[int | Fraction, int, int]] = {}

    def found(self) -> Found:
        """Solve, fit slices to their readers, solve again; return the paper's own plan if it is cheaper."""
        self._add((*self.required, *self._hidden()))
        found = self._with_slices() if self.slices else self._solved()
        factor = Found(cheapest_with(self.factors, self.graph, self.cost, self.shared), "heuristic", found.bound)
        return min(found, factor, key=self._total)

    def _with_slices(self) -> Found:
        """Solve with slices of useful subsets, then with slices fitted to their readers."""
        plain = {node: parents.copy() for node, parents in self.options.items()}
        # An exact search does not need the best tree without slices, unless it runs out of time.
        found = self._solved() if self.large else None
        more = [
            Node(slicing, keys)
            for keys, windows in self.windows.items()
            # Sessions need no edges: any pieces that are short enough make them up.
            for slicing in slicings([each for each in windows if each not in self.gaps], self.panes[keys])
        ]
        for _ in range(ROUNDS):
            if found and monotonic() > self.deadline:
                found = replace(found, status="time_limit", bound=self._least())
                break
            known = len(self.options)
            self._add(more)
            if found and len(self.options) == known:
                break
            solved = self._solved()
            # A tree that was optimal before the new slices may no longer be.
            found = replace(solved, tree=min(solved, found or solved, key=self._total).tree)
            more = self._fitted(found.tree)
        assert found is not None
        if found.status == "time_limit" and not self.large:
            self.options, self.built = plain, frozenset()
            found = replace(found, tree=min(found, self._solved(), key=self._total).tree)
        return found

    def _total(self, found: Found) -> Cost:
        return self._cost(found.tree)

    def _cost(self, tree: Tree) -> Cost:
        known = self.options
        return sum(
            known[node][parent] if node in known and parent in known[node] else self.cost.price(node, parent)
            for node, parent in tree.items()
        )

    def _hidden(self) -> Iterable[Node]:
        """List hidden nodes that may be worthwhile, fewer of each kind if there are very many windows."""
        most = max(FEWEST_CANDIDATES, CANDIDATES_PER_KIND // len(self.key_sets)) if self.large else None
        for keys, windows in self.windows.items():
            hopping = ladders(windows, self.graph.kind)
            yield from (
                Node(segmentation, keys) for kind in (self.panes[keys], hopping) for segmentation in kind[:most]
            )
        yield from list(self.factors)[:most]

    def _add(self, nodes: Iterable[Node]) -> None:
        """Price every edge from and to these new nodes; omit edges that cost no less than reading the raw events."""
        new = [node for node in dict.fromkeys(nodes) if node not in self.options and self._is_no_root(node)]
        self.options |= {node: {None: self.cost.price(node, None)} for node in new}
        # A node can only read nodes that come before it.
        self.order |= {node: node.topological_key for node in new}
        place = {node: place for place, node in enumerate(sorted(self.options, key=self.order.__getitem__))}
        added, required = set(new), set(self.required)
        hidden = [node for node in self.options if node not in required]
        for child, parents in self.options.items():
            possible: Iterable[Node] = self.options if child in added else new
            if self.large and child in required:
                nearest = self.shared[child]
                possible = (*([nearest] if nearest else []), *hidden) if child in added else new
            last = place[child]
            readable = [each for each in possible if place[each] < last and child.can_read(each, self.graph.kind)]
            prices = zip(readable, self.cost.price_each(child, readable), strict=True)
            parents |= {parent: price for parent, price in prices if price < parents[None]}

    def _is_no_root(self, node: Node) -> bool:
        """Say whether a node is required, or longer than the virtual root, the paper's S<1, 1>."""
        window = node.window
        return node in self.graph.parents or not isinstance(window, Window) or window.length > self.cost.grain

    def _solved(self) -> Found:
        """Solve exactly if there is enough time, and by reverse greedy otherwise."""
        if self.large or sum(map(len, self.options.values())) > MOST_EDGES:
            pruned = self._pruned(self._tree(self.options))
            return Found(pruned, "heuristic" if monotonic() < self.deadline else "time_limit", self._least())
        left = max(LEAST_SECONDS, self.deadline - monotonic())
        solution = cheapest_tree(self.options, self.required, seconds=left, known=self.built)
        if solution is None:
            return Found(self._pruned(self._tree(self.options)), "time_limit", self._least())
        self.deadline += solution.loading
        self.built = solution.built
        tree = self._pruned(self._tree(solution.built))
        if solution.optimal:
            return Found(tree, "optimal", self._cost(tree))
        cheaper = min((tree, self._pruned(self._tree(self.options))), key=self._cost)
        return Found(cheaper, "time_limit", max(solution.bound, self._least()))

    def _pruned(self, tree: Tree) -> Tree:
        """Remove hidden nodes that are not worth their price, most expensive first: reverse greedy."""
        kept = dict(tree)
        waiting = sorted(kept.keys() - set(self.required), key=lambda n: (-self._price(kept, n), display_key(n.window)))
        settled = False
        while not settled:
            settled = True
            for node in waiting:
                readers = [reader for reader, parent in kept.items() if parent == node]
                instead = {reader: self._cheapest(reader, kept.keys() - {node}) for reader in readers}
                loss = sum(self.options[reader][instead[reader]] - self._price(kept, reader) for reader in readers)
                price = self._price(kept, node)
                if loss <= price or (isinstance(loss, float) and loss <= price * (1 + ROUNDING)):
                    del kept[node]
                    kept |= instead
                    settled = False
                if monotonic() > self.deadline:
                    return kept
            waiting = [node for node in waiting if node in kept]
        return kept

    def _price(self, tree: Tree, node: Node) -> Cost:
        return self.options[node][tree[node]]

    def _least(self) -> Cost:
        """Return a lower bound on the cost of any tree: every window from its cheapest possible parent."""
        return sum(min(self.options[node].values()) for node in self.required)

    def _cheapest(self, node: Node, there: Collection[Node]) -> Node | None:
        """Choose the cheapest of the available parents; among equals, the longest."""
        prices = {
            parent: price for parent, price in self.options[node].items() if parent is not None and parent in there
        }
        least = min(prices.values(), default=None)
        if least is None or least > self.options[node][None]:
            return None
        return min((parent for parent, price in prices.items() if price == least), key=_longest_first)

    def _tree(self, built: Collection[Node]) -> Tree:
        """Let every node read its cheapest parent among the built ones, and drop nodes that are not read."""
        there = {*self.required, *built}
        tree = {node: self._cheapest(node, there) for node in self.options if node in there}
        required = set(self.required)
        while unread := tree.keys() - required - set(tree.values()):
            tree = {node: parent for node, parent in tree.items() if node not in unread}
        return tree

    def _fitted(self, tree: Tree) -> list[Node]:
        """Rebuild slices from only the edges that their readers need."""
        readers: dict[Node, list[Segmentation]] = {}
        for node, parent in tree.items():
            if parent is not None and isinstance(parent.window, Slices):
                readers.setdefault(parent, []).append(node.window)
        return [Node(slices_of(found), slices.keys) for slices, found in readers.items()]


def _key_sets(nodes: Iterable[Node]) -> tuple[frozenset[str], ...]:
    """List the keys that hidden nodes may have: those of the required windows, and all of them together."""
    own = sorted({node.keys for node in nodes}, key=lambda keys: (-len(keys), sorted(keys)))
    return tuple(dict.fromkeys((frozenset[str]().union(*own), *own)))


def _longest_first(node: Node) -> tuple[int, ...]:
    return (*(-part for part in display_key(node.window)), len(node.keys))
