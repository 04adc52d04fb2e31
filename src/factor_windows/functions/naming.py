"""The names that Spark gives to columns without an alias, for common expressions; Spark itself has the last word."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container
from decimal import Decimal

from sqlglot import exp

_SYMBOLS: dict[type[exp.Expr], str] = {exp.And: "AND", exp.Or: "OR", exp.EQ: "=", exp.NullSafeEQ: "<=>"}
_SYMBOLS |= {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "div"}
_SYMBOLS |= {exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}
_SYMBOLS |= {exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^"}
_FORMS: dict[type[exp.Expr], str] = {
    exp.Array: "array({expressions})",
    exp.Between: "between({this}, {low}, {high})",
    exp.BitwiseNot: "~{this}",
    exp.Bracket: "{this}[{expressions}]",
    exp.DPipe: "concat({this}, {expression})",
    exp.Distinct: "DISTINCT {expressions}",
    exp.Filter: "{this} FILTER (WHERE {expression})",
    exp.ILike: "ilike({this}, {expression})",
    exp.If: "(IF({this}, {true}, {false}))",
    exp.IgnoreNulls: "{this}",
    exp.In: "({this} IN ({expressions}))",
    exp.Like: "{this} LIKE {expression}",
    exp.NEQ: "(NOT ({this} = {expression}))",
    exp.NullSafeNEQ: "(NOT ({this} <=> {expression}))",
    exp.Paren: "{this}",
    exp.RegexpLike: "RLIKE({this}, {expression})",
    exp.Star: "1",
    exp.Where: "{this}",
    **{kind: f"({{this}} {symbol} {{expression}})" for kind, symbol in _SYMBOLS.items()},
}
"""Templates of expressions, with the names of their parts."""
_SPELLED = {"ceil": "CEIL", "floor": "FLOOR", "log10": "LOG10", "power": "POWER", "sqrt": "SQRT"}
"""Functions whose names Spark writes in capitals."""
_RENAMED = {"array_agg": "collect_list", "dateadd": "timestampadd"}
_DEFAULTS = {
    "approx_percentile": (3, "10000"),
    "percentile_approx": (3, "10000"),
    "percentile": (3, "1"),
    "listagg": (2, "NULL"),
    "string_agg": (2, "NULL"),
    "regexp_replace": (4, "1"),
    "split": (3, "-1"),
    "unix_timestamp": (2, "yyyy-MM-dd HH:mm:ss"),
    "from_unixtime": (2, "yyyy-MM-dd HH:mm:ss"),
}
"""Arguments that Spark adds: their resulting number, and the last of them."""
_CASTS = {"bigint", "binary", "boolean", "date", "double", "float", "int", "smallint", "string", "timestamp", "tinyint"}
"""Functions that are casts."""
_SUFFIXES = ("BIGINT", "DECIMAL", "DOUBLE", "FLOAT", "SMALLINT", "TINYINT")


def name_of(tree: exp.Expr) -> str:
    """Name a column as Spark does when the user gives no alias.

    >>> from sqlglot import parse_one
    >>> name_of(parse_one("(price + 1) * -`my qty` IN (1e3, 'a')", dialect="spark"))
    '(((price + 1) * (- my qty)) IN (1000.0, a))'
    """
    tree = tree.unnest()
    if isinstance(tree, exp.Column | exp.Dot):
        return tree.name
    inner = tree.this if isinstance(tree, exp.Cast) else None
    if isinstance(tree, exp.Anonymous) and tree.name.lower() in _CASTS and len(tree.expressions) == 1:
        inner = tree.expressions[0]
    return inner.name if isinstance(inner, exp.Column | exp.Dot) else full_name_of(tree)


def full_name_of(tree: exp.Expr) -> str:
    """Name a column by its full expression, as Spark does: functions in lower case, operations in parentheses."""
    form = _FORMS.get(type(tree))
    if form is not None:
        text = form.format_map(defaultdict(str, {part: _spelled(value) for part, value in tree.args.items()}))
        # A time shifted by an interval has no parentheses.
        bare = type(tree) in _SYMBOLS and isinstance(tree.expression, exp.Interval)
        text = text.removeprefix("(").removesuffix(")") if bare else text
        return f"(NOT {text})" if tree.args.get("negate") else text
    for kind, spell in _SPELLINGS.items():
        if isinstance(tree, kind):
            return spell(tree)
    return str(tree.sql(dialect="spark", normalize_functions="lower", comments=False))


def _spelled(value: object) -> str:
    """Write a part of an expression, which may be a list of parts."""
    if isinstance(value, list):
        return ", ".join(map(_spelled, value))
    return full_name_of(value) if isinstance(value, exp.Expr) else ""


def prefix_until_free(name: str, taken: Container[str]) -> str:
    """Put underscores before a name until it is not in a text, or in a set of names."""
    while name in taken:
        name = f"_{name}"
    return name


def _dotted(tree: exp.Expr) -> str:
    return ".".join(part.name for part in tree.parts) if isinstance(tree, exp.Column) else tree.name


def _call(tree: exp.Expr) -> str:
    name = tree.name.lower()
    arguments = [full_name_of(argument) for argument in tree.expressions]
    if name in _CASTS and len(arguments) == 1:
        return f"CAST({arguments[0]} AS {name.upper()})"
    if name == "log" and len(arguments) == 1:
        return f"LOG(E(), {arguments[0]})"
    if name in ("first", "last", "any_value", "first_value", "last_value"):
        arguments = arguments[:1]
    if name == "mode" and len(arguments) == 2:
        return (
            f"mode() WITHIN GROUP (ORDER BY {arguments[0]} DESC)" if arguments[1] == "true" else f"mode({arguments[0]})"
        )
    number, default = _DEFAULTS.get(name, (0, ""))
    if len(arguments) == number - 1:
        arguments.append(default)
    return f"{_SPELLED.get(name) or _RENAMED.get(name, name)}({', '.join(arguments)})"


def _negated(tree: exp.Expr) -> str:
    inner = tree.this.unnest()
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
        return f"({full_name_of(inner.this)} IS NOT NULL)"
    return f"(NOT {full_name_of(inner)})"


def _tested(tree: exp.Expr) -> str:
    if isinstance(tree.expression, exp.Not):
        return _negated(exp.Not(this=exp.Is(this=tree.this.copy(), expression=tree.expression.this.copy())))
    word = "IS NULL" if isinstance(tree.expression, exp.Null) else f"<=> {full_name_of(tree.expression)}"
    return f"({full_name_of(tree.this)} {word})"


def _number(text: str) -> str:
    """Write a number as Java does: one with an exponent is a double."""
    if "e" not in text.lower():
        return f"0{text}" if text.startswith(".") else text
    number = float(text)
    if number and not 1e-3 <= abs(number) < 1e7:
        digits, _, power = f"{Decimal(repr(number)).normalize():E}".partition("E")
        return f"{digits if '.' in digits else f'{digits}.0'}E{int(power)}"
    return f"{number}"


def _literal(tree: exp.Expr) -> str:
    return tree.name if tree.is_string else _number(tree.name)


def _cast(tree: exp.Expr) -> str:
    kind = tree.args["to"].sql(dialect="spark")
    if isinstance(tree.this, exp.Literal) and isinstance(tree, exp.TryCast) and kind.startswith(_SUFFIXES):
        # A literal such as 5L is read as a cast.
        return _number(tree.this.name)
    if isinstance(tree.this, exp.Literal) and kind in ("DATE", "TIMESTAMP"):
        return f"{kind} '{tree.this.name}'"
    return f"{'TRY_CAST' if tree.args.get('safe') else 'CAST'}({full_name_of(tree.this)} AS {kind})"


def _case(tree: exp.Expr) -> str:
    whens = [
        exp.EQ(this=tree.this.copy(), expression=branch.this.copy()) if tree.this else branch.this
        for branch in tree.args["ifs"]
    ]
    branches = [
        f"WHEN {full_name_of(when)} THEN {full_name_of(branch.args['true'])}"
        for when, branch in zip(whens, tree.args["ifs"], strict=True)
    ]
    default = tree.args.get("default")
    return " ".join(["CASE", *branches, *([f"ELSE {full_name_of(default)}"] if default else []), "END"])


def _interval(tree: exp.Expr) -> str:
    unit, number = tree.text("unit").upper().removesuffix("S"), tree.this.name if tree.this else ""
    if unit in ("HOUR", "MINUTE", "SECOND") and number.isdigit():
        number = number.zfill(2)
    return f"INTERVAL '{number}' {unit}" if number.isdigit() else tree.sql(dialect="spark")


def _within(tree: exp.Expr) -> str:
    listed = []
    explicit = tree.this.name.lower() in ("listagg", "string_agg")
    for ordered in tree.expression.expressions:
        # Spark reads mode's order as one of preference, and writes it the other way round.
        down = bool(ordered.args.get("desc")) != (tree.this.name.lower() == "mode")
        nulls = f" {'DESC NULLS LAST' if down else 'ASC NULLS FIRST'}" if explicit else " DESC" if down else ""
        listed.append(f"{full_name_of(ordered.this)}{nulls}")
    return f"{full_name_of(tree.this)} WITHIN GROUP (ORDER BY {', '.join(listed)})"


def _respecting(tree: exp.Expr) -> str:
    kept = tree.this.name.lower() in ("array_agg", "collect_list")
    return f"{full_name_of(tree.this)}{' RESPECT NULLS' if kept else ''}"


def _minus(tree: exp.Expr) -> str:
    inner = full_name_of(tree.this)
    return f"-{inner}" if isinstance(tree.this, exp.Literal) else f"(- {inner})"


_SPELLINGS: dict[type[exp.Expr], Callable[[exp.Expr], str]] = {
    exp.Column: _dotted,
    exp.Dot: lambda tree: f"{full_name_of(tree.this)}.{tree.expression.name}",
    exp.Literal: _literal,
    exp.Boolean: lambda tree: "true" if tree.this else "false",
    exp.Anonymous: _call,
    exp.WithinGroup: _within,
    exp.RespectNulls: _respecting,
    exp.Neg: _minus,
    exp.Not: _negated,
    exp.Is: _tested,
    exp.Case: _case,
    exp.Cast: _cast,
    exp.Interval: _interval,
    exp.Extract: lambda tree: f"extract({tree.this.name.upper()} FROM {full_name_of(tree.expression)})",
    exp.Substring: lambda tree: f"substring({_spelled([part for part in tree.args.values() if part])})",
}
