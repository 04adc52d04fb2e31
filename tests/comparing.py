"""Comparing the results of two runs."""

import math
from decimal import Decimal

from pyspark.sql import functions as F


def columns_of(frame):
    """List the columns of a result by what users see of them: names, types and nullability, not metadata."""
    return [(field.name, field.dataType, field.nullable) for field in frame.schema]


def by_instance(query, frame):
    """Collect a result as {keys, window, start, end: values}; times as text, which has no zone to get wrong."""
    times = {name: F.col(name).cast("string") for name in ("window_start", "window_end")}
    rows = frame.withColumns(times).collect()
    width = len(query.parsed_keys) + 3
    found = {tuple(map(_hashable, row[:width])): tuple(row[width:]) for row in rows}
    assert len(found) == len(rows), "a result has the same keys, window and start twice"
    return found


def assert_equal(query, found, expected):
    """Compare two collected results: exactly, but for floating sums and what is made of them."""
    assert found.keys() == expected.keys()
    for group, values in expected.items():
        for aggregate, left, right in zip(query.parsed_aggregates, found[group], values, strict=True):
            assert equal(left, right), f"{aggregate.sql} at {group}: {left} instead of {right}"


def equal(left, right):
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(left, list) and isinstance(right, list):
        return sorted(map(repr, left)) == sorted(map(repr, right))
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        return left == right and left.as_tuple().exponent == right.as_tuple().exponent
    return left == right and type(left) is type(right)


def _hashable(value):
    return "NaN" if isinstance(value, float) and math.isnan(value) else value
