"""A SQL statement taken apart: what windows compute, and what happens around them."""

from __future__ import annotations

from dataclasses import dataclass

from factor_windows.query import Query


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a text: the queries in it, and the SQL that goes on with their results."""

    queries: tuple[Query, ...]
    outer: str = ""
    """Spark SQL over {result0}, {result1}, ...; empty if the statement's result is the only query's own."""
    into: str = ""
    """Where the user wants the result to go, if the text says it."""
    notes: tuple[str, ...] = ()
    """Why there is more than one query."""

    @property
    def outer_of_one(self) -> str:
        """Return the outer part as a query has it that is the only one."""
        return self.outer.replace("{result0}", "{result}")
