"""The baseline: what people write today, one groupBy(window()) or session_window() for each window, and a union."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType

from factor_windows.algebra.calendar import AnyWindow
from factor_windows.algebra.growing import Growing
from factor_windows.algebra.session import Session
from factor_windows.functions.expression import quoted
from factor_windows.query import Query
from factor_windows.spark.nullability import text_of
from factor_windows.spark.own_calendar import with_instances
from factor_windows.spark.settings import keeps_groups
from factor_windows.spark.types import has_calendars

WINDOW = "__fw_window"


def naive(query: Query, events: DataFrame) -> DataFrame:
    """Compute a query window by window, with as few calls into Spark as possible."""
    if query.where:
        events = events.where(query.where)
    keys = [F.expr(key.sql).alias(key.name) for key in query.parsed_keys]
    texts = {each.name: each.sql for each in query.parsed_aggregates}
    if query.formulas:
        texts = dict(zip((each.name for each in query.formulas), query.aggregates, strict=True))
    values = [F.expr(text).alias(name) for name, text in texts.items()]
    names = [quoted(key.name) for key in query.parsed_keys], [quoted(name) for name in texts]

    keeps = keeps_groups(events)

    def of(window: AnyWindow) -> DataFrame:
        rows, instance = _instances(query, window, events)
        by = [*keys, instance.alias(WINDOW)]
        grouped = rows.groupBy(*by).agg(*([] if keeps else by), *values)
        bounds = f"{WINDOW}.start AS window_start", f"{WINDOW}.end AS window_end"
        return grouped.selectExpr(*names[0], f"{text_of(window.name)} AS window_id", *bounds, *names[1])

    return reduce(DataFrame.union, map(of, query.windows))


def _instances(query: Query, window: AnyWindow, events: DataFrame) -> tuple[DataFrame, Column]:
    """Return the events, and the column that identifies the instance of each."""
    if isinstance(window, Session):
        return events, F.expr(f"session_window({_time(query, events)}, '{window.gap} microseconds')")
    if isinstance(window, Growing) or window.clock is not None:
        return with_instances(window, query.parsed_time.sql, events, calendar=has_calendars(query))
    lengths = (f"'{length} microseconds'" for length in (window.range, window.slide, window.offset))
    return events, F.expr(f"window({_time(query, events)}, {', '.join(lengths)})")


def _time(query: Query, events: DataFrame) -> str:
    """Return the time; in a query with calendars a date is a local date, whatever Spark's time zone."""
    if not has_calendars(query):
        return query.time
    is_date = isinstance(events.select(F.expr(query.time)).schema[0].dataType, DateType)
    return f"CAST(({query.parsed_time.sql}) AS TIMESTAMP_NTZ)" if is_date else query.time
