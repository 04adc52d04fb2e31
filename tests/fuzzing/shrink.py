"""A finding made small: rows, windows, aggregates and keys are taken away as long as it still differs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

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
    windows = ", ".join(
        f"Window(range={w.range}, slide={w.slide}, offset={w.offset}"
        + (f", name={w.name!r})" if w.name != w.label else ")")
        for w in query.windows
    )
    rows = ", ".join(map(written, case.data.rows))
    return (
        f"# {problem}\n"
        f"data = Data([{rows}], {case.data.kind!r}, {case.data.odd!r})\n"
        f"query = Query(time={query.time!r}, keys={list(query.keys)!r}, windows=[{windows}],\n"
        f"    aggregates={list(query.aggregates)!r}, where={query.where!r})\n"
        f"case = Case(data, query, {case.options!r}, {case.way!r},\n    {case.settings!r})\n"
        f"assert check(spark, [case]) == []\n"
    )
