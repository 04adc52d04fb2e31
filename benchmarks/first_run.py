"""One first run: `python -m benchmarks.first_run` reads a job as JSON and prints the seconds of each phase as JSON.

Code that is not part of a user's own first run, such as the check of its rows, is imported after the last phase.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from functools import reduce
from time import perf_counter, time
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

Job = dict[str, Any]
"""What `benchmarks.first` sends: a contender, its query, the folder of its events, Spark's settings."""


class Phases:
    """A stopwatch with a name for each lap."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.begin = perf_counter()

    def end(self, phase: str) -> None:
        """End a phase; the next one starts."""
        now = perf_counter()
        self.seconds[phase] = now - self.begin
        self.begin = now


def run(job: Job) -> dict[str, Any]:
    """Run one contender in a new session; to `check` it, compute its rows once more, untimed, and hash them."""
    phases = Phases()
    spark = SparkSession.builder.config(map=job["settings"]).getOrCreate()
    phases.end("start")
    result = _ours(job, spark, phases) if job["contender"].startswith("best") else _naive(job, spark, phases)
    begin = time()
    result.write.format("noop").mode("overwrite").save()
    phases.end("execute")

    from benchmarks.batch import fingerprint, status

    # Until its first job starts, Spark optimizes the query, plans it and generates code.
    submitted = [_seconds(each["submissionTime"]) for each in status(spark, "jobs")]
    compiled = min(each for each in submitted if each >= begin) - begin
    phases.seconds["compile"] = compiled
    phases.seconds["execute"] -= compiled
    found = fingerprint(result, exact=job["exact"]) if job["check"] else None
    spark.stop()
    return {"phases": phases.seconds, "found": found.asDict() if found is not None else None}


def _ours(job: Job, spark: SparkSession, phases: Phases) -> DataFrame:
    import factor_windows as fw

    phases.end("import")
    events = spark.read.parquet(job["folder"])
    phases.end("read")
    windows = [fw.hopping(each["range"], each["slide"]) for each in job["windows"]]
    query = fw.Query(time=job["time"], keys=job["keys"], windows=windows, aggregates=job["aggregates"])
    statistics = None
    if job["statistics"]:
        from factor_windows.cost.statistics import Statistics

        count, keys, span = job["statistics"]
        statistics = Statistics(count, keys, timedelta(seconds=span), sampled=1.0)
    plan = fw.optimize(query, statistics=statistics)
    phases.end("plan")
    result: DataFrame = plan.run(events)
    phases.end("build")
    return result


def _naive(job: Job, spark: SparkSession, phases: Phases) -> DataFrame:
    """Write the query as people with only Spark do: one groupBy(window()) for each window and a union."""
    events = spark.read.parquet(job["folder"])
    phases.end("read")
    parts = [
        events.groupBy(*job["keys"], F.window(job["time"], each["range"], each["slide"]))
        .agg(*map(F.expr, job["aggregates"]))
        .select(
            *job["keys"],
            F.lit(each["name"]).alias("window_id"),
            F.col("window.start").alias("window_start"),
            F.col("window.end").alias("window_end"),
            *(f"`{aggregate}`" for aggregate in job["aggregates"]),
        )
        for each in job["windows"]
    ]
    result = reduce(DataFrame.unionByName, parts)
    phases.end("build")
    return result


def _seconds(text: str) -> float:
    """Read a time from Spark's status page.

    >>> _seconds("1970-01-01T00:01:00.250GMT")
    60.25
    """
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fGMT").replace(tzinfo=UTC).timestamp()


if __name__ == "__main__":
    print(json.dumps(run(json.load(sys.stdin))))
