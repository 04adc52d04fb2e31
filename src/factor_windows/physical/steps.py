"""The steps of a physical plan: what rows go through, from events to results. Engines write them down."""

from __future__ import annotations

from dataclasses import dataclass

from factor_windows.algebra.calendar import AnyWindow
from factor_windows.algebra.pane_row import PaneRow
from factor_windows.functions.table import State
from factor_windows.physical.terms import Sql, Term

Named = tuple[str, Term]


@dataclass(frozen=True, slots=True)
class Scan:
    """Read the events that count, which meet a condition and have a time, with their keys and the time as a number."""

    where: str
    time: str
    keys: tuple[tuple[str, str], ...]
    """The columns of keys, and what computes them."""
    column: str
    """The column of the time in microseconds."""


@dataclass(frozen=True, slots=True)
class Explode:
    """Give each row once to every entry that takes rows of its node, and, where steps are counted, to each of these."""

    sources: tuple[int, ...]
    """Of each entry, the node whose rows it takes."""
    entry: str
    counts: Term | None
    """How many steps an entry has; `None` if each entry is one."""
    step: str
    above: int = 0
    """How many nodes the rows may be of, if of others too, which no entry takes."""

    @property
    def has_entries(self) -> bool:
        """Say whether rows are told their entry: there are several, or rows that have none."""
        return len(self.sources) > 1 or self.above > 0


@dataclass(frozen=True, slots=True)
class FindSessions:
    """Tell each row, in order of time, when the session of each gap begins that it belongs to."""

    by: tuple[str, ...]
    """Among which rows sessions are found: those of the same keys, and of one node."""
    first: str
    """The time of a row's first event."""
    last: str
    """The time of its last event."""
    gaps: tuple[tuple[str, int], ...]
    """The columns that are made, and their gaps."""
    overlap: bool = False
    """Whether the times of rows may overlap, so that the row before need not be the one that ended last."""


@dataclass(frozen=True, slots=True)
class ScanBlocks:
    """Tell each row, in order of time, what the rows of its block merge to: those up to it, and those from it on.

    The prefixes and suffixes of blocks as long as a window are all that its instances are made of, each of two.
    """

    by: tuple[str, ...]
    """Whose rows a block holds: those of the same keys, of one node, and of one chunk."""
    start: str
    length: int
    offset: int
    """Where blocks begin, modulo their length."""
    aggregates: tuple[tuple[str, Sql], ...]
    previous: str
    """The column that is made of the start of the row before in the block, or, of the first one, the block's start."""
    next: str
    """The same of the row after, or, of the last one, the block's end."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Keep the rows that meet all conditions."""

    conditions: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Project:
    """Compute columns, beside those that are there or instead of them."""

    columns: tuple[Named, ...]
    keeps_others: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Group rows by columns, the start of an instance among them, and aggregate: lift events, or merge states."""

    by: tuple[str, ...]
    aggregates: tuple[tuple[str, Sql], ...]
    constants: tuple[Named, ...]
    """Columns that are the same in all groups."""
    end: Term
    """When the instance of a group ends."""
    merges: bool
    reads: tuple[str, ...] = ()
    """The columns that are aggregated, if they are others than those that are made."""
    sessions: Sessions | None = None
    """How the group finds the sessions that rows belong to, where no step before it has."""


@dataclass(frozen=True, slots=True)
class Sessions:
    """Sessions that a group finds by itself, as Spark does on streams: it merges rows that are near each other."""

    gaps: tuple[tuple[int, int], ...]
    """The nodes that are sessions, and their gaps."""
    first: str
    last: str
    delay: int
    """How much later than a session's end no row of it can come any more: what it is made of comes when it is whole."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Give each row to the chunk of time that it starts in, and to the one before if that one's windows reach it."""

    column: str
    start: str
    length: int
    offset: int
    reach: int


@dataclass(frozen=True, slots=True)
class Repartition:
    """Bring all rows with the same values into one partition, sorted there."""

    by: tuple[str, ...]
    partitions: int | None = None
    sort: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unpack:
    """Give each filled slot of a pane row, and each instance that is merged inside it, a row of its own."""

    pane_row: PaneRow
    entries: tuple[tuple[int, range], ...]
    """The nodes that are taken out, and the slots of each of their instances."""
    states: tuple[State, ...]
    keeps: tuple[str, ...]
    filled: str
    """The column whose bits say which slots hold an event."""
    slot: str
    start: str
    node: str


@dataclass(frozen=True, slots=True)
class OwnWindow:
    """Group the events, or the rows of a node, by a window of the engine's own; what was there stays."""

    node: int
    window: AnyWindow
    source: int
    aggregates: tuple[tuple[str, Sql], ...]


@dataclass(frozen=True, slots=True)
class Show:
    """Lower the states, and show each row under the names of its node."""

    names: tuple[tuple[str, ...], ...]
    """Of each node, the names that it is shown under."""
    keys: tuple[str, ...]
    start: Term
    end: Term
    node: str
    values: tuple[Term, ...]
    hides: bool = False
    """Whether there are rows of other nodes too, which have no names here."""


@dataclass(frozen=True, slots=True)
class Aside:
    """Show the rows of some nodes from here, beside what comes of the steps after."""

    node: Term
    """The node that a row is shown as: its own, or one whose instance it is as well."""
    show: Show


Step = (
    Scan
    | FindSessions
    | ScanBlocks
    | Explode
    | Filter
    | Project
    | Group
    | Chunk
    | Repartition
    | Unpack
    | OwnWindow
    | Aside
    | Show
)


def slot_column(state: str, slot: int) -> str:
    """Name the column of a pane row that holds a state of a slot."""
    return f"{state}_{slot}"


def prefix_column(state: str) -> str:
    """Name the column of a state of all rows of a block up to a row."""
    return f"{state}_prefix"


def suffix_column(state: str) -> str:
    """Name the column of a state of all rows of a block from a row on."""
    return f"{state}_suffix"
