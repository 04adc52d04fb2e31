"""Local days and months of a zone in SQL, from microseconds to microseconds, in any session time zone.

Engines know their zones. Where they count differently from our clocks, the SQL spells it out: starts of days deep in a
gap, and clocks set back across midnight.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

from factor_windows.algebra.clock import DAY, Clock, goes_back_over_midnight, repeated_starts, skipped_starts


class LocalTime(Protocol):
    """An engine's SQL for local time."""

    takes_later: ClassVar[bool]
    """Whether `to_instant` returns the later of two instants with the same local time."""

    def to_local(self, microseconds: str, zone: str) -> str:
        """Return the local time of an instant, as microseconds since 1970 on a local clock."""

    def to_instant(self, microseconds: str, zone: str) -> str:
        """Return the instant of a local time."""

    def month_of(self, day: str) -> str:
        """Return the month of a day, both counted from 1970."""

    def first_day(self, month: str) -> str:
        """Return the first day of a month."""

    def floor(self, number: str, divisor: int) -> str:
        """Return a quotient, rounded down."""


def write_tick(clock: Clock, time: str, words: LocalTime) -> str:
    """Write the number of the last tick at or before a time."""
    day = words.floor(words.to_local(time, clock.zone), DAY)
    if goes_back_over_midnight(clock.zone):
        following = write_instant(clock.days, f"({day} + 1)", words)
        day = f"({day} + CASE WHEN {following} <= {time} THEN 1 ELSE 0 END)"
    return words.month_of(day) if clock.unit == "month" else day


def write_instant(clock: Clock, tick: str, words: LocalTime) -> str:
    """Write the time of a tick."""
    day = words.first_day(tick) if clock.unit == "month" else tick
    plain = words.to_instant(f"({day}) * {DAY}", clock.zone)
    odd = skipped_starts(clock.zone) | (repeated_starts(clock.zone) if words.takes_later else {})
    if not odd:
        return plain
    whens = " ".join(f"WHEN {each} THEN {at}" for each, at in odd.items())
    return f"CASE {day} {whens} ELSE {plain} END"


class SparkLocalTime:
    """Spark's SQL: functions that shift an instant by a zone's offset, and dates, which have no zone."""

    takes_later: ClassVar[bool] = False

    def to_local(self, microseconds: str, zone: str) -> str:
        return f"unix_micros(from_utc_timestamp(timestamp_micros({microseconds}), '{zone}'))"

    def to_instant(self, microseconds: str, zone: str) -> str:
        return f"unix_micros(to_utc_timestamp(timestamp_micros({microseconds}), '{zone}'))"

    def month_of(self, day: str) -> str:
        on = f"date_from_unix_date(CAST({day} AS INT))"
        return f"CAST((year({on}) - 1970) * 12 + month({on}) - 1 AS BIGINT)"

    def first_day(self, month: str) -> str:
        return f"CAST(unix_date(add_months(DATE '1970-01-01', CAST({month} AS INT))) AS BIGINT)"

    def floor(self, number: str, divisor: int) -> str:
        # Shifted far enough from zero, nothing is negative, and the number is computed only once.
        far = 50_000_000
        return f"(({number} + {far * divisor}L) div {divisor}L - {far}L)"
