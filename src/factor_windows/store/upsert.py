"""Upserts: merge rows of a result, or changes of a store, into a Delta or Iceberg table."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from factor_windows.errors import OptionError, StoreConflictError
from factor_windows.functions.expression import quoted
from factor_windows.query import WINDOW_COLUMNS
from factor_windows.spark.lakehouse import add_columns, create_table, is_conflict, narrowed, schema_of, table_name
from factor_windows.spark.messages import check_events, spark_says
from factor_windows.spark.restricted import kept
from factor_windows.spark.result import IDENTITY
from factor_windows.store.attempts import try_until_first


def upsert(rows: DataFrame, table: str, *, by: Sequence[str] | None = None, format: str | None = None) -> None:
    """Merge rows of a result into a Delta or Iceberg table: update existing rows, insert the others.

    Rows match on the query's keys, `window_id` and `window_start` (and `window_end` for growing windows), or on the
    columns named in `by`. Missing columns are added to the table. A missing table is created if `format` is "delta" or
    "iceberg". Repeating the same rows changes nothing, so a micro-batch may be repeated: call it in `foreachBatch`.
    """
    check_events(rows)
    if rows.isStreaming:
        raise OptionError("these rows are a stream; upsert each micro-batch, in writeStream.foreachBatch(...)")
    name = table_name(table)
    same = _identity(rows, by)
    with spark_says(f"cannot upsert into {table}"):
        _prepare(rows, table, name, format)
        # MERGE reads its rows twice, and the operators of a stream would run twice. An empty micro-batch is computed,
        # too, because Spark continues only with states that were written.
        with kept(rows) as is_kept:
            if not is_kept or rows.count():
                try_until_first(lambda: _merge(rows, table, _statement(rows.columns, name, same)))


def _prepare(rows: DataFrame, table: str, name: str, format: str | None) -> None:
    """Check that the table exists and has columns for the rows."""
    spark = rows.sparkSession
    has = schema_of(spark, name)
    if has is None:
        if format is None:
            raise OptionError(f"there is no table {table}; create it, or set format='delta' or format='iceberg'")
        try:
            create_table(spark.createDataFrame([], rows.schema), name, format)
        except OptionError:
            raise
        except Exception:
            # Another writer may have created it.
            has = schema_of(spark, name)
            if has is None:
                raise
    if has is None:
        return
    for before, new in narrowed(has, rows.schema):
        raise OptionError(
            f"the column {new.name!r} is {new.dataType.simpleString()} in these rows, and the table {table} has it as "
            f"{before.dataType.simpleString()}, which cannot hold all its values; cast it, or alter the table"
        )
    add_columns(spark, name, has, rows.schema)


def _statement(names: Sequence[str], table: str, same: Sequence[str]) -> str:
    columns = [_quoted(name) for name in names]
    return (
        f"MERGE INTO {_escaped(table)} AS kept USING {{rows}} AS new ON "
        + " AND ".join(f"kept.{_quoted(name)} <=> new.{_quoted(name)}" for name in same)
        + f" WHEN MATCHED THEN UPDATE SET {', '.join(f'{column} = new.{column}' for column in columns)}"
        + f" WHEN NOT MATCHED THEN INSERT ({', '.join(columns)})"
        + f" VALUES ({', '.join(f'new.{column}' for column in columns)})"
    )


def _merge(rows: DataFrame, table: str, statement: str) -> None:
    try:
        rows.sparkSession.sql(statement, rows=rows).collect()
    except Exception as trouble:
        if not is_conflict(trouble):
            raise
        raise StoreConflictError(f"other writers kept changing {table}; nothing was merged, so try again") from trouble


def _quoted(column: str) -> str:
    return _escaped(quoted(column))


def _escaped(name: str) -> str:
    """Escape a name so that braces in it have no other meaning."""
    return name.replace("{", "{{").replace("}", "}}")


def _identity(rows: DataFrame, by: Sequence[str] | None) -> list[str]:
    """Return the columns that identify rows: the given ones, or those in the result's metadata."""
    window_id = WINDOW_COLUMNS[0]
    if by is None:
        noted = rows.schema[window_id].metadata.get(IDENTITY) if window_id in rows.columns else None
        if noted is None:
            raise OptionError(
                "these rows no longer say which columns identify them; name these, such as "
                "by=['device', 'window_id', 'window_start']"
            )
        by = noted
    same = [by] if isinstance(by, str) else list(by)
    missing = [column for column in same if column not in rows.columns]
    if missing or not same:
        raise OptionError(
            f"rows are identified by {missing[0] if missing else 'nothing'}, which is none of their columns "
            f"{', '.join(rows.columns)}; leave it in the result, or name others with by=[...]"
        )
    return same
