"""Grouped rows with the columns they are grouped by, which a session may be set to leave out."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from factor_windows.spark.settings import keeps_groups


def grouped(rows: DataFrame, by: Sequence[str], *aggregates: Column) -> DataFrame:
    """Return the columns that rows are grouped by, as names in SQL, and the aggregates of each group."""
    kept = [] if keeps_groups(rows) else map(F.col, by)
    return rows.groupBy(*by).agg(*kept, *aggregates)
