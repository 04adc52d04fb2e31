"""One SELECT with a window: what it groups, aggregates and shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from sqlglot import exp

from factor_windows.algebra.window import Window
from factor_windows.errors import FactorWindowsError
from factor_windows.functions.aggregate import Aggregate, aggregate_inside, is_call
from factor_windows.functions.expression import name_fields, sql_of, tree_of
from factor_windows.functions.table import Kind
from factor_windows.query import WINDOW_COLUMNS
from factor_windows.sql.dialects import TIMESTAMP_BY
from factor_windows.sql.grouping import for_each_set
from factor_windows.sql.located_error import located_error
from factor_windows.sql.names import Among, Tables, column_of, detached, field_of, parts_of, unaliased
from factor_windows.sql.resolve import ASSUMED, leaves, shown_name, table_call
from factor_windows.sql.source import source_of
from factor_windows.sql.window_columns import call_texts, window_column
from factor_windows.sql.windows import UNITS, WINDOW_CALLS, call_name, grouped_windows, table_window, time_of

_AZURE_FUNCTIONS = {"stdev": "stddev_samp", "stdevp": "stddev_pop", "var": "var_samp", "varp": "var_pop"}
_SPARK_UNITS = {"dd": "day", "d": "day", "hh": "hour", "mi": "minute", "n": "minute", "ss": "second", "s": "second"}
_NOT_INSIDE = {"match": "MATCH_RECOGNIZE", "sample": "TABLESAMPLE", "pivots": "PIVOT"}
WINDOW_ID, WINDOW_START, WINDOW_END = WINDOW_COLUMNS


@dataclass(frozen=True, slots=True)
class Branch:
    """One SELECT: its windows, and trees that still hold the aggregates and the window's own columns."""

    source: str
    time: str
    windows: tuple[Window, ...]
    keys: tuple[str, ...]
    where: exp.Expr | None
    having: exp.Expr | None
    columns: tuple[tuple[str, exp.Expr], ...]
    """Names and expressions over keys, the window's columns and aggregates."""
    events: tuple[exp.Expr, exp.Expr]
    """The source and the time in a form that is the same for all ways to write them."""
    key_forms: tuple[exp.Expr, ...]
    """The keys in such a form."""
    absent: tuple[str, ...] = ()
    """Names that were taken for aliases, which is right if the events have no such columns."""

    @property
    def shares(self) -> tuple[object, ...]:
        """Return what branches of one query must have in common."""
        return *self.events, frozenset(self.key_forms), self._kind is Kind.HOLISTIC

    @property
    def _kind(self) -> Kind:
        shown = [tree for _, tree in self.columns] + ([self.having] if self.having else [])
        kinds = [_read(call).kind for tree in shown for call in calls_in(tree)]
        return max(kinds, default=Kind.OVERLAP_SAFE)


class Held(exp.Paren):
    """An aggregate inside an expression, kept whole until branches are merged."""


def calls_in(tree: exp.Expr) -> list[exp.Expr]:
    """List the aggregates that an expression holds."""
    return [held.this for held in tree.find_all(Held)]


def windows_in(select: exp.Select) -> bool:
    """Say whether a SELECT, in which names are written out, aggregates over windows."""
    group = select.args.get("group")
    items = [leaf for element in (group.expressions if group else ()) for leaf in leaves(element)]
    return table_call(select) is not None or any(call_name(item) in WINDOW_CALLS for item in items)


def read_branches(select: exp.Select, *, dialect: str, time: str | None, tables: Tables) -> list[Branch]:
    """Take a SELECT apart; one with GROUPING SETS, ROLLUP or CUBE is a branch for each set of keys."""
    for part, name in _NOT_INSIDE.items():
        if select.args.get(part):
            raise located_error(select, f"{name} inside a window aggregate is not supported; write it around the query")
    whole = detached(select)
    for nested in whole.find_all(exp.Select):
        if nested is not whole and windows_in(nested):
            raise located_error(
                nested, "windows over the result of other windows are not supported; run them in two steps"
            )
    return [_Reader(each, dialect, time, tables).branch() for each in for_each_set(whole, tables)]


class _Reader:
    def __init__(self, select: exp.Select, dialect: str, time: str | None, tables: Tables) -> None:
        self.select, self.dialect, self.given_time, self.tables = select, dialect, time, tables
        self.calls: dict[str, str] = {}
        """The window calls of GROUP BY as text, with the name of the function; none for Flink's, which are tables."""
        self.windows: list[Window] = []

    def branch(self) -> Branch:
        """Read it all."""
        select = self.select
        if self.dialect == "azure":
            _units_apart(select)
        keys, time, self.windows = self._grouped()
        keys = [key for key in keys if window_column(key, self.calls) is None]
        for item in keys:
            inner = aggregate_inside(item)
            if inner:
                raise located_error(item, f"GROUP BY has the aggregate {inner}; group by columns")
        self._check_projection()
        where = self._of_events(select.args["where"].this, time) if select.args.get("where") else None
        having = select.args["having"].this if select.args.get("having") else None
        columns = [(shown_name(column), unaliased(column)) for column in select.expressions]
        trees = [time, *keys, *([where] if where else []), *([having] if having else []), *(c for _, c in columns)]
        source = source_of(
            select, trees, where, tables=self.tables, is_window=lambda node: window_column(node, self.calls) is not None
        )
        time, *keys = [source.rename(tree) for tree in (time, *keys)]
        shown = [(name, self._rewritten(source.rename(tree), keys)) for name, tree in columns]
        kept = self._rewritten(source.rename(having), keys) if having else None
        return Branch(
            source=source.sql,
            time=sql_of(time),
            windows=tuple(self.windows),
            keys=tuple(map(sql_of, keys)),
            where=_prepared(source.rename(source.where), self.dialect) if source.where else None,
            having=kept,
            columns=tuple(shown),
            events=(self.tables.form(source.tree), self.tables.form(time)),
            key_forms=self._forms(keys),
            absent=tuple(select.meta.get(ASSUMED, ())),
        )

    def _forms(self, keys: list[exp.Expr]) -> tuple[exp.Expr, ...]:
        """Return the keys in a form to compare; where two differ only by case, case tells them apart."""
        forms = tuple(self.tables.form(key) for key in keys)
        exact = Tables(case_sensitive=True)
        return forms if len(set(forms)) == len(forms) else tuple(exact.form(key) for key in keys)

    def _grouped(self) -> tuple[list[exp.Expr], exp.Expr, list[Window]]:
        """Read GROUP BY, and the table of windows if there is one: the keys, the time, and the windows."""
        group = self.select.args.get("group")
        for part in ("grouping_sets", "cube", "rollup", "all", "totals"):
            if group and group.args.get(part):
                name = part.replace("_", " ").upper()
                raise located_error(
                    group, f"{name} is not supported in this form; list the keys, or write such as ROLLUP(a, b)"
                )
        items = list(group.expressions) if group else []
        table = table_call(self.select)
        if table is not None:
            return self._of_table(table, [item.unnest() for item in items])
        calls = [item for item in items if isinstance(item, exp.Anonymous) and call_name(item) in WINDOW_CALLS]
        if not calls:
            raise located_error(
                group or self.select, "a set of keys has no window; every one of GROUPING SETS needs it"
            )
        if len(calls) > 1:
            raise located_error(calls[1], "GROUP BY has two windows; write one SELECT for each, or WINDOWS(...)")
        windows = list(grouped_windows(calls[0]))
        if not windows:
            raise located_error(calls[0], "WINDOWS() has no window; write it such as WINDOWS('20 minutes', '1 hour')")
        self.calls = call_texts(calls[0])
        return [item.unnest() for item in items if item not in calls], self._time(calls[0]), windows

    def _of_table(self, call: exp.Anonymous, keys: list[exp.Expr]) -> tuple[list[exp.Expr], exp.Expr, list[Window]]:
        """Read Flink's windows, which are a table with two more columns."""
        select = self.select
        relation, time, window = table_window(call)
        joins = select.args.get("joins")
        if joins:
            raise located_error(
                joins[0], "a join with TUMBLE or HOP is not supported; join before it in a view, or afterwards"
            )
        ends = [key for key in keys if isinstance(key, exp.Column) and key.name.lower().startswith("window_")]
        if {key.name.lower() for key in ends} - {"window_time"} != {WINDOW_START, WINDOW_END}:
            raise located_error(
                select.args.get("group") or select,
                "GROUP BY must have both window_start and window_end for TUMBLE and HOP",
            )
        alias = select.args["from_"].this.alias
        select.set("from_", exp.From(this=exp.alias_(relation, alias, table=True) if alias else relation))
        for column in list(select.find_all(exp.Column)):
            if alias and column.table.lower() == alias.lower() and column.name.lower().startswith("window_"):
                column.set("table", None)
        return [key for key in keys if key not in ends], time, [window]

    def _of_events(self, where: exp.Expr, time: exp.Expr) -> exp.Expr:
        """Check that WHERE is about events: System.Timestamp() is their time there, and no window is known yet."""

        def change(node: exp.Expr) -> exp.Expr:
            text = sql_of(node).lower() if isinstance(node, exp.Column | exp.Dot | exp.Anonymous) else ""
            if text in ("system.timestamp()", "system.timestamp"):
                return time.copy()
            if window_column(node, self.calls) is not None:
                raise located_error(node, "the window is not known in WHERE; write the condition in HAVING")
            return node

        changed = where.transform(change)
        self.select.set("where", exp.Where(this=changed))
        return changed

    def _time(self, call: exp.Anonymous) -> exp.Expr:
        named = time_of(call)
        if named is not None:
            return named
        tables = [table.meta[TIMESTAMP_BY] for table in self.select.find_all(exp.Table) if TIMESTAMP_BY in table.meta]
        if len({sql_of(time) for time in tables}) > 1:
            raise located_error(call, "the tables have different TIMESTAMP BY; windows need one time column")
        if tables:
            first: exp.Expr = tables[0]
            return first
        if self.given_time:
            return exp.column(self.given_time, quoted=True)
        raise located_error(
            call,
            "there is no time column; write TIMESTAMP BY ts after the table, "
            "or WINDOWS(ts, '20 minutes', ...), or give time='ts'",
        )

    def _check_projection(self) -> None:
        for column in self.select.expressions:
            if column.find(exp.Star) and not any(
                star.parent and call_name(star.parent) for star in column.find_all(exp.Star)
            ):
                raise located_error(column, "SELECT * does not fit a window aggregate; list the columns")

    def _rewritten(self, tree: exp.Expr, keys: list[exp.Expr]) -> exp.Expr:
        """Put columns of the computed result in place of keys and of the window's own; aggregates stay as they are."""
        among = Among(self.tables, keys)
        names = key_names(tuple(map(sql_of, keys)))

        def change(node: exp.Expr) -> exp.Expr:
            if is_call(node):
                return Held(this=node.copy())
            place = among.find(node)
            if place is not None:
                return exp.column(names[place], quoted=True)
            window = window_column(node, self.calls)
            if window is not None:
                return self._as_nullable_as_sparks(window)
            name_fields(node)
            if isinstance(node, exp.Column):
                return self._field(node, among, names)
            if isinstance(node, exp.Anonymous) and aggregate_inside(exp.Paren(this=exp.Anonymous(this=node.this))):
                _read(node)
            return node

        return _prepared(tree, self.dialect).transform(change)

    def _as_nullable_as_sparks(self, window: exp.Expr) -> exp.Expr:
        """Make the struct of a window nullable if the window hops: Spark cannot know that each row has one then."""
        if not isinstance(window, exp.Anonymous) or all(each.is_tumbling for each in self.windows):
            return window
        known = exp.not_(exp.Is(this=exp.column(WINDOW_COLUMNS[0]), expression=exp.Null()))
        return exp.Case(ifs=[exp.If(this=known, true=window)])

    def _field(self, column: exp.Column, among: Among, names: Sequence[str]) -> exp.Expr:
        """Return a field of a key."""
        parts = parts_of(column)
        for size in range(len(parts) - 1, 0, -1):
            place = among.find(column_of(parts[:size]))
            if place is not None:
                return field_of(exp.column(names[place], quoted=True), parts[size:])
        raise located_error(
            column if "line" in column.this.meta else self._first(column.name),
            f"column {column.name!r} is neither grouped nor aggregated; add it to GROUP BY, or aggregate it",
        )

    def _first(self, name: str) -> exp.Expr:
        return next(
            (part for part in self.select.find_all(exp.Identifier) if part.name.lower() == name.lower()), self.select
        )


def _prepared(tree: exp.Expr, dialect: str) -> exp.Expr:
    """Call Azure's functions by their names in Spark."""
    if dialect != "azure":
        return tree

    def change(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Anonymous) and node.name.lower() in _AZURE_FUNCTIONS:
            return exp.Anonymous(this=_AZURE_FUNCTIONS[node.name.lower()], expressions=node.expressions)
        return node

    return tree.transform(change)


def _units_apart(select: exp.Select) -> None:
    """Tell the units of Azure's DATEADD, DATEDIFF and their like apart from columns."""
    for call in list(select.find_all(exp.Anonymous)):
        if call_name(call).startswith("date") and call.expressions and isinstance(call.expressions[0], exp.Column):
            unit = call.expressions[0].name
            if unit.lower() in UNITS or unit.lower() in ("week", "month", "quarter", "year"):
                call.expressions[0].replace(exp.var(_SPARK_UNITS.get(unit.lower(), unit)))


def _read(call: exp.Expr) -> Aggregate:
    try:
        return Aggregate.read(sql_of(call))
    except FactorWindowsError as mistake:
        raise located_error(call, str(mistake)) from None


@cache
def key_names(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Name the keys as they are shown in between: a column by its own name, unless that is taken."""
    names: list[str] = []
    for number, key in enumerate(keys):
        tree = tree_of(key)
        name = tree.name if isinstance(tree, exp.Column) else ""
        taken = {*WINDOW_COLUMNS, *(other.lower() for other in names)}
        free = name and name.lower() not in taken and not name.lower().startswith(("value_", "key_"))
        names.append(name if free else f"key_{number}")
    return tuple(names)
