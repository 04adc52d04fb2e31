"""Resolve names in a SELECT, in Spark's order: write out what GROUP BY, HAVING and the SELECT list mean by a name.

Spark's order: GROUP BY and the SELECT list prefer a column of FROM to an alias, and only use earlier aliases; HAVING
and QUALIFY prefer grouped expressions to aliases; ORDER BY prefers aliases to grouped expressions.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from sqlglot import exp

from factor_windows.errors import SqlError
from factor_windows.functions.aggregate import aggregate_inside, is_call
from factor_windows.functions.expression import name_of, sql_of
from factor_windows.sql.buckets import find_bucket
from factor_windows.sql.dialects import TIMESTAMP_BY
from factor_windows.sql.located_error import located_error
from factor_windows.sql.names import (
    Among,
    Tables,
    detach,
    field_of,
    is_relation,
    parts_of,
    qualifiers_of,
    selects_read_by,
    strip_alias,
    strip_qualifier,
)
from factor_windows.sql.windows import TABLE_CALLS, WINDOW_CALLS, call_name

SEVERAL_SETS = (exp.GroupingSets, exp.Rollup, exp.Cube)
ASSUMED = "assumed"
"""The key under which a SELECT keeps the names read as aliases while its columns are unknown."""
BUCKET = "bucket"
"""The key under which a SELECT keeps that its window is a bucket of time, such as date_trunc('month', ts)."""


def resolve(select: exp.Select, tables: Tables, *, text: str = "", names: bool = True) -> bool:
    """Write out, in place, the names in a SELECT, and say whether it aggregates over windows; otherwise leave it alone.

    `text` is the SELECT as the user wrote it, from which Spark names columns; `names` says whether these matter.
    """
    resolver = _Resolver(select, tables)
    if not resolver.calls_window():
        if not resolver.has_bucket() or not resolver.may_be_planned():
            return False
        select.meta[BUCKET] = True
    resolver.remove_qualifiers()
    resolver.name_columns(text, ask=names)
    resolver.write_out_groups()
    resolver.write_out_aliases()
    select.meta[ASSUMED] = tuple(dict.fromkeys(resolver.assumed))
    return True


def check_buckets(tree: exp.Expr, tables: Tables) -> None:
    """Report what is wrong with the buckets of time in a statement, if they are not windows for this reason."""
    for select in tree.find_all(exp.Select):
        find_bucket(_Resolver(select, tables).grouped_items(), tables)


def grouped(select: exp.Select) -> list[exp.Expr]:
    """List the expressions that GROUP BY names, in any of its sets."""

    def leaves(element: exp.Expr) -> Iterator[exp.Expr]:
        if isinstance(element, (*SEVERAL_SETS, exp.Tuple)):
            for each in element.expressions:
                yield from leaves(each)
        else:
            yield element

    group = select.args.get("group")
    return [leaf for element in (group.expressions if group else ()) for leaf in leaves(element)]


def table_call(select: exp.Select) -> exp.Anonymous | None:
    """Return the window that FROM makes, as in Flink, if there is one."""
    from_ = select.args.get("from_")
    table = from_.this.this if from_ and isinstance(from_.this, exp.Table | exp.TableFromRows) else None
    if table is not None and call_name(table) == "table" and len(table.expressions) == 1:
        table = table.expressions[0]
    return table if isinstance(table, exp.Anonymous) and call_name(table) in TABLE_CALLS else None


def shown_name(column: exp.Expr) -> str:
    """Name an entry of the SELECT list as Spark does, as far as this is known without asking it."""
    if isinstance(column, exp.Alias):
        return column.alias
    if isinstance(column, exp.Column):
        return column.name
    if call_name(column) == "window":
        return "window"
    if isinstance(column, exp.Dot) and call_name(column.this) != "window":
        return column.name
    return name_of(column)


class _Resolver:
    def __init__(self, select: exp.Select, tables: Tables) -> None:
        self.select, self.tables = select, tables
        self.assumed: list[str] = []

    @cached_property
    def columns(self) -> list[str] | None:
        """The columns of FROM; requested only where a name may be a column or an alias."""
        whole = detach(self.select)
        probe = exp.select("*")
        for part in ("with_", "from_", "joins", "laterals"):
            if whole.args.get(part):
                probe.set(part, whole.args[part])
        call = table_call(self.select)
        if call is not None:
            probe.set("from_", exp.From(this=next(call.find_all(exp.Table)).copy()))
        found = self.tables.columns(sql_of(probe))
        return None if found is None else list(found)

    def grouped_items(self) -> list[exp.Expr]:
        """List the items of GROUP BY, with positions and aliases resolved."""
        group = self.select.args.get("group")
        if group is None:
            return []
        shown = self.select.expressions
        listed = shown if group.args.get("all") is True else grouped(self.select)
        return [strip_alias(_ordinal(leaf, shown) or self._of_alias(leaf) or leaf) for leaf in listed]

    def calls_window(self) -> bool:
        return table_call(self.select) is not None or any(map(_window_of, self.grouped_items()))

    def has_bucket(self) -> bool:
        """Say whether GROUP BY has a bucket of time that can be read as a window; other buckets are left to Spark."""
        try:
            return find_bucket(self.grouped_items(), self.tables) is not None
        except SqlError:
            return False

    def may_be_planned(self) -> bool:
        """Say whether a SELECT with a bucket reads no other windows, which take precedence, and is used as a table."""
        inner = (_Resolver(each, self.tables) for each in selects_read_by(self.select))
        return is_relation(self.select) and not any(each.calls_window() or each.has_bucket() for each in inner)

    def name_columns(self, text: str, *, ask: bool) -> None:
        """Name every entry of the SELECT list, as Spark does if it can be asked."""
        select = self.select
        shown: list[exp.Expr] = []
        for column in select.expressions:
            is_star = isinstance(column, exp.Column) and isinstance(column.this, exp.Star)
            ends = ("start", "end") if is_star and column.table.lower() == "window" else ()
            shown += [exp.column(end, "window") for end in ends] or [column]
        expanded = len(shown) != len(select.expressions)
        select.set("expressions", shown)
        plain = (exp.Alias, exp.Column, exp.Star)
        if not all(isinstance(column, plain) for column in shown):
            ask = ask and not expanded and _is_sparks_own(select)
            names = self.tables.columns(text or sql_of(detach(select))) if ask else None
            if names is None or len(names) != len(shown):
                names = [shown_name(column) for column in shown]
            named = [
                column if isinstance(column, plain) else exp.alias_(column, name, quoted=True)
                for column, name in zip(shown, names, strict=True)
            ]
            select.set("expressions", named)

    def remove_qualifiers(self) -> None:
        """Remove the table's name from columns of the only table; in ORDER BY it distinguishes them from aliases."""
        qualifiers = qualifiers_of(self.select)
        for column in list(self.select.find_all(exp.Column)) if qualifiers else ():
            if column.table and column.find_ancestor(exp.Query, exp.Order) is self.select:
                bare = strip_qualifier(column, qualifiers, self.tables)
                if bare != column:
                    column.replace(bare)

    def write_out_groups(self) -> None:
        """Replace GROUP BY's ALL, positions and aliases by expressions."""
        group = self.select.args.get("group")
        if group is None:
            return
        shown = self.select.expressions
        if group.args.get("all") is True:
            items = (strip_alias(column) for column in shown if not aggregate_inside(column))
            constants = (exp.Literal, exp.Null, exp.Boolean)
            group.set("all", None)
            group.set("expressions", [item.copy() for item in items if not isinstance(item, constants)])
        for leaf in grouped(self.select):
            meant = _ordinal(leaf, shown) or self._of_alias(leaf, noted=True) or leaf
            meant = _window_of(meant) or meant
            if meant is not leaf:
                leaf.replace(meant.copy())

    def _of_alias(self, item: exp.Expr, *, noted: bool = False) -> exp.Expr | None:
        """Return the expression whose alias is an item of GROUP BY; `None` for a column of FROM, which comes first."""
        if not isinstance(item, exp.Column) or item.table:
            return None
        for place, column in enumerate(self.select.expressions):
            if not (isinstance(column, exp.Alias) and self.tables.same(column.alias, item.name)):
                continue
            inner: exp.Expr = column.this
            if aggregate_inside(inner) or inner.find(exp.Window) or self._is_column(item.name, place):
                continue
            group = self.select.args["group"].expressions
            if self.columns is None and any(sql_of(other) == sql_of(inner) for other in group):
                continue
            if noted and self.columns is None:
                self.assumed.append(item.name)
            return inner
        return None

    def _is_column(self, name: str, place: int) -> bool:
        """Say whether FROM has a column or, if unknown, whether the text uses it where aliases are not visible."""
        if self.columns is not None:
            return any(self.tables.same(name, column) for column in self.columns)
        seen = [self.select.args.get("where"), *self.select.expressions[: place + 1]]
        seen += [call for later in self.select.expressions[place + 1 :] for call in later.walk() if is_call(call)]
        return any(
            self.tables.same(parts_of(column)[0].name, name)
            for part in seen
            if part is not None
            for column in part.find_all(exp.Column)
            if parts_of(column)
        )

    def write_out_aliases(self) -> None:
        """Replace the aliases used in the SELECT list, HAVING and QUALIFY by expressions."""
        aliases: list[tuple[str, exp.Expr]] = []
        for column in list(self.select.expressions):
            written = self._substitute(strip_alias(column), aliases, lateral=True)
            if isinstance(column, exp.Alias):
                column.set("this", written)
                aliases.append((column.alias, written))
            elif written != column:
                column.replace(exp.alias_(written, column.name, quoted=True))
        for part in ("having", "qualify"):
            condition = self.select.args.get(part)
            if condition is not None:
                condition.set("this", self._substitute(condition.this, aliases))

    def _substitute(self, tree: exp.Expr, aliases: list[tuple[str, exp.Expr]], *, lateral: bool = False) -> exp.Expr:
        keys = Among(self.tables, grouped(self.select))

        def change(node: exp.Expr) -> exp.Expr:
            if is_call(node) or isinstance(node, exp.Query) or keys.find(node) is not None:
                return node.copy()
            if not isinstance(node, exp.Column) or not parts_of(node):
                return node
            first, *fields = parts_of(node)
            found = [(n, meant) for n, (name, meant) in enumerate(aliases) if self.tables.same(name, first.name)]
            if not found or (lateral and len(found) > 1):
                return node
            place, meant = found[0]
            if lateral or fields:
                if self._is_column(first.name, place) or self._is_table(first.name):
                    return node
                if self.columns is None:
                    self.assumed.append(first.name)
            simple = isinstance(meant, exp.Column | exp.Anonymous | exp.Literal)
            return field_of(meant.copy() if simple else exp.paren(meant.copy()), fields)

        return tree.transform(change)

    def _is_table(self, name: str) -> bool:
        from_ = self.select.args.get("from_")
        tables = [from_.this] if from_ else []
        tables += [join.this for join in self.select.args.get("joins") or ()]
        return any(table.alias_or_name.lower() == name.lower() for table in tables)


def _is_sparks_own(select: exp.Select) -> bool:
    """Say whether Spark knows the windows of a SELECT."""
    calls = {call_name(call) for call in select.find_all(exp.Anonymous)}
    timed = any(TIMESTAMP_BY in table.meta for table in select.find_all(exp.Table))
    return calls.isdisjoint((WINDOW_CALLS | TABLE_CALLS) - {"window", "session_window"}) and not timed


def _ordinal(item: exp.Expr, shown: list[exp.Expr]) -> exp.Expr | None:
    """Return the entry of the SELECT list at the position that a number in GROUP BY gives."""
    if not isinstance(item, exp.Literal) or not item.is_int:
        return None
    if not 1 <= int(item.this) <= len(shown):
        raise located_error(
            item, f"GROUP BY {item.this} is no place in the SELECT list, which has {len(shown)} columns"
        )
    return strip_alias(shown[int(item.this) - 1])


def _window_of(item: exp.Expr) -> exp.Expr | None:
    """Return the window of an item that is a window, or an end of one."""
    whole = item.unnest()
    if isinstance(whole, exp.Dot):
        whole = whole.this.unnest()
    return whole if call_name(whole) in WINDOW_CALLS else None
