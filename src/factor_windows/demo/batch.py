"""The demo: the paper's query and one with ten windows over generated readings, planned and window by window."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from factor_windows.algebra.window import tumbling
from factor_windows.cost.timing import Timing, time_in_turns
from factor_windows.explain.terminal import show
from factor_windows.plan import Plan
from factor_windows.query import Query
from factor_windows.search import optimize
from factor_windows.spark.compare import compared
from factor_windows.spark.files import discard
from factor_windows.spark.generate import devices
from factor_windows.spark.naive import naive

QUERIES = {
    "the paper's query: 20, 30 and 40 minutes": tuple(range(20, 50, 10)),
    "ten windows: 20 to 110 minutes": tuple(range(20, 120, 10)),
}


def run(spark: SparkSession, output: Path, *, events: int) -> None:
    """Plan two queries, run each both ways, compare the results row by row, and write one with its page."""
    console = Console(highlight=False, soft_wrap=True)
    output.mkdir(parents=True, exist_ok=True)
    with Progress(
        TextColumn("{task.description:<44}"), BarColumn(), TimeElapsedColumn(), console=console, transient=True
    ) as progress:
        task = progress.add_task("making readings", total=1 + 2 * len(QUERIES))
        readings = devices(spark, events, rate=10.0).cache()
        count = readings.count()
        progress.advance(task)
        console.print(f"{count:,} readings of 20 devices, ten a second, on local Spark\n")
        for title, minutes in QUERIES.items():
            query = Query(
                time="ts",
                keys=["device"],
                windows=[tumbling(f"{length} minutes") for length in minutes],
                aggregates=["min(v) AS coldest", "avg(v) AS mean"],
            )
            plan = optimize(query, rate=10, unit="1 second", keys=20)
            console.print(f"{title}\n")
            show(plan, console)
            console.print()
            progress.update(task, description="comparing the results row by row")
            rows, differing = compared(plan.run(readings), naive(query, readings))
            if differing:
                raise AssertionError("the plan's result differs from the naive one")
            progress.advance(task)
            progress.update(task, description="running the plan and window by window in turns")
            timing = _time(plan, readings)
            progress.advance(task)
            console.print(f"all {rows:,} rows are equal; {timing}\n")
            plan.run(readings).write.mode("overwrite").parquet(str(output / "result.parquet"))
            (output / "plan.html").write_text(plan.to_html(measured=timing), encoding="utf-8")
    console.print(f"wrote {output / 'result.parquet'}\nwrote {output / 'plan.html'}, a page that explains the plan\n")
    console.print(in_short(len(query.windows), count, timing))


def in_short(windows: int, events: int, timing: Timing) -> str:
    """Summarize the demo in one sentence.

    >>> in_short(10, 2_000_000, Timing((2.0,), (7.0,)))
    '10 windows over 2,000,000 events took 2.0 s instead of 7.0 s: one shared pass, the same rows, 3.5 times faster.'
    >>> in_short(10, 1_000, Timing((0.1,), (0.2,)))
    '10 windows over 1,000 events in one shared pass: the same rows as 10 separate queries.'
    """
    if timing.gain is None or timing.gain < 1:
        return (
            f"{windows} windows over {events:,} events in one shared pass: the same rows as {windows} separate queries."
        )
    plan, naive = timing.seconds["plan"], timing.seconds["naive"]
    return (
        f"{windows} windows over {events:,} events took {plan:.1f} s instead of {naive:.1f} s: "
        f"one shared pass, the same rows, {timing.gain:.1f} times faster."
    )


def _time(plan: Plan, readings: DataFrame) -> Timing:
    """Time a plan and its query run window by window."""
    return time_in_turns(lambda: discard(plan.run(readings)), lambda: discard(naive(plan.query, readings)))
