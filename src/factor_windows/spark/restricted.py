"""Sessions that allow less than usual: serverless ones, and the flow functions of a pipeline."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from factor_windows.errors import OptionError

PIPELINE = "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION"
"""Spark's error when a flow function of a Declarative Pipeline asks anything about a DataFrame."""
_REFUSED = ("NOT_SUPPORTED_WITH_SERVERLESS", "CONFIG_NOT_AVAILABLE", "SESSION_MUTATION_IN_DECLARATIVE_PIPELINE")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]*)\]")


def persist(rows: DataFrame) -> bool:
    """Let Spark cache rows when they are first computed; say whether it does: serverless sessions cache nothing."""
    try:
        rows.persist()
    except PySparkException as trouble:
        if not is_refusal(trouble):
            raise
        return False
    return True


@contextmanager
def kept(rows: DataFrame) -> Iterator[bool]:
    """Let Spark cache rows while they are read several times, and say whether it does."""
    try:
        is_kept = rows.storageLevel != StorageLevel.NONE
    except PySparkException as trouble:
        if not is_refusal(trouble):
            raise
        is_kept = False
    if is_kept:
        # Whoever cached them also releases them.
        yield True
        return
    is_kept = persist(rows)
    try:
        yield is_kept
    finally:
        if is_kept:
            rows.unpersist()


def is_refusal(trouble: PySparkException) -> bool:
    """Say whether the error means that the session does not allow the request at all."""
    return condition_of(trouble).startswith(_REFUSED)


class FlowFunctionError(OptionError):
    """A DataFrame that cannot be analyzed, because a pipeline calls its flow functions before its tables exist."""

    def __init__(self) -> None:
        super().__init__(
            "a pipeline's flow function may not ask Spark about its events, as a plan does; run the plan outside the "
            "function and return the result in it, or return fw.sql(spark, ...) or spark.sql(plan.sql())"
        )


def check_may_ask(rows: DataFrame) -> None:
    """Refuse a DataFrame that Spark refuses to analyze."""
    try:
        # All work starts with this question, and Spark Connect caches the answer.
        _ = rows.isStreaming
    except PySparkException as trouble:
        if is_in_flow_function(trouble):
            raise FlowFunctionError from None
        raise


def is_in_flow_function(trouble: PySparkException) -> bool:
    """Say whether an error comes from analyzing a DataFrame in a flow function."""
    return condition_of(trouble) == PIPELINE


def condition_of(trouble: PySparkException) -> str:
    """Return the name of an error's condition; servers of other vendors may put it in the message only.

    >>> condition_of(PySparkException("[CONFIG_NOT_AVAILABLE] Configuration a.b is not available."))
    'CONFIG_NOT_AVAILABLE'
    """
    found = _CONDITION.match(str(trouble))
    return trouble.getCondition() or (found[1] if found else "")
