"""Zones with odd clocks: when these are set, and when local days start, as Python's own tables say.

Nothing of it goes through the library, which counts days by clocks of its own. Spark reads Java's tables. The zones
here are those in which both agree about every change from 1900 to 2100, as test_fuzz.py makes sure. Elsewhere, before
1970, tables depend on who packed them (the mean time of Harare, the summers of Oslo), and no answer would be right.
"""

from __future__ import annotations

from bisect import bisect_left
from datetime import date, datetime
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

ZONES = (
    "UTC", "Europe/Berlin", "Europe/Dublin", "Europe/London", "Europe/Lisbon", "Europe/Moscow", "Europe/Istanbul",
    "Europe/Paris", "Europe/Kyiv", "Europe/Chisinau", "Europe/Samara", "Europe/Volgograd", "Europe/Warsaw",
    "Europe/Athens", "Europe/Helsinki", "Europe/Madrid", "Europe/Rome", "Europe/Riga", "Europe/Kaliningrad",
    "America/New_York", "America/Toronto", "America/Sao_Paulo", "America/Havana", "America/St_Johns",
    "America/Los_Angeles", "America/Chicago", "America/Denver", "America/Phoenix", "America/Anchorage",
    "America/Adak", "America/Juneau", "America/Caracas", "America/Bogota", "America/Lima", "America/La_Paz",
    "America/Santiago", "America/Punta_Arenas", "America/Asuncion", "America/Montevideo", "America/Mexico_City",
    "America/Tijuana", "America/Halifax", "America/Goose_Bay", "America/Nuuk", "America/Scoresbysund",
    "America/Miquelon", "America/Noronha", "America/Guyana", "America/Paramaribo", "America/Port-au-Prince",
    "America/Argentina/Buenos_Aires", "America/Argentina/San_Luis", "America/Indiana/Knox", "America/Managua",
    "Africa/Monrovia", "Africa/Cairo", "Africa/Casablanca", "Africa/El_Aaiun", "Africa/Johannesburg",
    "Africa/Nairobi", "Africa/Lagos", "Africa/Khartoum", "Africa/Tripoli", "Africa/Windhoek", "Africa/Sao_Tome",
    "Africa/Algiers", "Asia/Kathmandu", "Asia/Beirut", "Asia/Kolkata", "Asia/Tokyo", "Asia/Shanghai",
    "Asia/Hong_Kong", "Asia/Manila", "Asia/Singapore", "Asia/Pyongyang", "Asia/Seoul", "Asia/Amman", "Asia/Damascus",
    "Asia/Gaza", "Asia/Jerusalem", "Asia/Baghdad", "Asia/Kabul", "Asia/Yangon", "Asia/Colombo", "Asia/Dhaka",
    "Asia/Almaty", "Asia/Anadyr", "Asia/Ulaanbaatar", "Asia/Riyadh", "Atlantic/Azores", "Atlantic/Stanley",
    "Australia/Lord_Howe", "Australia/Sydney", "Australia/Adelaide", "Australia/Eucla", "Antarctica/Troll",
    "Antarctica/Casey", "Pacific/Apia", "Pacific/Kiritimati", "Pacific/Kwajalein", "Pacific/Chatham",
    "Pacific/Auckland", "Pacific/Fakaofo", "Pacific/Marquesas", "Pacific/Norfolk", "Pacific/Tongatapu",
    "Pacific/Honolulu", "Pacific/Guam", "Etc/GMT+5",
)  # fmt: skip
DAY = 86_400
_FIRST_DAY = date(1970, 1, 1).toordinal()
PROBE = 6 * 3_600
"""No zone has changed its clocks twice in so many seconds."""


def offset(zone: str, second: int) -> int:
    """Return how many seconds a zone's clocks are ahead of UTC."""
    shift = datetime.fromtimestamp(second, ZoneInfo(zone)).utcoffset()
    return shift.days * DAY + shift.seconds


def changes(zone: str, low: int, high: int, probe: int = PROBE) -> list[int]:
    """List the seconds at which clocks are set, after one and up to another, looking at them every so often."""
    found = []
    for start in range(low, high, probe):
        end, before = min(start + probe, high), offset(zone, start)
        if offset(zone, end) != before:
            later = range(start + 1, end + 1)
            found.append(later[bisect_left(later, True, key=lambda at: offset(zone, at) != before)])
    return found


@lru_cache(maxsize=100_000)
def midnight(zone: str, day: int) -> int:
    """Return the first second at which clocks show the start of a day, or something later since they skipped it.

    >>> [midnight("Africa/Cairo", day) - midnight("Africa/Cairo", day - 1) for day in (19_839, 19_840)]
    [86400, 82800]
    """
    shown = day * DAY
    low, high = shown - 2 * DAY, shown + 2 * DAY
    cuts = pairwise([low, *changes(zone, low, high), high])
    return min(at for start, end in cuts if (at := max(start, shown - offset(zone, start))) < end)


def day_of(zone: str, second: int) -> int:
    """Return the last day that has started."""
    near = (second + offset(zone, second)) // DAY
    return max(day for day in range(near - 2, near + 3) if midnight(zone, day) <= second)


def first_of(month: int) -> int:
    """Return the first day of a month; both are counted from January 1970."""
    return date(1970 + month // 12, month % 12 + 1, 1).toordinal() - _FIRST_DAY


def month_of(day: int) -> int:
    """Return the month of a day."""
    on = date.fromordinal(_FIRST_DAY + day)
    return (on.year - 1970) * 12 + on.month - 1
