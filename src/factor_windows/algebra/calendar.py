"""Calendar windows, cumulating windows, and the short forms that the command line accepts."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

from factor_windows.algebra.clock import Clock, checked_zone, constant_offset
from factor_windows.algebra.growing import Growing
from factor_windows.algebra.session import Session, session
from factor_windows.algebra.slices import refines
from factor_windows.algebra.window import (
    MICROSECONDS,
    Duration,
    Window,
    default_offset,
    duration,
    hopping,
    readable,
    tumbling,
    unit_word,
)
from factor_windows.errors import WindowError

AnyWindow = Window | Growing | Session
"""The windows that a query accepts."""
_UNITS = {"day": ("day", 1), "week": ("day", 7), "month": ("month", 1), "quarter": ("month", 3), "year": ("month", 12)}
"""The tick of each calendar unit, and the number of ticks in it."""
_SHORT = {"d": "day", "w": "week", "mo": "month", "q": "quarter", "y": "year"}
_TERM = re.compile(r"(\d{1,6})\s*([a-z]+)\s*", re.IGNORECASE)
_FORM = "write it such as '1 month', '2 weeks' or '1 quarter'"
_IN_MONTHS = re.compile(r"(?<![a-z])(mo|months?|q|quarters?|y|years?)\s*$", re.IGNORECASE)
"""Matches lengths that end with a unit only a calendar has."""
_GAP = re.compile(r"gap\s*(.*)", re.IGNORECASE)
_ZONED = re.compile(r"(?P<lengths>[^\[\]@]*)\[(?P<zone>[^\[\]]*)\]\s*(?:@(?P<origin>.*))?")


def calendar(
    range: Duration,
    *,
    zone: str = "UTC",
    slide: Duration | None = None,
    origin: str | date | None = None,
    step: Duration | None = None,
    name: str = "",
) -> Window | Growing:
    """Make a window of local days, weeks, months, quarters or years in a time zone, independent of Spark's time zone.

    `origin` is a local date on which an instance starts. By default, weeks count from a Monday and everything else from
    1 January 2000. With a `step` the window grows: month-to-date is `calendar("1 month", step="1 day")`.

    >>> calendar("1 month", zone="Europe/Berlin").name, calendar("1 year", origin="2024-04-01").name
    ('1 month [Europe/Berlin]', '1 year [UTC] @ 2000-04-01')
    >>> calendar("3 months", slide="1 month", zone="Asia/Tokyo").name, calendar("1 month", step="1 day").name
    ('1 quarter / 1 month [Asia/Tokyo]', '1 month + 1 day [UTC]')
    """
    clock, length, weeks = _ticks(range, zone)
    if slide is not None and step is not None:
        raise WindowError(f"a window that grows by a step has no slide of its own; leave out slide {slide!r}")
    distance = length
    if slide is not None:
        other, distance, weeks = _ticks(slide, zone)
        if other != clock:
            raise WindowError(
                f"slide {slide!r} and range {range!r} have no unit in common: months, quarters and years are made of "
                "months, weeks of days"
            )
    offset = default_offset(clock, weeks=weeks) if origin is None else _origin(origin, clock)
    if step is None:
        return _settled(length, distance, offset, clock, name)
    by, step_length, _ = _ticks(step, zone)
    own = offset if by == clock else 0
    period = _settled(length, length, offset, clock)
    return _growing(period, _settled(step_length, step_length, own, by), range, step, name)


def cumulating(range: Duration, *, step: Duration, offset: Duration = timedelta(0), name: str = "") -> Growing:
    """Make a window that grows by a step until it is full, then starts over.

    >>> cumulating("1 day", step="1 hour").name
    '1 day + 1 hour'
    """
    period, by = (tumbling(length, offset=offset) for length in (range, step))
    return _growing(period, by, range, step, name)


def _growing(period: Window, step: Window, range: Duration, by: Duration, name: str) -> Growing:
    if period == step or not refines(step, period):
        raise WindowError(
            f"step {_text(by)} does not divide range {_text(range)} into several equal parts; a window grows by whole "
            "steps until it is full"
        )
    return Growing(period, step, name)


def _text(length: Duration) -> str:
    return repr(length) if isinstance(length, str) else repr(readable(duration(length)))


def _settled(length: int, distance: int, offset: int, clock: Clock, name: str = "") -> Window:
    """Make a window on a clock; days in UTC become windows of fixed length."""
    if clock.unit == "month" or constant_offset(clock.zone) != 0:
        return Window(length, distance, offset, name, clock)
    day = MICROSECONDS["day"]
    label = Window(length, distance, offset, clock=clock).name
    return Window(length * day, distance * day, offset * day, name or label, is_local=True)


def _ticks(length: Duration, zone: str) -> tuple[Clock, int, bool]:
    """Read a length as ticks of a clock; also say whether it is in weeks."""
    if isinstance(length, timedelta):
        length = readable(duration(length))
    if not isinstance(length, str):
        raise WindowError(f"length {length!r} is not text; {_FORM}")
    checked_zone(zone)
    found: dict[str, int] = {}
    position, weeks = 0, True
    text = length.strip()
    while term := _TERM.match(text, position):
        unit = _unit(term[2], length)
        counts, size = _UNITS[unit]
        found[counts] = found.get(counts, 0) + int(term[1]) * size
        weeks = weeks and unit == "week"
        position = term.end()
    if position == 0 or position < len(text):
        raise WindowError(f"length {length!r} is not a calendar length; {_FORM}")
    if len(found) > 1:
        raise WindowError(f"length {length!r} mixes months with days; use one or the other")
    [(counts, ticks)] = found.items()
    if not 0 < ticks < 10**6:
        raise WindowError(f"length {length!r} is not between 1 day and 1,000,000 of its units")
    return Clock(zone, "day" if counts == "day" else "month"), ticks, weeks


def _unit(text: str, whole: str) -> str:
    unit = unit_word(text, _SHORT)
    if unit in _UNITS:
        return unit
    finer = unit in MICROSECONDS or unit in ("h", "hr", "m", "min", "s", "sec", "ms")
    hint = "; shorter windows are of fixed lengths, which tumbling() and cumulating() make" if finer else ""
    raise WindowError(f"length {whole!r} has the unit {text!r}; calendars have {', '.join(_UNITS)}{hint}")


def _origin(origin: str | date, clock: Clock) -> int:
    try:
        if isinstance(origin, datetime) or not isinstance(origin, str | date):
            raise ValueError
        day = date.fromisoformat(origin) if isinstance(origin, str) else origin
    except ValueError:
        raise WindowError(
            f"origin {origin!r} is not a date; write the local date on which a window starts, such as '2024-04-01'"
        ) from None
    if clock.unit == "day":
        return (day - date(1970, 1, 1)).days
    if day.day != 1:
        raise WindowError(
            f"origin {day.isoformat()} is not the first day of a month; months, quarters and years start on one"
        )
    return (day.year - 1970) * 12 + day.month - 1


def parse_window(text: str) -> AnyWindow:
    """Parse the short form of the command line: [name=]range[/slide][+step][[zone]][@offset], or [name=]gapLENGTH.

    >>> parse_window("1h/10m@5m").name, parse_window("1d+1h").name
    ('1 hour / 10 minutes @ 5 minutes', '1 day + 1 hour')
    >>> parse_window("hourly=1h") == tumbling("1 hour")
    True
    >>> parse_window("3months/1month[Asia/Tokyo]").name, parse_window("1year[UTC]@2024-04-01").name
    ('1 quarter / 1 month [Asia/Tokyo]', '1 year [UTC] @ 2000-04-01')
    >>> parse_window("gap30m").name
    'session 30 minutes'
    """
    name, equals, form = text.rpartition("=")
    if equals and not name.strip():
        raise WindowError(f"window {text!r} has an empty name; write name=range, such as 'hourly=1h'")
    if gap := _GAP.fullmatch(form.strip()):
        return session(gap[1], name=name.strip())
    zoned = _ZONED.fullmatch(form.strip())
    lengths, at, offset = (zoned["lengths"], "", "") if zoned else form.partition("@")
    whole, plus, step = lengths.partition("+")
    length, slash, slide = whole.partition("/")
    parts = [(at, offset), (slash, slide), (plus, step)]
    if any(sign and not part.strip() for sign, part in parts) or not length.strip():
        raise WindowError(
            f"window {text!r} is cut short; write range, range/slide, range+step, and @offset or [zone] after it"
        )
    if zoned or _IN_MONTHS.search(length):
        origin = (zoned["origin"] if zoned else offset) or None
        zone = zoned["zone"].strip() if zoned else "UTC"
        found = {"slide": slide or None, "step": step or None, "origin": origin.strip() if origin else None}
        return calendar(length, zone=zone, name=name.strip(), **found)
    if slash and plus:
        raise WindowError(f"window {text!r} has a slide and a step; a window that grows by a step has no slide")
    shift: Duration = offset if at else timedelta(0)
    if plus:
        return cumulating(length, step=step, offset=shift, name=name.strip())
    return hopping(length, slide if slash else length, offset=shift, name=name.strip())
