"""Windows that grow: an instance for every step of a period, from the period's start to the step's end."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from html import escape

from factor_windows.algebra.clock import empty_days, first_day
from factor_windows.algebra.window import Window


@dataclass(frozen=True, slots=True)
class Growing:
    """A window that grows by a step until its period is full, then starts over: month-to-date by days, or CUMULATE.

    Several instances have the same start, so an instance is identified by the start of its last step.

    >>> by_four = Growing(Window(range=12, slide=12), Window(range=4, slide=4))
    >>> by_four.starts_of(5), [by_four.bounds_of(last_step) for last_step in by_four.starts_of(5)]
    ((4, 8), [(0, 8), (0, 12)])
    """

    period: Window
    step: Window
    name: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.label)

    def _repr_html_(self) -> str:
        """Show the window in a notebook."""
        return f"<b>{escape(self.name)}</b>: from the start of {self.period.label} to the end of each {self.step.label}"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    @property
    def label(self) -> str:
        """Describe the window; this is its default name."""
        length, bracket, zone = self.period.label.partition(" [")
        length, at, offset = (length, "", "") if bracket else length.partition(" @ ")
        step = self.step.label.partition(" [")[0].partition(" @ ")[0]
        return f"{length} + {step}{at}{offset}{bracket}{zone}"

    @property
    def parts(self) -> tuple[Window, ...]:
        """List the windows that describe this one."""
        return self.period, self.step

    @property
    def is_tumbling(self) -> bool:
        """Return false: instances overlap, as all but the first of a period contain the one before."""
        return False

    @property
    def length(self) -> int:
        """Return the mean length of an instance, in microseconds: half a period plus half a step."""
        return (self.period.length + self.step.length) // 2

    @property
    def distance(self) -> int:
        """Return the mean time from the end of one instance to the end of the next."""
        return self.step.distance

    @property
    def longest(self) -> int:
        """Return a length in microseconds that no instance exceeds."""
        return self.period.longest

    @property
    def skips(self) -> tuple[int, ...]:
        """List the ticks that are not steps of their own, because the place skipped these days."""
        clock = self.step.clock
        return empty_days(clock.zone) if clock and clock.unit == "day" and self.step.slide == 1 else ()

    @property
    def steps(self) -> int:
        """Return the largest number of steps in a period."""
        if self.step.clock == self.period.clock:
            return self.period.range // self.step.range
        return _most_days(self.period.range)

    def starts_of(self, time: int) -> tuple[int, ...]:
        """List the starts of the last steps of the instances that contain the time, up to the end of the period."""
        [begin] = self.period.starts_of(time)
        _, end = self.period.bounds_of(begin)
        [step] = self.step.starts_of(time)
        found = []
        while step < end:
            found.append(step)
            step = self.step.bounds_of(step)[1]
        return tuple(dict.fromkeys(found))

    def bounds_of(self, start: int) -> tuple[int, int]:
        """Return the start and the end of the instance whose last step starts at `start`."""
        return self.period.starts_of(start)[0], self.step.bounds_of(start)[1]


@lru_cache(maxsize=256)
def _most_days(months: int) -> int:
    """Return the largest number of days in this many consecutive months.

    >>> _most_days(1), _most_days(3), _most_days(12)
    (31, 92, 366)
    """
    return max(first_day(month + months) - first_day(month) for month in range(360, 360 + 48))
