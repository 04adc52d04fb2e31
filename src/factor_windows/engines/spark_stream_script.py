"""Run a statement over a Kafka topic from end to end, micro-batch by micro-batch, into a table or into files."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Event
from time import perf_counter
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from rich.console import Console

from factor_windows.engines.spark_statement import run_as_stream, tables_of
from factor_windows.errors import OptionError
from factor_windows.functions.expression import quoted
from factor_windows.request import Mode
from factor_windows.spark.checkpoint import read_note
from factor_windows.spark.files import is_there, register, stream_to
from factor_windows.spark.kafka import Topic, messages_in
from factor_windows.spark.messages import spark_says
from factor_windows.sql.names import Tables
from factor_windows.sql.script import Script

ROWS = "factor_windows.rows"
"""The metric in which a stream reports how many rows it has written."""
EVERY = 1
"""The seconds between two looks at a stream."""


@dataclass(frozen=True, slots=True)
class StreamJob:
    """What to read, and how to write the results."""

    name: str
    """The topic's name in SQL."""
    topic: Topic
    schema: str
    delay: str
    """How late messages may be."""
    output: str
    checkpoint: str
    mode: Mode = "append"
    follow: bool = False
    """Whether to wait for further messages after reading the existing ones."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """The outcome of a stream so far."""

    last: int = -1
    """The number of the last micro-batch, so that it is counted only once."""
    micro_batches: int = 0
    messages: int = 0
    without_time: int = 0
    rows: int = 0
    watermark: str | None = None

    def and_then(self, recent: Sequence[Mapping[str, Any]]) -> Streamed:
        """Add the work of micro-batches not counted yet; some reports have none, because nothing had arrived."""
        total = self
        for each in recent:
            if each["batchId"] <= total.last or "addBatch" not in each["durationMs"]:
                continue
            messages, without_time = messages_in(each)
            written = each["observedMetrics"].get(ROWS)
            total = replace(
                total,
                last=each["batchId"],
                micro_batches=total.micro_batches + 1,
                messages=total.messages + messages,
                without_time=total.without_time + without_time,
                rows=total.rows + (0 if written is None else int(written["rows"])),
                watermark=each["eventTime"].get("watermark", total.watermark),
            )
        return total

    def described(self) -> dict[str, Any]:
        """Return the outcome for programs."""
        names = ("messages", "without_time", "rows", "micro_batches", "watermark")
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        lost = f"; {self.without_time:,} without a time count in no window" if self.without_time else ""
        return f"read {self.messages:,} messages in {self.micro_batches:,} micro-batches{lost}"


def run_stream_script(
    spark: SparkSession,
    job: StreamJob,
    *,
    time: str,
    inputs: Mapping[str, str],
    again: Callable[[Tables], Script],
    upsert: Callable[[Script, DataFrame], None] | None,
    console: Console,
) -> dict[str, Any]:
    """Run a statement over a topic until all is read, or until an interrupt; return the outcome for programs.

    `upsert` merges each micro-batch into a table; without it, the rows are written to files.
    """
    for name, place in inputs.items():
        register(spark, name, place)
    events = job.topic.read(spark, schema=job.schema, time=time, delay=job.delay)
    events.createOrReplaceTempView(quoted(job.name))
    script = again(tables_of(spark))
    if upsert is None and read_note(spark, job.checkpoint) is None and is_there(spark, job.output):
        # Spark mistakes the first micro-batches for those of the stream that made the folder, and does not write them.
        raise OptionError(
            f"output {job.output!r} exists already, but the checkpoint {job.checkpoint!r} is new; "
            "write to another folder, or go on with the checkpoint that it was written with"
        )
    result = run_as_stream(spark, script, mode=job.mode, checkpoint=job.checkpoint)
    counted = result.observe(ROWS, F.count(F.lit(1)).alias("rows"))
    failed: list[Exception] = []
    writer = stream_to(counted, job.output) if upsert is None else _into_table(counted, script, upsert, failed)
    writer = writer.outputMode(job.mode).option("checkpointLocation", job.checkpoint)
    begin = perf_counter()
    with _interrupts() as interrupted, spark_says("Spark cannot run the query as a stream"):
        running = (writer if job.follow else writer.trigger(availableNow=True)).start()
        try:
            done = _watch(running, interrupted, console if job.follow else None)
        except StreamingQueryException:
            if failed:
                raise failed[0] from None
            raise
    if interrupted.is_set() and not job.follow:
        raise KeyboardInterrupt
    seconds = perf_counter() - begin
    console.print(str(done))
    console.print(f"wrote {job.output}: {done.rows:,} rows in {seconds:.1f} s")
    if done.watermark is not None and job.mode == "append":
        console.print(f"windows that end after {done.watermark} are open; the same command goes on with them")
    return {"output": job.output, **done.described(), "seconds": seconds}


def _into_table(
    result: DataFrame, script: Script, upsert: Callable[[Script, DataFrame], None], failed: list[Exception]
) -> DataStreamWriter:
    """Prepare to merge each micro-batch into a table; keep errors, because Spark turns them into one long text."""

    def merge(batch: DataFrame, _: int) -> None:
        try:
            upsert(script, batch)
        except Exception as trouble:
            failed.append(trouble)
            raise

    return result.writeStream.foreachBatch(merge)


def _watch(running: StreamingQuery, interrupted: Event, console: Console | None) -> Streamed:
    """Wait for the end of a stream or an interrupt; if requested, report each micro-batch that reads messages."""
    done, is_over = Streamed(), False
    try:
        while not is_over and not interrupted.is_set():
            is_over = bool(running.awaitTermination(EVERY))
            before, done = done, done.and_then(running.recentProgress)
            if console is not None and done.messages > before.messages:
                console.print(f"{done}; {done.rows:,} rows")
    finally:
        running.stop()
    return done.and_then(running.recentProgress)


@contextmanager
def _interrupts() -> Iterator[Event]:
    """Record an interrupt from the keyboard, which could otherwise be raised anywhere, even in the middle of a call."""
    interrupted = Event()
    before = signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)
