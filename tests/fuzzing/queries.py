"""Windows, queries and options of `optimize`, drawn at random."""

from __future__ import annotations

import random
from datetime import date, timedelta

import factor_windows as fw
from factor_windows import Query, QueryError, Window
from factor_windows.algebra.calendar import AnyWindow
from factor_windows.algebra.growing import Growing
from factor_windows.algebra.session import Session
from fuzzing import functions
from fuzzing.data import Data, quoted
from fuzzing.functions import EXACT, FLOATING, HOLISTIC, KEYS, PLAIN, PLAIN_KEYS, PLAIN_WHERES, WHERES, known
from fuzzing.settings import Settings

TOO_MANY = 40
"""So many windows make Spark's own plan of a union slow; beyond, the reference alone says what is right."""
TUMBLING = (
    *("1 day", "1 day", "2 days", "3 days", "10 days", "28 days", "1 week", "1 week", "2 weeks"),
    *("1 month", "1 month", "2 months", "5 months", "1 quarter", "2 quarters", "1 year", "2 years"),
)
HOPPING = (
    *(("7 days", "1 day"), ("3 days", "1 day"), ("3 days", "2 days"), ("2 weeks", "1 week"), ("10 days", "3 days")),
    *(("3 months", "1 month"), ("1 year", "1 month"), ("5 months", "2 months"), ("1 year", "1 quarter")),
)
GROWING = (
    *(("1 week", "1 day"), ("6 days", "2 days"), ("2 weeks", "1 week"), ("1 month", "1 day"), ("1 quarter", "1 day")),
    *(("1 quarter", "1 month"), ("1 year", "1 month"), ("1 year", "1 quarter"), ("2 years", "1 year")),
)
"""Ranges, slides and steps of calendars."""
PARTS_OF_DAYS = (
    *(fw.tumbling(length) for length in ("15 minutes", "30 minutes", "1 hour", "2 hours", "6 hours", "1 day")),
    *(fw.hopping("6 hours", "1 hour"), fw.tumbling("1 hour", offset="30 minutes")),
)
"""What makes up local days of many zones."""
GAPS = (1, 1_000_000, 1_000_001, 7_000_000, 60_000_000, 3_600_000_000, 90_000_000_000)
SEARCHES = ("none", "coverage", "factor", "slicing", "best", "best")


def draw_windows(rng: random.Random, data: Data) -> list[AnyWindow]:
    """Draw windows of fixed lengths, of calendars if the data has zones; once in a while such as grow, or sessions."""
    if data.zones and rng.random() < 0.8:
        known = _fixed(rng) if rng.random() < 0.5 else PARTS_OF_DAYS
        fixed = rng.sample(known, min(len(known), rng.choice([0, 1, 2, 3])))
        made = [*(_calendar(rng, rng.choice(data.zones)) for _ in range(rng.choice([1, 2, 3, 5]))), *fixed]
    else:
        made = _fixed(rng)
        if data.kind == "date":
            return made
    if rng.random() < 0.15:
        made.append(_cumulating(rng))
    if rng.random() < 0.2:
        made += [Session(rng.choice(GAPS)) for _ in range(rng.choice([1, 1, 2, 5]))]
    return list(dict.fromkeys(rng.sample(made, len(made))))


def _calendar(rng: random.Random, zone: str) -> AnyWindow:
    """Draw a window of local days or months, now and then counted from another date than usual."""
    kind = rng.random()
    length, by = (rng.choice(TUMBLING), None) if kind < 0.5 else rng.choice(HOPPING if kind < 0.75 else GROWING)
    day = date(2024, 1, 1) + timedelta(days=rng.randrange(500))
    starts = day if "day" in length or "week" in length else day.replace(day=1)
    origin = rng.choice([None, None, starts])
    return fw.calendar(length, zone=zone, origin=origin, **{"slide" if kind < 0.75 else "step": by})


def _cumulating(rng: random.Random) -> Growing:
    """Draw a window of fixed lengths that grows."""
    step = timedelta(microseconds=rng.choice([1_000_000, 7_000_000, 900_000_000, 3_600_000_000, 500_000]))
    return fw.cumulating(step * rng.choice([2, 3, 4, 24]), step=step, offset=step * rng.choice([0, 0, 0.5, 1]))


def _fixed(rng: random.Random) -> list[AnyWindow]:
    """Draw windows of any ratio, from a microsecond to a year; once in a while, hundreds of them."""
    if rng.random() < 0.02:
        slides = rng.sample(range(1, 400), rng.choice([100, 300]))
        return [Window(slide * 1_000_000 * rng.choice([1, 1, 1, 2]), slide * 1_000_000) for slide in slides]
    unit = rng.choice([1_000_000, 1_000_000, 1_000_000, 60_000_000, 1, 250_000, 3_600_000_000, 86_400_000_000])
    made: dict[Window, None] = {}
    for _ in range(rng.choice([1, 2, 3, 5, 9, 16] if unit >= 1_000_000 else [1, 2, 3])):
        slide = rng.choice([1, 2, 3, 4, 5, 6, 7, 10, 12, 15, 17, 60]) * unit
        times = rng.choice([1, 1, 1, 2, 3, 5, 12])
        extra = rng.choice([0, 0, 0, 0, unit // 2, min(unit, slide - 1), 1])
        offset = rng.choice([0, 0, 0, unit // 2, unit, 1])
        name = rng.choice(["", "", "", f"it's {len(made)}"])
        made[Window(range=slide * times + extra, slide=slide, offset=offset, name=name)] = None
    return list(made)


def draw_query(rng: random.Random, settings: Settings, data: Data, *, time: str = "") -> Query:
    """Draw a query; a key or a time that fails for some events comes with the condition that leaves them out."""
    windows = draw_windows(rng, data)
    plain = len(windows) > TOO_MANY or rng.random() < 0.15
    pool = rng.choice([EXACT, EXACT, FLOATING, EXACT + FLOATING, EXACT + HOLISTIC, ("min(v)", "max(huge)")])
    aggregates, keys, wheres = known(*pool), KEYS, WHERES
    if plain:
        aggregates, keys, wheres = tuple(sorted(PLAIN)), tuple(sorted(PLAIN_KEYS)), tuple(sorted(PLAIN_WHERES))
    chosen = rng.sample(keys, rng.choice([0, 1, 1, 2, 3, 5]))
    where = rng.choice(wheres)
    guarded = not plain and not time and rng.random() < 0.1
    if guarded or time == functions.GUARDED_TIME:
        where = functions.GUARD
        chosen = [*chosen[:1], rng.choice(functions.GUARDED_KEYS)] if guarded else chosen
        time = time or rng.choice(["ts", functions.GUARDED_TIME])
    if settings.double_quoted and not plain:
        chosen = [*chosen[:2], rng.choice(functions.QUOTED_KEYS)]
    texts = rng.sample(aggregates, min(len(aggregates), rng.randrange(1, 5)))

    def named(text: str) -> str:
        return text.replace("{odd}", quoted(data.odd))

    try:
        return Query(
            time=time or "ts",
            keys=[named(key) for key in chosen],
            windows=windows,
            aggregates=[named(text) for text in texts],
            where=named(where),
        )
    except QueryError:
        # Two columns of one name, say, which is refused as it should be.
        return draw_query(rng, settings, data, time=time)


def draw_options(rng: random.Random, search: str) -> dict[str, object]:
    return {
        "search": search,
        "rate": rng.choice([None, 0.001, 1, 1000]),
        "unit": "1 second",
        "keys": rng.choice([None, 1, 500, 10**6]),
        "slices": rng.random() < 0.8,
        "time_limit": 0.2,
    }


def is_small(query: Query, rows: int) -> bool:
    """Leave out what would only be slow: a year that slides by a second over a single day has millions of instances."""
    return sum(map(_overlaps, query.windows)) * max(1, rows) < 30_000


def _overlaps(window: AnyWindow) -> int:
    if isinstance(window, Session):
        return 1
    return window.steps if isinstance(window, Growing) else -(-window.range // window.slide)


def is_plain(query: Query) -> bool:
    """Say whether a query means the same on DuckDB and to the reference."""
    return (
        query.time == "ts"
        and set(query.aggregates) <= PLAIN
        and set(query.keys) <= PLAIN_KEYS
        and query.where in PLAIN_WHERES
    )
