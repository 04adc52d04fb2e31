"""A plan on a batch DataFrame: levels become grouped aggregations."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from factor_windows.plan import Plan
from factor_windows.query import WINDOW_COLUMNS
from factor_windows.spark.columns import Types, microseconds, timestamp, types_of
from factor_windows.spark.levels import Level, Physical, compile_levels

FLAT_FEEDS = 256
"""Up to how many instances a row's fan-out is one array of constants; beyond, steps are counted at run time."""


def run(plan: Plan, events: DataFrame) -> DataFrame:
    """Compute a plan over a batch of events."""
    return _Batch(plan, events).result()


class _Batch:
    """One run: the names of the hidden columns, the physical plan, and what Spark says about types."""

    def __init__(self, plan: Plan, events: DataFrame) -> None:
        self.prefix = _unused_prefix(events)
        self.types: Types = types_of(plan.query, events, self.prefix)
        self.plan = plan if self.types.shared else plan.naive()
        self.physical: Physical = compile_levels(self.plan)
        self.keys = [f"{self.prefix}k{number}" for number in range(len(plan.query.parsed_keys))]
        self.time, self.start = f"{self.prefix}t", f"{self.prefix}start"
        self.node, self.chunk = f"{self.prefix}node", f"{self.prefix}chunk"
        self.feed, self.step = f"{self.prefix}feed", f"{self.prefix}step"
        self.events = self._prepared(events)

    def _prepared(self, events: DataFrame) -> DataFrame:
        """Add the keys and the time in microseconds; events without a time fall out, as with Spark's window()."""
        keys = {name: F.expr(key.sql) for name, key in zip(self.keys, self.plan.query.parsed_keys, strict=True)}
        # A time that cannot be null spares Spark the null checks that it would otherwise add to every level.
        time = F.coalesce(microseconds(self.plan.query, self.types.time), F.lit(0).cast("bigint"))
        known = events.where(F.expr(self.plan.query.parsed_time.sql).isNotNull())
        prepared = known.withColumns({**keys, self.time: time})
        return prepared.repartition(*self.keys) if self.physical.together == "events" else prepared

    def result(self) -> DataFrame:
        """Run the levels one after the other, and show the result as the user's own query would."""
        if not self.types.shared:
            return self._shown(self._direct())
        lifts = [F.expr(state.lift).alias(state.name) for state in self.types.states]
        combines = [F.expr(state.combine).alias(state.name) for state in self.types.states]
        first, *others = self.physical.levels
        rows = self._level(self.events.withColumn(self.start, F.col(self.time)), first, lifts, last=not others)
        if others:
            rows = self._brought_together(rows)
        for level in others:
            rows = self._level(rows, level, combines, last=level is others[-1])
        return self._shown(rows)

    def _direct(self) -> DataFrame:
        """Compute every window from raw events with the user's own aggregates: for those that cannot be shared."""
        [level] = self.physical.levels
        values = [F.expr(result.direct).alias(self._value(number)) for number, result in enumerate(self.types.results)]
        return self._level(self.events.withColumn(self.start, F.col(self.time)), level, values, last=True)

    def _value(self, number: int) -> str:
        return f"{self.prefix}v{number}"

    def _level(self, rows: DataFrame, level: Level, aggregates: Sequence[Column], *, last: bool) -> DataFrame:
        fanned, by_node = self._fanned_out(rows, level, last=last)
        groups = [*self.keys, *([self.node] if by_node else []), self.start]
        if self.chunk in rows.columns:
            groups.append(self.chunk)
        grouped = fanned.groupBy(*groups).agg(*aggregates)
        return grouped if by_node else grouped.withColumn(self.node, F.lit(level.nodes[0]))

    def _fanned_out(self, rows: DataFrame, level: Level, *, last: bool) -> tuple[DataFrame, bool]:
        """Give each row once to every instance that it feeds; say whether the node's number matters afterwards."""
        by_node = len(level.nodes) > 1
        flat = sum(feed.steps for feed in level.feeds) <= FLAT_FEEDS
        entries = [(feed, step) for feed in level.feeds for step in range(feed.steps if flat else 1)]
        if len(entries) > 1:
            rows = rows.withColumn(self.feed, F.explode(self._entries_of_row([feed.source for feed, _ in entries])))
        entry = F.col(self.feed)

        def constant(values: list[int], type: str = "bigint") -> Column:
            return _looked_up(values, entry, type)

        begin = F.col(self.start)
        slide = constant([feed.slide for feed, _ in entries])
        shifted = begin - constant([feed.offset for feed, _ in entries]) if any(f.offset for f, _ in entries) else begin
        start = begin - F.pmod(shifted, slide)
        if not flat:
            steps = F.sequence(F.lit(0), constant([feed.steps - 1 for feed, _ in entries], "int"))
            rows = rows.withColumn(self.step, F.explode(steps))
            start = start - F.col(self.step) * slide
        elif any(step for _, step in entries):
            start = start - constant([step * feed.slide for feed, step in entries])
        changed = {self.start: start}
        if by_node:
            changed[self.node] = constant([feed.target for feed, _ in entries], "int")
        if any(feed.reach is not None for feed, _ in entries):
            reach = constant([2**62 if feed.reach is None else feed.reach for feed, _ in entries])
            rows = rows.where(begin - start <= reach)
        if self.chunk in rows.columns:
            rows = rows.where(self._inside_chunk(begin, start, last=last))
        return rows.withColumns(changed), by_node

    def _inside_chunk(self, begin: Column, start: Column, *, last: bool) -> Column:
        """Keep the instances that a chunk can complete, and at the last level only those that start in it.

        For nearly all rows the row's own place decides, which is much cheaper than the place of each instance it feeds.
        """
        chunk = F.col(self.chunk)
        after = begin - chunk
        inside, deep_inside = start >= chunk, after >= self._longest
        if last:
            inside &= start < chunk + self.physical.chunk
            deep_inside &= after < self.physical.chunk
        return deep_inside | inside

    @property
    def _longest(self) -> int:
        return max(node.window.range for node in self.plan.nodes)

    def _entries_of_row(self, sources: list[int]) -> Column:
        """Return the numbers of the entries that a row has: the same for all, or by the node that it belongs to."""
        own = {source: [place for place, other in enumerate(sources) if other == source] for source in sources}
        if len(own) == 1:
            return _constants(own[sources[0]])
        arrays = [_constants(own.get(node, [])) for node in range(max(own) + 1)]
        return F.element_at(F.array(*arrays), F.col(self.node) + 1)

    def _brought_together(self, rows: DataFrame) -> DataFrame:
        """Move all that later levels group together into one partition, so that nothing moves again."""
        if self.physical.together == "keys":
            return rows.repartition(*self.keys)
        if self.physical.together == "events":
            return rows
        chunk = F.lit(self.physical.chunk)
        begin = F.col(self.start)
        own = begin - F.pmod(begin, chunk)
        both = F.when(begin - own < self._longest, F.array(own, own - chunk)).otherwise(F.array(own))
        spread = rows.withColumn(self.chunk, F.explode(both)).repartition(*self.keys, self.chunk)
        # Rows in order of time keep the hash table of the next level warm: a third less time for ten windows.
        return spread.sortWithinPartitions(*self.keys, self.start)

    def _shown(self, rows: DataFrame) -> DataFrame:
        """Lower the states, name the windows, and give columns their names and types."""
        nodes = self.plan.nodes
        number = F.col(self.node)
        start = F.col(self.start)
        if all(len(node.shown_as) <= 1 for node in nodes):
            window_id = _looked_up([node.shown_as[0] if node.exposed else "" for node in nodes], number, "string")
        else:
            names = F.array(*(F.array(*(F.lit(name) for name in node.shown_as or ("",))) for node in nodes))
            rows = rows.withColumn(self.feed, F.explode(F.element_at(names, number + 1)))
            window_id = F.col(self.feed)
        end = start + _looked_up([node.window.range for node in nodes], number, "bigint")
        window = (window_id, timestamp(start, self.types.time), timestamp(end, self.types.time))
        if self.types.shared:
            values = [F.expr(result.lower).cast(result.type).alias(result.name) for result in self.types.results]
        else:
            values = [F.col(self._value(n)).alias(result.name) for n, result in enumerate(self.types.results)]
        return rows.select(
            *(F.col(column).alias(name) for column, name in zip(self.keys, self.types.keys, strict=True)),
            *(column.alias(name) for column, name in zip(window, WINDOW_COLUMNS, strict=True)),
            *values,
        )


def _unused_prefix(events: DataFrame) -> str:
    prefix = "__fw_"
    while any(column.startswith(prefix) for column in events.columns):
        prefix += "_"
    return prefix


def _constants(values: Sequence[int]) -> Column:
    return F.array(*(F.lit(value) for value in values)).cast("array<int>")


def _looked_up(values: Sequence[int] | Sequence[str], number: Column, type: str = "int") -> Column:
    """Return the value at a number's place in a list of constants; one constant if all are the same."""
    if len(set(values)) == 1:
        return F.lit(values[0]).cast(type)
    return F.element_at(F.array(*(F.lit(value) for value in values)).cast(f"array<{type}>"), number + 1)
