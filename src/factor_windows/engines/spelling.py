"""How each engine with WITH steps writes what they need: times as numbers and back, remainders, counted rows.

The text is written without knowing the type of the time column, and is correct for each possible type.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

from sqlglot import exp, parse_one
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.duckdb import DuckDB

from factor_windows.engines.duckdb import translate
from factor_windows.functions.expression import VerbatimSpark
from factor_windows.spark.local_time import LocalTime, SparkLocalTime

Calendar = str | None
"""The zone of a query's calendar windows, empty for UTC; `None` if it has no such windows."""


class Spelling(Protocol):
    """The differences between engines."""

    dialect: ClassVar[type[Dialect]]
    local_time: ClassVar[LocalTime]

    def translate(self, tree: exp.Expr) -> exp.Expr:
        """Return the engine's form of Spark SQL."""

    def microseconds(self, time: str, calendar: Calendar = None) -> str:
        """Return a time as microseconds since 1970, counted as Spark's window() does, or as a calendar does."""

    def epoch(self, time: str, calendar: Calendar = None) -> str:
        """Return a constant of the type that the ends of windows over this time have."""

    def moment(self, epoch: str, microseconds: str) -> str:
        """Return microseconds since 1970 as a time of that constant's type."""

    def modulo(self, number: str, divisor: str) -> str:
        """Return a remainder that is never negative."""


class SparkSpelling:
    """Spark SQL; the user's expressions stay unchanged."""

    dialect: ClassVar[type[Dialect]] = VerbatimSpark
    local_time: ClassVar[LocalTime] = SparkLocalTime()

    def translate(self, tree: exp.Expr) -> exp.Expr:
        """Return the tree unchanged."""
        return tree

    def microseconds(self, time: str, calendar: Calendar = None) -> str:
        """Test the type in SQL, which costs nothing: Spark knows it before it runs, and keeps one branch."""
        # No function converts a time without a zone to a number without using the session's zone.
        of_wall_clock = (
            f"unix_date(CAST({time} AS DATE)) * 86400000000L + hour({time}) * 3600000000L"
            f" + minute({time}) * 60000000L + CAST(extract(SECOND FROM {time}) * 1000000 AS BIGINT)"
        )
        of_instant = f"unix_micros(CAST({time} AS TIMESTAMP_LTZ))"
        if calendar is None:
            return f"CASE typeof({time}) WHEN 'timestamp_ntz' THEN {of_wall_clock} ELSE {of_instant} END"
        of_date = f"unix_date(CAST({time} AS DATE)) * 86400000000L"
        if calendar:
            said = f"raise_error('{time} is local time already, so the zone {calendar} has nothing to change')"
            of_wall_clock = of_date = f"CAST({said} AS BIGINT)"
        local = f"WHEN 'timestamp_ntz' THEN {of_wall_clock} WHEN 'date' THEN {of_date}"
        return f"CASE typeof({time}) {local} ELSE {of_instant} END"

    def epoch(self, time: str, calendar: Calendar = None) -> str:
        """Let the branches of a CASE decide: with a zone if the time has one; an interval makes a date a timestamp."""
        if calendar is not None:
            return f"CASE WHEN FALSE THEN {time} ELSE TIMESTAMP_NTZ '1970-01-01 00:00:00' END"
        return f"CASE WHEN FALSE THEN {time} + INTERVAL '0' SECOND ELSE TIMESTAMP_NTZ '1970-01-01 00:00:00' END"

    def moment(self, epoch: str, microseconds: str) -> str:
        """Add an interval of seconds only, which is elapsed time even where clocks change."""
        at = f"CASE typeof({epoch}) WHEN 'timestamp_ntz' THEN 0L ELSE unix_micros(CAST({epoch} AS TIMESTAMP_LTZ)) END"
        return f"{epoch} + make_interval(0, 0, 0, 0, 0, 0, ({microseconds} - {at}) * 0.000001)"

    def modulo(self, number: str, divisor: str) -> str:
        """Write a call of pmod."""
        return f"pmod({number}, {divisor})"


class DuckdbLocalTime:
    """DuckDB's functions; its ICU extension knows the zones."""

    takes_later: ClassVar[bool] = True

    def to_local(self, microseconds: str, zone: str) -> str:
        return f"epoch_us(timezone('{zone}', make_timestamptz({microseconds})))"

    def to_instant(self, microseconds: str, zone: str) -> str:
        return f"epoch_us(timezone('{zone}', make_timestamp({microseconds})))"

    def month_of(self, day: str) -> str:
        on = f"(DATE '1970-01-01' + CAST({day} AS INTEGER))"
        return f"((year{on} - 1970) * 12 + month{on} - 1)"

    def first_day(self, month: str) -> str:
        start = f"CAST(DATE '1970-01-01' + to_months(CAST({month} AS INTEGER)) AS DATE)"
        return f"({start} - DATE '1970-01-01')"

    def floor(self, number: str, divisor: int) -> str:
        return f"(({number} - (({number} % {divisor}) + {divisor}) % {divisor}) // {divisor})"


class DuckdbSpelling:
    """DuckDB's SQL; the user's expressions are translated, or refused."""

    dialect: ClassVar[type[Dialect]] = DuckDB
    local_time: ClassVar[LocalTime] = DuckdbLocalTime()

    def translate(self, tree: exp.Expr) -> exp.Expr:
        """Translate by the table of forms that are known to mean the same."""
        return translate(tree)

    def microseconds(self, time: str, calendar: Calendar = None) -> str:
        """Call a function that accepts times with and without a zone, and dates."""
        return f"epoch_us({time})"

    def epoch(self, time: str, calendar: Calendar = None) -> str:
        """Let the branches of a CASE decide: with a zone if the time has one, and a date becomes a timestamp."""
        return f"CASE WHEN FALSE THEN {time} ELSE TIMESTAMP '1970-01-01' END"

    def moment(self, epoch: str, microseconds: str) -> str:
        """Add microseconds, which are elapsed time even where clocks change."""
        return f"{epoch} + to_microseconds({microseconds} - epoch_us({epoch}))"

    def modulo(self, number: str, divisor: str) -> str:
        """Correct DuckDB's remainder where it is negative, like its number; two for every number take twice as long."""
        inner = number if number.isidentifier() else f"({number})"
        remainder = f"{inner} % {divisor}"
        return f"CASE WHEN {number} >= 0 THEN {remainder} ELSE (({remainder}) + {divisor}) % {divisor} END"


def read(text: str, spelling: Spelling) -> exp.Expr:
    """Read internal text in the engine's own dialect."""
    return parse_one(text, dialect=spelling.dialect)


def write(tree: exp.Expr, spelling: Spelling) -> str:
    """Write a tree for the engine."""
    return tree.sql(dialect=spelling.dialect, pretty=True, normalize_functions=False, comments=False)
