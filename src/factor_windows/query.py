"""A query: aggregates over many windows of one stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from factor_windows.aggregates import Aggregate
from factor_windows.errors import QueryError
from factor_windows.expressions import Expression
from factor_windows.functions import Kind
from factor_windows.window import Window

WINDOW_COLUMNS = ("window_id", "window_start", "window_end")


@dataclass(frozen=True, slots=True)
class Query:
    """What the user asks for: every aggregate, of every window, for every combination of keys.

    >>> from factor_windows.window import tumbling
    >>> query = Query(time="ts", keys=["device"], windows=[tumbling("20m")], aggregates=["min(t)", "avg(t) AS mean"])
    >>> query.columns
    ('device', 'window_id', 'window_start', 'window_end', 'min(t)', 'mean')
    """

    time: str
    windows: Sequence[Window]
    aggregates: Sequence[str]
    keys: Sequence[str] = ()
    parsed_time: Expression = field(init=False, repr=False, compare=False)
    parsed_keys: tuple[Expression, ...] = field(init=False, repr=False, compare=False)
    parsed_aggregates: tuple[Aggregate, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        def keep(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        keep("windows", (self.windows,) if isinstance(self.windows, Window) else tuple(self.windows))
        keep("aggregates", (self.aggregates,) if isinstance(self.aggregates, str) else tuple(self.aggregates))
        keep("keys", (self.keys,) if isinstance(self.keys, str) else tuple(self.keys))
        if not self.windows:
            raise QueryError("the query has no window; give at least one, such as tumbling('20 minutes')")
        if not self.aggregates:
            raise QueryError("the query has no aggregate; give at least one, such as 'min(temperature)'")
        for window in self.windows:
            if not isinstance(window, Window):
                raise QueryError(f"window {window!r} is not a Window; make one with tumbling() or hopping()")
        keep("parsed_time", Expression.read(self.time, what="time", error=QueryError))
        keep("parsed_keys", tuple(Expression.read(key, what="key", error=QueryError) for key in self.keys))
        keep("parsed_aggregates", tuple(Aggregate.read(aggregate) for aggregate in self.aggregates))
        self._check_windows()
        self._check_columns()

    def _check_windows(self) -> None:
        seen: dict[str, Window] = {}
        for window in self.windows:
            other = seen.setdefault(window.name, window)
            if other != window:
                raise QueryError(
                    f"the window name {window.name!r} is used twice, for {other.label} and for {window.label}; "
                    "give each window a name of its own"
                )

    def _check_columns(self) -> None:
        for key in self.parsed_keys:
            if key.sql.lower() == self.parsed_time.sql.lower():
                raise QueryError(f"key {key.sql!r} is also the time column; windows already group by time")
        seen: set[str] = set()
        for column in self.columns:
            if column.lower() in seen:
                raise QueryError(
                    f"the result would have two columns named {column!r}; give one of them another name with AS"
                )
            seen.add(column.lower())

    @property
    def columns(self) -> tuple[str, ...]:
        """List the columns of the result."""
        keys = (key.name for key in self.parsed_keys)
        return (*keys, *WINDOW_COLUMNS, *(aggregate.name for aggregate in self.parsed_aggregates))

    @property
    def kind(self) -> Kind:
        """Say how the query may be shared: as its strictest function allows."""
        return max(aggregate.kind for aggregate in self.parsed_aggregates)

    @property
    def names(self) -> dict[Window, tuple[str, ...]]:
        """Map each distinct window to the names under which its results are shown.

        >>> from factor_windows.window import tumbling
        >>> twice = [tumbling("60m", name="hourly"), tumbling("1 hour")]
        >>> Query(time="ts", windows=twice, aggregates=["count(*)"]).names
        {Window(range=3600000000, slide=3600000000, offset=0, name='hourly'): ('hourly', '1 hour')}
        """
        merged: dict[Window, dict[str, None]] = {}
        for window in self.windows:
            merged.setdefault(window, {})[window.name] = None
        return {window: tuple(names) for window, names in merged.items()}
