"""Spark SQL expressions as values: parsed once, checked, and written back so that nothing can escape its context.

Used for keys, the time column, and the arguments and filters of aggregates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from sqlglot import exp, parse_one
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from factor_windows.errors import FactorWindowsError
from factor_windows.functions.naming import name_of as name_of

_SYNTAX_NOT_FUNCTIONS = {"CAST", "CONVERT", "EXTRACT", "OVERLAY", "POSITION", "SUBSTRING", "TRIM", "TRY_CAST"}
_MOST_PARTS = 1000
NONDETERMINISTIC = {
    *("rand", "randn", "random", "randstr", "uniform", "uuid", "shuffle", "monotonically_increasing_id"),
    *("spark_partition_id", "input_file_name", "java_method", "reflect", "try_reflect", "now", "current_timestamp"),
    *("current_date", "current_time", "localtimestamp", "curdate", "unix_timestamp"),
}
"""Functions whose result does not depend on their arguments alone."""
_ONE_VALUE = (exp.Condition, exp.Filter, exp.IgnoreNulls, exp.Interval, exp.RespectNulls, exp.WithinGroup)


DOUBLE_QUOTED = "double_quoted"
"""The key under which a literal keeps its original text, if it was in double quotes."""


class VerbatimSpark(Spark):
    """Spark SQL that keeps every function under the name that the user wrote."""

    class Tokenizer(Spark.Tokenizer):
        """Reads a doubled quote inside a string as one quote, as Spark does since 4.0."""

        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    class Parser(SparkParser):
        """Reads calls literally; only those with a grammar of their own, such as CAST, are treated specially."""

        def _parse_any(self) -> exp.Expr | None:
            """Distinguish the aggregate any(x) from the quantifier of LIKE ANY (...)."""
            quantifies = self._tokens[self._index - 2].text.upper() in ("LIKE", "ILIKE")
            if quantifies or not self._match(TokenType.L_PAREN, advance=False):
                return self.expression(exp.Any(this=self._parse_bitwise()))
            return self.expression(exp.Anonymous(this="any", expressions=self._parse_wrapped_csv(self._parse_lambda)))

        def _parse_text(self, token: Token) -> exp.Expr:
            """Read text, and keep its original form: whether text in double quotes is a name depends on the session."""
            text = self.expression(exp.Literal(this=token.text, is_string=True), token)
            if self.sql[token.start] == '"':
                text.meta[DOUBLE_QUOTED] = self.sql[token.start : token.end + 1]
            return text

        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
            **SparkParser.NO_PAREN_FUNCTION_PARSERS,
            "ANY": _parse_any,
        }
        STRING_PARSERS: ClassVar[dict[Any, Callable[..., Any]]] = {
            **SparkParser.STRING_PARSERS,
            TokenType.STRING: _parse_text,
        }
        PRIMARY_PARSERS: ClassVar[dict[Any, Callable[..., Any]]] = {
            **SparkParser.PRIMARY_PARSERS,
            TokenType.STRING: _parse_text,
        }

        FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {"ARRAY": SparkParser.FUNCTIONS["ARRAY"]}
        FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
            name: parser for name, parser in SparkParser.FUNCTION_PARSERS.items() if name in _SYNTAX_NOT_FUNCTIONS
        }

    class Generator(SparkGenerator):
        """Writes literals in their original form: in double quotes, with a type before them, or with a suffix."""

        def literal_sql(self, expression: exp.Literal) -> str:
            return str(expression.meta.get(DOUBLE_QUOTED) or super().literal_sql(expression))

        def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
            """Write a cast, or the literal that it was read from, which Spark knows is not null."""
            if is_typed_literal(expression):
                return f"{self.sql(expression, 'to')} {self.sql(expression, 'this')}"
            if _is_decimal_literal(expression):
                return f"{expression.this.name}BD"
            return str(super().cast_sql(expression, safe_prefix))

        def trycast_sql(self, expression: exp.TryCast) -> str:
            """Write a cast in its original form."""
            return self.cast_sql(expression) if _is_decimal_literal(expression) else super().trycast_sql(expression)


def is_typed_literal(cast: exp.Expr) -> bool:
    """Say whether a cast was read from a literal such as DATE '2024-01-01'; CAST itself is read as another node."""
    return type(cast) is exp.Cast and isinstance(cast.this, exp.Literal) and cast.this.is_string


def _is_decimal_literal(cast: exp.Cast) -> bool:
    """Say whether a cast was read from a literal such as 1.50BD: text with exactly the digits of its type."""
    text = cast.this
    if not cast.to.is_type(exp.DType.DECIMAL) or not isinstance(text, exp.Literal) or not text.is_string:
        return False
    whole, _, fraction = text.name.partition(".")
    digits = [each.name for each in cast.to.expressions]
    return (whole + fraction).isdigit() and digits == [str(len(whole + fraction)), str(len(fraction))]


@dataclass(frozen=True, slots=True)
class Expression:
    """A scalar expression and the name of its column."""

    sql: str
    name: str

    @property
    def tree(self) -> exp.Expr:
        return tree_of(self.sql)


@lru_cache(maxsize=4096)
def parse_once(text: str) -> exp.Expr:
    """Return the tree of Spark SQL known to be valid, the same one each time: callers must not change it."""
    return parse_one(text, dialect=VerbatimSpark)


def tree_of(text: str) -> exp.Expr:
    """Return the tree of Spark SQL known to be valid, a copy for each caller."""
    return parse_once(text).copy()


def fill_template(template: str, values: Mapping[str, exp.Expr]) -> exp.Expr:
    """Replace the placeholders of a template by trees.

    >>> sql_of(fill_template("sum(:x) / :n", {"x": tree_of("v + 1")}))
    'sum(v + 1) / :n'
    """
    return exp.replace_placeholders(parse_once(template), **{name: tree.copy() for name, tree in values.items()})


def parse(text: str, *, what: str, error: type[FactorWindowsError]) -> tuple[exp.Expr, str]:
    """Parse one expression and return it with its alias; raise `error` with one sentence if it is invalid."""
    if not isinstance(text, str):
        raise error(f"{what} {text!r} is not text; write it in Spark SQL, such as 'device' or 'upper(city) AS city'")
    if not text.strip():
        raise error(f"{what} is empty; write it in Spark SQL, such as 'device' or 'upper(city) AS city'")
    try:
        tree = tree_of(text)
    except SqlglotError as mistake:
        details = getattr(mistake, "errors", None)
        where = f" at line {details[0]['line']}, column {details[0]['col']}" if details else ""
        raise error(f"{what} {_shortened(text)} is not valid Spark SQL{where}") from None
    except RecursionError:
        raise error(f"{what} {_shortened(text)} is nested too deeply") from None
    if sum(1 for _ in tree.walk()) > _MOST_PARTS:
        raise error(f"{what} {_shortened(text)} is too long; it has more than {_MOST_PARTS} parts")
    alias = ""
    if isinstance(tree, exp.Alias):
        alias, tree = tree.alias, tree.this
    ordered = any(not isinstance(order.parent, exp.WithinGroup) for order in tree.find_all(exp.Order))
    if not isinstance(tree, _ONE_VALUE) or ordered or tree.find(exp.Query, exp.Alias):
        raise error(
            f"{what} {_shortened(text)} is not one plain expression; sub-queries, statements and ORDER BY do not fit"
        )
    if tree.find(exp.Window):
        raise error(f"{what} {_shortened(text)} has OVER (...), which does not fit inside a window aggregate")
    if tree.find(exp.Placeholder, exp.Parameter):
        raise error(f"{what} {_shortened(text)} has a placeholder; write its value instead")
    return tree, alias


def sql_of(tree: exp.Expr) -> str:
    """Write a parsed expression as Spark SQL, with the user's own function names."""
    return tree.sql(dialect=VerbatimSpark, normalize_functions=False, comments=False)


def calls_over(text: str, window: str) -> str:
    """Apply the aggregates of an expression, its innermost calls, to the rows of a window.

    >>> calls_over("flatten(collect_list(part))", "ORDER BY t")
    'flatten(collect_list(part) OVER (ORDER BY t))'
    """
    tree = tree_of(f"({text})")
    for call in [each for each in tree.find_all(exp.Anonymous) if len([*each.find_all(exp.Anonymous)]) == 1]:
        over = tree_of(f"a() OVER ({window})")
        over.set("this", call.copy())
        call.replace(over)
    return sql_of(tree.this)


def name_fields(call: exp.Expr) -> None:
    """Name the fields of struct(...) as Spark does now, before its columns are replaced.

    >>> tree = tree_of("struct(k, max(v), x.y, 1 AS one)")
    >>> name_fields(tree)
    >>> sql_of(tree)
    "named_struct('k', k, 'col2', max(v), 'y', x.y, 'one', 1)"
    """
    if not isinstance(call, exp.Anonymous) or call.name.lower() != "struct":
        return
    fields: list[exp.Expr] = []
    for place, value in enumerate(call.expressions, start=1):
        named = isinstance(value, exp.Column | exp.Dot | exp.Alias)
        name = value.alias_or_name if named else f"col{place}"
        fields += [exp.Literal.string(name), value.this if isinstance(value, exp.Alias) else value]
    call.set("this", "named_struct")
    call.set("expressions", fields)


def quoted(name: str) -> str:
    """Quote a name so that Spark reads it literally, whatever it contains.

    >>> quoted("a`b")
    '`a``b`'
    """
    return sql_of(exp.to_identifier(name, quoted=True))


def canonicalize(tree: exp.Expr, *, case_sensitive: bool = False) -> exp.Expr:
    """Return a canonical form, equal for all ways to write an expression: without parentheses, with all names quoted.

    >>> canonicalize(tree_of("(`K`) || 'X'")) == canonicalize(tree_of("k || 'X'"))
    True
    """
    root = exp.Paren(this=tree.copy())
    for paren in list(root.this.find_all(exp.Paren)):
        paren.replace(paren.this)
    for identifier in root.find_all(exp.Identifier):
        identifier.set("quoted", True)
        if not case_sensitive:
            identifier.set("this", identifier.name.lower())
    found: exp.Expr = root.this.pop()
    return found


def same_expression(one: str, other: str) -> bool:
    """Say whether two expressions are the same except for parentheses, and for quotes and case of names.

    >>> same_expression("(`ts`)", "TS"), same_expression("f(ts)", "fts")
    (True, False)
    """
    return bool(canonicalize(parse_once(one)) == canonicalize(parse_once(other)))


@lru_cache(maxsize=4096)
def conjuncts(condition: str) -> tuple[str, ...]:
    """List the conditions whose conjunction is this condition.

    >>> conjuncts("ok AND (v > 1 OR v < 0) AND v > 1")
    ('ok', 'v > 1 OR v < 0', 'v > 1')
    """

    def parts(tree: exp.Expr) -> Iterator[exp.Expr]:
        tree = tree.unnest()
        if isinstance(tree, exp.And):
            yield from parts(tree.this)
            yield from parts(tree.expression)
        else:
            yield tree

    return tuple(dict.fromkeys(map(sql_of, parts(parse_once(condition)))))


@lru_cache(maxsize=4096)
def depends_on(expression: str) -> frozenset[str] | None:
    """List the columns that an expression is computed from; `None` if they do not determine it.

    >>> sorted(depends_on("substr(device, 1, n)") or ()), depends_on("v + rand()")
    (['device', 'n'], None)
    """
    tree = parse_once(expression)
    if any(DOUBLE_QUOTED in literal.meta for literal in tree.find_all(exp.Literal)):
        return None
    if any(call.name.lower() in NONDETERMINISTIC for call in tree.find_all(exp.Anonymous, exp.Column)):
        return None
    return frozenset(sql_of(column) for column in tree.find_all(exp.Column))


def columns_of(expression: str) -> frozenset[str]:
    """List all names in an expression that may be columns: fields of structs are written like columns of tables.

    >>> sorted(columns_of("sum(reading.v) FILTER (WHERE ok)"))
    ['ok', 'reading', 'v']
    """
    parts = (part for column in parse_once(expression).find_all(exp.Column) for part in column.parts)
    return frozenset(part.name for part in parts)


def dependent_keys(keys: Iterable[str], by: frozenset[str]) -> frozenset[str]:
    """Return the keys that are determined by others, as expressions over them.

    >>> sorted(dependent_keys(["device", "site", "substr(device, 1, 3)"], by=frozenset({"device"})))
    ['substr(device, 1, 3)']
    """
    found = ((key, depends_on(key)) for key in keys)
    return frozenset(key for key, columns in found if columns is not None and key not in columns and columns <= by)


def determinants(keys: frozenset[str]) -> frozenset[str]:
    """Return the keys that are not determined by others."""
    return keys - dependent_keys(keys, by=keys)


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
