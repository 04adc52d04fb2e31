"""Statistics of a stream: measured by `analyze`, used by `optimize`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from math import inf


@dataclass(frozen=True, slots=True)
class Look:
    """The result of a quick look at events: how many there are, how many per second, and of how many keys."""

    events: float = inf
    rate: float | None = None
    keys: int | None = None
    values: tuple[float, ...] = ()
    """The number of values a key has, of each that a function counts."""
    crowding: float = field(default=1.0, repr=False, compare=False)
    """The number of events of a mean event's key, relative to a mean key's: 1 if all keys have the same number."""

    def __str__(self) -> str:
        """Describe the look in a few words.

        >>> print(Look(3_034_526, 17.5, 45), Look(5_000), Look(), sep="; ")
        3,034,526 events, 17.5 a second, 45 keys; 5,000 events; an unknown number of events
        """
        found = [f"{self.events:,.0f} events" if self.events < inf else "an unknown number of events"]
        if self.rate is not None:
            found += [f"{self.rate:,.4g} a second", f"{self.keys:,} key{'s' * (self.keys != 1)}"]
        found += [f"{number:,.3g} value{'s' * (number != 1)} of a key" for number in self.values]
        return ", ".join(found)


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of a stream; `rate` is in events per second, over all keys."""

    events: int
    keys: int
    span: timedelta
    sampled: float
    """The share of the events that was sampled."""
    combinations: Mapping[frozenset[str], int] = field(default_factory=dict)
    """The number of combinations of each set of keys that one of several queries groups by."""
    selectivity: Mapping[str, float] = field(default_factory=dict)
    """The share of the events that each of several queries selects."""

    @property
    def rate(self) -> float:
        """Return the events per second."""
        return self.events / max(self.span.total_seconds(), 1e-6)

    @property
    def events_per_key(self) -> float:
        """Return the mean number of events per key."""
        return self.events / max(self.keys, 1)
