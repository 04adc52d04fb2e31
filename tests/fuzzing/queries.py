"""Windows, queries and options of `optimize`, drawn at random."""

from __future__ import annotations

import random

from factor_windows import Query, QueryError, Window
from fuzzing import functions
from fuzzing.data import Data, quoted
from fuzzing.functions import EXACT, FLOATING, HOLISTIC, KEYS, PLAIN, PLAIN_KEYS, PLAIN_WHERES, WHERES, known
from fuzzing.settings import Settings

TOO_MANY = 40
"""So many windows make Spark's own plan of a union slow; beyond, the reference alone says what is right."""
SEARCHES = ("none", "coverage", "factor", "slicing", "best", "best")


def draw_windows(rng: random.Random) -> list[Window]:
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
    windows = draw_windows(rng)
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
    return sum(-(-window.range // window.slide) for window in query.windows) * max(1, rows) < 30_000


def is_plain(query: Query) -> bool:
    """Say whether a query means the same on DuckDB and to the reference."""
    return (
        query.time == "ts"
        and set(query.aggregates) <= PLAIN
        and set(query.keys) <= PLAIN_KEYS
        and query.where in PLAIN_WHERES
    )
