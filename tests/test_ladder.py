"""Trailing windows are made of panes and raw edges that tile them exactly, whatever the time and the panes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factor_windows.algebra.ladder import Ladder
from factor_windows.cost.ladder import choose_ladder, price

HOUR = 3_600_000_000
DAY = 24 * HOUR
ranges = st.sets(st.integers(1, 150), min_size=1, max_size=4).map(lambda found: tuple(sorted(found)))
ladders = st.builds(Ladder, st.integers(1, 170), ranges)
times = st.integers(-400, 400)


def instants(ladder, at, place):
    """List every instant that a window is made of: those of its panes, and of its edges that are in its range."""
    found = []
    for piece in parts(ladder.pieces, ladder, at, place):
        found += range(*ladder.bounds(at, piece))
    for edge in parts(ladder.edges, ladder, at, place):
        ages = ((time, at - time) for time in range(*ladder.bounds(at, edge)))
        known = [(time, age) for time, age in ages if 0 < age <= ladder.ranges[edge.last]]
        found += [time for time, age in known if max(edge.first, shortest(ladder, age)) <= place]
    return found


def parts(every, ladder, at, place):
    """List those that a window has."""
    return [each for each in every if ladder.has(at, each) and each.first <= place <= each.last]


def shortest(ladder, age):
    """Return the place of the shortest range that reaches back so far."""
    return next(place for place, length in enumerate(ladder.ranges) if length >= age)


@given(ladders, times)
def test_pieces_and_edges_tile_each_window_exactly(ladder, at):
    for place, length in enumerate(ladder.ranges):
        assert sorted(instants(ladder, at, place)) == list(range(at - length, at))


@given(ladders, times)
def test_a_window_has_two_panes_of_a_rung_at_most(ladder, at):
    for place in range(len(ladder.ranges)):
        rungs = [piece.rung for piece in parts(ladder.pieces, ladder, at, place)]
        assert all(rungs.count(rung) <= 2 for rung in rungs)
        assert all(0 <= rung < ladder.rungs for rung in rungs)


def test_times_on_the_grid_need_no_raw_events():
    ladder = Ladder(10, (40, 80))
    assert not [edge for edge in ladder.edges if ladder.has(120, edge)]
    assert [edge for edge in ladder.edges if ladder.has(121, edge)] == list(ladder.edges)


@pytest.mark.parametrize(
    ("density", "rungs"),
    [(0.01 / DAY, False), (1 / DAY, False), (400 / HOUR, True), (1e6 / HOUR, True), (None, True)],
)
def test_few_events_are_joined_raw_and_many_in_panes(density, rungs):
    assert bool(choose_ladder([HOUR, 7 * DAY], density=density).rungs) is rungs


@given(st.floats(1e-15, 1.0), st.floats(1, 1e9), st.floats(1, 1e9))
def test_no_other_pane_that_was_looked_at_is_cheaper(density, events, labels):
    chosen = choose_ladder([HOUR, DAY], density=density, events=events, labels=labels)
    for pane in (HOUR // 4, HOUR // 2, HOUR, 2 * HOUR, DAY + 1):
        other = Ladder(pane, chosen.ranges)
        assert price(chosen, density, 1.0, events, labels) <= price(other, density, 1.0, events, labels)


def test_busy_keys_have_shorter_panes():
    even, skewed = (choose_ladder([HOUR, DAY], density=10 / HOUR, crowding=times, events=1e7) for times in (1, 50))
    assert skewed.pane < even.pane


def test_denser_events_have_shorter_panes():
    panes = [choose_ladder([HOUR, DAY], density=count / HOUR, events=1e7).pane for count in (10, 1e3, 1e5)]
    assert panes == sorted(panes, reverse=True)
    assert len(set(panes)) == 3
