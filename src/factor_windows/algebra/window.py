"""Windows in whole microseconds, or in ticks of a calendar's clock, and the durations that define them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from fractions import Fraction
from functools import lru_cache
from html import escape

from factor_windows.algebra.clock import Clock, empty_days, first_day
from factor_windows.errors import WindowError

Duration = str | timedelta

MICROSECONDS = {
    "week": 604_800_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
_SHORT = {
    "w": "week",
    "d": "day",
    "h": "hour",
    "hr": "hour",
    "m": "minute",
    "min": "minute",
    "s": "second",
    "sec": "second",
    "ms": "millisecond",
    "milli": "millisecond",
    "us": "microsecond",
    "µs": "microsecond",
    "μs": "microsecond",
    "micro": "microsecond",
}
_LONGEST = 10_000 * 365 * 86_400_000_000
_TERM = re.compile(r"(\d{1,30}(?:\.\d{1,30})?)\s*([^\W\d_]+)\s*")


def duration(value: Duration) -> int:
    """Read a duration as whole microseconds.

    >>> duration("1 hour 30 minutes")
    5400000000
    >>> duration("90s") == duration(timedelta(seconds=90))
    True
    """
    if isinstance(value, timedelta):
        return _bounded(value // timedelta(microseconds=1), value)
    if not isinstance(value, str):
        raise WindowError(f"duration {value!r} has no unit; write it as text such as '20 minutes' or as a timedelta")
    text = value.strip()
    sign = -1 if text.startswith("-") else 1
    rest = text.removeprefix("-").lstrip()
    total = Fraction(0)
    position = 0
    while term := _TERM.match(rest, position):
        number, unit = term.groups()
        total += Fraction(number) * MICROSECONDS[_unit(unit, value)]
        position = term.end()
    if position == 0 or position < len(rest):
        raise WindowError(
            f"duration {value!r} cannot be read; write a number and a unit, such as '20 minutes' or '1h 30m'"
        )
    if total.denominator != 1:
        raise WindowError(f"duration {value!r} is not a whole number of microseconds, the finest resolution")
    return _bounded(sign * int(total), value)


def _bounded(microseconds: int, value: Duration) -> int:
    if abs(microseconds) > _LONGEST:
        raise WindowError(f"duration {value!r} is too long; the longest is {readable(_LONGEST)}")
    return microseconds


def unit_word(text: str, short: Mapping[str, str]) -> str:
    """Return the singular of a unit, which may be in the plural or abbreviated.

    >>> unit_word("Hours", _SHORT), unit_word("ms", _SHORT), unit_word("mins", _SHORT)
    ('hour', 'millisecond', 'minute')
    """
    lowered = text.lower()
    singular = lowered[:-1] if len(lowered) > 2 and lowered.endswith("s") else lowered
    return short.get(lowered) or short.get(singular) or singular


def _unit(text: str, whole: str) -> str:
    unit = unit_word(text, _SHORT)
    if unit in MICROSECONDS:
        return unit
    hint = ""
    if unit in ("month", "quarter", "year"):
        hint = f"; a {unit} has no fixed length, so write it as a calendar window, such as calendar('1 {unit}')"
    raise WindowError(f"duration {whole!r} has the unknown unit {text!r}; allowed are {', '.join(MICROSECONDS)}{hint}")


def readable(microseconds: int) -> str:
    """Write microseconds as a duration that `duration` reads back.

    >>> readable(5_400_000_000), readable(1_209_600_000_000), readable(864_000_000_000)
    ('1 hour 30 minutes', '2 weeks', '10 days')
    """
    if microseconds == 0:
        return "0 seconds"
    rest = abs(microseconds)
    if rest % MICROSECONDS["week"] == 0:
        terms = [(rest // MICROSECONDS["week"], "week")]
    else:
        terms = []
        for unit, length in list(MICROSECONDS.items())[1:]:
            count, rest = divmod(rest, length)
            terms.append((count, unit))
    words = [f"{count} {unit}{'s' if count > 1 else ''}" for count, unit in terms if count]
    return ("-" if microseconds < 0 else "") + " ".join(words)


_MONDAYS, _YEAR_2000 = 11_323, 10_957
"""The ticks of 1 January 2001, a Monday, and of 1 January 2000: the default origins of weeks and of other days."""


def default_offset(clock: Clock, *, weeks: bool) -> int:
    """Return the tick that calendar windows are counted from by default."""
    if clock.unit == "month":
        return 30 * 12
    return _MONDAYS if weeks else _YEAR_2000


def readable_ticks(ticks: int, clock: Clock, offset: int) -> str:
    """Write ticks in a calendar's units: weeks if they are counted from a Monday, quarters and years.

    >>> [readable_ticks(ticks, Clock("UTC", "month"), 0) for ticks in (1, 6, 24)]
    ['1 month', '2 quarters', '2 years']
    """
    units = [(12, "year"), (3, "quarter"), (1, "month")] if clock.unit == "month" else [(7, "week"), (1, "day")]
    if clock.unit == "day" and ticks % 7 == 0 and (offset - _MONDAYS) % ticks and not (offset - _YEAR_2000) % ticks:
        units = units[1:]
    size, unit = next((size, unit) for size, unit in units if ticks % size == 0)
    return f"{ticks // size} {unit}{'s' * (abs(ticks) != size)}"


def readable_origin(clock: Clock, slide: int, offset: int) -> str:
    """Write a start of a window, unless windows of this slide are counted from it by default."""
    usual = {default_offset(clock, weeks=weeks) % slide for weeks in ([True, False] if slide % 7 == 0 else [False])}
    if offset in usual:
        return ""
    first = default_offset(clock, weeks=False)
    tick = first + (offset - first) % slide
    return (date(1970, 1, 1) + timedelta(days=tick if clock.unit == "day" else first_day(tick))).isoformat()


@lru_cache(maxsize=4096)
def _label(range: int, slide: int, offset: int, clock: Clock | None) -> str:
    """Describe a window; searches make many that are never shown."""

    def written(length: int) -> str:
        return readable(length) if clock is None else readable_ticks(length, clock, offset)

    hops = "" if slide == range else f" / {written(slide)}"
    if clock is not None:
        origin = readable_origin(clock, slide, offset)
        return f"{written(range)}{hops} [{clock.zone}]{f' @ {origin}' if origin else ''}"
    return f"{written(range)}{hops}{f' @ {readable(offset)}' if offset else ''}"


@dataclass(frozen=True, slots=True)
class Window:
    """The window W<range, slide, offset>: the instances [offset + m*slide, offset + m*slide + range), m any integer.

    Lengths are microseconds, or ticks of a calendar's clock. Two windows are equal when their instances are; a name is
    only a label.

    >>> Window(range=10, slide=2, offset=5) == Window(range=10, slide=2, offset=1, name="mine")
    True
    """

    range: int
    slide: int
    offset: int = 0
    name: str = field(default="", compare=False)
    clock: Clock | None = None
    is_local: bool = field(default=False, compare=False, repr=False)
    """Whether it was requested in calendar days; a date is then already a local date."""

    def _repr_html_(self) -> str:
        """Show the window in a notebook: how long its instances are, and how often one starts."""
        every = "" if self.is_tumbling else f", a new one every {self._readable(self.slide)}"
        shifted = f", shifted by {self._readable(self.offset)}" if self.offset and not self.clock else ""
        place = f" of {escape(self.clock.zone)}" if self.clock else ""
        return f"<b>{escape(self.name)}</b>: instances of {self._readable(self.range)}{place}{every}{shifted}"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def __post_init__(self) -> None:
        for part in ("range", "slide", "offset"):
            value = getattr(self, part)
            if not isinstance(value, int) or isinstance(value, bool):
                raise WindowError(
                    f"{part} {value!r} is not a whole number of microseconds; tumbling() and hopping() read durations"
                )
        if self.range <= 0:
            raise WindowError(f"range {self._readable(self.range)} is not positive; a window must have a length")
        if self.slide <= 0:
            raise WindowError(f"slide {self._readable(self.slide)} is not positive; a window must move forward")
        if self.slide > self.range:
            raise WindowError(
                f"slide {self._readable(self.slide)} is longer than range {self._readable(self.range)}; "
                "a window's slide is at most its range"
            )
        if not isinstance(self.name, str):
            raise WindowError(f"window name {self.name!r} is not text")
        object.__setattr__(self, "offset", self.offset % self.slide)
        if not self.name:
            object.__setattr__(self, "name", self.label)

    @property
    def is_tumbling(self) -> bool:
        """Say whether each event belongs to only one instance."""
        return self.slide == self.range

    @property
    def parts(self) -> tuple[Window, ...]:
        """List the windows that describe this one: itself."""
        return (self,)

    @property
    def tick(self) -> int:
        """Return the unit of its lengths in microseconds: one, or the mean length of a tick."""
        return self.clock.length if self.clock else 1

    @property
    def length(self) -> int:
        """Return the mean length of an instance, in microseconds."""
        return self.range * self.tick

    @property
    def distance(self) -> int:
        """Return the mean time from one start to the next, in microseconds."""
        return self.slide * self.tick

    @property
    def longest(self) -> int:
        """Return a length in microseconds that no instance exceeds."""
        return self.range * self.clock.longest if self.clock else self.range

    def _readable(self, length: int) -> str:
        return readable(length) if self.clock is None else readable_ticks(length, self.clock, self.offset)

    @property
    def label(self) -> str:
        """Describe the window; this is its default name."""
        return _label(self.range, self.slide, self.offset, self.clock)

    def starts_of(self, time: int) -> tuple[int, ...]:
        """List the starts of the instances that contain the time, in order; a local day that was skipped starts none.

        >>> Window(range=10, slide=4).starts_of(-1)
        (-8, -4)
        """
        at = self.clock.tick(time) if self.clock else time
        last = at - (at - self.offset) % self.slide
        count = (self.range - 1 - (at - last)) // self.slide + 1
        starts = tuple(last - step * self.slide for step in reversed(range(count)))
        if self.clock is None:
            return starts
        return tuple(self.clock.instant(each) for each in starts if each not in self.skips)

    def bounds_of(self, start: int) -> tuple[int, int]:
        """Return the start and the end of the instance that starts at `start`."""
        if self.clock is None:
            return start, start + self.range
        at = self.clock.tick(start)
        return start, self.clock.instant(at - (at - self.offset) % self.slide + self.range)

    @property
    def skips(self) -> tuple[int, ...]:
        """List the ticks that start no instance of their own, because the place skipped these days."""
        is_daily = self.clock is not None and self.clock.unit == "day" and self.slide == 1 < self.range
        return empty_days(self.clock.zone) if self.clock and is_daily else ()


def tumbling(range: Duration, *, offset: Duration = timedelta(0), name: str = "") -> Window:
    """Make a window whose instances follow each other without overlap.

    >>> tumbling("20 minutes").name
    '20 minutes'
    """
    length = duration(range)
    return Window(range=length, slide=length, offset=duration(offset), name=name)


def hopping(range: Duration, slide: Duration, *, offset: Duration = timedelta(0), name: str = "") -> Window:
    """Make a window with an instance starting every slide.

    >>> hopping("1 hour", "10 minutes").name
    '1 hour / 10 minutes'
    """
    return Window(range=duration(range), slide=duration(slide), offset=duration(offset), name=name)
