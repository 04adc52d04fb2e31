"""The best length of a ladder's panes, from the cost of events, panes and labels on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from math import expm1, inf

from factor_windows.algebra.ladder import Ladder

PAIR = 20.0
"""The price of checking one event of a pane for one label, in nanoseconds."""
LOOK_UP = 700.0
"""The price of finding one pane for one label: both are shuffled and sorted, and the result is moved to its label."""
PANE = 800.0
"""The price of making one pane of the lowest rung."""
MERGE = 100.0
"""The price of merging it into the panes of one rung."""
EVENT = 60.0
"""The price of adding one event to a pane; the events that raw edges read are moved in any case."""
ASSUMED = 1e6
"""The number of labels, and of events, assumed if unknown."""
PARTS = 16
"""The number of panes that the shortest range is cut into if the density of events is unknown."""
HALVINGS = 40
"""The number of times the shortest range is halved, or doubled, in search of the best pane."""


def choose_ladder(
    ranges: Sequence[int],
    *,
    density: float | None,
    crowding: float = 1.0,
    events: float = inf,
    labels: float = inf,
) -> Ladder:
    """Choose the pane for ranges that end at given times; `density` is the events of a key per microsecond.

    Labels are assumed to be for busy keys as often as events are: those keys have `crowding` times as many events.

    >>> hour, week = 3_600_000_000, 7 * 86_400_000_000
    >>> choose_ladder([hour, week], density=1 / week).rungs
    0
    >>> choose_ladder([hour, week], density=14 / hour, events=1e7, labels=1e6).pane // 60_000_000
    120
    """
    shortest, longest = min(ranges), max(ranges)
    lengths = tuple(sorted(set(ranges)))
    if density is None:
        return Ladder(max(1, shortest // PARTS), lengths)
    finer = {max(1, shortest >> step) for step in range(HALVINGS)}
    coarser = {shortest << step for step in range(HALVINGS) if shortest << step < longest}
    ladders = [Ladder(pane, lengths) for pane in sorted(finer | coarser | {longest + 1}, reverse=True)]
    known = (ASSUMED if events == inf else events), (ASSUMED if labels == inf else labels)
    return min(ladders, key=lambda each: price(each, density, crowding, *known))


def price(ladder: Ladder, density: float, crowding: float, events: float, labels: float) -> float:
    """Return the time that a ladder takes in nanoseconds, if events are independent of each other."""
    edges, pieces = len(ladder.edges), ladder.pieces
    pairs = edges * density * crowding * ladder.pane
    # About every second piece exists.
    looked_up = edges + len(pieces) / 2
    reading = labels * (pairs * PAIR + looked_up * LOOK_UP)
    if not pieces:
        return reading
    in_pane = density * ladder.pane
    panes = events * -expm1(-in_pane) / in_pane if in_pane else events
    return reading + events * EVENT + panes * (PANE + ladder.rungs * MERGE)
