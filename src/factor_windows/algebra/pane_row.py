"""Pane rows: several panes packed in one row, so that fewer rows are grouped and shuffled.

Instead of one row for each key and pane, a first level may make one for each key and stretch of several panes, with a
slot for each of them: `min(v) FILTER (WHERE slot = 0)`, `min(v) FILTER (WHERE slot = 1)`, ... Windows that fit into the
stretch are then merged inside the row, without any grouping.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from factor_windows.algebra.slices import Segmentation
from factor_windows.algebra.window import Window
from factor_windows.functions.table import Kind, State

if TYPE_CHECKING:
    from factor_windows.query import Query

MOST_COLUMNS = 24
"""The most slots in a row, over all states together: every event is tested for each of them."""
FEWEST_PANES = 6
"""With fewer slots than this, packing is not worth it."""
LONGEST = 10**18
"""The longest row, in microseconds, so that no sum of times exceeds 64 bits."""


@dataclass(frozen=True, slots=True)
class Packing:
    """How the states of a query may be packed."""

    states: int
    folds: bool
    """Whether the states of several panes can be merged inside a row."""

    @classmethod
    def of(cls, query: Query) -> Packing | None:
        """Return what a query allows whatever its types; `None` if some state has no fixed size.

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
        """Return what these states allow."""
        own = {state.lift: state for state in states}.values()
        if not all(state.fixed for state in own):
            return None
        return cls(len(own), all(state.fold for state in own))


@dataclass(frozen=True, slots=True)
class PaneRow:
    """A row that holds several consecutive panes."""

    pane: Window
    slots: int
    states: int = 1
    premerged: tuple[int, ...] = ()
    """The nodes, by their positions in the plan, whose instances are merged inside the row."""

    @property
    def window(self) -> Window:
        """Return the window whose instances are the stretches of time of the rows."""
        length = self.slots * self.pane.range
        return Window(range=length, slide=length, offset=self.pane.offset)

    @property
    def columns(self) -> int:
        """Count the slots of all states."""
        return self.slots * self.states

    def slots_of(self, window: Window) -> Iterator[range]:
        """List the slots of each instance of a window in the row; the window is the pane itself or fits into the row.

        >>> from factor_windows import tumbling
        >>> [list(slots) for slots in PaneRow(tumbling("5s"), 6).slots_of(tumbling("15s"))]
        [[0, 1, 2], [3, 4, 5]]
        """
        many = window.range // self.pane.range
        return (range(first, first + many) for first in range(0, self.slots, many))


def ways_to_pack(pane: Segmentation, states: int) -> Iterator[PaneRow]:
    """List the possible pane rows; there are none for windows that do not tumble, nor without states.

    >>> from factor_windows import hopping, tumbling
    >>> [pack.slots for pack in ways_to_pack(tumbling("5s"), 2)], list(ways_to_pack(hopping("10s", "5s"), 2))
    ([12, 6], [])
    """
    if not states or not isinstance(pane, Window) or not pane.is_tumbling or pane.clock is not None:
        return
    slots = MOST_COLUMNS // states
    while slots >= FEWEST_PANES and slots * pane.range <= LONGEST:
        yield PaneRow(pane, slots, states)
        slots //= 2


def pane_rows(segmentations: Sequence[Segmentation], first: int, packing: Packing | None) -> Iterator[PaneRow]:
    """List the ways to pack a node that a first level computes alone, with the nodes that fit into the row."""
    for pack in ways_to_pack(segmentations[first], packing.states) if packing else ():
        others = [
            place
            for place, segmentation in enumerate(segmentations)
            if place != first and _fits(segmentation, pack.window)
        ]
        yield replace(pack, premerged=tuple(others) if packing and packing.folds else ())


def _fits(segmentation: Segmentation, stretch: Window) -> bool:
    """Say whether every stretch consists of whole instances that do not overlap."""
    return (
        isinstance(segmentation, Window)
        and segmentation.clock is None
        and segmentation.is_tumbling
        and stretch.range % segmentation.range == 0
        and (stretch.offset - segmentation.offset) % segmentation.range == 0
    )
