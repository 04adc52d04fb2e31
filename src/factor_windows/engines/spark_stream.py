"""A plan on a stream: the same levels, each a stateful aggregation; one chain, never a union of chains."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from os import PathLike, fspath
from typing import get_args

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from factor_windows import physical
from factor_windows.algebra.session import Session
from factor_windows.engines import spark_batch
from factor_windows.engines.event_time_key import EventTimeKey
from factor_windows.engines.spark_columns import SparkColumns, with_columns
from factor_windows.errors import OptionError, QueryError
from factor_windows.functions.expression import quoted
from factor_windows.physical import Target
from factor_windows.physical.steps import Group, Sessions
from factor_windows.query import WINDOW_COLUMNS
from factor_windows.request import Mode
from factor_windows.spark.checkpoint import Note, check_fits, read_note, refusal, write_note
from factor_windows.spark.nullability import text_of
from factor_windows.spark.restricted import is_refusal
from factor_windows.spark.result import apply_post_aggregation, note_windows
from factor_windows.spark.types import microseconds, timestamp, types_of
from factor_windows.spark.watermark import (
    WATERMARK,
    check_chains,
    check_event_time,
    closed_until,
    tell_closed,
)
from factor_windows.tree import Pass

STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
MODES = get_args(Mode)
PREFIX = "__fw_"
"""The prefix of the states' names in notes, whatever columns the events have."""


def run(
    plan: Pass,
    events: DataFrame,
    *,
    mode: str = "append",
    checkpoint: str | PathLike[str] | None = None,
    derived: Mapping[str, str] | None = None,
) -> DataFrame:
    """Compute a plan over a stream; `mode` is the output mode in which the result will be written.

    `derived` are the columns that several queries first compute from the events, with their expressions.
    """
    if mode not in MODES:
        raise OptionError(f"mode {mode!r} is unknown; allowed are {', '.join(MODES)}")
    if mode == "update" and plan.query.has_sessions:
        raise OptionError(
            "mode 'update' has no sessions: Spark does not update them, since they may merge; use append, or complete"
        )
    if mode == "append":
        check_event_time(plan, events)
    derived = derived or {}
    if checkpoint is None:
        return apply_post_aggregation(plan.query, _Stream(plan, with_columns(events, derived), mode).result())
    return _go_on(plan, events, mode, fspath(checkpoint).rstrip("/"), derived)


def _go_on(plan: Pass, events: DataFrame, mode: str, place: str, derived: Mapping[str, str]) -> DataFrame:
    """Start a checkpoint, or continue with the plan that it was started with and show what is requested now."""
    spark = events.sparkSession
    note = read_note(spark, place)
    if note is None:
        chain = _Stream(plan, with_columns(events, derived), mode)
        write_note(spark, place, chain.note(derived))
        return apply_post_aggregation(plan.query, chain.result())
    check_fits(note, place, plan, mode=mode, derived=derived)
    try:
        kept_events = with_columns(events, derived if note.derived is None else note.derived)
        chains = (_Stream(note.plan, kept_events, mode, note, earlier=each) for each in (False, True))
        fitting = next((each for each in chains if each.note({}).states == note.states), None)
    except QueryError as mistake:
        raise refusal(place, [f"these events do not fit it: {mistake}"]) from None
    if fitting is None:
        raise refusal(place, ["its states are others than those of this version, or of these types"])
    types = types_of(plan.query, with_columns(events, derived), PREFIX)
    names = [*(key.name for key in types.keys), *WINDOW_COLUMNS, *(result.name for result in types.results)]
    return apply_post_aggregation(plan.query, _shown_as(plan, names, note.plan, fitting.result()))


def flush(
    plan: Pass,
    events: DataFrame,
    stopped: StreamingQuery | datetime | None = None,
    *,
    checkpoint: str | PathLike[str] | None = None,
) -> DataFrame:
    """Compute, from a bounded stream's events read as a batch, the windows that it had not closed when it stopped."""
    if events.isStreaming:
        raise OptionError("flush takes the events as a batch; read the stream's source with spark.read")
    time = plan.query.parsed_time.sql
    kind = events.select(F.expr(time)).schema[0].dataType
    place = None if checkpoint is None else fspath(checkpoint).rstrip("/")
    edge = closed_until(events.sparkSession, stopped, place, kind)
    result = spark_batch.run(bare(plan), events.where(f"{microseconds(time, kind)} >= {edge - plan.longest}"))
    ended = microseconds("window_end", result.schema["window_end"].dataType)
    late = _session_delay(plan)
    if late:
        named = ", ".join(text_of(each.name) for each in plan.query.windows if isinstance(each, Session))
        ended = f"{ended} + CASE WHEN window_id IN ({named}) THEN {late}L ELSE 0L END"
    return apply_post_aggregation(plan.query, result.where(f"{ended} > {edge}"))


def _session_delay(plan: Pass) -> int:
    """Return how long after their end sessions are output by a stream."""
    if not plan.query.has_sessions:
        return 0
    compiled = physical.compile(plan, Target.assumed(plan.query, streaming=True))
    return max(step.sessions.delay for step in compiled.steps if isinstance(step, Group) and step.sessions)


def bare(plan: Pass) -> Pass:
    """Return a plan that ends with the aggregate calls, whatever its query does after them."""
    return plan.with_query(plan.query.bare)


def use_rocksdb(spark: SparkSession) -> None:
    """Keep the state of streams in RocksDB, outside the JVM's memory: recommended for many keys or long windows.

    A micro-batch then commits only what has changed, and a snapshot follows from time to time: commits take half the
    time.
    """
    try:
        spark.conf.set(STATE_STORE, ROCKSDB)
        spark.conf.set(CHANGELOG, "true")
    except PySparkException as trouble:
        if not is_refusal(trouble):
            raise
        raise OptionError(
            f"this session does not let a program set {STATE_STORE}; leave use_rocksdb out. Where the cluster or the "
            f"pipeline is configured, set it to {ROCKSDB}, unless the platform chooses the state store itself"
        ) from None


def _shown_as(plan: Pass, names: list[str], kept: Pass, rows: DataFrame) -> DataFrame:
    """Show the result of a stored plan as another plan for the same state would: its windows, columns and names.

    A window that is not requested now has no name, and so no rows.
    """
    windows = [
        (before.names[0], now.names) for before in kept.outputs for now in plan.outputs if now.node == before.node
    ]
    named = F.create_map(*(F.lit(text) for name, several in windows for text in (name, list(several))))
    keys = [key.sql for key in kept.query.parsed_keys]
    values = [aggregate.sql for aggregate in kept.query.parsed_aggregates]
    places = [
        *(keys.index(key.sql) for key in plan.query.parsed_keys),
        *range(len(keys), len(keys) + len(WINDOW_COLUMNS)),
        *(len(keys) + len(WINDOW_COLUMNS) + values.index(each.sql) for each in plan.query.parsed_aggregates),
    ]
    columns = [rows[quoted(rows.columns[place])].alias(name) for place, name in zip(places, names, strict=True)]
    window_id = WINDOW_COLUMNS[0]
    columns[len(plan.query.parsed_keys)] = F.explode(F.element_at(named, rows[window_id])).alias(window_id)
    return note_windows(plan.query, rows.select(*columns))


class _Stream:
    """A plan over a stream of events, without what its query does after the aggregates."""

    def __init__(
        self, plan: Pass, events: DataFrame, mode: str, note: Note | None = None, *, earlier: bool = False
    ) -> None:
        plan = bare(plan)
        self.events, self.mode, self.earlier = events, mode, earlier
        self.on_spark = SparkColumns(plan.query, events, earlier=earlier)
        # Spark's state of an operator has the layout that the checkpoint was started with.
        kept = note.levels if note else None
        self.key = EventTimeKey(self.on_spark.names, self.on_spark.types.time, bool(note and note.keyed_by_window))
        names, values = self.on_spark.names, self.on_spark.types.values
        # Spark chains stateful operators only in append mode.
        target = Target(names, values, streaming=True, is_one_operator=mode != "append", levels=kept)
        self.compiled = physical.compile(plan, target)
        check_chains(events.sparkSession, len(self.compiled.layout.levels))

    def note(self, derived: Mapping[str, str]) -> Note:
        """Describe what the state of this stream means."""
        query, types = self.compiled.plan.query, self.on_spark.types
        if self.on_spark.names.prefix != PREFIX:
            types = types_of(query, self.events, PREFIX, earlier=self.earlier)
        states = tuple((state.lift, state.combine) for state in types.states)
        direct = tuple(each.direct for each in types.results)
        layout = self.compiled.layout
        return Note(self.compiled.plan, layout.levels, states or direct, self.mode, derived, self.key.is_window)

    def result(self) -> DataFrame:
        """Render the steps, each as an operator."""
        show, steps = self.compiled.show, self.compiled.steps[1:-1]
        rows = self.on_spark.scan(self.compiled.scan, self.events)
        *_, last = (step for step in steps if isinstance(step, Group))
        for step in steps:
            rows = self._group(step, rows) if isinstance(step, Group) else self.on_spark.row(step, rows)
        states = [name for name, _ in last.aggregates]
        rows = tell_closed(rows, self.on_spark.words.term(show.end), states, mode=self.mode)
        shown = self.on_spark.noted(self.on_spark.show(show, rows))
        # A window is output when the watermark passes its end, so its end is never late for later operators.
        in_time = self.mode == "append" and not (last.sessions and last.sessions.delay)
        return shown.withMetadata("window_end", {WATERMARK: 0}) if in_time else shown

    def _group(self, group: Group, rows: DataFrame) -> DataFrame:
        """Group by instances whose ends Spark knows to be event time."""
        if group.sessions is not None:
            return self._group_with_sessions(group, group.sessions, rows)
        names, key = self.on_spark.names, self.key
        rows = key.added_to(rows, self.on_spark.words.term(group.end))
        others = [name for name in group.by if name != names.start]
        computed = (name for name, _ in (*group.constants, *group.aggregates))
        grouped = self.on_spark.group(group, rows, key.by(group))
        return grouped.selectExpr(*others, f"{key.start} AS {names.start}", *computed)

    def _group_with_sessions(self, group: Group, sessions: Sessions, rows: DataFrame) -> DataFrame:
        """Group by Spark's session_window, which merges rows whose times meet; other rows, by their start, never do.

        A session's time is shifted later by the delay with which its panes arrive.
        """
        names, words, time = self.on_spark.names, self.on_spark.words, self.on_spark.types.time
        first, last, start = sessions.first, sessions.last, names.start
        only = len(group.constants) > 0
        node = names.node if not only else words.term(group.constants[0][1])
        is_session = "TRUE" if only else f"{node} IN ({', '.join(str(place) for place, _ in sessions.gaps)})"
        gaps = " ".join(f"WHEN {place} THEN {last} - {first} + {gap}L" for place, gap in sessions.gaps)
        begin = f"CASE WHEN {is_session} THEN {first} + {sessions.delay}L ELSE {start} END"
        # An instance's end is known before rows are grouped, except for sessions, whose last event is unknown.
        other = f"{words.term(group.end)} - {start}" if not only else "0L"
        length = f"CASE {node} {gaps} ELSE {other} END"
        at, own = f"{names.prefix}at", f"{names.prefix}own"
        event_time = F.expr(timestamp(begin, time)).alias(at, metadata={WATERMARK: 0})
        rows = rows.select("*", event_time, F.expr(f"CASE WHEN {is_session} THEN 0L ELSE {start} END AS {own}"))
        gap = F.expr(f"make_interval(0, 0, 0, 0, 0, 0, CAST({length} AS DECIMAL(20, 0)) / 1000000)")
        others = [name for name in group.by if name != start]
        grouped = self.on_spark.group(group, rows, [*others, own], F.session_window(at, gap))
        found = f"CASE WHEN {is_session} THEN {names.first} ELSE {own} END AS {start}"
        computed = (name for name, _ in (*group.constants, *group.aggregates))
        return grouped.selectExpr(*others, found, *computed)
