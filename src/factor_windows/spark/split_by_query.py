"""Split the rows of a stream of several queries by query, each with its own columns.

The parts of a query after its aggregates are SQL. They come from a plan, held in Python, and never from the rows: the
columns' metadata holds only a fingerprint of the queries, since anybody can write metadata on a column.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factor_windows.errors import OptionError
from factor_windows.functions.expression import quoted
from factor_windows.plan import Plan
from factor_windows.query import Query
from factor_windows.serialize import query_document
from factor_windows.spark.result import apply_post_aggregation, note_windows

QUERIES = "factor_windows.queries"
"""The metadata key, on the column of each query of a stream, for the fingerprint of all its queries."""
_planned: dict[str, tuple[Query, ...]] = {}
"""The queries of the streams that were planned in this process, by fingerprint."""


def remember(queries: tuple[Query, ...]) -> dict[str, str]:
    """Keep the queries of a stream for `split_by_query`; return the metadata for their columns."""
    fingerprint = sha256(json.dumps([query_document(query) for query in queries]).encode()).hexdigest()
    _planned[fingerprint] = queries
    return {QUERIES: fingerprint}


def split_by_query(batch: DataFrame, *, plan: Plan | None = None) -> dict[str, DataFrame]:
    """Split the stream of a plan by query: in `foreachBatch`, return each query's rows with its own columns.

    The queries are known in the process that planned them. Elsewhere, as in `foreachBatch` through Spark Connect, pass
    the `plan`.
    """
    columns = [field.name for field in batch.schema if QUERIES in field.metadata]
    if plan is None:
        queries = _known(batch)
    else:
        queries = plan.queries
        # Rows that were written and read back may have lost their columns' metadata.
        columns = columns or batch.columns
    if "query_id" not in batch.columns or not {query.name for query in queries} <= set(columns):
        raise OptionError(
            "split_by_query takes the rows of a shared plan's stream; these have no query_id, or no column for each "
            "of the plan's queries"
        )
    return {query.name: _own(query, batch) for query in queries}


def _known(batch: DataFrame) -> Iterable[Query]:
    """Return the queries that the rows are for, if they were planned in this process."""
    noted = {field.metadata[QUERIES] for field in batch.schema if QUERIES in field.metadata}
    if not noted:
        raise OptionError("split_by_query takes the rows of a shared plan's stream; these have no query_id of one")
    if len(noted) > 1 or not noted <= _planned.keys():
        raise OptionError(
            "these rows are for queries that were not planned in this process; "
            "pass their plan: split_by_query(batch, plan=plan)"
        )
    return _planned[noted.pop()]


def _own(query: Query, batch: DataFrame) -> DataFrame:
    own = batch.where(F.col("query_id") == query.name).select(F.col(f"{quoted(query.name)}.*"))
    return apply_post_aggregation(query, note_windows(query, own))
