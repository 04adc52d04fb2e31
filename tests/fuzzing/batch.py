"""Batch cases: a query over one data set, by every search and in several physical ways, all of them in one job."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession

from factor_windows import Query, optimize, physical
from factor_windows.algebra.growing import Growing
from factor_windows.algebra.session import Session
from factor_windows.engines import spark_batch
from factor_windows.engines.spark_columns import SparkColumns
from factor_windows.physical import PhysicalPlan
from factor_windows.physical.layout import Distribution, Layout, layouts
from factor_windows.spark.result import apply_post_aggregation
from fuzzing.data import COLUMNS, Data, draw_data
from fuzzing.engines import by_duckdb, by_reference
from fuzzing.naive import by_hand
from fuzzing.queries import SEARCHES, TOO_MANY, draw_options, draw_query, is_plain, is_small
from fuzzing.results import Row, collected, differing, unlike, values_of
from fuzzing.settings import MANY, Settings, draw_settings
from fuzzing.trouble import first_line, is_arithmetic

QUERIES = 3
"""Queries for each data set."""
WAYS = ("batch", "batch", "assumed", "sql", "chunks", "keys", "events", "nothing", "packs", "packs", "asides", "asides")


@dataclass(frozen=True)
class Case:
    """One query over one data set, and one way to run it."""

    data: Data
    query: Query
    options: dict[str, object] = field(default_factory=dict)
    way: str = "batch"
    settings: Settings = field(default_factory=Settings)

    def compute(self, events: DataFrame) -> DataFrame:
        plan = optimize(self.query, **self.options)
        if self.way == "sql":
            name = f"events_{abs(hash(self.query))}"
            events.createOrReplaceTempView(name)
            text = optimize(replace(self.query, source=name), **self.options).sql(dialect="spark")
            return events.sparkSession.sql(text)
        if self.way == "batch":
            return plan.run(events)
        if self.way == "assumed":
            return plan.run(events, statistics=None)
        return _forced(self.way)(plan, events)

    @property
    def is_plain(self) -> bool:
        place = list(COLUMNS).index("v")
        odd = any(isinstance(row[place], float) and not math.isfinite(row[place]) for row in self.data.rows)
        return not odd and self.data.kind == "timestamp" and is_plain(self.query)


def _forced(way: str) -> Callable[..., DataFrame]:
    """Run a plan with rows shuffled in a given way, or panes in rows, whatever the costs say."""

    def run(plan, events):
        on_spark = SparkColumns(plan.query, events, text_as_bytes=True, counts_values=True)
        compiled = spark_batch.compile_for(plan.passes[0], on_spark)
        if on_spark.types.value_keys:
            # Values are counted, whether they repeat or not.
            target = replace(compiled.target, values=on_spark.types.values)
            compiled = physical.compile(plan.passes[0], target)
        if on_spark.types.shared and (layout := _layout(way, compiled)) is not None:
            compiled = physical.compile(compiled.plan, compiled.target, layout)
        return apply_post_aggregation(plan.query, spark_batch.render(compiled, on_spark, events))

    return run


def _layout(way: str, compiled: PhysicalPlan) -> Layout | None:
    """Return the deepest layout, with rows shuffled in a given way; nothing if that way is none here."""
    if way == "asides" and compiled.target.values.keys:
        return None
    if way == "asides":
        return next((each for each in reversed([*layouts(compiled.plan, None, reuses=True)]) if each.asides), None)
    has_keys = bool(compiled.plan.query.parsed_keys)
    *_, deepest = layouts(compiled.plan, compiled.target.packing if way == "packs" else None)
    deepest = replace(deepest, partitions=2)
    row = deepest.pane_row
    if way == "events":
        return replace(deepest, distribution=Distribution.EVENTS_BY_KEY) if has_keys else None
    if len(deepest.levels) == 1:
        return deepest if row else None
    if way == "keys":
        return replace(deepest, distribution=Distribution.BY_KEY) if has_keys else None
    if way == "nothing" or any(isinstance(node.window, Growing | Session) for node in compiled.plan.nodes):
        # Windows that grow and sessions know no chunks: rows are given to instances that end later, in any of them.
        return deepest
    # Chunks no longer than the longest range put as many rows as can be near an edge.
    length = row.window.range if row else 1
    chunk = -(-compiled.plan.longest // length) * length
    return replace(deepest, distribution=Distribution.BY_KEY_AND_CHUNK, chunk=chunk)


def draw_cases(seed: int) -> list[Case]:
    """Draw a session, a data set and queries, each with every search and one way to run it."""
    rng = random.Random(seed)
    settings = draw_settings(rng)
    data = draw_data(rng, settings)
    queries = [draw_query(rng, settings, data) for _ in range(QUERIES)]
    cases = [
        case
        for query in queries
        for search in SEARCHES
        if _fits(case := Case(data, query, draw_options(rng, search), rng.choice(WAYS), settings))
    ]
    return cases[:6] if settings.partitions == MANY else cases


def _fits(case: Case) -> bool:
    return is_small(case.query, len(case.data.rows)) and (len(case.query.windows) <= TOO_MANY or case.is_plain)


def check(spark: SparkSession, cases: list[Case]) -> list[tuple[Case, str]]:
    """Run cases over one data set, naively and as they say, in one job; return those that differ, and how."""
    if not cases:
        return []
    events = cases[0].data.frame(cases[0].settings.session(spark))
    queries = list(dict.fromkeys(case.query for case in cases))
    times = cases[0].data.times
    right = {query: by_hand(query, events, times) for query in queries if len(query.windows) <= TOO_MANY}
    ours: dict[int, DataFrame] = {}
    found: list[tuple[Case, str]] = []
    for place, case in enumerate(cases):
        try:
            ours[place] = case.compute(events)
        except Exception as trouble:
            found.append((case, first_line(trouble)))
    frames = {f"naive {queries.index(query)}": frame for query, frame in right.items()}
    frames |= {f"ours {place}": frame for place, frame in ours.items()}
    try:
        results = collected(frames)
    except Exception:
        naively = {query: _outcome(frame) for query, frame in right.items()}
        return found + [
            (cases[place], text)
            for place, frame in ours.items()
            for text in _alone(cases[place], right, naively, frame)
        ]
    for place, frame in ours.items():
        case = cases[place]
        expected = results.get(f"naive {queries.index(case.query)}")
        found += [(case, text) for text in _differences(case, right, expected, frame, results[f"ours {place}"])]
    return found


def _alone(
    case: Case, right: dict[Query, DataFrame], naively: dict[Query, tuple[list[Row] | None, str]], frame: DataFrame
) -> list[str]:
    """Check one case whose job failed, or one beside it: it may fail where Spark does, and must then."""
    expected, theirs = naively.get(case.query, (None, ""))
    found, failed = _outcome(frame)
    if theirs:
        # Only what fails on numbers depends on nothing but the data, and must fail here as well.
        return [f"runs where Spark says {theirs}"] if is_arithmetic(theirs) and not failed else []
    if found is None:
        return [failed]
    return _differences(case, right, expected, frame, found)


def _outcome(frame: DataFrame | None) -> tuple[list[Row] | None, str]:
    if frame is None:
        return None, ""
    try:
        return collected({"": frame})[""], ""
    except Exception as trouble:
        return None, first_line(trouble)


def _differences(
    case: Case, right: dict[Query, DataFrame], expected: list[Row] | None, frame: DataFrame, found: list[Row]
) -> list[str]:
    query, scale = case.query, case.data.scale
    is_text = case.way == "sql"
    values = values_of(query.aggregates, frame.schema, is_text=is_text)
    problems = unlike(frame.schema, right[query].schema, is_text=is_text) if query in right else []
    by_python = by_reference(query, case.data) if case.is_plain else None
    if expected is None:
        expected = by_python or []
    elif by_python is not None and (text := differing(expected, by_python, values, scale)):
        problems.append(f"naive and the reference: {text}")
    if text := differing(found, expected, values, scale):
        problems.append(text)
    if by_python is not None and (
        text := differing(by_duckdb(query, case.data, case.options), by_python, values, scale)
    ):
        problems.append(f"duckdb: {text}")
    return problems
