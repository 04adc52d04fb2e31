"""Run a script from end to end: register its inputs, write its results, and compare them if requested."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from rich.console import Console

from factor_windows.cost.model import share
from factor_windows.cost.timing import Timing, time_in_turns
from factor_windows.engines.spark_statement import run, run_naively, tables_of
from factor_windows.spark.compare import differing_rows
from factor_windows.spark.files import check_free, discard, register, write
from factor_windows.spark.progress import shown
from factor_windows.sql.names import Tables
from factor_windows.sql.script import Script


@dataclass(frozen=True, slots=True)
class Ran:
    """The outcome of a script."""

    outputs: Mapping[str, str]
    rows: Mapping[str, int]
    seconds: float
    """The seconds of the run, including Spark's warm-up and writing."""
    predicted_gain: float
    differing: int | None
    """The number of rows that differ from the query run window by window; `None` if not compared."""
    timing: Timing | None
    """The run times of the plan and of the query run window by window; `None` if not compared, or if rows differ."""

    def described(self) -> dict[str, Any]:
        """Return the outcome for programs: a single result as it is, several as a list."""
        each = [{"name": name, "output": self.outputs[name], "rows": self.rows[name]} for name in self.outputs]
        results: dict[str, Any] = {"results": each}
        if len(each) == 1:
            results = {"output": each[0]["output"], "rows": each[0]["rows"]}
        results |= {"seconds": {"plan": self.seconds}, "predicted_gain": self.predicted_gain}
        if self.differing is None:
            return results
        return results | {"verified": not self.differing} | self._measured()

    def _measured(self) -> dict[str, Any]:
        """Return the seconds of both and the gain, or why there are none."""
        if self.timing is None:
            return {"measured": None, "not_measured": "rows differ"}
        if self.timing.gain is None:
            return {"measured": None, "not_measured": str(self.timing)}
        return {"measured": self.timing.seconds | {"gain": self.timing.gain}}


def run_script(
    spark: SparkSession,
    script: Script,
    *,
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    verify: bool,
    overwrite: bool,
    console: Console,
    again: Callable[[Tables], Script] | None = None,
) -> Ran:
    """Run a script and write each statement's result to its place.

    `again` reads the script a second time once its tables are known, which may decide what a name in it means.
    """
    for name, place in inputs.items():
        register(spark, name, place)
    script = again(tables_of(spark)) if again is not None else script
    if not overwrite:
        for place in outputs.values():
            check_free(spark, place)
    differing, timing = None, None
    with ExitStack() as kept:
        begin = perf_counter()
        results = run(spark, script, kept=kept)
        rows = {
            name: _write(spark, result, place, f"running {name}" if len(outputs) > 1 else "running", console)
            for (name, place), result in zip(outputs.items(), results, strict=True)
        }
        seconds = perf_counter() - begin
        predicted = share(sum(plan.naive_cost for plan in script.plans), sum(plan.cost for plan in script.plans))
        for name, place in outputs.items():
            console.print(f"wrote {place}: {rows[name]:,} rows")
        console.print(f"took {seconds:.1f} s, Spark's warm-up included; predicted gain {predicted:.1f} times")
        if verify:
            with shown(spark, "comparing with the query run window by window", console):
                naive = [run_naively(spark, statement) for statement in script.statements]
                differing = sum(differing_rows(ours, theirs) for ours, theirs in zip(results, naive, strict=True))
    if differing:
        console.print(f"{differing:,} rows differ from the query run window by window")
    elif verify:
        # Only now, after Spark has released its cache: the plan has to compute the result again.
        with shown(spark, "timing the plan and window by window in turns", console):
            timing = time_in_turns(lambda: _compute(spark, script), lambda: _compute_naively(spark, script))
        total = sum(rows.values())
        console.print(f"verified: all {total:,} rows equal those of the query run window by window; {timing}")
    return Ran(outputs, rows, seconds, predicted, differing, timing)


def _write(spark: SparkSession, result: DataFrame, place: str, description: str, console: Console) -> int:
    """Write a result to its place and count its rows."""
    counted = Observation()
    with shown(spark, description, console):
        write(result.observe(counted, F.count(F.lit(1)).alias("rows")), place)
    return int(counted.get["rows"])


def _compute(spark: SparkSession, script: Script) -> None:
    """Compute all results with the plans, without writing them."""
    with ExitStack() as kept:
        for result in run(spark, script, kept=kept):
            discard(result)


def _compute_naively(spark: SparkSession, script: Script) -> None:
    """Compute all results window by window, without writing them."""
    for statement in script.statements:
        discard(run_naively(spark, statement))
