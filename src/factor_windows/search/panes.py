"""Candidates for hidden nodes: tumbling windows, hopping windows, and slices of some of the windows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import combinations
from math import gcd

from factor_windows.algebra.clock import Clock, constant_offset
from factor_windows.algebra.slices import Progression, Segmentation, Slices, edges_of, refines, slices_of
from factor_windows.algebra.window import Window
from factor_windows.functions.table import Kind
from factor_windows.search.divisors import divisors

MOST_TUMBLING = 300
"""The most tumbling windows to consider; the paper's sets of 20 windows have fewer than a hundred."""
MOST_RUNGS = 16
"""The most hopping windows to consider below one that the user asks for, if there are few of these."""
ALL_RUNGS = 80
"""The most hopping windows to consider below all that the user asks for, but at least three for each."""
FEW_SLIDES = 4
"""The most windows for which slices of every subset are considered."""
MOST_SLIDES = 100
"""Windows with more slides get no common slices: finding the slice of an event would take too long."""
MOST_SLICES = 16
"""The number of slicings to consider first; more, fitted to their readers, come later."""


def common_panes(windows: Sequence[Window]) -> tuple[Window, ...]:
    """List the longest tumbling windows that suit each subset of the windows.

    A cheapest tree with tumbling factor windows needs no others: a shorter one than the longest that refines its
    readers can be lengthened to that, which costs as much to compute and less to read (docs/theory.md).

    >>> [window.range for window in common_panes([Window(range=n, slide=n) for n in (12, 18, 20)])]
    [2, 4, 6, 12, 18, 20]
    """
    by_clock: dict[Clock | None, set[Window]] = {}
    for window in windows:
        by_clock.setdefault(window.clock, set()).add(own_pane(window))
    for clock in [clock for clock in by_clock if clock and clock.unit == "month"]:
        # Months are made of days.
        if constant_offset(clock.zone) == 0:
            by_clock.setdefault(None, set()).add(Window(clock.days.length, clock.days.length))
        else:
            by_clock.setdefault(clock.days, set()).add(Window(1, 1, clock=clock.days))
    panes = (pane for own in by_clock.values() for pane in _closed(own))
    return tuple(sorted(panes, key=lambda window: (window.length, window.offset, window.label)))


def _closed(own: Collection[Window]) -> set[Window]:
    """Add common panes of several panes on one clock, until there are no new ones."""
    clock = next(iter(own)).clock
    given = {(pane.range, pane.offset) for pane in own}
    found = newest = given
    while newest and len(found) < MOST_TUMBLING:
        newest = {_merged(one, other) for one in newest for other in given} - found
        found = found | newest
    return {Window(range=length, slide=length, offset=offset, clock=clock) for length, offset in found}


def own_pane(window: Window) -> Window:
    """Return the longest tumbling window that partitions a window.

    >>> own_pane(Window(range=60, slide=25, offset=7)).label
    '5 microseconds @ 2 microseconds'
    """
    length = gcd(window.range, window.slide)
    return Window(range=length, slide=length, offset=window.offset, clock=window.clock)


def _merged(one: Progression, other: Progression) -> Progression:
    """Return the length and the offset of the longest tumbling window that partitions two others.

    >>> _merged((12, 0), (20, 2))
    (2, 0)
    """
    length = gcd(one[0], other[0], one[1] - other[1])
    return length, one[1] % length


def ladders(windows: Iterable[Window], kind: Kind) -> tuple[Window, ...]:
    """List hopping windows on the way up to each hopping window: with its slide, or its pane's, and shorter ranges.

    Ranges divide the window's, so that each rung tiles it; overlap-safe functions do not need this.
    """
    found: dict[Window, None] = {}
    hopping = [window for window in windows if not window.is_tumbling]
    most = max(3, min(MOST_RUNGS, ALL_RUNGS // max(1, len(hopping))))
    for window in hopping:
        for step in {window.slide, gcd(window.range, window.slide)}:
            if window.range % step == 0:
                for times in _rungs(window.range // step, kind, most):
                    found[Window(range=times * step, slide=step, offset=window.offset, clock=window.clock)] = None
    return tuple(found)


def _rungs(count: int, kind: Kind, most: int) -> list[int]:
    """List the lengths of the rungs in slides: an even choice of the divisors, or of products of 2 and 3."""
    rungs = {times for times in divisors(count) if 1 < times < count}
    if kind is Kind.OVERLAP_SAFE:
        rungs |= {two * three for two in _powers(2, count) for three in _powers(3, count) if 1 < two * three < count}
    ordered = sorted(rungs)
    if len(ordered) <= most:
        return ordered
    last = len(ordered) - 1
    return [ordered[place * last // (most - 1)] for place in range(most)]


def _powers(base: int, limit: int) -> Iterator[int]:
    power = 1
    while power < limit:
        yield power
        power *= base


def slicings(windows: Sequence[Window], panes: Iterable[Window]) -> tuple[Segmentation, ...]:
    """List slices of useful subsets.

    For few windows: of every subset. For more: of all, of all except those with the shortest slides, of those that have
    a pane in common, and of each single window whose range is not a multiple of its slide.
    """
    by_slide = sorted(windows, key=lambda window: (window.distance, window.length, window.offset, window.label))
    subsets: list[Sequence[Window]] = []
    if len(by_slide) <= FEW_SLIDES:
        for size in range(1, len(by_slide) + 1):
            subsets += combinations(by_slide, size)
    else:
        step = -(-len(by_slide) // (MOST_SLICES // 2))
        subsets += [by_slide[first:] for first in range(0, len(by_slide) - 1, step)]
        for pane in sorted(panes, key=lambda pane: (-pane.length, pane.offset)):
            if len(subsets) < MOST_SLICES:
                subset = [window for window in by_slide if refines(pane, window)]
                subsets += [subset] if len(subset) > 1 else []
        odd = [window for window in by_slide if window.range % window.slide]
        subsets += [[window] for window in odd[:MOST_SLICES]]
    few_edges = (subset for subset in subsets if len({window.slide for window in subset}) <= MOST_SLIDES)
    found = dict.fromkeys(slices_of(subset) for subset in few_edges)
    return tuple(dict.fromkeys(each for slices in found for each in _with_grid(slices)))


def _with_grid(slices: Segmentation) -> Iterator[Segmentation]:
    """Pair slices of calendars with finer ones, whose recent edges are found without a clock."""
    yield slices
    edges = edges_of(slices)
    if isinstance(slices, Window) and slices.clock is not None:
        slices = Slices((), ((slices.clock, (slices.slide, slices.offset)),))
    if isinstance(slices, Slices) and any(clock is not None for clock in edges):
        yield slices.on_a_grid
