"""A script run from end to end: its inputs registered, its results written, and compared if that is wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F
from rich.console import Console

from factor_windows.cost.model import share
from factor_windows.engines.spark_statement import run, run_naively, tables_of
from factor_windows.spark.compare import compared
from factor_windows.spark.files import check_free, register, write
from factor_windows.spark.progress import shown
from factor_windows.sql.names import Tables
from factor_windows.sql.script import Script


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of a script."""

    outputs: Mapping[str, str]
    rows: Mapping[str, int]
    seconds: Mapping[str, float]
    predicted_gain: float
    differing: int | None
    """How many rows are not those of the query run window by window; `None` if nobody compared."""

    def described(self) -> dict[str, Any]:
        """Return it for programs: the one result as it is, several as a list."""
        each = [{"name": name, "output": self.outputs[name], "rows": self.rows[name]} for name in self.outputs]
        results: dict[str, Any] = {"results": each}
        if len(each) == 1:
            results = {"output": each[0]["output"], "rows": each[0]["rows"]}
        verdict = {} if self.differing is None else {"verified": not self.differing}
        return results | {"seconds": dict(self.seconds), "predicted_gain": self.predicted_gain} | verdict


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

    `again` reads the script anew once its tables are known, which may decide what a name in it means.
    """
    for name, place in inputs.items():
        register(spark, name, place)
    script = again(tables_of(spark)) if again is not None else script
    if not overwrite:
        for place in outputs.values():
            check_free(spark, place)
    rows: dict[str, int] = {}
    begin = perf_counter()
    results = run(spark, script)
    for (name, place), result in zip(outputs.items(), results, strict=True):
        counted = Observation(name)
        with shown(spark, f"running {name}" if len(outputs) > 1 else "running", console):
            write(result.observe(counted, F.count(F.lit(1)).alias("rows")), place)
        rows[name] = counted.get["rows"]
    seconds = {"plan": perf_counter() - begin}
    predicted = share(sum(plan.naive_cost for plan in script.plans), sum(plan.cost for plan in script.plans))
    for name, place in outputs.items():
        console.print(f"wrote {place}: {rows[name]:,} rows")
    console.print(f"{seconds['plan']:.1f} s; predicted gain {predicted:.1f} times")
    differing = None
    if verify:
        begin = perf_counter()
        naive = [run_naively(spark, statement) for statement in script.statements]
        with shown(spark, "running window by window", console):
            for result in naive:
                result.write.format("noop").mode("overwrite").save()
        seconds["naive"] = perf_counter() - begin
        with shown(spark, "comparing with the query run window by window", console):
            found = [compared(ours, theirs) for ours, theirs in zip(results, naive, strict=True)]
        differing = sum(different for _, different in found)
        total = sum(count for count, _ in found)
        gain = seconds["naive"] / seconds["plan"]
        console.print(f"window by window it takes {seconds['naive']:.1f} s: measured gain {gain:.1f} times")
        console.print(
            f"{differing} rows differ from the query run window by window"
            if differing
            else f"verified: all {total:,} rows equal those of the query run window by window"
        )
    return Ran(outputs, rows, seconds, predicted, differing)
