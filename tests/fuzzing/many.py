"""Sets of queries: several over one data set by one plan, each compared with what it gives alone."""

from __future__ import annotations

import random

from pyspark.sql import DataFrame, SparkSession

from factor_windows import Query, optimize
from fuzzing.data import draw_data
from fuzzing.functions import GUARDED_TIME
from fuzzing.naive import by_hand
from fuzzing.queries import SEARCHES, TOO_MANY, draw_options, draw_query, is_small
from fuzzing.results import collected, differing, unlike, values_of
from fuzzing.settings import MANY, draw_settings
from fuzzing.trouble import first_line, is_arithmetic

WINDOWS = 30
"""After so many windows a set is full: what takes time is Spark's own plan of their union."""


def check_many(spark: SparkSession, seed: int) -> list[str]:
    """Run several queries over one data set by one plan, and return what differs."""
    rng = random.Random(seed)
    settings = draw_settings(rng)
    data = draw_data(rng, settings)
    events = data.frame(settings.session(spark))
    time = rng.choice(["ts"] * 9 + [GUARDED_TIME])
    wanted = rng.choice([2, 3] if settings.partitions == MANY else [2, 2, 2, 3, 3, 4, 6, 12])
    queries: list[Query] = []
    while len(queries) < wanted and sum(len(query.windows) for query in queries) < WINDOWS:
        query = draw_query(rng, settings, data, time=time)
        if len(query.windows) <= TOO_MANY and is_small(query, len(data.rows)):
            queries.append(query)
    plan = optimize(queries, **draw_options(rng, rng.choice(SEARCHES)))
    right = {query.name: by_hand(query, events, data.times) for query in plan.queries}
    with plan.run(events) as results:
        ours = {query.name: results[query.name] for query in plan.queries}
        frames = {f"ours {name}": frame for name, frame in ours.items()}
        frames |= {f"naive {name}": frame for name, frame in right.items()}
        try:
            found = collected(frames)
        except Exception as trouble:
            return [f"seed {seed}, {settings}: {text}" for text in _failures(right, ours, first_line(trouble))]
    problems = []
    for query in plan.queries:
        schema = right[query.name].schema
        texts = unlike(ours[query.name].schema, schema)
        values = values_of(query.aggregates, schema)
        text = differing(found[f"ours {query.name}"], found[f"naive {query.name}"], values, data.scale)
        problems += [
            f"seed {seed}, {settings}, {query.name} of {len(queries)} {query}: {text}"
            for text in [*texts, text]
            if text
        ]
    return problems


def _failures(right: dict[str, DataFrame], ours: dict[str, DataFrame], trouble: str) -> list[str]:
    """Where no query fails alone, none may fail together with others; one that overflows alone must do so here."""
    failing = {name: text for name, frame in right.items() if (text := _failure(frame))}
    if not failing:
        return [f"fails where Spark runs: {trouble}"]
    return [
        f"{name} runs where Spark says {text}"
        for name, text in failing.items()
        if is_arithmetic(text) and not _failure(ours[name])
    ]


def _failure(frame: DataFrame) -> str:
    try:
        collected({"": frame})
    except Exception as trouble:
        return first_line(trouble)
    return ""
