"""What batch and streams share: the columns of a run, the events that are read, and the result as users expect it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, NumericType, StringType, StructField

from factor_windows.engines.spark_words import SparkWords
from factor_windows.functions.guards import in_order
from factor_windows.physical.steps import Explode, Filter, Group, Project, Scan, Show, Step
from factor_windows.physical.target import Names
from factor_windows.physical.terms import Column, Term
from factor_windows.query import WINDOW_COLUMNS, Query
from factor_windows.spark.absent import check_absent
from factor_windows.spark.messages import spark_says
from factor_windows.spark.nullability import text_of
from factor_windows.spark.result import WINDOW_NAMES
from factor_windows.spark.types import Types, microseconds, timestamp, types_of

SECOND = 1_000_000
"""In microseconds."""


class SparkColumns:
    """The columns of one run: their names, and what Spark says about types.

    Columns are written as SQL text. A call into Spark costs Python a millisecond or so, and an expression built piece
    by piece takes hundreds of them.
    """

    def __init__(self, query: Query, events: DataFrame, *, text_as_bytes: bool = False, earlier: bool = False) -> None:
        """With `text_as_bytes`, keys that are text are moved and grouped as bytes, which takes a third less time.

        Spark's first, quick hash table takes text, not bytes, and is slower than its second one where text and time
        make many groups. `earlier` lays states out as an earlier version did, whose checkpoint goes on.
        """
        check_absent(query, events)
        self.query, self.session, self.text_as_bytes = query, events.sparkSession, text_as_bytes
        self.names = Names.of(query, _unused_prefix(events))
        self.types: Types = types_of(query, events, self.names.prefix, earlier=earlier)
        self.words = SparkWords(self.names)

    def scan(self, scan: Scan, events: DataFrame) -> DataFrame:
        """Add the keys and the time in microseconds; events without a time fall out, as with Spark's window()."""
        keys = {
            name: F.expr(f"CAST({sql} AS BINARY)" if self._as_bytes(field) else sql)
            for (name, sql), field in zip(scan.keys, self.types.keys, strict=True)
        }
        # A time that cannot be null spares Spark the null checks that it would otherwise add to every level.
        micros = microseconds(scan.time, self.types.time, fractions=self._needs_fractions)
        time = F.expr(f"coalesce({micros}, 0L)")
        # The condition goes first: the time need not be one where it does not hold.
        known = events.where(in_order(scan.where)) if scan.where else events
        return known.where(f"({scan.time}) IS NOT NULL").withColumns({**keys, scan.column: time})

    def row(self, step: Step, rows: DataFrame) -> DataFrame:
        """Take a step that looks at each row by itself."""
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

    def group(self, group: Group, rows: DataFrame, by: Sequence[str]) -> DataFrame:
        """Group rows, and return the columns that they are grouped by, the constants and the aggregates."""
        constants = [f"{self.words.term(term)} AS {name}" for name, term in group.constants]
        computed = [f"{sql.text} AS {name}" for name, sql in group.aggregates]
        kept = [] if self._keeps_groups else by
        return rows.groupBy(*by).agg(*(F.expr(text) for text in (*kept, *constants, *computed)))

    @cached_property
    def _keeps_groups(self) -> bool:
        """Say whether Spark adds the columns that rows are grouped by to a result, as a setting has it."""
        return self.session.conf.get("spark.sql.retainGroupColumns", "true") == "true"

    def show(self, show: Show, rows: DataFrame) -> DataFrame:
        """Lower the states, name the windows, and give columns their names and types."""
        names = [several or ("",) for several in show.names]
        if all(len(several) == 1 for several in names):
            # Without ANSI mode Spark does not know that there is always one.
            listed = ", ".join(text_of(name) for [name] in names)
            window_id = F.expr(f"coalesce(element_at(array({listed}), {show.node} + 1), '')")
        else:
            lists = ", ".join(f"array({', '.join(map(text_of, several))})" for several in names)
            every = f"explode(element_at(array({lists}), {show.node} + 1)) AS {self.names.entry}"
            rows = rows.selectExpr("*", every)
            window_id = F.col(self.names.entry)
        noted = {WINDOW_NAMES: list(dict.fromkeys(self.query.window_names))}
        ends = (F.expr(timestamp(self.words.term(each), self.types.time)) for each in (show.start, show.end))
        values = (
            F.col(value.name) if isinstance(value, Column) else self._value(value, result.type)
            for value, result in zip(show.values, self.types.results, strict=True)
        )
        keys = (
            F.col(key).cast(field.dataType).alias(field.name, metadata=field.metadata)
            if self._as_bytes(field)
            else F.col(key)
            for key, field in zip(show.keys, self.types.keys, strict=True)
        )
        columns = [*keys, window_id.alias("window_id", metadata=noted), *ends, *values]
        results = (result.name for result in self.types.results)
        labels = [*(field.name for field in self.types.keys), *WINDOW_COLUMNS, *results]
        return rows.select(*(column.alias(name) for column, name in zip(columns, labels, strict=True)))

    def _value(self, value: Term, type: DataType) -> SparkColumn:
        """Return a value as the type that the user's own query gives it; numbers in fewer calls into Spark."""
        text = self.words.term(value)
        if isinstance(type, NumericType):
            return F.expr(f"CAST({text} AS {type.simpleString()})")
        return F.expr(text).cast(type)

    @property
    def _needs_fractions(self) -> bool:
        """Say whether it matters at which time within a second an event is: to windows, or to a state."""
        # A calendar's edges are at whole seconds.
        own = (part for each in self.query.windows for part in each.parts if part.clock is None)
        lengths = (length for window in own for length in (window.range, window.slide, window.offset))
        by_time = any(each.function.by_time for each in self.query.parsed_aggregates)
        return by_time or any(length % SECOND for length in lengths)

    def _as_bytes(self, key: StructField) -> bool:
        """Say whether a key is moved and grouped as bytes: text that is equal only where its bytes are."""
        return self.text_as_bytes and key.dataType == StringType()


def with_columns(events: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """Compute columns of events, given as expressions, before anything else."""
    with spark_says("Spark cannot read a condition or a key"):
        return events.withColumns({name: F.expr(sql) for name, sql in columns.items()}) if columns else events


def _unused_prefix(events: DataFrame) -> str:
    prefix = "__fw_"
    while any(column.lower().startswith(prefix) for column in events.columns):
        prefix += "_"
    return prefix
