"""A plan on a stream: the same levels, each a stateful aggregation; one chain, never a union of chains."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from factor_windows.errors import OptionError, QueryError
from factor_windows.levels import Level, compile_levels
from factor_windows.plan import Plan
from factor_windows.spark import batch
from factor_windows.spark.chain import Chain, finished
from factor_windows.spark.checkpoint import begun_with, remember
from factor_windows.spark.columns import microseconds, timestamp
from factor_windows.spark.fan_out import Columns, fan_out

WATERMARK = "spark.watermarkDelayMs"
"""Where Spark notes on a column that it is the event time of a stream; `withWatermark` sets it."""
EVENT_TIME = {WATERMARK: 0, "spark.timeWindow": True}
"""What tells Spark that a window made by a fan-out carries event time on, as its own window() would."""
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
MODES = ("append", "update", "complete")


def run(plan: Plan, events: DataFrame, *, mode: str = "append", checkpoint: str | None = None) -> DataFrame:
    """Compute a plan over a stream; `mode` is the output mode in which the result will be written."""
    if mode not in MODES:
        raise OptionError(f"mode {mode!r} is unknown; allowed are {', '.join(MODES)}")
    if mode == "append":
        _check_watermark(plan, events)
    else:
        # Spark chains stateful operators in append mode only: one scan feeds all windows, and one operator keeps them.
        plan = plan.naive()
    if checkpoint is not None:
        plan = begun_with(events.sparkSession, checkpoint, plan)
    chain = _Stream(plan, events)
    if checkpoint is not None:
        remember(events.sparkSession, checkpoint, chain, mode=mode)
    return chain.result(events)


def flush(plan: Plan, events: DataFrame, stopped: StreamingQuery | datetime) -> DataFrame:
    """Compute, over a bounded stream's events read as a batch, the windows that it had not closed when it stopped."""
    if events.isStreaming:
        raise OptionError("flush takes the events as a batch; read the stream's source with spark.read")
    watermark = stopped if isinstance(stopped, datetime) else _watermark(stopped)
    bare = replace(plan, query=replace(plan.query, having="", output=(), outer=""))
    if watermark is None:
        return batch.run(plan, events)
    longest = max(node.window.range for node in plan.nodes)
    edge = round(watermark.timestamp() * 1_000_000)
    time = plan.query.parsed_time.sql
    kind = events.select(F.expr(time)).schema[0].dataType
    result = batch.run(bare, events.where(f"{microseconds(time, kind)} >= {edge - longest}"))
    ended = microseconds("window_end", result.schema["window_end"].dataType)
    return finished(plan.query, result.where(f"{ended} > {edge}"))


def _watermark(query: StreamingQuery) -> datetime | None:
    progress = query.lastProgress
    found = progress["eventTime"].get("watermark") if progress else None
    return datetime.fromisoformat(found) if found else None


def use_rocksdb(spark: SparkSession) -> None:
    """Keep the state of streams in RocksDB, outside the JVM's memory: recommended for many keys or long windows."""
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)


def _check_watermark(plan: Plan, events: DataFrame) -> None:
    time = plan.query.parsed_time.sql.replace("`", "")
    marked = [field.name for field in events.schema if WATERMARK in field.metadata]
    if not marked:
        raise QueryError(
            f"the stream has no watermark, so no window would ever be complete; write "
            f"events.withWatermark({time!r}, '10 minutes') with the longest delay that you expect"
        )
    if time not in marked:
        raise QueryError(
            f"the stream's watermark is on {marked[0]!r}, but the query's time is {time!r}; "
            "put the watermark on the query's time column"
        )


class _Stream(Chain):
    def __init__(self, plan: Plan, events: DataFrame) -> None:
        super().__init__(plan, events)
        self.physical = compile_levels(self.plan, streaming=True)

    def result(self, events: DataFrame) -> DataFrame:
        """Run the levels one after the other."""
        rows = self.prepared(events)
        first, *others = self.physical.levels
        rows = self._level(rows, first, self.time, self.first_aggregates())
        for level in others:
            rows = self._level(rows, level, self.start, self.combines())
        return self.shown(rows)

    def _level(self, rows: DataFrame, level: Level, begin: str, aggregates: dict[str, str]) -> DataFrame:
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
        instance = F.struct(
            F.expr(timestamp(self.start, self.types.time)).alias("start"),
            F.expr(timestamp(self.end(self.start, self.node), self.types.time)).alias("end"),
        )
        rows = rows.select("*", instance.alias(self.window, metadata=EVENT_TIME))
        groups = [*self.keys, *([self.node] if by_node else []), self.window]
        grouped = rows.groupBy(*groups).agg(*(F.expr(sql).alias(name) for name, sql in aggregates.items()))
        node = self.node if by_node else f"{level.nodes[0]} AS {self.node}"
        start = f"{microseconds(f'{self.window}.start', self.types.time)} AS {self.start}"
        return grouped.selectExpr(*self.keys, node, start, *aggregates)
