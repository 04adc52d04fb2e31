"""Which panes a store keeps: the finest always, and coarser ones if they pay for themselves."""

from __future__ import annotations

from collections.abc import Sequence

from factor_windows.algebra.graph import Node
from factor_windows.algebra.slices import Segmentation, mean_length, refines, slices_of
from factor_windows.search.plan_panes import coarsest_panes, every_key
from factor_windows.store.manifest import Resolution
from factor_windows.tree import Pass

MOST_COARSER = 3
"""The most kinds of coarser panes to keep."""
PANES_PER_CHUNK = 1_024
"""The number of panes of each key in a stretch of time, by which files are split."""


def choose_resolutions(each: Pass, finest: Sequence[Segmentation] = ()) -> tuple[Resolution, ...]:
    """Choose panes for the windows of a pass; `finest` are panes that other windows may need later.

    Coarser ones are kept if they save more, when all windows are read, than it costs to make them.

    >>> import factor_windows as fw
    >>> windows = [fw.tumbling("1 hour"), *(fw.hopping(f"{days} days", "1 day") for days in (7, 30, 90))]
    >>> query = fw.Query(time="ts", windows=windows, aggregates=["avg(t)"])
    >>> [each.panes.label for each in choose_resolutions(fw.optimize(query).passes[0])]
    ['1 hour', '1 day']
    """
    first = coarsest_panes(each, finest=finest)
    keys = every_key(each)
    kind, price = each.query.kind, each.cost_model.price
    shown = [output.node for output in each.outputs]
    own = dict.fromkeys(slices_of([node.window]) for node in shown)
    candidates = [pane for pane in own if pane != first and refines(first, pane)]
    chosen = [first]

    def reading(panes: Sequence[Segmentation]) -> float:
        sources = [Node(pane, keys) for pane in panes]
        return sum(
            min(float(price(node, source)) for source in sources if node != source and node.can_read(source, kind))
            for node in shown
            if node not in sources
        )

    while candidates and len(chosen) <= MOST_COARSER:
        before = reading(chosen)
        gains = {
            pane: before - reading([*chosen, pane]) - float(price(Node(pane, keys), Node(first, keys)))
            for pane in candidates
        }
        best = max(gains, key=lambda pane: gains[pane])
        if gains[best] <= 0:
            break
        chosen.append(best)
        candidates.remove(best)
    return tuple(Resolution(pane, chunk_of(pane)) for pane in sorted(chosen, key=lambda pane: mean_length(pane)))


def chunk_of(panes: Segmentation) -> int:
    """Return the length of the stretches of time by which files of such panes are split."""
    return int(mean_length(panes)) * PANES_PER_CHUNK
