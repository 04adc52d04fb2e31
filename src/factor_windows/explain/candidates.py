"""The factor windows that the search `factor` considers in each place, their costs, and the best one."""

from __future__ import annotations

from dataclasses import dataclass

from factor_windows.algebra.graph import CoverageGraph, stands_for
from factor_windows.algebra.session import Session
from factor_windows.algebra.window import Window
from factor_windows.cost.model import Cost
from factor_windows.explain.text import number
from factor_windows.functions.table import Kind
from factor_windows.search.benefit import Place
from factor_windows.search.covering_factor import best_covering_factor, covering_candidates
from factor_windows.search.factor import places
from factor_windows.search.partitioning_factor import best_partitioning_factor, partitioning_candidates
from factor_windows.tree import Pass

LISTED = 10
"""The number of candidates shown per place: there can be hundreds."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A factor window that fits in a place."""

    window: Window
    cost: Cost
    saves: Cost
    """The cost that the place saves with it, after its own cost; negative if it costs more."""


@dataclass(frozen=True, slots=True)
class Considered:
    """A place for a factor window, the candidates that fit there, best first, and the best if it is worth adding."""

    above: Window | None
    below: tuple[Window, ...]
    candidates: tuple[Candidate, ...]
    best: Window | None

    def __str__(self) -> str:
        above = self.above.name if self.above else "raw events"
        title = f"between {above} and {', '.join(window.name for window in self.below)}: "
        if not self.candidates:
            return f"{title}none fits"
        shown = self.candidates[:LISTED]
        width = max(len(each.window.label) for each in shown)
        more = len(self.candidates) - len(shown)
        return "\n".join(
            [
                title + (f"{self.best.label} is best" if self.best else "none is worth adding"),
                *(
                    f"  {each.window.label:<{width}}  cost {number(each.cost)}, "
                    + (f"saves {number(each.saves)}" if each.saves >= 0 else f"loses {number(-each.saves)}")
                    for each in shown
                ),
                *([f"  and {more} more"] if more else []),
            ]
        )


def considered(plan: Pass) -> tuple[Considered, ...]:
    """List the places for a factor window in a plan's query, with their candidates before pruning."""
    graph = CoverageGraph.of_query(plan.query)
    taken = {stands_for(node) for node in graph.nodes if not isinstance(node.window, Session)}
    found = []
    for place, _ in places(graph, plan.cost_model):
        if graph.kind is Kind.OVERLAP_SAFE:
            windows = tuple(covering_candidates(place, taken))
            best = best_covering_factor(place, taken)
        else:
            windows = tuple(window for window in partitioning_candidates(place) if window not in taken)
            best = best_partitioning_factor(place, taken)
        found.append(Considered(place.above, tuple(place.below), _ranked(place, windows), best))
    return tuple(found)


def _ranked(place: Place, windows: tuple[Window, ...]) -> tuple[Candidate, ...]:
    """Price candidates, and sort them by what they save, most first."""
    priced = (Candidate(each, place.cost.of(each, place.above), place.benefit(each)) for each in windows)
    return tuple(sorted(priced, key=lambda each: each.saves, reverse=True))
