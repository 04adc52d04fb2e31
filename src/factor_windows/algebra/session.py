"""Sessions: for each key, runs of events that are never further apart than a gap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape

from factor_windows.algebra.window import Duration, Window, duration, readable
from factor_windows.errors import WindowError

FOREVER = 2**62
"""The longest session supported, in microseconds."""


@dataclass(frozen=True, slots=True)
class Session:
    """The events of a key, split wherever the next one comes more than a gap later, as Spark's session_window does.

    An instance starts with its first event and ends a gap after its last one. It can be made from panes no longer than
    the gap, because two events of one pane are always in one session, and from sessions with a shorter gap.

    >>> Session(gap=10) == Session(gap=10, name="visits")
    True
    """

    gap: int
    name: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.gap, int) or isinstance(self.gap, bool):
            raise WindowError(f"gap {self.gap!r} is not a whole number of microseconds; session() reads durations")
        if self.gap <= 0:
            raise WindowError(f"gap {readable(self.gap)} is not positive; a session needs time to close")
        if not isinstance(self.name, str):
            raise WindowError(f"window name {self.name!r} is not text")
        if not self.name:
            object.__setattr__(self, "name", self.label)

    def _repr_html_(self) -> str:
        """Show the window in a notebook."""
        return f"<b>{escape(self.name)}</b>: sessions, closed after {readable(self.gap)} without events"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    @property
    def label(self) -> str:
        """Describe the window; this is its default name.

        >>> session("30 minutes").label
        'session 30 minutes'
        """
        return f"session {readable(self.gap)}"

    @property
    def pane(self) -> Window:
        """Return the longest tumbling window that sessions can be made from, wherever they start."""
        return Window(range=self.gap, slide=self.gap)

    @property
    def parts(self) -> tuple[Window, ...]:
        """List the windows that describe this one: its pane."""
        return (self.pane,)

    @property
    def is_tumbling(self) -> bool:
        """Return false: instances do not fill all time."""
        return False

    @property
    def length(self) -> int:
        """Return the length used for ordering, the gap: no session is shorter."""
        return self.gap

    @property
    def distance(self) -> int:
        """Return the shortest time between two starts, the gap."""
        return self.gap

    @property
    def longest(self) -> int:
        """Return a length in microseconds that no instance exceeds."""
        return FOREVER

    def sessions(self, times: Iterable[int]) -> Iterator[tuple[int, int]]:
        """List the sessions of the events at some times, each with its start and end.

        >>> list(Session(gap=10).sessions([31, 0, 10, 21]))
        [(0, 20), (21, 41)]
        """
        first = last = None
        for time in sorted(times):
            if first is None or last is None or time - last > self.gap:
                if first is not None and last is not None:
                    yield first, last + self.gap
                first = time
            last = time
        if first is not None and last is not None:
            yield first, last + self.gap


def session(gap: Duration, *, name: str = "") -> Session:
    """Make a session window: for each key it closes after a gap without events; an event exactly a gap later is in it.

    >>> session("30 minutes").name
    'session 30 minutes'
    """
    return Session(duration(gap), name)
