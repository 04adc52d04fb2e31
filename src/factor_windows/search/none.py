"""No search: every window reads the raw events, as engines do today."""

from __future__ import annotations

from factor_windows.algebra.graph import CoverageGraph
from factor_windows.cost.model import CostModel
from factor_windows.tree import Tree


def read_raw(graph: CoverageGraph, cost: CostModel) -> Tree:
    """Let every node read the raw events."""
    return dict.fromkeys(graph.nodes)
