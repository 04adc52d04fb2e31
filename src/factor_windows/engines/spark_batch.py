"""A plan on a batch DataFrame: levels become grouped aggregations."""

from __future__ import annotations

from pyspark.sql import DataFrame

from factor_windows.engines.explode_to_windows import Columns, fan_out
from factor_windows.engines.spark_chain import Chain
from factor_windows.engines.spark_packs import packed, unpacked
from factor_windows.errors import OptionError
from factor_windows.physical.levels import PARTITIONS, Level, Physical, compile_levels
from factor_windows.spark.messages import check_events
from factor_windows.spark.typed import has_maps
from factor_windows.spark.types import packing_of
from factor_windows.sql.statement import braced
from factor_windows.tree import Pass as Plan


def run(plan: Plan, events: DataFrame) -> DataFrame:
    """Compute a plan over a batch of events."""
    return _Batch(plan, events).result(events)


def physical_of(plan: Plan, events: DataFrame) -> tuple[Plan, Physical]:
    """Return the plan that `run` computes for these events, and how it does so."""
    check_events(events)
    if events.isStreaming:
        raise OptionError("these events are a stream; explain(streaming=True) says how a plan runs on one")
    chain = _Batch(plan, events)
    return chain.plan, chain.physical


class _Batch(Chain):
    text_as_bytes = True

    def __init__(self, plan: Plan, events: DataFrame) -> None:
        super().__init__(plan, events)
        partitions = int(events.sparkSession.conf.get("spark.sql.shuffle.partitions") or PARTITIONS)
        packing = packing_of(self.query, self.types)
        self.physical = compile_levels(self.plan, partitions=partitions, packing=packing)
        self.longest = max(node.window.range for node in self.plan.nodes)

    def result(self, events: DataFrame) -> DataFrame:
        """Write the levels as one text of SQL, one inside the other, and give it to Spark."""
        text = "{prepared}"
        if self.physical.together == "events":
            text = self._moved(text, *self.keys)
        first, *others = self.physical.levels
        pack = self.physical.pack
        if pack:
            text = packed(text, pack, self)
        else:
            text = self._level(text, first, self.time, self.first_aggregates(), last=not others)
        if others:
            text = self._brought_together(text)
        if pack:
            text = unpacked(text, pack, self.physical.unpacked(self.plan), self, *self._chunk_column)
        for level in others:
            text = self._level(text, level, self.start, self.combines(), last=level is others[-1])
        return self.shown(events.sparkSession.sql(text, prepared=self.prepared(events)))

    def _level(self, rows: str, level: Level, begin: str, aggregates: dict[str, str], *, last: bool) -> str:
        """Fan out, and group by instance."""
        fan = fan_out(level, Columns(begin, self.node, self.feed, self.step))
        if fan.feeds:
            rows = f"SELECT *, explode({fan.feeds}) AS {self.feed} FROM {_inner(rows)}"
        if fan.steps:
            rows = f"SELECT *, explode({fan.steps}) AS {self.step} FROM {_inner(rows)}"
        chunk = self._chunk_column if begin == self.start else []
        kept = [fan.reaches] if fan.reaches else []
        if chunk:
            kept.append(self._inside_chunk(fan.start, last=last))
        if kept:
            rows = f"SELECT * FROM {_inner(rows)} WHERE {' AND '.join(f'({condition})' for condition in kept)}"
        by_node = len(level.nodes) > 1
        groups = [*self.keys, *([self.node] if by_node else []), self.start, *chunk]
        first = begin != self.start
        carried = self.carried(level, self.event_keys if first else self.keys)
        columns = {name: sql for name, sql in carried.items() if not first or sql != name}
        columns |= {} if first else self.merged(level)
        needed = [*(["*"] if first else chunk), *(f"{sql} AS {name}" for name, sql in columns.items())]
        instance = [f"{fan.start} AS {self.start}", *([f"{fan.node} AS {self.node}"] if by_node else [])]
        rows = f"SELECT {', '.join([*needed, *instance])} FROM {_inner(rows)}"
        computed = [f"{braced(sql)} AS {name}" for name, sql in aggregates.items()]
        node = [] if by_node else [f"{level.nodes[0]} AS {self.node}"]
        return f"SELECT {', '.join([*groups, *node, *computed])} FROM {_inner(rows)} GROUP BY {', '.join(groups)}"

    @property
    def _chunk_column(self) -> list[str]:
        return [self.chunk] if self.physical.together == "chunks" else []

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

    def _brought_together(self, rows: str) -> str:
        """Move all that later levels group together into one partition, so that nothing moves again."""
        if self.physical.together in ("events", "nothing"):
            return rows
        columns = self.keys
        if self.physical.together == "chunks":
            length = self.physical.chunk
            offset = self.physical.pack.pane.offset if self.physical.pack else 0
            after = f"pmod({self.start}{f' - {offset}L' if offset else ''}, {length})"
            own, near = f"{self.start} - {after}", f"{after} < {self.longest}"
            chunks = f"CASE WHEN {near} THEN array({own}, {own} - {length}) ELSE array({own}) END"
            rows = f"SELECT *, explode({chunks}) AS {self.chunk} FROM {_inner(rows)}"
            columns = [*self.keys, self.chunk]
        # Rows in order of time keep the hash table of the next level warm: a third less time for ten windows.
        ordered = [key for key, field in zip(self.keys, self.types.keys, strict=True) if not has_maps(field.dataType)]
        return f"SELECT * FROM {_inner(self._moved(rows, *columns))} SORT BY {', '.join([*ordered, self.start])}"

    def _moved(self, rows: str, *columns: str) -> str:
        number = self.physical.partitions
        where = ", ".join([*([str(number)] if number else []), *columns])
        return f"SELECT /*+ REPARTITION({where}) */ * FROM {_inner(rows)}"


def _inner(rows: str) -> str:
    """Put a query where a table may stand."""
    return rows if rows == "{prepared}" else f"({rows})"
