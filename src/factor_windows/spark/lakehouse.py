"""Delta and Iceberg tables: their names, their creation, and the errors they raise if another writer was faster."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.types import StructField, StructType
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from factor_windows.errors import OptionError
from factor_windows.functions.expression import quoted

FORMATS = ("delta", "iceberg")
_MISSING = ("TABLE_OR_VIEW_NOT_FOUND", "PATH_NOT_FOUND", "DELTA_TABLE_NOT_FOUND", "DELTA_PATH_DOES_NOT_EXIST")
_BY_PATH = "delta."
"""The prefix of table names that are paths."""
_REFUSED_BY_DELTA = set(" ,;{}()\n\t=")
"""Characters that Delta refuses in column names, such as in `avg(t)`, unless it may map them to names of its own."""
_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_CONFLICT = re.compile(
    r"DELTA_CONCURRENT_|DELTA_METADATA_CHANGED|\bConcurrent\w+Exception|\bMetadataChangedException"
    r"|\bProtocolChangedException|\bCommitFailedException"
    r"|ValidationException\W+(Found (new )?conflicting|Found concurrently|Cannot commit|Cannot determine history)"
    r"|\bMissing required files to delete"
)
"""The errors of Delta and Iceberg if another writer was faster; Spark Connect passes on only their text."""


def table_name(table: str) -> str:
    """Quote a table name so that SQL cannot take it for anything else; a path names a Delta table.

    >>> table_name("lake.db.power")
    '`lake`.`db`.`power`'
    >>> table_name("/data/power")
    'delta.`/data/power`'
    """
    if isinstance(table, str) and "/" in table and "`" not in table:
        return f"{_BY_PATH}{quoted(table)}"
    try:
        found = exp.to_table(table, dialect="spark") if isinstance(table, str) else None
    except (ParseError, TokenError):
        found = None
    if found is None or not found.parts or found.args.get("alias"):
        raise OptionError(f"table {table!r} is not the name of a table, such as 'lake.db.power'")
    first, *others = (part.name for part in found.parts)
    if first.lower() == "delta" and len(others) == 1:
        return f"{_BY_PATH}{quoted(others[0])}"
    return ".".join(map(quoted, (first, *others)))


def schema_of(spark: SparkSession, name: str) -> StructType | None:
    """Return the columns of a table; `None` if there is no such table."""
    try:
        return spark.table(name).schema
    except AnalysisException as mistake:
        if mistake.getCondition() in _MISSING:
            return None
        raise


def create_table(rows: DataFrame, name: str, format: str, *, by: Sequence[str] = ()) -> None:
    """Create a table of a format from these rows, partitioned by some columns."""
    if format not in FORMATS:
        raise OptionError(f"format {format!r} is unknown; allowed are {', '.join(FORMATS)}")
    writer = rows.write.format(format).partitionBy(*by)
    if format == "delta" and any(_REFUSED_BY_DELTA & set(column) for column in rows.columns):
        writer = writer.option("delta.columnMapping.mode", "name")
    if name.startswith(_BY_PATH):
        # If a creation was killed, the catalog may mistake what is left for a table; this does not.
        writer.save(name.removeprefix(_BY_PATH)[1:-1].replace("``", "`"))
    else:
        writer.saveAsTable(name)


def add_columns(spark: SparkSession, name: str, has: StructType, wanted: StructType) -> None:
    """Add the columns that a table lacks."""
    missing = _missing(has, wanted)
    if not missing:
        return
    texts = ", ".join(f"{quoted(field.name)} {field.dataType.simpleString()}" for field in missing)
    try:
        spark.sql(f"ALTER TABLE {name} ADD COLUMNS ({texts})")
    except Exception:
        # Another writer may have added the same columns.
        spark.catalog.refreshTable(name)
        if _missing(spark.table(name).schema, wanted):
            raise


def _missing(has: StructType, wanted: StructType) -> list[StructField]:
    known = {field.name.lower() for field in has}
    return [field for field in wanted if field.name.lower() not in known]


def narrowed(has: StructType, wanted: StructType) -> list[tuple[StructField, StructField]]:
    """List the table's columns that cannot hold all values to be written, each with the column to be written."""
    known = {field.name.lower(): field for field in has}
    pairs = ((known[field.name.lower()], field) for field in wanted if field.name.lower() in known)
    return [(kept, new) for kept, new in pairs if not _holds(kept.dataType, new.dataType)]


def _holds(kept: T.DataType, new: T.DataType) -> bool:
    """Say whether all values of one type are values of another."""
    if kept.simpleString() == new.simpleString():
        return True
    if type(kept) in _WHOLE and type(new) in _WHOLE:
        return _WHOLE.index(type(kept)) >= _WHOLE.index(type(new))
    if isinstance(kept, T.DecimalType) and isinstance(new, T.DecimalType):
        return kept.scale >= new.scale and kept.precision - kept.scale >= new.precision - new.scale
    if isinstance(kept, T.ArrayType) and isinstance(new, T.ArrayType):
        return _holds(kept.elementType, new.elementType)
    if isinstance(kept, T.MapType) and isinstance(new, T.MapType):
        return _holds(kept.keyType, new.keyType) and _holds(kept.valueType, new.valueType)
    if isinstance(kept, T.StructType) and isinstance(new, T.StructType):
        return kept.names == new.names and all(
            _holds(one.dataType, other.dataType) for one, other in zip(kept, new, strict=True)
        )
    return isinstance(kept, T.DoubleType) and isinstance(new, T.FloatType)


def is_conflict(trouble: BaseException) -> bool:
    """Say whether another writer was faster."""
    return bool(_CONFLICT.search(str(trouble)))
