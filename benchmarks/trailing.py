"""Feature tables: trailing windows at the times of labels, by `plan.at` and by the range join that people write.

`python -m benchmarks.trailing --events 1000000 --labels 100000 --keys 100` prints the seconds of each, and whether
their rows add up to the same. `--joined` says for how many labels the range join is run, by default for all: it takes
its time for every one of them.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from pyspark.sql import DataFrame, SparkSession

from factor_windows.algebra.window import tumbling
from factor_windows.query import Query
from factor_windows.search import optimize
from factor_windows.spark.session import session

WINDOWS = {"hour": "1 hour", "day": "1 day", "week": "7 days"}
AGGREGATES = {"n": "count(ts)", "total": "sum(v)", "top": "max(v)"}
START = 1_704_067_200_000_000


def main() -> None:
    """Make events and labels, run both on them, and print the times."""
    options = argparse.ArgumentParser(description=__doc__)
    for name, default in {"events": 1_000_000, "labels": 100_000, "keys": 100, "days": 30, "joined": 0}.items():
        options.add_argument(f"--{name}", type=int, default=default)
    options.add_argument("--skewed", action="store_true", help="keys by Zipf's law, not all as often")
    options.add_argument("--repeats", type=int, default=2)
    given = options.parse_args()
    spark = session()
    with TemporaryDirectory(prefix="factor-windows-") as folder:
        events, labels = _made(spark, Path(folder), given)
        few = labels.where(f"label < {given.joined or given.labels}")
        planned = _timed("plan.at", lambda: _features(labels, events), given.repeats)
        if not given.joined:
            joined = _timed("range join", lambda: _joined(spark, labels, events), 1)
        else:
            planned = _timed(f"plan.at, {given.joined:,} labels", lambda: _features(few, events), given.repeats)
            joined = _timed(f"range join, {given.joined:,} labels", lambda: _joined(spark, few, events), 1)
        print("equal" if all(map(_near, planned, joined)) else f"DIFFERENT: {planned} and {joined}")


def _made(spark: SparkSession, folder: Path, given: argparse.Namespace) -> tuple[DataFrame, DataFrame]:
    """Write events, evenly over the days, and labels, at any time of these, and read them back."""
    span = given.days * 86_400_000_000

    def key(seed: int) -> str:
        if not given.skewed:
            return f"pmod(xxhash64(id, {seed}), {given.keys})"
        share = f"pmod(xxhash64(id, {seed}), 1000003) / 1000003.0D"
        return f"CAST(floor(exp({share} * ln({given.keys + 1}.0D))) - 1 AS BIGINT)"

    at = f"timestamp_micros({START} + CAST(id * {span / given.events} AS BIGINT)) AS ts"
    value = "pmod(xxhash64(id, 2), 1000) / 10.0D AS v"
    spark.range(given.events).selectExpr(at, f"{key(1)} AS k", value).write.parquet(str(folder / "events"))
    when = f"timestamp_micros({START} + pmod(xxhash64(id, 3), {span})) AS at"
    spark.range(given.labels).selectExpr("id AS label", when, f"{key(4)} AS k").write.parquet(str(folder / "labels"))
    return spark.read.parquet(str(folder / "events")), spark.read.parquet(str(folder / "labels"))


def _features(labels: DataFrame, events: DataFrame) -> DataFrame:
    """Compute the features with a plan, and sum them by window."""
    windows = [tumbling(length, name=name) for name, length in WINDOWS.items()]
    calls = [f"{call} AS {name}" for name, call in AGGREGATES.items()]
    query = Query(time="ts", keys=["k"], windows=windows, aggregates=calls)
    found: DataFrame = optimize(query).at(labels, events)
    sums = [f"sum({value}) FILTER (WHERE window_id = '{window}')" for window in WINDOWS for value in AGGREGATES]
    return found.selectExpr(*sums)


def _joined(spark: SparkSession, labels: DataFrame, events: DataFrame) -> DataFrame:
    """Compute the features with one join over the longest range, with filters for the other ranges."""
    values = ", ".join(
        f"{call} FILTER (WHERE ts >= at - INTERVAL {length}) AS {name}_{window}"
        for window, length in WINDOWS.items()
        for name, call in AGGREGATES.items()
    )
    text = (
        f"SELECT l.label, l.k, l.at, {values} FROM {{labels}} AS l LEFT JOIN {{events}} AS e "
        "ON l.k = e.k AND e.ts < l.at AND e.ts >= l.at - INTERVAL 7 days GROUP BY l.label, l.k, l.at"
    )
    found = spark.sql(text, labels=labels, events=events)
    return found.selectExpr(*(f"sum({value}_{window})" for window in WINDOWS for value in AGGREGATES))


def _timed(name: str, run: Callable[[], DataFrame], repeats: int) -> list[float]:
    """Run a function, print the seconds of each run, and return its only row."""
    seconds, row = [], []
    for _ in range(repeats):
        begin = perf_counter()
        row = [float(value or 0) for value in run().collect()[0]]
        seconds.append(perf_counter() - begin)
    print(f"{name}: {', '.join(f'{each:.1f}' for each in seconds)} s", flush=True)
    return row


def _near(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9)


if __name__ == "__main__":
    main()
