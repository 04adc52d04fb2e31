"""GROUPING SETS, ROLLUP and CUBE written out: a SELECT for each set of keys."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from math import prod

from sqlglot import exp

from factor_windows.functions.aggregate import is_call
from factor_windows.functions.expression import name_of
from factor_windows.sql.located_error import located_error
from factor_windows.sql.names import Tables, strip_alias
from factor_windows.sql.resolve import SEVERAL_SETS
from factor_windows.sql.windows import WINDOW_CALLS, call_name

MOST_SETS = 256
"""The most sets that a GROUP BY may have; a CUBE of eight keys has this many."""
Items = tuple[exp.Expr, ...]


def for_each_set(select: exp.Select, tables: Tables) -> list[exp.Select]:
    """Write a SELECT once for each set of keys; keys that are not in a set are null there."""
    group = select.args.get("group")
    if group is None or not group.find(*SEVERAL_SETS):
        return [select]
    for part in ("grouping_sets", "rollup", "cube"):
        if group.args.get(part):
            raise located_error(group, "write GROUPING SETS, ROLLUP and CUBE with all their keys, such as ROLLUP(a, b)")
    chosen = [list(_sets(element)) for element in group.expressions]
    size = prod(map(len, chosen))
    if size > MOST_SETS:
        raise located_error(group, f"GROUP BY has {size} sets of keys; at most {MOST_SETS} are written out")
    together = [_once((item for items in parts for item in items), tables) for parts in product(*chosen)]
    every = _once((item for items in together for item in items), tables)
    return [_OneSet(items, every, tables).write(select) for items in together]


def _sets(element: exp.Expr) -> Iterator[Items]:
    """List the sets of one element of GROUP BY."""
    if isinstance(element, exp.GroupingSets):
        for each in element.expressions:
            yield from _sets(each)
    elif isinstance(element, exp.Rollup):
        parts = [_items(each) for each in element.expressions]
        for size in range(len(parts), -1, -1):
            yield tuple(item for part in parts[:size] for item in part)
    elif isinstance(element, exp.Cube):
        parts = [_items(each) for each in element.expressions]
        if 2 ** len(parts) > MOST_SETS:
            raise located_error(
                element, f"CUBE has {2 ** len(parts)} sets of keys; at most {MOST_SETS} are written out"
            )
        for size in range(len(parts), -1, -1):
            for some in combinations(parts, size):
                yield tuple(item for part in some for item in part)
    else:
        yield _items(element)


def _items(element: exp.Expr) -> Items:
    if isinstance(element, exp.Tuple):
        return tuple(element.expressions)
    return (element.unnest(),)


def _once(items: Iterator[exp.Expr], tables: Tables) -> Items:
    return tuple({tables.form(item): item for item in items}.values())


class _OneSet:
    """One set of keys: keys of other sets are null in it, and grouping() says which these are."""

    def __init__(self, items: Items, every: Items, tables: Tables) -> None:
        self.items, self.every, self.tables = items, every, tables
        self.own = {tables.form(item) for item in items}
        self.absent = {tables.form(item) for item in every} - self.own
        self.kinds = {type(form) for form in self.absent}

    def write(self, select: exp.Select) -> exp.Select:
        copied = select.copy()
        shown = []
        for column in copied.expressions:
            name = column.alias or (column.name if isinstance(column, exp.Column | exp.Dot) else name_of(column))
            shown.append(exp.alias_(self._rewrite(strip_alias(column)), name, quoted=True))
        copied.set("expressions", shown)
        having = copied.args.get("having")
        if having is not None:
            copied.set("having", exp.Having(this=self._rewrite(having.this)))
        copied.set("group", exp.Group(expressions=[item.copy() for item in self.items]))
        return copied

    def _rewrite(self, tree: exp.Expr) -> exp.Expr:
        def change(node: exp.Expr) -> exp.Expr:
            if call_name(node) in ("grouping", "grouping_id"):
                return self._grouping(node)
            if is_grouping_id(node):
                return self._grouping(exp.Anonymous(this="grouping_id"))
            if is_call(node) or self._has(node, self.own):
                # Inside an aggregate, and inside a key of this set, a key is the event's own.
                return node.copy()
            if type(node.unnest()) not in self.kinds or not self._has(node, self.absent):
                return node
            return exp.Null() if node.parent is None else _typed_null(node)

        return tree.transform(change)

    def _has(self, node: exp.Expr, forms: set[exp.Expr]) -> bool:
        return isinstance(node, exp.Condition) and self.tables.form(node) in forms

    def _grouping(self, call: exp.Expr) -> exp.Expr:
        keys = call.expressions or self.every
        bits = "".join("1" if self.tables.form(key) in self.absent else "0" for key in keys)
        kind = "TINYINT" if call_name(call) == "grouping" else "BIGINT"
        return exp.cast(exp.Literal.number(int(bits, 2)), kind)


def is_grouping_id(node: exp.Expr) -> bool:
    """Say whether a node is Hive's column for grouping_id()."""
    return isinstance(node, exp.Column) and not node.table and node.name.lower() == "grouping__id"


def _typed_null(key: exp.Expr) -> exp.Expr:
    """Return a null of a key's own type, which functions around it may depend on: the greatest of no values."""
    if call_name(key) in WINDOW_CALLS:
        raise located_error(key, "a set of keys has no window; every one of GROUPING SETS needs it")
    call = exp.Anonymous(this="max", expressions=[key.copy()])
    return exp.Filter(this=call, expression=exp.Where(this=exp.false()))
