"""Cases run on Spark: each contender's rows are counted and hashed while it is timed, and compared with naive's."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from benchmarks.experiments import ALONE, STREAMS, Case
from benchmarks.peers import PEERS, peers_of
from benchmarks.results import Result
from benchmarks.timing import rounds
from benchmarks.workloads import stream
from factor_windows.algebra.pane_row import Packing
from factor_windows.cost.statistics import Statistics
from factor_windows.functions.expression import quoted
from factor_windows.physical.assigner import RAW
from factor_windows.physical.choose import choose_layout
from factor_windows.plan import Plan
from factor_windows.search import SEARCHES, optimize
from factor_windows.spark.calibrate import counted
from factor_windows.spark.compare import TOLERANCE
from factor_windows.spark.naive import naive

ENOUGH = 3.0
"""A contender that has taken this many seconds per requested repeat is not run again."""
ENOUGH_NAIVE = 1.0
"""The same for the naive query, which takes most of the time, and long enough for noise to matter less."""
WARM_UP = 10
"""Every contender first runs on a stream this many times shorter, so that its code is generated and compiled."""
MOST_WARM_UP = 300_000
"""But on at most this many events, which are enough for that."""
EXACT = frozenset({"min", "max", "count"})
"""Functions whose results do not depend on the order of events, to the last bit."""


def known(rate: float, keys: int, events: int) -> Statistics:
    """Return statistics for `optimize` of a stream that need not be measured."""
    return Statistics(events, keys, span=timedelta(seconds=events / rate), sampled=1.0)


def known_stream(name: str, events: int) -> Statistics:
    """Return what is known about a stream of this many events."""
    return known(STREAMS[name].rate, STREAMS[name].keys, events)


class Folders:
    """Streams as Parquet files, each made on first use."""

    def __init__(self, spark: SparkSession, root: Path, data: Path | None) -> None:
        self.spark, self.root, self.data = spark, root, data

    def of(self, name: str, events: int) -> Path:
        """Return the folder of a stream."""
        folder = self.root / f"{name.replace(' ', '-')}-{events}"
        if not folder.exists():
            stream(self.spark, name, events, data=self.data).write.parquet(str(folder))
        return folder


def measure(spark: SparkSession, case: Case, folders: Folders, *, repeats: int, random: Random) -> Result:
    """Time one case: a warm-up on few events, then contenders in shuffled rounds."""
    query = case.query
    plans: dict[str, Plan] = {}
    planning: dict[str, float] = {}
    for search in (name for name in case.contenders if name in SEARCHES):
        begin = perf_counter()
        plans[search] = optimize(query, search=search, statistics=known_stream(case.stream, case.events))
        planning[search] = perf_counter() - begin
    # Plans that run the same way share their runs: any difference between them would be noise.
    ways = {name: way(plan) for name, plan in plans.items()}
    stands_for = {name: next(other for other in ways if ways[other] == ways[name]) for name in ways}
    runs = {name: stands_for.get(name, name) for name in case.contenders}
    few = folders.of(case.stream, min(case.events // WARM_UP, MOST_WARM_UP))
    for name, run in _contenders(spark, case, plans, few).items():
        if name not in PEERS and runs[name] == name:
            run()
    folder = folders.of(case.stream, case.events)
    contenders = {name: run for name, run in _contenders(spark, case, plans, folder).items() if runs[name] == name}
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    answers: dict[str, Row | None] = {}
    shuffled = {}
    before = _shuffled(spark)

    def enough(name: str) -> float:
        return repeats * (ENOUGH_NAIVE if name == "naive" else ENOUGH)

    for name, took, answer in rounds(contenders, repeats=repeats, random=random, enough=enough):
        answers[name] = answer
        shuffled[name] = -before + (before := _shuffled(spark))
        seconds[name].append(took)
    wrong = [name for name in plans if not same(answers[runs[name]], answers["naive"])]
    if any(name in PEERS for name in contenders):
        # The plan's rows are known to equal the naive query's, and are available sooner.
        wrong += peers_of(case, folder, plans).differing(plans["best"].run(spark.read.parquet(str(folder))))
    rows = answers["naive"]
    return Result.of(
        case,
        {name: seconds[run] for name, run in runs.items() if name not in wrong},
        rows=rows["rows"] if rows is not None else 0,
        counts={name: counted(plan.passes[0], case.events, packing=Packing.of(query)) for name, plan in plans.items()}
        | {"naive": naive_counts(case)},
        planning={name: round(took, 5) for name, took in planning.items()},
        shuffled={name: shuffled[run] for name, run in runs.items() if name not in PEERS},
        wrong=tuple(wrong),
    )


def _contenders(
    spark: SparkSession, case: Case, plans: Mapping[str, Plan], folder: Path
) -> dict[str, Callable[[], Row | None]]:
    """Return functions that compute a case over the events of a folder, by name."""
    query = case.query
    first = replace(query, windows=query.windows[:1])
    frames: dict[str, Callable[[DataFrame], DataFrame]] = {
        "naive": lambda events: naive(query, events),
        ALONE: lambda events: naive(first, events),
        **{name: plan.run for name, plan in plans.items()},
    }
    exact = case.function in EXACT

    def on_spark(compute: Callable[[DataFrame], DataFrame]) -> Callable[[], Row | None]:
        return lambda: fingerprint(compute(spark.read.parquet(str(folder))), exact=exact)

    peers = peers_of(case, folder, plans).contenders if any(name in PEERS for name in case.contenders) else {}
    return {name: on_spark(frames[name]) if name in frames else peers[name] for name in case.contenders}


def fingerprint(result: DataFrame, *, exact: bool) -> Row | None:
    """Count and hash all rows of a result, in one row.

    If functions are not exact, everything except their values is hashed, and the values are summed, weighted by that
    hash.
    """
    values = result.columns[result.columns.index("window_end") + 1 :]
    others = [F.col(quoted(name)) for name in result.columns if name not in values]
    if exact:
        hashes = [F.bit_xor(F.xxhash64(*others, *(F.col(quoted(name)) for name in values))).alias("hash")]
    else:
        weight = F.pmod(F.xxhash64(*others), F.lit(1009)) + 1
        hashes = [F.bit_xor(F.xxhash64(*others)).alias("hash")]
        hashes += [F.sum(F.col(quoted(name)) * weight).alias(f"sum{place}") for place, name in enumerate(values)]
    return result.agg(F.count("*").alias("rows"), *hashes).first()


def same(one: Row | None, other: Row | None) -> bool:
    """Say whether two fingerprints belong to the same rows."""
    if one is None or other is None:
        return one is other
    exact = one["rows"] == other["rows"] and one["hash"] == other["hash"]
    return exact and all(math.isclose(a, b, rel_tol=TOLERANCE) for a, b in zip(one[2:], other[2:], strict=True))


def naive_counts(case: Case) -> dict[str, float]:
    """Count the total work of the naive query, in which each window is computed by itself."""
    total: Counter[str] = Counter()
    for window in case.windows:
        alone = replace(case.query, windows=(window,))
        plan = optimize(alone, search="none", statistics=known_stream(case.stream, case.events))
        total.update(counted(plan.passes[0], case.events, packing=None))
    return dict(total)


def way(plan: Plan) -> str:
    """Describe how a plan runs, independent of the search that found it and of the nodes it leaves out."""
    layout = choose_layout(plan.passes[0], packing=Packing.of(plan.query))
    label = {place: node.window.label for place, node in enumerate(plan.nodes)} | {RAW: "raw"}
    levels = [sorted((label[each.source], label[each.target]) for each in level.assigners) for level in layout.levels]
    return f"{levels} {layout.distribution.value} {layout.chunk} {layout.pane_row}"


def _shuffled(spark: SparkSession) -> int:
    """Count the bytes written by all shuffles so far."""
    return sum(int(executor["totalShuffleWrite"]) for executor in status(spark, "executors"))


def status(spark: SparkSession, what: str) -> list[dict[str, Any]]:
    """Query Spark's own status page for its `executors` or `jobs`; return nothing if there is no such page."""
    address = spark.sparkContext.uiWebUrl
    if address is None:
        return []
    port = urlsplit(address).port
    url = f"http://127.0.0.1:{port}/api/v1/applications/{spark.sparkContext.applicationId}/{what}"
    with urlopen(url) as answer:
        found: list[dict[str, Any]] = json.load(answer)
    return found
