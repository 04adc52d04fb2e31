"""A stream's progress: its event time, the watermark that closes a plan's windows, and where it stopped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import DataType, TimestampNTZType

from factor_windows.errors import OptionError, QueryError
from factor_windows.physical.assigner import ALWAYS
from factor_windows.spark.checkpoint import literally
from factor_windows.spark.settings import setting
from factor_windows.tree import Pass

WATERMARK = "spark.watermarkDelayMs"
"""Spark's metadata key that marks a column as a stream's event time; `withWatermark` sets it."""
OF_A_WINDOW = {WATERMARK: 0, "spark.timeWindow": True}
"""The metadata that tells Spark that a struct carries event time as a window, as its own window() notes it."""
CHAINS = "spark.sql.streaming.statefulOperator.allowMultiple"
"""Spark's setting for whether each of several stateful operators has a watermark of its own."""
CLOSED = "factor_windows.closed."
"""The prefix of the metrics in which a stream reports the end of the last window that it has closed."""
_PASS_ON = {"stateStoreSave", "sessionWindowStateStoreSaveExec", "dedupe", "dedupeWithinWatermark", "globalLimit"}
"""Stateful operators that pass on the watermark they receive; a join, for example, delays it."""
_UNKNOWN = (
    "{why}; pass a time instead of the query, such as max(window_end) of all rows that the stream has written: "
    "flush(events, datetime(...))"
)


def check_event_time(plan: Pass, events: DataFrame) -> None:
    """Refuse a stream whose watermark is not on the query's time: its windows would never be complete."""
    time = plan.query.parsed_time.sql.replace("`", "")
    marked = [field.name for field in events.schema if WATERMARK in field.metadata]
    if not marked:
        raise QueryError(
            f"the stream has no watermark, so no window would ever be complete; write "
            f"events.withWatermark({time!r}, '10 minutes') with the longest delay that you expect"
        )
    try:
        # Spark resolves the name to a column, whatever its case.
        [field] = events.select(F.expr(plan.query.parsed_time.sql)).schema
    except AnalysisException:
        field = None
    if field is None or WATERMARK not in field.metadata:
        raise QueryError(
            f"the stream's watermark is on {marked[0]!r}, but the query's time is {time!r}; "
            "put the watermark on the query's time column"
        )


def check_chains(spark: SparkSession, operators: int) -> None:
    """Refuse a chain of operators where Spark would give all of them one watermark and drop rows between them."""
    if operators > 1 and setting(spark, CHAINS, "true") == "false":
        raise OptionError(
            f"{CHAINS} is false, which makes Spark lose rows between the {operators} operators of this plan; "
            "set it to true, or plan with optimize(query, search='none'), which needs one operator"
        )


def tell_closed(rows: DataFrame, end: str, states: Iterable[str], *, mode: str) -> DataFrame:
    """Let a stream's progress report how many windows were output and, in append mode, the end of the last of them.

    The metric uses all states. Spark drops unused columns, and a checkpoint must hold the same states whichever columns
    of the result are used.
    """
    # The counted expression may be null, because Spark counts rows without reading columns if it cannot be.
    windows = f"count(CASE WHEN {end} < {ALWAYS}L THEN struct({', '.join(states)}) END)"
    metrics = [F.expr(windows).alias("windows"), *([F.max(F.expr(end)).alias("end")] if mode == "append" else [])]
    # A unique name, so that several plans can be parts of one query.
    return rows.observe(f"{CLOSED}{uuid4().hex}", *metrics)


def closed_until(
    spark: SparkSession, stopped: StreamingQuery | datetime | None, checkpoint: str | None, time: DataType
) -> int:
    """Return the time in microseconds up to which a stream had closed its windows when it stopped."""
    if isinstance(stopped, datetime):
        if stopped.tzinfo is None and isinstance(time, TimestampNTZType):
            stopped = stopped.replace(tzinfo=UTC)
        return round(stopped.timestamp() * 1_000_000)
    progress = [] if stopped is None else stopped.recentProgress
    known = [each for each in progress if each["eventTime"].get("watermark")]
    if known:
        return _by_progress(known)
    if checkpoint is not None:
        return _by_checkpoint(spark, checkpoint)
    raise OptionError(
        _UNKNOWN.format(why="the query tells no watermark, as one that was started again with nothing new to read")
        + ", or flush(events, checkpoint=...)"
    )


def _by_progress(progress: Sequence[Mapping[str, Any]]) -> int:
    last = progress[-1]
    if _all_pass_on(operator["operatorName"] for operator in last["stateOperators"]):
        return round(datetime.fromisoformat(last["eventTime"]["watermark"]).timestamp() * 1_000_000)
    told: dict[str, list[int]] = {}
    for each in progress:
        for name, metrics in each["observedMetrics"].items():
            if name.startswith(CLOSED):
                end = _values(metrics).get("end")
                told.setdefault(name, []).extend([] if end is None else [end])
    if len(told) == 1:
        [ends] = told.values()
        if ends:
            return max(ends)
        if progress[0]["batchId"] == 0:
            return 0
    raise OptionError(_UNKNOWN.format(why="the query joins streams, so its watermark is not that of the plan"))


def _values(metrics: Row) -> dict[str, Any]:
    """Return metrics by name; through Spark Connect, names and values are separate."""
    found = metrics.asDict()
    if found.keys() == {"values", "schema"}:
        return dict(zip((field["name"] for field in found["schema"]["fields"]), found["values"], strict=True))
    return found


def _by_checkpoint(spark: SparkSession, place: str) -> int:
    """Read the watermark of the last micro-batch that finished."""
    try:
        operators = spark.read.format("state-metadata").load(place).select("operatorName").distinct().collect()
        done = spark.read.text(f"{literally(place)}/commits").select("_metadata.file_name").distinct().collect()
        last = max(int(name) for [name] in done)
        lines = spark.read.text(f"{literally(place)}/offsets/{last}").collect()
    except AnalysisException:
        raise OptionError(f"the checkpoint {place!r} holds no stream that was started") from None
    if not _all_pass_on(name for [name] in operators):
        raise OptionError(_UNKNOWN.format(why="the query joins streams, so its watermark is not that of the plan"))
    # A version, a line for the whole micro-batch, and then a line for each source.
    _, [described], *_ = lines
    return 1000 * int(json.loads(described)["batchWatermarkMs"])


def _all_pass_on(names: Iterable[str]) -> bool:
    return set(names) <= _PASS_ON
