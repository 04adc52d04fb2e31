"""The identity of rows in a statement's result: the columns by which they can be upserted into a table."""

from __future__ import annotations

from sqlglot import exp

from factor_windows.algebra.growing import Growing
from factor_windows.algebra.window import Window
from factor_windows.errors import QueryError
from factor_windows.functions.expression import tree_of
from factor_windows.query import WINDOW_COLUMNS, Query
from factor_windows.sql.names import parts_of
from factor_windows.sql.statement import Statement
from factor_windows.sql.windows import WHOLE_WINDOW

WINDOW_ID, START, END = WINDOW_COLUMNS


def identity_of(statement: Statement) -> list[str]:
    """List the columns of a result that identify its rows.

    >>> from factor_windows.sql.parse import read
    >>> [hours] = read("SELECT device AS d, window.start AS s, max(t) FROM r GROUP BY device, window(ts, '1 hour')")
    >>> identity_of(hours)
    ['d', 's']
    """
    if statement.outer or len(statement.queries) > 1:
        raise QueryError(
            "rows are upserted by their keys and windows, which one query over windows has, with nothing around it; "
            "write this one to files, such as --output result.parquet"
        )
    [query] = statement.queries
    shown = _shown(query)
    missing = [key.name for key in query.parsed_keys if key.name not in shown]
    if missing:
        hint = ", ".join(key.sql for key in query.parsed_keys if key.name in missing)
        raise _not_told_apart(f"does not show {hint}")
    keys = [shown[key.name] for key in query.parsed_keys]
    return list(dict.fromkeys([*keys, *_of_window(query, shown)]))


def _shown(query: Query) -> dict[str, str]:
    """Map computed columns to the columns of the result that show exactly one of them each."""
    if not query.parsed_output:
        return {name: name for name in query.columns}
    found: dict[str, str] = {}
    for column in query.parsed_output:
        if isinstance(column.tree, exp.Column) and len(parts_of(column.tree)) == 1:
            found.setdefault(column.tree.name, column.name)
        elif _names_each_window(column.tree, query):
            found.setdefault(WINDOW_ID, column.name)
        elif column.tree == tree_of(WHOLE_WINDOW):
            found.setdefault(START, column.name)
            found.setdefault(END, column.name)
    return found


def _names_each_window(tree: exp.Expr, query: Query) -> bool:
    """Say whether an expression is a different text for each window, as in branches of a UNION ALL."""
    if not isinstance(tree, exp.Case) or tree.this != exp.column(WINDOW_ID):
        return False
    texts = [case.args["true"] for case in tree.args["ifs"]]
    texts += [tree.args["default"]] if tree.args.get("default") else []
    of_windows = len(set(query.window_names))
    return all(isinstance(text, exp.Literal) for text in texts) and len(set(texts)) == len(texts) == of_windows


def _of_window(query: Query, shown: dict[str, str]) -> list[str]:
    """List the columns that identify the window and its instance."""
    grows = any(isinstance(window, Growing) for window in query.windows)
    times = [shown[name] for name in (START, END) if name in shown]
    if not times or (grows and END not in shown):
        raise _not_told_apart(f"does not show the {'end' if grows else 'start'} of its windows")
    if WINDOW_ID in shown:
        return [shown[WINDOW_ID], shown[END] if grows or START not in shown else shown[START]]
    if len(set(query.window_names)) == 1:
        return [shown[END] if grows or START not in shown else shown[START]]
    lengths = {window.range for window in query.windows if isinstance(window, Window) and window.clock is None}
    if len(lengths) < len(query.windows) or not {START, END} <= shown.keys():
        raise _not_told_apart("does not show which window a row is of, by a text for each or by its start and end")
    return times


def _not_told_apart(what: str) -> QueryError:
    return QueryError(f"rows are upserted by their keys and windows, and the query {what}; add it to SELECT")
