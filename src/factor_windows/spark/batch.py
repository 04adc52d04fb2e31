"""A plan on a batch DataFrame: levels become grouped aggregations."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factor_windows.levels import PARTITIONS, Level, Physical, compile_levels
from factor_windows.plan import Plan
from factor_windows.query import WINDOW_COLUMNS, Query
from factor_windows.spark.columns import Types, microseconds, timestamp, types_of
from factor_windows.spark.fan_out import Columns, fan_out, looked_up


def run(plan: Plan, events: DataFrame) -> DataFrame:
    """Compute a plan over a batch of events."""
    return finished(plan.query, _Batch(plan, events).result())


def finished(query: Query, result: DataFrame) -> DataFrame:
    """Do what the query does after its aggregates."""
    if query.having:
        result = result.where(query.having)
    if query.output:
        result = result.select(*(F.expr(column.sql).alias(column.name) for column in query.parsed_output))
    return result.sparkSession.sql(query.outer, result=result) if query.outer else result


class _Batch:
    """One run: the names of the hidden columns, the physical plan, and what Spark says about types.

    Columns are written as SQL text. A call into Spark costs Python a millisecond or so, and an expression built piece
    by piece takes hundreds of them.
    """

    def __init__(self, plan: Plan, events: DataFrame) -> None:
        prefix = _unused_prefix(events)
        self.types: Types = types_of(plan.query, events, prefix)
        self.plan = plan if self.types.shared else plan.naive()
        self.physical: Physical = compile_levels(self.plan, partitions=_partitions(events))
        self.keys = [f"{prefix}k{number}" for number in range(len(plan.query.parsed_keys))]
        self.values = [f"{prefix}v{number}" for number in range(len(plan.query.parsed_aggregates))]
        self.time, self.start, self.node = f"{prefix}t", f"{prefix}start", f"{prefix}node"
        self.feed, self.step, self.chunk = f"{prefix}feed", f"{prefix}step", f"{prefix}chunk"
        self.longest = max(node.window.range for node in self.plan.nodes)
        self.events = self._prepared(events)

    def _prepared(self, events: DataFrame) -> DataFrame:
        """Add the keys and the time in microseconds; events without a time fall out, as with Spark's window()."""
        query = self.plan.query
        keys = {name: F.expr(key.sql) for name, key in zip(self.keys, query.parsed_keys, strict=True)}
        # A time that cannot be null spares Spark the null checks that it would otherwise add to every level.
        time = F.expr(f"coalesce({microseconds(query, self.types.time)}, 0L)")
        known = events.where(f"({query.parsed_time.sql}) IS NOT NULL")
        if query.where:
            known = known.where(query.where)
        prepared = known.withColumns({**keys, self.time: time})
        return self._moved(prepared, *self.keys) if self.physical.together == "events" else prepared

    def result(self) -> DataFrame:
        """Run the levels one after the other, and show the result as the user's own query would."""
        first, *others = self.physical.levels
        rows = self._level(self.events, first, self.time, self._first_aggregates(), last=not others)
        if others:
            rows = self._brought_together(rows)
        combines = {state.name: state.combine for state in self.types.states}
        for level in others:
            rows = self._level(rows, level, self.start, combines, last=level is others[-1])
        return self._shown(rows)

    def _first_aggregates(self) -> dict[str, str]:
        """Lift events to states, or, if some aggregate cannot be shared, compute the user's own in the one level."""
        if self.types.shared:
            return {state.name: state.lift for state in self.types.states}
        return {name: result.direct for name, result in zip(self.values, self.types.results, strict=True)}

    def _level(self, rows: DataFrame, level: Level, begin: str, aggregates: dict[str, str], *, last: bool) -> DataFrame:
        """Give each row once to every instance that it feeds, and group by instance."""
        chunk = [self.chunk] if self.chunk in rows.columns else []
        fan = fan_out(level, Columns(begin, self.node, self.feed, self.step))
        if fan.feeds:
            rows = rows.selectExpr("*", f"explode({fan.feeds}) AS {self.feed}")
        if fan.steps:
            rows = rows.selectExpr("*", f"explode({fan.steps}) AS {self.step}")
        kept = [fan.reaches] if fan.reaches else []
        if chunk:
            kept.append(self._inside_chunk(fan.start, last=last))
        if kept:
            rows = rows.where(" AND ".join(f"({condition})" for condition in kept))
        by_node = len(level.nodes) > 1
        groups = [*self.keys, *([self.node] if by_node else []), self.start, *chunk]
        instance = {self.start: F.expr(fan.start), **({self.node: F.expr(fan.node)} if by_node else {})}
        columns = [F.expr(sql).alias(name) for name, sql in aggregates.items()]
        grouped = rows.withColumns(instance).groupBy(*groups).agg(*columns)
        return grouped if by_node else grouped.selectExpr("*", f"{level.nodes[0]} AS {self.node}")

    def _inside_chunk(self, start: str, *, last: bool) -> str:
        """Keep the instances that a chunk can complete, and at the last level only those that start in it.

        For nearly all rows the row's own place decides, which is much cheaper than the place of each instance it feeds.
        """
        after = f"{self.start} - {self.chunk}"
        inside, deep_inside = f"{start} >= {self.chunk}", f"{after} >= {self.longest}"
        if last:
            inside += f" AND {start} < {self.chunk} + {self.physical.chunk}"
            deep_inside += f" AND {after} < {self.physical.chunk}"
        return f"({deep_inside}) OR ({inside})"

    def _brought_together(self, rows: DataFrame) -> DataFrame:
        """Move all that later levels group together into one partition, so that nothing moves again."""
        if self.physical.together == "events":
            return rows
        if self.physical.together == "keys":
            return self._moved(rows, *self.keys).sortWithinPartitions(*self.keys, self.start)
        length = self.physical.chunk
        own = f"{self.start} - pmod({self.start}, {length})"
        near = f"pmod({self.start}, {length}) < {self.longest}"
        chunks = f"CASE WHEN {near} THEN array({own}, {own} - {length}) ELSE array({own}) END"
        spread = self._moved(rows.selectExpr("*", f"explode({chunks}) AS {self.chunk}"), *self.keys, self.chunk)
        # Rows in order of time keep the hash table of the next level warm: a third less time for ten windows.
        return spread.sortWithinPartitions(*self.keys, self.start)

    def _moved(self, rows: DataFrame, *columns: str) -> DataFrame:
        number = self.physical.partitions
        return rows.repartition(number, *columns) if number else rows.repartition(*columns)

    def _shown(self, rows: DataFrame) -> DataFrame:
        """Lower the states, name the windows, and give columns their names and types."""
        nodes = self.plan.nodes
        names = [node.shown_as or ("",) for node in nodes]
        if all(len(several) == 1 for several in names):
            window_id = F.element_at(F.lit([name for [name] in names]), F.expr(f"{self.node} + 1"))
        else:
            every = F.element_at(F.array(*(F.lit(list(several)) for several in names)), F.expr(f"{self.node} + 1"))
            rows = rows.withColumn(self.feed, F.explode(every))
            window_id = F.col(self.feed)
        end = f"{self.start} + {looked_up([node.window.range for node in nodes], self.node, 'bigint')}"
        window = (window_id, *(F.expr(timestamp(micros, self.types.time)) for micros in (self.start, end)))
        values = [
            F.expr(result.lower).cast(result.type) if self.types.shared else F.col(value)
            for value, result in zip(self.values, self.types.results, strict=True)
        ]
        shown = [*(F.col(key) for key in self.keys), *window, *values]
        columns = [*self.types.keys, *WINDOW_COLUMNS, *(result.name for result in self.types.results)]
        return rows.select(*(column.alias(name) for column, name in zip(shown, columns, strict=True)))


def _partitions(events: DataFrame) -> int:
    return int(events.sparkSession.conf.get("spark.sql.shuffle.partitions") or PARTITIONS)


def _unused_prefix(events: DataFrame) -> str:
    prefix = "__fw_"
    while any(column.startswith(prefix) for column in events.columns):
        prefix += "_"
    return prefix
