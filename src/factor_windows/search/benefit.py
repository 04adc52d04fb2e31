"""What a factor window saves. Paper: Equation 2, and Algorithm 4 for tumbling windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from factor_windows.cost import Exact, PaperCost
from factor_windows.window import Window


@dataclass(frozen=True, slots=True)
class Place:
    """Where a factor window could go: between a window and its downstream windows (Paper: section IV-A).

    The virtual root counts as the paper's S<1, 1>, one unit long; reading from it costs what raw events cost.
    """

    above: Window | None
    below: Sequence[Window]
    cost: PaperCost
    instances: Exact = field(init=False)
    """Sum of n_j: the downstream instances within one period."""
    lengths: Exact = field(init=False)
    """Sum of n_j * r_j: their lengths together."""

    def __post_init__(self) -> None:
        counts = [self.cost.recurrence_count(window) for window in self.below]
        lengths = (count * window.range for count, window in zip(counts, self.below, strict=True))
        object.__setattr__(self, "instances", sum(counts))
        object.__setattr__(self, "lengths", sum(lengths))

    @property
    def upstream(self) -> Window:
        """Return the window above, or the virtual root as a window."""
        return self.above or Window(range=self.cost.unit, slide=self.cost.unit)

    @property
    def overlap(self) -> Fraction:
        """Sum n_j / m_j: how often the downstream instances read the period (Paper: Equation 4, lambda)."""
        return Fraction(self.lengths) / self.cost.period

    def benefit(self, factor: Window) -> Exact:
        """Return the cost without the factor window less the cost with it (Paper: Equation 2).

        The sum over the downstream windows is taken once for all candidates: it is linear in n_j and n_j * r_j.

        >>> ten, twenty, thirty = (Window(range=n, slide=n) for n in (10, 20, 30))
        >>> Place(None, (twenty, thirty), PaperCost(unit=1, rate=Fraction(1), period=120)).benefit(ten)
        Fraction(96, 1)
        """
        return self._cost_below(self.above) - self._cost_below(factor) - self.cost.of(factor, self.above)

    def _cost_below(self, parent: Window | None) -> Exact:
        if parent is None:
            return self.cost.rate * self.lengths / self.cost.unit
        return self.instances + Fraction(self.lengths - self.instances * parent.range) / parent.slide

    def pays(self, factor: Window) -> bool:
        """Say whether a tumbling factor window has no negative benefit (Paper: Algorithm 4).

        The paper's short cuts hold where the factor window is at least twice as long as what it reads. A raw event
        counts as a window of 1/rate units, so at rates below one they may not.
        """
        ratio = Fraction(factor.range, self.upstream.range) * (1 if self.above else self.cost.rate)
        if len(self.below) >= 2 and ratio >= 2:
            return True
        if self.overlap <= 1:
            return False
        return ratio >= self.overlap / (self.overlap - 1)
