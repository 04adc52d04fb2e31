"""The target that a plan is compiled for: an engine's columns, states and capabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from factor_windows.algebra.pane_row import Packing
from factor_windows.functions.aggregate import Aggregate
from factor_windows.functions.columns import StateColumns
from factor_windows.functions.counted import follow_from_counts
from factor_windows.functions.table import Kind, State
from factor_windows.functions.value_columns import ValueColumns, ValueKey
from factor_windows.physical.layout import Level
from factor_windows.query import Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One aggregate: made from its states by `lower` or, where states are not shared, from events by `direct`."""

    lower: str
    direct: str
    states: tuple[str, ...]
    """The columns of the states that it is made from."""
    nullable: bool = True
    merged: str = ""
    """The aggregate over all rows of values of an instance, if it is computed from how often each value occurs."""
    columns: tuple[str, ...] = ()
    """The columns of these values."""


@dataclass(frozen=True, slots=True)
class Values:
    """The aggregates of a query on an engine, and the states that they share."""

    results: tuple[Result, ...]
    states: tuple[State, ...]
    """The states, with the names of their columns."""
    shared: bool
    """Whether every aggregate can be computed from states."""
    keys: tuple[ValueKey, ...] = ()
    """The values that rows are counted by, each one more key; empty if no aggregate is computed from such counts."""

    @classmethod
    def of(cls, aggregates: Sequence[Aggregate], names: Names, *, shared: bool) -> Values:
        """Lay out states as functions describe them or, if not shared, only the aggregates computed from events."""
        columns = StateColumns(f"{names.prefix}s")
        values = ValueColumns(aggregates if shared else (), names.prefix)
        results = []
        for place, each in enumerate(aggregates):
            lower, merged = "", ""
            own: tuple[str, ...] = ()
            if shared and (counted := follow_from_counts(each)) is not None:
                lower, merged, own = names.value(place), values.add(columns, each), values.key(counted).columns
            elif shared:
                lower = columns.add(each, values.ride_along(each.states(time=names.time)), each.function.lower)
            states = columns.used[-1] if shared else ()
            direct = each.direct(time=names.time)
            results.append(Result(lower=lower, direct=direct, states=states, merged=merged, columns=own))
        return cls(tuple(results), columns.states, shared, values.keys)

    @property
    def from_events(self) -> Values:
        """Return the same aggregates, each computed directly from events."""
        return Values(self.results, (), shared=False)


@dataclass(frozen=True, slots=True)
class Names:
    """The names of the columns of rows; none of them is a column of the events."""

    prefix: str
    keys: tuple[str, ...]
    time: str

    @classmethod
    def of(cls, query: Query, prefix: str) -> Names:
        """Name columns with a prefix that no column of the events has."""
        return cls(prefix, tuple(f"{prefix}k{place}" for place in range(len(query.parsed_keys))), f"{prefix}t")

    @property
    def start(self) -> str:
        """Name the start of a row's instance."""
        return f"{self.prefix}start"

    @property
    def first(self) -> str:
        """Name the time of a row's first event, used to find sessions."""
        return f"{self.prefix}first"

    @property
    def last(self) -> str:
        """Name the time of its last event."""
        return f"{self.prefix}last"

    def session(self, place: int) -> str:
        """Name the start of the session, of a given node, that a row belongs to."""
        return f"{self.prefix}session{place}"

    @property
    def node(self) -> str:
        """Name the number of the node that a row belongs to."""
        return f"{self.prefix}node"

    @property
    def entry(self) -> str:
        """Name the number of the entry that an explode gave a row; in pane rows, the bits of the filled slots."""
        return f"{self.prefix}feed"

    @property
    def step(self) -> str:
        """Name the step of an entry, or the slot of a pane row."""
        return f"{self.prefix}step"

    @property
    def previous(self) -> str:
        """Name the start of the previous row in a block."""
        return f"{self.prefix}previous"

    @property
    def next(self) -> str:
        """Name the start of the next row."""
        return f"{self.prefix}next"

    @property
    def chunk(self) -> str:
        """Name the start of a row's chunk of time."""
        return f"{self.prefix}chunk"

    @property
    def value_entry(self) -> str:
        """Name the number of the value that an event is counted by, if there are several."""
        return f"{self.prefix}value"

    def value(self, place: int) -> str:
        """Name an aggregate that is computed directly: from events, or from all rows of values."""
        return f"{self.prefix}v{place}"


@dataclass(frozen=True, slots=True)
class Target:
    """The properties of an engine that decide how a plan runs."""

    names: Names
    values: Values
    partitions: int | None = None
    """The number of partitions of its shuffles; `None` if it is not told how to shuffle."""
    packing: Packing | None = None
    """How states may be packed into pane rows; `None` if they may not be."""
    reuses: bool = False
    """Whether rows shuffled once can be read twice, as in Spark if a plan contains the same subplan twice."""
    streaming: bool = False
    is_one_operator: bool = False
    """Whether one operator must compute all windows from the events, as on a stream that updates its results."""
    has_windows: bool = False
    """Whether it groups by its own windows, which read each other."""
    levels: tuple[Level, ...] | None = None
    """The levels of a stream that continues, whose state has their layout."""
    unsorted: tuple[str, ...] = ()
    """Columns of keys that cannot be sorted."""
    keeps_panes: bool = False
    """Whether rows of the first level are stored and read later.

    An instance may then have several rows, each with the times of its first and last event."""
    appended: int | None = None
    """The finest panes, if some of their rows are in no coarser ones yet."""
    are_few: bool = False
    """Whether the first level has so few rows that one task can do all the work."""

    @property
    def can_scan(self) -> bool:
        """Say whether rows can be sorted by keys and time; rows counted by values are too many for this to pay."""
        return not self.unsorted and not self.values.keys

    @property
    def has_columns(self) -> bool:
        """Say whether a step can add columns for later steps, as operators can; a level of text is one SELECT."""
        return self.partitions is not None or self.streaming

    @classmethod
    def assumed(cls, query: Query, *, partitions: int | None = None, streaming: bool = False) -> Target:
        """Return what is known about Spark before there are events."""
        names = Names.of(query, "__fw_")
        packing = Packing.of(query) if partitions else None
        # Values are counted on batches only, and not together with sessions.
        counts = partitions is not None and not streaming and not query.has_sessions
        strictest = Kind.COUNTED if counts else Kind.MERGEABLE
        values = Values.of(query.parsed_aggregates, names, shared=query.kind <= strictest)
        return cls(names, values, partitions, packing, reuses=partitions is not None, streaming=streaming)
