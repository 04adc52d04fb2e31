"""Aggregates and times as Spark columns: what depends on the types that a DataFrame has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from factor_windows.algebra.clock import constant_offset
from factor_windows.algebra.pane_row import Packing
from factor_windows.errors import QueryError
from factor_windows.functions.aggregate import Aggregate
from factor_windows.functions.columns import StateColumns
from factor_windows.functions.counted import follow_from_counts
from factor_windows.functions.table import State
from factor_windows.functions.value_columns import ValueColumns, ValueKey
from factor_windows.physical.target import Result, Values
from factor_windows.query import Query
from factor_windows.spark.countable import can_count
from factor_windows.spark.messages import spark_says
from factor_windows.spark.nullability import never_null
from factor_windows.spark.typed import typed_states

_FIXED_SIZE = (T.NumericType, T.BooleanType, T.DateType, T.TimestampType, T.TimestampNTZType)
_PLAIN = re.compile(r"(?!(?:true|false|null)$)[a-z_]\w*", re.ASCII | re.IGNORECASE)
"""Texts that Spark reads as a column, if there is one of that name."""
_EPOCH_NTZ = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultColumn(Result):
    """One result, named and typed as Spark itself would."""

    name: str
    type: T.DataType


@dataclass(frozen=True, slots=True)
class Types:
    """A DataFrame's answers about a query: names and types, as the user's own query would have them."""

    keys: tuple[T.StructField, ...]
    time: T.DataType
    results: tuple[ResultColumn, ...]
    states: tuple[State, ...]
    """The partial states, with the names of their columns and with columns to combine instead of placeholders."""
    shared: bool
    """Whether every aggregate can be computed from states here."""
    value_keys: tuple[ValueKey, ...] = ()
    """The values that rows are counted by."""

    @property
    def values(self) -> Values:
        """Return the values that a plan is compiled with."""
        return Values(self.results, self.states, self.shared, self.value_keys)


def types_of(
    query: Query, events: DataFrame, prefix: str, *, earlier: bool = False, counts_values: bool = False
) -> Types:
    """Analyze the query with Spark, running nothing, and lay out the states; or as an `earlier` version did.

    With `counts_values`, aggregates that can be computed from value counts have states, too.
    """
    with spark_says("Spark cannot read the query"):
        # Names are requested with the user's own words: written back, `x IS NOT NULL` would have another name.
        asked = [
            query.parsed_time.sql,
            *query.asked_keys,
            *(text for each in query.parsed_aggregates for text in _typed_arguments(each)),
        ]
        fields = iter(_fields(asked, events))
        results = events.agg(*(F.expr(aggregate) for aggregate in query.asked_aggregates)).schema
    time = time_of(_checked_time(query, next(fields)), calendar=has_calendars(query))
    keys = tuple(islice(fields, len(query.keys)))
    layout, time_column = StateColumns(f"{prefix}s"), f"`{prefix}t`"
    columns = []
    shared = True
    values = ValueColumns(query.parsed_aggregates if counts_values else (), prefix)
    for place, (aggregate, field) in enumerate(zip(query.parsed_aggregates, results, strict=True)):
        types = [argument.dataType for argument in islice(fields, len(_typed_arguments(aggregate)))]
        typed = typed_states(aggregate, field.dataType, types, events, earlier=earlier)
        counted = follow_from_counts(aggregate) if counts_values else None
        is_counted = counted is not None and can_count(aggregate, types, events)
        shared = shared and (is_counted or typed is not None)
        lower, merged = "", ""
        used: tuple[str, ...] = ()
        if counted is not None and is_counted:
            merged = values.add(layout, aggregate)
            lower = never_null(f"`{prefix}v{place}`", field)
            used = layout.used[-1]
        elif typed is not None:
            states, template = typed
            filled = aggregate.fill(states, time=time_column, guard=not earlier)
            lower = layout.add(aggregate, values.ride_along(filled), template)
            used = layout.used[-1]
            lower = never_null(lower, field)
        direct = aggregate.direct(time=time_column)
        columns.append(
            ResultColumn(
                name=field.name,
                type=field.dataType,
                nullable=field.nullable,
                lower=lower,
                direct=direct,
                states=used,
                merged=merged,
                columns=values.key(counted).columns if counted is not None and is_counted else (),
            )
        )
    if not shared and values.keys:
        layout = StateColumns(f"{prefix}s")
    return Types(keys, time, tuple(columns), layout.states, shared, values.keys if shared else ())


def check_time(query: Query, events: DataFrame) -> None:
    """Refuse a time column that is not a time; Spark's window() would read text as one."""
    _checked_time(query, *_fields([query.parsed_time.sql], events))


def _remedy(time: str, kind: T.DataType) -> str:
    """Say how to convert a text or a number to a time, to be written where the query names the column."""
    if isinstance(kind, T.StringType):
        return (
            f": write to_timestamp({time}), or with its format to_timestamp({time}, 'dd.MM.yyyy HH:mm'), in its place"
        )
    if isinstance(kind, T.IntegralType):
        return f": write timestamp_seconds({time}) or timestamp_millis({time}) in its place"
    return ""


def _checked_time(query: Query, field: T.StructField) -> T.DataType:
    time = field.dataType
    if not isinstance(time, T.TimestampType | T.TimestampNTZType | T.DateType):
        raise QueryError(
            f"time {query.time!r} is of type {time.simpleString()}; it must be a timestamp, a timestamp_ntz or a date"
            f"{_remedy(query.parsed_time.sql, time)}"
        )
    clocks = [part.clock for window in query.windows for part in window.parts if part.clock]
    zones = [clock.zone for clock in clocks if constant_offset(clock.zone) != 0]
    if zones and not isinstance(time, T.TimestampType):
        raise QueryError(
            f"time {query.time!r} is of type {time.simpleString()}, which is local time already, so the zone "
            f"{zones[0]!r} has nothing to change; leave the zone out, or make it a timestamp"
        )
    return time


def has_calendars(query: Query) -> bool:
    """Say whether a query has a calendar window."""
    return any(part.clock or part.is_local for window in query.windows for part in window.parts)


def time_of(time: T.DataType, *, calendar: bool) -> T.DataType:
    """Return the type that a time counts as: for a calendar, a date is a local date, whatever Spark's time zone."""
    return T.TimestampNTZType() if calendar and isinstance(time, T.DateType) else time


def _fields(texts: Sequence[str], events: DataFrame) -> list[T.StructField]:
    """Return the names and types of expressions; plain columns, and 1, need no analysis."""
    columns = {field.name: field for field in events.schema}
    is_clear = len({name.lower() for name in columns}) == len(events.columns)
    if is_clear and all(text == "1" or (text in columns and _PLAIN.fullmatch(text)) for text in texts):
        return [columns.get(text) or T.StructField(text, T.IntegerType(), nullable=False) for text in texts]
    return list(events.select(*(F.expr(text) for text in texts)).schema)


def packing_of(query: Query, types: Types) -> Packing | None:
    """Return how the states of a query can be packed, now that their types are known."""
    packing = Packing.of_states(types.states) if types.shared and not types.value_keys else None
    if packing is None or not all(isinstance(result.type, _FIXED_SIZE) for result in types.results):
        return None
    # The types of decimals grow with each addition in Spark.
    exact = not any(isinstance(result.type, T.DecimalType) for result in types.results)
    return replace(packing, folds=packing.folds and exact)


def _typed_arguments(aggregate: Aggregate) -> list[str]:
    """List the arguments that have a type, and the value to order by."""
    ordered = [aggregate.ordered_by] if aggregate.ordered_by else []
    return [text for text in (*ordered, *aggregate.arguments) if text != "*"]


def microseconds(sql: str, time: T.DataType, *, fractions: bool = True) -> str:
    """Return a time as Spark's window() counts it: microseconds since 1970; without `fractions`, perhaps whole seconds.

    The cheapest way is used: whole seconds for a time without a zone, if they are enough.
    """
    if not isinstance(time, T.TimestampNTZType):
        return f"unix_micros(CAST({sql} AS TIMESTAMP))"
    sql = f"CAST({sql} AS TIMESTAMP_NTZ)"
    # No function converts a time without a zone to microseconds without using the session's zone. One converts it to
    # seconds, truncated, which before 1970 is not the start of the second.
    fraction = f"CAST(extract(SECOND FROM {sql}) * 1000000 AS BIGINT)"
    early = (
        f"unix_date(CAST({sql} AS DATE)) * 86400000000L + hour({sql}) * 3600000000L + minute({sql}) * 60000000L"
        f" + {fraction}"
    )
    late = f"unix_timestamp({sql}) * 1000000L" + (f" + {fraction} % 1000000L" if fractions else "")
    return f"CASE WHEN {sql} < {_EPOCH_NTZ} THEN {early} ELSE {late} END"


def timestamp(micros: str, time: T.DataType) -> str:
    """Return microseconds as a time of the same type as the events'."""
    if isinstance(time, T.TimestampNTZType):
        return f"{_EPOCH_NTZ} + INTERVAL '0.000001' SECOND * ({micros})"
    return f"timestamp_micros({micros})"
