"""What batch and streams share: hidden columns, the fan-out of a level, and the result as users expect it."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField

from factor_windows.algebra.slices import Slices
from factor_windows.engines.explode_to_windows import after_edges, looked_up
from factor_windows.functions.guards import in_order
from factor_windows.physical.levels import Level, Physical
from factor_windows.query import WINDOW_COLUMNS, Query
from factor_windows.spark.absent import check_absent
from factor_windows.spark.messages import spark_says
from factor_windows.spark.result import WINDOW_NAMES, apply_post_aggregation
from factor_windows.spark.types import Types, microseconds, timestamp, types_of
from factor_windows.tree import Pass as Plan


class Chain:
    """One run of a plan: the names of the hidden columns, and what Spark says about types.

    Columns are written as SQL text. A call into Spark costs Python a millisecond or so, and an expression built piece
    by piece takes hundreds of them.
    """

    physical: Physical
    earlier = False
    """Whether states are laid out as an earlier version did, whose checkpoint goes on."""
    text_as_bytes = False
    """Whether keys that are text are moved and grouped as bytes, which takes a third less time: Spark's first, quick
    hash table takes text, not bytes, and is slower than its second one where text and time make many groups."""

    def __init__(self, plan: Plan, events: DataFrame) -> None:
        check_absent(plan.query, events)
        prefix = _unused_prefix(events)
        self.types: Types = types_of(plan.query, events, prefix, earlier=self.earlier)
        self.plan = plan if self.types.shared else plan.naive()
        self.query: Query = plan.query
        self.keys = [f"{prefix}k{number}" for number in range(len(plan.query.parsed_keys))]
        self.event_keys = [f"{key}_" for key in self.keys] if self.plan.has_several_keys else self.keys
        self.needs = self._needs()
        self.values = [f"{prefix}v{number}" for number in range(len(plan.query.parsed_aggregates))]
        self.time, self.start, self.node = f"{prefix}t", f"{prefix}start", f"{prefix}node"
        self.feed, self.step, self.chunk = f"{prefix}feed", f"{prefix}step", f"{prefix}chunk"
        self.window = f"{prefix}window"

    def prepared(self, events: DataFrame) -> DataFrame:
        """Add the keys and the time in microseconds; events without a time fall out, as with Spark's window()."""
        query = self.query
        keys = {
            name: F.expr(f"CAST({key.sql} AS BINARY)" if self._as_bytes(field) else key.sql)
            for name, key, field in zip(self.event_keys, query.parsed_keys, self.types.keys, strict=True)
        }
        # A time that cannot be null spares Spark the null checks that it would otherwise add to every level.
        time = F.expr(f"coalesce({microseconds(query.parsed_time.sql, self.types.time)}, 0L)")
        # The condition goes first: the time need not be one where it does not hold.
        known = events.where(in_order(query.where)) if query.where else events
        known = known.where(f"({query.parsed_time.sql}) IS NOT NULL")
        return known.withColumns({**keys, self.time: time})

    def _as_bytes(self, key: StructField) -> bool:
        """Say whether a key is moved and grouped as bytes: text that is equal only where its bytes are."""
        return self.text_as_bytes and key.dataType == StringType()

    def first_aggregates(self) -> dict[str, str]:
        """Lift events to states, or, if some aggregate cannot be shared, compute the user's own in the one level."""
        if self.types.shared:
            return {state.name: state.lift for state in self.types.states}
        return {name: result.direct for name, result in zip(self.values, self.types.results, strict=True)}

    def combines(self) -> dict[str, str]:
        """Merge the states of the level above."""
        return {state.name: state.combine for state in self.types.states}

    def carried(self, level: Level, keys: list[str]) -> dict[str, str]:
        """Return the keys of the instance that a copy of a row feeds: null for those that its node does not have."""
        found = {}
        for name, above, key in zip(self.keys, keys, self.query.parsed_keys, strict=True):
            has = [key.sql in self.plan.nodes[feed.target].node.keys for feed, _ in level.entries]
            found[name] = above if all(has) else f"CASE WHEN {self._is(has)} THEN {above} END"
        return found

    def merged(self, level: Level) -> dict[str, str]:
        """Return the states of the instance that a copy of a row feeds: null for those that nobody needs there."""
        found = {}
        for state in self.combines():
            needed = [state in self.needs[feed.target] for feed, _ in level.entries]
            found[state] = state if all(needed) else f"CASE WHEN {self._is(needed)} THEN {state} END"
        return found

    def _is(self, answers: list[bool]) -> str:
        """Return a condition on the copy of a row that holds for some of the entries of its level."""
        return f"{looked_up([int(answer) for answer in answers], self.feed, 'int')} = 1"

    def _needs(self) -> list[set[str]]:
        """List for each node the states that it needs, for what it shows or for those who read it."""
        number = {node.name: place for place, node in enumerate(self.plan.nodes)}
        asked = {each.node: each.aggregates for each in self.plan.asked}
        needs = [
            {state for place in asked.get(node.node, ()) for state in self.types.results[place].states}
            for node in self.plan.nodes
        ]
        for node in reversed(self.plan.nodes):
            if node.parent is not None:
                needs[number[node.parent]] |= needs[number[node.name]]
        return needs

    def end(self, start: str, node: str) -> str:
        """Return the end of the instance of a node that starts then."""
        length = looked_up([node.window.range for node in self.plan.nodes], node, "bigint")
        slices = "".join(
            f" WHEN {node} = {place} THEN {_to_next_edge(found.window, start)}"
            for place, found in enumerate(self.plan.nodes)
            if isinstance(found.window, Slices)
        )
        return f"{start} + " + (f"CASE{slices} ELSE {length} END" if slices else length)

    def shown(self, rows: DataFrame) -> DataFrame:
        """Lower the states, name the windows, and give columns their names and types."""
        names = [node.shown_as or ("",) for node in self.plan.nodes]
        if all(len(several) == 1 for several in names):
            found = F.element_at(F.lit([name for [name] in names]), F.expr(f"{self.node} + 1"))
            # Without ANSI mode Spark does not know that there is always one.
            window_id = F.coalesce(found, F.lit(""))
        else:
            every = F.element_at(F.array(*(F.lit(list(several)) for several in names)), F.expr(f"{self.node} + 1"))
            rows = rows.withColumn(self.feed, F.explode(every))
            window_id = F.col(self.feed)
        noted = {WINDOW_NAMES: list(dict.fromkeys(self.query.window_names))}
        window_id = window_id.alias("window_id", metadata=noted)
        micros = (self.start, self.end(self.start, self.node))
        window = (window_id, *(F.expr(timestamp(each, self.types.time)) for each in micros))
        values = [
            F.expr(self._lowered(place)).cast(result.type) if self.types.shared else F.col(value)
            for place, (value, result) in enumerate(zip(self.values, self.types.results, strict=True))
        ]
        keys = [
            F.col(key).cast(field.dataType).alias(field.name, metadata=field.metadata)
            if self._as_bytes(field)
            else F.col(key)
            for key, field in zip(self.keys, self.types.keys, strict=True)
        ]
        columns = [*keys, *window, *values]
        results = (result.name for result in self.types.results)
        labels = [*(field.name for field in self.types.keys), *WINDOW_COLUMNS, *results]
        return apply_post_aggregation(
            self.query, rows.select(*(column.alias(name) for column, name in zip(columns, labels, strict=True)))
        )

    def _lowered(self, place: int) -> str:
        """Return what makes an aggregate's result from states, in rows of those nodes that it is asked of.

        Others share its states, and may hold a sum that does not fit.
        """
        result = self.types.results[place]
        asked = {each.node for each in self.plan.asked if place in each.aggregates}
        has = [not node.exposed or node.node in asked for node in self.plan.nodes]
        if all(has) or not result.nullable:
            return result.lower
        return f"CASE WHEN {looked_up([int(each) for each in has], self.node, 'int')} = 1 THEN {result.lower} END"


def with_columns(events: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """Compute columns of events, given as expressions, before anything else."""
    with spark_says("Spark cannot read a condition or a key"):
        return events.withColumns({name: F.expr(sql) for name, sql in columns.items()}) if columns else events


def _to_next_edge(slices: Slices, start: str) -> str:
    terms = [f"{step}L - {after_edges([(step, offset)], start)}" for step, offset in slices.edges]
    return f"least({', '.join(terms)})"


def _unused_prefix(events: DataFrame) -> str:
    prefix = "__fw_"
    while any(column.lower().startswith(prefix) for column in events.columns):
        prefix += "_"
    return prefix
