"""Instances of calendar windows and growing windows for single events, which Spark's window() cannot express."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from factor_windows.algebra.growing import Growing
from factor_windows.algebra.window import Window
from factor_windows.spark.local_time import SparkLocalTime, write_instant, write_tick
from factor_windows.spark.types import microseconds, time_of, timestamp

_TIME, _STEP, _START = "__fw_naive_time", "__fw_naive_step", "__fw_naive_start"
_SPARK = SparkLocalTime()


def with_instances(
    window: Window | Growing, time: str, events: DataFrame, *, calendar: bool
) -> tuple[DataFrame, Column]:
    """Repeat each event for every instance that contains it, and return the instance, with `start` and `end`.

    In a query with a `calendar`, dates are local.
    """
    kind = time_of(events.select(F.expr(time)).schema[0].dataType, calendar=calendar)
    micros = F.expr(microseconds(time, kind))
    counted = window.steps if isinstance(window, Growing) else -(-window.range // window.slide)
    steps = events.where(f"({time}) IS NOT NULL").withColumn(_TIME, micros)
    rows = steps.selectExpr("*", f"explode(sequence(0L, {counted - 1}L)) AS {_STEP}")
    if isinstance(window, Growing):
        step = window.step
        tick = f"{_tick(step, _TIME)} - {_after(step, _TIME)} + {_STEP} * {step.slide}"
        for skipped in window.skips:
            rows = rows.where(f"{tick} <> {skipped}")
        rows = rows.withColumn(_START, F.expr(_at(step, tick))).where(f"{_START} < {_end(window.period, _TIME)}")
        start, end = _begin(window.period, _START), _end(step, _START)
    else:
        tick = f"{_tick(window, _TIME)} - {_after(window, _TIME)} - {_STEP} * {window.slide}"
        rows = rows.withColumn(_START, F.expr(tick)).where(f"{_START} + {window.range} > {_tick(window, _TIME)}")
        for skipped in window.skips:
            rows = rows.where(f"{_START} <> {skipped}")
        start, end = _at(window, _START), _at(window, f"{_START} + {window.range}")
    ends = (F.expr(timestamp(each, kind)).alias(name) for each, name in ((start, "start"), (end, "end")))
    return rows, F.struct(*ends)


def _tick(window: Window, time: str) -> str:
    return time if window.clock is None else write_tick(window.clock, time, _SPARK)


def _at(window: Window, tick: str) -> str:
    return tick if window.clock is None else write_instant(window.clock, tick, _SPARK)


def _after(window: Window, time: str) -> str:
    return f"pmod({_tick(window, time)} - {window.offset}, {window.slide})"


def _begin(window: Window, time: str) -> str:
    return _at(window, f"{_tick(window, time)} - {_after(window, time)}")


def _end(window: Window, time: str) -> str:
    return _at(window, f"{_tick(window, time)} - {_after(window, time)} + {window.range}")
