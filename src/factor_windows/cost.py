"""What a plan costs: the paper's model, in exact arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from factor_windows.coverage import multiplier
from factor_windows.errors import OptionError
from factor_windows.query import Query
from factor_windows.window import Duration, Window, common_step, duration

Rate = int | float | Fraction
Exact = int | Fraction
"""A number without rounding; whole ones stay int, which is much quicker."""


@dataclass(frozen=True, slots=True)
class PaperCost:
    """The number of inputs that all instances within one period read (Paper: section III-B).

    >>> cost = PaperCost(unit=1, rate=Fraction(1), period=120)
    >>> ten, twenty = Window(range=10, slide=10), Window(range=20, slide=20)
    >>> cost.of(ten, None), cost.of(twenty, ten)
    (Fraction(120, 1), 12)
    """

    unit: int
    """The paper's unit of time, in microseconds."""
    rate: Fraction
    """Events per unit: the paper's eta."""
    period: int
    """The paper's R: the least common multiple of the query's ranges, in microseconds."""

    @classmethod
    def of_query(cls, query: Query, *, rate: Rate | None = None, unit: Duration | None = None) -> PaperCost:
        """Choose the period from the query's windows, and the unit too if none is given."""
        windows = tuple(query.names)
        length = common_step(windows) if unit is None else duration(unit)
        if length <= 0:
            raise OptionError(f"unit {unit!r} is not positive; it is the time in which `rate` events arrive")
        return cls(unit=length, rate=_exact_rate(rate), period=lcm(*(window.range for window in windows)))

    def recurrence_count(self, window: Window) -> Exact:
        """Count the instances within one period (Paper: Equation 1); no whole number if the slide does not fit."""
        whole, rest = divmod(self.period - window.range, window.slide)
        return 1 + whole if rest == 0 else 1 + whole + Fraction(rest, window.slide)

    def instance_cost(self, window: Window, parent: Window | None) -> Exact:
        """Count what one instance reads: raw events, or instances of its parent (Paper: Observation 1)."""
        if parent is None:
            return self.rate * window.range / self.unit
        return multiplier(parent, window)

    def of(self, window: Window, parent: Window | None) -> Exact:
        """Count what all instances within one period read."""
        return self.recurrence_count(window) * self.instance_cost(window, parent)


def _exact_rate(rate: Rate | None) -> Fraction:
    if rate is None:
        return Fraction(1)
    try:
        exact = Fraction(str(rate))
    except ValueError:
        exact = Fraction(0)
    if exact <= 0:
        raise OptionError(f"rate {rate!r} is not a positive number; it is the number of events per unit of time")
    return exact
