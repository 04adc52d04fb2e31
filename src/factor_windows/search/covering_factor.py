"""The best factor window under "covered by". Paper: Algorithm 2."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from math import gcd

from factor_windows.algebra.window import Window
from factor_windows.cost.model import Cost
from factor_windows.search.benefit import Place
from factor_windows.search.divisors import divisors


def covering_candidates(place: Place, taken: Collection[Window]) -> Iterator[Window]:
    """List the windows that fit in between, for each slide only the shortest and the longest.

    The paper tries every range that is a multiple of the slide. For a given slide the benefit is a convex function of
    the range (a parabola that opens upwards), so its maximum is at one of the two ends.

    >>> from fractions import Fraction
    >>> from factor_windows.cost.paper import PaperCost
    >>> below = (Window(range=20, slide=10), Window(range=60, slide=20))
    >>> place = Place(None, below, PaperCost(unit=5, rate=Fraction(1), period=60))
    >>> [candidate.label for candidate in covering_candidates(place, taken=below)]
    ['10 microseconds', '10 microseconds / 5 microseconds', '15 microseconds / 5 microseconds']
    """
    above = place.upstream
    first = min(place.below, key=lambda window: window.range)
    parts = (part for w in place.below for part in (w.slide, w.offset - first.offset, w.range - first.range))
    widest = gcd(*parts)
    if widest % above.slide:
        return
    for factor in divisors(widest // above.slide):
        slide = factor * above.slide
        least = max(above.range + (place.above is not None or above.clock is None), slide)
        shortest = least + (first.range - least) % slide
        longest = first.range - slide
        if place.above is None and shortest % above.slide:
            continue
        while (
            shortest <= longest and Window(range=shortest, slide=slide, offset=first.offset, clock=first.clock) in taken
        ):
            shortest += slide
        while (
            shortest <= longest and Window(range=longest, slide=slide, offset=first.offset, clock=first.clock) in taken
        ):
            longest -= slide
        if shortest <= longest:
            yield Window(range=shortest, slide=slide, offset=first.offset, clock=first.clock)
        if shortest < longest:
            yield Window(range=longest, slide=slide, offset=first.offset, clock=first.clock)


def best_covering_factor(place: Place, taken: Collection[Window]) -> Window | None:
    """Return the factor window with the greatest benefit, or `None` if none has any."""
    best = None
    best_benefit: Cost = 0
    for candidate in covering_candidates(place, taken):
        benefit = place.benefit(candidate)
        if benefit > best_benefit:
            best, best_benefit = candidate, benefit
    return best
