"""The contender: what people write today, one groupBy(window()) for each window and a union."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType

from factor_windows.algebra.growing import Growing
from factor_windows.functions.expression import quoted
from factor_windows.query import Query
from factor_windows.spark.own_calendar import with_instances
from factor_windows.spark.types import has_calendars

WINDOW = "__fw_window"


def naive(query: Query, events: DataFrame) -> DataFrame:
    """Compute a query window by window."""
    if query.where:
        events = events.where(query.where)
    return reduce(DataFrame.unionByName, [_window(query, events, number) for number in range(len(query.windows))])


def _time(query: Query, events: DataFrame) -> str:
    """Return the time; to a query with calendars a date is a local one, whatever zone Spark is in."""
    if not has_calendars(query):
        return query.time
    is_date = isinstance(events.select(F.expr(query.time)).schema[0].dataType, DateType)
    return f"CAST(({query.parsed_time.sql}) AS TIMESTAMP_NTZ)" if is_date else query.time


def _window(query: Query, events: DataFrame, number: int) -> DataFrame:
    window = query.windows[number]
    if isinstance(window, Growing) or window.clock is not None:
        events, instance = with_instances(window, query.parsed_time.sql, events)
    else:
        lengths = [f"{length} microseconds" for length in (window.range, window.slide, window.offset)]
        instance = F.window(F.expr(_time(query, events)), *lengths)
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
