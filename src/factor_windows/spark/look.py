"""A quick look at a batch of events: how many there are, how dense, with how many keys. It reads only the head."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from itertools import pairwise
from math import inf
from threading import Lock

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factor_windows.cost.statistics import Look
from factor_windows.spark.footers import count_rows

HEAD = 4_096
"""The number of events to look at: what Spark reads of a Parquet file at a time."""
BYTES = 8
"""A rough size of an event in a file, in bytes, where the number of events is unknown."""
SMALL = 2.0**30
"""Up to this many bytes the exact number of events matters; more are many, and may be in very many files."""
IN_ORDER = 0.8
"""The share of events that must follow in time order for all events to count as ordered by time."""
MOST_SEEN = 1_000
"""The number of looks to remember."""
_ALONE = Lock()
_seen: dict[tuple[int, float], Look] = {}
_ROW_BY_ROW = {
    *("Filter", "Generate", "InMemoryRelation", "LocalRelation", "Project", "Range", "Relation", "RelationV2"),
    *("Sample", "SubqueryAlias", "Union"),
}
"""Operators that a plan may contain if reading its first rows should be cheap."""
_UNKNOWN = 2.0**60
"""The size in bytes from which on Spark does not know the size."""
_UNITS = {"B": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40, "PiB": 50, "EiB": 60}
_LINE = re.compile(
    r"^(?P<indent>[\s:+-]*)(?P<name>\w+).*Statistics\(sizeInBytes=(?P<size>[\d.]+) (?P<unit>\w+)"
    r"(?:, rowCount=(?P<rows>[\d.E+]+))?"
)


def look(
    events: DataFrame,
    time: str,
    keys: Sequence[str],
    *,
    is_worth_a_head: Callable[[float], bool],
    values: Sequence[Sequence[str]] = (),
) -> Look:
    """Look at events; `time` computes their time in microseconds, `keys` compute their keys.

    `values` are those that rows will be counted by, each made of one or several parts.

    The events are counted first. `is_worth_a_head` then decides from their number whether to read the head, a Spark
    job.
    """
    operators = list(_operators(events))
    count = _count(events, operators)
    if not all(each.name in _ROW_BY_ROW for each in operators) or not is_worth_a_head(count):
        return Look(count)
    key = f"xxhash64({', '.join(keys)})" if keys else "0L"
    pairs = [f"xxhash64({', '.join([*keys, *parts])})" for parts in values]
    rows = events.select(F.expr(time), F.expr(key), *map(F.expr, pairs)).limit(HEAD)
    # A plan that runs again over as many events looks only once; if the events have changed, it is only slower.
    asked = rows.semanticHash(), count
    if asked not in _seen:
        if len(_seen) >= MOST_SEEN:
            _seen.clear()
        _seen[asked] = _described(count, [tuple(row) for row in rows.collect() if row[0] is not None])
    return _seen[asked]


def number_of(events: DataFrame) -> float:
    """Return the number of events, if it is known without a job; infinity if not."""
    return _count(events, list(_operators(events)))


def _described(count: float, head: Sequence[tuple[int, ...]]) -> Look:
    """Describe the events from their head.

    If the head is in order of time, or of key and time, it is a stretch of all events. Otherwise it is a sample. Each
    event has its time, then a number for its key, then one for its key with each counted value.

    >>> _described(1e6, [(second * 1_000_000, second % 2) for second in range(100)])
    Look(events=1000000.0, rate=1.0, keys=2, values=())
    >>> _described(1e6, [(second * 1_000_000, 0) for second in (99, 4, 50, 20, 70, 1, 30, 10, 80, 0)])
    Look(events=1000000.0, rate=10101.0, keys=1, values=())
    """
    if len(head) < 2 or count == inf:
        return Look(count)
    times = [at for at, *_ in head]
    span = max(times) - min(times)
    if not span:
        return Look(count)
    in_order = sum(one <= other for one, other in pairwise(times)) >= IN_ORDER * (len(times) - 1)
    rate = ((len(times) if in_order else count) - 1) / span * 1e6
    keys, *pairs = (min(round(count), _distinct(column)) for column in list(zip(*head, strict=True))[1:])
    often = _how_often(of for _, of, *_ in head)
    return Look(
        count, round(rate, 6), keys, tuple(max(1.0, pair / keys) for pair in pairs), estimated_crowding(often, keys)
    )


def _how_often(column: Iterable[int]) -> Counter[int]:
    """Count how many values occur how often."""
    return Counter(Counter(column).values())


def _distinct(column: Iterable[int]) -> int:
    often = _how_often(column)
    return estimated_keys(sum(often.values()), often[1], often[2])


def estimated_keys(distinct: int, once: int, twice: int) -> int:
    """Estimate the number of keys from how many were seen, seen once, and seen twice (Chao 1984).

    >>> estimated_keys(20, 0, 0), estimated_keys(100, 40, 20)
    (20, 137)
    """
    return round(distinct + once * (once - 1) / (2 * (twice + 1)))


def estimated_crowding(often: Counter[int], keys: int) -> float:
    """Estimate how busy the key of a mean event is relative to a mean key, from how many keys were seen how often.

    >>> estimated_crowding(Counter({50: 20}), 20) < 1.01
    True
    >>> round(estimated_crowding(Counter({91: 1, 1: 9}), 10), 1)
    8.3
    """
    seen = sum(times * each for times, each in often.items())
    pairs = sum(times * (times - 1) * each for times, each in often.items())
    return max(1.0, keys * pairs / (seen * (seen - 1)))


@dataclass(frozen=True, slots=True)
class _Operator:
    """A line of Spark's plan for the events."""

    name: str
    depth: int
    size: float
    rows: float | None


def _operators(events: DataFrame) -> Iterator[_Operator]:
    """Read Spark's plan for the events; no other public interface shows it."""
    # Printing is redirected for the whole process, not per thread.
    with _ALONE, redirect_stdout(StringIO()) as text:
        events.explain(mode="cost")
    for line in text.getvalue().splitlines():
        if found := _LINE.match(line):
            size = float(found["size"]) * 2.0 ** _UNITS.get(found["unit"], 60)
            rows = float(found["rows"]) if found["rows"] else None
            yield _Operator(found["name"], len(found["indent"]), size, rows)


def _count(events: DataFrame, operators: Sequence[_Operator]) -> float:
    """Count the events: from Spark's statistics, else from the files' footers, else from the bytes to be read."""
    if not operators:
        return inf
    if operators[0].rows is not None:
        return operators[0].rows
    depths = [each.depth for each in operators]
    leaves = [one for one, below in zip(operators, [*depths[1:], 0], strict=True) if below <= one.depth]
    known = [each.rows for each in leaves if each.rows is not None]
    if len(known) == len(leaves):
        return sum(known)
    size = sum(each.size for each in leaves)
    if size < SMALL and all(each.name == "Relation" for each in leaves):
        in_footers = count_rows(events.inputFiles())
        if in_footers is not None:
            return in_footers
    return size / BYTES if size < _UNKNOWN else inf
