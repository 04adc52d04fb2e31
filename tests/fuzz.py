"""A standing search for differences: generated queries over awkward data, by every search, physical choice and engine.

`python tests/fuzz.py --minutes 5` looks at fresh cases and writes each difference as a script of a few lines. A fixed
part of it is in the tests (test_fuzz.py). One seed is one data set with a few queries, each run by every search and in
several physical ways; all of it is one Spark job.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, Timer
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from factor_windows import Query, Window, fan_out, levels, optimize
from factor_windows.reference import evaluate
from factor_windows.spark import batch
from factor_windows.spark.chain import finished
from factor_windows.spark.columns import packing_of
from factor_windows.spark.naive import naive

QUERIES = 3
"""Queries for each data set."""
PATIENCE = 120
"""Seconds after which a job of tiny data takes too long."""
TOO_MANY = 40
"""So many windows make Spark's own plan of a union slow; beyond, the reference alone says what is right."""
SEARCHES = ("none", "coverage", "factor", "slicing", "best", "best")
COLUMNS = {
    "ts": "timestamp",
    "k": "string",
    "site": "int",
    "my key": "bigint",
    "__fw_start": "string",
    "key_0": "date",
    "flag": "boolean",
    "v": "double",
    "f": "float",
    "n": "bigint",
    "i": "int",
    "huge": "bigint",
    "d": "decimal(20,5)",
    "wide": "decimal(38,4)",
    "s": "string",
}
KEYS = [
    *("k", "site", "`my key`", "__fw_start", "key_0", "flag", "v", "huge", "upper(k) AS big", "coalesce(site, -1) % 2"),
    *("substr(s, 1, 1) AS initial", "d"),
]
EXACT = [
    *(
        "min(v)",
        "max(v)",
        "min(f)",
        "max(f)",
        "count(*)",
        "count(v)",
        "sum(n)",
        "sum(i)",
        "sum(d)",
        "avg(d)",
        "min(huge)",
    ),
    *(
        "max(huge)",
        "bit_and(huge)",
        "bit_or(i)",
        "bool_and(flag)",
        "bool_or(flag)",
        "count_if(flag)",
        "min(s)",
        "max(s)",
    ),
    *(
        "max(wide)",
        "sum(wide)",
        "collect_set(i)",
        "min(key_0)",
        "max(ts)",
        "count(`my key`)",
        "min_by(s, struct(ts, n, s))",
    ),
    *("max_by(i, struct(ts, n, i))", "sum(i) FILTER (WHERE flag)", "count(*) FILTER (WHERE v > 0)", "min(wide)"),
    *("max(v) FILTER (WHERE NOT flag)", "every(flag)", "some(n > 0)"),
]
FLOATING = [
    *("sum(v)", "avg(v)", "avg(n)", "avg(i)", "avg(f)", "var_pop(v)", "var_samp(n)", "stddev(v)", "stddev_pop(f)"),
    *("covar_pop(v, n)", "covar_samp(n, i)", "corr(v, i)", "sum(f)", "avg(v) FILTER (WHERE flag)", "variance(d)"),
]
HOLISTIC = ["median(n)", "percentile(v, 0.25)", "count(DISTINCT i)", "count(DISTINCT s, flag)", "mode(i, true)"]
WHERES = ["", "", "", "flag", "n > 0", "v IS NOT NULL AND s <> ''", "site IN (0, 1)"]
PLAIN = {
    *("min(v)", "max(v)", "count(*)", "count(v)", "sum(n)", "sum(i)", "min(huge)", "max(huge)", "bool_and(flag)"),
    *("bool_or(flag)", "min(s)", "max(s)", "sum(v)", "avg(v)", "avg(n)", "var_pop(v)", "stddev(v)", "bit_or(i)"),
    *("count(*) FILTER (WHERE v > 0)", "sum(i) FILTER (WHERE flag)", "covar_pop(v, n)"),
}
"""What means the same on DuckDB and to the reference, for values without NaN."""
PLAIN_KEYS = {"k", "site", "`my key`", "flag", "huge", "__fw_start"}
PLAIN_WHERES = {"", "flag", "n > 0"}
FAR = {"1970": 0, "before 1970": -4_000, "now": 1_700_000_000, "past 2100": 4_200_000_000, "1600": -11_676_096_000}


@dataclass(frozen=True)
class Data:
    """Rows of all columns; times in microseconds."""

    kind: str
    rows: list[tuple[object, ...]]

    def frame(self, spark: SparkSession) -> DataFrame:
        raw = ", ".join(f"`{name}` {'bigint' if name == 'ts' else _loose(kind)}" for name, kind in COLUMNS.items())
        typed = [
            "timestamp_micros(ts) AS ts" if name == "ts" else f"CAST(`{name}` AS {kind}) AS `{name}`"
            for name, kind in COLUMNS.items()
        ]
        frame = spark.createDataFrame(self.rows, raw).selectExpr(*typed)
        if self.kind == "ntz":
            return frame.withColumn("ts", F.col("ts").cast("timestamp_ntz"))
        return frame


def _loose(kind: str) -> str:
    """Decimals and dates come as text, which Python and Spark read alike."""
    return "string" if kind.startswith("decimal") or kind == "date" else kind


@dataclass(frozen=True)
class Case:
    """One query over one data set, and one way to run it."""

    data: Data
    query: Query
    options: dict[str, object]
    way: str

    def compute(self, events: DataFrame) -> DataFrame:
        plan = optimize(self.query, **self.options)
        if self.way == "sql":
            name = f"events_{abs(hash(self.query))}"
            events.createOrReplaceTempView(name)
            text = optimize(replace(self.query, source=name), **self.options).sql(dialect="spark")
            return events.sparkSession.sql(text)
        if self.way == "batch":
            return plan.run(events)
        return _forced(self.way)(plan, events)


def _forced(together: str):
    """Run a plan with rows brought together in a given way, or panes in packs, whatever the costs say."""

    class Forced(batch._Batch):
        def __init__(self, plan, events):
            super().__init__(plan, events)
            physical = self.physical
            if not self.types.shared or (together == "keys" and not self.keys):
                return
            packing = packing_of(self.query, self.types) if together == "packs" else None
            *_, (deepest, pack) = levels._layouts(self.plan, packing)
            physical = replace(physical, levels=deepest, pack=pack, together="nothing", partitions=2)
            if together == "events":
                if self.keys:
                    self.physical = replace(physical, together="events")
            elif len(deepest) > 1:
                # Chunks no longer than the longest range put as many rows as can be near an edge.
                length = pack.window.range if pack else 1
                chunk = -(-self.longest // length) * length
                self.physical = replace(physical, together="chunks" if together == "packs" else together, chunk=chunk)
            elif pack:
                self.physical = physical

    return lambda plan, events: Forced(plan, events).result(events)


def data_of(rng: random.Random) -> Data:
    """Draw a data set: empty, tiny or small; skewed, all equal, duplicated, sparse, far from 1970."""
    size = rng.choice([0, 1, 2, 12, 60, 60, 150])
    start = rng.choice(list(FAR.values())) * 1_000_000
    span = rng.choice([1, 20, 300, 300, 5_000])
    grain = rng.choice([1_000_000, 500_000, 1, 250_001])
    nulls = rng.choice([0, 0.1, 0.1, 0.9])
    odd = rng.random() < 0.3
    same = rng.random() < 0.1

    def maybe(value: object) -> object:
        return None if rng.random() < nulls else value

    def double() -> float:
        if odd and rng.random() < 0.2:
            return rng.choice([math.nan, math.inf, -math.inf, -0.0, 0.0, 5e-324])
        return rng.choice([0.0, 1.5, rng.uniform(-9, 9), rng.uniform(-1e6, 1e6)])

    rows = []
    for _ in range(size):
        second = rng.choice([rng.randrange(span), rng.randrange(span), 0, span])
        text = rng.choice(["", "x", "ü", "x'y", '"', "\\", "a`b", "😀", "X"])
        rows.append(
            (
                maybe(start + second * 1_000_000 // rng.choice([1, 1, 2]) + rng.randrange(3) * grain),
                maybe(rng.choice(["a", "a", "a", "b", "", "ü", "A"])),
                maybe(rng.randrange(-2, 3)),
                maybe(rng.choice([1, 1, 2, -(2**63), 2**63 - 1])),
                maybe(rng.choice(["p", "q"])),
                maybe(rng.choice(["2024-02-29", "1969-12-31", "0001-01-01"])),
                maybe(rng.random() < 0.5),
                maybe(double()),
                maybe(rng.choice([0.5, -2.25, 1e30, -0.0])),
                maybe(rng.randrange(-(2**40), 2**40)),
                maybe(rng.randrange(-5, 5)),
                maybe(rng.choice([2**63 - 1, -(2**63), 0, -1, 7])),
                maybe(f"{rng.uniform(-(10**14), 10**14):.5f}"),
                maybe(rng.choice(["9" * 32 + ".9999", "-" + "9" * 32 + ".9999", "0.0001", "1"])),
                maybe(text),
            )
        )
    if same and rows:
        rows = [rows[0]] * size
    if rng.random() < 0.2:
        rows += rows[: size // 2]
    return Data(rng.choice(["timestamp", "timestamp", "ntz"]), rows)


def windows_of(rng: random.Random) -> list[Window]:
    """Draw windows of any ratio, from a microsecond to a year; once in a while, hundreds of them."""
    if rng.random() < 0.02:
        slides = rng.sample(range(1, 400), rng.choice([100, 300]))
        return [Window(slide * 1_000_000 * rng.choice([1, 1, 1, 2]), slide * 1_000_000) for slide in slides]
    unit = rng.choice([1_000_000, 1_000_000, 1_000_000, 60_000_000, 1, 250_000, 3_600_000_000, 86_400_000_000])
    made: dict[Window, None] = {}
    for _ in range(rng.choice([1, 2, 3, 5, 9, 16] if unit >= 1_000_000 else [1, 2, 3])):
        slide = rng.choice([1, 2, 3, 4, 5, 6, 7, 10, 12, 15, 17, 60]) * unit
        times = rng.choice([1, 1, 1, 2, 3, 5, 12])
        extra = rng.choice([0, 0, 0, 0, unit // 2, min(unit, slide - 1), 1])
        offset = rng.choice([0, 0, 0, unit // 2, unit, 1])
        name = rng.choice(["", "", "", f"it's {len(made)}"])
        made[Window(range=slide * times + extra, slide=slide, offset=offset, name=name)] = None
    return list(made)


def query_of(rng: random.Random) -> Query:
    windows = windows_of(rng)
    plain = len(windows) > TOO_MANY or rng.random() < 0.15
    functions = rng.choice([EXACT, FLOATING, EXACT + FLOATING, EXACT + HOLISTIC, ["min(v)", "max(huge)"]])
    functions, names, wheres = (
        (sorted(PLAIN), sorted(PLAIN_KEYS), sorted(PLAIN_WHERES)) if plain else (functions, KEYS, WHERES)
    )
    return Query(
        time="ts",
        keys=rng.sample(names, rng.choice([0, 1, 1, 2, 3, 5])),
        windows=windows,
        aggregates=rng.sample(functions, min(len(functions), rng.randrange(1, 5))),
        where=rng.choice(wheres),
    )


def options_of(rng: random.Random, search: str) -> dict[str, object]:
    return {
        "search": search,
        "rate": rng.choice([None, 0.001, 1, 1000]),
        "unit": "1 second",
        "keys": rng.choice([None, 1, 500, 10**6]),
        "slices": rng.random() < 0.8,
        "time_limit": 0.2,
    }


WAYS = ("batch", "batch", "batch", "sql", "chunks", "keys", "events", "nothing", "packs", "packs")


@dataclass
class Tally:
    """What was run, and what differed."""

    counts: Counter[str] = field(default_factory=Counter)
    lock: Lock = field(default_factory=Lock)


def rows_of(frame: DataFrame) -> DataFrame:
    """Turn any result into one column of texts, so that results of many queries fit into one job."""
    columns = []
    for column in frame.schema:
        kind = column.dataType.typeName()
        name = f"`{column.name.replace('`', '``')}`"
        columns.append(f"CAST(sort_array({name}) AS STRING)" if kind == "array" else f"CAST({name} AS STRING)")
    return frame.select(F.array(*(F.expr(column) for column in columns)).alias("row"))


def collected(frames: dict[str, DataFrame]) -> dict[str, list[tuple[str | None, ...]]]:
    """Collect many results in one job, which is stopped when it takes too long: that is a finding too."""
    tagged = [rows_of(frame).select(F.lit(name).alias("name"), "row") for name, frame in frames.items()]
    found: dict[str, list[tuple[str | None, ...]]] = {name: [] for name in frames}
    context, group = tagged[0].sparkSession.sparkContext, uuid4().hex
    context.setJobGroup(group, "fuzz", interruptOnCancel=True)
    stop = Timer(PATIENCE, context.cancelJobGroup, [group])
    stop.start()
    try:
        for name, row in reduce(DataFrame.unionAll, tagged).collect():
            found[name].append(tuple(row))
    finally:
        stop.cancel()
    return found


def difference(query: Query, found: list[tuple[str | None, ...]], expected: list[tuple[str | None, ...]], scale: float):
    """Say how two results differ, or nothing; floating values may differ in their last digits."""
    width = len(query.parsed_keys) + 3
    ours, theirs = (Counter(row[:width] for row in rows) for rows in (found, expected))
    if ours != theirs:
        missing, extra = list((theirs - ours).elements())[:2], list((ours - theirs).elements())[:2]
        return f"{len(found)} rows instead of {len(expected)}: missing {missing}, extra {extra}"
    ordered = [
        sorted(rows, key=lambda row: tuple((part is not None, part or "") for part in row))
        for rows in (found, expected)
    ]
    for one, other in zip(*ordered, strict=True):
        for aggregate, left, right in zip(query.parsed_aggregates, one[width:], other[width:], strict=True):
            if left != right and not _close(left, right, aggregate.function.name, scale):
                return f"{aggregate.sql} is {left} instead of {right} at {one[:width]}"
    return ""


def _close(left: str | None, right: str | None, function: str, scale: float) -> bool:
    try:
        one, other = float(left or ""), float(right or "")
    except ValueError:
        return False
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    if function not in {
        "sum",
        "avg",
        "var_pop",
        "var_samp",
        "stddev_pop",
        "stddev_samp",
        "covar_pop",
        "covar_samp",
        "corr",
    }:
        return one == other
    slack = {"sum": scale, "avg": scale, "stddev_pop": scale, "stddev_samp": scale, "corr": 1.0}.get(function, scale**2)
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9 * slack)


def scale_of(data: Data) -> float:
    """Return how large the values are that floating sums are made of."""
    numbers = [abs(row[place]) for row in data.rows for place in (7, 9, 10) if isinstance(row[place], int | float)]
    return max([1.0, *(number for number in numbers if math.isfinite(number))])


def cases_of(seed: int) -> list[Case]:
    rng = random.Random(seed)
    data = data_of(rng)
    queries = [query_of(rng) for _ in range(QUERIES)]
    return [
        case
        for query in queries
        for search in SEARCHES
        if fits(case := Case(data, query, options_of(rng, search), rng.choice(WAYS)))
    ]


def fits(case: Case) -> bool:
    """Leave out what would only be slow: a year that slides by a second over a single day has millions of instances."""
    if len(case.query.windows) > TOO_MANY and not is_plain(case):
        return False
    steps = sum(-(-window.range // window.slide) for window in case.query.windows)
    return steps * max(1, len(case.data.rows)) < 30_000


def check(spark: SparkSession, cases: list[Case]) -> list[tuple[Case, str]]:
    """Run cases over one data set, naively and as they say, in one job; return those that differ, and how."""
    events = cases[0].data.frame(spark)
    queries = list(dict.fromkeys(case.query for case in cases))
    frames: dict[str, DataFrame] = {}
    found: list[tuple[Case, str]] = []
    for number, query in enumerate(queries):
        if len(query.windows) <= TOO_MANY:
            frames[f"naive {number}"] = finished(query, naive(query, events))
    for place, case in enumerate(cases):
        try:
            frames[f"ours {place}"] = case.compute(events)
        except Exception as trouble:
            found.append((case, f"{type(trouble).__name__}: {str(trouble)[:300]}"))
    try:
        results = collected(frames) if frames else {}
    except Exception as trouble:
        if len(cases) > 1:
            return [each for case in cases for each in check(spark, [case])]
        return [(cases[0], f"{type(trouble).__name__}: {str(trouble)[:300]}")]
    scale = scale_of(cases[0].data)
    expected = {query: results.get(f"naive {number}") for number, query in enumerate(queries)}
    by_hand = {case.query: by_reference(case) for case in cases if is_plain(case)}
    for query, rows in by_hand.items():
        if (naively := expected[query]) is None:
            expected[query] = rows
        elif text := difference(query, [in_micros(row, query) for row in naively], rows, scale):
            found.append((next(case for case in cases if case.query == query), f"naive and the reference: {text}"))
    for place, case in enumerate(cases):
        if f"ours {place}" not in results:
            continue
        ours, right = results[f"ours {place}"], expected[case.query]
        if len(case.query.windows) > TOO_MANY:
            ours = [in_micros(row, case.query) for row in ours]
        text = difference(case.query, ours, right, scale)
        if not text and case.query in by_hand:
            text = difference(case.query, by_duckdb(case), by_hand[case.query], scale)
            text = f"duckdb: {text}" if text else ""
        if text:
            found.append((case, text))
    return found


def is_plain(case: Case) -> bool:
    query = case.query
    odd = any(isinstance(row[7], float) and not math.isfinite(row[7]) for row in case.data.rows)
    return (
        not odd
        and case.data.kind == "timestamp"
        and set(query.aggregates) <= PLAIN
        and set(query.keys) <= PLAIN_KEYS
        and query.where in PLAIN_WHERES
    )


def by_reference(case: Case) -> list[tuple[str | None, ...]]:
    """Evaluate a plain query in Python; times are microseconds."""
    query, names = case.query, list(COLUMNS)
    events = [dict(zip(names, row, strict=True)) for row in case.data.rows]
    if query.where:
        events = [event for event in events if _passes(query.where, event)]
    return [tuple(map(_text, row.values())) for row in evaluate(query, events)]


def by_duckdb(case: Case) -> list[tuple[str | None, ...]]:
    """Run the plan's SQL on DuckDB; times are microseconds."""
    import duckdb

    rows = case.data.rows
    with duckdb.connect() as db:
        kinds = ", ".join(f'"{name}" {_duckdb_type(kind)}' for name, kind in COLUMNS.items())
        db.execute(f"CREATE TABLE raw ({kinds})")
        if rows:
            db.executemany(f"INSERT INTO raw VALUES ({', '.join('?' * len(COLUMNS))})", rows)
        db.execute("CREATE TABLE r AS SELECT * REPLACE (make_timestamp(ts) AS ts) FROM raw")
        text = optimize(replace(case.query, source="r"), **case.options).sql(dialect="duckdb")
        db.execute(f"CREATE TABLE result AS {text}")
        ends = "epoch_us(window_start) AS window_start, epoch_us(window_end) AS window_end"
        return [tuple(map(_text, row)) for row in db.execute(f"SELECT * REPLACE ({ends}) FROM result").fetchall()]


def _passes(where: str, event: dict[str, object]) -> bool:
    return event["flag"] is True if where == "flag" else event["n"] is not None and event["n"] > 0


def _duckdb_type(kind: str) -> str:
    return {"timestamp": "BIGINT", "string": "VARCHAR", "float": "FLOAT"}.get(kind, kind.upper())


def _text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def in_micros(row: tuple[str | None, ...], query: Query) -> tuple[str | None, ...]:
    """Write the times of a row from Spark as microseconds."""
    from datetime import UTC, datetime, timedelta

    width = len(query.parsed_keys)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    times = [
        str((datetime.fromisoformat(text or "").replace(tzinfo=UTC) - epoch) // timedelta(microseconds=1))
        for text in row[width + 1 : width + 3]
    ]
    return (*row[: width + 1], *times, *row[width + 3 :])


def shrunk(spark: SparkSession, case: Case) -> Case:
    """Take away rows, windows, aggregates and keys as long as the case still differs."""

    def fails(smaller: Case) -> bool:
        try:
            return bool(check(spark, [smaller]))
        except Exception:
            return False

    def without(items: list, rebuild) -> None:
        nonlocal case
        size = len(items)
        step = max(1, size // 2)
        while step:
            place = 0
            while place < len(items):
                rest = items[:place] + items[place + step :]
                smaller = rebuild(rest)
                if smaller is not None and fails(smaller):
                    items, case = rest, smaller
                else:
                    place += step
            step //= 2

    without(list(case.data.rows), lambda rows: replace(case, data=Data(case.data.kind, rows)))
    for part in ("windows", "aggregates"):
        without(
            list(getattr(case.query, part)),
            lambda rest, part=part: replace(case, query=replace(case.query, **{part: rest})) if rest else None,
        )
    without(list(case.query.keys), lambda rest: replace(case, query=replace(case.query, keys=rest)))
    if case.query.where and fails(replace(case, query=replace(case.query, where=""))):
        case = replace(case, query=replace(case.query, where=""))
    return case


def script(case: Case, problem: str) -> str:
    """Write a case as a test of a few lines."""
    query = case.query
    windows = ", ".join(
        f"Window(range={w.range}, slide={w.slide}, offset={w.offset}"
        + (f", name={w.name!r})" if w.name != w.label else ")")
        for w in query.windows
    )
    return (
        f"# {problem}\n"
        f"data = Data({case.data.kind!r}, {case.data.rows!r})\n"
        f"query = Query(time='ts', keys={list(query.keys)!r}, windows=[{windows}],\n"
        f"    aggregates={list(query.aggregates)!r}, where={query.where!r})\n"
        f"assert check(spark, [Case(data, query, {case.options!r}, {case.way!r})]) == []\n"
    )


def many_of(spark: SparkSession, seed: int) -> list[str]:
    """Run several queries over one data set by one plan, and return what differs."""
    rng = random.Random(seed)
    data = data_of(rng)
    events = data.frame(spark)
    queries = []
    while len(queries) < rng.choice([2, 3, 6, 12, 30]):
        query = query_of(rng)
        if len(query.windows) <= TOO_MANY and fits(Case(data, query, {}, "")):
            queries.append(query)
    plan = optimize(queries, **options_of(rng, rng.choice(SEARCHES)))
    with plan.run(events) as results:
        frames = {f"ours {query.name}": results[query.name] for query in plan.queries}
        frames |= {f"naive {query.name}": finished(query, naive(query, events)) for query in plan.queries}
        found = collected(frames)
    scale = scale_of(data)
    differing = []
    for query in plan.queries:
        if text := difference(query, found[f"ours {query.name}"], found[f"naive {query.name}"], scale):
            differing.append(f"seed {seed}, {query.name} of {len(queries)} {query}: {text}")
    return differing


def stream_of(spark: SparkSession, seed: int) -> list[str]:
    """Run one query, or several, over a stream of files, and compare with what batch says is closed."""
    rng = random.Random(seed)
    size = rng.choice([3, 40, 120])
    rows = sorted(
        (
            {
                "ts": rng.choice([rng.randrange(0, 400), rng.randrange(200, 260)]) * 500_000,
                "k": rng.choice(["a", "b", None]),
                "site": rng.randrange(3),
                "v": rng.choice([None, rng.uniform(-9, 9)]),
                "n": rng.randrange(-9, 9),
            }
            for _ in range(size)
        ),
        key=lambda row: row["ts"] + rng.randrange(12_000_000),
    )
    several = rng.random() < 0.4
    queries = [
        Query(
            time="ts",
            keys=rng.choice([[], ["k"], ["site"], ["k", "site"]]),
            windows=[Window(w.range, w.slide, w.offset) for w in _short_windows(rng)],
            aggregates=rng.sample(["count(*)", "sum(n)", "min(v)", "max(v)", "avg(v)", "stddev_pop(v)", "sum(v)"], 2),
            where=rng.choice(["", "", "n > 0"]),
        )
        for _ in range(rng.choice([2, 4]) if several else 1)
    ]
    mode = "append" if several else rng.choice(["append", "append", "append", "update", "complete"])
    plan = optimize(queries if several else queries[0], search=rng.choice(SEARCHES), time_limit=0.2)
    with TemporaryDirectory() as folder:
        (Path(folder) / "in").mkdir()
        cuts = sorted(rng.randrange(size + 1) for _ in range(2))
        for number, part in enumerate((rows[: cuts[0]], rows[cuts[0] : cuts[1]], rows[cuts[1] :])):
            if part:
                lines = "\n".join(json.dumps(row) for row in part)
                path = Path(folder) / "in" / f"{number}.json"
                path.write_text(lines, encoding="utf-8")
                # Files are read in the order of their times, which must not be the same.
                os.utime(path, (number + 1, number + 1))
        schema = "ts bigint, k string, site int, v double, n bigint"
        as_events = lambda frame: frame.withColumn("ts", F.timestamp_micros("ts"))  # noqa: E731
        stream = as_events(spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(f"{folder}/in"))
        events = as_events(spark.read.schema(schema).json(f"{folder}/in"))
        name = f"fuzz_{seed}"
        result = plan.run(stream.withWatermark("ts", "20 seconds"), mode=mode)
        writer = result.writeStream.format("memory").queryName(name).outputMode(mode)
        running = writer.option("checkpointLocation", f"{folder}/state").trigger(availableNow=True).start()
        running.awaitTermination()
        found = fan_out(spark.table(name)) if several else {"": spark.table(name)}
        named = {query.name: query for query in plan.queries} if several else {"": queries[0]}
        differing = []
        for query_name, query in named.items():
            expected, ours = naive(query, events), found[query_name]
            if mode == "append":
                closed = running.lastProgress["eventTime"]["watermark"]
                expected = expected.where(F.col("window_end") <= F.lit(closed).cast("timestamp"))
            elif mode == "update":
                # Rows come out as they change, so only which instances there are is compared.
                by = [f"`{column}`" for column in expected.columns[: len(query.parsed_keys) + 3]]
                both = collected({"ours": ours.select(*by).distinct(), "naive": expected.select(*by)})
                here, there = Counter(both["ours"]), Counter(both["naive"])
                if here != there:
                    differing.append(f"seed {seed}, update, {query}: {here - there} and {there - here}")
                continue
            both = collected({"ours": ours, "naive": expected})
            if text := difference(query, both["ours"], both["naive"], 9.0):
                differing.append(f"seed {seed}, {mode}, {query}: {text}")
        spark.catalog.dropTempView(name)
    return differing


def _short_windows(rng: random.Random) -> list[Window]:
    made = {}
    for _ in range(rng.choice([1, 2, 4])):
        slide = rng.choice([2, 5, 10, 15, 20, 30]) * 1_000_000
        made[
            Window(slide * rng.choice([1, 1, 2, 3]) + rng.choice([0, 0, 1_000_000]), slide, rng.choice([0, 0, 500_000]))
        ] = 0
    return list(made)


QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""Tiny data takes longer to compile for than to compute."""


def quick_session() -> SparkSession:
    """Start a session that wastes no time on tiny data."""
    session = (
        SparkSession.builder.master("local[2]")
        .config(map=QUICK)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "3g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    return session


def main() -> int:
    """Look for differences until the time is over."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=5.0, help="how long to look (default 5)")
    options.add_argument(
        "--seed", type=int, default=int(time.time()), help="the first seed (default: another each time)"
    )
    options.add_argument("--kind", choices=["all", "batch", "many", "stream"], default="all", help="what to look at")
    options.add_argument("--output", type=Path, default=Path("fuzz-failures.txt"), help="where differences go")
    chosen = options.parse_args()
    spark = quick_session()
    until = time.monotonic() + 60 * chosen.minutes
    tally = Tally()
    texts: list[str] = []

    def work(number: int) -> None:
        seed = chosen.seed + number
        kind = chosen.kind if chosen.kind != "all" else ("many", "stream", "batch", "batch", "batch")[number % 5]
        try:
            if kind == "batch":
                cases = cases_of(seed)
                found = check(spark, cases) if cases else []
                with tally.lock:
                    tally.counts["batch cases"] += len(cases)
                    tally.counts["of them on DuckDB and by the reference"] += sum(map(is_plain, cases))
                    tally.counts.update(f"by {case.way}, {case.options['search']}" for case in cases)
                for case, problem in found:
                    small = shrunk(spark, case)
                    with tally.lock:
                        texts.append(f"# seed {seed}\n{script(small, problem)}")
            else:
                differing = (many_of if kind == "many" else stream_of)(spark, seed)
                with tally.lock:
                    tally.counts[f"{kind} cases"] += 1
                    texts.extend(f"# {text}" for text in differing)
        except Exception as trouble:
            with tally.lock:
                texts.append(f"# seed {seed}, {kind}: {type(trouble).__name__}: {str(trouble)[:500]}")

    begun = 0
    with ThreadPoolExecutor(2) as pool:
        waiting = set()
        while time.monotonic() < until or waiting:
            while time.monotonic() < until and len(waiting) < 4:
                waiting.add(pool.submit(work, begun))
                begun += 1
            done = {future for future in waiting if future.done()}
            waiting -= done
            time.sleep(0.02)
    for name, count in sorted(tally.counts.items(), key=lambda pair: -pair[1]):
        print(f"{count:7,} {name}")
    print(f"seeds {chosen.seed} to {chosen.seed + begun - 1}: {len(texts)} differences")
    if texts:
        chosen.output.write_text("\n".join(texts), encoding="utf-8")
        print(f"they are in {chosen.output}")
    return 1 if texts else 0


if __name__ == "__main__":
    sys.exit(main())
