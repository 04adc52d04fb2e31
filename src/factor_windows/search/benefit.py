"""What a factor window saves. Paper: Equation 2, and Algorithm 4 for tumbling windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from factor_windows.algebra.window import Window
from factor_windows.cost.model import Cost, CostModel
from factor_windows.cost.paper import PaperCost


@dataclass(frozen=True)
class Place:
    """A place for a factor window: between a window and its downstream windows (Paper: section IV-A).

    The virtual root counts as the paper's S<1, 1>, one unit long; reading from it costs as much as reading raw events.
    """

    above: Window | None
    below: Sequence[Window]
    cost: CostModel

    @cached_property
    def _counts(self) -> list[Cost]:
        # In most places no factor window fits, so nothing is counted until needed.
        return [self.cost.recurrence_count(window) for window in self.below]

    @cached_property
    def instances(self) -> Cost:
        """Sum of n_j: the downstream instances within one period."""
        return sum(self._counts)

    @cached_property
    def lengths(self) -> Cost:
        """Sum of n_j * r_j: their total length."""
        return sum(count * window.length for count, window in zip(self._counts, self.below, strict=True))

    @cached_property
    def spared(self) -> Cost:
        """How much less the downstream windows cost, apart from reads, if they read a window and not the raw events."""
        if self.above is not None:
            return 0
        overhead = self.cost.overhead
        return sum(overhead(window, None) - overhead(window, window) for window in self.below)

    @property
    def upstream(self) -> Window:
        """Return the window above, or the virtual root as a window."""
        if self.above is not None:
            return self.above
        # Raw events are finer than any tick: on a clock, they count as one per tick.
        clock = self.below[0].clock
        grain = self.cost.grain if clock is None else 1
        return Window(range=grain, slide=grain, clock=clock)

    def benefit(self, factor: Window) -> Cost:
        """Return the cost without the factor window minus the cost with it (Paper: Equation 2).

        The sum over the downstream windows is linear in n_j and n_j * r_j, so it is computed once for all candidates.

        >>> ten, twenty, thirty = (Window(range=n, slide=n) for n in (10, 20, 30))
        >>> Place(None, (twenty, thirty), PaperCost(unit=1, rate=Fraction(1), period=120)).benefit(ten)
        Fraction(96, 1)
        """
        return self._cost_below(self.above) - self._cost_below(factor) - self.cost.of(factor, self.above)

    def _cost_below(self, parent: Window | None) -> Cost:
        if parent is None:
            return self.cost.rate * self.lengths / self.cost.unit + self.spared
        spread = self.lengths - self.instances * parent.length
        reads = self.instances + (
            spread / parent.distance if isinstance(spread, float) else Fraction(spread) / parent.distance
        )
        return self.cost.filled(parent) * reads * self.cost.weight(parent)

    def pays(self, factor: Window) -> bool:
        """Say whether a tumbling factor window's benefit is not negative; for the paper's costs, by its Algorithm 4."""
        if isinstance(self.cost, PaperCost):
            return self._pays_by_algorithm_4(factor, self.cost)
        return self.benefit(factor) >= 0

    def _pays_by_algorithm_4(self, factor: Window, cost: PaperCost) -> bool:
        """Decide from the ratio of the ranges and from lambda, the sum of n_j / m_j (Paper: Equation 4).

        The paper's shortcut for K >= 2 holds if the factor window is at least twice as long as its input. A raw event
        counts as a window of 1/rate units, so at rates below one this may not be the case.
        """
        above = self.above.length if self.above else cost.unit
        ratio = Fraction(factor.length, above) * (1 if self.above else cost.rate)
        if len(self.below) >= 2 and ratio >= 2:
            return True
        overlap = Fraction(self.lengths) / cost.period
        return overlap > 1 and ratio >= overlap / (overlap - 1)
