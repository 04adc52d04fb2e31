"""Columns that events must not have, because SQL read without knowing the columns took these names for aliases."""

from __future__ import annotations

from pyspark.sql import DataFrame

from factor_windows.errors import QueryError
from factor_windows.query import Query
from factor_windows.spark.settings import is_case_sensitive


def check_absent(query: Query, events: DataFrame) -> None:
    """Refuse events with columns that would change the meaning of a query's SQL."""
    if not query.absent:
        return
    exact = is_case_sensitive(events.sparkSession)
    columns = events.columns if exact else [name.lower() for name in events.columns]
    for name in query.absent:
        if (name if exact else name.lower()) in columns:
            raise QueryError(
                f"the events have a column {name!r}, which Spark takes before the alias {name!r} in the SQL text; "
                "run the text with fw.sql, which knows the columns, or give the alias another name"
            )
