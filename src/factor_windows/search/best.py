"""The best plan that is found quickly: the paper's factor windows, and a pane of its own for each hopping window."""

from __future__ import annotations

from math import gcd

from factor_windows.cost import CostModel
from factor_windows.functions import Kind
from factor_windows.graph import CoverageGraph, Node
from factor_windows.plan import Tree
from factor_windows.search.factor import best_factors, cheapest_with, total
from factor_windows.window import Window


def with_panes(graph: CoverageGraph, cost: CostModel) -> Tree:
    """Add factor windows and panes, and keep those that pay.

    A hopping window reads each part of its range as often as its instances overlap. A tumbling window of the greatest
    common divisor of its range and slide, read between, makes the part once. The paper looks for factor windows that
    serve all windows below a place, and so never tries one for a single window of many.
    """
    if graph.kind is Kind.HOLISTIC:
        return dict.fromkeys(graph.nodes)
    panes = {Node(own_pane(node.window), node.keys): None for node in graph.nodes if not node.window.is_tumbling}
    taken = set(graph.nodes)
    factors = best_factors(graph, cost)
    without = cheapest_with(factors, graph, cost)
    within = cheapest_with(factors | {pane: None for pane in panes if pane not in taken}, graph, cost)
    return within if total(within, cost) < total(without, cost) else without


def own_pane(window: Window) -> Window:
    """Return the longest tumbling window that partitions a window.

    >>> own_pane(Window(range=60, slide=25, offset=7)).label
    '5 microseconds @ 2 microseconds'
    """
    length = gcd(window.range, window.slide)
    return Window(range=length, slide=length, offset=window.offset)
