"""The contender: what people write today, one groupBy(window()) for each window and a union."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factor_windows.algebra.growing import Growing
from factor_windows.functions.expression import quoted
from factor_windows.query import Query
from factor_windows.spark.own_calendar import with_instances

WINDOW = "__fw_window"


def naive(query: Query, events: DataFrame) -> DataFrame:
    """Compute a query window by window."""
    if query.where:
        events = events.where(query.where)
    return reduce(DataFrame.unionByName, [_window(query, events, number) for number in range(len(query.windows))])


def _window(query: Query, events: DataFrame, number: int) -> DataFrame:
    window = query.windows[number]
    if isinstance(window, Growing) or window.clock is not None:
        events, instance = with_instances(window, query.parsed_time.sql, events)
    else:
        lengths = [f"{length} microseconds" for length in (window.range, window.slide, window.offset)]
        instance = F.window(F.expr(query.time), *lengths)
    keys = [key.name for key in query.parsed_keys]
    texts = {each.name: each.sql for each in query.parsed_aggregates}
    if query.formulas:
        texts = dict(zip((each.name for each in query.formulas), query.aggregates, strict=True))
    grouped = events.groupBy(
        *(F.expr(key.sql).alias(key.name) for key in query.parsed_keys),
        instance.alias(WINDOW),
    ).agg(*(F.expr(text).alias(name) for name, text in texts.items()))
    return grouped.select(
        *(F.col(quoted(key)) for key in keys),
        F.lit(window.name).alias("window_id"),
        F.col(f"{WINDOW}.start").alias("window_start"),
        F.col(f"{WINDOW}.end").alias("window_end"),
        *(F.col(quoted(name)) for name in texts),
    )
