"""From SQL text to queries: valid SQL becomes statements, and these become queries."""

from __future__ import annotations

from dataclasses import replace

from sqlglot.errors import SqlglotError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from factor_windows.errors import OptionError, SqlError
from factor_windows.functions.naming import prefix_until_free
from factor_windows.query import Query
from factor_windows.sql.dialects import DIALECTS, recognize_dialect
from factor_windows.sql.names import UNKNOWN, Tables
from factor_windows.sql.reading import Reading
from factor_windows.sql.statement import Statement, is_union_of_all

DEEPEST = 150
"""The deepest nesting of parentheses allowed."""


def parse(text: str, *, dialect: str | None = None, time: str | None = None) -> Query | list[Query]:
    """Parse SQL of Spark, Azure Stream Analytics or Flink into a query, or into a list if one query is not enough.

    >>> query = parse("SELECT k, window.end AS till, min(v) AS low FROM r GROUP BY k, window(ts, '20 minutes')")
    >>> query.columns, query.source
    (('k', 'till', 'low'), 'r')
    """
    queries = []
    for statement in read(text, dialect=dialect, time=time):
        if len(statement.queries) == 1:
            [query] = statement.queries
            outer = statement.outer_of_one if statement.outer else query.outer
            queries.append(replace(query, outer=outer, name=statement.into.replace("`", "")))
        else:
            if not is_union_of_all(statement):
                raise SqlError(
                    f"the statement is {len(statement.queries)} queries and more around them; run it with fw.sql, "
                    "or give the queries one at a time"
                )
            queries += statement.queries
    return queries[0] if len(queries) == 1 else queries


def read(
    text: str, *, dialect: str | None = None, time: str | None = None, tables: Tables = UNKNOWN
) -> tuple[Statement, ...]:
    """Parse every statement of a text; what is known about its `tables` decides what names in it mean."""
    if dialect is not None and dialect not in DIALECTS:
        raise OptionError(f"dialect {dialect!r} is not read; allowed are {', '.join(DIALECTS)}")
    if not isinstance(text, str) or not text.strip():
        raise SqlError("the SQL text is empty; write a SELECT with GROUP BY and a window, such as window(ts, '1 hour')")
    try:
        name = dialect or recognize_dialect(text)
        grammar = DIALECTS[name]()
        tokens = grammar.tokenize(text)
        _check_depth(tokens)
        trees = [tree for tree in grammar.parser().parse(tokens, text) if tree is not None]
    except TokenError as mistake:
        line, _, column = str(mistake.__cause__ or mistake).rpartition(" from ")[2].partition(":")
        place = f"line {line}, column {column}" if line.isdigit() and column.isdigit() else "line 1, column 1"
        raise SqlError(f"{place}: this is not valid SQL; is a quote or a comment not closed?") from None
    except SqlglotError as mistake:
        details = getattr(mistake, "errors", None)
        first = details[0] if details else {}
        place = f"line {first['line']}, column {first['col']}: " if first.get("line") else ""
        near = f" near {first['highlight']!r}" if first.get("highlight") else ""
        raise SqlError(f"{place}this is not valid SQL{near}; a SELECT with GROUP BY and a window is expected") from None
    except RecursionError:
        raise SqlError("line 1, column 1: the text is nested too deeply") from None
    if not trees:
        raise SqlError("the SQL text has no statement; write a SELECT with GROUP BY and a window")
    mark = prefix_until_free("fw_result", text.lower())
    reading = Reading(name, time, tables, mark, text if len(trees) == 1 and name == "spark" else "")
    return tuple(reading.statement(tree) for tree in trees)


def _check_depth(tokens: list[Token]) -> None:
    depth = 0
    for token in tokens:
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if depth > DEEPEST:
            raise SqlError(
                f"line {token.line}, column {token.col}: parentheses nest more than {DEEPEST} deep; write it simpler"
            )
