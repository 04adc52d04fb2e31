"""GROUPING SETS, ROLLUP and CUBE written out: a SELECT for each set of keys."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

from sqlglot import exp

from factor_windows.aggregates import aggregate_inside
from factor_windows.expressions import name_of, sql_of
from factor_windows.sql.trouble import trouble

MOST_SETS = 256
"""How many sets a GROUP BY may have; a CUBE of eight keys has as many."""
_SEVERAL = (exp.GroupingSets, exp.Rollup, exp.Cube)
Items = tuple[exp.Expr, ...]


def grouped(select: exp.Select) -> Iterator[exp.Expr]:
    """List all that a SELECT groups by, in any of its sets."""
    group = select.args.get("group")
    for element in group.expressions if group else ():
        yield from (item for items in _sets(element) for item in items)


def for_each_set(select: exp.Select) -> list[exp.Select]:
    """Write a SELECT once for each set of keys; a key that a set does not have is null there."""
    group = select.args.get("group")
    if group is None or not group.find(*_SEVERAL):
        return [select]
    for part in ("grouping_sets", "rollup", "cube"):
        if group.args.get(part):
            raise trouble(group, "write GROUPING SETS, ROLLUP and CUBE with all their keys, such as ROLLUP(a, b)")
    chosen = [list(_sets(element)) for element in group.expressions]
    size = 1
    for sets in chosen:
        size *= len(sets)
    if size > MOST_SETS:
        raise trouble(group, f"GROUP BY has {size} sets of keys; at most {MOST_SETS} are written out")
    together = [_once(item for items in parts for item in items) for parts in product(*chosen)]
    every = _once(item for items in together for item in items)
    return [_of_set(select, items, every) for items in together]


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
            raise trouble(element, f"CUBE has {2 ** len(parts)} sets of keys; at most {MOST_SETS} are written out")
        for size in range(len(parts), -1, -1):
            for some in combinations(parts, size):
                yield tuple(item for part in some for item in part)
    else:
        yield _items(element)


def _items(element: exp.Expr) -> Items:
    if isinstance(element, exp.Tuple):
        return tuple(element.expressions)
    return (element.unnest(),)


def _once(items: Iterator[exp.Expr]) -> Items:
    return tuple({sql_of(item).lower(): item for item in items}.values())


def _of_set(select: exp.Select, items: Items, every: Items) -> exp.Select:
    """Write a SELECT for one set: what others have is null, and grouping() says which those are."""
    own = {sql_of(item).lower() for item in items}
    absent = {sql_of(item).lower() for item in every} - own
    aliases = {column.alias.lower(): sql_of(column.this).lower() for column in select.expressions if column.alias}
    absent |= {aliases[name] for name in absent if name in aliases}

    def change(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Anonymous) and node.name.lower() in ("grouping", "grouping_id"):
            if not node.expressions:
                raise trouble(node, "grouping_id() needs its keys here, such as grouping_id(a, b)")
            bits = "".join("1" if sql_of(key).lower() in absent else "0" for key in node.expressions)
            kind = "TINYINT" if node.name.lower() == "grouping" else "BIGINT"
            return exp.cast(exp.Literal.number(int(bits, 2)), kind)
        if sql_of(node).lower() in absent and not _inside(node, own):
            return exp.Null()
        return node

    copied = select.copy()
    shown = []
    for column in copied.expressions:
        name = column.alias or (column.name if isinstance(column, exp.Column | exp.Dot) else name_of(column))
        inner = column.this if isinstance(column, exp.Alias) else column
        shown.append(exp.alias_(exp.paren(inner, copy=False).transform(change).this, name, quoted=True))
    copied.set("expressions", shown)
    having = copied.args.get("having")
    if having is not None:
        copied.set("having", exp.Having(this=having.this.transform(change)))
    copied.set("group", exp.Group(expressions=[item.copy() for item in items]))
    return copied


def _inside(node: exp.Expr, own: set[str]) -> bool:
    """Say whether a node is a part of an aggregate, its FILTER included, or of a key that is there."""
    around = node.parent
    while around is not None and not isinstance(around, exp.Select):
        call = around.this if isinstance(around, exp.Filter) else around
        if (isinstance(call, exp.Anonymous) and aggregate_inside(call)) or sql_of(around).lower() in own:
            return True
        around = around.parent
    return False
