"""Statistics of a stream, from one sampled pass, for `optimize`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factor_windows.errors import OptionError, QueryError
from factor_windows.query import Query
from factor_windows.spark.columns import microseconds, types_of
from factor_windows.window import tumbling


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a stream looks like; `rate` is in events per second, over all keys together."""

    events: int
    keys: int
    span: timedelta
    sampled: float
    """The share of the events that was looked at."""

    @property
    def rate(self) -> float:
        """Return the events per second."""
        return self.events / max(self.span.total_seconds(), 1e-6)

    @property
    def events_per_key(self) -> float:
        """Return the mean number of events that a key has."""
        return self.events / max(self.keys, 1)


def analyze(events: DataFrame, *, time: str, keys: Sequence[str] = (), sample: float = 0.01) -> Statistics:
    """Count events and keys and measure the span of time, from a sample of the events.

    A sample holds fewer keys than the whole. How many there are is estimated from how many of the keys seen were seen
    once only (Chao 1984).
    """
    if not 0 < sample <= 1:
        raise OptionError(f"sample {sample!r} is not a share of the events; it is above 0 and at most 1")
    query = Query(time=time, keys=keys, windows=[tumbling("1 second")], aggregates=["count(*)"])
    types = types_of(query, events, "__fw_")
    if sample < 1:
        events = events.sample(fraction=sample, seed=17)
    micros = microseconds(query.parsed_time.sql, types.time)
    columns = [F.expr(key.sql).alias(f"k{number}") for number, key in enumerate(query.parsed_keys)]
    seen = events.select(*columns, F.expr(micros).alias("t")).where(F.col("t").isNotNull())
    by_key = seen.groupBy(*(f"k{number}" for number in range(len(columns)))).agg(
        F.count("*").alias("n"), F.min("t").alias("low"), F.max("t").alias("high")
    )
    found = by_key.agg(
        F.sum("n"), F.count("*"), F.count_if(F.col("n") == 1), F.count_if(F.col("n") == 2), F.min("low"), F.max("high")
    ).first()
    if found is None or not found[0]:
        raise QueryError(
            f"no event with a time was found in {time!r}; give a larger sample, or rate= and keys= by hand"
        )
    total, distinct, once, twice, low, high = found
    unseen = 0 if sample == 1 or not columns else once * (once - 1) / (2 * (twice + 1))
    count = round(total / sample)
    return Statistics(
        events=count,
        keys=min(count, round(distinct + unseen)),
        span=timedelta(microseconds=high - low),
        sampled=sample,
    )
