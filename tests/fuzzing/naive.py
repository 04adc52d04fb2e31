"""What users write today, made of their own texts: nothing of it goes through the library, so that it is not fooled.

The library's `naive` is made of texts that it has read and written again; had it read them wrongly, both would agree.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factor_windows import Query, Window


def by_hand(query: Query, events: DataFrame) -> DataFrame:
    """Group by each window and unite, with the names that Spark gives."""
    if query.where:
        events = events.where(query.where)
    return reduce(DataFrame.unionAll, [_of_window(query, events, window) for window in query.windows])


def _of_window(query: Query, events: DataFrame, window: Window) -> DataFrame:
    lengths = [f"{length} microseconds" for length in (window.range, window.slide, window.offset)]
    keys = [F.expr(key) for key in query.keys]
    grouped = events.groupBy(*keys, F.window(F.expr(query.time), *lengths)).agg(*map(F.expr, query.aggregates))
    names, width = grouped.columns, len(keys)
    placed = grouped.toDF(*(f"c{place}" for place in range(len(names))))
    shown = [F.col(f"c{place}").alias(name) for place, name in enumerate(names)]
    times = [
        F.lit(window.name).alias("window_id"),
        F.col(f"c{width}.start").alias("window_start"),
        F.col(f"c{width}.end").alias("window_end"),
    ]
    return placed.select(*shown[:width], *times, *shown[width + 1 :])
