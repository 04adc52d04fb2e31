"""Declare columns that are never null as such, so that Spark gives the schema that the user's own query would have."""

from __future__ import annotations

import re

from pyspark.sql import types as T

_PLAIN = re.compile(r"[\w /.@:,()-]*", re.ASCII)
_VALUES: tuple[tuple[type[T.DataType], str], ...] = (
    (T.DecimalType, "0BD"),
    (T.NumericType, "0Y"),
    (T.StringType, "''"),
    (T.BinaryType, "X''"),
    (T.BooleanType, "false"),
    (T.DateType, "DATE '1970-01-01'"),
    (T.TimestampType, "timestamp_micros(0L)"),
    (T.TimestampNTZType, "TIMESTAMP_NTZ '1970-01-01'"),
    (T.DayTimeIntervalType, "INTERVAL '0' DAY"),
    (T.YearMonthIntervalType, "INTERVAL '0' MONTH"),
    (T.ArrayType, "array()"),
    (T.MapType, "map()"),
)
"""A value for each type, of the narrowest type that Spark can widen without introducing nulls."""


def never_null(sql: str, field: T.StructField) -> str:
    """Return an expression that Spark knows is never null, if the field is not nullable.

    >>> count = T.StructField("n", T.LongType(), nullable=False)
    >>> never_null("`n`", count), never_null("`n`", T.StructField("n", T.LongType()))
    ('coalesce(`n`, 0Y)', '`n`')
    """
    value = None if field.nullable else _value(field.dataType)
    return sql if value is None else f"coalesce({sql}, {value})"


def _value(kind: T.DataType) -> str | None:
    """Return some value of a type; `None` for an unknown type."""
    if isinstance(kind, T.StructType):
        values = [_value(field.dataType) for field in kind]
        if None in values:
            return None
        return f"named_struct({', '.join(f'{text_of(f.name)}, {v}' for f, v in zip(kind, values, strict=True))})"
    return next((value for type_, value in _VALUES if isinstance(kind, type_)), None)


def text_of(name: str) -> str:
    """Write a text as a SQL literal, whatever it contains and however the session treats backslashes."""
    if _PLAIN.fullmatch(name):
        return f"'{name}'"
    return f"CAST(X'{name.encode().hex()}' AS STRING)"
