"""What a plan is compiled for: an engine's columns, states and abilities."""

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
    """One aggregate: from its states by `lower`, or, where states are not shared, `direct` from events."""

    lower: str
    direct: str
    states: tuple[str, ...]
    """The columns of the states that it is made from."""
    nullable: bool = True
    merged: str = ""
    """What makes it of all rows of values of an instance, if it follows from how often each occurs."""
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
    """The values that rows are counted by, each one more key; none unless some aggregate follows from such counts."""

    @classmethod
    def of(cls, aggregates: Sequence[Aggregate], names: Names, *, shared: bool) -> Values:
        """Lay out states as functions describe them, or, if they share none, only what computes results from events."""
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
        """Return the same aggregates, each computed from events at once."""
        return Values(self.results, (), shared=False)


@dataclass(frozen=True, slots=True)
class Names:
    """What the columns of rows are called; none of them is one of the events'."""

    prefix: str
    keys: tuple[str, ...]
    time: str

    @classmethod
    def of(cls, query: Query, prefix: str) -> Names:
        """Name columns by a prefix that no column of the events has."""
        return cls(prefix, tuple(f"{prefix}k{place}" for place in range(len(query.parsed_keys))), f"{prefix}t")

    @property
    def start(self) -> str:
        """Name the start of a row's instance."""
        return f"{self.prefix}start"

    @property
    def first(self) -> str:
        """Name the time of a row's first event, which sessions are found by."""
        return f"{self.prefix}first"

    @property
    def last(self) -> str:
        """Name the time of its last event."""
        return f"{self.prefix}last"

    def session(self, place: int) -> str:
        """Name the start of the session of a node that a row belongs to."""
        return f"{self.prefix}session{place}"

    @property
    def node(self) -> str:
        """Name the number of the node that a row belongs to."""
        return f"{self.prefix}node"

    @property
    def entry(self) -> str:
        """Name the number of the entry that an explode gave a row to; in pane rows, which slots are filled."""
        return f"{self.prefix}feed"

    @property
    def step(self) -> str:
        """Name the step of an entry, or the slot of a pane row."""
        return f"{self.prefix}step"

    @property
    def previous(self) -> str:
        """Name the start of the row before in a block."""
        return f"{self.prefix}previous"

    @property
    def next(self) -> str:
        """Name the start of the row after."""
        return f"{self.prefix}next"

    @property
    def chunk(self) -> str:
        """Name the start of a row's chunk of time."""
        return f"{self.prefix}chunk"

    @property
    def value_entry(self) -> str:
        """Name the number of the value that an event is counted by, where there are several."""
        return f"{self.prefix}value"

    def value(self, place: int) -> str:
        """Name an aggregate that is computed at once: from events, or from all rows of values."""
        return f"{self.prefix}v{place}"


@dataclass(frozen=True, slots=True)
class Target:
    """An engine, as far as it decides how a plan runs."""

    names: Names
    values: Values
    partitions: int | None = None
    """How many partitions its shuffles have; `None` if it is not told how to shuffle."""
    packing: Packing | None = None
    """How states may be packed into pane rows; `None` if they may not."""
    reuses: bool = False
    """Whether rows that were shuffled once can be read twice, as Spark does where a plan says the same thing twice."""
    streaming: bool = False
    is_one_operator: bool = False
    """Whether all windows must be computed from the events by one operator, as on a stream that updates its results."""
    has_windows: bool = False
    """Whether it groups by windows of its own, which read each other."""
    levels: tuple[Level, ...] | None = None
    """The levels of a stream that goes on, whose state has their layout."""
    unsorted: tuple[str, ...] = ()
    """Columns of keys that cannot be sorted."""
    keeps_panes: bool = False
    """Whether rows of the first level are kept, and read later: there may then be several for an instance, and each
    knows its first and last event."""
    appended: int | None = None
    """The finest panes, if some of their rows are in no coarser ones yet."""
    are_few: bool = False
    """Whether rows of the first level are so few that one task does it all."""

    @property
    def can_scan(self) -> bool:
        """Say whether rows can be sorted by keys and time; those that are counted by values are too many to pay."""
        return not self.unsorted and not self.values.keys

    @property
    def has_columns(self) -> bool:
        """Say whether a step can compute columns for those after it, as operators do; a level of text is one SELECT."""
        return self.partitions is not None or self.streaming

    @classmethod
    def assumed(cls, query: Query, *, partitions: int | None = None, streaming: bool = False) -> Target:
        """Return what is known of Spark before there are events."""
        names = Names.of(query, "__fw_")
        packing = Packing.of(query) if partitions else None
        # Values are counted on a batch only, and not beside sessions.
        counts = partitions is not None and not streaming and not query.has_sessions
        strictest = Kind.COUNTED if counts else Kind.MERGEABLE
        values = Values.of(query.parsed_aggregates, names, shared=query.kind <= strictest)
        return cls(names, values, partitions, packing, reuses=partitions is not None, streaming=streaming)
