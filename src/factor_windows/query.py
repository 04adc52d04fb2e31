"""A query: aggregates over many windows of one stream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from html import escape

from sqlglot import exp

from factor_windows.algebra.calendar import AnyWindow
from factor_windows.algebra.growing import Growing
from factor_windows.algebra.session import Session
from factor_windows.algebra.window import Window
from factor_windows.errors import QueryError
from factor_windows.functions.aggregate import Aggregate, aggregate_inside
from factor_windows.functions.expression import Expression, name_of, parse, quoted, same_expression, sql_of
from factor_windows.functions.formulas import Formulas
from factor_windows.functions.naming import full_name_of
from factor_windows.functions.table import Kind

WINDOW_COLUMNS = ("window_id", "window_start", "window_end")


@dataclass(frozen=True, slots=True, repr=False)
class Query:
    """The user's query: every aggregate, over every window, for every combination of keys.

    >>> from factor_windows.algebra.window import tumbling
    >>> query = Query(time="ts", keys=["device"], windows=[tumbling("20m")], aggregates=["min(t)", "avg(t) AS mean"])
    >>> query
    Query(time='ts', keys=[device], windows=[20 minutes], aggregates=[min(t), avg(t) AS mean])
    >>> query.columns
    ('device', 'window_id', 'window_start', 'window_end', 'min(t)', 'mean')
    """

    time: str
    windows: Sequence[AnyWindow]
    aggregates: Sequence[str]
    keys: Sequence[str] = ()
    where: str = ""
    """A condition in Spark SQL that selects the events."""
    having: str = ""
    """A condition over the result's columns that selects its rows."""
    output: Sequence[str] = ()
    """Expressions to show instead of the keys, the window's columns and the aggregates, written over these."""
    source: str = ""
    """The table or sub-query that the events come from, in SQL; `run` is given the events themselves."""
    outer: str = ""
    """The SQL applied to the result, which it calls {result}."""
    name: str = ""
    """The name of the result where several queries share a plan."""
    absent: Iterable[str] = ()
    """Names that the events' columns must not have, because the SQL was read assuming that they are aliases."""
    asked: Sequence[Sequence[int]] = ()
    """For each window, the positions of its aggregate calls; empty: every window has all of them."""
    window_names: tuple[str, ...] = field(init=False)
    """The windows' names in order; windows are equal whatever their names, but queries are not."""
    parsed_time: Expression = field(init=False, compare=False)
    parsed_keys: tuple[Expression, ...] = field(init=False, compare=False)
    parsed_aggregates: tuple[Aggregate, ...] = field(init=False, compare=False)
    """The aggregate calls to compute: the aggregates, or the calls inside them if some are expressions over calls."""
    formulas: tuple[Expression, ...] = field(init=False, compare=False)
    """The aggregates as expressions over the calls' columns; empty if they are the calls themselves."""
    parsed_output: tuple[Expression, ...] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        def keep(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        for part in ("windows", "aggregates", "keys", "output", "absent"):
            given = getattr(self, part)
            if not isinstance(given, str | Window | Growing | Session | Iterable):
                raise QueryError(f"{part} {given!r} is not a list")
            keep(part, (given,) if isinstance(given, str | Window | Growing | Session) else tuple(given))
        if not self.windows:
            raise QueryError("the query has no window; give at least one, such as tumbling('20 minutes')")
        if not self.aggregates:
            raise QueryError("the query has no aggregate; give at least one, such as 'min(temperature)'")
        for window in self.windows:
            if not isinstance(window, Window | Growing | Session):
                raise QueryError(
                    f"window {window!r} is not a window; tumbling(), hopping(), calendar(), cumulating() and session() "
                    "make one"
                )
        keep("asked", tuple(tuple(places) for places in self.asked))
        keep("window_names", tuple(window.name for window in self.windows))
        keep("parsed_time", _scalar("time", self.time))
        keep("parsed_keys", _name_apart([_scalar("key", key) for key in self.keys]))
        found = Formulas.read(self.aggregates, {key.sql: key.name for key in self.parsed_keys})
        keep("parsed_aggregates", found.calls)
        keep("formulas", found.shown)
        keep("parsed_output", tuple(_scalar("output", column, self.formulas) for column in self.output))
        if self.formulas and not self.output:
            before = (*(key.name for key in self.parsed_keys), *WINDOW_COLUMNS)
            keep("parsed_output", (*(Expression(quoted(name), name) for name in before), *self.formulas))
        for part in ("where", "having"):
            if getattr(self, part):
                keep(part, _scalar(part, getattr(self, part)).sql)
        self._check_windows()
        self._check_columns()

    def _parts(self, *names: str) -> dict[str, str | Sequence[str]]:
        """Return the parts of the query that differ from their defaults."""
        windows = [each.name if each.name == each.label else f"{each.name}: {each.label}" for each in self.windows]
        return {name: windows if name == "windows" else value for name in names if (value := getattr(self, name))}

    def __repr__(self) -> str:
        names = ("name", "time", "keys", "windows", "aggregates", "where", "having", "output", "source", "outer")
        parts = self._parts(*names).items()
        told = (
            f"{name}={value!r}" if isinstance(value, str) else f"{name}=[{', '.join(value)}]" for name, value in parts
        )
        return f"Query({', '.join(told)})"

    def _repr_html_(self) -> str:
        """Show the query in a notebook, as a small table."""
        parts = self._parts("time", "keys", "windows", "aggregates", "where", "having")
        cells = (
            f'<tr><th style="text-align:left">{name}</th><td style="text-align:left">'
            f"{'<br>'.join(map(escape, [value] if isinstance(value, str) else value))}</td></tr>"
            for name, value in parts.items()
        )
        return f"<table>{''.join(cells)}</table>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _check_windows(self) -> None:
        seen: dict[str, AnyWindow] = {}
        for window in self.windows:
            other = seen.setdefault(window.name, window)
            if other != window:
                raise QueryError(
                    f"the window name {window.name!r} is used twice, for {other.label} and for {window.label}; "
                    "give each window a name of its own"
                )

    def _check_columns(self) -> None:
        for key in self.parsed_keys:
            if same_expression(key.sql, self.parsed_time.sql):
                raise QueryError(f"key {key.sql!r} is also the time column; windows already group by time")
        for columns in (self.computed, self.columns):
            seen: set[str] = set()
            for column in columns:
                if column.lower() in seen:
                    raise _same_name(column)
                seen.add(column.lower())

    @property
    def has_sessions(self) -> bool:
        """Say whether any window is a session window."""
        return any(isinstance(window, Session) for window in self.windows)

    @property
    def computed(self) -> tuple[str, ...]:
        """List the columns that `having` and `output` see."""
        keys = (key.name for key in self.parsed_keys)
        return (*keys, *WINDOW_COLUMNS, *(aggregate.name for aggregate in self.parsed_aggregates))

    @property
    def columns(self) -> tuple[str, ...]:
        """List the columns of the result."""
        return tuple(column.name for column in self.parsed_output) or self.computed

    @property
    def shown_aggregates(self) -> tuple[str, ...]:
        """List the aggregates' names in the result; SQL generates names for intermediate columns."""
        computed = {each.name for each in self.parsed_aggregates}
        shown = (
            each.name
            for each in self.parsed_output
            if any(column.name in computed for column in each.tree.find_all(exp.Column))
        )
        return tuple(shown) or tuple(each.name for each in self.parsed_aggregates)

    @property
    def shown_keys(self) -> tuple[str, ...]:
        """List the keys' names in the result, or the keys' expressions for keys that it does not show."""
        if not self.output:
            return tuple(key.name for key in self.parsed_keys)
        shown = {each.tree.name: each.name for each in self.parsed_output if isinstance(each.tree, exp.Column)}
        return tuple(shown.get(key.name, key.sql) for key in self.parsed_keys)

    @property
    def kept(self) -> str:
        """Return `having` as a condition over the computed columns."""
        return _scalar("having", self.having, self.formulas).sql if self.having else ""

    @property
    def asked_keys(self) -> tuple[str, ...]:
        """List the keys to pass to Spark: as the user wrote them, unless expressions refer to their names."""
        return _aliased(self.parsed_keys) if self.formulas else tuple(self.keys)

    @property
    def asked_aggregates(self) -> tuple[str, ...]:
        """List the aggregate calls to pass to Spark."""
        return _aliased(self.parsed_aggregates) if self.formulas else tuple(self.aggregates)

    @property
    def bare(self) -> Query:
        """Return the query with its aggregate calls only, without anything computed from them."""
        calls = self.asked_aggregates
        return replace(self, keys=self.asked_keys, aggregates=calls, having="", output=(), outer="")

    @property
    def kind(self) -> Kind:
        """Return the kind of the strictest function, which decides how the query may share work."""
        return max(aggregate.kind for aggregate in self.parsed_aggregates)

    @property
    def names(self) -> dict[AnyWindow, tuple[str, ...]]:
        """Map each distinct window to the names under which its results are shown.

        >>> from factor_windows.algebra.window import tumbling
        >>> twice = [tumbling("60m", name="hourly"), tumbling("1 hour")]
        >>> Query(time="ts", windows=twice, aggregates=["count(*)"]).names
        {Window(range=3600000000, slide=3600000000, offset=0, name='hourly', clock=None): ('hourly', '1 hour')}
        """
        merged: dict[AnyWindow, dict[str, None]] = {}
        for window in self.windows:
            merged.setdefault(window, {})[window.name] = None
        return {window: tuple(names) for window, names in merged.items()}


def _same_name(column: str) -> QueryError:
    return QueryError(f"the result would have two columns named {column!r}; give one of them another name with AS")


def _name_apart(keys: Iterable[Expression]) -> tuple[Expression, ...]:
    """Rename a cast of a key that has the key's name: Spark gives both the same name, and shows them so."""
    found: dict[str, Expression] = {}
    for key in keys:
        is_taken = key.name.lower() in found and key.name == name_of(key.tree)
        name = full_name_of(key.tree) if is_taken else key.name
        if name.lower() in found:
            raise _same_name(name)
        found[name.lower()] = Expression(key.sql, name)
    return tuple(found.values())


def _aliased(columns: Iterable[Expression | Aggregate]) -> tuple[str, ...]:
    return tuple(f"{column.sql} AS {quoted(column.name)}" for column in columns)


def _scalar(what: str, text: str, formulas: Iterable[Expression] = ()) -> Expression:
    """Read an expression, replacing the names of formulas in it by the formulas."""
    tree, alias = parse(text, what=what, error=QueryError)
    inner = aggregate_inside(tree)
    if inner:
        raise QueryError(f"{what} {text!r} has the aggregate {inner!r}; aggregates go into `aggregates`")
    name = alias or name_of(tree)
    meanings = {each.name.lower(): each for each in formulas}

    def change(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in meanings:
            return exp.paren(meanings[node.name.lower()].tree)
        return node

    return Expression(sql=sql_of(tree.transform(change) if meanings else tree), name=name)
