"""The columns of partial states that all aggregates of a query need together; equal states are kept once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlglot import exp

from factor_windows.functions.aggregate import Aggregate
from factor_windows.functions.expression import fill_template, sql_of
from factor_windows.functions.state import State

IDENTITY = "CASE WHEN NOT :x IS NULL THEN xxhash64(:x) END"
"""Equal exactly where values of any type are, except for one pair in 2^64; Spark's own sketch uses it, too."""


class StateColumns:
    """Collects the states of aggregates, each in its own column."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._columns: dict[tuple[str, str], State] = {}
        self.used: list[tuple[str, ...]] = []
        """The columns of each aggregate that was added."""

    @property
    def states(self) -> tuple[State, ...]:
        """List the states: the names of their columns, how events lift to them, and how the columns combine."""
        return tuple(self._columns.values())

    def add(self, aggregate: Aggregate, states: Iterable[State], lower: str) -> str:
        """Add the states of one aggregate; return how the columns lower to its result.

        >>> columns = StateColumns("s")
        >>> mean = Aggregate.read("avg(v)")
        >>> columns.add(mean, mean.states(time="ts"), mean.function.lower)
        'CASE WHEN `s1` > 0 THEN `s0` / `s1` END'
        >>> [state.lift for state in columns.states]
        ['sum(v)', 'count(v)']
        """
        own: dict[str, exp.Expr] = {}
        for state in states:

            def merge(column: exp.Expr, state: State = state) -> str:
                return sql_of(fill_template(state.combine, own | {state.name: column}))

            meaning = state.lift, merge(exp.Placeholder(this="itself"))
            if meaning not in self._columns:
                name = f"{self._prefix}{len(self._columns)}"
                self._columns[meaning] = replace(state, name=name, combine=merge(exp.column(name, quoted=True)))
            own[state.name] = exp.column(self._columns[meaning].name, quoted=True)
        self.used.append(tuple(column.name for column in own.values()))
        return sql_of(fill_template(lower, own | aggregate.constants))
