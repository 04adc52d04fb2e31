"""Statistics of a stream, from one sampled pass, for `optimize`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factor_windows.algebra.window import tumbling
from factor_windows.errors import OptionError, QueryError
from factor_windows.functions.guards import in_order, only_where
from factor_windows.query import Query
from factor_windows.spark.messages import check_events
from factor_windows.spark.types import microseconds, types_of
from factor_windows.workload import named


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a stream looks like; `rate` is in events per second, over all keys together."""

    events: int
    keys: int
    span: timedelta
    sampled: float
    """The share of the events that was looked at."""
    combinations: Mapping[frozenset[str], int] = field(default_factory=dict)
    """How many combinations there are of each set of keys that one of several queries groups by."""
    selectivity: Mapping[str, float] = field(default_factory=dict)
    """What share of the events each of several queries is about."""

    @property
    def rate(self) -> float:
        """Return the events per second."""
        return self.events / max(self.span.total_seconds(), 1e-6)

    @property
    def events_per_key(self) -> float:
        """Return the mean number of events that a key has."""
        return self.events / max(self.keys, 1)


def analyze(
    events: DataFrame,
    *,
    time: str = "",
    keys: Sequence[str] = (),
    sample: float = 0.01,
    queries: Sequence[Query] = (),
) -> Statistics:
    """Count events and keys and measure the span of time, from a sample of the events.

    For several `queries` it also counts the combinations of each one's keys, and the share of the events that its
    condition keeps, in the same pass.

    A sample holds fewer keys than the whole. How many there are is estimated from how many of the keys seen were seen
    once only (Chao 1984).
    """
    if not 0 < sample <= 1:
        raise OptionError(f"sample {sample!r} is not a share of the events; it is above 0 and at most 1")
    if not time and not queries:
        raise OptionError("analyze needs the time column, or the queries that the events are for")
    check_events(events)
    queries = named(queries)
    wanted = list(dict.fromkeys([*keys, *(key.sql for query in queries for key in query.parsed_keys)]))
    query = Query(time=time or queries[0].time, keys=wanted, windows=[tumbling("1 second")], aggregates=["count(*)"])
    types = types_of(query, events, "__fw_")
    if sample < 1:
        events = events.sample(fraction=sample, seed=17)
    # A key or a time may be none where no query asks for it.
    asked = [
        ("", time, *keys),
        *((each.where, each.parsed_time.sql, *(k.sql for k in each.parsed_keys)) for each in queries),
    ]
    wheres = {sql: [where for where, *parts in asked if sql in parts] for sql in (query.parsed_time.sql, *wanted)}
    micros = microseconds(only_where(query.parsed_time.sql, wheres[query.parsed_time.sql]), types.time)
    columns = {key.sql: f"k{number}" for number, key in enumerate(query.parsed_keys)}
    conditions = {each.name: f"f{number}" for number, each in enumerate(queries) if each.where}
    seen = events.select(
        *(F.expr(only_where(key, wheres[key])).alias(name) for key, name in columns.items()),
        F.expr(micros).alias("t"),
        *(F.expr(in_order(each.where)).cast("int").alias(conditions[each.name]) for each in queries if each.where),
    ).where(F.col("t").isNotNull())
    by_key = seen.groupBy(*columns.values()).agg(
        F.count("*").alias("n"),
        F.min("t").alias("low"),
        F.max("t").alias("high"),
        *(F.sum(flag).alias(flag) for flag in conditions.values()),
    )
    several = {frozenset(key.sql for key in each.parsed_keys) for each in queries}
    by_key = by_key.persist() if several else by_key
    try:
        found = by_key.agg(
            *(F.sum("n"), F.count("*"), F.count_if(F.col("n") == 1), F.count_if(F.col("n") == 2)),
            *(F.min("low"), F.max("high"), *(F.sum(flag) for flag in conditions.values())),
        ).first()
        if found is None or not found[0]:
            raise QueryError(
                f"no event with a time was found in {query.time!r}; give a larger sample, or rate= and keys= by hand"
            )
        total, distinct, once, twice, low, high, *kept = found
        count = round(total / sample)

        def estimated(by: Collection[str], distinct: int, once: int, twice: int) -> int:
            unseen = 0.0 if sample == 1 or not by else once * (once - 1) / (2 * (twice + 1))
            return int(min(count, round(distinct + unseen)))

        combinations = {}
        for some in several:
            each = by_key.groupBy(*(columns[key] for key in sorted(some))).agg(F.sum("n").alias("n"))
            counted = each.agg(F.count("*"), F.count_if(F.col("n") == 1), F.count_if(F.col("n") == 2)).first()
            combinations[some] = estimated(some, *(counted or (1, 0, 0)))
    finally:
        if several:
            by_key.unpersist()
    shares = zip(conditions, kept, strict=True)
    return Statistics(
        events=count,
        keys=estimated(columns, distinct, once, twice),
        span=timedelta(microseconds=high - low),
        sampled=sample,
        combinations=combinations,
        selectivity={name: (passed or 0) / total for name, passed in shares},
    )
