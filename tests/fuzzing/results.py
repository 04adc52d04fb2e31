"""Comparing results: names, types and nullability of their columns, and every value, floating ones to nine digits."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from threading import Timer
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

PATIENCE = 120
"""Seconds after which a job of tiny data takes too long."""
Row = tuple[str | None, ...]
CHOSEN = {
    *("min", "max", "min_by", "max_by", "median", "percentile", "percentile_cont", "percentile_disc", "mode"),
    *(
        "any_value",
        "count",
        "coalesce",
        "cast",
        "collect_set",
        "collect_list",
        "array_agg",
        "struct",
        "approx_percentile",
    ),
}
"""Functions that return values of events as they are, so that even floating ones are equal to the last digit."""
SQUARED = {"var_pop", "var_samp", "variance", "covar_pop", "covar_samp", "regr_sxx", "regr_sxy", "regr_syy"}
ROUGH = "approx_count_distinct"


def texts_of(frame: DataFrame) -> DataFrame:
    """Turn any result into one column of texts, so that results of many queries fit into one job."""
    placed = frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))
    columns = [_text(f"c{place}", field.dataType) for place, field in enumerate(frame.schema)]
    return placed.select(F.array(*map(F.expr, columns)).alias("row"))


def _text(name: str, kind: DataType) -> str:
    """Write a value as text that tells all values apart: an instant is not its wall clock, and maps have no order."""
    if isinstance(kind, ArrayType):
        return f"CAST(sort_array(transform({name}, x -> coalesce({_text('x', kind.elementType)}, 'null'))) AS STRING)"
    if isinstance(kind, MapType):
        entry = f"concat({_text('x.key', kind.keyType)}, ':', coalesce({_text('x.value', kind.valueType)}, 'null'))"
        return f"CAST(sort_array(transform(map_entries({name}), x -> {entry})) AS STRING)"
    if isinstance(kind, StructType):
        parts = [f"coalesce({_text(f'{name}.`{field.name}`', field.dataType)}, 'null')" for field in kind]
        return f"CASE WHEN {name} IS NOT NULL THEN concat_ws(', ', {', '.join(parts)}) END"
    if kind.typeName() == "timestamp":
        return f"CAST(unix_micros({name}) AS STRING)"
    if kind.typeName() == "binary":
        return f"hex({name})"
    return f"CAST({name} AS STRING)"


def collected(frames: dict[str, DataFrame]) -> dict[str, list[Row]]:
    """Collect many results in one job, which is stopped when it takes too long: that is a finding too."""
    if not frames:
        return {}
    tagged = [texts_of(frame).select(F.lit(name).alias("name"), "row") for name, frame in frames.items()]
    found: dict[str, list[Row]] = {name: [] for name in frames}
    context, group = tagged[0].sparkSession.sparkContext, uuid4().hex
    context.setJobGroup(group, "fuzz", interruptOnCancel=True)
    stop = Timer(PATIENCE, context.cancelJobGroup, [group])
    stop.start()
    try:
        for name, row in reduce(DataFrame.unionAll, tagged).collect():
            found[name].append(tuple(row))
    finally:
        stop.cancel()
    return found


def unlike(ours: StructType, right: StructType, *, is_text: bool = False) -> list[str]:
    """Say how the columns of two results differ: in names, types or nullability.

    SQL that is written without knowing the table's types (`is_text`) has the digits that Spark's own division gives to
    decimals, and the nullability that follows from it; docs/sql.md says so.
    """
    if len(ours) != len(right):
        return [f"columns {ours.names} instead of {right.names}"]
    found = []
    for one, other in zip(ours, right, strict=True):
        if one.name != other.name:
            found.append(f"name {one.name!r} instead of {other.name!r}")
        if is_text and {one.dataType.typeName(), other.dataType.typeName()} == {"decimal"}:
            continue
        if one.dataType.simpleString() != other.dataType.simpleString():
            found.append(f"type of {one.name!r} is {one.dataType.simpleString()}, not {other.dataType.simpleString()}")
        elif not is_text and (one.nullable != other.nullable or one.dataType != other.dataType):
            found.append(f"nullability of {other.name!r} is {_nulls(one)} instead of {_nulls(other)}")
    return found


def _nulls(field: StructField) -> str:
    inside = re.findall(r"'(?:containsNull|valueContainsNull|nullable)': (\w+)", str(field.dataType.jsonValue()))
    return f"{field.nullable}{inside or ''}"


@dataclass(frozen=True)
class Value:
    """A column of aggregates: its text, and whether it is a floating number."""

    text: str
    is_floating: bool = False


def values_of(texts: Sequence[str], schema: StructType, *, is_text: bool = False) -> list[Value]:
    """Pair the aggregates, which are the last columns of a result, with what their type is."""
    fields = schema.fields[len(schema) - len(texts) :]
    return [Value(text, is_floating(field, is_text)) for text, field in zip(texts, fields, strict=True)]


def is_floating(field: StructField, is_text: bool = False) -> bool:
    """Say whether the last digits of a column may differ: SQL that is written rounds decimals as Spark's division."""
    return field.dataType.typeName() in ("double", "float", *(["decimal"] if is_text else []))


def differing(
    ours: Sequence[Row], right: Sequence[Row], values: Sequence[Value], scale: float, *, is_ordered: bool = False
) -> str:
    """Say how two results differ, or nothing; the last columns are the given aggregates.

    >>> differing([("a", "1.0000000000001")], [("a", "1.0")], [Value("sum(v)", True)], 1.0)
    ''
    >>> differing([("a", "2")], [("a", "1")], [Value("sum(n)")], 1.0)
    "sum(n) is 2 instead of 1 at ('a',)"
    """
    width = len((right or ours)[0]) - len(values) if right or ours else 0
    here, there = (Counter(row[:width] for row in rows) for rows in (ours, right))
    if here != there:
        missing, extra = list((there - here).elements())[:2], list((here - there).elements())[:2]
        return f"{len(ours)} rows instead of {len(right)}: missing {missing}, extra {extra}"
    for one, other in zip(*(rows if is_ordered else sorted(rows, key=_order) for rows in (ours, right)), strict=True):
        if one[:width] != other[:width]:
            return f"{one[:width]} instead of {other[:width]} in this place"
        for value, left, correct in zip(values, one[width:], other[width:], strict=True):
            if left != correct and not _is_close(left, correct, value, scale):
                return f"{value.text} is {left} instead of {correct} at {one[:width]}"
    return ""


def _order(row: Row) -> tuple[tuple[bool, str], ...]:
    return tuple((part is not None, part or "") for part in row)


def _is_close(left: str | None, right: str | None, value: Value, scale: float) -> bool:
    called = set(re.findall(r"\b([a-z_0-9]+)\s*\(", value.text.lower()))
    if left is None or right is None or not (value.is_floating or ROUGH in called):
        return False
    one, other = float(left), float(right)
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    if ROUGH in called:
        return abs(one - other) <= max(2, 0.2 * other)
    if called <= CHOSEN:
        return one == other
    slack = 1.0 if called <= {"corr", "filter"} else scale**2 if called & SQUARED else scale
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9 * slack)
