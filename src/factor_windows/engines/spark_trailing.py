"""Trailing windows on a batch: for each label, the aggregates over the events of its keys just before its time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property, reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factor_windows.algebra.ladder import Ladder
from factor_windows.algebra.window import Window
from factor_windows.cost.ladder import choose_ladder
from factor_windows.cost.spark import SparkCost
from factor_windows.cost.statistics import Look
from factor_windows.engines.spark_columns import SparkColumns
from factor_windows.errors import OptionError, QueryError
from factor_windows.functions.aggregate import add_filter
from factor_windows.functions.expression import quoted, sql_of, tree_of
from factor_windows.functions.guards import in_order
from factor_windows.physical.steps import Show
from factor_windows.physical.terms import Column, Sql, Term, look_up
from factor_windows.plan import Plan
from factor_windows.query import WINDOW_COLUMNS, Query
from factor_windows.spark.grouped import grouped
from factor_windows.spark.labels import Labels, check_labels, check_names
from factor_windows.spark.look import look
from factor_windows.spark.messages import check_events, spark_says
from factor_windows.spark.types import microseconds

EVENTS = "events"
"""The table of a query without a source, as in the SQL of its plan."""
WORTH_A_LOOK = 1_000
"""From this many events on, their density matters."""
JOIN = "merge"
"""How labels are joined with events and panes: sorted.

Spark does not foresee how many rows an explode makes of a label, and would otherwise send all of them everywhere."""


def at(plan: Plan, labels: DataFrame, events: DataFrame | None, *, time: str) -> DataFrame:
    """Compute the windows of a plan's query that end at the times of labels."""
    check_labels(labels, time)
    _check_query(plan.query)
    if events is None:
        events = _source(plan.query, labels)
    check_events(events)
    for frame, what in ((labels, "labels"), (events, "events")):
        if frame.isStreaming:
            raise OptionError(f"the {what} are a stream; `at` takes batches, such as spark.read gives")
    return Trailing(plan, labels, events, time).result()


def _check_query(query: Query) -> None:
    for window in query.windows:
        if not isinstance(window, Window) or window.clock is not None:
            raise QueryError(
                f"window {window.name!r} has no fixed length, so it does not say how far back to look from a time; "
                "`at` takes windows such as tumbling('7 days'), of which only the range matters"
            )
    if query.outer:
        raise QueryError("the query sorts or limits its result, which `at` joins to labels; do that with the result")


def _source(query: Query, labels: DataFrame) -> DataFrame:
    spark = labels.sparkSession
    if not query.source and not spark.catalog.tableExists(EVENTS):
        raise OptionError(
            "the query does not say where its events are, and there is no table `events`; pass them, as in "
            "plan.at(labels, events)"
        )
    with spark_says("Spark cannot read the query's source"):
        return spark.sql(f"SELECT * FROM {query.source or EVENTS}")


class Trailing:
    """One run: the ladder, and the columns of labels, events and panes."""

    def __init__(self, plan: Plan, labels: DataFrame, events: DataFrame, time: str) -> None:
        self.plan, self.query, self.labels, self.events = plan, plan.query, labels, events
        self.on_spark = SparkColumns(self.query, events, text_as_bytes=True, beside=labels)
        prefix = self.on_spark.names.prefix
        self.fit = Labels.read(self.query, labels, self.on_spark.types, time=time, prefix=prefix)
        self.on_spark.types = replace(self.on_spark.types, time=self.fit.kind)
        self.types, self.names = self.on_spark.types, self.on_spark.names
        self.pane, self.rung, self.slot = f"{prefix}pane", f"{prefix}rung", f"{prefix}slot"
        self.first, self.last, self.is_event = f"{prefix}first", f"{prefix}last", f"{prefix}is_event"
        self.ranges = tuple(sorted({window.longest for window in self.query.windows}))
        check_names(labels, [name for name, _ in self._shown])

    def result(self) -> DataFrame:
        """Return each label once for each window, with the aggregates."""
        merged = self._merged() if self.types.shared else self._direct()
        shown = self._show(merged)
        labels = self.labels.selectExpr("*", *self.fit.columns)
        return labels.join(shown, self.fit.names).drop(*self.fit.names)

    @cached_property
    def ladder(self) -> Ladder:
        """Choose the panes by the density of events; functions without states need all events of the longest range."""
        if not self.types.shared:
            return Ladder(self.ranges[-1] + 1, self.ranges)
        seen = self._look()
        labels = look(self.labels, "0L", (), is_worth_a_head=lambda _: False).events
        density = None if seen.rate is None else seen.rate / (seen.keys or 1) / 1e6
        return choose_ladder(self.ranges, density=density, crowding=seen.crowding, events=seen.events, labels=labels)

    def _look(self) -> Look:
        """Return the statistics of the events: those of the plan or, if there are none, from a look at their head."""
        model, options = self.plan.passes[0].cost_model, self.plan.request.options
        if isinstance(model, SparkCost) and not model.assumed:
            return Look(options.events, model.rate / model.unit * 1e6, round(model.keys))
        known = self.events.where(in_order(self.query.where)) if self.query.where else self.events
        time = microseconds(self.query.parsed_time.sql, self.types.time)
        keys = [key.sql for key in self.query.parsed_keys]
        seen = look(known, time, keys, is_worth_a_head=lambda count: count >= WORTH_A_LOOK)
        return replace(seen, rate=0.0) if seen.events < WORTH_A_LOOK else seen

    @cached_property
    def known(self) -> DataFrame:
        """Return the distinct labels."""
        return self.labels.selectExpr(*self.fit.columns).distinct()

    @cached_property
    def raw(self) -> DataFrame:
        """Return the events that meet the condition, with their keys, time and pane."""
        query, time = self.query, self.query.parsed_time.sql
        known = self.events.where(in_order(query.where)) if query.where else self.events
        micros = f"coalesce({microseconds(time, self.types.time)}, 0L) AS {self.names.time}"
        rows = known.where(f"({time}) IS NOT NULL").selectExpr("*", *self.fit.event_columns, micros)
        return rows.selectExpr("*", f"{_floor(self.names.time, f'{self.ladder.pane}L')} AS {self.pane}")

    def _merged(self) -> DataFrame:
        """Merge the states of everything a window is made of: nothing, raw edges, panes."""
        parts = [self._lifted(), self._nothing(), *([self._looked_up()] if self.ladder.rungs else [])]
        rows = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)
        return self._group(self._by_window(rows), self._instance, self._combines)

    def _direct(self) -> DataFrame:
        """Aggregate the events of each window directly, for functions without states."""
        events = self._near().selectExpr("*", f"true AS {self.is_event}")
        rows = self._nothing().selectExpr("*", f"false AS {self.is_event}")
        rows = events.unionByName(rows, allowMissingColumns=True)
        calls = (
            (self.names.value(place), sql_of(add_filter(tree_of(each.direct), tree_of(self.is_event))))
            for place, each in enumerate(self.types.results)
        )
        return self._group(self._by_window(rows), self._instance, calls)

    def _nothing(self) -> DataFrame:
        """Return a row without any event for all windows of each label: some windows have no other."""
        return self.known.selectExpr("*", f"0 AS {self.first}", f"{len(self.ranges) - 1} AS {self.last}")

    def _near(self) -> DataFrame:
        """Join the raw events of panes that windows partly contain, each with the ranges that contain it."""
        edges, at = self.ladder.edges, self.fit.time.column
        pairs = self._probes().hint(JOIN).join(self.raw, [*self.fit.key_names, self.pane])
        age, reach = f"({at} - {self.names.time})", [self.ranges[each.last] for each in edges]
        pairs = pairs.where(f"{age} > 0 AND {age} <= {self._look_up(reach, 'bigint')}")
        by_age = " ".join(f"WHEN {age} <= {length}L THEN {place}" for place, length in enumerate(self.ranges))
        first = f"greatest(CASE {by_age} END, {self._look_up([each.first for each in edges])}) AS {self.first}"
        return pairs.selectExpr("*", first, f"{self._look_up([each.last for each in edges])} AS {self.last}")

    def _lifted(self) -> DataFrame:
        """Lift the raw events of edges to states, where the join has brought them together."""
        by = [*self.fit.names, self.pane, self.first, self.last]
        return self._group(self._near(), by, self._lifts).drop(self.pane)

    def _looked_up(self) -> DataFrame:
        """Look up the panes that windows are made of."""
        start = self.names.start
        found = self._pieces().hint(JOIN).join(self._panes(), [*self.fit.key_names, self.rung, start])
        return found.drop(self.rung, start)

    def _panes(self) -> DataFrame:
        """Make the panes of all rungs: the lowest from events, all others from these."""
        keys, start = self.fit.key_names, self.names.start
        lowest = self._group(self.raw, [*keys, self.pane], self._lifts)
        rungs = lowest.selectExpr("*", f"explode(sequence(0, {self.ladder.rungs - 1})) AS {self.rung}")
        rows = rungs.selectExpr("*", f"shiftright({self.pane}, {self.rung}) AS {start}")
        return self._group(rows, [*keys, self.rung, start], self._combines)

    def _probes(self) -> DataFrame:
        """Make for each label a row for each of its edges, with the number of the pane."""
        edges, at, length = self.ladder.edges, self.fit.time.column, f"{self.ladder.pane}L"
        moment = f"({at} + {self._look_up([each.shift for each in edges], 'bigint')})"
        had = f"{self._look_up([each.step for each in edges])} < 0 OR pmod({moment}, {length}) > 0"
        number = f"{_floor(moment, length)} + {self._look_up([each.step for each in edges])} AS {self.pane}"
        return self._exploded(len(edges)).where(had).selectExpr(*self.fit.names, self.slot, number)

    def _pieces(self) -> DataFrame:
        """Make for each label a row for each of its pieces, with the rung and the number of the pane."""
        pieces, at = self.ladder.pieces, self.fit.time.column
        length = self._look_up([self.ladder.length(each.rung) for each in pieces], "bigint")
        number = _floor(f"({at} + {self._look_up([each.shift for each in pieces], 'bigint')})", length)
        is_top = f"{self._look_up([int(each.is_top) for each in pieces])} = 1"
        rows = self._exploded(len(pieces)).selectExpr("*", f"{number} AS {self.names.start}")
        before = f"CASE WHEN {is_top} THEN {_floor(at, length)} ELSE 0L END"
        return rows.where(f"pmod({self.names.start} + {before}, 2L) = 1").selectExpr(
            *self.fit.names,
            f"{self.names.start} + {self._look_up([each.step for each in pieces])} AS {self.names.start}",
            f"{self._look_up([each.rung for each in pieces])} AS {self.rung}",
            f"{self._look_up([each.first for each in pieces])} AS {self.first}",
            f"{self._look_up([each.last for each in pieces])} AS {self.last}",
        )

    def _exploded(self, slots: int) -> DataFrame:
        """Make this many rows of each label that has a time."""
        flag, every = self.fit.time.flag, f"sequence(0, {slots - 1})"
        # A condition on labels would make them differ from the labels that the rest reads, and compute them twice.
        listed = f"CASE WHEN NOT {flag} THEN {every} ELSE CAST(array() AS array<int>) END" if flag else every
        return self.known.selectExpr("*", f"explode({listed}) AS {self.slot}")

    def _by_window(self, rows: DataFrame) -> DataFrame:
        """Assign each row to all ranges that it is a part of, where all rows of a label are already together."""
        together = rows.repartition(*self.fit.names)
        return together.selectExpr("*", f"explode(sequence({self.first}, {self.last})) AS {self.names.node}")

    def _group(self, rows: DataFrame, by: list[str], aggregates: Iterable[tuple[str, str]]) -> DataFrame:
        return grouped(rows, by, *(F.expr(f"{sql} AS {name}") for name, sql in aggregates))

    @property
    def _instance(self) -> list[str]:
        """List the columns that identify a window of a label."""
        return [*self.fit.names, self.names.node]

    @property
    def _lifts(self) -> list[tuple[str, str]]:
        return [(each.name, each.lift) for each in self.types.states]

    @property
    def _combines(self) -> list[tuple[str, str]]:
        return [(each.name, each.combine) for each in self.types.states]

    def _look_up(self, values: list[int], type: str = "int") -> str:
        return self.on_spark.words.term(look_up(self.slot, "slot", values, type))

    def _show(self, rows: DataFrame) -> DataFrame:
        """Lower the states, and apply what the query does after its aggregates."""
        query, names, fit = self.query, self.names, self.fit
        keys = [f"{part.value} AS {key}" for part, key in zip(fit.keys, names.keys, strict=True)]
        values: list[Term] = [Column(names.value(place)) for place in range(len(self.types.results))]
        if self.types.shared:
            values = [Sql(each.lower) for each in self.types.results]
        windows = tuple(
            tuple(dict.fromkeys(window.name for window in query.windows if window.longest == length))
            for length in self.ranges
        )
        end = Sql(fit.time.value)
        start = end - look_up(names.node, "range", self.ranges)
        show = Show(windows, names.keys, start, end, names.node, tuple(values))
        shown = self.on_spark.noted(self.on_spark.show(show, rows.selectExpr("*", *keys), keeps=fit.names))
        if query.kept:
            shown = shown.where(query.kept)
        return shown.select(*fit.names, *(F.expr(sql).alias(name) for name, sql in self._shown))

    @cached_property
    def _shown(self) -> list[tuple[str, str]]:
        """List the columns added to labels: the window, and the aggregates or what is shown instead of them."""
        query = self.query
        output = [(each.name, each.sql) for each in query.parsed_output]
        values = output or [(each.name, quoted(each.name)) for each in self.types.results]
        theirs = {name.lower() for name in (*WINDOW_COLUMNS, *(key.name for key in query.parsed_keys))}
        windows = [(name, name) for name in WINDOW_COLUMNS]
        return [*windows, *((name, sql) for name, sql in values if name.lower() not in theirs)]


def _floor(number: str, divisor: str) -> str:
    """Divide, rounding down, even before 1970."""
    return f"(({number} - pmod({number}, {divisor})) div {divisor})"
