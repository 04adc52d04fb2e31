"""Pane rows: several panes side by side in one row, so that fewer rows are grouped and shuffled.

Instead of one row for each key and pane, a first level may make one for each key and stretch of several panes, with a
slot for each of them: `min(v) FILTER (WHERE slot = 0)`, `min(v) FILTER (WHERE slot = 1)`, ... Windows that fit into the
stretch are then merged inside the row, with no grouping at all. The slot of an event is how many edges have passed
since the stretch began, so rows may hold slices, too: where two progressions meet, a slot stays empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from factor_windows.algebra.slices import Progression, Segmentation, Slices, edges_of
from factor_windows.algebra.window import Window
from factor_windows.functions.table import Kind, State

if TYPE_CHECKING:
    from factor_windows.query import Query

MOST_COLUMNS = 24
"""How many slots a row has at most, those of all states together: each costs every event a look."""
FEWEST_PANES = 6
"""Fewer slots than these are not worth it."""
LONGEST = 10**18
"""So that no sum of times leaves 64 bits, in microseconds."""


@dataclass(frozen=True, slots=True)
class Packing:
    """What the states of a query allow."""

    states: int
    folds: bool
    """Whether the states of several panes of a row can be merged there."""

    @classmethod
    def of(cls, query: Query) -> Packing | None:
        """Return what a query allows whatever its types; nothing if some state has no fixed size.

        >>> from factor_windows import Query, tumbling
        >>> minutes = [tumbling("1 minute"), tumbling("2 minutes")]
        >>> [Packing.of(Query(time="ts", windows=minutes, aggregates=[text])) for text in ("avg(v)", "mode(v)")]
        [Packing(states=2, folds=True), None]
        """
        if query.kind >= Kind.COUNTED:
            return None
        return cls.of_states(state for each in query.parsed_aggregates for state in each.states(time="time"))

    @classmethod
    def of_states(cls, states: Iterable[State]) -> Packing | None:
        """Return what some states allow."""
        own = {state.lift: state for state in states}.values()
        if not all(state.fixed for state in own):
            return None
        return cls(len(own), all(state.fold for state in own))


@dataclass(frozen=True, slots=True)
class PaneRow:
    """A row that holds several panes, or slices, one after the other."""

    window: Window
    """The stretch of time of a row."""
    edges: tuple[Progression, ...]
    """Where panes begin; the stretch begins with one of the first progression."""
    states: int = 1
    premerged: tuple[int, ...] = ()
    """The nodes, by their places in the plan, whose instances are merged inside the row."""

    @property
    def slots(self) -> int:
        """Count the slots: the edges that a stretch has at most, each as often as progressions meet there.

        >>> PaneRow(Window(range=60, slide=60), ((15, 0), (17, 0))).slots
        8
        """
        return sum(self.edges_of(edge) for edge in self.edges) + 1

    def edges_of(self, edge: Progression) -> int:
        """Count the edges of a progression between the start and the end of a stretch, at most."""
        return -(-self.window.range // edge[0]) - self.meets(edge)

    def meets(self, edge: Progression) -> bool:
        """Say whether every stretch begins at an edge of a progression."""
        step, offset = edge
        return self.window.range % step == 0 == (self.window.offset - offset) % step

    @property
    def columns(self) -> int:
        """Count the slots of all states."""
        return self.slots * self.states

    def slots_of(self, segmentation: Segmentation) -> Iterator[range]:
        """List the slots of each instance of what is in the row: the panes, or a window that fits into it.

        >>> from factor_windows import tumbling
        >>> [row] = ways_to_pack(tumbling("5s"), 4)
        >>> [list(slots) for slots in row.slots_of(tumbling("15s"))]
        [[0, 1, 2], [3, 4, 5]]
        """
        many = 1 if isinstance(segmentation, Slices) else segmentation.longest // self.edges[0][0]
        return (range(first, first + many) for first in range(0, self.slots, many))


def ways_to_pack(panes: Segmentation, states: int) -> Iterator[PaneRow]:
    """List how many panes a row may hold; none for what does not tumble, nor for no states.

    >>> from factor_windows import hopping, tumbling
    >>> [row.slots for row in ways_to_pack(tumbling("5s"), 2)], list(ways_to_pack(hopping("10s", "5s"), 2))
    ([12, 6], [])
    >>> [(row.slots, row.window.range) for row in ways_to_pack(Slices(((15, 0), (17, 0))), 1)]
    [(24, 187), (12, 90), (6, 45)]
    """
    if not states or not _is_fixed(panes):
        return
    [edges] = edges_of(panes).values()
    slots = MOST_COLUMNS // states
    while slots >= FEWEST_PANES:
        rows = [row for edge in edges if (row := _longest(edge, edges, slots, states))]
        if rows:
            yield max(rows, key=lambda row: row.window.range)
        slots //= 2


def _is_fixed(panes: Segmentation) -> bool:
    """Say whether panes are cut at fixed steps alone."""
    if isinstance(panes, Slices):
        return not panes.calendars
    return isinstance(panes, Window) and panes.is_tumbling and panes.clock is None


def _longest(first: Progression, edges: Sequence[Progression], slots: int, states: int) -> PaneRow | None:
    """Return the row with the longest stretch between edges of one progression that needs no more than some slots."""
    step, offset = first
    ordered = (first, *(edge for edge in edges if edge != first))
    # A stretch of one step more has an edge more, at least.
    for many in range(min(slots, LONGEST // step), 0, -1):
        row = PaneRow(Window(range=many * step, slide=many * step, offset=offset), ordered, states)
        if FEWEST_PANES <= row.slots <= slots:
            return row
    return None


def pane_rows(segmentations: Sequence[Segmentation], first: int, packing: Packing | None) -> Iterator[PaneRow]:
    """List the ways to pack the node at a place, which a first level computes alone, with what fits into a row."""
    for pack in ways_to_pack(segmentations[first], packing.states) if packing else ():
        others = [
            place
            for place, segmentation in enumerate(segmentations)
            if place != first and _fits(segmentation, pack.window)
        ]
        folds = packing is not None and packing.folds and len(pack.edges) == 1
        yield replace(pack, premerged=tuple(others) if folds else ())


def _fits(segmentation: Segmentation, stretch: Window) -> bool:
    """Say whether a stretch is always made of whole instances that do not overlap."""
    return (
        isinstance(segmentation, Window)
        and segmentation.clock is None
        and segmentation.is_tumbling
        and stretch.range % segmentation.range == 0
        and (stretch.offset - segmentation.offset) % segmentation.range == 0
    )
