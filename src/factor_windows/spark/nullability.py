"""Columns that are never null, said so that Spark knows it: their schema is then that of the user's own query."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    MapType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    YearMonthIntervalType,
)

_VALUES: tuple[tuple[type[DataType], str], ...] = (
    (DecimalType, "0BD"),
    (NumericType, "0Y"),
    (StringType, "''"),
    (BinaryType, "X''"),
    (BooleanType, "false"),
    (DateType, "DATE '1970-01-01'"),
    (TimestampType, "timestamp_micros(0L)"),
    (TimestampNTZType, "TIMESTAMP_NTZ '1970-01-01'"),
    (DayTimeIntervalType, "INTERVAL '0' DAY"),
    (YearMonthIntervalType, "INTERVAL '0' MONTH"),
    (ArrayType, "array()"),
    (MapType, "map()"),
)
"""A value of each type, of the narrowest that Spark widens without the possibility of null."""


def never_null(sql: str, field: StructField) -> str:
    """Return an expression that Spark knows not to be null, if the field is not.

    >>> from pyspark.sql.types import LongType
    >>> never_null("`n`", StructField("n", LongType(), nullable=False)), never_null("`n`", StructField("n", LongType()))
    ('coalesce(`n`, 0Y)', '`n`')
    """
    value = None if field.nullable else _value(field.dataType)
    return sql if value is None else f"coalesce({sql}, {value})"


def _value(kind: DataType) -> str | None:
    """Return some value of a type; none for a type that is not known."""
    if isinstance(kind, StructType):
        values = [_value(field.dataType) for field in kind]
        if None in values:
            return None
        return f"named_struct({', '.join(f'{_text(f.name)}, {v}' for f, v in zip(kind, values, strict=True))})"
    return next((value for type_, value in _VALUES if isinstance(kind, type_)), None)


def _text(name: str) -> str:
    return f"CAST(X'{name.encode().hex()}' AS STRING)"
