"""A progress bar based on Spark's own counts of finished tasks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

EVERY = 0.2
"""The seconds between two updates."""


@contextmanager
def shown(spark: SparkSession, description: str, console: Console) -> Iterator[None]:
    """Show Spark's progress while the block runs, if the output is a terminal."""
    if not console.is_terminal:
        yield
        return
    done = Event()
    bar = Progress(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=console, transient=True)
    task = bar.add_task(description, total=None)

    def follow() -> None:
        tracker = spark.sparkContext.statusTracker()
        finished: dict[int, tuple[int, int]] = {}
        while not done.wait(EVERY):
            for stage in tracker.getActiveStageIds():
                info = tracker.getStageInfo(stage)
                if info is not None:
                    finished[stage] = info.numCompletedTasks, info.numTasks
            bar.update(
                task,
                completed=sum(completed for completed, _ in finished.values()),
                total=sum(total for _, total in finished.values()) or None,
            )

    follower = Thread(target=follow, daemon=True)
    with bar:
        follower.start()
        try:
            yield
        finally:
            done.set()
            follower.join()
