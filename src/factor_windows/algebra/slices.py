"""Slices: pieces of time between neighbouring edges, where the edges are several progressions together.

A slice is what window slicing keeps once for all windows. Its start is the last edge at or before a time: the greatest,
over all progressions, of the last edge of each. That is one expression in any SQL.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import gcd, lcm

from factor_windows.algebra.window import Window, readable
from factor_windows.errors import WindowError

Progression = tuple[int, int]
"""A step and an offset: the edges offset + k * step, k any integer."""

MOST_EDGES = 5_000
"""How many edges are looked at to know how long slices are, where a whole period has more."""


@dataclass(frozen=True, slots=True)
class Slices:
    """Time cut at the edges of several progressions; equal cuts of few progressions are equal values.

    >>> Slices(((15, 0), (17, 0), (30, 0))).edges
    ((15, 0), (17, 0))
    """

    edges: tuple[Progression, ...]

    def __post_init__(self) -> None:
        if not self.edges or any(step <= 0 for step, _ in self.edges):
            raise WindowError(f"slices need edges at positive steps, not {self.edges!r}")
        object.__setattr__(self, "edges", _without_repeats(self.edges))

    @property
    def range(self) -> int:
        """Return a length that no slice exceeds."""
        return min(step for step, _ in self.edges)

    @property
    def label(self) -> str:
        """Describe the slices by their edges."""
        words = [readable(step) + (f" @ {readable(offset)}" if offset else "") for step, offset in self.edges]
        return f"slices at {', '.join(words if len(words) <= 4 else [*words[:3], f'{len(words) - 3} more'])}"

    def starts_of(self, time: int) -> tuple[int]:
        """Return the start of the one slice that holds the time.

        >>> Slices(((15, 0), (17, 0))).starts_of(-1), Slices(((15, 0), (17, 0))).starts_of(35)
        ((-15,), (34,))
        """
        return (max(time - (time - offset) % step for step, offset in self.edges),)

    def end_of(self, start: int) -> int:
        """Return the end of the slice that starts then."""
        return min(start - (start - offset) % step + step for step, offset in self.edges)


Segmentation = Window | Slices
"""What a node may be: a window, or hidden slices."""


def display_key(segmentation: Segmentation) -> tuple[int, ...]:
    """Return what nodes are put in order by: shorter ones first."""
    if isinstance(segmentation, Slices):
        return (segmentation.range, 0, *(part for edge in segmentation.edges for part in edge))
    return (segmentation.range, segmentation.slide, segmentation.offset)


def slices_of(windows: Iterable[Segmentation]) -> Segmentation:
    """Return the coarsest slices that refine all windows; a tumbling window, if one progression has all the edges.

    >>> slices_of([Window(range=20, slide=20), Window(range=30, slide=10)]).label
    '10 microseconds'
    >>> slices_of([Window(range=15, slide=15), Window(range=17, slide=6)]).edges
    ((6, 0), (6, 5), (15, 0))
    """
    slices = Slices(tuple(edge for window in windows for edge in edges_of(window)))
    pieces = pieces_of(slices.edges)
    offset = slices.edges[0][1]
    even = Window(range=pieces.lengths[0][0], slide=pieces.lengths[0][0], offset=offset)
    return even if len(pieces.lengths) == 1 and refines(slices, even) else slices


def edges_of(segmentation: Segmentation) -> tuple[Progression, ...]:
    """List the edges of slices, or the starts and ends of a window's instances."""
    if isinstance(segmentation, Slices):
        return segmentation.edges
    starts = (segmentation.slide, segmentation.offset)
    ends = (segmentation.slide, (segmentation.offset + segmentation.range) % segmentation.slide)
    return (starts,) if starts == ends else (starts, ends)


def is_partition(segmentation: Segmentation) -> bool:
    """Say whether instances never overlap, so that each time is in exactly one."""
    return isinstance(segmentation, Slices) or segmentation.is_tumbling


def refines(pieces: Segmentation, other: Segmentation) -> bool:
    """Say whether pieces tile every instance of a window, or every slice: all its edges are theirs too.

    >>> refines(Slices(((15, 0), (17, 0))), Window(range=45, slide=15))
    True
    >>> refines(Slices(((2, 0), (2, 1))), Window(range=1, slide=1))
    True
    """
    if not is_partition(pieces):
        return False
    edges = edges_of(pieces)
    if len(edges) == 1:
        [(step, offset)] = edges
        return all(each % step == 0 and (shift - offset) % step == 0 for each, shift in edges_of(other))
    return all(within(edge, edges) for edge in edges_of(other))


def within(progression: Progression, edges: Sequence[Progression]) -> bool:
    """Say whether all of a progression lies in the union of others.

    The places k at which it meets another progression form a progression themselves. If one of those is everything, all
    lies within; if their densities do not add up to one, it does not; else each residue of the smallest is asked.

    >>> within((6, 1), ((4, 1), (4, 3))), within((6, 1), ((4, 1), (5, 0)))
    (True, False)
    """
    step, offset = progression
    meetings = []
    for other, shift in edges:
        common = gcd(step, other)
        if (shift - offset) % common == 0:
            modulus = other // common
            meetings.append((modulus, (shift - offset) // common * pow(step // common, -1, modulus) % modulus))
    smallest = min((modulus for modulus, _ in meetings), default=0)
    if smallest <= 1 or sum(1 / modulus for modulus, _ in meetings) < 1 - 1e-9:
        return smallest == 1
    return all(within((smallest, residue), meetings) for residue in range(smallest))


def _without_repeats(edges: Iterable[Progression]) -> tuple[Progression, ...]:
    """Leave out the progressions that the others hold already, longest steps first."""
    kept = sorted({(step, offset % step) for step, offset in edges})
    for edge in reversed(kept.copy()):
        others = [other for other in kept if other != edge]
        if others and within(edge, others):
            kept = others
    return tuple(kept)


@dataclass(frozen=True, slots=True)
class Pieces:
    """How long the pieces of a segmentation are: how many of each length there are in a span of time."""

    span: int
    lengths: tuple[tuple[int, int], ...]
    """Pairs of a length and how many pieces have it."""

    @property
    def count(self) -> int:
        """Return how many pieces there are in the span."""
        return sum(count for _, count in self.lengths)


def mean_length(segmentation: Segmentation) -> int | Fraction:
    """Return the range of a window, or the mean length of slices.

    >>> mean_length(Slices(((2, 0), (3, 0))))
    Fraction(3, 2)
    """
    if isinstance(segmentation, Window):
        return segmentation.range
    pieces = pieces_of(segmentation.edges)
    return Fraction(pieces.span, pieces.count)


def topological_key(segmentation: Segmentation) -> tuple[int | Fraction, int]:
    """Return what comes before in this order if one can be read by the other: no two nodes can read each other."""
    return (mean_length(segmentation), 0 if isinstance(segmentation, Slices) else segmentation.slide)


@lru_cache(maxsize=4096)
def pieces_of(edges: tuple[Progression, ...]) -> Pieces:
    """Measure the pieces between edges: of a whole period, or of as many edges from 0 on as are worth looking at.

    >>> pieces_of(((2, 0), (3, 0)))
    Pieces(span=6, lengths=((1, 2), (2, 2)))
    """
    if len(edges) == 1:
        return Pieces(edges[0][0], ((edges[0][0], 1),))
    period = lcm(*(step for step, _ in edges))
    span = min(period, int(MOST_EDGES / sum(1 / step for step, _ in edges)))
    found = sorted({time for step, offset in edges for time in range(offset, span, step)})
    if span == period:
        found.append(found[0] + period)
    lengths = Counter(after - before for before, after in pairwise(found))
    return Pieces(found[-1] - found[0], tuple(sorted(lengths.items())))
