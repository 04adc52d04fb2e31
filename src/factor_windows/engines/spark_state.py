"""The open windows of a stopped stream: the state that Spark keeps for each of its operators, merged."""

from __future__ import annotations

from contextlib import redirect_stdout
from functools import cache, cached_property, reduce
from io import StringIO

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from factor_windows import physical
from factor_windows.algebra.growing import Growing
from factor_windows.algebra.slices import Segmentation
from factor_windows.engines.event_time_key import EventTimeKey
from factor_windows.engines.spark_batch import take
from factor_windows.engines.spark_buffers import column, has_buffers, read_buffers
from factor_windows.engines.spark_columns import SparkColumns
from factor_windows.engines.spark_stream import PREFIX, bare
from factor_windows.errors import StoreError
from factor_windows.physical import Target
from factor_windows.physical.steps import Group, Step
from factor_windows.spark.checkpoint import Note
from factor_windows.spark.grouped import grouped
from factor_windows.spark.types import types_of

OPERATOR = "stateStoreSave"
"""Spark's name for the operator of an aggregation."""
_OPTIMIZED = "== Optimized Logical Plan =="


class StreamState:
    """The state of a stream after a micro-batch, read with the plan that its checkpoint was started with."""

    def __init__(self, note: Note, events: DataFrame, place: str, batch: int) -> None:
        """Take a checkpoint's note, the stream of events (none of which is read), and the last micro-batch."""
        self.plan, self.events, self.place, self.batch = bare(note.plan), events, place, batch
        self.on_spark = self._columns(note)
        self.key = EventTimeKey(self.on_spark.names, self.on_spark.types.time, note.keyed_by_window)
        self._check_aggregates()
        names, values = self.on_spark.names, self.on_spark.types.values
        self.compiled = physical.compile(self.plan, Target(names, values, streaming=True, levels=note.levels))
        self._levels = self._operators()
        self._check_operators()

    @property
    def windows(self) -> dict[int, Segmentation]:
        """Return the windows that the stream shows, by the positions of their nodes."""
        layout = self.compiled.layout
        return {place: self.plan.nodes[place].window for place in layout.shown(self.plan, layout.levels[-1])}

    def states_of(self, place: int) -> set[str]:
        """Return the columns of a node's states."""
        return self.plan.needs([each.states for each in self.on_spark.types.results])[place]

    def rows(self) -> DataFrame:
        """Return partial results of all open windows: keys, node, start and states, with internal names.

        Open panes are assigned to the windows that they belong to, as the stream would have done later.
        """
        rows = self._kept(0)
        for number, (steps, group) in enumerate(self._levels[1:], start=1):
            given = reduce(lambda found, step: take(step, found, self.on_spark), (*steps, group), rows)
            rows = self._kept(number).unionByName(given)
        return rows

    def times_seen(self, edge: int) -> tuple[int, int] | None:
        """Return a time that some event has reached, and one that none has, if windows are closed up to the `edge`.

        Return `None` if no window of the first operator is open. For each of its windows, every event is in an instance
        that is open, or in one that is closed.
        """
        names, nodes = self.on_spark.names, self.compiled.layout.levels[0].nodes
        node = names.node if len(nodes) > 1 else str(nodes[0])
        rows = (
            self._state(0)
            .select("key", "key.*")
            .selectExpr(f"{node} AS node", f"{self.key.start} AS start", f"{self.key.end} AS end")
        )
        found = grouped(rows, ["node"], F.max("start"), F.max("end")).collect()
        if not found:
            return None
        # A growing window has instances whose start, as it counts them, is after events in them.
        reached = [start for place, start, _ in found if not isinstance(self.plan.nodes[place].window, Growing)]
        return max([edge, *reached]), min(max(edge, end) for _, _, end in found)

    def _columns(self, note: Note) -> SparkColumns:
        """Return the columns whose states are those of the note, as in this version or as in an earlier one."""
        for earlier in (False, True):
            types = types_of(self.plan.query, self.events, PREFIX, earlier=earlier)
            if types.shared and tuple((state.lift, state.combine) for state in types.states) == note.states:
                return SparkColumns(self.plan.query, self.events, earlier=earlier)
        if not types.shared:
            raise StoreError("the stream computes every window from its events at once, so it has no states to take")
        raise StoreError(
            f"the states of the checkpoint {self.place!r} are others than those of this version, or of these types"
        )

    def _check_aggregates(self) -> None:
        types = self.on_spark.types
        for aggregate, result in zip(self.plan.query.parsed_aggregates, types.results, strict=True):
            states = [state for state in types.states if state.name in result.states]
            if not all(has_buffers(text) for state in states for text in (state.lift, state.combine)):
                raise StoreError(
                    f"the state of {aggregate.sql} on a stream cannot be read; append the events of its open windows "
                    "to the store instead"
                )

    def _operators(self) -> list[tuple[tuple[Step, ...], Group]]:
        """Return the operators in order, each with the steps before it."""
        found: list[tuple[tuple[Step, ...], Group]] = []
        before: list[Step] = []
        for step in self.compiled.steps[1:-1]:
            if isinstance(step, Group):
                found.append((tuple(before), step))
                before = []
            else:
                before.append(step)
        return found

    def _check_operators(self) -> None:
        """Refuse a query that keeps more state than the plan: the extra state would be lost."""
        try:
            told = self.on_spark.session.read.format("state-metadata").load(self.place)
            names = [name for _, name in told.select("operatorId", "operatorName").distinct().collect()]
        except AnalysisException:
            names = []
        if names != [OPERATOR] * len(self._levels):
            raise StoreError(
                f"the query of the checkpoint {self.place!r} has the stateful operators {', '.join(names) or 'none'}, "
                f"and the plan {len(self._levels)} of {OPERATOR}; only a plan without others can be taken over"
            )

    def _state(self, level: int) -> DataFrame:
        """Read the state of an operator; Spark counts operators from the last."""
        reader = self.on_spark.session.read.format("statestore").option("batchId", self.batch)
        return reader.option("operatorId", len(self._levels) - 1 - level).load(self.place)

    def _kept(self, level: int) -> DataFrame:
        """Read the state of an operator as rows of its level."""
        names, (_, group) = self.on_spark.names, self._levels[level]
        state = self._state(level)
        key, value = (state.schema[name].dataType for name in ("key", "value"))
        assert isinstance(key, T.StructType)
        assert isinstance(value, T.StructType)
        texts = [sql.text for _, sql in group.aggregates]
        states = read_buffers(texts, value.names)
        if states is None and not level:
            # Later levels merge columns, no two of which are the same.
            states = read_buffers(texts, value.names, cache(self._as_optimized))
        if states is None or key.names != self.key.by(group):
            raise StoreError(f"the state in {self.place!r} is laid out in a way that this version does not know")
        # If columns have the same name, none of them can be referred to.
        renamed = T.StructType([T.StructField(column(n), field.dataType) for n, field in enumerate(value)])
        rows = state.select("key", state["value"].cast(renamed).alias("value")).select("key.*", "value.*")
        return rows.selectExpr(
            *(name for name in group.by if name != names.start),
            f"{self.key.start} AS {names.start}",
            *(f"{self.on_spark.words.term(term)} AS {name}" for name, term in group.constants),
            *(f"{text} AS {name}" for text, (name, _) in zip(states, group.aggregates, strict=True)),
        )

    @cached_property
    def _lifted(self) -> DataFrame:
        """Return the input rows of the first operator."""
        steps, _ = self._levels[0]
        rows = self.on_spark.scan(self.compiled.scan, self.events)
        return reduce(lambda found, step: self.on_spark.row(step, found), steps, rows)

    def _as_optimized(self, call: str) -> str:
        """Return a call as Spark's optimizer leaves it; equal calls then share their columns."""
        name = f"{self.on_spark.names.prefix}call"
        with redirect_stdout(StringIO()) as text:
            self._lifted.agg(F.expr(call).alias(name)).explain(mode="extended")
        _, _, plan = text.getvalue().partition(_OPTIMIZED)
        told, is_there, _ = plan.partition(f" AS {name}#")
        return told if is_there else call
