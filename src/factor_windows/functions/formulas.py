"""Expressions over aggregates, such as `max(v) - min(v) AS spread`: their calls, and the expressions over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from factor_windows.errors import AggregateError
from factor_windows.functions.aggregate import Aggregate, aggregate_inside, is_call, unknown
from factor_windows.functions.expression import Expression, name_fields, name_of, parse, sql_of
from factor_windows.functions.naming import prefix_until_free


@dataclass(frozen=True, slots=True)
class Formulas:
    """A query's aggregates: calls, each in its own column, and expressions over these columns."""

    calls: tuple[Aggregate, ...]
    shown: tuple[Expression, ...]
    """The result as expressions over the calls' columns; empty if it is the calls themselves."""

    @classmethod
    def read(cls, texts: Sequence[str], keys: Mapping[str, str]) -> Formulas:
        """Read aggregates; `keys` are the columns allowed next to calls, by their SQL.

        >>> found = Formulas.read(["max(v)", "max(v) - min(v) AS spread"], {})
        >>> [(call.sql, call.name) for call in found.calls]
        [('max(v)', 'max(v)'), ('min(v)', '__call_1')]
        >>> [each.sql for each in found.shown]
        ['`max(v)`', '`max(v)` - `__call_1`']
        """
        parsed = [(*parse(text, what="aggregate", error=AggregateError), text) for text in texts]
        plain = {sql_of(tree): alias or name_of(tree) for tree, alias, _ in parsed if is_call(tree.unnest())}
        if len(parsed) == sum(is_call(tree.unnest()) for tree, _, _ in parsed):
            return cls(tuple(Aggregate.of_tree(tree, alias or name_of(tree), text) for tree, alias, text in parsed), ())
        taken = {name.lower() for name in (*plain.values(), *(alias for _, alias, _ in parsed), *keys.values())}
        calls: dict[str, Aggregate] = {}
        shown = []
        for tree, alias, text in parsed:
            name = alias or name_of(tree)

            def column(node: exp.Expr, text: str = text) -> exp.Expr:
                sql = sql_of(node)
                if not is_call(node):
                    name_fields(node)
                    return exp.column(keys[sql], quoted=True) if sql in keys else node
                if sql not in calls:
                    calls[sql] = Aggregate.of_tree(
                        node, plain.get(sql) or prefix_until_free(f"__call_{len(calls)}", taken), text
                    )
                return exp.column(calls[sql].name, quoted=True)

            formula = tree.transform(column)
            _check(tree, formula, set(keys.values()) | {call.name for call in calls.values()}, text)
            shown.append(Expression(sql_of(formula), name))
        return cls(tuple(calls.values()), tuple(shown))


def _check(tree: exp.Expr, formula: exp.Expr, known: set[str], text: str) -> None:
    """Refuse texts that are not expressions over aggregates: without aggregates, or with columns of single events."""
    inner = aggregate_inside(formula)
    if inner:
        raise unknown(inner.partition("(")[0], text)
    strange = next((column for column in formula.find_all(exp.Column) if column.name not in known), None)
    around = strange.find_ancestor(exp.Anonymous) if strange is not None else tree.find(exp.Anonymous)
    if strange is None and any(is_call(node) for node in tree.walk()):
        return
    if around is not None:
        raise unknown(around.name, text)
    if strange is None or strange is formula:
        raise AggregateError(
            f"aggregate {text!r} is not a call of an aggregate function, nor an expression over such; "
            "write it such as 'min(temperature)'"
        )
    raise AggregateError(
        f"aggregate {text!r} has {sql_of(strange)!r} outside of any aggregate function; "
        "aggregate it, or add it to the keys"
    )
