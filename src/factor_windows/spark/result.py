"""A result: what the query does after its aggregates, and what is noted on its columns."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factor_windows.algebra.growing import Growing
from factor_windows.query import WINDOW_COLUMNS, Query

WINDOW_NAMES = "factor_windows.windows"
"""Where a result notes, on its `window_id`, the names of its windows."""
IDENTITY = "factor_windows.identity"
"""Where it notes the columns that tell its rows apart."""


def note_windows(query: Query, result: DataFrame) -> DataFrame:
    """Note on a result what its windows are, and what tells its rows apart."""
    return result.withMetadata(WINDOW_COLUMNS[0], notes_of(query))


def notes_of(query: Query) -> dict[str, list[str]]:
    """Return what a result notes on its `window_id`."""
    window_id, start, end = WINDOW_COLUMNS
    # Instances of a window that grows start together.
    grows = any(isinstance(window, Growing) for window in query.windows)
    identity = [*(key.name for key in query.parsed_keys), window_id, start, *([end] if grows else [])]
    return {WINDOW_NAMES: list(dict.fromkeys(query.window_names)), IDENTITY: identity}


def apply_post_aggregation(query: Query, result: DataFrame) -> DataFrame:
    """Do what the query does after its aggregates."""
    if query.kept:
        result = result.where(query.kept)
    if query.parsed_output:
        result = result.select(*(F.expr(column.sql).alias(column.name) for column in query.parsed_output))
    return result.sparkSession.sql(query.outer, result=result) if query.outer else result
