"""What a plan costs: the paper's model in exact arithmetic, and one in rows per unit of time for Spark."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import expm1, lcm
from typing import ClassVar, Protocol

from factor_windows.coverage import multiplier
from factor_windows.errors import OptionError
from factor_windows.query import Query
from factor_windows.window import Duration, Window, common_step, duration

Rate = int | float | Fraction
Cost = int | Fraction | float
"""The paper's costs are exact, and whole ones stay int, which is much quicker than a fraction; Spark's are float."""

DENSE = 100
"""How many events a key has in the windows' greatest common divisor of time, if nobody says."""


class CostModel(Protocol):
    """Prices the edges of a plan. An edge costs (instances of the child) x (what one of them reads)."""

    name: ClassVar[str]

    @property
    def unit(self) -> int:
        """Return the unit of time that rates are given in, in microseconds."""

    @property
    def rate(self) -> Cost:
        """Return the number of events per unit."""

    @property
    def grain(self) -> int:
        """Return the length of the virtual root's instances, of which factor windows below it are multiples."""

    def recurrence_count(self, window: Window) -> Cost:
        """Count the instances in the time that costs are about."""

    def filled(self, window: Window) -> Cost:
        """Return the share of the window's instances that hold any event."""

    def instance_cost(self, window: Window, parent: Window | None) -> Cost:
        """Count what one instance reads: raw events, or filled instances of its parent."""

    def of(self, window: Window, parent: Window | None) -> Cost:
        """Count what all instances read in the time that costs are about."""


@dataclass(frozen=True, slots=True)
class PaperCost:
    """The number of inputs that all instances within one period read (Paper: section III-B).

    >>> cost = PaperCost(unit=1, rate=Fraction(1), period=120)
    >>> ten, twenty = Window(range=10, slide=10), Window(range=20, slide=20)
    >>> cost.of(ten, None), cost.of(twenty, ten)
    (Fraction(120, 1), 12)
    """

    name: ClassVar[str] = "paper"
    unit: int
    """The paper's unit of time, in microseconds."""
    rate: Fraction
    """Events per unit: the paper's eta."""
    period: int
    """The paper's R: the least common multiple of the query's ranges, in microseconds."""

    @classmethod
    def of_query(
        cls, query: Query, *, rate: Rate | None = None, unit: Duration | None = None, keys: int | None = None
    ) -> PaperCost:
        """Choose the period from the query's windows; the paper's model has no use for the number of keys."""
        period = lcm(*(window.range for window in query.names))
        return cls(unit=_unit(query, unit), rate=_positive("rate", rate) or Fraction(1), period=period)

    @property
    def grain(self) -> int:
        """Return the unit: the paper's virtual root is S<1, 1>."""
        return self.unit

    def filled(self, window: Window) -> Cost:
        """Return one: the paper's streams have an event in every instance."""
        return 1

    def recurrence_count(self, window: Window) -> Cost:
        """Count the instances within one period (Paper: Equation 1); no whole number if the slide does not fit."""
        whole, rest = divmod(self.period - window.range, window.slide)
        return 1 + whole if rest == 0 else 1 + whole + Fraction(rest, window.slide)

    def instance_cost(self, window: Window, parent: Window | None) -> Cost:
        """Count what one instance reads: raw events, or instances of its parent (Paper: Observation 1)."""
        if parent is None:
            return self.rate * window.range / self.unit
        return multiplier(parent, window)

    def of(self, window: Window, parent: Window | None) -> Cost:
        """Count what all instances within one period read."""
        return self.recurrence_count(window) * self.instance_cost(window, parent)


@dataclass(frozen=True, slots=True)
class SparkCost:
    """The number of rows read per unit of time: by keys, and only for instances that hold an event.

    >>> cost = SparkCost(unit=1_000_000, rate=100.0, keys=20.0)
    >>> ten, twenty = (Window(range=seconds * 1_000_000, slide=seconds * 1_000_000) for seconds in (10, 20))
    >>> cost.of(ten, None), round(cost.of(twenty, ten), 3)
    (100.0, 2.0)
    """

    name: ClassVar[str] = "spark"
    unit: int
    rate: float
    """Events per unit, of all keys together."""
    keys: float
    """How many combinations of keys there are."""
    assumed: bool = False
    """Whether nobody gave the rate, so that a dense stream is assumed."""

    @classmethod
    def of_query(
        cls, query: Query, *, rate: Rate | None = None, unit: Duration | None = None, keys: int | None = None
    ) -> SparkCost:
        """Take the statistics as given, and assume a dense stream where they are not."""
        length = _unit(query, unit)
        number_of_keys = float(_positive("keys", keys) or 1)
        given = _positive("rate", rate)
        dense = DENSE * number_of_keys * length / common_step(tuple(query.names))
        return cls(length, float(given or dense), number_of_keys, assumed=given is None)

    @property
    def grain(self) -> int:
        """Return one microsecond: raw events have no instances that a factor window would have to fit."""
        return 1

    def recurrence_count(self, window: Window) -> float:
        """Count the instances that end in a unit of time, for all keys."""
        return self.keys * self.unit / window.slide

    def filled(self, window: Window) -> float:
        """Return the chance that an instance holds an event, if events come independently of each other."""
        return -expm1(-self.rate / self.keys * window.range / self.unit)

    def instance_cost(self, window: Window, parent: Window | None) -> float:
        """Count the rows that one instance reads."""
        if parent is None:
            return self.rate / self.keys * window.range / self.unit
        return multiplier(parent, window) * self.filled(parent)

    def of(self, window: Window, parent: Window | None) -> float:
        """Count the rows that a window reads per unit of time."""
        return self.recurrence_count(window) * self.instance_cost(window, parent)


def _unit(query: Query, unit: Duration | None) -> int:
    length = common_step(tuple(query.names)) if unit is None else duration(unit)
    if length <= 0:
        raise OptionError(f"unit {unit!r} is not positive; it is the time in which `rate` events arrive")
    return length


def _positive(option: str, value: Rate | None) -> Fraction | None:
    if value is None:
        return None
    try:
        exact = Fraction(value) if isinstance(value, int) else Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        exact = Fraction(0)
    if exact <= 0:
        meaning = {"rate": "events per unit of time", "keys": "combinations of keys"}[option]
        raise OptionError(f"{option} {value!r} is not a positive number; it is the number of {meaning}")
    return exact
