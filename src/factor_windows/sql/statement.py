"""A SQL statement taken apart: what windows compute, and what happens around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Formatter

from sqlglot import exp

from factor_windows.functions.expression import sql_of
from factor_windows.query import Query


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a text: its queries, and the SQL applied to their results."""

    queries: tuple[Query, ...]
    outer: str = ""
    """Spark SQL over {result0}, {result1}, ...; empty if the statement's result is the only query's own."""
    into: str = ""
    """The destination of the result, if the text names one."""
    notes: tuple[str, ...] = ()
    """Why there is more than one query, and what was assumed."""
    command: str = ""
    """The command applied to the result, such as INSERT INTO t {query}; empty for a plain query."""
    is_view: bool = False
    """Whether the command makes a view."""

    @property
    def outer_of_one(self) -> str:
        """Return the outer part in the form for a single query."""
        return fill_names(self.outer, {"result0": "{result}"})


def is_union_of_all(statement: Statement) -> bool:
    """Say whether a statement only concatenates its queries' results."""
    united = " UNION ALL ".join(f"SELECT * FROM {{result{n}}}" for n in range(len(statement.queries)))
    return statement.outer == united


def choose_by(column: str, names: Sequence[Sequence[str]], texts: Sequence[str]) -> str:
    """Write an expression that depends on the group of names in a column; a single expression if all are the same.

    >>> choose_by("id", [["a", "b"], ["c"]], ["x", "y"]), choose_by("id", [["a"], ["b"]], ["x", "x"])
    ("CASE id WHEN 'a' THEN x WHEN 'b' THEN x ELSE y END", 'x')
    """
    if len(set(texts)) == 1:
        return texts[0]
    *cases, last = zip(texts, names, strict=True)
    # The last one has no condition: an expression that is never null would be nullable with one.
    when = [f"WHEN {sql_of(exp.Literal.string(name))} THEN {text}" for text, own in cases for name in own]
    return f"CASE {column} {' '.join(when)} ELSE {last[0]} END"


def braced(text: str) -> str:
    """Escape braces so that they are not read as names of results."""
    return text.replace("{", "{{").replace("}", "}}")


def fill_names(template: str, names: Mapping[str, str]) -> str:
    """Replace a template's names by other text; the result is still a template, in which other braces are doubled.

    >>> fill_names("SELECT '{{result0}}' AS a FROM {result0}", {"result0": "{result}"})
    "SELECT '{{result0}}' AS a FROM {result}"
    """
    parts = Formatter().parse(template)
    return "".join(braced(text) + ("" if name is None else names.get(name, f"{{{name}}}")) for text, name, *_ in parts)
