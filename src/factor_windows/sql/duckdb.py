"""Spark SQL in DuckDB's words: only what means the same in both, as tests/test_duckdb_functions.py shows.

Engines share the names of many functions and not their meaning. So nothing is passed on because it has a name that
DuckDB knows: what is not in these tables is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from sqlglot import exp, parse_one

from factor_windows.errors import QueryError
from factor_windows.expressions import VerbatimSpark, sql_of

_ANY = -1
"""An entry for any number of arguments, which are passed on under the same name."""

_AGGREGATES = {
    "any": {1: "bool_or(:a)"},
    "approx_count_distinct": {1: "count(DISTINCT :a)", 2: "count(DISTINCT :a)"},
    "approx_percentile": {2: "quantile_disc(:a, :b)", 3: "quantile_disc(:a, :b)"},
    "avg": {1: "avg(:a)"},
    "bit_and": {1: "bit_and(:a)"},
    "bit_or": {1: "bit_or(:a)"},
    "bool_and": {1: "bool_and(:a)"},
    "bool_or": {1: "bool_or(:a)"},
    "collect_list": {1: "coalesce(list_filter(list(:a), e -> e IS NOT NULL), [])"},
    "collect_set": {1: "coalesce(list_distinct(list(:a)), [])"},
    "corr": {2: "corr(:a, :b)"},
    "count": {_ANY: "count"},
    "count_if": {1: "count(CASE WHEN :a THEN 1 END)"},
    "covar_pop": {2: "covar_pop(:a, :b)"},
    "covar_samp": {2: "covar_samp(:a, :b)"},
    "every": {1: "bool_and(:a)"},
    "max": {1: "max(:a)"},
    "max_by": {2: "arg_max_null(:a, :b)"},
    "mean": {1: "avg(:a)"},
    "median": {1: "median(:a)"},
    "min": {1: "min(:a)"},
    "min_by": {2: "arg_min_null(:a, :b)"},
    "mode": {1: "mode(:a)"},
    "percentile": {2: "quantile_cont(:a, :b)"},
    "percentile_approx": {2: "quantile_disc(:a, :b)", 3: "quantile_disc(:a, :b)"},
    "regr_avgx": {2: "regr_avgx(:a, :b)"},
    "regr_avgy": {2: "regr_avgy(:a, :b)"},
    "regr_count": {2: "regr_count(:a, :b)"},
    "regr_sxx": {2: "regr_sxx(:a, :b)"},
    "regr_sxy": {2: "regr_sxy(:a, :b)"},
    "regr_syy": {2: "regr_syy(:a, :b)"},
    "some": {1: "bool_or(:a)"},
    "std": {1: "stddev_samp(:a)"},
    "stddev": {1: "stddev_samp(:a)"},
    "stddev_pop": {1: "stddev_pop(:a)"},
    "stddev_samp": {1: "stddev_samp(:a)"},
    "sum": {1: "sum(:a)"},
    "var_pop": {1: "var_pop(:a)"},
    "var_samp": {1: "var_samp(:a)"},
    "variance": {1: "var_samp(:a)"},
}
_LENGTH = "CASE WHEN {0} < 0 THEN 0 ELSE {0} END"
_FROM_END = "length(:a) + :b"
_SUBSTRING = (
    f"CASE WHEN :b > 0 THEN substr(:a, :b, {_LENGTH.format(':c')}) "
    f"WHEN :b = 0 THEN substr(:a, 1, {_LENGTH.format(':c')}) "
    f"WHEN {_FROM_END} >= 0 THEN substr(:a, {_FROM_END} + 1, {_LENGTH.format(':c')}) "
    f"WHEN :b < 0 THEN substr(:a, 1, {_LENGTH.format(f'(:c + {_FROM_END})')}) END"
)
"""Spark counts from 1, takes 0 for it, counts from the end below, and what lies before the text is cut off."""
_SUBSTRING_TO_END = (
    f"CASE WHEN :b > 0 THEN substr(:a, :b) WHEN :b = 0 OR {_FROM_END} < 0 THEN :a "
    f"WHEN :b < 0 THEN substr(:a, {_FROM_END} + 1) END"
)
_TO_WHOLE = "CASE WHEN typeof(:a) LIKE '%INT%' THEN CAST(:a AS BIGINT) ELSE CAST({0}(:a) AS BIGINT) END"
_NAN = "CAST('nan' AS DOUBLE)"
_SIGN = f"CASE WHEN isnan(CAST(:a AS DOUBLE)) THEN {_NAN} ELSE CAST(sign(:a) AS DOUBLE) END"
_FLOORED = "CAST((epoch_us(:a) - (epoch_us(:a) % {0} + {0}) % {0}) DIV {0} AS BIGINT)"
_OTHER_UPPER = (
    "ŉƛǰɤΐΰևᲊẖ-ẚὐὒὔὖᾀ-ᾯᾲ-ᾴᾶᾷᾼῂ-ῄῆῇῌῒΐῖῗῢ-ῤῦῧῲ-ῴῶῷῼ"
    "\ua7cd\ua7cf\ua7d3\ua7d5\ua7db\ufb00-\ufb06\ufb13-\ufb17\U00010d70-\U00010d85\U00016ebb-\U00016ed3"
)
"""The letters whose capitals differ: Spark makes two of one (ﬁ to FI), or knows a newer Unicode."""
_OTHER_LOWER = (
    "İΣᲉ\ua7cb\ua7cc\ua7ce\ua7d2\ua7d4\ua7da\ua7dc\U00010d50-\U00010d65\U00016ea0-\U00016eb8"
)
"""The letters whose small ones differ; a sigma's depends on where it stands."""
_UPPER = (
    f"CASE WHEN regexp_matches(:a, '[{_OTHER_UPPER}]') "
    "THEN error('upper() of this text differs between Spark and DuckDB') ELSE upper(replace(:a, 'ß', 'SS')) END"
)
_LOWER = (
    f"CASE WHEN regexp_matches(:a, '[{_OTHER_LOWER}]') "
    "THEN error('lower() of this text differs between Spark and DuckDB') ELSE lower(:a) END"
)
_ROUND = (
    "CASE WHEN typeof(:a) IN ('DOUBLE', 'FLOAT') THEN error('Spark rounds the decimal digits of a floating number, and "
    "DuckDB the number; cast it to a decimal first') ELSE round(:a, :b) END"
)
_SCALARS = {
    "abs": {1: "abs(:a)"},
    "acos": {1: "CASE WHEN abs(:a) <= 1 THEN acos(:a) WHEN NOT :a IS NULL THEN CAST('nan' AS DOUBLE) END"},
    "add_months": {2: "CAST(CAST(:a AS DATE) + to_months(CAST(:b AS INTEGER)) AS DATE)"},
    "asin": {1: "CASE WHEN abs(:a) <= 1 THEN asin(:a) WHEN NOT :a IS NULL THEN CAST('nan' AS DOUBLE) END"},
    "atan": {1: "atan(:a)"},
    "atan2": {2: "atan2(:a, :b)"},
    "cbrt": {1: "cbrt(:a)"},
    "ceil": {1: _TO_WHOLE.format("ceil")},
    "ceiling": {1: _TO_WHOLE.format("ceil")},
    "char_length": {1: "length(:a)"},
    "character_length": {1: "length(:a)"},
    "coalesce": {_ANY: "coalesce"},
    "concat": {_ANY: "||"},
    "contains": {2: "contains(:a, :b)"},
    "cos": {1: "cos(:a)"},
    "date": {1: "CAST(:a AS DATE)"},
    "date_add": {2: "CAST(:a AS DATE) + CAST(:b AS INTEGER)"},
    "date_diff": {2: "CAST(date_diff('day', CAST(:b AS DATE), CAST(:a AS DATE)) AS INTEGER)"},
    "date_sub": {2: "CAST(:a AS DATE) - CAST(:b AS INTEGER)"},
    "datediff": {2: "CAST(date_diff('day', CAST(:b AS DATE), CAST(:a AS DATE)) AS INTEGER)"},
    "day": {1: "CAST(day(:a) AS INTEGER)"},
    "dayofmonth": {1: "CAST(day(:a) AS INTEGER)"},
    "dayofweek": {1: "CAST(dayofweek(:a) + 1 AS INTEGER)"},
    "dayofyear": {1: "CAST(dayofyear(:a) AS INTEGER)"},
    "degrees": {1: "degrees(:a)"},
    "endswith": {2: "ends_with(:a, :b)"},
    "exp": {1: "exp(:a)"},
    "floor": {1: _TO_WHOLE.format("floor")},
    "greatest": {_ANY: "greatest"},
    "hour": {1: "CAST(hour(:a) AS INTEGER)"},
    "ifnull": {2: "coalesce(:a, :b)"},
    "instr": {2: "CAST(instr(:a, :b) AS INTEGER)"},
    "isnan": {1: "coalesce(isnan(:a), FALSE)"},
    "isnotnull": {1: "NOT :a IS NULL"},
    "isnull": {1: "(:a IS NULL)"},
    "last_day": {1: "last_day(CAST(:a AS DATE))"},
    "least": {_ANY: "least"},
    "left": {2: f"substr(:a, 1, {_LENGTH.format(':b')})"},
    "len": {1: "CAST(length(:a) AS INTEGER)"},
    "length": {1: "CAST(length(:a) AS INTEGER)"},
    "ln": {1: "CASE WHEN :a > 0 THEN ln(:a) END"},
    "locate": {2: "CAST(instr(:b, :a) AS INTEGER)"},
    "log": {1: "CASE WHEN :a > 0 THEN ln(:a) END"},
    "log10": {1: "CASE WHEN :a > 0 THEN log10(:a) END"},
    "log2": {1: "CASE WHEN :a > 0 THEN log2(:a) END"},
    "lower": {1: _LOWER},
    "ltrim": {1: "ltrim(:a, ' ')"},
    "md5": {1: "md5(:a)"},
    "minute": {1: "CAST(minute(:a) AS INTEGER)"},
    "mod": {2: ":a % :b"},
    "month": {1: "CAST(month(:a) AS INTEGER)"},
    "nanvl": {2: "CASE WHEN isnan(:a) THEN :b ELSE :a END"},
    "negative": {1: "-(:a)"},
    "nullif": {2: "nullif(:a, :b)"},
    "nvl": {2: "coalesce(:a, :b)"},
    "nvl2": {3: "CASE WHEN NOT :a IS NULL THEN :b ELSE :c END"},
    "pmod": {2: "CASE WHEN :a % :b < 0 THEN (:a % :b + :b) % :b ELSE :a % :b END"},
    "positive": {1: ":a"},
    "pow": {2: "pow(:a, :b)"},
    "power": {2: "pow(:a, :b)"},
    "quarter": {1: "CAST(quarter(:a) AS INTEGER)"},
    "radians": {1: "radians(:a)"},
    "repeat": {2: "repeat(:a, :b)"},
    "replace": {3: "CASE WHEN :b = '' THEN :a ELSE replace(:a, :b, :c) END"},
    "reverse": {1: "reverse(:a)"},
    "right": {2: "CASE WHEN :b <= 0 THEN substr(:a, 1, 0) ELSE right(:a, :b) END"},
    "round": {1: "round(:a)", 2: _ROUND},
    "rtrim": {1: "rtrim(:a, ' ')"},
    "second": {1: "CAST(second(:a) AS INTEGER)"},
    "sign": {1: _SIGN},
    "signum": {1: _SIGN},
    "sin": {1: "sin(:a)"},
    "sqrt": {1: "sqrt(:a)"},
    "startswith": {2: "starts_with(:a, :b)"},
    "substr": {2: _SUBSTRING_TO_END, 3: _SUBSTRING},
    "substring": {2: _SUBSTRING_TO_END, 3: _SUBSTRING},
    "tan": {1: "tan(:a)"},
    "to_date": {1: "CAST(:a AS DATE)"},
    "trim": {1: "ltrim(rtrim(:a, ' '), ' ')"},
    "unix_date": {1: "date_diff('day', DATE '1970-01-01', :a)"},
    "unix_micros": {1: "epoch_us(:a)"},
    "unix_millis": {1: _FLOORED.format(1000)},
    "unix_seconds": {1: _FLOORED.format(1000000)},
    "unix_timestamp": {1: "CAST(epoch_us(:a) DIV 1000000 AS BIGINT)"},
    "upper": {1: _UPPER},
    "weekday": {1: "CAST(isodow(:a) - 1 AS INTEGER)"},
    "weekofyear": {1: "CAST(weekofyear(:a) AS INTEGER)"},
    "year": {1: "CAST(year(:a) AS INTEGER)"},
}
_ROUNDED_TO_ZERO = (
    "CASE WHEN typeof(:a) IN ('DOUBLE', 'FLOAT') THEN CAST(trunc(CAST(CAST(:a AS VARCHAR) AS DOUBLE)) AS BIGINT) "
    "WHEN typeof(:a) LIKE 'DECIMAL%' OR typeof(:a) = 'VARCHAR' "
    "THEN CAST(split_part(CAST(:a AS VARCHAR), '.', 1) AS BIGINT) ELSE CAST(:a AS BIGINT) END"
)
"""DuckDB rounds to the nearest whole number; digits of long decimals, and of text, must not pass through a double."""
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
_SAME = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Alias, exp.Star, exp.Var),
    *(exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.In, exp.Between),
    *(exp.NullSafeEQ, exp.NullSafeNEQ, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.DPipe),
    *(exp.Case, exp.If, exp.Distinct, exp.Filter, exp.Where, exp.DataType, exp.DataTypeParam, exp.Array, exp.Tuple),
    *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseNot, exp.Coalesce, exp.Placeholder),
    *(exp.Select, exp.From, exp.Join, exp.Table, exp.TableAlias, exp.Subquery, exp.CTE, exp.With, exp.Values),
    *(exp.Union, exp.Except, exp.Intersect, exp.Order, exp.Ordered, exp.Limit, exp.Offset, exp.Group, exp.Having),
)
"""What is written alike and means the same, or what DuckDB's writer of sqlglot puts right, such as division."""


def translate(tree: exp.Expr) -> exp.Expr:
    """Return the DuckDB form of a tree of Spark SQL; what has none that is faithful is refused by name.

    >>> from factor_windows.expressions import VerbatimSpark
    >>> translate(parse_one("date_add(d, 1)", dialect=VerbatimSpark)).sql(dialect="duckdb")
    'CAST(d AS DATE) + CAST(1 AS INT)'
    """
    originals = list(tree.walk())
    root = exp.Paren(this=tree.copy())
    copies = list(root.this.walk())
    # Parts before the wholes that they are in.
    for original, node in zip(reversed(originals), reversed(copies), strict=True):
        translated = _translated(node)
        if translated is None:
            raise QueryError(
                f"{sql_of(original)} has no faithful translation to DuckDB; docs/sql.md lists what has one"
            )
        if translated is not node:
            node.replace(translated)
    return root.this.pop()


def functions() -> list[str]:
    """List the functions that have a translation."""
    return sorted({*_AGGREGATES, *_SCALARS, *_SPECIAL})


def _translated(node: exp.Expr) -> exp.Expr | None:
    """Return what a node becomes, its parts being translated already; nothing if there is no such form."""
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
    forms = _AGGREGATES.get(name) or _SCALARS.get(name) or {}
    if _ANY in forms:
        if forms[_ANY] == "||":
            return _joined(arguments)
        return exp.Anonymous(this=forms[_ANY], expressions=arguments)
    template = forms.get(len(arguments))
    return None if template is None else _filled(template, *arguments)


def _filled(template: str, *values: exp.Expr) -> exp.Expr:
    """Put values into a template, in parentheses where they are more than a name, a number or a call."""
    tree = _parsed(template).copy()
    names = dict(zip("abc", values, strict=False))
    for place in list(tree.find_all(exp.Placeholder)):
        value = names[place.name]
        atom = isinstance(value, exp.Column | exp.Literal | exp.Func | exp.Paren | exp.Distinct | exp.Star)
        new = value.copy() if atom or not isinstance(place.parent, exp.Binary | exp.Unary) else exp.Paren(this=value.copy())
        if place is tree:
            return new
        place.replace(new)
    wraps = isinstance(tree, exp.Binary | exp.Unary) and not isinstance(tree, exp.Paren)
    return exp.Paren(this=tree) if wraps else tree


@cache
def _parsed(template: str) -> exp.Expr:
    root = exp.Paren(this=parse_one(template, dialect=VerbatimSpark))
    for cast in reversed(list(root.find_all(exp.TryCast))):
        cast.replace(exp.Cast(this=cast.this, to=cast.to))
    return root.this.pop()


def _joined(parts: list[exp.Expr]) -> exp.Expr:
    """Join text by ||, which is null if a part is; DuckDB's own concat passes over nulls."""
    texts = [_as_text(part) for part in parts]
    joined = texts[0]
    for text in texts[1:]:
        joined = exp.DPipe(this=joined, expression=text)
    return exp.Paren(this=joined)


def _cast(node: exp.Cast) -> exp.Expr | None:
    kind = node.to.this
    if kind not in _TYPES or node.args.get("safe"):
        return None
    if isinstance(node.this, exp.Literal):
        return exp.Cast(this=node.this, to=node.to)
    if kind in _WHOLE:
        return exp.Cast(this=_filled(_ROUNDED_TO_ZERO, node.this), to=node.to)
    if kind is exp.DType.TEXT:
        return _as_text(node.this)
    if kind is exp.DType.DECIMAL:
        # Of the digits that a floating number is written with, as Spark does.
        return exp.Cast(this=exp.Cast(this=node.this, to=exp.DataType.build("TEXT")), to=node.to)
    return exp.Cast(this=node.this, to=node.to)


def _as_text(value: exp.Expr) -> exp.Expr:
    if isinstance(value, exp.Literal) and value.is_string:
        return value
    why = exp.Literal.string("Spark and DuckDB write floating numbers differently; cast them to a decimal first")
    return _filled(_NO_FLOATING, value, why, exp.Cast(this=value.copy(), to=exp.DataType.build("TEXT")))


def _date_trunc(call: exp.Anonymous) -> exp.Expr | None:
    if len(call.expressions) != 2 or not call.expressions[0].is_string:
        return None
    unit = _TRUNCATED_TO.get(call.expressions[0].name.lower())
    return unit and _filled(f"date_trunc('{unit}', :a)", call.expressions[1])


def _trunc(call: exp.Anonymous) -> exp.Expr | None:
    if len(call.expressions) != 2 or not call.expressions[1].is_string:
        return None
    unit = _TRUNCATED_TO.get(call.expressions[1].name.lower())
    if unit not in ("year", "quarter", "month", "week"):
        return None
    return _filled(f"CAST(date_trunc('{unit}', CAST(:a AS DATE)) AS DATE)", call.expressions[0])


def _sha2(call: exp.Anonymous) -> exp.Expr | None:
    bits = call.expressions[1].name if len(call.expressions) == 2 else ""
    return _filled("sha256(:a)", call.expressions[0]) if bits in ("0", "256") else None


def _if(call: exp.Anonymous) -> exp.Expr | None:
    return _filled("CASE WHEN :a THEN :b ELSE :c END", *call.expressions) if len(call.expressions) == 3 else None


def _like(node: exp.Like) -> exp.Expr:
    """Say which character escapes: for Spark it is a backslash, for DuckDB none is."""
    if isinstance(node.parent, exp.Escape):
        return node
    return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))


def _regexp_like(node: exp.RegexpLike) -> exp.Expr | None:
    return _matches(node.this, node.expression)


def _matches(text: exp.Expr, pattern: exp.Expr) -> exp.Expr | None:
    if not pattern.is_string or not _PLAIN_PATTERN.fullmatch(pattern.name) or not pattern.name.isascii():
        return None
    return exp.Anonymous(this="regexp_matches", expressions=[text, pattern])


def _rlike(call: exp.Anonymous) -> exp.Expr | None:
    return _matches(*call.expressions) if len(call.expressions) == 2 else None


def _interval(node: exp.Interval) -> exp.Expr | None:
    unit = node.args.get("unit")
    if not isinstance(unit, exp.Var) or not isinstance(node.this, exp.Literal):
        return None
    name = unit.name.upper().removesuffix("S")
    if not re.fullmatch(r"-?\d+", node.this.name.strip()) or name not in _CLOCK_UNITS | _CALENDAR_UNITS:
        return None
    return node


def _moved(node: exp.Add | exp.Sub) -> exp.Expr:
    """Move a time by an interval; a date moved by days is a date for Spark, and a timestamp for DuckDB."""
    interval = node.expression
    if not isinstance(interval, exp.Interval) or interval.args["unit"].name.upper().removesuffix("S") in _CLOCK_UNITS:
        return node
    why = exp.Literal.string("a date moved by days, months or years differs; use date_add or add_months")
    return _filled(_NO_DATE, node.this, why, node.copy())


def _whole_quotient(node: exp.IntDiv) -> exp.Expr:
    return _filled("CAST(:a DIV :b AS BIGINT)", node.this, node.expression)


def _extract(node: exp.Extract) -> exp.Expr | None:
    forms = _SCALARS.get(node.this.name.lower())
    known = node.this.name.lower() in ("year", "quarter", "month", "day", "hour", "minute", "dayofweek")
    return _filled(forms[1], node.expression) if forms and known else None


def _substring(node: exp.Substring) -> exp.Expr:
    values = [node.this, node.args["start"], *([node.args["length"]] if node.args.get("length") else [])]
    return _filled(_SCALARS["substr"][len(values)], *values)


def _position(node: exp.StrPosition) -> exp.Expr | None:
    if node.args.get("position") or node.args.get("occurrence"):
        return None
    return _filled("CAST(instr(:a, :b) AS INTEGER)", node.this, node.args["substr"])


def _trimmed(node: exp.Trim) -> exp.Expr:
    forms = {"LEADING": "ltrim(:a, :b)", "TRAILING": "rtrim(:a, :b)"}
    form = forms.get(str(node.args.get("position") or "").upper(), "ltrim(rtrim(:a, :b), :b)")
    return _filled(form, node.this, node.args.get("expression") or exp.Literal.string(" "))


def _any(node: exp.Any) -> exp.Expr | None:
    """Take `any(x)` for the aggregate, and not `1 = ANY (1, 2)`."""
    return None if isinstance(node.parent, exp.Binary) else _filled("bool_or(:a)", node.this.unnest())


def _filtered(node: exp.Filter) -> exp.Expr:
    """Move the condition to the aggregate itself, where its translation has something around it."""
    call = node.this
    if isinstance(call, exp.Anonymous) and call.name not in ("coalesce", "list_filter", "list_distinct"):
        return node
    inner = next(each for each in call.find_all(exp.Anonymous) if each.name == "list")
    inner.replace(exp.Filter(this=inner.copy(), expression=node.expression))
    return call


_SPECIAL: dict[str, Callable[[exp.Anonymous], exp.Expr | None]] = {
    "date_trunc": _date_trunc,
    "if": _if,
    "regexp_like": _rlike,
    "rlike": _rlike,
    "sha2": _sha2,
    "trunc": _trunc,
}
_RULES: dict[type[exp.Expr], Callable[..., exp.Expr | None]] = {
    exp.Cast: _cast,
    exp.Like: _like,
    exp.Escape: lambda node: node,
    exp.RegexpLike: _regexp_like,
    exp.Interval: _interval,
    exp.Add: _moved,
    exp.Sub: _moved,
    exp.IntDiv: _whole_quotient,
    exp.Extract: _extract,
    exp.Substring: _substring,
    exp.StrPosition: _position,
    exp.Trim: _trimmed,
    exp.Filter: _filtered,
    exp.Any: _any,
}
