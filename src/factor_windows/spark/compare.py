"""Compare two results row by row: exactly, except for the last digits of floating-point numbers."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType

from factor_windows.spark.grouped import grouped

TOLERANCE = 1e-9
"""The relative difference allowed between floating-point numbers: sums depend on the order of their terms."""


def differing_rows(left: DataFrame, right: DataFrame) -> int:
    """Count rows of either side without an equal on the other, as often as they occur; columns are matched by place."""
    return compared(left, right)[1]


def compared(left: DataFrame, right: DataFrame) -> tuple[int, int]:
    """Count the rows on the left, and the rows of either side that differ."""
    floats = [place for place, field in enumerate(left.schema) if isinstance(field.dataType, DoubleType | FloatType)]
    exact = [place for place in range(len(left.columns)) if place not in floats]
    inexact = f"array_sort(collect_list(struct({', '.join(f'c{place}' for place in floats) or '1'})))"
    sides = [
        grouped(
            frame.toDF(*(f"c{place}" for place in range(len(frame.columns)))),
            [f"c{place}" for place in exact],
            F.expr(inexact).alias(name),
        )
        for frame, name in ((left, "here"), (right, "there"))
    ]
    same = F.lit(True)
    for place in exact:
        same = same & F.col(f"l.c{place}").eqNullSafe(F.col(f"r.c{place}"))
    joined = sides[0].alias("l").join(sides[1].alias("r"), same, "full_outer")
    close = [
        f"(a.c{n} <=> b.c{n} OR abs(a.c{n} - b.c{n}) <= {TOLERANCE} * greatest(1e-300D, abs(b.c{n})))" for n in floats
    ]
    equal = (
        f"size(here) = size(there) AND forall(zip_with(here, there, (a, b) -> {' AND '.join(close) or 'true'}), x -> x)"
    )
    counted = joined.agg(
        F.expr("sum(coalesce(size(here), 0))"),
        F.expr(
            f"sum(CASE WHEN coalesce({equal}, false) THEN 0"
            " ELSE greatest(1, abs(coalesce(size(here), 0) - coalesce(size(there), 0))) END)"
        ),
    ).first()
    rows, differing = counted or (0, 0)
    return int(rows or 0), int(differing or 0)
