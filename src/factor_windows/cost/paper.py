"""The paper's cost model, in exact arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import ClassVar

from factor_windows.algebra.coverage import fewest, multiplier
from factor_windows.algebra.graph import Node
from factor_windows.algebra.growing import Growing
from factor_windows.algebra.session import Session
from factor_windows.algebra.slices import Segmentation, Slices, mean_length, pieces_of
from factor_windows.algebra.window import Duration, Window
from factor_windows.cost.model import Cost, CostModel, Rate, positive, unit_of
from factor_windows.query import Query


@dataclass(frozen=True, slots=True)
class PaperCost(CostModel):
    """The number of inputs that all instances within one period read (Paper: section III-B).

    >>> from factor_windows.algebra.window import Window
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
    sparse_covers: bool = False
    """Whether an instance reads the fewest of its parent's that make it up, or all inside it, as in the paper."""

    @classmethod
    def of_query(
        cls,
        query: Query,
        *,
        rate: Rate | None = None,
        unit: Duration | None = None,
        keys: int | None = None,
        sparse_covers: bool = False,
    ) -> PaperCost:
        """Choose the period from the query's windows; the paper's model does not use the number of keys."""
        period = lcm(
            *(window.period.length if isinstance(window, Growing) else window.length for window in query.names)
        )
        return cls(unit_of(query, unit), positive("rate", rate) or Fraction(1), period, sparse_covers)

    @property
    def grain(self) -> int:
        """Return the unit: the paper's virtual root is S<1, 1>."""
        return self.unit

    def recurrence_count(self, segmentation: Segmentation) -> Cost:
        """Count the instances within one period (Paper: Equation 1); not a whole number if the slide does not fit."""
        if isinstance(segmentation, Slices):
            pieces = pieces_of(segmentation.nominal)
            return Fraction(self.period * pieces.count, pieces.span)
        if isinstance(segmentation, Growing | Session):
            return Fraction(self.period, segmentation.distance)
        whole, rest = divmod(self.period - segmentation.length, segmentation.distance)
        return 1 + whole if rest == 0 else 1 + whole + Fraction(rest, segmentation.distance)

    def instance_cost(self, segmentation: Segmentation, parent: Segmentation | None) -> Cost:
        """Count what one instance reads: raw events, or instances of its parent (Paper: Observation 1)."""
        if parent is None:
            return self.rate * mean_length(segmentation) / self.unit
        reads = self._instances_read(segmentation, parent)
        return Fraction(mean_length(segmentation)) / mean_length(parent) if reads is None else reads

    def _instances_read(self, segmentation: Segmentation, parent: Segmentation) -> int | None:
        """Count the instances of the parent that one instance reads, if both are windows of one clock."""
        if not isinstance(segmentation, Window) or not isinstance(parent, Window) or segmentation.clock != parent.clock:
            return None
        return fewest(parent, segmentation) if self.sparse_covers else multiplier(parent, segmentation)

    def of(self, segmentation: Segmentation, parent: Segmentation | None) -> Cost:
        return self.recurrence_count(segmentation) * self.instance_cost(segmentation, parent)

    def price_each(self, node: Node, parents: Sequence[Node]) -> list[Cost]:
        """Price all edges, counting the node's instances once, and its reads where they depend on lengths alone."""
        count, own = self.recurrence_count(node.window), node.window
        in_all = Fraction(count * mean_length(own))
        reads = [self._instances_read(own, parent.window) for parent in parents]
        return [
            in_all / mean_length(parent.window) if number is None else count * number
            for parent, number in zip(parents, reads, strict=True)
        ]

    def price(self, node: Node, parent: Node | None) -> Cost:
        """Count what all instances within one period read; the paper has no keys."""
        return self.of(node.window, parent.window if parent else None)
