"""The columns of a table that a query reads: only they are selected, so that no other column can interfere."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from factor_windows.functions.expression import DOUBLE_QUOTED

_UNIT_FIRST = {"dateadd", "date_add", "datediff", "date_diff", "timestampadd", "timestampdiff", "timediff"}
"""Functions whose first argument, of three, is a keyword such as DAY rather than a column."""


class ReadColumns:
    """Collects references to columns, and gives each a unique name, its own if possible.

    >>> from factor_windows.functions.expression import VerbatimSpark, sql_of
    >>> from sqlglot import parse_one
    >>> columns = ReadColumns("fw_")
    >>> sql_of(columns.take(parse_one("a.k + v + b.K", dialect=VerbatimSpark)))
    'k + v + `fw_c2`'
    >>> [sql_of(each) for each in columns.selected]
    ['a.k', 'v', 'b.K AS `fw_c2`']
    """

    def __init__(self, own: str, *, ours: Collection[str] = (), taken: Collection[str] = ()) -> None:
        """Take `ours`, columns that the table does not have, and `taken`, other names in the selection."""
        self._own, self._ours, self._taken = own, ours, {name.lower() for name in taken}
        self._found: dict[tuple[str, ...], tuple[exp.Expr, str]] = {}
        self._in_double_quotes: dict[str, exp.Expr] = {}

    @property
    def selected(self) -> list[exp.Expr]:
        """List what to select, including words in double quotes, which a session may read as names."""
        columns = [
            tree.copy() if tree.output_name == name else exp.alias_(tree.copy(), name, quoted=True)
            for tree, name in self._found.values()
        ]
        return columns + [tree.copy() for name, tree in self._in_double_quotes.items() if name not in self._used]

    @property
    def _used(self) -> set[str]:
        return self._taken | {name.lower() for _, name in self._found.values()}

    def take(self, tree: exp.Expr) -> exp.Expr:
        """Return an expression that reads the selected columns instead of the table's."""
        return tree.transform(self._replaced)

    def _replaced(self, node: exp.Expr) -> exp.Expr:
        if DOUBLE_QUOTED in node.meta and not node.name.lower().startswith(self._own):
            self._in_double_quotes[node.name.lower()] = node.copy()
        if not isinstance(node, exp.Column) or node.name in self._ours or _is_unit(node):
            return node
        parts = tuple(part.name for part in node.parts)
        if parts not in self._found:
            free = node.name.lower() not in self._used
            self._found[parts] = node.copy(), node.name if free else f"{self._own}c{len(self._found)}"
        name = self._found[parts][1]
        column = exp.Column(this=exp.to_identifier(name, quoted=name != node.name or node.this.args.get("quoted")))
        in_struct = isinstance(node.parent, exp.Anonymous) and node.parent.name.lower() == "struct"
        # A struct names its fields after the columns that it is made of.
        return exp.alias_(column, node.name, quoted=True) if in_struct and name != node.name else column


def _is_unit(column: exp.Column) -> bool:
    call = column.parent
    return (
        isinstance(call, exp.Anonymous)
        and call.name.lower() in _UNIT_FIRST
        and len(call.expressions) == 3
        and column is call.expressions[0]
    )
