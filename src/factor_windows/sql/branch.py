"""One SELECT with a window: what it groups, aggregates and shows; and several of them as one query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from sqlglot import exp, parse_one

from factor_windows.aggregates import Aggregate, aggregate_inside, filtered
from factor_windows.errors import FactorWindowsError
from factor_windows.expressions import VerbatimSpark, name_of, quoted, sql_of
from factor_windows.functions import FUNCTIONS, Kind
from factor_windows.query import WINDOW_COLUMNS, Query
from factor_windows.sql.dialects import TIMESTAMP_BY
from factor_windows.sql.grouping import for_each_set, grouped
from factor_windows.sql.trouble import trouble
from factor_windows.sql.windows import (
    TABLE_CALLS,
    UNITS,
    WINDOW_CALLS,
    call_name,
    grouped_windows,
    table_window,
    time_of,
)
from factor_windows.window import Window

_AZURE_FUNCTIONS = {"stdev": "stddev_samp", "stdevp": "stddev_pop", "var": "var_samp", "varp": "var_pop"}
_SPARK_UNITS = {"dd": "day", "d": "day", "hh": "hour", "mi": "minute", "n": "minute", "ss": "second", "s": "second"}
_NOT_INSIDE = {
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "distinct": "SELECT DISTINCT",
    "qualify": "QUALIFY",
    "windows": "WINDOW",
    "laterals": "LATERAL VIEW",
    "pivots": "PIVOT",
    "match": "MATCH_RECOGNIZE",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "sample": "TABLESAMPLE",
}
_AT_THE_END = {"order", "limit", "offset"}
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

    @property
    def shares(self) -> tuple[object, ...]:
        """Return what branches of one query must have in common."""
        keys = frozenset(fold(key) for key in self.keys)
        return fold(self.source), fold(self.time), keys, self._kind is Kind.HOLISTIC

    @property
    def _kind(self) -> Kind:
        shown = [tree for _, tree in self.columns] + ([self.having] if self.having else [])
        kinds = [_read(call).kind for tree in shown for call in calls_in(tree)]
        return max(kinds, default=Kind.OVERLAP_SAFE)


def windows_in(select: exp.Select) -> bool:
    """Say whether a SELECT aggregates over windows."""
    items = [_by_name(item, select) for item in grouped(select)]
    return _table_call(select) is not None or any(call_name(item) in WINDOW_CALLS for item in items)


def read_branches(select: exp.Select, *, dialect: str, time: str | None) -> list[Branch]:
    """Take a SELECT apart; one with GROUPING SETS, ROLLUP or CUBE is a branch for each set of keys."""
    outermost = not isinstance(select.parent, exp.Query | exp.CTE | exp.Subquery)
    for part, name in _NOT_INSIDE.items():
        if select.args.get(part) and not (part in _AT_THE_END and outermost):
            raise trouble(select, f"{name} inside a window aggregate is not supported; write it around the query")
    return [_Reader(each, dialect, time).branch() for each in for_each_set(_detached(select))]


def _detached(select: exp.Select) -> exp.Select:
    """Copy a SELECT with the WITH of all that is around it, so that its tables still mean the same."""
    copied = select.copy()
    ctes: list[exp.Expr] = []
    around: list[exp.Expr] = [select]
    while (above := around[-1].parent) is not None:
        around.append(above)
        with_ = above.args.get("with_")
        if with_ is not None:
            steps = with_.expressions
            own_step = next((place for place, cte in enumerate(steps) if any(cte is part for part in around)), None)
            ctes = [cte.copy() for cte in steps[:own_step]] + ctes
    if ctes:
        own = copied.args.get("with_")
        copied.set("with_", exp.With(expressions=[*ctes, *(own.expressions if own else [])]))
    return copied


class _Reader:
    def __init__(self, select: exp.Select, dialect: str, time: str | None) -> None:
        self.select = select
        self.dialect = dialect
        self.given_time = time
        self.calls: dict[str, str] = {}
        """The window calls of GROUP BY as text, with the name of the function; none for Flink's, which are tables."""

    def branch(self) -> Branch:
        select = self.select
        if self.dialect == "azure":
            _units_apart(select)
        group = select.args.get("group")
        table_call = _table_call(select)
        for part in ("grouping_sets", "cube", "rollup", "all", "totals"):
            if group and group.args.get(part):
                name = part.replace("_", " ").upper()
                raise trouble(
                    group, f"{name} is not supported in this form; list the keys, or write such as ROLLUP(a, b)"
                )
        items = [_by_name(item, select) for item in (group.expressions if group else [])]
        calls = [item for item in items if isinstance(item, exp.Anonymous) and call_name(item) in WINDOW_CALLS]
        keys = [item.unnest() for item in items if item not in calls]
        if table_call is not None:
            relation, time, window = table_window(table_call)
            windows = [window]
            self._check_no_joins()
            ends = [key for key in keys if isinstance(key, exp.Column) and key.name.lower().startswith("window_")]
            if {key.name.lower() for key in ends} - {"window_time"} != {WINDOW_START, WINDOW_END}:
                raise trouble(group or select, "GROUP BY must have both window_start and window_end for TUMBLE and HOP")
            keys = [key for key in keys if key not in ends]
            alias = self.select.args["from_"].this.alias
            select.set("from_", exp.From(this=exp.alias_(relation, alias, table=True) if alias else relation))
            for column in list(select.find_all(exp.Column)):
                if alias and column.table.lower() == alias.lower() and column.name.lower().startswith("window_"):
                    column.set("table", None)
        else:
            if not calls:
                raise trouble(group or select, "a set of keys has no window; every one of GROUPING SETS needs it")
            if len(calls) > 1:
                raise trouble(calls[1], "GROUP BY has two windows; write one SELECT for each, or WINDOWS(...)")
            windows = list(grouped_windows(calls[0]))
            if not windows:
                raise trouble(calls[0], "WINDOWS() has no window; write it such as WINDOWS('20 minutes', '1 hour')")
            time = self._time(calls[0])
            self.calls = {sql_of(calls[0]).lower().replace("`", ""): call_name(calls[0])}
        keys = [key for key in keys if self._window_column(key) is None]
        for item in keys:
            inner = aggregate_inside(item)
            if inner:
                raise trouble(item, f"GROUP BY has the aggregate {inner}; group by columns")
        self._check_projection()
        where = select.args["where"].this if select.args.get("where") else None
        having = select.args["having"].this if select.args.get("having") else None
        columns = [(_shown_name(column), _unaliased(column)) for column in select.expressions]
        where = self._of_events(where, time) if where else None
        having = self._with_shown(having, dict(columns)) if having else None
        trees = [time, *keys, *([where] if where else []), *([having] if having else []), *(c for _, c in columns)]
        source, where, renamed = self._source(trees, where)
        time, *keys = [renamed(tree) for tree in (time, *keys)]
        key_texts = tuple(sql_of(key) for key in keys)
        shown = [(name, self._rewritten(renamed(tree), key_texts)) for name, tree in columns]
        kept = self._rewritten(renamed(having), key_texts) if having else None
        if not any(calls_in(tree) for tree in (*(tree for _, tree in shown), *([kept] if kept else []))):
            raise trouble(select, "there is no aggregate; SELECT at least one, such as min(temperature)")
        return Branch(
            source=source,
            time=sql_of(time),
            windows=tuple(windows),
            keys=key_texts,
            where=_prepared(renamed(where), self.dialect) if where else None,
            having=kept,
            columns=tuple(shown),
        )

    def _of_events(self, where: exp.Expr, time: exp.Expr) -> exp.Expr:
        """Check that WHERE is about events: System.Timestamp() is their time there, and no window is known yet."""

        def change(node: exp.Expr) -> exp.Expr:
            if fold(sql_of(node)) in ("system.timestamp()", "system.timestamp"):
                return time.copy()
            if self._window_column(node) is not None:
                raise trouble(node, "the window is not known in WHERE; write the condition in HAVING")
            return node

        changed = where.transform(change)
        self.select.set("where", exp.Where(this=changed))
        return changed

    def _with_shown(self, having: exp.Expr, shown: dict[str, exp.Expr]) -> exp.Expr:
        """Put what the SELECT list shows in the place of its aliases, which HAVING may use."""
        named = {name.lower(): tree for name, tree in shown.items() if tree.find(exp.Anonymous)}

        def change(node: exp.Expr) -> exp.Expr:
            plain = isinstance(node, exp.Column) and not node.table and not node.find_ancestor(exp.Anonymous)
            return exp.paren(named[node.name.lower()].copy()) if plain and node.name.lower() in named else node

        return having.transform(change)

    def _time(self, call: exp.Anonymous) -> exp.Expr:
        named = time_of(call)
        if named is not None:
            return named
        tables = [table.meta[TIMESTAMP_BY] for table in self.select.find_all(exp.Table) if TIMESTAMP_BY in table.meta]
        if len({sql_of(time) for time in tables}) > 1:
            raise trouble(call, "the tables have different TIMESTAMP BY; windows need one time column")
        if tables:
            first: exp.Expr = tables[0]
            return first
        if self.given_time:
            return exp.column(self.given_time, quoted=True)
        raise trouble(
            call,
            "there is no time column; write TIMESTAMP BY ts after the table, "
            "or WINDOWS(ts, '20 minutes', ...), or give time='ts'",
        )

    def _check_no_joins(self) -> None:
        joins = self.select.args.get("joins")
        if joins:
            raise trouble(
                joins[0], "a join with TUMBLE or HOP is not supported; join before it in a view, or afterwards"
            )

    def _check_projection(self) -> None:
        for column in self.select.expressions:
            if column.find(exp.Star) and not any(
                star.parent and call_name(star.parent) for star in column.find_all(exp.Star)
            ):
                raise trouble(column, "SELECT * does not fit a window aggregate; list the columns")
            for what, name in ((exp.Window, "OVER (...)"), (exp.Query, "a sub-query")):
                found = column.find(what)
                if found is not None:
                    raise trouble(column, f"{name} in the SELECT list is not supported; write it around the query")

    def _source(
        self, trees: list[exp.Expr], where: exp.Expr | None
    ) -> tuple[str, exp.Expr | None, Callable[[exp.Expr], exp.Expr]]:
        """Return what the events come from, what is left of WHERE, and how columns are then called."""
        from_ = self.select.args.get("from_")
        if from_ is None:
            raise trouble(self.select, "there is no FROM; name the table that the events come from")
        table = from_.this
        known = {cte.alias.lower() for cte in (self.select.args.get("with_") or exp.With()).expressions}
        simple = _is_plain(table) and not self.select.args.get("joins") and table.name.lower() not in known
        if simple and not (where and where.find(exp.Query)):
            own = {table.alias_or_name.lower(), table.name.lower()}
            bare = exp.Table(**{part: table.args.get(part) for part in ("this", "db", "catalog")})
            return sql_of(bare), where, lambda tree: _unqualified(tree, own)
        for nested in self.select.find_all(exp.Select):
            if nested is not self.select and windows_in(nested):
                raise trouble(
                    nested, "windows over the result of other windows are not supported; run them in two steps"
                )
        columns: dict[str, exp.Column] = {}
        names: dict[str, str] = {}
        for tree in trees:
            for column in tree.find_all(exp.Column):
                if self._window_column(column) is None and column.find_ancestor(exp.Query) in (None, self.select):
                    text = sql_of(column).lower()
                    columns.setdefault(text, column)
                    name = column.name
                    while name.lower() in {taken.lower() for other, taken in names.items() if other != text}:
                        name = f"{column.table}_{name}" if column.table else f"{name}_"
                    names.setdefault(text, name)
        listed = [exp.alias_(column.copy(), names[text], quoted=True) for text, column in columns.items()]
        inner = exp.select(*(listed or [exp.alias_(exp.Literal.number(1), "one")]))
        for part in ("with_", "from_", "joins", "where"):
            if self.select.args.get(part):
                value = self.select.args[part]
                inner.set(part, [each.copy() for each in value] if isinstance(value, list) else value.copy())

        def renamed(tree: exp.Expr) -> exp.Expr:
            def change(node: exp.Expr) -> exp.Expr:
                if isinstance(node, exp.Column) and sql_of(node).lower() in names:
                    return exp.column(names[sql_of(node).lower()], quoted=True)
                return node

            return tree.transform(change)

        return f"({sql_of(inner)})", None, renamed

    def _rewritten(self, tree: exp.Expr, keys: tuple[str, ...]) -> exp.Expr:
        """Put columns of the computed result in place of keys and of the window's own; aggregates stay as they are."""
        tree = _prepared(tree, self.dialect)
        folded_keys = [fold(key) for key in keys]

        def change(node: exp.Expr) -> exp.Expr:
            if _is_call(node):
                return _Held(this=node.copy())
            folded = fold(sql_of(node))
            if folded in folded_keys:
                return exp.column(key_names(keys)[folded_keys.index(folded)], quoted=True)
            window = self._window_column(node)
            if window is not None:
                return window
            if isinstance(node, exp.Column):
                raise trouble(
                    node if "line" in node.this.meta else self._first(node.name),
                    f"column {node.name!r} is neither grouped nor aggregated; add it to GROUP BY, or aggregate it",
                )
            if isinstance(node, exp.Anonymous):
                inner = aggregate_inside(exp.Paren(this=exp.Anonymous(this=node.this)))
                if inner:
                    _read(node)
            return node

        return tree.transform(change)

    def _first(self, name: str) -> exp.Expr:
        return next(
            (part for part in self.select.find_all(exp.Identifier) if part.name.lower() == name.lower()), self.select
        )

    def _window_column(self, node: exp.Expr) -> exp.Expr | None:
        """Return the result's column that a mention of the window stands for, if it is one."""
        if not isinstance(node, exp.Column | exp.Dot | exp.Anonymous):
            return None
        text = sql_of(node).lower().replace("`", "")
        start, end = _column(WINDOW_START), _column(WINDOW_END)
        if text in ("system.window().id", "system.windowid()"):
            return _column(WINDOW_ID)
        if text in ("system.timestamp()", "system.timestamp"):
            return end
        if not self.calls or "windows" in self.calls.values():
            if text == WINDOW_ID and not self.calls:
                return None
            if text in WINDOW_COLUMNS:
                return _column(text)
        if not self.calls:
            return exp.Sub(this=end, expression=_interval("MILLISECOND")) if text == "window_time" else None
        for prefix in ("window", *self.calls):
            if text == prefix and (isinstance(node, exp.Column) or text in self.calls):
                return exp.Anonymous(this="named_struct", expressions=[_text("start"), start, _text("end"), end])
            if text in (f"{prefix}.start", f"{prefix}.end"):
                return start if text.endswith("start") else end
            if text == f"window_time({prefix})":
                return exp.Sub(this=end, expression=_interval("MICROSECOND"))
        return None


class _Held(exp.Paren):
    """An aggregate inside an expression, kept whole until branches are merged."""


def calls_in(tree: exp.Expr) -> list[exp.Expr]:
    """List the aggregates that an expression holds."""
    return [held.this for held in tree.find_all(_Held)]


def merged(branches: Sequence[Branch]) -> Query:
    """Make one query of branches that differ in their windows, and perhaps in their aggregates and conditions."""
    first = branches[0]
    windows, names = _named_windows(branches)
    conditions = [sql_of(branch.where) if branch.where else "" for branch in branches]
    shared_where = len(set(conditions)) == 1
    aggregates: dict[str, str] = {}

    def value(call: exp.Expr, branch: Branch, wanted: str = "") -> exp.Expr:
        where = None if shared_where else branch.where
        text = sql_of(filtered(call, where) if where else call)
        if text not in aggregates:
            taken = {name.lower() for name in (*WINDOW_COLUMNS, *key_names(first.keys), *aggregates.values())}
            free = wanted and wanted.lower() not in taken and not wanted.lower().startswith("value_")
            aggregates[text] = wanted if free else f"value_{len(aggregates)}"
        return exp.column(aggregates[text], quoted=True)

    def lowered(tree: exp.Expr, number: int, name: str = "") -> str:
        branch = branches[number]
        wanted = name if isinstance(tree, _Held) else ""

        def change(node: exp.Expr) -> exp.Expr:
            if isinstance(node, _Held):
                return value(node.this, branch, wanted)
            if isinstance(node, exp.Column) and node.name == WINDOW_ID:
                return _shown_id(branch, names[number])
            return node

        return sql_of(tree.transform(change))

    order = {fold(key): position for position, key in enumerate(first.keys)}
    columns = []
    aligned = [
        branch if branch.keys == first.keys else _same_keys(branch, order, key_names(first.keys)) for branch in branches
    ]
    for place, (name, _) in enumerate(first.columns):
        texts = [lowered(branch.columns[place][1], number, name) for number, branch in enumerate(aligned)]
        columns.append((name, _by_window(texts, names)))
    kept = []
    for number, branch in enumerate(aligned):
        present = exp.Anonymous(this="count", expressions=[exp.Star()])
        tests = [] if shared_where or not branch.where else [f"{sql_of(value(present, branch))} > 0"]
        tests += [lowered(branch.having, number)] if branch.having else []
        kept.append(" AND ".join(f"({test})" for test in tests))
    where = conditions[0] if shared_where else ""
    if not shared_where and all(conditions):
        where = " OR ".join(f"({condition})" for condition in dict.fromkeys(conditions))
    return Query(
        time=first.time,
        keys=[f"{key} AS {quoted(name)}" for key, name in zip(first.keys, key_names(first.keys), strict=True)],
        windows=windows,
        aggregates=[f"{text} AS {quoted(name)}" for text, name in aggregates.items()],
        where=where,
        having=_by_window([test or "TRUE" for test in kept], names) if any(kept) else "",
        output=[f"{text} AS {quoted(name)}" for name, text in columns],
        source=first.source,
    )


def _same_keys(branch: Branch, order: dict[str, int], names: tuple[str, ...]) -> Branch:
    """Call a branch's keys by the names of the first branch's."""
    own = {name: names[order[fold(key)]] for name, key in zip(key_names(branch.keys), branch.keys, strict=True)}

    def change(node: exp.Expr) -> exp.Expr:
        if isinstance(node, _Held):
            return node.copy()
        if isinstance(node, exp.Column) and node.name in own:
            return exp.column(own[node.name], quoted=True)
        return node

    having = branch.having.transform(change) if branch.having else None
    columns = tuple((name, tree.transform(change)) for name, tree in branch.columns)
    return Branch(branch.source, branch.time, branch.windows, branch.keys, branch.where, having, columns)


def _named_windows(branches: Sequence[Branch]) -> tuple[list[Window], list[list[str]]]:
    """Give every window of every branch a name of its own."""
    windows: list[Window] = []
    names: list[list[str]] = []
    taken: set[str] = set()
    for branch in branches:
        names.append([])
        for window in branch.windows:
            name, times = window.name, 1
            while name in taken:
                times += 1
                name = f"{window.name} ({times})"
            taken.add(name)
            names[-1].append(name)
            windows.append(Window(window.range, window.slide, window.offset, name))
    return windows, names


def _shown_id(branch: Branch, names: list[str]) -> exp.Expr:
    """Return the id that the user gave, where windows had to be renamed to be told apart."""
    if all(window.name == name for window, name in zip(branch.windows, names, strict=True)):
        return _column(WINDOW_ID)
    pairs = [
        exp.If(this=_text(name), true=_text(window.name)) for window, name in zip(branch.windows, names, strict=True)
    ]
    return exp.Case(this=_column(WINDOW_ID), ifs=pairs)


def _by_window(texts: list[str], names: list[list[str]]) -> str:
    """Return an expression that is another one for each branch's windows; just the one if all are the same."""
    if len(set(texts)) == 1:
        return texts[0]
    cases = [f"WHEN {sql_of(_text(name))} THEN {text}" for text, own in zip(texts, names, strict=True) for name in own]
    return f"CASE {WINDOW_ID} {' '.join(cases)} END"


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


def _is_call(node: exp.Expr) -> bool:
    """Say whether a node is an aggregate, with its FILTER and IGNORE NULLS."""
    if isinstance(node, exp.Filter | exp.IgnoreNulls):
        return _is_call(node.this)
    return isinstance(node, exp.Anonymous) and node.name.lower() in FUNCTIONS


def _read(call: exp.Expr) -> Aggregate:
    try:
        return Aggregate.read(sql_of(call))
    except FactorWindowsError as mistake:
        raise trouble(call, str(mistake)) from None


def _by_name(item: exp.Expr, select: exp.Select) -> exp.Expr:
    """Return what an item of GROUP BY stands for: a column of the SELECT list by its place or its alias, or itself."""
    shown = select.expressions
    if isinstance(item, exp.Literal) and item.is_int and 1 <= int(item.this) <= len(shown):
        return _unaliased(shown[int(item.this) - 1])
    if isinstance(item, exp.Column) and not item.table:
        name = item.name.lower()
        around = [part for part in (*shown, select.args.get("where")) if part is not None]
        group = select.args["group"].expressions
        # A column of that name goes first, as in Spark; that there is one shows where else the name is used.
        if any(column.name.lower() == name for part in around for column in part.find_all(exp.Column)):
            return item
        for column in shown:
            if isinstance(column, exp.Alias) and column.alias.lower() == name and not aggregate_inside(column.this):
                inner: exp.Expr = column.this
                if not any(sql_of(other) == sql_of(inner) for other in group):
                    return inner
    return item


def _is_plain(table: exp.Expr) -> bool:
    """Say whether a table is just a name, perhaps with an alias: no sample, no version, no new names for columns."""
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        return False
    alias = table.args.get("alias")
    more = [part for part, value in table.args.items() if value and part not in ("this", "db", "catalog", "alias")]
    return not more and not (alias and alias.args.get("columns"))


def fold(text: str) -> str:
    """Return SQL in which names that Spark takes for the same are the same, unless it has strings in it.

    >>> fold("UPPER(`Device`)")
    'upper(device)'
    """
    in_backticks = text.split("`")[1::2]
    if "'" in text or '"' in text or not all(name.isidentifier() for name in in_backticks):
        return text
    return text.lower().replace("`", "")


def _table_call(select: exp.Select) -> exp.Anonymous | None:
    from_ = select.args.get("from_")
    table = from_.this.this if from_ and isinstance(from_.this, exp.Table | exp.TableFromRows) else None
    if table is not None and call_name(table) == "table" and len(table.expressions) == 1:
        table = table.expressions[0]
    return table if isinstance(table, exp.Anonymous) and call_name(table) in TABLE_CALLS else None


def _shown_name(column: exp.Expr) -> str:
    if isinstance(column, exp.Alias):
        return column.alias
    if isinstance(column, exp.Column | exp.Dot):
        return column.name or sql_of(column)
    return name_of(column)


def _unaliased(column: exp.Expr) -> exp.Expr:
    tree: exp.Expr = column.this if isinstance(column, exp.Alias) else column
    return tree


def _unqualified(tree: exp.Expr, own: set[str]) -> exp.Expr:
    if not any(column.table for column in tree.find_all(exp.Column)):
        return tree

    def change(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.table.lower() in own and node.table:
            return exp.Column(this=node.this.copy())
        return node

    return tree.transform(change)


@cache
def key_names(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Name the keys as they are shown in between: a column by its own name, unless that is taken."""
    names: list[str] = []
    for number, key in enumerate(keys):
        tree = parse_one(key, dialect=VerbatimSpark)
        name = tree.name if isinstance(tree, exp.Column) else ""
        taken = {*WINDOW_COLUMNS, *(other.lower() for other in names)}
        free = name and name.lower() not in taken and not name.lower().startswith(("value_", "key_"))
        names.append(name if free else f"key_{number}")
    return tuple(names)


def _column(name: str) -> exp.Column:
    return exp.column(name)


def _text(value: str) -> exp.Literal:
    return exp.Literal.string(value)


def _interval(unit: str) -> exp.Interval:
    return exp.Interval(this=exp.Literal.string("1"), unit=exp.var(unit))
