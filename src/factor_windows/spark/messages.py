"""Spark's error messages in one sentence: the deepest cause, without stack traces and plans."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches

from pyspark.errors import AnalysisException, PySparkException, UnsupportedOperationException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame

from factor_windows.errors import OptionError, QueryError
from factor_windows.spark.restricted import check_may_ask

MOST = 400
"""The maximum length of a sentence."""
_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""The loggers to which PySpark writes kilobytes of JSON, with a stack trace, for every error in a query."""


@contextmanager
def spark_says(what: str) -> Iterator[None]:
    """Replace Spark's error about a query by one sentence that starts with `what`, and nothing else."""
    with without_json():
        try:
            yield
        except (AnalysisException, UnsupportedOperationException) as mistake:
            raise QueryError(f"{what}: {first_sentence(mistake)}") from None


@contextmanager
def without_json() -> Iterator[None]:
    """Keep PySpark from logging errors that are reported in other words."""
    before = {logger: logger.disabled for logger in map(PySparkLogger.getLogger, _LOGGERS)}
    for logger in before:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in before.items():
            logger.disabled = disabled


def check_events(events: object) -> None:
    """Refuse, with a clear message, events that are not a DataFrame or may not be analyzed."""
    if not isinstance(events, DataFrame):
        raise OptionError(f"events {events!r} is not a PySpark DataFrame; give one, such as spark.table('events')")
    check_may_ask(events)


def is_of_spark(trouble: BaseException) -> bool:
    """Say whether an error comes from Spark rather than from a mistake in this library."""
    return type(trouble).__module__.partition(".")[0] in ("pyspark", "py4j")


def sentence(trouble: BaseException) -> str:
    """Describe an error in one sentence."""
    texts = [line for message in _messages(trouble) for line in [_plain(message)] if line]
    return texts[-1][:MOST] if texts else type(trouble).__name__


def first_sentence(mistake: PySparkException) -> str:
    """Return what Spark says is wrong with a query, without its plan; for a missing table, say what to do."""
    if mistake.getCondition() == "TABLE_OR_VIEW_NOT_FOUND":
        name = (mistake.getMessageParameters() or {}).get("relationName", "")
        given = f"--input {name.replace('`', '')}=readings.parquet"
        return f"there is no table or view {name}; name a file for it with {given}, or register a view of that name"
    if mistake.getCondition() == "UNRESOLVED_COLUMN.WITH_SUGGESTION":
        said = {name: text.replace("`", "") for name, text in (mistake.getMessageParameters() or {}).items()}
        return no_column(said.get("objectName", ""), said.get("proposal", "").split(", "))
    return _plain(_message(mistake))


def no_column(name: str, columns: Sequence[str]) -> str:
    """Say that there is no such column, and suggest the most similar one.

    >>> no_column("tempp", ["ts", "temp"]), no_column("humidity", ["ts", "temp"])
    ('there is no column tempp; did you mean temp?', 'there is no column humidity; there are ts, temp')
    """
    near = get_close_matches(name, columns, n=1)
    return f"there is no column {name}; " + (f"did you mean {near[0]}?" if near else f"there are {', '.join(columns)}")


def _messages(trouble: BaseException) -> list[str]:
    """List the messages of an error and of its causes, the deepest last."""
    java = getattr(trouble, "java_exception", None) or getattr(trouble, "_origin", None)
    if java is None:
        return [_message(trouble) if isinstance(trouble, PySparkException) else str(trouble)]
    found: list[str] = []
    while java is not None and len(found) < 20:
        found.append(str(java.getMessage() or java.getClass().getSimpleName()))
        java = java.getCause()
    return found


def _message(trouble: PySparkException) -> str:
    try:
        return trouble.getMessage() or str(trouble)
    except Exception:
        # Spark does not find the message texts of errors that a table format has added.
        return str(trouble)


def _plain(message: str) -> str:
    """Extract the useful sentence from a message; a lost task's message contains the trace of its error."""
    nested = re.findall(r"Exception: ([^\n]+)|Error: ([^\n]+)", message)
    if "Job aborted due to stage failure" in message and nested:
        message = next(filter(None, nested[-1]))
    text = message.split("SQLSTATE")[0].split(";\n")[0].split("\n\tat ")[0].split("JVM stacktrace")[0]
    return " ".join(text.split()).rstrip(" ;")
