"""Add hidden factor windows, then share. Paper: Algorithm 3."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from factor_windows.algebra.clock import Clock
from factor_windows.algebra.graph import CoverageGraph, Node, stands_for, window_of
from factor_windows.algebra.session import Session
from factor_windows.algebra.window import Window
from factor_windows.cost.model import Cost, CostModel
from factor_windows.functions.table import Kind
from factor_windows.search.benefit import Place
from factor_windows.search.cheapest_parents import cheapest_parent, cheapest_parents
from factor_windows.search.covering_factor import best_covering_factor
from factor_windows.search.partitioning_factor import best_partitioning_factor
from factor_windows.tree import Tree


def with_factor_windows(graph: CoverageGraph, cost: CostModel) -> Tree:
    """Add the best factor window below every window and below the raw events, and keep those that pay."""
    return cheapest_with(best_factors(graph, cost), graph, cost, cheapest_parents(graph, cost))


def best_factors(graph: CoverageGraph, cost: CostModel) -> dict[Node, None]:
    """Find the best factor window for every place, without repeats."""
    find = best_covering_factor if graph.kind is Kind.OVERLAP_SAFE else best_partitioning_factor
    taken = {stands_for(node) for node in graph.nodes if not isinstance(node.window, Session)}
    found = ((find(place, taken), keys) for place, keys in places(graph, cost))
    return {Node(window, keys): None for window, keys in found if window is not None}


def cheapest_with(factors: Collection[Node], graph: CoverageGraph, cost: CostModel, shared: Tree) -> Tree:
    """Let every node read its cheapest parent, including factor windows that pay; `shared` is the tree without them.

    Of the query's own windows only the cheapest parent can be cheaper than the factor windows.
    """
    if not factors:
        return shared
    parents = {
        node: tuple(each for each in found if node not in shared or each in factors or each == shared[node])
        for node, found in graph.parents_with(factors).items()
    }
    cheapest = {node: cheapest_parent(node, found, cost) for node, found in parents.items()}
    tree = _without_losers(cheapest, factors, parents, cost)
    return tree if total(tree, cost) < total(shared, cost) else shared


def places(graph: CoverageGraph, cost: CostModel) -> Iterator[tuple[Place, frozenset[str]]]:
    """List the places for a factor window, each with the keys it must carry."""
    windows_of = {node: stands_for(node) for node in graph.nodes}
    for above, below in graph.children.items():
        if above is not None and isinstance(above.window, Session):
            continue
        by_clock: dict[Clock | None, tuple[list[Window], set[frozenset[str]]]] = {}
        for node in below:
            window = windows_of[node]
            windows, keys = by_clock.setdefault(window.clock, ([], set()))
            windows.append(window)
            keys.add(node.keys)
        for clock, (windows, keys) in by_clock.items():
            if above is None or window_of(above).clock == clock:
                yield Place(window_of(above) if above else None, windows, cost), frozenset[str]().union(*keys)


def total(tree: Tree, cost: CostModel) -> Cost:
    """Sum the costs of all nodes of a tree."""
    return sum(cost.price(node, parent) for node, parent in tree.items())


def _without_losers(
    tree: Tree, factors: Collection[Node], parents: Mapping[Node, tuple[Node, ...]], cost: CostModel
) -> Tree:
    """Drop the factor windows without which the tree costs no more, until every remaining one is worth its cost.

    The paper computes each benefit as if the windows below had no better parent, which may overestimate it.
    """
    kept = dict(tree)
    settled = False
    while not settled:
        settled = True
        for factor in [node for node in kept if node in factors]:
            readers = [node for node, parent in kept.items() if parent is factor]
            instead = {
                node: cheapest_parent(node, tuple(p for p in parents[node] if p in kept and p is not factor), cost)
                for node in readers
            }
            loss = sum(cost.price(node, parent) - cost.price(node, factor) for node, parent in instead.items())
            if loss <= cost.price(factor, kept[factor]):
                del kept[factor]
                kept |= instead
                settled = False
    return kept
