"""Window assigners: which instances of a node a row of another node, or an event, belongs to."""

from __future__ import annotations

from dataclasses import dataclass

from factor_windows.algebra.coverage import fewest, stride
from factor_windows.algebra.growing import Growing
from factor_windows.algebra.session import Session
from factor_windows.algebra.slices import Progression, Segmentation, Slices, is_partition
from factor_windows.algebra.window import Window
from factor_windows.functions.table import Kind

ALWAYS = 2**62
"""A lag or an age that no row exceeds."""
RAW = -1
"""The number of the raw events, where nodes are numbered by their position in the plan."""
EVERYWHERE: tuple[Progression, ...] = ((1, 0),)
"""Edges at every microsecond: the last edge at or before a time is the time itself."""


@dataclass(frozen=True, slots=True)
class Assigner:
    """The instances of one node that a row of another belongs to.

    A row that starts at p belongs to those at f, f - stride, f - 2 * stride, ..., `steps` of them, where f is the last
    of `edges` at or before p. All are in microseconds, or in ticks of the target node's clock.
    """

    source: int
    target: int
    edges: tuple[Progression, ...] = EVERYWHERE
    steps: int = 1
    stride: int = 0
    max_lag: int = ALWAYS
    """No instance starts longer before f than this: if the last stride would exceed it, it is shortened."""
    max_age: int = ALWAYS
    """The row must start at most this long after the instance."""
    grid: Progression = (1, 0)
    """Where instances start; a start that is not on it is not an instance."""
    before: int = ALWAYS
    """Only rows that start before this are assigned: each later row is already an instance, and needs no other."""

    @property
    def passes_through(self) -> bool:
        """Say whether rows only pass through a level."""
        return self.source == self.target

    def lag(self, step: int) -> int:
        """Return how long before f the instance of a step starts."""
        return min(step * self.stride, self.max_lag)


def assign(source: int, target: int, parent: Segmentation | None, child: Segmentation, kind: Kind) -> Assigner:
    """Return the assigner of a parent's row, or of an event, to the instances of a child."""
    if isinstance(child, Slices):
        return Assigner(source, target, child.edges)
    if isinstance(child, Session):
        # The session's start depends on other rows, not on this row alone.
        return Assigner(source, target)
    if isinstance(child, Growing):
        # A row belongs to the steps from its own on, but not to those of the next period.
        step = child.step
        return Assigner(source, target, ((step.slide, step.offset),), child.steps, -step.slide)
    if parent is None or is_partition(parent):
        is_fixed = isinstance(parent, Window) and parent.clock is None and child.clock is None
        return _from_pieces(source, target, child, parent.range if is_fixed and isinstance(parent, Window) else 1)
    assert isinstance(parent, Window)
    every = _from_all_inside(source, target, child, parent)
    some = _from_fewest(source, target, child, parent)
    return some if kind is not Kind.OVERLAP_SAFE or some.steps < every.steps else every


def _from_pieces(source: int, target: int, child: Window, piece: int) -> Assigner:
    """Assign the instances that contain the piece: those that start at or before it, and end after its start."""
    steps = -(-child.range // child.slide)
    always = child.range % child.slide == 0
    grid = ((child.slide, child.offset),)
    return Assigner(source, target, grid, steps, child.slide, max_age=ALWAYS if always else child.range - piece)


def _from_all_inside(source: int, target: int, child: Window, parent: Window) -> Assigner:
    """Assign the instances that contain the row's instance entirely, as in the paper."""
    spare = child.range - parent.range
    steps = spare // child.slide + 1
    latest = steps * child.slide - parent.slide
    grid = ((child.slide, child.offset),)
    return Assigner(source, target, grid, steps, child.slide, max_age=ALWAYS if latest <= spare else spare)


def _from_fewest(source: int, target: int, child: Window, parent: Window) -> Assigner:
    """Assign the instances that have the row among the fewest that make them up."""
    grid = (1, 0) if child.slide == parent.slide else (child.slide, child.offset)
    last = child.range - parent.range
    steps = fewest(parent, child)
    cut = ALWAYS if last == (steps - 1) * stride(parent) else last
    return Assigner(source, target, EVERYWHERE, steps, stride(parent), max_lag=cut, grid=grid)
