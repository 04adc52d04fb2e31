"""A plan on a stream: the same levels, each a stateful aggregation; one chain, never a union of chains."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from os import PathLike, fspath

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from factor_windows.engines import spark_batch as batch
from factor_windows.engines.explode_to_windows import Columns, fan_out
from factor_windows.engines.spark_chain import Chain, with_columns
from factor_windows.errors import OptionError, QueryError
from factor_windows.functions.expression import quoted
from factor_windows.physical.levels import Level, compile_levels
from factor_windows.query import WINDOW_COLUMNS
from factor_windows.spark.checkpoint import Note, check_fits, read_note, refusal, write_note
from factor_windows.spark.result import WINDOW_NAMES, apply_post_aggregation
from factor_windows.spark.types import microseconds, timestamp, types_of
from factor_windows.spark.watermark import (
    EVENT_TIME,
    WATERMARK,
    check_chains,
    check_event_time,
    closed_until,
    tell_closed,
)
from factor_windows.tree import Pass as Plan

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
MODES = ("append", "update", "complete")
PREFIX = "__fw_"
"""With which the states are named in notes, whatever columns the events have."""


def run(
    plan: Plan,
    events: DataFrame,
    *,
    mode: str = "append",
    checkpoint: str | PathLike[str] | None = None,
    derived: Mapping[str, str] | None = None,
) -> DataFrame:
    """Compute a plan over a stream; `mode` is the output mode in which the result will be written.

    `derived` are the columns that several queries compute from the events first, with their expressions.
    """
    if mode not in MODES:
        raise OptionError(f"mode {mode!r} is unknown; allowed are {', '.join(MODES)}")
    if mode == "append":
        check_event_time(plan, events)
    else:
        # Spark chains stateful operators in append mode only: one scan feeds all windows, and one operator keeps them.
        plan = plan.naive()
    derived = derived or {}
    if checkpoint is None:
        return apply_post_aggregation(plan.query, _Stream(plan, with_columns(events, derived), mode).result())
    return _go_on(plan, events, mode, fspath(checkpoint).rstrip("/"), derived)


def _go_on(plan: Plan, events: DataFrame, mode: str, place: str, derived: Mapping[str, str]) -> DataFrame:
    """Begin a checkpoint, or go on with the plan that it was begun with and show what is asked for now."""
    spark = events.sparkSession
    note = read_note(spark, place)
    if note is None:
        chain = _Stream(plan, with_columns(events, derived), mode)
        write_note(spark, place, chain.note(derived))
        return apply_post_aggregation(plan.query, chain.result())
    check_fits(note, place, plan, mode=mode, derived=derived)
    try:
        kept_events = with_columns(events, derived if note.derived is None else note.derived)
        chains = (kind(note.plan, kept_events, mode, note) for kind in (_Stream, _EarlierStream))
        fitting = next((each for each in chains if each.note({}).states == note.states), None)
    except QueryError as mistake:
        raise refusal(place, [f"these events do not fit it: {mistake}"]) from None
    if fitting is None:
        raise refusal(place, ["its states are others than those of this version, or of these types"])
    types = types_of(plan.query, with_columns(events, derived), PREFIX)
    names = [*(key.name for key in types.keys), *WINDOW_COLUMNS, *(result.name for result in types.results)]
    return apply_post_aggregation(plan.query, _shown_as(plan, names, note.plan, fitting.result()))


def flush(
    plan: Plan,
    events: DataFrame,
    stopped: StreamingQuery | datetime | None = None,
    *,
    checkpoint: str | PathLike[str] | None = None,
) -> DataFrame:
    """Compute, over a bounded stream's events read as a batch, the windows that it had not closed when it stopped."""
    if events.isStreaming:
        raise OptionError("flush takes the events as a batch; read the stream's source with spark.read")
    time = plan.query.parsed_time.sql
    kind = events.select(F.expr(time)).schema[0].dataType
    place = None if checkpoint is None else fspath(checkpoint).rstrip("/")
    edge = closed_until(events.sparkSession, stopped, place, kind)
    longest = max(node.window.range for node in plan.nodes)
    result = batch.run(bare(plan), events.where(f"{microseconds(time, kind)} >= {edge - longest}"))
    ended = microseconds("window_end", result.schema["window_end"].dataType)
    return apply_post_aggregation(plan.query, result.where(f"{ended} > {edge}"))


def bare(plan: Plan) -> Plan:
    """Return a plan that ends with the calls of aggregates, whatever its query does after them."""
    return plan.with_query(plan.query.bare)


def use_rocksdb(spark: SparkSession) -> None:
    """Keep the state of streams in RocksDB, outside the JVM's memory: recommended for many keys or long windows."""
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)


def _shown_as(plan: Plan, names: list[str], kept: Plan, rows: DataFrame) -> DataFrame:
    """Show the result of a kept plan as another one for the same state would: its windows, its columns, its names.

    A window that is not asked for now has no name, and so no rows.
    """
    windows = [(before.names[0], now.names) for before in kept.asked for now in plan.asked if now.node == before.node]
    named = F.create_map(*(F.lit(text) for name, several in windows for text in (name, list(several))))
    noted = {WINDOW_NAMES: list(dict.fromkeys(plan.query.window_names))}
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
    return rows.select(*columns).withMetadata(window_id, noted)


class _Stream(Chain):
    """A plan, without what its query does after the aggregates, over a stream of events."""

    def __init__(self, plan: Plan, events: DataFrame, mode: str, note: Note | None = None) -> None:
        super().__init__(bare(plan), events)
        self.events, self.mode = events, mode
        # What Spark keeps of an operator has the layout that the checkpoint was begun with.
        self.levels = note.levels if note else compile_levels(self.plan, streaming=True).levels
        check_chains(events.sparkSession, len(self.levels))

    def note(self, derived: Mapping[str, str]) -> Note:
        """Write down what the state of this stream means."""
        types = types_of(self.query, self.events, PREFIX, earlier=self.earlier)
        states = tuple((state.lift, state.combine) for state in types.states)
        return Note(self.plan, self.levels, states or tuple(each.direct for each in types.results), self.mode, derived)

    def result(self) -> DataFrame:
        """Run the levels one after the other."""
        rows = self.prepared(self.events)
        first, *others = self.levels
        rows = self._level(rows, first, self.time, self.first_aggregates(), last=not others)
        for place, level in enumerate(others, start=1):
            rows = self._level(rows, level, self.start, self.combines(), last=place == len(others))
        rows = tell_closed(rows, self.end(self.start, self.node), self.first_aggregates(), mode=self.mode)
        if self.mode != "append":
            return self.shown(rows)
        # A window comes out when the watermark passes its end: so its end is never late for what follows.
        return self.shown(rows).withMetadata("window_end", {WATERMARK: 0})

    def _level(self, rows: DataFrame, level: Level, begin: str, aggregates: dict[str, str], *, last: bool) -> DataFrame:
        """Fan out, and group by a window that Spark knows to be event time."""
        fan = fan_out(level, Columns(begin, self.node, self.feed, self.step))
        if fan.feeds:
            rows = rows.selectExpr("*", f"explode({fan.feeds}) AS {self.feed}")
        if fan.steps:
            rows = rows.selectExpr("*", f"explode({fan.steps}) AS {self.step}")
        if fan.reaches:
            rows = rows.where(fan.reaches)
        by_node = len(level.nodes) > 1
        first = begin != self.start
        columns = self.carried(level, self.event_keys if first else self.keys) | ({} if first else self.merged(level))
        columns = {name: sql for name, sql in columns.items() if name != sql}
        columns |= {self.start: fan.start, self.node: fan.node}
        rows = rows.withColumns({name: F.expr(sql) for name, sql in columns.items()})
        end = self.end(self.start, self.node)
        # Spark's first watermark is 1970. It must not close a part of a window that is still open then.
        end = end if last else f"greatest({end}, 1L)"
        instance = F.struct(
            F.expr(timestamp(self.start, self.types.time)).alias("start"),
            F.expr(timestamp(end, self.types.time)).alias("end"),
        )
        rows = rows.select("*", instance.alias(self.window, metadata=EVENT_TIME))
        groups = [*self.keys, *([self.node] if by_node else []), self.window]
        grouped = rows.groupBy(*groups).agg(*(F.expr(sql).alias(name) for name, sql in aggregates.items()))
        node = self.node if by_node else f"{level.nodes[0]} AS {self.node}"
        start = f"{microseconds(f'{self.window}.start', self.types.time)} AS {self.start}"
        return grouped.selectExpr(*self.keys, node, start, *aggregates)


class _EarlierStream(_Stream):
    """A plan over a stream whose state was laid out by an earlier version."""

    earlier = True
