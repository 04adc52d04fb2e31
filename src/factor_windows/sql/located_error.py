"""Errors that give their position in the text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlglot import exp

from factor_windows.errors import FactorWindowsError, SqlError
from factor_windows.functions.aggregate import near_functions


def located_error(node: exp.Expr, problem: str) -> SqlError:
    """Make an error with the line and the column of a part of the text."""
    at: exp.Expr | None = node
    while at is not None:
        for part in at.walk(bfs=False):
            if "line" in part.meta:
                return SqlError(f"line {part.meta['line']}, column {part.meta['col']}: {problem}")
        at = at.parent
    return SqlError(f"line 1, column 1: {problem}")


def ungrouped(column: exp.Column, at: exp.Expr) -> SqlError:
    """Make an error for a column outside of any aggregate, perhaps because a function's name is misspelled."""
    around = column.find_ancestor(exp.Anonymous) or at.find_ancestor(exp.Anonymous)
    near = near_functions(around.name) if around is not None else []
    hint = f"; or did you mean {near[0]} for {around.name}?" if around is not None and near else ""
    problem = f"column {column.name!r} is neither grouped nor aggregated; add it to GROUP BY, or aggregate it"
    return located_error(at, problem + hint)


@contextmanager
def errors_at(node: exp.Expr) -> Iterator[None]:
    """Add the position in the text to errors that do not have one."""
    try:
        yield
    except SqlError:
        raise
    except FactorWindowsError as mistake:
        raise located_error(node, str(mistake)) from None
