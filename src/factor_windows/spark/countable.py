"""Which types of values can be counted so that the result is exactly Spark's own."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from factor_windows.functions.aggregate import Aggregate
from factor_windows.spark.settings import setting

_NUMBERS = (T.NumericType,)
_INTERVALS = (T.DayTimeIntervalType, T.YearMonthIntervalType)
_PLAIN = (
    *(*_NUMBERS, *_INTERVALS, T.BooleanType, T.BinaryType, T.DateType, T.TimestampType, T.TimestampNTZType),
    *(each for each in [getattr(T, "TimeType", None)] if each is not None),
)
_MERGED_BY_FREQUENCY = ("median", "percentile", "percentile_cont")
_LEGACY_DISC = "spark.sql.legacy.percentileDiscCalculation"


def can_count(aggregate: Aggregate, types: Sequence[T.DataType], events: DataFrame) -> bool:
    """Say whether an aggregate that can be computed from value counts can be for values of these types.

    Spark groups equal values and keeps one of them: with a collation these may be different texts. Values without an
    order have no first among equally frequent ones. Descending orders change signs.
    """
    if aggregate.distinct:
        return all(map(_is_plain, types))
    value, name = types[0], aggregate.function.name
    if name == "mode":
        # Before 4.2, Spark's own mode distinguished zeros of both signs, and all NaN.
        return _is_plain(value) and (not _has_floats(value) or _version(events) >= (4, 2))
    if name == "percentile_disc" and setting(events.sparkSession, _LEGACY_DISC, "false") != "false":
        return False
    if name in _MERGED_BY_FREQUENCY and not aggregate.descending:
        return _is_plain(value) and not isinstance(value, T.StringType)
    return isinstance(value, _NUMBERS)


def _is_plain(kind: T.DataType) -> bool:
    """Say whether equal values of a type are the same value, and all of them can be ordered."""
    if isinstance(kind, T.ArrayType):
        return _is_plain(kind.elementType)
    if isinstance(kind, T.StructType):
        return all(_is_plain(field.dataType) for field in kind)
    return isinstance(kind, _PLAIN) or kind == T.StringType()


def _has_floats(kind: T.DataType) -> bool:
    if isinstance(kind, T.ArrayType):
        return _has_floats(kind.elementType)
    if isinstance(kind, T.StructType):
        return any(_has_floats(field.dataType) for field in kind)
    return isinstance(kind, T.FloatType | T.DoubleType)


def _version(events: DataFrame) -> tuple[int, ...]:
    return tuple(int(part) for part in events.sparkSession.version.split(".")[:2])
