"""Spark's buckets of time as windows: date_trunc, trunc and time_bucket, and what each shows of its window.

A bucket without a zone of its own uses the session's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from sqlglot import exp

from factor_windows.algebra.calendar import AnyWindow, calendar
from factor_windows.algebra.clock import (
    DAY,
    checked_zone,
    constant_offset,
    repeated_starts,
)
from factor_windows.algebra.window import duration, tumbling
from factor_windows.errors import WindowError
from factor_windows.functions.expression import sql_of, tree_of
from factor_windows.sql.located_error import errors_at, located_error
from factor_windows.sql.names import Tables
from factor_windows.sql.window_text import counts_months
from factor_windows.sql.windows import call_name, interval_text

_DATES = {"week": "week", "quarter": "quarter"}
_DATES |= dict.fromkeys(("month", "mon", "mm"), "month") | dict.fromkeys(("year", "yyyy", "yy"), "year")
THIS_CENTURY = 10_957
"""The first day of the year 2000: days before it that start twice are no reason to refuse a query."""
_UNITS = {
    "trunc": _DATES,
    "date_trunc": _DATES
    | dict.fromkeys(("day", "dd"), "day")
    | {unit: unit for unit in ("hour", "minute", "second", "millisecond", "microsecond")},
}
"""The units that Spark's functions accept, in any case, with their names here."""
_CALENDAR = ("day", "week", "month", "quarter", "year")
_ORIGIN = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Bucket:
    """An item of GROUP BY that is a window: its time, and what the item itself shows of the window."""

    item: exp.Expr
    time: exp.Expr
    window: AnyWindow
    shown: exp.Expr
    """An expression over the window's own columns; Spark does not know that it is never null."""


@dataclass(frozen=True, slots=True)
class _Local:
    """A time shifted to the clock of a zone."""

    time: exp.Expr
    zone: str


def find_bucket(items: Iterable[exp.Expr], tables: Tables) -> Bucket | None:
    """Return the first item of GROUP BY that is a bucket of time; further ones are ordinary keys."""
    found = (read_bucket(item, tables) for item in items)
    return next((bucket for bucket in found if bucket is not None), None)


def read_bucket(item: exp.Expr, tables: Tables) -> Bucket | None:
    """Read a bucket of time, if the item is one."""
    call = item.unnest()
    name, arguments = call_name(call), call.expressions if isinstance(call, exp.Anonymous) else []
    with errors_at(call):
        if name == "date_trunc" and len(arguments) == 2 and arguments[0].is_string:
            return _truncated(call, arguments[0], arguments[1], tables)
        if name == "trunc" and len(arguments) == 2 and arguments[1].is_string:
            return _truncated(call, arguments[1], arguments[0], tables)
        if name == "to_utc_timestamp" and len(arguments) == 2 and arguments[1].is_string:
            return _moved_back(call, arguments[0], arguments[1], tables)
        if name == "time_bucket" and len(arguments) in (2, 3) and isinstance(arguments[0], exp.Interval):
            window = _time_bucket(arguments, _session_zone(call, tables))
            return Bucket(call, arguments[1], window, _nullable("window_start"))
    return None


def _truncated(call: exp.Expr, unit: exp.Expr, of: exp.Expr, tables: Tables) -> Bucket:
    """Read date_trunc('month', ts) or trunc(ts, 'month')."""
    units = _UNITS[call_name(call)]
    if unit.name.lower() not in units:
        raise located_error(
            call, f"{call.name} has no unit {unit.name!r}; allowed are {', '.join(dict.fromkeys(units.values()))}"
        )
    session = _session_zone(call, tables)
    local = _local(of, session)
    length = f"1 {units[unit.name.lower()]}"
    zone = local.zone if local else session
    if local and not _is_utc(session):
        raise located_error(
            call,
            f"{sql_of(of)} goes by the session's time zone {session!r} as well; set spark.sql.session.timeZone to "
            f"UTC, or write WINDOWS({sql_of(local.time)}, '{length}' IN '{zone}')",
        )
    if units[unit.name.lower()] in _CALENDAR:
        by_instant = call_name(call) == "date_trunc" and not local
        if by_instant and any(day > THIS_CENTURY for day in repeated_starts(zone)):
            raise located_error(
                call,
                f"in {zone!r} some days start twice, which {call.name} takes for two and a calendar for one; "
                f"write WINDOWS({sql_of(local.time if local else of)}, '{length}' IN '{zone}')",
            )
        window = calendar(length, zone=zone)
    elif _is_utc(zone):
        window = tumbling(length)
    else:
        raise located_error(
            call,
            f"{call.name} by {length.removeprefix('1 ')}s is a window only in UTC, and the zone is {zone!r}; "
            f"write window({sql_of(local.time if local else of)}, '{length}')",
        )
    shown = f"from_utc_timestamp(window_start, '{zone}')" if local else "window_start"
    if call_name(call) == "trunc":
        shown = f"CAST({shown} AS DATE)"
    elif local:
        # A day whose first hour was skipped starts at 1:00, but date_trunc shows 0:00.
        shown = f"timestamp_micros(unix_micros({shown}) - pmod(unix_micros({shown}), {DAY}))"
    else:
        shown = "CAST(window_start AS TIMESTAMP)"
    return Bucket(call, local.time if local else of, window, _nullable(shown))


def _moved_back(call: exp.Expr, of: exp.Expr, zone: exp.Expr, tables: Tables) -> Bucket | None:
    """Read to_utc_timestamp(date_trunc('month', from_utc_timestamp(ts, zone)), zone)."""
    inner = of.unnest()
    bucket = read_bucket(inner, tables) if call_name(inner) == "date_trunc" else None
    local = _local(inner.expressions[1], tables.zone) if bucket else None
    if bucket is None or local is None:
        return None
    if zone.name != local.zone:
        raise located_error(
            call, f"to_utc_timestamp goes back from {zone.name!r}, but the time inside is of {local.zone!r}"
        )
    return replace(bucket, item=call, shown=_nullable("CAST(window_start AS TIMESTAMP)"))


def _local(of: exp.Expr, session: str) -> _Local | None:
    """Read from_utc_timestamp(ts, zone) and convert_timezone('UTC', zone, ts)."""
    call = of.unnest()
    name, arguments = call_name(call), list(call.expressions) if isinstance(call, exp.Anonymous) else []
    if name == "convert_timezone" and len(arguments) in (2, 3):
        before = arguments.pop(0) if len(arguments) == 3 else exp.Literal.string(session)
        arguments.reverse()
        if not before.is_string or not _is_utc(before.name):
            return None
    elif name != "from_utc_timestamp":
        return None
    if len(arguments) != 2 or not arguments[1].is_string:
        return None
    return _Local(arguments[0], checked_zone(arguments[1].name))


def _time_bucket(arguments: list[exp.Expr], zone: str) -> AnyWindow:
    """Read the window of time_bucket(INTERVAL '1' MONTH, ts[, origin]); days and months are local, hours are not."""
    length = interval_text(arguments[0])
    origin = _origin(arguments[2], zone) if len(arguments) == 3 else _ORIGIN
    in_months = counts_months(length)
    whole_days, rest = (0, 0) if in_months else divmod(duration(length), DAY)
    if in_months or (whole_days and not rest and not _is_utc(zone)):
        if origin.time() != time():
            raise located_error(arguments[2], f"origin {origin} is no midnight, and days and months start at one")
        return calendar(length if in_months else f"{whole_days} days", zone=zone, origin=origin.date())
    if whole_days and not _is_utc(zone):
        raise located_error(
            arguments[0],
            f"{sql_of(arguments[0])} mixes days with hours, which is a window only in UTC, not in {zone!r}",
        )
    since = origin.replace(tzinfo=ZoneInfo(checked_zone(zone))) - _ORIGIN.replace(tzinfo=UTC)
    return tumbling(timedelta(microseconds=duration(length)), offset=since)


def _origin(node: exp.Expr, zone: str) -> datetime:
    """Read TIMESTAMP '2024-04-01 00:00:00' as a local time."""
    text = node.this if isinstance(node, exp.Cast) else node
    try:
        if not isinstance(text, exp.Literal) or not text.is_string:
            raise ValueError
        found = datetime.fromisoformat(text.name.strip())
    except ValueError:
        raise located_error(
            node, f"origin {sql_of(node)} is no time; write it such as TIMESTAMP '2024-04-01 00:00:00'"
        ) from None
    return found if found.tzinfo is None else found.astimezone(ZoneInfo(checked_zone(zone))).replace(tzinfo=None)


def _session_zone(call: exp.Expr, tables: Tables) -> str:
    try:
        return checked_zone(tables.zone)
    except WindowError:
        raise located_error(
            call,
            f"the session's time zone {tables.zone!r} is not the name of one; set spark.sql.session.timeZone to "
            "such as 'UTC' or 'Europe/Berlin'",
        ) from None


def _is_utc(zone: str) -> bool:
    return constant_offset(checked_zone(zone)) == 0


def _nullable(shown: str) -> exp.Expr:
    """Return an expression that Spark does not know to be never null, as it does not for a bucket."""
    return tree_of(f"CASE WHEN window_start IS NOT NULL THEN {shown} END")
