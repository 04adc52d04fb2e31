"""The meaning of names in a SELECT: the columns of FROM, as far as they are known, and which expressions are the same.

SQL can be read without tables. If a session knows them, it passes a `Tables`, and nothing is assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from factor_windows.functions.expression import canonicalize, sql_of

_AROUND_TABLES = (exp.CTE, exp.From, exp.Join, exp.Select, exp.SetOperation, exp.Subquery, exp.With)


@dataclass(frozen=True, slots=True)
class Tables:
    """What is known about tables: the columns that a SELECT would return, and whether names are case-sensitive."""

    columns: Callable[[str], Sequence[str] | None] = lambda _: None
    """Lists the columns of a SELECT in Spark SQL; `None` if they are unknown."""
    case_sensitive: bool = False
    zone: str = "UTC"
    """The session's time zone, which buckets of time use."""

    def same(self, one: str, other: str) -> bool:
        return one == other if self.case_sensitive else one.lower() == other.lower()

    def form(self, tree: exp.Expr) -> exp.Expr:
        """Return a canonical form of an expression, equal for all ways to write it."""
        return canonicalize(tree, case_sensitive=self.case_sensitive)


class Among:
    """Expressions in which others are looked up: first as written, then by meaning."""

    def __init__(self, tables: Tables, trees: Sequence[exp.Expr]) -> None:
        self._tables = tables
        self._spelled = [sql_of(tree) for tree in trees]
        self._forms = [tables.form(tree) for tree in trees]
        self._kinds = {type(form) for form in self._forms}

    def find(self, tree: exp.Expr) -> int | None:
        """Return the position of an expression, if it is among them."""
        if type(tree.unnest()) not in self._kinds:
            return None
        spelled = sql_of(tree)
        if spelled in self._spelled:
            return self._spelled.index(spelled)
        form = self._tables.form(tree)
        return self._forms.index(form) if form in self._forms else None

    def find_struct(self, column: exp.Column) -> tuple[int, exp.Column, list[exp.Identifier]] | None:
        """Return the position of the struct that a column is a field of, the struct, and the names leading to it."""
        parts = parts_of(column)
        for size in range(len(parts) - 1, 0, -1):
            struct = column_of(parts[:size])
            place = self.find(struct)
            if place is not None:
                return place, struct, parts[size:]
        return None


UNKNOWN = Tables()
"""Nothing is known: names are compared as Spark does by default."""


def parts_of(column: exp.Column) -> list[exp.Identifier]:
    """List the parts of a column's name, outermost first: of a table, of the column, of a field in it."""
    return [part for part in column.parts if isinstance(part, exp.Identifier)]


def column_of(parts: Sequence[exp.Identifier]) -> exp.Column:
    """Make a column from the parts of its name, outermost first."""
    kinds = ("this", "table", "db", "catalog")
    return exp.Column(**{kind: part.copy() for kind, part in zip(kinds, reversed(parts), strict=False)})


def field_of(value: exp.Expr, parts: Sequence[exp.Identifier]) -> exp.Expr:
    """Return a field of a value, by the names on the way to it."""
    for part in parts:
        value = exp.Dot(this=value, expression=part.copy())
    return value


def strip_alias(column: exp.Expr) -> exp.Expr:
    """Return the expression of an entry of the SELECT list."""
    tree: exp.Expr = column.this if isinstance(column, exp.Alias) else column
    return tree


def detach(select: exp.Select) -> exp.Select:
    """Copy a SELECT with the WITH of all enclosing queries, so that its tables keep their meaning."""
    copied = select.copy()
    steps: list[exp.Expr] = []
    inside: list[exp.Expr] = []
    node: exp.Expr | None = select
    while node is not None:
        inside.append(node)
        known = node.args["with_"].expressions if node.args.get("with_") else []
        # Within a step of WITH, only the steps before it are known.
        own = next((n for n, step in enumerate(known) if any(step is part for part in inside)), None)
        steps = [step.copy() for step in known[:own]] + steps
        node = node.parent
    if steps:
        copied.set("with_", exp.With(expressions=steps))
    return copied


def is_relation(select: exp.Select) -> bool:
    """Say whether a SELECT is used as a table, and not in a condition or as a value."""
    node: exp.Expr = select
    while node.parent is not None:
        is_value = isinstance(node.parent, exp.Select) and node.arg_key == "expressions"
        if is_value or not isinstance(node.parent, _AROUND_TABLES):
            return False
        node = node.parent
    return True


def selects_read_by(select: exp.Select) -> list[exp.Select]:
    """List the SELECTs whose results a SELECT uses: those inside it, and those of the steps of WITH that it names."""
    whole = detach(select)
    with_ = whole.args.get("with_")
    steps = {step.alias.lower(): step.this for step in (with_.expressions if with_ else ())}
    pending: list[exp.Expr] = [part for part in whole.iter_expressions() if part is not with_]
    found: list[exp.Select] = []
    while pending:
        part = pending.pop()
        found += part.find_all(exp.Select)
        for table in part.find_all(exp.Table):
            step = steps.pop(table.name.lower(), None)
            pending += [step] if step is not None else []
    return found


def qualifiers_of(select: exp.Select) -> list[list[str]]:
    """List the possible qualifiers of columns of a SELECT's only table, longest first: its alias, or its name."""
    from_ = select.args.get("from_")
    if from_ is None or select.args.get("joins") or select.args.get("laterals"):
        return []
    table = from_.this
    if table.alias:
        return [[table.alias]]
    if not isinstance(table, exp.Table):
        return []
    names = [part.name for part in table.parts]
    return [names[place:] for place in range(len(names))]


def strip_qualifier(tree: exp.Expr, qualifiers: list[list[str]], tables: Tables) -> exp.Expr:
    """Remove the table's name from its columns; a field of a column may follow."""

    def change(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.table:
            parts = parts_of(node)
            for names in qualifiers:
                begins = all(tables.same(part.name, name) for part, name in zip(parts, names, strict=False))
                if begins and len(parts) > len(names):
                    return column_of(parts[len(names) :])
        return node

    return tree.transform(change)
