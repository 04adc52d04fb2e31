"""How rows reach the instances that they feed, as Spark SQL: the same text for batch and for streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from factor_windows.algebra.slices import Progression
from factor_windows.physical.levels import ALWAYS, EVERYWHERE, Feed, Level


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of the columns that a fan-out reads and makes."""

    begin: str
    """Where the row's own instance starts; of an event, its time."""
    node: str
    feed: str
    step: str


@dataclass(frozen=True, slots=True)
class FanOut:
    """A level's fan-out: what to explode, and what each copy of a row then belongs to."""

    feeds: str | None
    """An array to explode into the column `feed`; `None` if every row feeds one instance."""
    steps: str | None
    """An array to explode into the column `step` after that; `None` if feeds alone say it all."""
    start: str
    """The start of the instance that a copy of a row feeds."""
    node: str
    """The number of the node that the instance belongs to."""
    reaches: str | None
    """Whether the copy's instance really holds the row; `None` if it always does."""


def fan_out(level: Level, columns: Columns) -> FanOut:
    """Write down how each row is given once to every instance that it feeds."""
    entries = level.entries
    feeds = [feed for feed, _ in entries]

    def constant(values: Sequence[int], type: str = "bigint") -> str:
        return looked_up(values, columns.feed, type)

    start = f"{columns.begin} - {_after_edge(feeds, columns, constant)}"
    steps = None
    if not level.flat:
        steps = f"sequence(0, {constant([feed.steps - 1 for feed in feeds], 'int')})"
        back = f"{columns.step} * {constant([feed.stride for feed in feeds])}"
        cut = any(feed.most != ALWAYS for feed in feeds)
        start += f" - least({back}, {constant([feed.most for feed in feeds])})" if cut else f" - {back}"
    elif any(step for _, step in entries):
        start += f" - {constant([feed.back(step) for feed, step in entries])}"
    kept = []
    if any(feed.reach != ALWAYS for feed in feeds):
        kept.append(f"{columns.begin} - ({start}) <= {constant([feed.reach for feed in feeds])}")
    if any(feed.grid != (1, 0) for feed in feeds):
        slide, offset = (constant([feed.grid[part] for feed in feeds]) for part in (0, 1))
        kept.append(f"pmod({start} - {offset}, {slide}) = 0")
    return FanOut(
        feeds=_feeds_of_row([feed.source for feed in feeds], columns.node) if len(entries) > 1 else None,
        steps=steps,
        start=start,
        node=constant([feed.target for feed in feeds], "int"),
        reaches=" AND ".join(kept) or None,
    )


def _after_edge(feeds: Sequence[Feed], columns: Columns, constant: Callable[[Sequence[int]], str]) -> str:
    """Return how long after the last edge a row starts; edges of several progressions are written out."""
    if len(feeds) == 1 and len(feeds[0].edges) > 1:
        return after_edges(feeds[0].edges, columns.begin)
    plain = [feed.edges[0] if len(feed.edges) == 1 else EVERYWHERE[0] for feed in feeds]
    offsets = [offset for _, offset in plain]
    begin = f"{columns.begin} - {constant(offsets)}" if any(offsets) else columns.begin
    after = "0L" if set(plain) == set(EVERYWHERE) else f"pmod({begin}, {constant([step for step, _ in plain])})"
    several = "".join(
        f" WHEN {columns.feed} = {place} THEN {after_edges(feed.edges, columns.begin)}"
        for place, feed in enumerate(feeds)
        if len(feed.edges) > 1
    )
    return f"CASE{several} ELSE {after} END" if several else after


def after_edges(edges: Sequence[Progression], begin: str) -> str:
    """Return how long after the last edge of several progressions a time is."""
    terms = [f"pmod({begin}{f' - {offset}L' if offset else ''}, {step}L)" for step, offset in edges]
    return f"least({', '.join(terms)})" if len(terms) > 1 else terms[0]


def _feeds_of_row(sources: list[int], node: str) -> str:
    """Return the numbers of the entries that a row has: the same for all, or by the node that it belongs to."""
    own = {source: [place for place, other in enumerate(sources) if other == source] for source in sources}
    if len(own) == 1:
        return _array(own[sources[0]], "int")
    arrays = ", ".join(_array(own.get(position, []), "int") for position in range(max(own) + 1))
    return f"element_at(array({arrays}), {node} + 1)"


def looked_up(values: Sequence[int], number: str, type: str) -> str:
    """Return the value at a number's place in a list of constants; one constant if all are the same."""
    if len(set(values)) == 1:
        return f"CAST({values[0]} AS {type})"
    return f"element_at({_array(values, type)}, {number} + 1)"


def _array(values: Sequence[int], type: str) -> str:
    return f"CAST(array({', '.join(map(str, values))}) AS array<{type}>)"
