"""Trailing windows are made of panes and raw edges that tile them exactly, whatever the time and the panes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factor_windows.algebra.ladder import Ladder
from factor_windows.cost.ladder import choose_ladder, price
from factor_windows.engines.spark_words import SparkWords
from factor_windows.physical.target import Names
from factor_windows.physical.terms import Column

HOUR = 3_600_000_000
DAY = 24 * HOUR
ranges = st.sets(st.integers(1, 150), min_size=1, max_size=4).map(lambda found: tuple(sorted(found)))
ladders = st.builds(Ladder, st.integers(1, 170), ranges)
times = st.integers(-400, 400)


def instants(ladder, at, place):
    """List every instant that a window is made of: those of its panes, and of its edges that are in its range."""
    found = []
    for piece in ladder.pieces(at):
        if piece.is_there > 0 and piece.first <= place <= piece.last:
            length = ladder.length(piece.rung)
            found += range(piece.number * length, (piece.number + 1) * length)
    for edge in ladder.edges(at):
        if edge.is_there > 0 and edge.last >= place:
            pane = range(edge.number * ladder.pane, (edge.number + 1) * ladder.pane)
            reach = ladder.ranges[edge.last]
            ages = ((time, at - time) for time in pane if 0 < at - time <= reach)
            found += [time for time, age in ages if max(edge.first, shortest(ladder, age)) <= place]
    return found


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
        rungs = [each.rung for each in ladder.pieces(at) if each.is_there > 0 and each.first <= place <= each.last]
        assert all(rungs.count(rung) <= 2 for rung in rungs)
        assert all(0 <= rung < ladder.rungs for rung in rungs)


@given(ladders, times)
def test_an_edge_that_is_there_holds_an_instant_of_a_window(ladder, at):
    for edge in ladder.edges(at):
        if edge.is_there > 0:
            pane = range(edge.number * ladder.pane, (edge.number + 1) * ladder.pane)
            assert any(0 < at - time <= ladder.ranges[edge.last] for time in pane)


def test_aligned_times_need_no_raw_events():
    assert not [edge for edge in Ladder(10, (40, 80)).edges(120) if edge.is_there > 0]


def test_the_same_arithmetic_is_written_as_sql():
    ladder = Ladder(10, (40,))
    words = SparkWords(Names("__fw_", (), "__fw_t"))
    edge, start = ladder.edges(Column("at"))
    assert words.term(edge.number) == "(at - pmod(at, 10L)) div 10L"
    assert words.term(start.is_there) == "pmod(at - 40L, 10L)"


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
