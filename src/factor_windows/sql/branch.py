"""One SELECT with a window: what it groups, aggregates and shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from factor_windows.algebra.calendar import AnyWindow
from factor_windows.algebra.session import Session
from factor_windows.functions.aggregate import Aggregate, aggregate_inside, is_call
from factor_windows.functions.expression import Expression, conjuncts, name_fields, sql_of, tree_of
from factor_windows.functions.table import Kind
from factor_windows.query import WINDOW_COLUMNS
from factor_windows.sql.buckets import Bucket, find_bucket
from factor_windows.sql.dialects import TIMESTAMP_BY
from factor_windows.sql.grouping import for_each_set
from factor_windows.sql.located_error import errors_at, located_error, ungrouped
from factor_windows.sql.names import Among, Tables, detach, field_of, strip_alias
from factor_windows.sql.resolve import ASSUMED, BUCKET, grouped, shown_name, table_call
from factor_windows.sql.source import source_of
from factor_windows.sql.windows import (
    UNITS,
    WINDOW_CALLS,
    call_name,
    grouped_windows,
    table_window,
    time_of,
    window_column,
    window_mentions,
)

_AZURE_FUNCTIONS = {"stdev": "stddev_samp", "stdevp": "stddev_pop", "var": "var_samp", "varp": "var_pop"}
_SPARK_UNITS = {"dd": "day", "d": "day", "hh": "hour", "mi": "minute", "n": "minute", "ss": "second", "s": "second"}
_NOT_INSIDE = {"match": "MATCH_RECOGNIZE", "sample": "TABLESAMPLE", "pivots": "PIVOT"}
_NO_WINDOW = "a set of keys has no window; every one of GROUPING SETS needs it"


@dataclass(frozen=True, slots=True)
class Branch:
    """One SELECT: its windows, and trees that still contain the aggregates and the window's own columns."""

    source: str
    time: str
    windows: tuple[AnyWindow, ...]
    keys: tuple[Expression, ...]
    where: exp.Expr | None
    having: exp.Expr | None
    columns: tuple[tuple[str, exp.Expr], ...]
    """Names and expressions over keys, the window's columns and aggregates."""
    events: tuple[exp.Expr, exp.Expr]
    """The source and the time in a canonical form, the same for all ways to write them."""
    key_forms: tuple[exp.Expr, ...]
    """The keys in this form."""
    absent: tuple[str, ...] = ()
    """Names that were read as aliases, which is correct if the events have no such columns."""
    note: str = ""
    """How the result differs from Spark's."""

    @property
    def shares(self) -> tuple[object, ...]:
        """Return the properties that branches of one query must have in common."""
        shown = [tree for _, tree in self.columns] + ([self.having] if self.having else [])
        kinds = {_read(held.this).kind for tree in shown for held in tree.find_all(Held)}
        return *self.events, frozenset(self.key_forms), any(kind >= Kind.COUNTED for kind in kinds)


class Held(exp.Paren):
    """An aggregate inside an expression, kept whole until branches are merged."""


def windows_in(select: exp.Select) -> bool:
    """Say whether a SELECT, in which names are written out, aggregates over windows."""
    return _calls_window(select) or BUCKET in select.meta


def _calls_window(select: exp.Select) -> bool:
    return table_call(select) is not None or any(call_name(item) in WINDOW_CALLS for item in grouped(select))


def read_branches(select: exp.Select, *, dialect: str, time: str | None, tables: Tables) -> list[Branch]:
    """Take a SELECT apart; one with GROUPING SETS, ROLLUP or CUBE becomes a branch for each set of keys."""
    for part, name in _NOT_INSIDE.items():
        if select.args.get(part):
            raise located_error(select, f"{name} inside a window aggregate is not supported; write it around the query")
    whole = detach(select)
    for nested in whole.find_all(exp.Select):
        if nested is not whole and _calls_window(nested):
            raise located_error(
                nested, "windows over the result of other windows are not supported; run them in two steps"
            )
    if dialect == "azure":
        _call_as_spark(whole)
    return [_Reader(each, time, tables).branch() for each in for_each_set(whole, tables)]


class _Reader:
    def __init__(self, select: exp.Select, time: str | None, tables: Tables) -> None:
        self.select, self.given_time, self.tables = select, time, tables
        self.mentions = window_mentions(None)
        self.windows: list[AnyWindow] = []
        self.bucket: Bucket | None = None
        self.buckets = Among(tables, [])
        self.keys = Among(tables, [])
        self.names: list[str] = []

    def branch(self) -> Branch:
        select = self.select
        keys, time = self._grouped()
        keys = [key for key in keys if self._window_column(key) is None]
        for item in keys:
            inner = aggregate_inside(item)
            if inner:
                raise located_error(item, f"GROUP BY has the aggregate {inner}; group by columns")
        self._check_projection()
        where = self._of_events(select.args["where"].this, time) if select.args.get("where") else None
        having = select.args["having"].this if select.args.get("having") else None
        columns = [(shown_name(column), strip_alias(column)) for column in select.expressions]
        trees = [time, *keys, *(tree for tree in (where, having) if tree), *(tree for _, tree in columns)]
        source = source_of(
            select, trees, where, tables=self.tables, is_window=lambda node: self._window_column(node) is not None
        )
        time, *keys = [source.rename(tree) for tree in (time, *keys)]
        self.buckets = Among(self.tables, [source.rename(self.bucket.item)] if self.bucket else [])
        self.keys, self.names = Among(self.tables, keys), _key_names(keys)
        shown = [(name, self._rewrite(source.rename(tree))) for name, tree in columns]
        return Branch(
            source=source.sql,
            time=sql_of(time),
            windows=tuple(self.windows),
            keys=tuple(Expression(sql_of(key), name) for key, name in zip(keys, self.names, strict=True)),
            where=source.rename(source.where) if source.where else None,
            having=self._rewrite(source.rename(having)) if having else None,
            columns=tuple(shown),
            events=(self.tables.form(source.tree), self.tables.form(time)),
            key_forms=self._forms(keys),
            absent=tuple(select.meta.get(ASSUMED, ())),
            note=self._note(where),
        )

    def _window_column(self, node: exp.Expr) -> exp.Expr | None:
        if self.bucket is not None:
            return self.bucket.shown.copy() if self.buckets.find(node) is not None else None
        return window_column(node, self.mentions)

    def _note(self, where: exp.Expr | None) -> str:
        """Describe the error for rows of a null bucket, unless WHERE excludes them anyway."""
        if self.bucket is None:
            return ""
        known = exp.Not(this=exp.Is(this=self.bucket.time.copy(), expression=exp.Null()))
        tests = conjuncts(sql_of(where)) if where is not None else ()
        if any(self.tables.form(tree_of(test)) == self.tables.form(known) for test in tests):
            return ""
        time = sql_of(self.bucket.time)
        return (
            f"a row whose {time} is null ends the query with an error, since Spark groups such rows as a bucket of "
            f"their own; WHERE {time} IS NOT NULL leaves them out"
        )

    def _forms(self, keys: list[exp.Expr]) -> tuple[exp.Expr, ...]:
        """Return the keys in a form to compare; if two differ only by case, case is significant."""
        forms = tuple(self.tables.form(key) for key in keys)
        exact = Tables(case_sensitive=True)
        return forms if len(set(forms)) == len(forms) else tuple(exact.form(key) for key in keys)

    def _grouped(self) -> tuple[list[exp.Expr], exp.Expr]:
        """Read GROUP BY, and the table of windows if there is one; return the keys and the time."""
        group = self.select.args.get("group")
        for part in ("all", "totals"):
            if group and group.args.get(part):
                raise located_error(
                    group, f"{part.upper()} is not supported in this form; list the keys, or write such as ROLLUP(a, b)"
                )
        items = list(group.expressions) if group else []
        table = table_call(self.select)
        if table is not None:
            return self._of_table(table, [item.unnest() for item in items])
        calls = [item for item in items if isinstance(item, exp.Anonymous) and call_name(item) in WINDOW_CALLS]
        if not calls:
            return self._of_bucket([item.unnest() for item in items])
        if len(calls) > 1:
            raise located_error(calls[1], "GROUP BY has two windows; write one SELECT for each, or WINDOWS(...)")
        self.windows = list(grouped_windows(calls[0]))
        if not self.windows:
            raise located_error(calls[0], "WINDOWS() has no window; write it such as WINDOWS('20 minutes', '1 hour')")
        self.mentions = window_mentions(calls[0])
        return [item.unnest() for item in items if item not in calls], self._time(calls[0])

    def _of_bucket(self, items: list[exp.Expr]) -> tuple[list[exp.Expr], exp.Expr]:
        """Read the first bucket of time as the window."""
        bucket = find_bucket(items, self.tables)
        if bucket is None:
            raise located_error(self.select.args.get("group") or self.select, _NO_WINDOW)
        self.bucket, self.windows, self.mentions = bucket, [bucket.window], {}
        self.buckets = Among(self.tables, [bucket.item])
        return [item for item in items if item is not bucket.item], bucket.time

    def _of_table(self, call: exp.Anonymous, keys: list[exp.Expr]) -> tuple[list[exp.Expr], exp.Expr]:
        """Read Flink's windows, which are a table with two more columns."""
        select = self.select
        relation, time, window = table_window(call)
        self.windows = [window]
        joins = select.args.get("joins")
        if joins:
            raise located_error(
                joins[0], f"a join with {call.name} is not supported; join before it in a view, or afterwards"
            )
        ends = [key for key in keys if isinstance(key, exp.Column) and key.name.lower().startswith("window_")]
        if {key.name.lower() for key in ends} - {"window_time"} != set(WINDOW_COLUMNS[1:]):
            raise located_error(
                select.args.get("group") or select,
                f"GROUP BY must have both window_start and window_end for {call.name}",
            )
        alias = select.args["from_"].this.alias
        select.set("from_", exp.From(this=exp.alias_(relation, alias, table=True) if alias else relation))
        for column in list(select.find_all(exp.Column)):
            if alias and column.table.lower() == alias.lower() and column.name.lower().startswith("window_"):
                column.set("table", None)
        return [key for key in keys if key not in ends], time

    def _of_events(self, where: exp.Expr, time: exp.Expr) -> exp.Expr:
        """Check that WHERE refers to events: System.Timestamp() is their time there, and no window is known yet."""

        def change(node: exp.Expr) -> exp.Expr:
            text = sql_of(node).lower() if isinstance(node, exp.Column | exp.Dot | exp.Anonymous) else ""
            if text in ("system.timestamp()", "system.timestamp"):
                return time.copy()
            if window_column(node, self.mentions) is not None:
                raise located_error(node, "the window is not known in WHERE; write the condition in HAVING")
            return node

        changed = where.transform(change)
        self.select.set("where", exp.Where(this=changed))
        return changed

    def _time(self, call: exp.Anonymous) -> exp.Expr:
        named = time_of(call)
        if named is not None:
            return named
        times: list[exp.Expr] = [
            table.meta[TIMESTAMP_BY] for table in self.select.find_all(exp.Table) if TIMESTAMP_BY in table.meta
        ]
        if len({sql_of(time) for time in times}) > 1:
            raise located_error(call, "the tables have different TIMESTAMP BY; windows need one time column")
        if times:
            return times[0]
        if self.given_time:
            return exp.column(self.given_time, quoted=True)
        raise located_error(
            call,
            "there is no time column; write TIMESTAMP BY ts after the table, "
            "or WINDOWS(ts, '20 minutes', ...), or give time='ts'",
        )

    def _check_projection(self) -> None:
        for column in self.select.expressions:
            stars = list(column.find_all(exp.Star))
            if stars and not any(star.parent and call_name(star.parent) for star in stars):
                raise located_error(column, "SELECT * does not fit a window aggregate; list the columns")

    def _rewrite(self, tree: exp.Expr) -> exp.Expr:
        """Replace keys and the window's own columns by columns of the computed result; keep aggregates unchanged."""

        def change(node: exp.Expr) -> exp.Expr:
            if is_call(node):
                return Held(this=node.copy())
            place = self.keys.find(node)
            if place is not None:
                return exp.column(self.names[place], quoted=True)
            window = self._window_column(node)
            if window is not None:
                return self._as_nullable_as_sparks(window)
            name_fields(node)
            if isinstance(node, exp.Column):
                return self._field(node)
            if isinstance(node, exp.Anonymous) and aggregate_inside(exp.Paren(this=exp.Anonymous(this=node.this))):
                _read(node)
            return node

        return tree.transform(change)

    def _as_nullable_as_sparks(self, window: exp.Expr) -> exp.Expr:
        """Make the struct of a window nullable if the window hops: Spark cannot know that every row then has one."""
        always = (each.is_tumbling or isinstance(each, Session) for each in self.windows)
        if not isinstance(window, exp.Anonymous) or all(always):
            return window
        known = exp.not_(exp.Is(this=exp.column(WINDOW_COLUMNS[0]), expression=exp.Null()))
        return exp.Case(ifs=[exp.If(this=known, true=window)])

    def _field(self, column: exp.Column) -> exp.Expr:
        found = self.keys.find_struct(column)
        if found is not None:
            place, _, fields = found
            return field_of(exp.column(self.names[place], quoted=True), fields)
        at: exp.Expr = column
        if "line" not in column.this.meta:
            named = (each for each in self.select.find_all(exp.Identifier) if each.name.lower() == column.name.lower())
            at = next(named, self.select)
        raise ungrouped(column, at)


def _call_as_spark(select: exp.Select) -> None:
    """Rename Azure's functions to Spark's, and distinguish the units of time in them from columns."""
    for call in list(select.find_all(exp.Anonymous)):
        name, first = call_name(call), next(iter(call.expressions), None)
        call.set("this", _AZURE_FUNCTIONS.get(name, call.this))
        if name.startswith("date") and isinstance(first, exp.Column):
            unit = first.name.lower()
            if unit in UNITS or unit in ("week", "month", "quarter", "year"):
                first.replace(exp.var(_SPARK_UNITS.get(unit, first.name)))


def _read(call: exp.Expr) -> Aggregate:
    with errors_at(call):
        return Aggregate.read(sql_of(call))


def _key_names(keys: Sequence[exp.Expr]) -> list[str]:
    """Name the keys in the intermediate result: a column by its own name, unless that is taken."""
    names: list[str] = []
    for number, key in enumerate(keys):
        name = key.name if isinstance(key, exp.Column) else ""
        taken = {*WINDOW_COLUMNS, *(other.lower() for other in names)}
        is_free = name and name.lower() not in taken and not name.lower().startswith(("value_", "key_"))
        names.append(name if is_free else f"key_{number}")
    return names
