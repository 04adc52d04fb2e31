"""Slices: pieces of time between neighbouring edges, where the edges are the union of several progressions.

Window slicing keeps partial results per slice, once for all windows. The start of a slice is the last edge at or before
a time: the greatest, over all progressions, of the last edge of each. That is one expression in any SQL. Progressions
may also count ticks of a calendar's clock, so slices work for windows of fixed lengths and of several calendars at
once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import gcd, inf, lcm
from operator import sub

from factor_windows.algebra.clock import DAY, Clock
from factor_windows.algebra.coverage import tiles
from factor_windows.algebra.growing import Growing
from factor_windows.algebra.session import Session
from factor_windows.algebra.window import MICROSECONDS, Window, default_offset, readable
from factor_windows.errors import WindowError

Progression = tuple[int, int]
"""A step and an offset: the edges offset + k * step, k any integer."""

MOST_UNITS = 500_000
"""Time is searched for edges unit by unit, if it has at most this many units; all steps are multiples of a unit."""
MOST_EDGES = 5_000
"""The number of edges used to measure the lengths of slices, if a whole period has more."""


@dataclass(frozen=True, slots=True)
class Slices:
    """Time cut at the edges of several progressions; equal cuts of few progressions are equal values.

    >>> Slices(((15, 0), (17, 0), (30, 0))).edges
    ((15, 0), (17, 0))
    """

    edges: tuple[Progression, ...]
    calendars: tuple[tuple[Clock, Progression], ...] = ()
    """Progressions on clocks, which count ticks."""

    def __post_init__(self) -> None:
        steps = [step for step, _ in (*self.edges, *(each for _, each in self.calendars))]
        if not steps or min(steps) <= 0:
            raise WindowError(f"slices need edges at positive steps, not {self.edges!r}")
        object.__setattr__(self, "edges", _without_repeats(self.edges))
        by_clock: dict[Clock, list[Progression]] = {}
        for clock, each in self.calendars:
            by_clock.setdefault(clock, []).append(each)
        own = {clock: _without_repeats(several) for clock, several in by_clock.items()}
        kept = {
            clock: several
            for clock, several in own.items()
            if not all(_lies_within(clock, each, {None: self.edges, **_without(own, clock)}) for each in several)
        }
        calendars = tuple((clock, each) for clock in sorted(kept) for each in kept[clock])
        object.__setattr__(self, "calendars", calendars)

    @property
    def range(self) -> int:
        """Return a length that no slice exceeds."""
        fixed = (step for step, _ in self.edges)
        return min((*fixed, *(step * clock.longest for clock, (step, _) in self.calendars)))

    @property
    def longest(self) -> int:
        """Return a length that no slice exceeds, as for windows."""
        return self.range

    @property
    def label(self) -> str:
        """Describe the slices by their edges."""
        words = [readable(step) + (f" @ {readable(offset)}" if offset else "") for step, offset in self.edges]
        words += [Window(step, step, offset, clock=clock).label for clock, (step, offset) in self.calendars]
        return f"slices at {', '.join(words if len(words) <= 4 else [*words[:3], f'{len(words) - 3} more'])}"

    def starts_of(self, time: int) -> tuple[int]:
        """Return the start of the one slice that contains the time.

        >>> Slices(((15, 0), (17, 0))).starts_of(-1), Slices(((15, 0), (17, 0))).starts_of(35)
        ((-15,), (34,))
        """
        own = (max(_tumbling(clock, each).starts_of(time)) for clock, each in self.calendars)
        return (max((*(time - (time - offset) % step for step, offset in self.edges), *own)),)

    def bounds_of(self, start: int) -> tuple[int, int]:
        """Return the start and the end of the slice that starts at `start`."""
        fixed = (start - (start - offset) % step + step for step, offset in self.edges)
        windows = (_tumbling(clock, each) for clock, each in self.calendars)
        return start, min((*fixed, *(window.bounds_of(window.starts_of(start)[0])[1] for window in windows)))

    def since(self, clock: Clock) -> float:
        """Return the time from which all ticks of a clock are edges of the progressions with fixed steps alone.

        The result is a day later, so that the last tick before it is also such an edge. For times before 1970, engines
        have other tables.
        """
        since = min((clock.settles(*edge) for edge in self.edges), default=inf)
        return since if since == -inf else max(since, 0) + DAY

    def same_since(self, window: Segmentation) -> float:
        """Return the time from which slices and instances of a window are the same; infinity for never."""
        if not isinstance(window, Window) or window.clock or not window.is_tumbling:
            return inf
        if self.edges != ((window.slide, window.offset),):
            return inf
        return max((self.since(clock) for clock, _ in self.calendars), default=-inf)

    @property
    def nominal(self) -> tuple[Progression, ...]:
        """Return the edges as if all ticks were equally long, without recent ones that fixed steps already contain."""
        return _nominal(self)

    @property
    def on_a_grid(self) -> Slices:
        """Return finer slices of a fixed step, whose edges include the calendars' recent edges."""
        steps = [clock.grid for clock, _ in self.calendars]
        common = gcd(*steps, *(part for edge in self.edges for part in edge))
        return replace(self, edges=((common, 0),))


@lru_cache(maxsize=4096)
def _nominal(slices: Slices) -> tuple[Progression, ...]:
    own = (
        (step * clock.length, clock.instant(offset + (default_offset(clock, weeks=False) // step) * step))
        for clock, (step, offset) in slices.calendars
        if slices.since(clock) > _RECENT
    )
    return (*slices.edges, *((length, at % length) for length, at in own))


_RECENT = 63_072_000_000_000
"""The end of 1971, in microseconds: what a clock does since then counts as its current behaviour."""
Segmentation = Window | Growing | Session | Slices
"""What a node may compute: a window, a growing window, sessions, or hidden slices."""


def _tumbling(clock: Clock, edges: Progression) -> Window:
    return Window(edges[0], edges[0], edges[1], clock=clock)


def common_step(windows: Iterable[Window | Growing | Session]) -> int:
    """Return the greatest common divisor of all ranges, slides and offsets; for calendars alone, an hour.

    >>> common_step((Window(range=20, slide=20), Window(range=30, slide=15)))
    5
    """
    fixed = (w for each in windows for w in each.parts if w.clock is None)
    return gcd(*(length for w in fixed for length in (w.range, w.slide, w.offset))) or MICROSECONDS["hour"]


def clocks_to_ask(segmentation: Segmentation) -> int:
    """Count the clocks that must be consulted, for recent times, to find the instance of a row."""
    if isinstance(segmentation, Slices):
        return sum(segmentation.since(clock) > _RECENT for clock, _ in segmentation.calendars)
    if isinstance(segmentation, Growing):
        return len({each.clock for each in segmentation.parts if each.clock})
    return int(isinstance(segmentation, Window) and segmentation.clock is not None)


def display_key(segmentation: Segmentation) -> tuple[int, ...]:
    """Return the sort key of nodes: shorter ones first."""
    if isinstance(segmentation, Slices):
        return (int(mean_length(segmentation)), 0, *(part for edge in segmentation.nominal for part in edge))
    if isinstance(segmentation, Growing):
        return (segmentation.length, segmentation.distance, *display_key(segmentation.period))
    if isinstance(segmentation, Session):
        return (segmentation.gap, segmentation.gap, 0, 1)
    return (segmentation.length, segmentation.distance, segmentation.offset)


def slices_of(windows: Iterable[Segmentation]) -> Segmentation:
    """Return the coarsest slices that refine all windows; a tumbling window, if one progression has all the edges.

    >>> slices_of([Window(range=20, slide=20), Window(range=30, slide=10)]).label
    '10 microseconds'
    >>> slices_of([Window(range=15, slide=15), Window(range=17, slide=6)]).edges
    ((6, 0), (6, 5), (15, 0))
    """
    found = [(clock, edge) for window in windows for clock, edges in edges_of(window).items() for edge in edges]
    fixed = tuple(edge for clock, edge in found if clock is None)
    slices = Slices(fixed, tuple((clock, edge) for clock, edge in found if clock is not None))
    if slices.calendars:
        (clock, edge), *others = slices.calendars
        return slices if slices.edges or others else _tumbling(clock, edge)
    # Equally spaced edges are as far apart as the greatest common divisor of all steps and offsets.
    offset = slices.edges[0][1]
    common = gcd(*(part for step, at in slices.edges for part in (step, at - offset)))
    return Window(common, common, offset) if within((common, offset), slices.edges) else slices


Edges = Mapping[Clock | None, Sequence[Progression]]
"""Progressions in microseconds, and in the ticks of clocks."""


def edges_of(segmentation: Segmentation) -> Edges:
    """List the edges of slices, or the starts and ends of a window's instances."""
    if isinstance(segmentation, Growing):
        # The starts of a period are among the starts of its steps.
        return edges_of(segmentation.step)
    if isinstance(segmentation, Session):
        # A session's own edges depend on the events; panes that end at these edges are short enough to make it up.
        return edges_of(segmentation.pane)
    if isinstance(segmentation, Slices):
        found: dict[Clock | None, list[Progression]] = {None: list(segmentation.edges)} if segmentation.edges else {}
        for clock, edge in segmentation.calendars:
            found.setdefault(clock, []).append(edge)
        return found
    starts = (segmentation.slide, segmentation.offset)
    ends = (segmentation.slide, (segmentation.offset + segmentation.range) % segmentation.slide)
    return {segmentation.clock: (starts,) if starts == ends else (starts, ends)}


def grid_of(segmentation: Segmentation) -> int:
    """Return a number of microseconds that divides the start of every instance; 1 for calendars and sessions.

    >>> grid_of(Window(range=20, slide=20)), grid_of(Window(range=20, slide=20, offset=5)), grid_of(Session(20))
    (20, 5, 1)
    """
    edges = {} if isinstance(segmentation, Session) else edges_of(segmentation)
    return gcd(*(part for edge in edges[None] for part in edge)) if set(edges) == {None} else 1


def is_partition(segmentation: Segmentation) -> bool:
    """Say whether instances never overlap, so that each time is in exactly one."""
    return isinstance(segmentation, Slices) or segmentation.is_tumbling


def refines(pieces: Segmentation, other: Segmentation) -> bool:
    """Say whether pieces tile every instance of a window, or every slice: all its edges are also edges of the pieces.

    >>> refines(Slices(((15, 0), (17, 0))), Window(range=45, slide=15))
    True
    >>> refines(Slices(((2, 0), (2, 1))), Window(range=1, slide=1))
    True
    >>> day, week, month = (Window(ticks, ticks, clock=Clock("Asia/Tokyo", unit)) for ticks, unit in _EXAMPLES)
    >>> refines(day, week), refines(day, month), refines(week, month)
    (True, True, False)
    """
    if not is_partition(pieces):
        return False
    if isinstance(pieces, Window) and isinstance(other, Window) and pieces.clock == other.clock:
        return tiles(pieces, other)
    edges = edges_of(pieces)
    return all(_lies_within(clock, edge, edges) for clock, several in edges_of(other).items() for edge in several)


_EXAMPLES = ((1, "day"), (7, "day"), (1, "month"))


def _lies_within(clock: Clock | None, progression: Progression, edges: Edges) -> bool:
    """Say whether a clock's progression lies entirely in the union of others.

    Months start with days of the same zone. Ticks lie on a fixed progression if the zone never left it. Nothing else
    about clocks holds in general: months are not made of weeks, nor days of one zone of days of another.
    """
    if within(progression, edges.get(clock, ())):
        return True
    if clock is None:
        return False
    is_monthly = clock.unit == "month" and within((1, 0), edges.get(clock.days, ()))
    return is_monthly or any(clock.settles(*edge) == -inf for edge in edges.get(None, ()))


def _without(
    by_clock: Mapping[Clock, tuple[Progression, ...]], clock: Clock
) -> dict[Clock | None, Sequence[Progression]]:
    return {other: several for other, several in by_clock.items() if other != clock}


def within(progression: Progression, edges: Sequence[Progression]) -> bool:
    """Say whether a progression lies entirely in the union of others.

    The k at which it meets another progression form a progression themselves. If one of these contains every k, the
    answer is yes; if their densities add up to less than one, it is no; otherwise each residue of the smallest is
    checked.

    >>> within((6, 1), ((4, 1), (4, 3))), within((6, 1), ((4, 1), (5, 0)))
    (True, False)
    """
    step, offset = progression
    if len(edges) == 1:
        [(other, shift)] = edges
        return step % other == 0 and (offset - shift) % other == 0
    met, density = [], 0.0
    for other, shift in edges:
        by = gcd(step, other)
        if (shift - offset) % by == 0:
            modulus = other // by
            if modulus == 1:
                return True
            met.append((modulus, by, shift))
            density += 1 / modulus
    if density < 1 - 1e-9:
        return False
    smallest = min(modulus for modulus, _, _ in met)
    meetings = [
        (modulus, (shift - offset) // by * pow(step // by, -1, modulus) % modulus) for modulus, by, shift in met
    ]
    return all(within((smallest, residue), meetings) for residue in range(smallest))


def _without_repeats(edges: Iterable[Progression]) -> tuple[Progression, ...]:
    """Drop the progressions that the others already contain, longest steps first."""
    kept = sorted({(step, offset % step) for step, offset in edges})
    for edge in reversed(kept.copy()):
        others = [other for other in kept if other != edge]
        if others and within(edge, others):
            kept = others
    return tuple(kept)


@dataclass(frozen=True, slots=True)
class Pieces:
    """The lengths of a segmentation's pieces: how many pieces of each length there are in a span of time."""

    span: int
    lengths: tuple[tuple[int, int], ...]
    """Pairs of a length and the number of pieces that have it."""

    @property
    def count(self) -> int:
        """Return the number of pieces in the span."""
        return sum(count for _, count in self.lengths)


def mean_length(segmentation: Segmentation) -> int | Fraction:
    """Return the range of a window, or the mean length of an instance of other segmentations.

    >>> mean_length(Slices(((2, 0), (3, 0))))
    Fraction(3, 2)
    """
    if not isinstance(segmentation, Slices):
        return segmentation.length
    return _mean_length(segmentation)


@lru_cache(maxsize=4096)
def _mean_length(slices: Slices) -> Fraction:
    pieces = pieces_of(slices.nominal)
    return Fraction(pieces.span, pieces.count)


def topological_key(segmentation: Segmentation) -> tuple[int | Fraction, int]:
    """Return a key that is smaller for everything that this one can read; no two can read each other."""
    if isinstance(segmentation, Growing):
        # Nothing reads it, and it reads pieces that refine its steps.
        return (segmentation.length, 2 * segmentation.length)
    if isinstance(segmentation, Session):
        # It reads pieces no longer than its gap, and sessions with a shorter gap.
        return (segmentation.gap, 3 * segmentation.gap)
    return (mean_length(segmentation), 0 if isinstance(segmentation, Slices) else segmentation.distance)


@lru_cache(maxsize=4096)
def pieces_of(edges: tuple[Progression, ...]) -> Pieces:
    """Measure the pieces between edges, over a whole period or over a limited number of edges from 0 on.

    >>> pieces_of(((2, 0), (3, 0)))
    Pieces(span=6, lengths=((1, 2), (2, 2)))
    """
    if len(edges) == 1:
        return Pieces(edges[0][0], ((edges[0][0], 1),))
    period = lcm(*(step for step, _ in edges))
    span = min(period, int(MOST_EDGES / sum(1 / step for step, _ in edges)))
    unit = gcd(*(part for edge in edges for part in edge))
    if span > unit * MOST_UNITS:
        found = sorted(set[int]().union(*(range(offset, span, step) for step, offset in edges)))
        if span == period:
            found.append(found[0] + period)
        return Pieces(found[-1] - found[0], tuple(sorted(Counter(map(sub, found[1:], found)).items())))
    marks = bytearray(-(-span // unit))
    for step, offset in edges:
        places = slice(offset // unit, None, step // unit)
        marks[places] = bytes([1]) * len(range(len(marks))[places])
    before, *gaps, after = map(len, marks.split(bytes([1])))
    if span == period:
        gaps.append(before + after)
    counts = sorted(Counter(gaps).items())
    lengths = tuple(((gap + 1) * unit, count) for gap, count in counts)
    return Pieces(sum(length * count for length, count in lengths), lengths)
