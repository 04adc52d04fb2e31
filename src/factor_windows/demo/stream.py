"""The demo to watch: sensor readings as they come, and a live table of several windows for each device."""

from __future__ import annotations

import tempfile
from collections import deque
from time import monotonic, sleep

from pyspark.sql import DataFrame, Row, SparkSession
from rich.console import Console
from rich.live import Live
from rich.table import Table

from factor_windows.algebra.window import hopping, tumbling
from factor_windows.query import Query
from factor_windows.search import optimize

RATE = 200
"""Readings per second."""
SHOWN = 18
"""How many of the latest results the table has."""


def run(spark: SparkSession, *, seconds: int) -> None:
    """Aggregate a rate source for so long, and show results as windows close."""
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
        spark.readStream.format("rate")
        .option("rowsPerSecond", RATE)
        .load()
        .selectExpr("timestamp", "value", "20 + 5 * sin(value / 50) + rand(7) AS reading")
        .withWatermark("timestamp", "1 second")
    )
    latest: deque[Row] = deque(maxlen=SHOWN)
    counted = 0

    def keep(batch: DataFrame, _: int) -> None:
        nonlocal counted
        rows = batch.orderBy("window_end", "window_id", "device").collect()
        counted += len(rows)
        latest.extend(rows)

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
            running.stop()
    console.print(f"{counted} results in {seconds} seconds; each came out when the watermark passed its window's end")


def _table(rows: deque[Row]) -> Table:
    table = Table("device", "window", "from", "to", "coldest", "mean", "readings")
    for row in rows:
        times = [f"{time:%H:%M:%S}" for time in (row.window_start, row.window_end)]
        table.add_row(row.device, row.window_id, *times, f"{row.coldest:.2f}", f"{row.mean:.2f}", str(row.readings))
    return table
