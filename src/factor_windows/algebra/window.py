"""Windows in whole microseconds, and the durations they are made of."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction
from html import escape
from math import gcd

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
            f"duration {value!r} is not understood; write a number and a unit, such as '20 minutes' or '1h 30m'"
        )
    if total.denominator != 1:
        raise WindowError(f"duration {value!r} is no whole number of microseconds, the finest step of time here")
    return _bounded(sign * int(total), value)


def _bounded(microseconds: int, value: Duration) -> int:
    if abs(microseconds) > _LONGEST:
        raise WindowError(f"duration {value!r} is too long; the longest is {readable(_LONGEST)}")
    return microseconds


def _unit(text: str, whole: str) -> str:
    lowered = text.lower()
    singular = lowered[:-1] if len(lowered) > 2 and lowered.endswith("s") else lowered
    unit = _SHORT.get(lowered) or _SHORT.get(singular) or singular
    if unit in MICROSECONDS:
        return unit
    hint = " (months and years have no fixed length)" if unit in ("month", "year", "quarter") else ""
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


@dataclass(frozen=True, slots=True)
class Window:
    """The window W<range, slide, offset>: the instances [offset + m*slide, offset + m*slide + range), m any integer.

    Two windows are equal when their instances are; a name is only a label.

    >>> Window(range=10, slide=2, offset=5) == Window(range=10, slide=2, offset=1, name="mine")
    True
    """

    range: int
    slide: int
    offset: int = 0
    name: str = field(default="", compare=False)

    def _repr_html_(self) -> str:
        """Show the window in a notebook: how long its instances are, and how often one begins."""
        every = "" if self.is_tumbling else f", a new one every {readable(self.slide)}"
        shifted = f", shifted by {readable(self.offset)}" if self.offset else ""
        return f"<b>{escape(self.name)}</b>: instances of {readable(self.range)}{every}{shifted}"

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
            raise WindowError(f"range {readable(self.range)} is not positive; a window needs some length")
        if self.slide <= 0:
            raise WindowError(f"slide {readable(self.slide)} is not positive; a window needs to move on")
        if self.slide > self.range:
            raise WindowError(
                f"slide {readable(self.slide)} is longer than range {readable(self.range)}; "
                "a window's slide is at most its range"
            )
        if not isinstance(self.name, str):
            raise WindowError(f"window name {self.name!r} is not text")
        object.__setattr__(self, "offset", self.offset % self.slide)
        if not self.name:
            object.__setattr__(self, "name", self.label)

    @property
    def is_tumbling(self) -> bool:
        """Say whether each event falls into one instance only."""
        return self.slide == self.range

    @property
    def label(self) -> str:
        """Describe the window: the name it has when nobody gives it one."""
        slide = "" if self.is_tumbling else f" / {readable(self.slide)}"
        offset = f" @ {readable(self.offset)}" if self.offset else ""
        return f"{readable(self.range)}{slide}{offset}"

    def starts_of(self, time: int) -> tuple[int, ...]:
        """List the starts of the instances that hold the time, in order.

        >>> Window(range=10, slide=4).starts_of(-1)
        (-8, -4)
        """
        last = time - (time - self.offset) % self.slide
        count = (self.range - 1 - (time - last)) // self.slide + 1
        return tuple(last - step * self.slide for step in reversed(range(count)))


def tumbling(range: Duration, *, offset: Duration = timedelta(0), name: str = "") -> Window:
    """Make a window whose instances follow each other without overlap.

    >>> tumbling("20 minutes").name
    '20 minutes'
    """
    length = duration(range)
    return Window(range=length, slide=length, offset=duration(offset), name=name)


def hopping(range: Duration, slide: Duration, *, offset: Duration = timedelta(0), name: str = "") -> Window:
    """Make a window of which an instance starts every slide.

    >>> hopping("1 hour", "10 minutes").name
    '1 hour / 10 minutes'
    """
    return Window(range=duration(range), slide=duration(slide), offset=duration(offset), name=name)


def parse_window(text: str) -> Window:
    """Read the short form of the command line: [name=]range[/slide][@offset].

    >>> parse_window("1h/10m@5m").name
    '1 hour / 10 minutes @ 5 minutes'
    >>> parse_window("hourly=1h") == tumbling("1 hour")
    True
    """
    name, equals, form = text.rpartition("=")
    if equals and not name.strip():
        raise WindowError(f"window {text!r} has an empty name; write name=range, such as 'hourly=1h'")
    lengths, at, offset = form.partition("@")
    length, slash, slide = lengths.partition("/")
    if (at and not offset.strip()) or (slash and not slide.strip()):
        raise WindowError(f"window {text!r} is cut short; write range, range/slide or range/slide@offset")
    return hopping(length, slide if slash else length, offset=offset if at else timedelta(0), name=name.strip())


def common_step(windows: tuple[Window, ...]) -> int:
    """Return the greatest common divisor of all ranges, slides and offsets.

    >>> common_step((Window(range=20, slide=20), Window(range=30, slide=15)))
    5
    """
    return gcd(*(length for w in windows for length in (w.range, w.slide, w.offset)))
