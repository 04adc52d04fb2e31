"""Upserts: rows of a result, or changes of a store, merged into a Delta or Iceberg table."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from factor_windows.errors import OptionError, StoreConflictError
from factor_windows.functions.expression import quoted
from factor_windows.query import WINDOW_COLUMNS
from factor_windows.spark.lakehouse import add_columns, create_table, is_conflict, schema_of, table_name
from factor_windows.spark.messages import check_events, spark_says
from factor_windows.spark.restricted import kept
from factor_windows.spark.result import IDENTITY
from factor_windows.store.attempts import try_until_first


def upsert(rows: DataFrame, table: str, *, by: Sequence[str] | None = None, format: str | None = None) -> None:
    """Merge rows of a result into a Delta or Iceberg table: those that are there are updated, others inserted.

    Rows are the same if the query's keys, `window_id` and `window_start` are, and `window_end` of windows that grow; or
    the columns named in `by`. Columns that the table lacks are added to it. A table that is missing is made in the
    `format`, "delta" or "iceberg", if that is given. The same rows again change nothing, so a micro-batch may be
    repeated: call it in `foreachBatch`.
    """
    check_events(rows)
    if rows.isStreaming:
        raise OptionError("these rows are a stream; upsert each micro-batch, in writeStream.foreachBatch(...)")
    name, spark = table_name(table), rows.sparkSession
    same = _identity(rows, by)
    with spark_says(f"cannot upsert into {table}"):
        has = schema_of(spark, name)
        if has is None and format is None:
            raise OptionError(f"there is no table {table}; make it, or say format='delta' or format='iceberg'")
        if has is None and format is not None:
            _create(rows, name, format)
        elif has is not None:
            add_columns(spark, name, has, rows.schema)
        # MERGE reads its rows twice, and the operators of a stream would run twice. An empty micro-batch is computed as
        # well, since Spark goes on only with states that were written.
        with kept(rows) as is_kept:
            if not is_kept or rows.count():
                _merge(rows, table, name, same)


def _create(rows: DataFrame, name: str, format: str) -> None:
    spark = rows.sparkSession
    try:
        create_table(spark.createDataFrame([], rows.schema), name, format)
    except AnalysisException:
        # Another writer may have made it.
        if schema_of(spark, name) is None:
            raise


def _merge(rows: DataFrame, table: str, name: str, same: Sequence[str]) -> None:
    columns = [_quoted(column) for column in rows.columns]
    text = (
        f"MERGE INTO {_escaped(name)} AS kept USING {{rows}} AS new ON "
        + " AND ".join(f"kept.{_quoted(column)} <=> new.{_quoted(column)}" for column in same)
        + f" WHEN MATCHED THEN UPDATE SET {', '.join(f'{column} = new.{column}' for column in columns)}"
        + f" WHEN NOT MATCHED THEN INSERT ({', '.join(columns)})"
        + f" VALUES ({', '.join(f'new.{column}' for column in columns)})"
    )

    def merge() -> None:
        try:
            rows.sparkSession.sql(text, rows=rows).collect()
        except Exception as trouble:
            if not is_conflict(trouble):
                raise
            raise StoreConflictError(
                f"other writers of {table} were faster each time; nothing was merged, so try again"
            ) from trouble

    try_until_first(merge)


def _quoted(column: str) -> str:
    return _escaped(quoted(column))


def _escaped(name: str) -> str:
    """Write a name so that braces in it stand for nothing else."""
    return name.replace("{", "{{").replace("}", "}}")


def _identity(rows: DataFrame, by: Sequence[str] | None) -> list[str]:
    """Return the columns that tell rows apart: those that are named, or that a result has noted."""
    window_id = WINDOW_COLUMNS[0]
    if by is None:
        noted = rows.schema[window_id].metadata.get(IDENTITY) if window_id in rows.columns else None
        if noted is None:
            raise OptionError(
                "these rows no longer say which columns tell them apart; name them, such as "
                "by=['device', 'window_id', 'window_start']"
            )
        by = noted
    same = [by] if isinstance(by, str) else list(by)
    missing = [column for column in same if column not in rows.columns]
    if missing or not same:
        raise OptionError(
            f"rows are told apart by {missing[0] if missing else 'nothing'}, which is none of their columns "
            f"{', '.join(rows.columns)}; leave it in the result, or name others with by=[...]"
        )
    return same
