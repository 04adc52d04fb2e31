"""The columns that values are counted by, for all aggregates of a query together; equal values are kept once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from factor_windows.functions.aggregate import Aggregate, add_filter
from factor_windows.functions.columns import StateColumns
from factor_windows.functions.counted import Counted, follow_from_counts
from factor_windows.functions.expression import fill_template, sql_of, tree_of
from factor_windows.functions.guards import only_where
from factor_windows.functions.state import State


@dataclass(frozen=True, slots=True)
class ValueKey:
    """A value, of one or several parts, as one more key of rows."""

    columns: tuple[str, ...]
    """The columns of rows that hold it; null in rows of other values."""
    parts: tuple[str, ...]
    """The expressions that compute it from an event, in Spark SQL."""


class ValueColumns:
    """The values that the aggregates of a query are counted by.

    If there are several, each event is assigned to an entry for each of them, and everything that is not counted goes
    with the first.

    >>> aggregates = [Aggregate.read(text) for text in ("median(v)", "count(DISTINCT v)", "count(DISTINCT a, b)")]
    >>> columns = ValueColumns(aggregates, "fw_")
    >>> [key.columns for key in columns.keys]
    [('fw_c0',), ('fw_c1', 'fw_c2')]
    >>> states = StateColumns("s")
    >>> columns.add(states, aggregates[0]), columns.add(states, aggregates[2])
    ('percentile(`fw_c0`, CAST(0.5 AS DOUBLE), `s0`)', 'count(`fw_c1`, `fw_c2`)')
    >>> [state.lift for state in states.states]
    ['count(*) FILTER(WHERE fw_value = 0)']
    """

    def __init__(self, aggregates: Sequence[Aggregate], prefix: str) -> None:
        self.entry = f"{prefix}value"
        filters: dict[tuple[str, ...], list[str]] = {}
        for each in aggregates:
            if (counted := follow_from_counts(each)) is not None:
                filters.setdefault(counted.values, []).append(each.filter)
        self._keys: dict[tuple[str, ...], ValueKey] = {}
        number = 0
        for values, conditions in filters.items():
            columns = tuple(f"{prefix}c{number + place}" for place in range(len(values)))
            number += len(values)
            self._keys[values] = ValueKey(columns, tuple(only_where(value, conditions) for value in values))

    @property
    def keys(self) -> tuple[ValueKey, ...]:
        """List the values."""
        return tuple(self._keys.values())

    def key(self, counted: Counted) -> ValueKey:
        """Return the value that an aggregate counts."""
        return self._keys[counted.values]

    def add(self, layout: StateColumns, aggregate: Aggregate) -> str:
        """Add the counts that an aggregate is computed from; return how, from all rows of an instance."""
        counted = follow_from_counts(aggregate)
        assert counted is not None
        own = self.key(counted).columns
        names = ["x"] if len(own) == 1 else [f"x{place}" for place in range(len(own))]
        columns = {name: exp.column(column, quoted=True) for name, column in zip(names, own, strict=True)}
        merged = sql_of(fill_template(counted.merged, columns))
        place = list(self._keys).index(counted.values)
        return layout.add(aggregate, self._only(place, _counts(aggregate, counted)), _careful(merged, counted))

    def ride_along(self, states: Iterable[State]) -> tuple[State, ...]:
        """Lift states that are not counted in the first entry only."""
        return self._only(0, states)

    def _only(self, place: int, states: Iterable[State]) -> tuple[State, ...]:
        if len(self._keys) < 2:
            return tuple(states)
        own = tree_of(f"{self.entry} = {place}")
        return tuple(replace(state, lift=sql_of(add_filter(tree_of(state.lift), own))) for state in states)


def _counts(aggregate: Aggregate, counted: Counted) -> tuple[State, ...]:
    """Return states that count how often each value occurs among the events that pass the filter."""
    if ":n" not in counted.merged:
        return ()
    often = only_where(counted.frequency, [aggregate.filter]) if counted.frequency else ""
    lifts = {"n": f"sum(CAST({often} AS BIGINT))", "least": f"min(CAST({often} AS BIGINT))"} if often else {}
    states = []
    for name, lift in (lifts or {"n": "count(*)"}).items():
        tree = tree_of(lift)
        lift = sql_of(add_filter(tree, tree_of(aggregate.filter)) if aggregate.filter else tree)
        states.append(State(name, lift, f"sum(:{name})" if name == "n" else f"min(:{name})", fixed=True))
    return tuple(states)


def _careful(merged: str, counted: Counted) -> str:
    """Let Spark find a negative frequency, whatever others it was added to."""
    if not counted.frequency:
        return merged
    often = tree_of("CASE WHEN :least < 0 THEN :least ELSE :n END")
    return sql_of(fill_template(merged, {"n": often}))
