"""What is known about a stream: measured by `analyze`, used by `optimize`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a stream looks like; `rate` is in events per second, over all keys together."""

    events: int
    keys: int
    span: timedelta
    sampled: float
    """The share of the events that was looked at."""
    combinations: Mapping[frozenset[str], int] = field(default_factory=dict)
    """How many combinations there are of each set of keys that one of several queries groups by."""
    selectivity: Mapping[str, float] = field(default_factory=dict)
    """What share of the events each of several queries is about."""

    @property
    def rate(self) -> float:
        """Return the events per second."""
        return self.events / max(self.span.total_seconds(), 1e-6)

    @property
    def events_per_key(self) -> float:
        """Return the mean number of events that a key has."""
        return self.events / max(self.keys, 1)
