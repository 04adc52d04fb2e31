"""The extra cost of a query's states over plain numbers: of those that plans merge, and those of Spark's functions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from factor_windows.functions.aggregate import Aggregate
from factor_windows.functions.state import Weight

ACCURACY = 10_000
"""Spark's own default accuracy."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The extra cost of a row over one of numbers, in such rows, and the number of objects each event is added to."""

    states: float = 0.0
    objects: int = 0
    own: float = 0.0
    """The same for what Spark's own functions keep."""
    own_objects: int = 0

    @classmethod
    def of(cls, aggregates: Iterable[Aggregate]) -> Weights:
        """Add up the weights of several aggregates; equal states are kept once.

        >>> Weights.of([Aggregate.read("sum(v)")])
        Weights(states=0.0, objects=0, own=0.0, own_objects=0)
        >>> Weights.of([Aggregate.read("approx_percentile(v, 0.5)"), Aggregate.read("approx_percentile(v, 0.9)")])
        Weights(states=86.0, objects=1, own=22.0, own_objects=2)
        """
        states: dict[tuple[str, int], Weight] = {}
        own: list[Weight] = []
        for each in aggregates:
            merged = {(state.lift, _accuracy(each)): state.weight for state in each.states(time="t")}
            states |= merged
            if merged:
                own += [each.function.own_weight] if each.function.own_weight else merged.values()
        return cls(
            sum(weight.of(accuracy) - 1 for (_, accuracy), weight in states.items()),
            sum(weight.is_object for weight in states.values()),
            sum(weight.rows - 1 for weight in own),
            sum(weight.is_object for weight in own),
        )

    @property
    def of_own(self) -> Weights:
        """Return the weights where Spark's own functions run, instead of those of the states."""
        return Weights(self.own, self.own_objects, self.own, self.own_objects)


def _accuracy(aggregate: Aggregate) -> int:
    given = aggregate.constants.get("accuracy")
    return ACCURACY if given is None else int(given.name)
