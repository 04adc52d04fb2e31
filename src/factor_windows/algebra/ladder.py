"""A ladder of panes, each rung twice as long as the one below: a few panes and raw edges make any trailing window."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """A pane that trailing windows may be made of: the one of its rung at time + `shift`, moved on by `step` panes."""

    rung: int
    shift: int
    step: int
    first: int
    """The position of the shortest range made of it."""
    last: int
    """The position of the longest; all ranges in between are made of it, too."""
    is_top: bool = False
    """Whether it is in the middle of the highest rung, between the panes before the time and those after the start."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A pane of the lowest rung that windows partly contain, so they read its raw events; located as a piece is."""

    shift: int
    step: int
    first: int
    """The position of the shortest range that reads it; an event may be too old for some of the ranges."""
    last: int


@dataclass(frozen=True, slots=True)
class Ladder:
    """Panes of length `pane` * 2^rung, for windows of several ranges that may end at any time.

    A range shorter than a pane reads raw events only. If a pane is longer than all ranges, all of them do.

    >>> ladder = Ladder(pane=10, ranges=(5, 40))
    >>> [ladder.bounds(57, piece) for piece in ladder.pieces if ladder.has(57, piece)]
    [(40, 50), (20, 40)]
    >>> [ladder.bounds(57, edge) for edge in ladder.edges if ladder.has(57, edge)]
    [(50, 60), (40, 50), (10, 20)]
    """

    pane: int
    ranges: tuple[int, ...]
    """The distinct ranges, shortest first."""

    @property
    def tops(self) -> tuple[int, ...]:
        """Return for each range the highest rung with an edge that it always contains; -1 if shorter than a pane."""
        return tuple((length // self.pane).bit_length() - 1 for length in self.ranges)

    @property
    def rungs(self) -> int:
        """Count the rungs; zero if all ranges are shorter than a pane."""
        return max(self.tops) + 1

    def length(self, rung: int) -> int:
        """Return the length of a rung's panes."""
        return self.pane << rung

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """List the panes between the edges: those before the time, which ranges share, and those after each start."""
        return tuple(self._pieces())

    def _pieces(self) -> Iterator[Piece]:
        last, tops = len(self.ranges) - 1, self.tops
        for rung in range(max(tops)):
            yield Piece(rung, 0, -1, bisect_left(tops, rung + 1), last)
        for place, (length, top) in enumerate(zip(self.ranges, tops, strict=True)):
            for rung in range(top + 1):
                yield Piece(rung, self.length(rung) - 1 - length, 0, place, place, is_top=rung == top)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """List the panes that windows partly contain: the one that contains the time, and those where ranges start.

        Ranges shorter than a pane start in the pane that contains the time, or in the one before.
        """
        last, short = len(self.ranges) - 1, bisect_left(self.tops, 0) - 1
        begins = (Edge(-self.ranges[place], 0, place, place) for place in range(short + 1, last + 1))
        return Edge(0, 0, 0, last), *([Edge(0, -1, 0, short)] if short >= 0 else []), *begins

    def has(self, at: int, part: Piece | Edge) -> bool:
        """Say whether windows that end at `at` have this piece or edge at all.

        On each rung they have the pane before the last edge and the one after the first, unless that is an edge of the
        next rung; on the highest rung, one more pane or none lies between these two. A window that starts at an edge
        reads no raw events there.
        """
        if isinstance(part, Edge):
            return part.step < 0 or (at + part.shift) % self.pane > 0
        length = self.length(part.rung)
        return ((at + part.shift) // length + (at // length if part.is_top else 0)) % 2 == 1

    def bounds(self, at: int, part: Piece | Edge) -> tuple[int, int]:
        """Return the start and the end of the pane."""
        length = self.length(part.rung) if isinstance(part, Piece) else self.pane
        start = ((at + part.shift) // length + part.step) * length
        return start, start + length
