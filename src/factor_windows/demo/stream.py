"""The streaming demo: sensor readings, and a live table of several windows for each device."""

from __future__ import annotations

import tempfile
from collections import deque
from threading import Event
from time import monotonic, sleep, time

from pyspark.sql import DataFrame, Row, SparkSession
from rich.console import Console
from rich.live import Live
from rich.table import Table

from factor_windows.algebra.window import hopping, tumbling
from factor_windows.query import Query
from factor_windows.search import optimize

RATE = 200
"""Readings per second."""
STEP = 3
"""Seconds of readings in each micro-batch; one starts every second, so time runs three times as fast."""
SHOWN = 18
"""The number of latest results that the table shows."""


def run(spark: SparkSession, *, seconds: int) -> None:
    """Aggregate generated readings for this many seconds, and show results as windows close."""
    console = Console(highlight=False, soft_wrap=True)
    query = Query(
        time="timestamp",
        keys=["concat('device-', value % 4) AS device"],
        windows=[tumbling("2s"), tumbling("3s"), tumbling("6s"), hopping("10s", "5s", name="ten by five")],
        aggregates=["min(reading) AS coldest", "avg(reading) AS mean", "count(*) AS readings"],
    )
    plan = optimize(query, rate=RATE, unit="1 second", keys=4)
    console.print(plan.explain(streaming=True) + "\n")
    readings = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", STEP * RATE)
        .option("advanceMillisPerBatch", STEP * 1000)
        .option("startTimestamp", int(time()) * 1000)
        .option("numPartitions", 1)
        .load()
        # All rows of a micro-batch arrive with the same time.
        .selectExpr(
            f"timestamp_millis(unix_millis(timestamp) + value % {STEP * RATE} * {1000 // RATE}) AS timestamp",
            "value",
            "20 + 5 * sin(value / 50) + rand(7) AS reading",
        )
        .withWatermark("timestamp", "500 milliseconds")
    )
    # One task can handle so few readings, and needs no compiled code: the first results arrive sooner.
    spark.conf.set("spark.sql.shuffle.partitions", 1)
    spark.conf.set("spark.sql.codegen.wholeStage", False)
    latest: deque[Row] = deque(maxlen=SHOWN)
    counted = 0
    ended = Event()

    def keep(batch: DataFrame, _: int) -> None:
        nonlocal counted
        try:
            rows = batch.collect()
        except Exception:
            # The stream was stopped during a micro-batch.
            if ended.is_set():
                return
            raise
        counted += len(rows)
        latest.extend(sorted(rows, key=lambda row: (row.window_end, row.window_id, row.device)))

    with tempfile.TemporaryDirectory(prefix="factor-windows-") as checkpoint:
        running = (
            plan.run(readings)
            .writeStream.foreachBatch(keep)
            .option("checkpointLocation", checkpoint)
            .trigger(processingTime="1 second")
            .start()
        )
        end = monotonic() + seconds
        try:
            with Live(_table(latest), console=console, refresh_per_second=2) as live:
                while monotonic() < end and running.isActive:
                    sleep(0.5)
                    live.update(_table(latest))
        finally:
            ended.set()
            running.stop()
    console.print(
        f"{counted} results in {seconds} seconds, each emitted once, when the watermark passed its window's end"
    )


def _table(rows: deque[Row]) -> Table:
    table = Table("device", "window", "from", "to", "coldest", "mean", "readings")
    for row in rows:
        times = [f"{time:%H:%M:%S}" for time in (row.window_start, row.window_end)]
        table.add_row(row.device, row.window_id, *times, f"{row.coldest:.2f}", f"{row.mean:.2f}", str(row.readings))
    return table
