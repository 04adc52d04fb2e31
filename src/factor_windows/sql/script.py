"""The statements of a script, planned together: queries that read the same events share their work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from factor_windows.plan import Plan
from factor_windows.query import Query
from factor_windows.search import optimize
from factor_windows.sql.statement import Statement


@dataclass(frozen=True, slots=True)
class Script:
    """Statements, and the plans that compute their queries."""

    statements: tuple[Statement, ...]
    queries: tuple[tuple[Query, ...], ...]
    """The queries of each statement, under unique names."""
    plans: tuple[Plan, ...]
    """A plan for each table that is read; each query is in one of them."""

    @property
    def names(self) -> tuple[str, ...]:
        """Name each statement's result: by its INTO, or by its position."""
        return _names(self.statements)


def plan_script(statements: Sequence[Statement], **options: Any) -> Script:
    """Plan all queries of a script, with the options of `optimize`: those with the same events and time in one plan.

    >>> from factor_windows.sql.parse import read
    >>> select = "SELECT {0} count(*) AS n FROM r GROUP BY {0} window(ts, '{1}')"
    >>> text = "; ".join([select.format("device,", "1 minute"), select.format("", "1 hour")])
    >>> script = plan_script(read(text))
    >>> script.names, [node.name for node in script.plans[0].nodes]
    (('query_1', 'query_2'), ['1 minute by device', '1 hour'])
    """
    queries = []
    for statement, name in zip(statements, _names(statements), strict=True):
        single = len(statement.queries) == 1
        queries.append(
            tuple(
                replace(query, name=name if single else f"{name}.{place}")
                for place, query in enumerate(statement.queries, start=1)
            )
        )
    sources: dict[tuple[str, str], list[Query]] = {}
    for query in (query for several in queries for query in several):
        sources.setdefault((query.source, query.parsed_time.sql), []).append(query)
    plans = [optimize(found if len(found) > 1 else found[0], **options) for found in sources.values()]
    return Script(tuple(statements), tuple(queries), tuple(plans))


def _names(statements: Sequence[Statement]) -> tuple[str, ...]:
    names: list[str] = []
    for place, statement in enumerate(statements, start=1):
        wanted = statement.into.replace("`", "") or f"query_{place}"
        name, times = wanted, 1
        while name.lower() in {other.lower() for other in names}:
            times += 1
            name = f"{wanted}_{times}"
        names.append(name)
    return tuple(names)
