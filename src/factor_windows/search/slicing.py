"""Cut time at every start and end of every window, and read all windows from these slices.

This is window slicing as in Scotty, as a plan. Paper: section V-F compares with it. It chooses nothing.
"""

from __future__ import annotations

from factor_windows.algebra.graph import CoverageGraph, Node
from factor_windows.algebra.slices import slices_of
from factor_windows.cost.model import CostModel
from factor_windows.functions.table import Kind
from factor_windows.search.none import read_raw
from factor_windows.tree import Tree


def flat_slices(graph: CoverageGraph, cost: CostModel) -> Tree:
    """Let every window read the common slices; a window that is these slices itself reads the raw events."""
    if graph.kind is Kind.HOLISTIC:
        return read_raw(graph, cost)
    keys = frozenset[str]().union(*(node.keys for node in graph.nodes))
    slices = Node(slices_of(node.window for node in graph.nodes), keys)
    return {slices: None} | {node: slices for node in graph.nodes if node != slices}
