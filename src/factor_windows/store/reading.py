"""What a read of a store needs: which panes make which window, and in which files they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from factor_windows.algebra.session import Session
from factor_windows.algebra.slices import Segmentation
from factor_windows.search.plan_panes import sources_of
from factor_windows.store.manifest import Manifest, Part, Resolution
from factor_windows.tree import Pass

MOST_RANGES = 16
"""The most stretches of time that a read is restricted to; more are joined where the gaps are smallest."""
Range = tuple[float, float]
"""A stretch of time in microseconds, excluding its end."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The parts that answer a read: compact ones of several kinds of panes, and those appended since."""

    ranges: Mapping[int, tuple[Range, ...]]
    """For each kind of panes that is read, by its number, the ranges of their starts."""
    compact: Mapping[int, tuple[Part, ...]]
    appended: tuple[Part, ...]

    @property
    def parts(self) -> tuple[Part, ...]:
        """List all parts."""
        return (*(part for several in self.compact.values() for part in several), *self.appended)

    @property
    def everywhere(self) -> tuple[Range, ...]:
        """Return the ranges in which the finest panes to read start."""
        return joined(each for ranges in self.ranges.values() for each in ranges)


def choose_parts(manifest: Manifest, ranges: Mapping[int, tuple[Range, ...]]) -> Reading:
    """Find the parts that contain panes which start in given ranges, by the kind of panes."""
    everywhere = joined(each for own in ranges.values() for each in own)
    compact = {
        node: tuple(part for part in manifest.parts if part.is_compact and part.node == node and _meets(part, own))
        for node, own in ranges.items()
    }
    appended = tuple(part for part in manifest.parts if not part.is_compact and _meets(part, everywhere))
    return Reading(ranges, compact, appended)


def usable(manifest: Manifest) -> tuple[int, ...]:
    """List the kinds of panes that are worth reading: coarser ones only if any were made."""
    made = {part.node for part in manifest.parts if part.is_compact}
    return (0, *(number for number in range(1, len(manifest.resolutions)) if number in made))


def reach_of(plan: Pass, resolutions: Sequence[Resolution]) -> dict[int, list[Segmentation]]:
    """Return the windows that are ultimately made from each kind of panes."""
    numbers = {each.panes: number for number, each in enumerate(resolutions)}
    found: dict[int, list[Segmentation]] = {}
    for window, panes in sources_of(plan).items():
        found.setdefault(numbers[panes], []).append(window)
    return found


def ranges_of_starts(windows: Iterable[Segmentation], since: float, until: float) -> tuple[Range, ...]:
    """Return the ranges of starts of the panes that make the windows starting between two times."""
    low, high = since, until
    for window in windows:
        if isinstance(window, Session):
            # An event up to a gap earlier decides whether a session starts; a session may last for any time.
            low, high = min(low, since - 2 * window.gap), inf
        else:
            high = max(high, until + window.longest)
    return ((low, high),)


def ranges_around(windows: Iterable[Segmentation], touched: Iterable[Range]) -> tuple[Range, ...]:
    """Return the ranges of starts of panes that share an instance of a window with a pane starting in given ranges."""
    longest = max(window.longest for window in windows)
    return few(joined((low - longest, high + longest) for low, high in touched))


def joined(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Sort ranges, and join those that meet.

    >>> joined([(5, 7), (0, 2), (6, 9), (2, 3)])
    ((0, 3), (5, 9))
    """
    found: list[Range] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(high, found[-1][1])
        else:
            found.append((low, high))
    return tuple(found)


def few(ranges: Sequence[Range], most: int = MOST_RANGES) -> tuple[Range, ...]:
    """Join ranges that are close to each other until there are few.

    >>> few(((0, 1), (2, 3), (9, 10)), most=2)
    ((0, 3), (9, 10))
    """
    found = list(ranges)
    while len(found) > most:
        gaps = [after[0] - before[1] for before, after in pairwise(found)]
        place = gaps.index(min(gaps))
        found[place : place + 2] = [(found[place][0], found[place + 1][1])]
    return tuple(found)


def varying(number: int, column: str) -> str:
    """Write a number that differs from call to call in such a way that Spark reuses the generated and compiled code.

    The number is an element of a constant array, at a position computed from a column, which is not known in advance.

    >>> varying(7, "t")
    'element_at(array(7L), CAST(pmod(t, 1L) AS INT) + 1)'
    """
    return f"element_at(array({number}L), CAST(pmod({column}, 1L) AS INT) + 1)"


def condition(column: str, ranges: Sequence[Range], *, varies: bool = False) -> str:
    """Write in SQL that a column is in one of some ranges; nothing if that is always true.

    The ranges allow files to be skipped, unless the text `varies`.

    >>> condition("t", ((-inf, 5), (7, 9)))
    '(t < 5L) OR (t >= 7L AND t < 9L)'
    """
    if any(each == (-inf, inf) for each in ranges):
        return ""
    return " OR ".join(f"({' AND '.join(_bounds(column, each, varies))})" for each in ranges)


def conditions(node: str, column: str, ranges: Mapping[int, Sequence[Range]], *, varies: bool = False) -> str:
    """Write the same condition for rows of several kinds.

    >>> conditions("n", "t", {0: ((-inf, 5),), 1: ((-inf, inf),)})
    '(n = 0 AND ((t < 5L))) OR (n = 1)'
    """
    texts = {number: condition(column, own, varies=varies) for number, own in ranges.items()}
    if len(set(texts.values())) <= 1:
        return next(iter(texts.values()), "")
    return " OR ".join(
        f"({node} = {number} AND ({text}))" if text else f"({node} = {number})" for number, text in texts.items()
    )


def rows_within(parts: Iterable[Part], ranges: Sequence[Range]) -> float:
    """Estimate how many rows of parts start in some ranges, as if they were spread evenly."""
    total = 0.0
    for part in parts:
        length = part.last - part.first + 1
        inside = sum(max(0.0, min(high, part.last + 1) - max(low, part.first)) for low, high in ranges)
        total += part.rows * min(1.0, inside / length)
    return total


def _bounds(column: str, each: Range, varies: bool) -> Iterator[str]:
    for sign, limit in zip((">=", "<"), each, strict=True):
        if abs(limit) < 2**63:
            yield f"{column} {sign} {varying(int(limit), column) if varies else f'{int(limit)}L'}"


def _meets(part: Part, ranges: Sequence[Range]) -> bool:
    return any(part.first < high and part.last >= low for low, high in ranges)
