"""The best factor window under "partitioned by". Paper: Algorithm 5."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from math import gcd

from factor_windows.algebra.window import Window
from factor_windows.search.benefit import Place
from factor_windows.search.divisors import divisors


def partitioning_candidates(place: Place) -> Iterator[Window]:
    """List the tumbling windows that fit in between, longest first.

    The paper's printed algorithm only requires the range to divide the ranges below; Theorem 4 also needs it to divide
    their slides and, with offsets, the distances between their offsets.

    >>> from fractions import Fraction
    >>> from factor_windows.cost.paper import PaperCost
    >>> below = (Window(range=20, slide=20), Window(range=30, slide=30))
    >>> place = Place(None, below, PaperCost(unit=1, rate=Fraction(1), period=120))
    >>> [candidate.range for candidate in partitioning_candidates(place)]
    [10, 5, 2]
    """
    step, clock = place.upstream.slide, place.below[0].clock
    first = place.below[0].offset
    longest = gcd(*(part for w in place.below for part in (w.range, w.slide, w.offset - first)))
    # Raw events are finer than a tick, so a window of one tick is not a copy of them.
    if longest % step == 0 and (longest > step or (clock is not None and place.above is None)):
        yield Window(range=longest, slide=longest, offset=first, clock=clock)
        for factor in divisors(longest // step)[1:-1]:
            yield Window(range=factor * step, slide=factor * step, offset=first, clock=clock)


def best_partitioning_factor(place: Place, taken: Collection[Window]) -> Window | None:
    """Return the best tumbling factor window, or `None` if none is worth adding.

    Every candidate covers the longest one, so the paper's pruning leaves only the longest; and since Theorem 9's
    comparison comes down to the longer range, no candidate could beat it. The shorter ones are never made.
    """
    longest = next(partitioning_candidates(place), None)
    return longest if longest is not None and longest not in taken and place.pays(longest) else None
