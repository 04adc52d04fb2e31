"""The cheapest tree over given nodes, as an integer program: for cases dual ascent leaves open (search/exact.py)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from factor_windows.algebra.graph import Node
from factor_windows.cost.model import share
from factor_windows.search.exact import SCALE, Options, Solution, unscaled, worthwhile


def solve(options: Options, required: Sequence[Node], *, seconds: float) -> Solution | None:
    """Choose hidden nodes that minimize the cost of all required ones; `None` if time ends before any are found."""
    always: set[Node | None] = {None, *required}
    hidden = [node for node in options if node not in always]
    place = {node: number for number, node in enumerate(hidden)}
    edges = [(child, parent) for child, parents in options.items() for parent in worthwhile(parents, always)]
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
    bound = unscaled(float(found.mip_dual_bound or 0.0), naive)
    if found.x is None:
        return Solution(frozenset(), bound, optimal=False) if found.mip_dual_bound else None
    built = frozenset(node for node, number in place.items() if found.x[number] > 0.5)
    return Solution(built, bound, optimal=found.status == 0)
