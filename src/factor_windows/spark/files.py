"""Files and tables by name: what the command line reads and writes."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from factor_windows.errors import OptionError
from factor_windows.functions.expression import quoted
from factor_windows.spark.messages import first_sentence

_OTHER_FILES = (".arrow", ".avro", ".bz2", ".feather", ".gz", ".orc", ".tsv", ".txt", ".xls", ".xlsx", ".xml", ".zip")
"""Endings of files that cannot be read: a name with any other ending, such as lake.readings, may be a table."""
FORMATS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}


def register(spark: SparkSession, name: str, place: str) -> None:
    """Register a file, a folder or a table of the catalog under a name."""
    try:
        load(spark, place).createOrReplaceTempView(quoted(name))
    except AnalysisException as mistake:
        raise OptionError(f"--input {name}={place} cannot be read: {first_sentence(mistake)}") from None


def load(spark: SparkSession, place: str) -> DataFrame:
    """Read a file, a folder or a table of the catalog."""
    if not is_file(place):
        return spark.table(place)
    reader = spark.read.option("header", True).option("inferSchema", True)
    return reader.format(_format(place)).load(place)


def check_free(spark: SparkSession, place: str) -> None:
    """Check that nothing exists that a result would replace."""
    if is_there(spark, place):
        raise _exists(place)


def is_there(spark: SparkSession, place: str) -> bool:
    """Say whether there is a file, a folder or a table of this name."""
    if not is_file(place):
        return bool(spark.catalog.tableExists(place))
    try:
        return bool(spark.read.format("binaryFile").load(place).inputFiles()) or Path(place).exists()
    except AnalysisException:
        return False


def write(result: DataFrame, place: str) -> None:
    """Write a result to a file whose ending gives the format; any other name is a table of the catalog."""
    writer = result.write.mode("overwrite")
    if is_file(place):
        writer.option("header", True).format(_format(place)).save(place)
    else:
        writer.saveAsTable(place)


def stream_to(result: DataFrame, place: str) -> DataStreamWriter:
    """Prepare to write the rows of a stream to files in a folder, whose ending gives the format."""
    return result.writeStream.option("header", True).format(_format(place)).option("path", place)


def discard(result: DataFrame) -> None:
    """Compute all rows of a result without writing them anywhere."""
    result.write.format("noop").mode("overwrite").save()


def is_file(place: str) -> bool:
    """Say whether a name is that of a file or a folder, rather than of a table."""
    return "/" in place or Path(place).suffix.lower() in FORMATS or Path(place).exists()


def check_ending(place: str) -> None:
    """Refuse a file of an unknown format.

    >>> check_ending("lake.readings")
    >>> check_ending("r.xlsx")
    Traceback (most recent call last):
    factor_windows.errors.OptionError: 'r.xlsx' ends in .xlsx; supported are .parquet, .csv, .json, .jsonl, .ndjson
    """
    suffix = Path(place).suffix.lower()
    if suffix in _OTHER_FILES or (suffix and suffix not in FORMATS and is_file(place)):
        raise OptionError(f"{place!r} ends in {suffix}; supported are {', '.join(FORMATS)}")


def check_local_files(inputs: Iterable[str], outputs: Iterable[str] = ()) -> None:
    """Refuse inputs that are missing on this machine and outputs that exist; this check does not need Spark."""
    for place in inputs:
        path = _local_path(place)
        if path is not None and not path.exists():
            there = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
            near = get_close_matches(path.name, there, n=1)
            hint = f"; did you mean {str(path.with_name(near[0]))!r}?" if near else ""
            raise OptionError(f"there is no file {place!r}{hint}")
    for place in outputs:
        path = _local_path(place)
        if path is not None and path.exists():
            raise _exists(place)


def _local_path(place: str) -> Path | None:
    """Return the path of a file on this machine; `None` for tables, patterns and other file systems."""
    local = place.removeprefix("file:")
    return None if not is_file(place) or "://" in local or set(local) & set("*?[{") else Path(local)


def _exists(place: str) -> OptionError:
    return OptionError(f"--output {place!r} exists already; --overwrite replaces it")


def _format(place: str) -> str:
    check_ending(place)
    suffix = Path(place).suffix.lower()
    return FORMATS.get(suffix, "parquet")
