"""Spark's prices for each kind of work; `factor-windows calibrate` measures them again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from factor_windows.errors import OptionError


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in nanoseconds of wall time; plans depend on their ratios.

    >>> Prices(update=50.0, scan=100.0).relative("scan")
    2.0
    """

    scan: float = 22.0
    """Reading one event."""
    update: float = 15.0
    """Adding one event to one instance: exploding it, and updating a hash table."""
    explode: float = 70.0
    """Making several rows of one event, if it belongs to several instances at once, however many these are."""
    merge: float = 70.0
    """The same for one row of partial results."""
    crowded: float = 40.0
    """The surcharge of an update where there are keys, or too many groups for Spark's fast hash table."""
    shuffle: float = 230.0
    """Shuffling one row to its group."""
    group: float = 280.0
    """Emitting one row from an aggregation, merged from the rows shuffled there."""
    edge: float = 3.0
    """Testing one more progression of edges to find the slice of a row."""
    clock: float = 150.0
    """Finding the local day, or month, of one event or row in a zone, and when it started."""
    window: float = 35.0
    """Computing one of Spark's own windows for one event, where the query runs unchanged."""
    slot: float = 2.0
    """Testing whether one event belongs to one more slot of a pane row."""
    state: float = 5.0
    """Adding one event to one more partial state."""
    collect: float = 350.0
    """Adding one event, or one counted value, to a function that needs all values: a percentile, or the mode."""
    object: float = 700.0
    """Adding one event to a state that is an object, such as a sketch or a list: events are sorted by group for it."""
    stage: float = 100_000_000.0
    """Planning and starting one step of any size, including some of the time its code takes on its first run."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1e18:
                raise OptionError(f"price {field.name} {value!r} is not a number of nanoseconds")
        if self.update <= 0:
            raise OptionError(f"price update {self.update!r} is not positive; all others are compared with it")

    def relative(self, name: str) -> float:
        """Return a price in updates, the unit for comparing plans."""
        return float(getattr(self, name)) / self.update

    def total(self, counts: Mapping[str, float]) -> float:
        """Return the time that the counted work takes, in nanoseconds.

        >>> Prices(update=50.0, scan=100.0).total({"update": 3, "scan": 2})
        350.0
        """
        return sum(count * float(getattr(self, name)) for name, count in counts.items())

    def save(self, path: Path) -> None:
        """Write the prices to a small file."""
        path.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Prices:
        """Read prices that `save` wrote."""
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            raise OptionError(f"{str(path)!r} is not a price file; `factor-windows calibrate` writes one") from None
