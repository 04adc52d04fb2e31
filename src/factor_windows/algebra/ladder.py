"""A ladder of panes, each rung twice as long as the one below: any trailing window is a few of them, and raw edges."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar


class Whole(Protocol):
    """A whole number, or what computes one from a row."""

    def __add__(self, other: Self | int, /) -> Self: ...
    def __sub__(self, other: Self | int, /) -> Self: ...
    def __mul__(self, other: Self | int, /) -> Self: ...
    def __mod__(self, other: Self | int, /) -> Self: ...
    def __floordiv__(self, other: Self | int, /) -> Self: ...


N = TypeVar("N", bound=Whole)


@dataclass(frozen=True, slots=True)
class Piece(Generic[N]):
    """A pane that some of the windows before a time may be made of, or, for an edge, whose raw events they read."""

    rung: int
    number: N
    """Which pane of its rung: number n begins at n times its length."""
    is_there: N
    """Positive if the windows have this piece at all."""
    first: int
    """The place of the shortest range that has the piece; an event of an edge may belong to longer ones only."""
    last: int
    """The place of the longest range that has it; all between have it, too."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """Panes of the length `pane` * 2^rung, for windows of some ranges that end at any time.

    A range shorter than a pane reads raw events only. With a pane of the longest range, all do.

    >>> ladder = Ladder(pane=10, ranges=(5, 40))
    >>> ladder.tops
    (-1, 2)
    >>> [(each.rung, each.number) for each in ladder.pieces(57) if each.is_there > 0]
    [(0, 4), (1, 1)]
    >>> [(each.number, each.first, each.last) for each in ladder.edges(57) if each.is_there > 0]
    [(5, 0, 1), (1, 1, 1)]
    """

    pane: int
    ranges: tuple[int, ...]
    """The different ranges, the shortest first."""

    @property
    def tops(self) -> tuple[int, ...]:
        """Return for each range the highest rung of which it always holds an edge; -1 if it is shorter than a pane."""
        return tuple((length // self.pane).bit_length() - 1 for length in self.ranges)

    @property
    def rungs(self) -> int:
        """Count the rungs; none if all ranges are shorter than a pane."""
        return max(self.tops) + 1

    def length(self, rung: int) -> int:
        """Return how long the panes of a rung are."""
        return self.pane << rung

    def pieces(self, at: N) -> tuple[Piece[N], ...]:
        """List the panes between the edges: those before the time, which ranges share, and those after each start."""
        last, tops = len(self.ranges) - 1, self.tops
        found = []
        for rung in range(max(tops)):
            before = _floor(at, self.length(rung))
            found.append(Piece(rung, before - 1, before % 2, bisect_left(tops, rung + 1), last))
        for place, (length, top) in enumerate(zip(self.ranges, tops, strict=True)):
            for rung in range(top):
                after = _ceil(at - length, self.length(rung))
                found.append(Piece(rung, after, after % 2, place, place))
            if top >= 0:
                after = _ceil(at - length, self.length(top))
                found.append(Piece(top, after, _floor(at, self.length(top)) - after, place, place))
        return tuple(found)

    def edges(self, at: N) -> tuple[Piece[N], ...]:
        """List the panes that windows hold a part of: the one of the time itself, and those in which ranges begin."""
        own, last, tops = _floor(at, self.pane), len(self.ranges) - 1, self.tops
        found = [Piece(0, own, at % self.pane, 0, last)]
        short = bisect_left(tops, 0) - 1
        if short >= 0:
            found.append(Piece(0, own - 1, at % self.pane * -1 + self.ranges[short], 0, short))
        for place in range(short + 1, last + 1):
            start = at - self.ranges[place]
            found.append(Piece(0, _floor(start, self.pane), start % self.pane, place, place))
        return tuple(found)


def _floor(value: N, length: int) -> N:
    """Divide, rounding down, also where a division rounds towards zero."""
    return (value - value % length) // length


def _ceil(value: N, length: int) -> N:
    return _floor(value + (length - 1), length)
