"""A result: the parts of the query after its aggregates, and the metadata on its columns."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factor_windows.algebra.growing import Growing
from factor_windows.query import WINDOW_COLUMNS, Query

WINDOW_NAMES = "factor_windows.windows"
"""The metadata key, on a result's `window_id`, for the names of its windows."""
IDENTITY = "factor_windows.identity"
"""The metadata key for the columns that identify its rows."""


def note_windows(query: Query, result: DataFrame) -> DataFrame:
    """Note in a result's metadata its windows, and the columns that identify its rows."""
    return result.withMetadata(WINDOW_COLUMNS[0], notes_of(query))


def notes_of(query: Query) -> dict[str, list[str]]:
    """Return the metadata of a result's `window_id`."""
    window_id, start, end = WINDOW_COLUMNS
    # Instances of a growing window have the same start.
    grows = any(isinstance(window, Growing) for window in query.windows)
    identity = [*(key.name for key in query.parsed_keys), window_id, start, *([end] if grows else [])]
    return {WINDOW_NAMES: list(dict.fromkeys(query.window_names)), IDENTITY: identity}


def apply_post_aggregation(query: Query, result: DataFrame) -> DataFrame:
    """Apply the parts of the query that come after its aggregates."""
    if query.kept:
        result = result.where(query.kept)
    if query.parsed_output:
        result = result.select(*(F.expr(column.sql).alias(column.name) for column in query.parsed_output))
    return result.sparkSession.sql(query.outer, result=result) if query.outer else result
