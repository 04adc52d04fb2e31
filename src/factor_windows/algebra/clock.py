"""Clocks of time zones: one ticks at the start of every local day, another at the start of every local month.

A calendar window is a window on such a clock: its range, slide and offset count ticks. So everything known about
windows of fixed lengths holds for windows on one clock. Few relations hold between clocks: local months are made of
local days, and local days are made of fixed lengths as far as the zone's changes of offset allow.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache
from importlib import resources
from itertools import pairwise
from math import gcd, inf
from pathlib import Path
from struct import unpack
from typing import Literal
from zoneinfo import TZPATH, ZoneInfo, ZoneInfoNotFoundError, available_timezones

from factor_windows.errors import WindowError

Unit = Literal["day", "month"]
SECOND = 1_000_000
DAY = 86_400 * SECOND
MONTH = 2_629_746 * SECOND
"""The mean length of a month: 400 years are 146,097 days."""
_SECONDS = 86_400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY = date(1970, 1, 1).toordinal()
_FROM, _UNTIL = -3_800_000_000, 4_133_980_800
"""The years between which changes of a zone's offset are searched for, 1849 and 2101.

Before, zones use local mean time; later, the rules in force today continue."""
_PROBE = 14 * _SECONDS
"""The distance between probes for changes where a rule continues."""
_ROOM = 3 * _SECONDS
"""How far from the limits of Python's dates, in seconds, zones are still queried."""
_LEAST, _MOST = (int((datetime(year, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds()) for year in (1, 9999))


@dataclass(frozen=True, slots=True, order=True)
class Clock:
    """The clock of a zone that ticks once a local day or month; tick 0 is 1 January 1970, or January 1970.

    If the zone skipped the start of a day, the tick is the first instant after the gap; if it came twice, the earlier
    one.

    >>> berlin = Clock("Europe/Berlin", "day")
    >>> [(berlin.instant(tick + 1) - berlin.instant(tick)) // 3_600_000_000 for tick in (19_812, 19_813, 20_023)]
    [24, 23, 25]
    >>> berlin.tick(-1), berlin.tick(-3_600_000_001), Clock("Europe/Berlin", "month").tick(-1)
    (0, -1, 0)
    """

    zone: str
    unit: Unit

    @property
    def length(self) -> int:
        """Return the mean length of a tick, in microseconds."""
        return DAY if self.unit == "day" else MONTH

    @property
    def longest(self) -> int:
        """Return a length that no tick exceeds: 2 days, or 32 days, since zones have repeated whole days."""
        return 2 * DAY if self.unit == "day" else 33 * DAY

    @property
    def days(self) -> Clock:
        """Return the clock of the same zone that ticks daily."""
        return Clock(self.zone, "day")

    def tick(self, time: int) -> int:
        """Return the number of the last tick at or before a time."""
        day = _day_of(self.zone, time)
        if self.unit == "day":
            return day
        on = date.fromordinal(_FIRST_DAY + day)
        return (on.year - 1970) * 12 + on.month - 1

    def instant(self, tick: int) -> int:
        """Return the time of a tick, in microseconds since 1970."""
        return _instant_of(self.zone, tick if self.unit == "day" else first_day(tick))

    def settles(self, step: int, offset: int) -> float:
        """Return the time from which all ticks lie on a progression: minus infinity for always, infinity for never.

        >>> quarters = 900_000_000
        >>> [Clock(zone, "day").settles(quarters, 0) < 0 for zone in ("Europe/Berlin", "Africa/Monrovia")]
        [True, False]
        """
        return _settles(self.zone, step, offset)

    @property
    def grid(self) -> int:
        """Return the longest step within a day, counted from 1970 in UTC, on which all ticks since 1970 lie.

        >>> [Clock(zone, "day").grid // 60_000_000 for zone in ("Europe/Berlin", "Asia/Kolkata", "Asia/Kathmandu")]
        [60, 30, 15]
        """
        recent = [shift for _, end, shift in _stretches(self.zone) if end is None or end > 63_072_000]
        return gcd(_SECONDS, *recent) * SECOND


@lru_cache(maxsize=4096)
def _settles(zone: str, step: int, offset: int) -> float:
    if DAY % step:
        return inf
    since = -inf
    for start, end, shift in _stretches(zone):
        if (-shift * SECOND - offset) % step:
            # The rules in force at the end of the table repeat every year.
            since = inf if end is None or end > _UNTIL - 10 * 366 * _SECONDS else end * SECOND
        elif start is not None and (start * SECOND - offset) % step and not _starts_between_days(zone, start):
            # The change is the start of a day that is not on the progression.
            since = start * SECOND + 1
    return since


def checked_zone(name: str) -> str:
    """Return the name of a zone, or raise an error if there is no such zone."""
    try:
        if not isinstance(name, str) or name.startswith(("posix", "right", "localtime")) or name == "Factory":
            raise ValueError
        ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        near = get_close_matches(str(name), sorted(available_timezones()), n=1, cutoff=0.6)
        hint = f"did you mean {near[0]!r}?" if near else "write a name of the IANA database, such as 'Europe/Berlin'"
        raise WindowError(f"zone {name!r} is unknown; {hint}") from None
    return name


def first_day(month: int) -> int:
    """Return the number of the first day of a month, both counted from 1970.

    >>> first_day(0), first_day(1), first_day(-1)
    (0, 31, -31)
    """
    years, months = divmod(month, 12)
    return date(1970 + years, months + 1, 1).toordinal() - _FIRST_DAY


@lru_cache(maxsize=1024)
def constant_offset(zone: str) -> int | None:
    """Return the offset of a zone from UTC, in microseconds, if it has never changed."""
    found = _stretches(zone)
    return found[0][2] * SECOND if len(found) == 1 else None


@lru_cache(maxsize=1024)
def skipped_starts(zone: str) -> dict[int, int]:
    """Map the days whose start lies deep in a gap to the gap's end; engines treat such starts differently.

    In Toronto, 23:30 on 30 March 1919 was followed by 0:30.

    >>> [(date.fromordinal(_FIRST_DAY + day).isoformat(), at) for day, at in skipped_starts("America/Toronto").items()]
    [('1919-03-31', -1601753400000000)]
    """
    found = {}
    for (_, start, before), (_, _, after) in pairwise(_stretches(zone)):
        assert start is not None
        for day in range(-(-(start + before + 1) // _SECONDS), -(-(start + after) // _SECONDS)):
            found[day] = start * SECOND
    return found


@lru_cache(maxsize=1024)
def empty_days(zone: str) -> tuple[int, ...]:
    """List the days that a zone skipped entirely: 30 December 2011 in Samoa.

    >>> [date.fromordinal(_FIRST_DAY + day).isoformat() for day in empty_days("Pacific/Apia")]
    ['2011-12-30']
    """
    return tuple(
        day
        for (_, start, before), (_, _, after) in pairwise(_stretches(zone))
        for day in range(-(-((start or 0) + before) // _SECONDS), ((start or 0) + after) // _SECONDS)
        if after - before >= _SECONDS
    )


@lru_cache(maxsize=1024)
def goes_back_over_midnight(zone: str) -> bool:
    """Say whether clocks were ever set back into the previous day, long enough after midnight to matter.

    In St. John's, until 2011, 0:01 was followed by 23:01 of the previous day. The new day is the one that starts at
    0:00.

    >>> goes_back_over_midnight("America/St_Johns"), goes_back_over_midnight("Europe/Berlin")
    (True, False)
    """
    return any(
        -(-((start or 0) + after + 1) // _SECONDS) * _SECONDS < (start or 0) + before
        for (_, start, before), (_, _, after) in pairwise(_stretches(zone))
    )


@lru_cache(maxsize=1024)
def repeated_starts(zone: str) -> dict[int, int]:
    """Map the days whose start came twice, until 2101, to the earlier start: in Havana 1:00 is followed by 0:00.

    >>> len(repeated_starts("America/Havana")) > 100, len(repeated_starts("Europe/Berlin"))
    (True, 1)
    """
    found = {}
    for (_, start, before), (_, _, after) in pairwise(_stretches(zone)):
        assert start is not None
        day = -(-(start + after) // _SECONDS)
        if day * _SECONDS < start + before:
            found[day] = (day * _SECONDS - before) * SECOND
    return found


Stretch = tuple[int | None, int | None, int]
"""The start and end of an offset from UTC and the offset, in seconds; the first has no start, the last no end."""


@lru_cache(maxsize=1024)
def _stretches(zone: str) -> tuple[Stretch, ...]:
    """List the past and future offsets of a zone."""
    listed = [each for each in _listed_changes(zone) if _FROM < each < _UNTIL]
    changes: list[tuple[int, int]] = []
    first = offset = _offset(zone, _FROM)
    for at in listed:
        if _offset(zone, at) != offset:
            offset = _offset(zone, at)
            changes.append((at, offset))
    at = max([*listed, _FROM])
    while at < _UNTIL:
        # After the listed changes, a rule gives a few changes a year.
        after = at + _PROBE
        if _offset(zone, after) != offset:
            after = _change(zone, at, after)
            offset = _offset(zone, after)
            changes.append((after, offset))
        at = after
    starts = [None, *(start for start, _ in changes)]
    return tuple(zip(starts, [*starts[1:], None], [first, *(shift for _, shift in changes)], strict=True))


def _listed_changes(zone: str) -> tuple[int, ...]:
    """Read the times of changes in a zone's table: the second, 64-bit part of a TZif file (RFC 8536)."""
    found = (Path(folder, zone) for folder in TZPATH)
    path = next((each for each in found if each.is_file()), None)
    data = path.read_bytes() if path else resources.files("tzdata").joinpath("zoneinfo", zone).read_bytes()
    leap_seconds, times, types, letters = unpack(">4L", data[28:44])
    second = 44 + times * 5 + types * 6 + letters + leap_seconds * 8 + sum(unpack(">2L", data[20:28]))
    [count] = unpack(">L", data[second + 32 : second + 36])
    return unpack(f">{count}q", data[second + 44 : second + 44 + 8 * count])


def _change(zone: str, before: int, after: int) -> int:
    """Find the first second between two at which the offset has changed."""
    offset = _offset(zone, before)
    return before + 1 + bisect_right(range(before + 1, after + 1), 0, key=lambda at: int(_offset(zone, at) != offset))


def _offset(zone: str, second: int) -> int:
    """Return the offset from UTC at a second; near the limits of Python's dates, the offset of the nearest year."""
    within = min(max(second, _LEAST + _ROOM), _MOST - _ROOM)
    shift = (_EPOCH + timedelta(seconds=within)).astimezone(ZoneInfo(zone)).utcoffset()
    assert shift is not None
    return shift.days * _SECONDS + shift.seconds


def _starts_between_days(zone: str, start: int) -> bool:
    """Say whether a change of offset is not the start of a day: none of the local times that it skips starts one."""
    before, after = _offset(zone, start - 1), _offset(zone, start)
    return after < before or -(-(start + before) // _SECONDS) * _SECONDS >= start + after


def _instant_of(zone: str, day: int) -> int:
    local = day * _SECONDS
    # If there is an earlier instant with this local time, its offset is the one in force a day before.
    early, late = (local - _offset(zone, local - _offset(zone, local) + shift) for shift in (-_SECONDS, _SECONDS))
    for at in sorted({early, late}):
        if at + _offset(zone, at) == local:
            return at * SECOND
    low, high = sorted((early, late))
    return _change(zone, low - 1, high) * SECOND


def _day_of(zone: str, time: int) -> int:
    second = time // SECOND
    day = (second + _offset(zone, second)) // _SECONDS
    return day + 1 if _instant_of(zone, day + 1) <= time else day
