"""Translate Spark SQL to DuckDB: only what means the same in both, as tests/test_duckdb_functions.py shows.

Engines share the names of many functions, but not their meaning. So a function is not passed on just because DuckDB has
one of that name: what is neither in `duckdb_functions` nor here is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import cache, reduce

from sqlglot import exp

from factor_windows.engines.duckdb_functions import AGGREGATES, ANY, SCALARS
from factor_windows.errors import QueryError
from factor_windows.functions.expression import sql_of, tree_of

Rule = Callable[..., exp.Expr | None]
"""The translation of a node whose parts are already translated; `None` if there is none."""
_ROUNDED_TO_ZERO = (
    "CASE WHEN typeof(:a) IN ('DOUBLE', 'FLOAT') THEN CAST(trunc(CAST(CAST(:a AS VARCHAR) AS DOUBLE)) AS BIGINT) "
    "WHEN typeof(:a) LIKE 'DECIMAL%' OR typeof(:a) = 'VARCHAR' "
    "THEN CAST(split_part(CAST(:a AS VARCHAR), '.', 1) AS BIGINT) ELSE CAST(:a AS BIGINT) END"
)
"""DuckDB rounds to the nearest integer; digits of long decimals, and of text, must not go through a double."""
_NO_FLOATING = "CASE WHEN typeof(:a) IN ('DOUBLE', 'FLOAT') THEN error(:b) ELSE :c END"
_NO_DATE = "CASE WHEN typeof(:a) = 'DATE' THEN error(:b) ELSE :c END"
_WHOLE = {exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT}
_TYPES = _WHOLE | {
    *(exp.DType.DOUBLE, exp.DType.FLOAT, exp.DType.BOOLEAN, exp.DType.DATE, exp.DType.DECIMAL, exp.DType.TEXT),
    *(exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ),
}
_CLOCK_UNITS = {"HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"}
_CALENDAR_UNITS = {"DAY", "WEEK", "MONTH", "YEAR"}
_TRUNCATED_TO = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
    **dict.fromkeys(("month", "mon", "mm"), "month"),
    **dict.fromkeys(("day", "dd"), "day"),
    **{unit: unit for unit in ("quarter", "week", "hour", "minute", "second", "millisecond", "microsecond")},
}
_PLAIN_PATTERN = re.compile(r"\^?(?:[\w \-,:;@/#%=!~'\"<>|]|\[\^?[\w \-,:;@/#%=]+\]|\((?!\?)|\)|[*+?](?![*+?]))*")
"""Regular expressions that Java's engine and DuckDB's read alike."""
_OPERATORS = (exp.Binary, exp.Neg, exp.Not)
_SAME = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Alias, exp.Star, exp.Var),
    *(exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.In, exp.Between),
    *(exp.NullSafeEQ, exp.NullSafeNEQ, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.DPipe),
    *(exp.Case, exp.If, exp.Distinct, exp.Filter, exp.Where, exp.DataType, exp.DataTypeParam, exp.Array, exp.Tuple),
    *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseNot),
    *(exp.Select, exp.From, exp.Join, exp.Table, exp.TableAlias, exp.Subquery, exp.CTE, exp.With, exp.Values),
    *(exp.Union, exp.Except, exp.Intersect, exp.Order, exp.Ordered, exp.Limit, exp.Offset, exp.Group, exp.Having),
)
"""Nodes that are written alike and mean the same, or that sqlglot corrects for DuckDB, such as division."""


def translate(tree: exp.Expr) -> exp.Expr:
    """Return the DuckDB form of a tree of Spark SQL; refuse, by name, what has no faithful translation.

    >>> translate(tree_of("date_add(d, 1)")).sql(dialect="duckdb")
    '(CAST(d AS DATE) + CAST(1 AS INT))'
    """
    root = exp.Paren(this=tree.copy())
    # Parts come before the expressions that contain them.
    for original, node in reversed(list(zip(tree.walk(), root.this.walk(), strict=True))):
        translated = _translated(node)
        if translated is None:
            raise QueryError(
                f"{sql_of(original)} has no faithful translation to DuckDB; docs/sql.md lists what has one"
            )
        if translated is not node:
            node.replace(translated)
    return _taken_out(root)


def functions() -> list[str]:
    """List the functions that have a translation."""
    return sorted({*AGGREGATES, *SCALARS, *_SPECIAL})


def _translated(node: exp.Expr) -> exp.Expr | None:
    if isinstance(node, exp.Anonymous):
        return _called(node)
    for kind, rule in _RULES.items():
        if isinstance(node, kind):
            return rule(node)
    return node if type(node) in _SAME else None


def _called(call: exp.Anonymous) -> exp.Expr | None:
    name, arguments = call.name.lower(), call.expressions
    special = _SPECIAL.get(name)
    if special is not None:
        return special(call)
    forms = AGGREGATES.get(name) or SCALARS.get(name) or {}
    if ANY in forms:
        return exp.Anonymous(this=forms[ANY], expressions=arguments)
    template = forms.get(len(arguments))
    return None if template is None else _filled(template, *arguments)


def _filled(template: str, *values: exp.Expr) -> exp.Expr:
    """Put values into a template, in parentheses unless they are a name, a number or a call."""
    tree = _parsed(template).copy()
    names = dict(zip("abc", values, strict=False))
    for place in list(tree.find_all(exp.Placeholder)):
        value = names[place.name].copy()
        atom = isinstance(value, exp.Column | exp.Literal | exp.Func | exp.Paren)
        new = exp.Paren(this=value) if isinstance(place.parent, _OPERATORS) and not atom else value
        if place is tree:
            return new
        place.replace(new)
    return exp.Paren(this=tree) if isinstance(tree, _OPERATORS) else tree


@cache
def _parsed(template: str) -> exp.Expr:
    root = exp.Paren(this=tree_of(template))
    for cast in reversed(list(root.find_all(exp.TryCast))):
        cast.replace(exp.Cast(this=cast.this, to=cast.to))
    return _taken_out(root)


def _taken_out(root: exp.Paren) -> exp.Expr:
    tree: exp.Expr = root.this.pop()
    return tree


def _concat(call: exp.Anonymous) -> exp.Expr:
    """Join text with ||, which is null if a part is; DuckDB's own concat skips nulls."""
    texts = map(_as_text, call.expressions)
    return exp.Paren(this=reduce(lambda left, right: exp.DPipe(this=left, expression=right), texts))


def _cast(node: exp.Cast) -> exp.Expr | None:
    kind = node.to.this
    if kind not in _TYPES or node.args.get("safe"):
        return None
    if kind in _WHOLE and not node.this.is_string and not node.this.is_int:
        return exp.Cast(this=_filled(_ROUNDED_TO_ZERO, node.this), to=node.to)
    if kind is exp.DType.TEXT:
        return _as_text(node.this)
    if kind is exp.DType.DECIMAL:
        # The cast uses the digits in which a floating-point number is written, as in Spark.
        return exp.Cast(this=exp.Cast(this=node.this, to=exp.DataType.build("TEXT")), to=node.to)
    return exp.Cast(this=node.this, to=node.to)


def _as_text(value: exp.Expr) -> exp.Expr:
    if isinstance(value, exp.Literal) and value.is_string:
        return value
    why = exp.Literal.string("Spark and DuckDB write floating numbers differently; cast them to a decimal first")
    return _filled(_NO_FLOATING, value, why, exp.Cast(this=value.copy(), to=exp.DataType.build("TEXT")))


def _truncate(form: str, units: Collection[str | None], place: int) -> Rule:
    """Return the rule of a function that truncates a time to one of `units`, a text at `place` of two arguments."""

    def rule(call: exp.Anonymous) -> exp.Expr | None:
        if len(call.expressions) != 2 or not call.expressions[place].is_string:
            return None
        unit = _TRUNCATED_TO.get(call.expressions[place].name.lower())
        return _filled(form.format(unit), call.expressions[1 - place]) if unit in units else None

    return rule


def _sha2(call: exp.Anonymous) -> exp.Expr | None:
    bits = call.expressions[1].name if len(call.expressions) == 2 else ""
    return _filled("sha256(:a)", call.expressions[0]) if bits in ("0", "256") else None


def _like(node: exp.Like) -> exp.Expr:
    """Name the escape character: a backslash in Spark, none in DuckDB."""
    if isinstance(node.parent, exp.Escape):
        return node
    return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))


def _matches(node: exp.Expr) -> exp.Expr | None:
    """Match text with a pattern: x RLIKE y, or a call of rlike(x, y)."""
    values = node.expressions if isinstance(node, exp.Anonymous) else [node.this, node.expression]
    if len(values) != 2 or not values[1].is_string:
        return None
    pattern = values[1].name
    if not _PLAIN_PATTERN.fullmatch(pattern) or not pattern.isascii():
        return None
    return exp.Anonymous(this="regexp_matches", expressions=values)


def _interval(node: exp.Interval) -> exp.Expr | None:
    whole = isinstance(node.this, exp.Literal) and re.fullmatch(r"-?\d+", node.this.name.strip())
    return node if whole and _unit(node) in _CLOCK_UNITS | _CALENDAR_UNITS else None


def _unit(interval: exp.Interval) -> str:
    unit = interval.args.get("unit")
    return unit.name.upper().removesuffix("S") if isinstance(unit, exp.Var) else ""


def _moved(node: exp.Add | exp.Sub) -> exp.Expr:
    """Shift a time by an interval; a date shifted by days is a date in Spark, and a timestamp in DuckDB."""
    for interval, moved in ((node.expression, node.this), (node.this, node.expression)):
        if isinstance(interval, exp.Interval) and _unit(interval) in _CALENDAR_UNITS:
            why = exp.Literal.string("a date moved by days, months or years differs; use date_add or add_months")
            return _filled(_NO_DATE, moved, why, node.copy())
    return node


def _extract(node: exp.Extract) -> exp.Expr | None:
    forms = SCALARS.get(node.this.name.lower())
    known = node.this.name.lower() in ("year", "quarter", "month", "day", "hour", "minute", "dayofweek")
    return _filled(forms[1], node.expression) if forms and known else None


def _substring(node: exp.Substring) -> exp.Expr:
    values = [node.this, node.args["start"], *([node.args["length"]] if node.args.get("length") else [])]
    return _filled(SCALARS["substr"][len(values)], *values)


def _position(node: exp.StrPosition) -> exp.Expr | None:
    if node.args.get("position") or node.args.get("occurrence"):
        return None
    return _filled("CAST(instr(:a, :b) AS INTEGER)", node.this, node.args["substr"])


def _trimmed(node: exp.Trim) -> exp.Expr:
    forms = {"LEADING": "ltrim(:a, :b)", "TRAILING": "rtrim(:a, :b)"}
    form = forms.get(str(node.args.get("position") or "").upper(), "ltrim(rtrim(:a, :b), :b)")
    return _filled(form, node.this, node.args.get("expression") or exp.Literal.string(" "))


def _any(node: exp.Any) -> exp.Expr | None:
    """Translate `any(x)` as the aggregate, but not `1 = ANY (1, 2)`."""
    return None if isinstance(node.parent, exp.Binary) else _filled("bool_or(:a)", node.this.unnest())


def _filtered(node: exp.Filter) -> exp.Expr:
    """Move the condition to the aggregate itself, if its translation is wrapped in something."""
    call: exp.Expr = node.this
    if isinstance(call, exp.Anonymous) and call.name != "coalesce":
        return node
    inner = next(each for each in call.find_all(exp.Anonymous) if each.name == "list")
    inner.replace(exp.Filter(this=inner.copy(), expression=node.expression))
    return call


_SPECIAL: dict[str, Rule] = {
    "concat": _concat,
    "date_trunc": _truncate("date_trunc('{}', :a)", {*_TRUNCATED_TO.values()}, 0),
    "regexp_like": _matches,
    "rlike": _matches,
    "sha2": _sha2,
    "trunc": _truncate("CAST(date_trunc('{}', CAST(:a AS DATE)) AS DATE)", ("year", "quarter", "month", "week"), 1),
}
_RULES: dict[type[exp.Expr], Rule] = {
    exp.Cast: _cast,
    exp.Like: _like,
    exp.Escape: lambda node: node,
    exp.RegexpLike: _matches,
    exp.Interval: _interval,
    exp.Add: _moved,
    exp.Sub: _moved,
    exp.IntDiv: lambda node: _filled("CAST(:a DIV :b AS BIGINT)", node.this, node.expression),
    exp.Extract: _extract,
    exp.Substring: _substring,
    exp.StrPosition: _position,
    exp.Trim: _trimmed,
    exp.Filter: _filtered,
    exp.Any: _any,
}
