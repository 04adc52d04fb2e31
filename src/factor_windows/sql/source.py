"""The source of a SELECT's events: a table itself, or a sub-query with the columns that are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from factor_windows.functions.expression import sql_of
from factor_windows.sql.located_error import located_error
from factor_windows.sql.names import Tables

_FROM_PARTS = ("with_", "from_", "joins", "laterals", "where")


@dataclass(frozen=True, slots=True)
class Source:
    """A table or sub-query, the rest of WHERE, and the names of the SELECT's columns in it."""

    tree: exp.Expr
    where: exp.Expr | None
    rename: Callable[[exp.Expr], exp.Expr]

    @property
    def sql(self) -> str:
        return f"({sql_of(self.tree)})" if isinstance(self.tree, exp.Query) else sql_of(self.tree)


def source_of(
    select: exp.Select,
    trees: Iterable[exp.Expr],
    where: exp.Expr | None,
    *,
    tables: Tables,
    is_window: Callable[[exp.Expr], bool],
) -> Source:
    """Find the source of a SELECT in which `trees` are computed; nodes for which `is_window` are not columns of it."""
    from_ = select.args.get("from_")
    if from_ is None:
        raise located_error(select, "there is no FROM; name the table that the events come from")
    table = from_.this
    known = {cte.alias.lower() for cte in (select.args.get("with_") or exp.With()).expressions}
    alone = not select.args.get("joins") and not select.args.get("laterals")
    if alone and _is_plain(table) and table.name.lower() not in known and not (where and where.find(exp.Query)):
        bare = exp.Table(**{part: table.args.get(part) for part in ("this", "db", "catalog")})
        return Source(bare, where, lambda tree: tree)
    columns: dict[exp.Expr, exp.Column] = {}
    for tree in trees:
        for column in tree.find_all(exp.Column):
            if column.find_ancestor(exp.Query) in (None, select) and not is_window(column):
                columns.setdefault(tables.form(column), column)
    names = _names(columns)
    listed = [exp.alias_(column.copy(), names[form], quoted=True) for form, column in columns.items()]
    inner = exp.select(*(listed or [exp.alias_(exp.Literal.number(1), "one")]))
    for part in _FROM_PARTS:
        value = select.args.get(part)
        if value:
            inner.set(part, [each.copy() for each in value] if isinstance(value, list) else value.copy())

    def rename(node: exp.Expr) -> exp.Expr:
        name = names.get(tables.form(node)) if isinstance(node, exp.Column) else None
        return node if name is None else exp.column(name, quoted=True)

    return Source(inner, None, lambda tree: tree.transform(rename))


def _names(columns: Mapping[exp.Expr, exp.Column]) -> dict[exp.Expr, str]:
    """Give each column a unique name, whatever its case."""
    names: dict[exp.Expr, str] = {}
    for form, column in columns.items():
        name = column.name
        taken = {other.lower() for other in names.values()}
        while name.lower() in taken:
            name = f"{column.table}_{name}" if column.table else f"{name}_"
        names[form] = name
    return names


def _is_plain(table: exp.Expr) -> bool:
    """Say whether a table is just a name, perhaps with an alias: no sample, no version, no new column names."""
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        return False
    alias = table.args.get("alias")
    more = [part for part, value in table.args.items() if value and part not in ("this", "db", "catalog", "alias")]
    return not more and not (alias and alias.args.get("columns"))
