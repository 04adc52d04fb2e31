"""A plan for several queries on Spark: results are split by query, in a batch or in each micro-batch of a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import islice
from math import ceil, inf
from os import PathLike
from warnings import warn

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import DateType, DoubleType, FloatType, StringType, StructField

from factor_windows.cost.spark import SparkCost
from factor_windows.engines import spark_batch as one_batch
from factor_windows.engines import spark_stream as one_stream
from factor_windows.engines.spark_columns import with_columns
from factor_windows.errors import QueryError
from factor_windows.functions.expression import dependent_keys, depends_on, quoted
from factor_windows.plan import Plan
from factor_windows.query import WINDOW_COLUMNS
from factor_windows.search.plan_request import plan_in_one_pass, plan_request
from factor_windows.spark.messages import spark_says
from factor_windows.spark.nullability import never_null
from factor_windows.spark.restricted import persist
from factor_windows.spark.result import apply_post_aggregation, note_windows, notes_of
from factor_windows.spark.split_by_query import remember
from factor_windows.spark.types import has_calendars
from factor_windows.tree import Pass
from factor_windows.workload import FLAG, Member

WINDOW_ID, *WINDOW_ENDS = WINDOW_COLUMNS
OWN = ("query_id", *WINDOW_ENDS)
"""The columns that every row of a stream of several queries has, besides one for each query."""
ROWS_PER_PARTITION = 50_000
"""The number of rows of the common result per partition, if the total is known."""
NOTHING_KEPT = (
    "this session keeps no rows, so each of the results reads the events anew; to read them once, write "
    "plan.partials(events) to a table and give that to plan.merge"
)


class Results(dict[str, DataFrame]):
    """The results of several queries, by name.

    They share one pass over the events: Spark caches its result when the first query's result is computed, for all
    others. `unpersist()`, or the end of a `with` block, releases it. A serverless session caches nothing: each result
    then computes the pass again.
    """

    def __init__(self, results: Mapping[str, DataFrame], kept: Sequence[DataFrame]) -> None:
        super().__init__(results)
        self.kept = tuple(kept)

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *trouble: object) -> None:
        self.unpersist()

    def unpersist(self) -> None:
        """Release the cached rows; results that are requested later are computed again."""
        for rows in self.kept:
            rows.unpersist()


def batch(plan: Plan, events: DataFrame, *, looks: bool = True) -> Results:
    """Compute all queries over a batch of events; with `looks`, each pass looks at them unless it has statistics."""
    fitting = fit_to_events(plan, events)
    results = split_results(fitting, events, partial(one_batch.run, looks=looks))
    if len(results.kept) < sum(map(_is_shared, fitting.passes)):
        warn(NOTHING_KEPT, stacklevel=3)
    return results


def flush(
    plan: Plan,
    events: DataFrame,
    stopped: StreamingQuery | datetime | None = None,
    *,
    checkpoint: str | PathLike[str] | None = None,
) -> Results:
    """Compute the windows that a stream of these queries had not closed when it stopped."""

    def rest(each: Pass, rows: DataFrame) -> DataFrame:
        return one_stream.flush(each, rows, stopped, checkpoint=checkpoint)

    return split_results(fit_to_events(plan, events), events, rest)


def split_results(plan: Plan, events: DataFrame, compute: Callable[[Pass, DataFrame], DataFrame]) -> Results:
    """Compute each pass over the events, and split the results by query."""
    results: dict[str, DataFrame] = {}
    kept = []
    shown = _shown(plan, events)
    for each in plan.passes:
        rows = compute(each, with_columns(events, each.workload.derived))
        if _is_shared(each):
            few = _partitions(each)
            rows = rows.coalesce(few) if few else rows
            if persist(rows):
                kept.append(rows)
        for member in each.workload.members:
            results[member.name] = apply_post_aggregation(member.query, _own(member, rows, shown[member.name]))
    return Results({query.name: results[query.name] for query in plan.queries}, kept)


def _is_shared(each: Pass) -> bool:
    return len(each.workload.members) > 1


def _partitions(each: Pass) -> int | None:
    """Return how few partitions hold the cached rows, if their size is known: each result then takes as many tasks."""
    cost = each.cost_model
    if not isinstance(cost, SparkCost) or cost.units == inf:
        return None
    rows = sum(cost.rows_of(output.node) for output in each.outputs) * cost.units
    return ceil(rows / ROWS_PER_PARTITION)


def stream(plan: Plan, events: DataFrame, *, mode: str, checkpoint: str | PathLike[str] | None) -> DataFrame:
    """Compute all queries over a stream: one chain of operators, whose rows say which query they are for."""
    for query in plan.queries:
        if query.name.lower() in OWN:
            raise QueryError(
                f"a query is named {query.name!r}, as a column that every row of a stream of several queries has; "
                "give it another name with Query(..., name=...)"
            )
    plan = fit_to_events(plan_in_one_pass(plan), events)
    [each] = plan.passes
    shown = _shown(plan, events)
    rows = one_stream.run(each, events, mode=mode, checkpoint=checkpoint, derived=each.workload.derived)
    rows = _for_each_query(each, rows)
    columns = []
    noted = remember(plan.queries)
    for member in each.workload.members:
        result = F.struct(*_columns(member, shown[member.name]))
        columns.append(F.when(F.col("query_id") == member.name, result).alias(member.name, metadata=noted))
    return rows.select(*OWN, *columns)


def _for_each_query(each: Pass, rows: DataFrame) -> DataFrame:
    """Repeat each row for every query that it belongs to, under the name that the window has there."""
    labels = [name for output in each.outputs for name in output.names]
    entries = [
        (labels.index(label), member, name)
        for member in each.workload.members
        for window, label in member.labels.items()
        for name in member.query.names[window]
    ]
    of_node = [[place for place, entry in enumerate(entries) if entry[0] == number] for number in range(len(labels))]
    arrays = ", ".join(f"array({', '.join(map(str, places))})" for places in of_node)
    node = F.array_position(F.lit(labels), F.col(WINDOW_ID)).cast("int").alias("node")
    rows = rows.select("*", node).selectExpr("*", f"explode(element_at(array({arrays}), node)) AS entry")
    seen = "".join(
        f" WHEN {place} THEN {_seen(member)}" for place, (_, member, _) in enumerate(entries) if member.present
    )
    if seen:
        rows = rows.where(f"CASE entry{seen} ELSE true END")
    place = F.expr("entry + 1")
    query = F.element_at(F.lit([member.name for _, member, _ in entries]), place)
    return rows.withColumns({"query_id": query, WINDOW_ID: F.element_at(F.lit([name for *_, name in entries]), place)})


def fit_to_events(plan: Plan, events: DataFrame) -> Plan:
    """Plan again if the events' own columns rule out what was planned without knowing them."""
    columns = [name.lower() for name in events.columns]
    flag = FLAG
    while any(name.startswith(flag) for name in columns):
        flag = f"_{flag}"
    if flag != FLAG and any(each.workload.flags for each in plan.passes):
        plan = plan_request(replace(plan.request, flag=flag))
    for each in plan.passes:
        _check_dates(each, events)
    bases = {column for each in plan.passes for column in _determinants(each)}
    if bases:
        fields = events.select(*(F.expr(column) for column in sorted(bases))).schema
        # Such values may be equal although results computed from them differ: 0.0 and -0.0, 'a' and 'A'.
        loose = [field for field in fields if not _is_exact(field.dataType)]
        if loose:
            plan = plan_request(replace(plan.request, derive=False, flag=flag))
    return plan


def _check_dates(each: Pass, events: DataFrame) -> None:
    """Refuse queries with and without calendars over dates, which mean different times to them."""
    if len({has_calendars(member.query) for member in each.workload.members}) == 1:
        return
    time = each.query.parsed_time
    if isinstance(events.select(F.expr(time.sql)).schema[0].dataType, DateType):
        raise QueryError(
            f"time {each.query.time!r} is a date, which is a local day to a query with a calendar and midnight of the "
            f"session's time zone to one without; write CAST({time.sql} AS TIMESTAMP) in all, or plan them apart"
        )


def _is_exact(kind: object) -> bool:
    if isinstance(kind, StringType):
        return kind == StringType()
    return not isinstance(kind, FloatType | DoubleType)


def _determinants(each: Pass) -> set[str]:
    """List the columns from which other keys are computed."""
    found: set[str] = set()
    for output in each.outputs:
        for key in dependent_keys(output.node.keys, by=output.node.keys):
            found |= depends_on(key) or set()
    return found


@dataclass(frozen=True, slots=True)
class Shown:
    """Spark's names and types for the columns of one query, if it ran alone."""

    keys: tuple[StructField, ...]
    values: tuple[StructField, ...]

    @property
    def labels(self) -> list[str]:
        """List the names of all columns of the result."""
        return [*(key.name for key in self.keys), *WINDOW_COLUMNS, *(value.name for value in self.values)]

    def columns(self, member: Member, window: str) -> list[str]:
        """List a query's own columns of the common result, declaring those that are never null in the query alone."""
        keys = [never_null(key, field) for key, field in zip(member.keys, self.keys, strict=True)]
        values = [never_null(value, field) for value, field in zip(member.values, self.values, strict=True)]
        return [*keys, window, *WINDOW_ENDS, *values]


def _shown(plan: Plan, events: DataFrame) -> dict[str, Shown]:
    """Ask Spark, once for all queries, for the names and types of their keys and aggregates."""
    keys = [text for query in plan.queries for text in query.asked_keys]
    aggregates = [text for query in plan.queries for text in query.asked_aggregates]
    with spark_says("Spark cannot read the queries"):
        key_fields = iter(events.select(*(F.expr(text) for text in keys)).schema if keys else ())
        value_fields = iter(events.agg(*(F.expr(text) for text in aggregates)).schema)
    return {
        query.name: Shown(
            tuple(islice(key_fields, len(query.keys))), tuple(islice(value_fields, len(query.parsed_aggregates)))
        )
        for query in plan.queries
    }


def _own(member: Member, rows: DataFrame, shown: Shown) -> DataFrame:
    """Keep a query's rows of the common result, with its own columns under the names that it would have alone.

    They are written as text, because a call into Spark for each column of all queries would take longer than a small
    result.
    """
    names = {_text(label): member.query.names[window] for window, label in member.labels.items()}
    found = rows.where(f"{WINDOW_ID} IN ({', '.join(names)}) AND {_seen(member)}")
    if all(len(several) == 1 for several in names.values()):
        pairs = [(label, _text(name)) for label, [name] in names.items()]
        window = pairs[0][1] if len(pairs) == 1 else f"coalesce({_case(pairs)}, '')"
    else:
        arrays = [(label, f"array({', '.join(map(_text, several))})") for label, several in names.items()]
        window = f"explode({_case(arrays)})"
    columns = shown.columns(member, window)
    texts = [f"{column} AS {quoted(label)}" for column, label in zip(columns, shown.labels, strict=True)]
    return note_windows(member.query, found.selectExpr(*texts))


def _case(pairs: list[tuple[str, str]]) -> str:
    return f"CASE {WINDOW_ID}{''.join(f' WHEN {label} THEN {value}' for label, value in pairs)} END"


def _text(value: str) -> str:
    """Write a text as a constant in which nothing can be misread."""
    return f"CAST(X'{value.encode().hex()}' AS STRING)"


def _seen(member: Member) -> str:
    """Return a condition: whether a row has an event of the query's own."""
    return f"CAST({member.present} AS INT) > 0" if member.present else "true"


def _columns(member: Member, shown: Shown) -> list[Column]:
    """Return a query's own columns, named as in the query alone."""
    noted = notes_of(member.query)
    return [
        F.expr(column).alias(label, **({"metadata": noted} if label == WINDOW_ID else {}))
        for column, label in zip(shown.columns(member, WINDOW_ID), shown.labels, strict=True)
    ]
