"""Partial states: what a node carries for its readers, and the sets of states that several functions share.

Lifts, combines and lowers are Spark SQL with placeholders: `:x`, `:y`, ... are the arguments, `:time` is the event
time, and a state has its own name. A lift is one aggregate call, perhaps with a FILTER, so that the user's own FILTER
can be added to it. A combine may use the states before its own; its innermost calls are aggregates.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal


class Kind(IntEnum):
    """How a function may be shared, from the most lenient kind to the strictest."""

    OVERLAP_SAFE = 1
    """Overlapping parts are harmless: reads from covers and partitions (Paper: Theorem 6)."""
    MERGEABLE = 2
    """Disjoint parts can be merged: reads from partitions (Paper: Theorem 5)."""
    COUNTED = 3
    """Mergeable with the value as one more key: computed from how often each value occurs; counts merge (theory.md)."""
    HOLISTIC = 4
    """No partial result of bounded size helps: reads raw events only."""


Fold = Literal["", "least", "greatest", "add"]


@dataclass(frozen=True, slots=True)
class Weight:
    """The cost of one state: making, shuffling and merging it takes as long as this many rows of plain numbers.

    >>> Weight(12.0, per_accuracy=0.0075).of(accuracy=10_000)
    87.0
    """

    rows: float = 1.0
    per_accuracy: float = 0.0
    """The additional cost per unit of the requested accuracy: a sketch allocates its memory at once."""
    is_object: bool = False
    """Whether Spark adds events to an object; it then sorts them by group as soon as there are many groups."""

    def of(self, accuracy: int) -> float:
        """Return the equivalent number of rows, for an accuracy."""
        return self.rows + self.per_accuracy * accuracy


NUMBER = Weight()


@dataclass(frozen=True, slots=True)
class State:
    """One partial result that a node carries: made from events by `lift`, merged by `combine`."""

    name: str
    lift: str
    combine: str
    fixed: bool = False
    """Whether its size is fixed if its type's is, so that Spark updates it in place."""
    fold: Fold = ""
    """How the states of several slots merge inside a row: by `least`, `greatest` or `add`; empty if they cannot."""
    kind: Kind = Kind.MERGEABLE
    """Whether overlapping parts can be merged, too."""
    by_time: bool = False
    """Whether it depends on the order of event times."""
    weight: Weight = NUMBER


def added(name: str, lift: str) -> State:
    """Return a state whose parts are added.

    >>> added("n", "count(:x)").combine
    'sum(:n)'
    """
    return State(name, lift, f"sum(:{name})", fixed=True, fold="add")


COUNT = added("n", "count(:x)")
PAIRS = added("n", "regr_count(:y, :x)")


def sum_and_count(argument: str = ":x", *, of: str = "", careful: bool = False) -> tuple[State, State]:
    """Return the states of a mean: of one argument, or of its values where the other argument `of` is known.

    A careful sum never fails in a part. It is null where it has overflowed, which the count distinguishes from no
    values at all, and stays null through all levels.
    """
    known = f" FILTER (WHERE NOT {of} IS NULL)" if of else ""
    count = PAIRS if of else COUNT
    if not careful:
        return added("sum", f"sum({argument}){known}"), count
    merged = "CASE WHEN count_if(:sum IS NULL AND :n > 0) = 0 THEN try_sum(:sum) END"
    return count, State("sum", f"try_sum({argument}){known}", merged, fixed=True)


HALVES = (added("high", "sum(shiftright(:x, 32))"), added("low", "sum(:x & 4294967295L)"))
"""A sum of 64-bit numbers that no part can overflow: their high and their low halves, added separately."""
JOINED_HALVES = "(:high + shiftright(:low, 32)) * 4294967296L + (:low & 4294967295L)"
"""The sum itself; the multiplication overflows exactly if the sum does, and then behaves as the session requires."""


def guarded(value: str, overflow: str = ":n + 9223372036854775807L < 0") -> str:
    """Return a value made from a careful sum; where that has overflowed, Spark's own error, or null without ANSI mode.

    The default `overflow` adds to the greatest number: an error in ANSI mode, and true without it.
    """
    return f"CASE WHEN NOT :sum IS NULL OR {overflow} THEN {value} END"


def merged_mean(mean: str) -> str:
    """Return the mean of all parts: the plain mean of the parts' means, corrected by their relation to the sizes."""
    return f"avg(:{mean}) + regr_sxy(:n, :{mean}) / sum(:n)"


def merged_moment(moment: str, x: str, y: str) -> str:
    """Return the co-moment of all parts: sum(c) + sum(n * (x - overall x) * (y - overall y)), x and y the parts' means.

    The textbook difference of sums of squares loses all digits far from zero. Here only deviations from the plain means
    are multiplied, by Spark's own regr_sxy, which is careful about them (docs/decisions.md).
    """
    together = f"regr_sxy(:n * :{y}, :{x}) - avg(:{y}) * regr_sxy(:n, :{x})"
    return f"sum(:{moment}) + {together} - regr_sxy(:n, :{x}) * regr_sxy(:n, :{y}) / sum(:n)"


def _moment(name: str, lift: str, x: str, y: str) -> State:
    return State(name, lift, merged_moment(name, x, y), fixed=True)


MOMENTS = (
    COUNT,
    State("mean", "avg(CAST(:x AS DOUBLE))", merged_mean("mean"), fixed=True),
    _moment("m2", "regr_sxx(:x, :x)", "mean", "mean"),
)
MEAN_X = State("mean_x", "regr_avgx(:y, CAST(:x AS DOUBLE))", merged_mean("mean_x"), fixed=True)
MEAN_Y = State("mean_y", "regr_avgy(CAST(:y AS DOUBLE), :x)", merged_mean("mean_y"), fixed=True)
COMOMENTS = (PAIRS, MEAN_X, MEAN_Y, _moment("c", "regr_sxy(:y, :x)", "mean_x", "mean_y"))
SQUARE_X = _moment("m2_x", "regr_sxx(:y, :x)", "mean_x", "mean_x")
SQUARE_Y = _moment("m2_y", "regr_syy(:y, :x)", "mean_y", "mean_y")


def chosen(name: str, choose: str, value: str, suffix: str = "", *, by_time: bool = False) -> State:
    """Return a state that is the least or the greatest value, by `min` or by `max`."""
    fold: Fold = "least" if choose == "min" else "greatest"
    return State(name, f"{choose}({value}){suffix}", f"{choose}(:{name})", True, fold, Kind.OVERLAP_SAFE, by_time)


def _ends(name: str, other: str) -> tuple[State, State]:
    known = f" FILTER (WHERE NOT :{other} IS NULL)"
    value = f"CAST(:{name} AS DOUBLE)"
    return chosen(f"least_{name}", "min", value, known), chosen(f"most_{name}", "max", value, known)


ENDS_X, ENDS_Y = _ends("x", "y"), _ends("y", "x")


def varies(name: str) -> str:
    """Say whether an argument has different values, by its ends: the mean of equal values may be off by a digit."""
    return f"(:m2_{name} > 0 AND (:least_{name} < :most_{name} OR isnan(:m2_{name})))"
