"""Statistics of a stream, from one sampled pass, for `optimize`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from factor_windows.algebra.graph import keys_of
from factor_windows.algebra.window import tumbling
from factor_windows.cost.statistics import Statistics
from factor_windows.errors import OptionError, QueryError
from factor_windows.functions.guards import in_order, only_where
from factor_windows.query import Query
from factor_windows.spark.grouped import grouped
from factor_windows.spark.look import estimated_keys
from factor_windows.spark.messages import check_events
from factor_windows.spark.restricted import persist
from factor_windows.spark.types import microseconds, types_of
from factor_windows.workload import name_queries


def analyze(
    events: DataFrame,
    *,
    time: str = "",
    keys: Sequence[str] = (),
    sample: float = 0.01,
    queries: Sequence[Query] = (),
) -> Statistics:
    """Measure rate, keys and span of a DataFrame of events from a sample, for `optimize(query, statistics=...)`.

    For several `queries`, it also measures how many combinations of keys each has, and what share its condition keeps.

    A sample has fewer keys than the whole stream. Their total number is estimated from how many of the keys were seen
    only once (Chao 1984).
    """
    if not 0 < sample <= 1:
        raise OptionError(f"sample {sample!r} is not a share of the events; it is above 0 and at most 1")
    if not time and not queries:
        raise OptionError("analyze needs time= or queries=")
    check_events(events)
    queries = name_queries(queries)
    found = _count_by_key(events, sample, time, keys, queries)
    key_sets = {keys_of(query) for query in queries}
    rows = found.rows
    is_kept = bool(key_sets) and persist(rows)
    try:
        totals = [F.sum("n"), F.min("low"), F.max("high"), *(F.sum(flag) for flag in found.flags.values())]
        total, low, high, *rest = rows.agg(*totals, *_seen_counts()).first() or (0, 0, 0)
        if not total:
            raise QueryError(
                f"no event with a time was found in {time or queries[0].time!r}; "
                "take a larger sample, or set rate and keys yourself"
            )
        kept, seen = rest[: len(found.flags)], rest[len(found.flags) :]
        count = round(total / sample)
        combinations = {}
        for some in key_sets:
            by_some = rows.groupBy(*(found.keys[key] for key in sorted(some))).agg(F.sum("n").alias("n"))
            counted = by_some.agg(*_seen_counts()).first() or (1, 0, 0)
            combinations[some] = min(count, counted[0] if sample == 1 or not some else estimated_keys(*counted))
    finally:
        if is_kept:
            rows.unpersist()
    return Statistics(
        events=count,
        keys=min(count, seen[0] if sample == 1 or not found.keys else estimated_keys(*seen)),
        span=timedelta(microseconds=high - low),
        sampled=sample,
        combinations=combinations,
        selectivity={name: (passed or 0) / total for name, passed in zip(found.flags, kept, strict=True)},
    )


@dataclass(frozen=True, slots=True)
class _Counted:
    """The sample by combination of keys: `n` events from `low` to `high`, and how many of them each condition keeps."""

    rows: DataFrame
    keys: dict[str, str]
    """The column of each key."""
    flags: dict[str, str]
    """The column of each query's condition, by the query's name."""


def _count_by_key(
    events: DataFrame, sample: float, time: str, keys: Sequence[str], queries: Sequence[Query]
) -> _Counted:
    wanted = list(dict.fromkeys([*keys, *(key.sql for query in queries for key in query.parsed_keys)]))
    query = Query(time=time or queries[0].time, keys=wanted, windows=[tumbling("1 second")], aggregates=["count(*)"])
    types = types_of(query, events, "__fw_")
    if sample < 1:
        events = events.sample(fraction=sample, seed=17)
    # A key or a time may be null where no query needs it.
    asked = [
        ("", time, *keys),
        *((each.where, each.parsed_time.sql, *(k.sql for k in each.parsed_keys)) for each in queries),
    ]

    def guarded(sql: str) -> str:
        return only_where(sql, [where for where, *parts in asked if sql in parts])

    columns = {key.sql: f"k{number}" for number, key in enumerate(query.parsed_keys)}
    flags = {each.name: f"f{number}" for number, each in enumerate(queries) if each.where}
    seen = events.select(
        *(F.expr(guarded(key)).alias(name) for key, name in columns.items()),
        F.expr(microseconds(guarded(query.parsed_time.sql), types.time)).alias("t"),
        *(F.expr(in_order(each.where)).cast("int").alias(flags[each.name]) for each in queries if each.where),
    ).where(F.col("t").isNotNull())
    by_key = grouped(
        seen,
        list(columns.values()),
        F.count("*").alias("n"),
        F.min("t").alias("low"),
        F.max("t").alias("high"),
        *(F.sum(flag).alias(flag) for flag in flags.values()),
    )
    return _Counted(by_key, columns, flags)


def _seen_counts() -> list[Column]:
    """Count combinations of keys: all that were seen, those seen once, and those seen twice."""
    return [F.count("*"), F.count_if(F.col("n") == 1), F.count_if(F.col("n") == 2)]
