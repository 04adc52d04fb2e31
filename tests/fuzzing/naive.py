"""What users write today, made of their own texts: nothing of it goes through the library, so that it is not fooled.

The library's `naive` is made of texts that it has read and written again; had it read them wrongly, both would agree.
Windows that Spark's window() cannot say are looked up: Python says which instances hold each time that an event has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from factor_windows import Query, Window
from factor_windows.algebra.calendar import AnyWindow
from factor_windows.algebra.growing import Growing
from factor_windows.algebra.session import Session
from fuzzing.zones import day_of, first_of, midnight, month_of

SECOND = 1_000_000
TIME, START, END = "time by hand", "start by hand", "end by hand"
WALL = "TIMESTAMP_NTZ'1970-01-01' + make_dt_interval(0, 0, 0, {} / 1000000BD)"
"""Microseconds as a time without a zone."""


def by_hand(query: Query, events: DataFrame, times: Iterable[int] = ()) -> DataFrame:
    """Group by each window and unite, with the names that Spark gives; events have some of the times, and no others."""
    if query.where:
        events = events.where(query.where)
    return reduce(DataFrame.unionAll, [_of_window(query, events, window, times) for window in query.windows])


def _of_window(query: Query, events: DataFrame, window: AnyWindow, times: Iterable[int]) -> DataFrame:
    time, keys = _time(query, events), [F.expr(key) for key in query.keys]
    if isinstance(window, Session):
        instance = F.session_window(time, f"{window.gap} microseconds")
    elif isinstance(window, Growing) or window.clock:
        events, instance = _looked_up(window, events, time, times)
    else:
        lengths = [f"{length} microseconds" for length in (window.range, window.slide, window.offset)]
        instance = F.window(time, *lengths)
    grouped = events.groupBy(*keys, instance).agg(*map(F.expr, query.aggregates))
    names, width = grouped.columns, len(keys)
    placed = grouped.toDF(*(f"c{place}" for place in range(len(names))))
    shown = [F.col(f"c{place}").alias(name) for place, name in enumerate(names)]
    ends = [
        F.lit(window.name).alias("window_id"),
        F.col(f"c{width}.start").alias("window_start"),
        F.col(f"c{width}.end").alias("window_end"),
    ]
    return placed.select(*shown[:width], *ends, *shown[width + 1 :])


def _time(query: Query, events: DataFrame) -> Column:
    """Return the time; to a query with calendars a date is a local one, whatever zone Spark is in."""
    time = F.expr(query.time)
    has_calendars = any(part.clock or part.is_local for window in query.windows for part in window.parts)
    is_date = has_calendars and events.select(time).schema[0].dataType.typeName() == "date"
    return time.cast("timestamp_ntz") if is_date else time


def _looked_up(window: AnyWindow, events: DataFrame, time: Column, times: Iterable[int]) -> tuple[DataFrame, Column]:
    """Join events with a table of the instances of each time."""
    rows = [(at, *bounds) for at in sorted(set(times)) for bounds in instances(window, at)]
    names = (TIME, START, END)
    raw = events.sparkSession.createDataFrame(rows, ", ".join(f"`{name}` bigint" for name in names))
    written = WALL if events.select(time).schema[0].dataType.typeName() == "timestamp_ntz" else "timestamp_micros({})"
    table = raw.selectExpr(*(f"{written.format(f'`{name}`')} AS `{name}`" for name in names))
    ends = F.col(f"`{START}`").alias("start"), F.col(f"`{END}`").alias("end")
    return events.join(F.broadcast(table), time == F.col(f"`{TIME}`")), F.struct(*ends)


def instances(window: AnyWindow, time: int) -> Iterator[tuple[int, int]]:
    """List the starts and ends of the instances that hold a time, all in microseconds, as the words define them.

    >>> list(instances(Window(range=10, slide=4), -1))
    [(-4, 6), (-8, 2)]
    """
    if isinstance(window, Growing):
        begin, end = next(instances(window.period, time))
        tick = _last(window.step, time)
        while (start := _at(window.step, tick)) < end:
            tick += window.step.slide
            # A day that a place skipped is no step.
            if start < (until := _at(window.step, tick)):
                yield begin, until
        return
    tick, first = _tick(window, time), _last(window, time)
    for start in range(first, tick - window.range, -window.slide):
        # Nor does a window that starts every day start with one that never was.
        is_skipped = window.clock and window.slide == 1 < window.range and _at(window, start) == _at(window, start + 1)
        if not is_skipped:
            yield _at(window, start), _at(window, start + window.range)


def _last(window: Window, time: int) -> int:
    """Return the last tick at which an instance starts."""
    tick = _tick(window, time)
    return tick - (tick - window.offset) % window.slide


def _tick(window: Window, time: int) -> int:
    """Count a time in what the window's lengths are counted in: microseconds, or days or months of a zone."""
    if window.clock is None:
        return time
    day = day_of(window.clock.zone, time // SECOND)
    return month_of(day) if window.clock.unit == "month" else day


def _at(window: Window, tick: int) -> int:
    if window.clock is None:
        return tick
    return midnight(window.clock.zone, first_of(tick) if window.clock.unit == "month" else tick) * SECOND
