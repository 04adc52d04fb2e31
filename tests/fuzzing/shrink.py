"""A finding made small: rows, windows, aggregates and keys are taken away as long as it still differs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from factor_windows.algebra.calendar import AnyWindow
from factor_windows.algebra.growing import Growing
from factor_windows.algebra.session import Session
from fuzzing.batch import Case, check
from fuzzing.data import written
from fuzzing.settings import Settings

LONGEST = 60
"""Seconds after which a case is small enough."""


def shrunk(spark: SparkSession, case: Case, problem: str) -> Case:
    """Take away what is not needed for a problem of the same kind."""
    until = time.monotonic() + LONGEST

    def fails(smaller: Case) -> bool:
        try:
            return any(_kind(text) == _kind(problem) for _, text in check(spark, [smaller]))
        except Exception:
            return False

    def without(items: list[Any], rebuild: Callable[[list[Any]], Case | None]) -> None:
        nonlocal case
        step = max(1, len(items) // 2)
        while step:
            place = 0
            while place < len(items) and time.monotonic() < until:
                rest = items[:place] + items[place + step :]
                smaller = rebuild(rest)
                if smaller is not None and fails(smaller):
                    items, case = rest, smaller
                else:
                    place += step
            step //= 2

    if fails(simple := replace(case, settings=Settings())):
        case = simple
    without(list(case.data.rows), lambda rows: replace(case, data=replace(case.data, rows=rows)))
    for part in ("windows", "aggregates"):
        without(
            list(getattr(case.query, part)),
            lambda rest, part=part: replace(case, query=replace(case.query, **{part: rest})) if rest else None,
        )
    without(list(case.query.keys), lambda rest: replace(case, query=replace(case.query, keys=rest)))
    if case.query.where and fails(bare := replace(case, query=replace(case.query, where=""))):
        case = bare
    return case


def _kind(problem: str) -> str:
    """Say what kind of problem it is: the words before the first figure or name.

    >>> _kind("12 rows instead of 13: missing []"), _kind("nullability of 'n' is True")
    ('rows', 'nullability')
    """
    words = [word for word in problem.split() if word.isalpha() or word.endswith(":")]
    return words[0] if words else ""


def script(case: Case, problem: str) -> str:
    """Write a case as a test of a few lines."""
    query = case.query
    windows = ", ".join(map(_written, query.windows))
    rows = ", ".join(map(written, case.data.rows))
    return (
        f"# {problem}\n"
        f"data = Data([{rows}], {case.data.kind!r}, {case.data.odd!r})\n"
        f"query = Query(time={query.time!r}, keys={list(query.keys)!r}, windows=[{windows}],\n"
        f"    aggregates={list(query.aggregates)!r}, where={query.where!r})\n"
        f"case = Case(data, query, {case.options!r}, {case.way!r},\n    {case.settings!r})\n"
        f"assert check(spark, [case]) == []\n"
    )


def _written(window: AnyWindow) -> str:
    """Write a window as it is made.

    >>> from factor_windows import cumulating
    >>> _written(cumulating("2 seconds", step="1 second"))
    'Growing(Window(range=2000000, slide=2000000, offset=0), Window(range=1000000, slide=1000000, offset=0))'
    """
    name = f", name={window.name!r}" if window.name != window.label else ""
    if isinstance(window, Growing):
        return f"Growing({_written(window.period)}, {_written(window.step)}{name})"
    if isinstance(window, Session):
        return f"Session({window.gap}{name})"
    clock = f", clock={window.clock!r}" if window.clock else ", is_local=True" if window.is_local else ""
    return f"Window(range={window.range}, slide={window.slide}, offset={window.offset}{name}{clock})"
