"""Errors that say where in the text they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlglot import exp

from factor_windows.errors import FactorWindowsError, SqlError


def located_error(node: exp.Expr, problem: str) -> SqlError:
    """Make an error with the line and the column of a part of the text."""
    at: exp.Expr | None = node
    while at is not None:
        for part in at.walk(bfs=False):
            if "line" in part.meta:
                return SqlError(f"line {part.meta['line']}, column {part.meta['col']}: {problem}")
        at = at.parent
    return SqlError(f"line 1, column 1: {problem}")


@contextmanager
def errors_at(node: exp.Expr) -> Iterator[None]:
    """Say of errors that do not know it where in the text they are."""
    try:
        yield
    except SqlError:
        raise
    except FactorWindowsError as mistake:
        raise located_error(node, str(mistake)) from None
