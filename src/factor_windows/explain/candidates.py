"""Which factor windows the search `factor` looks at, and which it likes best, place by place."""

from __future__ import annotations

from dataclasses import dataclass

from factor_windows.algebra.graph import CoverageGraph, stands_for
from factor_windows.algebra.window import Window
from factor_windows.functions.table import Kind
from factor_windows.search.covering_factor import best_covering_factor, covering_candidates
from factor_windows.search.factor import places
from factor_windows.search.partitioning_factor import best_partitioning_factor, partitioning_candidates
from factor_windows.tree import Pass


@dataclass(frozen=True, slots=True)
class Considered:
    """One place for a factor window, the candidates that fit there, and the best if it is worth adding."""

    above: Window | None
    below: tuple[Window, ...]
    candidates: tuple[Window, ...]
    best: Window | None

    def __str__(self) -> str:
        above = self.above.name if self.above else "raw events"
        below = ", ".join(window.name for window in self.below)
        candidates = ", ".join(window.label for window in self.candidates) or "none"
        best = f"; best {self.best.label}" if self.best else ""
        return f"between {above} and {below}: {candidates}{best}"


def considered(plan: Pass) -> tuple[Considered, ...]:
    """List the places for a factor window in a plan's query, with their candidates before pruning."""
    graph = CoverageGraph.of_query(plan.query)
    taken = {stands_for(node) for node in graph.nodes}
    found = []
    for place, _ in places(graph, plan.cost_model):
        if graph.kind is Kind.OVERLAP_SAFE:
            candidates = tuple(covering_candidates(place, taken))
            best = best_covering_factor(place, taken)
        else:
            candidates = tuple(window for window in partitioning_candidates(place) if window not in taken)
            best = best_partitioning_factor(place, taken)
        found.append(Considered(place.above, tuple(place.below), candidates, best))
    return tuple(found)
