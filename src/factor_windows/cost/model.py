"""The cost of a plan: the interface of every cost model, and the numbers they count in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

from factor_windows.algebra.graph import Node
from factor_windows.algebra.slices import Segmentation, common_step
from factor_windows.algebra.window import Duration, duration
from factor_windows.errors import OptionError
from factor_windows.query import Query

Rate = int | float | Fraction
Cost = int | Fraction | float
"""The paper's costs are exact, and whole ones stay int, which is much faster than a fraction; Spark's are float."""


def share(part: Cost, whole: Cost) -> float:
    """Divide two costs that may be far too large for a float."""
    if type(part) is int and type(whole) is int:
        return part / whole
    if isinstance(part, float) or isinstance(whole, float):
        return float(part / whole)
    return part.numerator * whole.denominator / (part.denominator * whole.numerator)


class CostModel(ABC):
    """Prices the edges of a plan: (instances of the child) x (what one of them reads), plus overhead."""

    __slots__ = ()
    name: ClassVar[str]
    unit: int
    """The unit of time for rates, in microseconds."""
    rate: Cost
    """The number of events per unit."""

    @property
    @abstractmethod
    def grain(self) -> int:
        """Return the length of the virtual root's instances; factor windows below it have multiples of it."""

    @abstractmethod
    def recurrence_count(self, segmentation: Segmentation) -> Cost:
        """Count the instances in the time span that costs refer to."""

    @abstractmethod
    def instance_cost(self, segmentation: Segmentation, parent: Segmentation | None) -> Cost:
        """Count what one instance reads: raw events, or filled instances of its parent."""

    @abstractmethod
    def price(self, node: Node, parent: Node | None) -> Cost:
        """Return the cost of an edge in the time span that costs refer to, for any keys of its ends."""

    def price_each(self, node: Node, parents: Sequence[Node]) -> list[Cost]:
        """Return the cost of the edge from each parent."""
        return [self.price(node, parent) for parent in parents]

    def filled(self, segmentation: Segmentation) -> Cost:
        """Return the share of instances that contain at least one event."""
        return 1

    def weight(self, parent: Segmentation | None) -> Cost:
        """Return the cost of one read, of a raw event or of a row of a parent."""
        return 1

    def overhead(self, segmentation: Segmentation, parent: Segmentation | None) -> Cost:
        """Return the cost of an edge apart from its reads; it is the same for all parents except the raw events."""
        return 0

    def of(self, segmentation: Segmentation, parent: Segmentation | None) -> Cost:
        """Return the cost of an edge in the time span that costs refer to, if both ends have the same keys."""
        reads = self.recurrence_count(segmentation) * self.instance_cost(segmentation, parent)
        return reads * self.weight(parent) + self.overhead(segmentation, parent)

    def naive(self, node: Node) -> Cost:
        """Return the cost of a node computed alone from the raw events, as the engine does without a plan."""
        return self.price(node, None)


def unit_of(query: Query, unit: Duration | None) -> int:
    """Return the unit of time in microseconds: as given, or a length that all lengths are multiples of."""
    length = common_step(query.names) if unit is None else duration(unit)
    if length <= 0:
        raise OptionError(f"unit {unit!r} is not positive; it is the time in which `rate` events arrive")
    return length


def positive(option: str, value: Rate | None) -> Fraction | None:
    """Read a number of events or keys, which must be positive."""
    if value is None:
        return None
    try:
        exact = Fraction(value) if isinstance(value, int) else Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        exact = Fraction(0)
    if exact <= 0:
        meaning = {"rate": "events per unit of time", "keys": "combinations of keys", "values": "values of a key"}[
            option
        ]
        raise OptionError(f"{option} {value!r} is not a positive number; it is the number of {meaning}")
    return exact
