"""A plan on a batch DataFrame: levels become grouped aggregations."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factor_windows.levels import PARTITIONS, Level, compile_levels
from factor_windows.plan import Plan
from factor_windows.spark.chain import Chain


def run(plan: Plan, events: DataFrame) -> DataFrame:
    """Compute a plan over a batch of events."""
    return _Batch(plan, events).result(events)


class _Batch(Chain):
    def __init__(self, plan: Plan, events: DataFrame) -> None:
        super().__init__(plan, events)
        partitions = int(events.sparkSession.conf.get("spark.sql.shuffle.partitions") or PARTITIONS)
        self.physical = compile_levels(self.plan, partitions=partitions)
        self.longest = max(node.window.range for node in self.plan.nodes)

    def result(self, events: DataFrame) -> DataFrame:
        """Run the levels one after the other."""
        rows = self.prepared(events)
        if self.physical.together == "events":
            rows = self._moved(rows, *self.keys)
        first, *others = self.physical.levels
        rows = self._level(rows, first, self.time, self.first_aggregates(), last=not others)
        if others:
            rows = self._brought_together(rows)
        for level in others:
            rows = self._level(rows, level, self.start, self.combines(), last=level is others[-1])
        return self.shown(rows)

    def _level(self, rows: DataFrame, level: Level, begin: str, aggregates: dict[str, str], *, last: bool) -> DataFrame:
        """Fan out, and group by instance."""
        chunk = [self.chunk] if self.chunk in rows.columns else []
        rows, fan = self.fanned_out(rows, level, begin)
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
