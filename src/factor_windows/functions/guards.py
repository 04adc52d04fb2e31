"""Guards: expressions that may fail are computed only where they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from sqlglot import exp

from factor_windows.functions.expression import is_typed_literal, sql_of, tree_of

_NEVER_FAIL = {
    *("ascii", "btrim", "char_length", "coalesce", "concat", "concat_ws", "contains", "date", "date_trunc", "day"),
    *("dayofmonth", "dayofweek", "dayofyear", "endswith", "greatest", "hash", "hour", "if", "ifnull", "initcap"),
    *("instr", "isnan", "isnotnull", "isnull", "lcase", "least", "left", "length", "lower", "lpad", "ltrim", "md5"),
    *("minute", "month", "nullif", "nvl", "nvl2", "quarter", "replace", "reverse", "right", "rpad", "rtrim"),
    *("second", "sha1", "startswith", "substr", "substring", "substring_index", "trim", "trunc", "try_add"),
    *("try_divide", "try_mod", "try_multiply", "try_subtract", "ucase", "unix_date", "unix_micros", "unix_seconds"),
    *("upper", "weekday", "weekofyear", "xxhash64", "year"),
}
"""Functions with a value, perhaps null, for all arguments of their types."""
_NEVER_FAIL_NODES = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Case, exp.If, exp.Connector),
    *(exp.Not, exp.Is, exp.Like, exp.ILike, exp.RegexpLike, exp.Dot, exp.Trim, exp.Substring, exp.Extract),
    *(exp.DPipe, exp.Var, exp.DataType),
)
_COERCING = {"coalesce", "greatest", "if", "ifnull", "least", "nullif", "nvl", "nvl2"}
"""Functions that convert their arguments to one type: next to a number, text is cast to a number, which may fail."""


@lru_cache(maxsize=4096)
def can_fail(expression: str) -> bool:
    """Say whether an expression may raise an error for some values, such as a cast of text that is not a number.

    >>> can_fail("upper(device)"), can_fail("device = 'a'"), can_fail("CAST(code AS INT)"), can_fail("a / b")
    (False, False, True, True)
    """
    return any(map(_may_fail, tree_of(expression).walk()))


def in_order(condition: str) -> str:
    """Write a condition so that no part of it is evaluated where an earlier part has already decided.

    Spark computes common parts of several conditions first, even if AND guards them; it does not do so for parts that
    CASE guards. The result is true where the condition is, and false or null elsewhere.

    >>> in_order("kind = 'n' AND CAST(code AS INT) > 3")
    "CASE WHEN kind = 'n' THEN CAST(code AS INT) > 3 ELSE FALSE END"
    >>> in_order("ok AND v IS NULL")
    'ok AND v IS NULL'
    """
    return sql_of(_guarded(tree_of(condition))) if can_fail(condition) else condition


def only_where(expression: str, conditions: Sequence[str]) -> str:
    """Write an expression that may fail so that it is computed only where one of several conditions holds.

    >>> only_where("CAST(code AS INT)", ["kind = 'n'"])
    "CASE WHEN kind = 'n' THEN CAST(code AS INT) END"
    >>> only_where("CAST(code AS INT)", ["kind = 'n'", ""]), only_where("upper(code)", ["ok"])
    ('CAST(code AS INT)', 'upper(code)')
    """
    if not all(conditions) or not can_fail(expression):
        return expression
    return f"CASE WHEN {in_order(either(conditions))} THEN {expression} END"


def either(conditions: Sequence[str]) -> str:
    """Write a condition that holds where one of several conditions does.

    >>> either(["a", "b"]), either(["a"])
    ('(a) OR (b)', 'a')
    """
    return conditions[0] if len(conditions) == 1 else " OR ".join(f"({each})" for each in dict.fromkeys(conditions))


def _guarded(tree: exp.Expr) -> exp.Expr:
    tree = tree.unnest()
    if not isinstance(tree, exp.And | exp.Or):
        return tree
    first, second = _guarded(tree.this), _guarded(tree.expression)
    if isinstance(tree, exp.And):
        return exp.Case(ifs=[exp.If(this=first, true=second)], default=exp.false())
    return exp.Case(ifs=[exp.If(this=first, true=exp.true())], default=second)


def _may_fail(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        return name not in _NEVER_FAIL or (name in _COERCING and any(map(_is_number, node.expressions)))
    if isinstance(node, exp.Cast):
        return (
            not is_typed_literal(node) and not node.args.get("safe") and not node.to.is_type(*exp.DataType.TEXT_TYPES)
        )
    if isinstance(node, exp.Neg):
        return not isinstance(node.this, exp.Literal)
    if isinstance(node, exp.EQ | exp.NEQ | exp.In):
        return not any(isinstance(each, exp.Literal) and each.is_string for each in node.iter_expressions())
    return not isinstance(node, _NEVER_FAIL_NODES)


def _is_number(node: exp.Expr) -> bool:
    return isinstance(node.this if isinstance(node, exp.Neg) else node, exp.Literal) and not node.is_string
