"""Shared by batch and streams: the columns of a run, the events to read, and the result as users expect it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import NumericType, StringType, StructField

from factor_windows.engines.spark_words import SparkWords
from factor_windows.functions.expression import calls_over, quoted
from factor_windows.functions.guards import in_order
from factor_windows.physical.steps import (
    Explode,
    Filter,
    FindSessions,
    Group,
    Project,
    Scan,
    ScanBlocks,
    Show,
    Step,
    prefix_column,
    suffix_column,
)
from factor_windows.physical.target import Names
from factor_windows.physical.terms import Column, Term
from factor_windows.query import WINDOW_COLUMNS, Query
from factor_windows.spark.absent import check_absent
from factor_windows.spark.messages import spark_says
from factor_windows.spark.nullability import text_of
from factor_windows.spark.result import note_windows, notes_of
from factor_windows.spark.settings import keeps_groups
from factor_windows.spark.types import ResultColumn, Types, microseconds, timestamp, types_of

SECOND = 1_000_000
"""In microseconds."""


class SparkColumns:
    """The columns of one run: their names, and their types in Spark.

    Columns are written as SQL text. A call into Spark takes Python about a millisecond, and an expression built piece
    by piece takes hundreds of them.
    """

    def __init__(
        self,
        query: Query,
        events: DataFrame,
        *,
        text_as_bytes: bool = False,
        earlier: bool = False,
        beside: DataFrame | None = None,
        counts_values: bool = False,
        keeps_panes: bool = False,
    ) -> None:
        """With `text_as_bytes`, shuffle and group text keys as bytes, which takes a third less time.

        Spark's first, fast hash table takes text but not bytes; it is slower than the second one where text and time
        make many groups. Where the first level makes few, `scan` leaves text as it is. With `earlier`, states are laid
        out as in an earlier version, whose checkpoint continues. Names differ from those of the events, and of the
        rows joined to them, `beside`. With `counts_values`, aggregates that can be computed from how often each value
        occurs are laid out that way, if their types allow it; but together with sessions only if a plan `keeps_panes`.
        """
        check_absent(query, events)
        self.query, self.session, self.text_as_bytes = query, events.sparkSession, text_as_bytes
        self.keeps_panes = keeps_panes
        self.names = Names.of(query, _unused_prefix([*events.columns, *(beside.columns if beside is not None else ())]))
        counts_values = counts_values and (keeps_panes or not query.has_sessions)
        self.types: Types = types_of(query, events, self.names.prefix, earlier=earlier, counts_values=counts_values)
        self.words = SparkWords(self.names)

    def scan(self, scan: Scan, events: DataFrame, *, keeps_text: bool = False) -> DataFrame:
        """Add the keys and the time in microseconds; events without a time are dropped, as by Spark's window().

        With `keeps_text`, text keys become bytes later, by `with_grouped_keys`.
        """
        keys = [
            f"{sql if keeps_text else self.as_grouped(sql, field)} AS {name}"
            for (name, sql), field in zip(scan.keys, self.types.keys, strict=True)
        ]
        # If the time cannot be null, Spark omits the null checks that it would otherwise add to every level.
        micros = microseconds(scan.time, self.types.time, fractions=self._needs_fractions)
        time = f"coalesce({micros}, 0L) AS {scan.column}"
        # The condition comes first: where it does not hold, the time may not be a valid one.
        known = events.where(in_order(scan.where)) if scan.where else events
        return known.where(f"({scan.time}) IS NOT NULL").selectExpr("*", *keys, time)

    def row(self, step: Step, rows: DataFrame) -> DataFrame:
        """Apply a step that treats each row separately."""
        match step:
            case Explode():
                for name, array in self.words.explodes(step):
                    rows = rows.selectExpr("*", f"explode({array}) AS {name}")
                return rows
            case Filter(conditions=conditions):
                return rows.where(" AND ".join(f"({self.words.term(each)})" for each in conditions))
            case Project():
                columns = [f"{self.words.term(term)} AS {name}" for name, term in step.columns]
                return rows.selectExpr(*(["*"] if step.keeps_others else []), *columns)
        raise TypeError(f"{step!r} is not a step that looks at each row by itself")

    def in_sessions(self, step: FindSessions, rows: DataFrame) -> DataFrame:
        """Add to rows their sessions: one starts where the previous row, by time, ended more than a gap ago."""
        before, everything = f"{self.names.prefix}before", f"{self.names.prefix}all"
        if not step.by:
            # Spark warns if rows are collected in one place without any column, and recognizes a constant.
            rows = rows.selectExpr("*", f"pmod({step.first}, 1) AS {everything}")
        over = f"PARTITION BY {', '.join(step.by or [everything])} ORDER BY {step.first}"
        ended = f"lag({step.last}) OVER ({over})"
        if step.overlap:
            ended = f"max({step.last}) OVER ({over} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
        rows = rows.selectExpr("*", f"{ended} AS {before}")

        def start(gap: int) -> str:
            begins = f"CASE WHEN {before} IS NULL OR {step.first} - {before} > {gap}L THEN {step.first} END"
            return f"max({begins}) OVER ({over} ROWS UNBOUNDED PRECEDING)"

        return rows.selectExpr("*", *(f"{start(gap)} AS {name}" for name, gap in step.gaps))

    def in_blocks(self, step: ScanBlocks, rows: DataFrame) -> DataFrame:
        """Add to rows the prefixes and suffixes of their blocks; Spark is fast only if frames start with all rows."""
        block = f"{self.names.prefix}block"
        begin = f"{step.start} - pmod({step.start} - {step.offset}L, {step.length}L)"
        rows = rows.selectExpr("*", f"{begin} AS {block}")
        for order, column, beside, edge in (
            (step.start, prefix_column, step.next, f"{block} + {step.length}L"),
            (f"{step.start} DESC", suffix_column, step.previous, block),
        ):
            over = f"PARTITION BY {', '.join((*step.by, block))} ORDER BY {order}"
            merged = (
                f"{calls_over(sql.text, f'{over} ROWS UNBOUNDED PRECEDING')} AS {column(name)}"
                for name, sql in step.aggregates
            )
            rows = rows.selectExpr("*", *merged, f"lead({step.start}, 1, {edge}) OVER ({over}) AS {beside}")
        return rows

    def group(
        self, group: Group, rows: DataFrame, by: Sequence[str], *others: SparkColumn, spread: bool = False
    ) -> DataFrame:
        """Group rows, and return the grouping columns, the constants and the aggregates.

        Rows may be grouped by `others` that are never read. With `spread`, they are grouped by their start without the
        lowest bits that are zero in every start. Spark's fast hash table takes the place of a group from its lowest
        bits; as it only tries two places, it would hold a few hundred groups instead of 65,536.
        """
        constants = [f"{self.words.term(term)} AS {name}" for name, term in group.constants]
        computed = [f"{sql.text} AS {name}" for name, sql in group.aggregates]
        if not constants and not computed:
            return rows.select(*by).distinct()
        if spread and group.zeros:
            start, zeros = self.names.start, group.zeros
            short = f"shiftright({start}, {zeros})"
            by, others = [each for each in by if each != start], (*others, F.expr(short))
            constants.append(f"shiftleft({short}, {zeros}) AS {start}")
        kept = [] if keeps_groups(rows) else by
        return rows.groupBy(*by, *others).agg(*(F.expr(text) for text in (*kept, *constants, *computed)))

    def shown_as(self, node: Term, rows: DataFrame) -> DataFrame:
        """Treat rows as those of other nodes."""
        column = self.names.node
        return rows if node == Column(column) else rows.withColumn(column, F.expr(self.words.term(node)))

    def show(self, show: Show, rows: DataFrame, *, keeps: Sequence[str] = ()) -> DataFrame:
        """Lower the states, name the windows, and give columns their names and types; but see `noted`.

        The columns to keep, `keeps`, come first.
        """
        names = show.names if show.hides else [several or ("",) for several in show.names]
        if all(len(several) == 1 for several in names):
            # Without ANSI mode, Spark does not know that there is always a name.
            listed = ", ".join(text_of(name) for [name] in names)
            window_id = f"coalesce(element_at(array({listed}), {show.node} + 1), '')"
        else:
            lists = ", ".join(f"array({', '.join(map(text_of, several))})" for several in names)
            every = f"explode(element_at(array({lists}), {show.node} + 1)) AS {self.names.entry}"
            rows = rows.selectExpr("*", every)
            window_id = self.names.entry
        ends = (timestamp(self.words.term(each), self.types.time) for each in (show.start, show.end))
        values = map(self._value, show.values, self.types.results)
        keys = (self.as_shown(key, field) for key, field in zip(show.keys, self.types.keys, strict=True))
        results = (result.name for result in self.types.results)
        labels = [*(field.name for field in self.types.keys), *WINDOW_COLUMNS, *results]
        columns = zip((*keys, window_id, *ends, *values), labels, strict=True)
        shown = [f"{each} AS {quoted(name)}" if isinstance(each, str) else each.alias(name) for each, name in columns]
        shown = [*keeps, *shown]
        texts = [each for each in shown if isinstance(each, str)]
        if texts == shown:
            return rows.selectExpr(*texts)
        return rows.select(*(F.expr(each) if isinstance(each, str) else each for each in shown))

    def noted(self, shown: DataFrame) -> DataFrame:
        """Note in the metadata of a result its windows, and the metadata that the events had on their keys."""
        notes = {key.name: key.metadata for key in self.types.keys if key.metadata and self._as_bytes(key)}
        if not notes:
            return note_windows(self.query, shown)
        notes["window_id"] = notes_of(self.query)
        return shown.select(*(F.col(quoted(name)).alias(name, metadata=notes.get(name)) for name in shown.columns))

    def _value(self, value: Term, result: ResultColumn) -> str | SparkColumn:
        """Return a value in the type that the user's own query gives it; for numbers, with fewer calls into Spark."""
        text = self.words.term(value)
        if isinstance(value, Column):
            return text
        if isinstance(result.type, NumericType):
            return f"CAST({text} AS {result.type.simpleString()})"
        return F.expr(text).cast(result.type)

    @property
    def _needs_fractions(self) -> bool:
        """Say whether an event's time within a second matters, to windows or to a state."""
        # A calendar's edges are at whole seconds.
        own = (part for each in self.query.windows for part in each.parts if part.clock is None)
        lengths = (length for window in own for length in (window.range, window.slide, window.offset))
        by_time = (
            self.keeps_panes
            or self.query.has_sessions
            or any(each.function.by_time for each in self.query.parsed_aggregates)
        )
        return by_time or any(length % SECOND for length in lengths)

    def as_grouped(self, sql: str, key: StructField) -> str:
        """Return a key in the form in which it is shuffled and grouped."""
        return f"CAST({sql} AS BINARY)" if self._as_bytes(key) else sql

    def with_grouped_keys(self, rows: DataFrame) -> DataFrame:
        """Turn keys that are still text into bytes."""
        keys = zip(self.names.keys, self.types.keys, strict=True)
        texts = {name: F.expr(self.as_grouped(name, field)) for name, field in keys if self._as_bytes(field)}
        return rows.withColumns(texts) if texts else rows

    def as_shown(self, sql: str, key: StructField) -> str:
        """Return a key that was grouped in the form that users know."""
        return f"CAST({sql} AS STRING)" if self._as_bytes(key) else sql

    def _as_bytes(self, key: StructField) -> bool:
        """Say whether a key is shuffled and grouped as bytes: text that is equal only if its bytes are."""
        return self.text_as_bytes and key.dataType == StringType()


def with_columns(events: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """Add columns to events, given as expressions, before anything else is computed."""
    with spark_says("Spark cannot read a condition or a key"):
        return events.withColumns({name: F.expr(sql) for name, sql in columns.items()}) if columns else events


def _unused_prefix(columns: Sequence[str]) -> str:
    prefix = "__fw_"
    while any(column.lower().startswith(prefix) for column in columns):
        prefix += "_"
    return prefix
