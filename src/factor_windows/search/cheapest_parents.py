"""Share among the query's own windows. Paper: Algorithm 1, which is optimal if no windows may be added."""

from __future__ import annotations

from functools import lru_cache

from factor_windows.algebra.graph import CoverageGraph, Node
from factor_windows.algebra.slices import display_key
from factor_windows.cost.model import CostModel
from factor_windows.tree import Tree


def cheapest_parents(graph: CoverageGraph, cost: CostModel) -> Tree:
    """Let every node read its cheapest parent: the paper's min-cost graph."""
    return {node: cheapest_parent(node, graph.parents[node], cost) for node in graph.nodes}


def cheapest_parent(node: Node, parents: tuple[Node, ...], cost: CostModel) -> Node | None:
    """Choose one parent: the raw events only if they are cheaper than any other; among equals, the longest."""
    if not parents:
        return None
    prices = cost.price_each(node, parents)
    least = min(prices)
    if least > cost.price(node, None):
        return None
    return min((parent for parent, price in zip(parents, prices, strict=True) if price == least), key=longest_first)


@lru_cache(maxsize=4096)
def longest_first(node: Node) -> tuple[int, ...]:
    """Return a sort key that is smallest for the longest of several nodes."""
    length, distance, *offset = display_key(node.window)
    return (-length, -distance, *offset, len(node.keys))
