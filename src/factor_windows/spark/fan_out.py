"""How rows reach the instances that they feed, as Spark SQL: the same text for batch and for streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from factor_windows.levels import ALWAYS, Level


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

    def constant(values: Sequence[int], type: str = "bigint") -> str:
        return looked_up(values, columns.feed, type)

    slide = constant([feed.slide for feed, _ in entries])
    offset = constant([feed.offset for feed, _ in entries])
    begin = columns.begin if not any(feed.offset for feed, _ in entries) else f"{columns.begin} - {offset}"
    start = f"{columns.begin} - pmod({begin}, {slide})"
    steps = None
    if not level.flat:
        most = constant([feed.steps - 1 for feed, _ in entries], "int")
        steps = f"sequence(0, {most})"
        start += f" - {columns.step} * {slide}"
    elif any(step for _, step in entries):
        start += f" - {constant([step * feed.slide for feed, step in entries])}"
    reaches = None
    if any(feed.reach is not None for feed, _ in entries):
        reach = constant([ALWAYS if feed.reach is None else feed.reach for feed, _ in entries])
        reaches = f"{columns.begin} - ({start}) <= {reach}"
    return FanOut(
        feeds=_feeds_of_row([feed.source for feed, _ in entries], columns.node) if len(entries) > 1 else None,
        steps=steps,
        start=start,
        node=constant([feed.target for feed, _ in entries], "int"),
        reaches=reaches,
    )


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
