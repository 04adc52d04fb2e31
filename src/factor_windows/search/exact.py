"""The cheapest tree over given nodes, as an integer program.

Choosing hidden nodes and parents is a Steiner arborescence in a graph without cycles, or, since a node's price depends
on its parent alone, the problem of where to build facilities: a node may be read only if it is built.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from factor_windows.algebra.graph import Node
from factor_windows.cost.model import Cost, share

SCALE = 1e4
"""What reading everything from the raw events costs in the program, whose solver wants numbers of a middling size."""
Options = Mapping[Node, Mapping[Node | None, Cost]]
"""For each node the parents it may read, `None` for the raw events, and what that costs."""


@dataclass(frozen=True, slots=True)
class Solution:
    """The hidden nodes to build, and what is known about how good that is."""

    built: frozenset[Node]
    bound: Cost
    optimal: bool


def load_solver() -> None:
    """Load what solves the program, which takes a second once, so that no search's time limit pays for it."""
    import scipy.optimize  # noqa: F401


def cheapest_tree(options: Options, required: Sequence[Node], *, seconds: float) -> Solution | None:
    """Choose hidden nodes so that all required ones together cost least; `None` if time ends before any is found."""
    import numpy as np
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    always: set[Node | None] = {None, *required}
    hidden = [node for node in options if node not in always]
    place = {node: number for number, node in enumerate(hidden)}
    edges = [(child, parent) for child, parents in options.items() for parent in _worthwhile(parents, always)]
    naive = sum(options[node][None] for node in required)
    prices = [SCALE * share(options[child][parent], naive) for child, parent in edges]
    rows: list[int] = []
    columns: list[int] = []
    values: list[int] = []

    def entry(row: int, column: int, value: int) -> None:
        rows.append(row)
        columns.append(column)
        values.append(value)

    children = {node: number for number, node in enumerate(options)}
    low = [1.0 if node in always else 0.0 for node in options]
    high = low.copy()
    for node, number in place.items():
        entry(children[node], number, -1)
    for number, (child, parent) in enumerate(edges, start=len(hidden)):
        entry(children[child], number, 1)
        if parent in place:
            entry(len(low), number, 1)
            entry(len(low), place[parent], -1)
            low.append(-np.inf)
            high.append(0.0)
    matrix = csr_array((values, (rows, columns)), shape=(len(low), len(hidden) + len(edges)))
    found = milp(
        c=np.concatenate([np.zeros(len(hidden)), prices]),
        constraints=LinearConstraint(matrix, low, high),
        bounds=Bounds(0, 1),
        integrality=np.concatenate([np.ones(len(hidden)), np.zeros(len(edges))]),
        options={"time_limit": seconds, "mip_rel_gap": 0},
    )
    bound = _part(float(found.mip_dual_bound or 0.0) / SCALE, naive)
    if found.x is None:
        return Solution(frozenset(), bound, optimal=False) if found.mip_dual_bound else None
    built = frozenset(node for node, number in place.items() if found.x[number] > 0.5)
    return Solution(built, bound, optimal=found.status == 0)


def _part(share: float, whole: Cost) -> Cost:
    return share * whole if isinstance(whole, float) else Fraction(share) * Fraction(whole)


def _worthwhile(parents: Mapping[Node | None, Cost], always: set[Node | None]) -> list[Node | None]:
    """Leave the cheapest parent that is there anyway, and hidden ones that are cheaper."""
    there = min((parent for parent in parents if parent in always), key=lambda parent: parents[parent])
    return [there, *(parent for parent in parents if parent not in always and parents[parent] < parents[there])]
