"""Split a SELECT that does more than aggregate: the aggregates inside, and around them what is done with them.

In this way, DISTINCT, OVER, QUALIFY, ORDER BY of columns that are not shown, and duplicate names are left to Spark.
"""

from __future__ import annotations

from sqlglot import exp

from factor_windows.functions.aggregate import is_call
from factor_windows.functions.expression import name_fields, sql_of
from factor_windows.functions.naming import prefix_until_free
from factor_windows.sql.grouping import is_grouping_id
from factor_windows.sql.located_error import ungrouped
from factor_windows.sql.names import Among, Tables, field_of, qualifiers_of, strip_alias, strip_qualifier
from factor_windows.sql.resolve import grouped, table_call
from factor_windows.sql.windows import WINDOW_CALLS, call_name, window_column, window_mentions

_ALWAYS_AFTER = ("distinct", "qualify", "windows", "sort", "cluster", "distribute")
AT_THE_END = ("order", "limit", "offset")
_INSIDE = ("from_", "joins", "laterals", "where", "group", "having")


def does_more(select: exp.Select, tables: Tables, *, outermost: bool) -> bool:
    """Say whether a SELECT does more than group, aggregate and show the result."""
    if any(select.args.get(part) for part in _ALWAYS_AFTER) or _asks_more(select):
        return True
    names = [column.alias_or_name.lower() for column in select.expressions]
    if len(set(names)) < len(names):
        return True
    if not outermost:
        return any(select.args.get(part) for part in AT_THE_END)
    return not orders_by_shown(select, select, tables)


def _asks_more(select: exp.Select) -> bool:
    """Say whether the SELECT list or HAVING has OVER or a sub-query, which apply to the result."""
    having = select.args.get("having")
    return any(part.find(exp.Window, exp.Query) for part in (*select.expressions, *([having] if having else [])))


def orders_by_shown(ordered: exp.Expr, select: exp.Select, tables: Tables) -> bool:
    """Say whether ORDER BY names columns of the result; replace a shown column's expression by its name."""
    shown = select.expressions
    among = Among(tables, [strip_alias(column) for column in shown])
    order = ordered.args.get("order")
    for item in order.expressions if order else ():
        key = item.this if isinstance(item, exp.Ordered) else item
        plain = key.name if isinstance(key, exp.Column) and not key.table else ""
        if plain.lower() == "all" or any(tables.same(plain, column.alias_or_name) for column in shown):
            continue
        if isinstance(key, exp.Literal) and key.is_int:
            continue
        place = among.find(key)
        if place is None:
            return False
        key.replace(exp.column(shown[place].alias_or_name, quoted=True))
    return True


def cut_in_two(select: exp.Select, tables: Tables) -> exp.Select:
    """Return a SELECT that does the same in two steps; names in it must be written out."""
    return _Cut(select, tables).around()


class _Cut:
    def __init__(self, select: exp.Select, tables: Tables) -> None:
        self.select, self.tables = select, tables
        keys = grouped(select)
        calls = [key for key in keys if isinstance(key, exp.Anonymous) and call_name(key) in WINDOW_CALLS]
        self.mentions = window_mentions(calls[0] if calls and table_call(select) is None else None)
        self.keys = Among(tables, keys)
        self.qualifiers = qualifiers_of(select)
        self.prefix = prefix_until_free("fw_", sql_of(select).lower())
        self.held: dict[exp.Expr, tuple[str, exp.Expr]] = {}

    def around(self) -> exp.Select:
        """Return the outer SELECT, with the inner one in its FROM."""
        shown = self.select.expressions
        outer = exp.Select(
            expressions=[exp.alias_(self._move(strip_alias(each)), each.alias_or_name, quoted=True) for each in shown]
        )
        for part in ("with_", "distinct", "limit", "offset"):
            outer.set(part, self.select.args.get(part))
        for part in ("qualify", "windows", "order", "sort", "cluster", "distribute"):
            value = self.select.args.get(part)
            is_order = part not in ("qualify", "windows")
            if isinstance(value, list):
                outer.set(part, [self._move(each, ordered=is_order) for each in value])
            elif value:
                outer.set(part, self._move(value, ordered=is_order))
        having = self.select.args.get("having")
        if having is not None and having.find(exp.Query):
            outer.set("where", exp.Where(this=self._move(having.this)))
            self.select.set("having", None)
        held = [exp.alias_(tree.copy(), name) for name, tree in self.held.values()]
        inner = exp.Select(expressions=held or [exp.alias_(exp.Literal.number(1), f"{self.prefix}0")])
        inner.meta.update(self.select.meta)
        for part in _INSIDE:
            inner.set(part, self.select.args.get(part))
        outer.set("from_", exp.From(this=inner.subquery(self.prefix, copy=False)))
        return outer

    def _move(self, tree: exp.Expr, *, ordered: bool = False) -> exp.Expr:
        """Replace aggregates, keys and the window's columns by the inner SELECT's columns."""

        def change(node: exp.Expr) -> exp.Expr:
            if _is_before_over(node):
                return node
            if isinstance(node, exp.Query):
                return node.copy()
            plain = ordered and isinstance(node, exp.Column) and not node.table
            # A name that two columns of the result share refers to neither of them.
            if plain and sum(self.tables.same(node.name, each.alias_or_name) for each in self.select.expressions) == 1:
                return node
            grouping = call_name(node) in ("grouping", "grouping_id") or is_grouping_id(node)
            bare = strip_qualifier(node, self.qualifiers, self.tables) if isinstance(node, exp.Column) else node
            whole = is_call(bare) or grouping or self.keys.find(bare) is not None
            if whole or window_column(bare, self.mentions) is not None:
                return self._hold(bare)
            name_fields(node)
            return self._field(node, bare) if isinstance(bare, exp.Column) else node

        return tree.transform(change)

    def _field(self, node: exp.Expr, column: exp.Column) -> exp.Expr:
        found = self.keys.find_struct(column)
        if found is not None:
            _, key, fields = found
            return field_of(self._hold(key), fields)
        raise ungrouped(column, node)

    def _hold(self, node: exp.Expr) -> exp.Column:
        name, _ = self.held.setdefault(self.tables.form(node), (f"{self.prefix}{len(self.held)}", node.copy()))
        return exp.column(name)


def _is_before_over(node: exp.Expr) -> bool:
    """Say whether a function applies to rows of the result, by OVER; its arguments belong to the inner SELECT."""
    while isinstance(node.parent, exp.IgnoreNulls | exp.RespectNulls | exp.Filter) and node.arg_key == "this":
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.arg_key == "this"
