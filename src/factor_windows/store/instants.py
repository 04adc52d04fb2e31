"""Conversion of times between the user's form and microseconds."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from factor_windows.errors import OptionError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros_of(option: str, value: datetime | date | str, zone: str) -> int:
    """Read a time as microseconds since 1970; one without a zone is in the session's, or local if events are.

    >>> micros_of("since", "1970-01-02", "UTC"), micros_of("since", "1970-01-01T01:00:00+01:00", "Asia/Tokyo")
    (86400000000, 0)
    """
    moment: datetime | None = None
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            moment = None
    elif isinstance(value, datetime):
        moment = value
    elif isinstance(value, date):
        moment = datetime(value.year, value.month, value.day)
    if moment is None:
        raise OptionError(f"{option} {value!r} is not a time; write a datetime, or text such as '2024-01-31 12:00:00'")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=_zone(zone) if zone else UTC)
    elif not zone:
        raise OptionError(f"{option} {value!r} has a time zone, and the events' times have none; leave it out")
    return (moment - _EPOCH) // timedelta(microseconds=1)


def as_text(micros: int, zone: str) -> str:
    """Write a time in the session's zone, for people.

    >>> as_text(0, "Asia/Tokyo"), as_text(0, "")
    ('1970-01-01 09:00:00+09:00', '1970-01-01 00:00:00')
    """
    moment = _EPOCH + timedelta(microseconds=micros)
    return str(moment.astimezone(_zone(zone)) if zone else moment.replace(tzinfo=None))


def _zone(name: str) -> tzinfo:
    """Return the zone of a session, which may be a place or an offset such as +02:00.

    >>> _zone("Asia/Tokyo"), _zone("GMT+02:00")
    (zoneinfo.ZoneInfo(key='Asia/Tokyo'), datetime.timezone(datetime.timedelta(seconds=7200)))
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        offset = name.removeprefix("UTC").removeprefix("GMT").removeprefix("UT")
    try:
        return datetime.fromisoformat(f"2000-01-01T00:00:00{offset}").tzinfo or UTC
    except ValueError:
        raise OptionError(f"the session's time zone {name!r} is not known here; write times with an offset") from None
