"""The steps of a physical plan: the operations on rows, from events to results. Engines render them."""

from __future__ import annotations

from dataclasses import dataclass

from factor_windows.algebra.calendar import AnyWindow
from factor_windows.algebra.pane_row import PaneRow
from factor_windows.functions.table import State
from factor_windows.physical.terms import Sql, Term

Named = tuple[str, Term]


@dataclass(frozen=True, slots=True)
class Scan:
    """Read the events that meet a condition and have a time, with their keys and the time as a number."""

    where: str
    time: str
    keys: tuple[tuple[str, str], ...]
    """The columns of keys, with their expressions."""
    column: str
    """The column of the time in microseconds."""


@dataclass(frozen=True, slots=True)
class Explode:
    """Repeat each row for every entry that takes rows of its node and, where steps are counted, for each step."""

    sources: tuple[int, ...]
    """For each entry, the node whose rows it takes."""
    entry: str
    counts: Term | None
    """The number of steps of an entry; `None` if each entry is one step."""
    step: str
    above: int = 0
    """The number of nodes that rows may belong to, if they include nodes that no entry takes."""

    @property
    def has_entries(self) -> bool:
        """Say whether rows carry their entry: there are several, or rows without one."""
        return len(self.sources) > 1 or self.above > 0


@dataclass(frozen=True, slots=True)
class FindSessions:
    """Add to each row, in order of time, the start of its session for each gap."""

    by: tuple[str, ...]
    """The columns within which sessions are found: rows with the same keys, and of the same node."""
    first: str
    """The time of a row's first event."""
    last: str
    """The time of its last event."""
    gaps: tuple[tuple[str, int], ...]
    """The columns to make, with their gaps."""
    overlap: bool = False
    """Whether the times of rows may overlap, so that the previous row need not be the one that ended last."""


@dataclass(frozen=True, slots=True)
class ScanBlocks:
    """Add to each row, in order of time, the merged states of its block's rows: up to this row, and from this row on.

    If blocks are as long as a window, each of its instances is made of two of these prefixes and suffixes.
    """

    by: tuple[str, ...]
    """The columns that identify a block's rows: those with the same keys, of one node, and of one chunk."""
    start: str
    length: int
    offset: int
    """The start of blocks, modulo their length."""
    aggregates: tuple[tuple[str, Sql], ...]
    previous: str
    """The column to make of the start of the previous row in the block or, for the first row, of the block's start."""
    next: str
    """The same for the next row or, for the last row, the block's end."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Keep the rows that meet all conditions."""

    conditions: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Project:
    """Compute columns, in addition to the existing ones or instead of them."""

    columns: tuple[Named, ...]
    keeps_others: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Group rows by columns, including the start of an instance, and aggregate: lift events, or merge states."""

    by: tuple[str, ...]
    aggregates: tuple[tuple[str, Sql], ...]
    constants: tuple[Named, ...]
    """Columns that are the same in all groups."""
    end: Term
    """The end of a group's instance."""
    merges: bool
    reads: tuple[str, ...] = ()
    """The columns to aggregate, if they are not the ones to make."""
    sessions: Sessions | None = None
    """How the group finds the sessions of rows, if no earlier step has."""
    grid: int = 1
    """A number of microseconds that divides the start of every instance."""

    @property
    def zeros(self) -> int:
        """Return the number of lowest bits that are zero in every start.

        >>> Group(("start",), (), (), Sql("end"), merges=False, grid=2_000_000).zeros
        7
        """
        return (self.grid & -self.grid).bit_length() - 1


@dataclass(frozen=True, slots=True)
class Sessions:
    """Sessions that a group finds by itself, as Spark does on streams: it merges rows that are near each other."""

    gaps: tuple[tuple[int, int], ...]
    """The nodes that are sessions, with their gaps."""
    first: str
    last: str
    delay: int
    """How long after a session's end its rows may still arrive: the panes it is made of arrive once complete."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Send each row to the chunk of time that it starts in, and to the chunk before if its windows extend to it."""

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
    """Make a row of each filled slot of a pane row, and of each instance that is merged inside it."""

    pane_row: PaneRow
    entries: tuple[tuple[int, range], ...]
    """The nodes to unpack, with the slots of each of their instances."""
    states: tuple[State, ...]
    keeps: tuple[str, ...]
    filled: str
    """The column whose bits say which slots contain an event."""
    slot: str
    start: str
    node: str


@dataclass(frozen=True, slots=True)
class OwnWindow:
    """Group the events, or the rows of a node, by one of the engine's own windows; existing rows stay."""

    node: int
    window: AnyWindow
    source: int
    aggregates: tuple[tuple[str, Sql], ...]


@dataclass(frozen=True, slots=True)
class Show:
    """Lower the states, and show each row under the names of its node."""

    names: tuple[tuple[str, ...], ...]
    """For each node, the names that it is shown under."""
    keys: tuple[str, ...]
    start: Term
    end: Term
    node: str
    values: tuple[Term, ...]
    hides: bool = False
    """Whether there are also rows of other nodes, which have no names here."""


@dataclass(frozen=True, slots=True)
class Aside:
    """Show the rows of some nodes from here, in addition to the results of the later steps."""

    node: Term
    """The node that a row is shown as: its own, or a node with the same instance."""
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
    """Name the column of a pane row with the state of a slot."""
    return f"{state}_{slot}"


def prefix_column(state: str) -> str:
    """Name the column with the state of a block's rows up to a row."""
    return f"{state}_prefix"


def suffix_column(state: str) -> str:
    """Name the column with the state of a block's rows from a row on."""
    return f"{state}_suffix"
