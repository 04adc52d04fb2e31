"""Slices and the relations beyond the paper agree with their definitions, checked by listing instances."""

from itertools import pairwise
from math import lcm

from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import window_sets, windows
from test_coverage import instances_inside, instances_of_a_period, related

from factor_windows import Query, Window, optimize, tumbling
from factor_windows.algebra.coverage import covers, fewest, fewest_set, partitions, tiles
from factor_windows.algebra.graph import can_make
from factor_windows.algebra.slices import (
    Slices,
    edges_of,
    is_partition,
    pieces_of,
    refines,
    slices_of,
    topological_key,
    within,
)
from factor_windows.functions.table import Kind

progressions = st.tuples(st.integers(1, 8), st.integers(0, 7)).map(lambda pair: (pair[0], pair[1] % pair[0]))
edges = st.lists(progressions, min_size=1, max_size=4).map(tuple)
segmentations = st.one_of(
    edges.map(lambda each: Slices(each)).map(lambda each: each if len(each.edges) > 1 else slices_of([each])),
    windows(longest=12, tumbling=True),
)


def listed(some, low, high):
    return {time for time in range(low, high) for step, offset in some if (time - offset) % step == 0}


@settings(max_examples=400)
@given(progressions, edges)
def test_a_progression_is_within_others_if_all_its_edges_are(progression, others):
    period = lcm(progression[0], *(step for step, _ in others))
    assert within(progression, others) == (listed([progression], 0, period) <= listed(others, 0, period))


@settings(max_examples=250)
@given(edges)
def test_leaving_out_repeated_edges_changes_no_slice(made):
    period = lcm(*(step for step, _ in made))
    found = Slices(made)
    assert listed(found.edges, 0, period) == listed(made, 0, period)
    assert not any(within(edge, [other for other in found.edges if other != edge]) for edge in found.edges)


@settings(max_examples=250)
@given(edges, st.integers(-100, 100))
def test_a_slice_reaches_from_the_last_edge_to_the_next(made, time):
    found = Slices(made)
    [start] = found.starts_of(time)
    points = listed(made, time - 20, time + 20)
    assert start == max(point for point in points if point <= time)
    assert found.bounds_of(start)[1] == min(point for point in points if point > time)
    assert found.bounds_of(start)[1] - start <= found.range


@settings(max_examples=250)
@given(edges)
def test_the_lengths_of_the_pieces_are_those_of_a_period(made):
    period = lcm(*(step for step, _ in made))
    points = sorted(listed(made, 0, period))
    lengths = sorted(after - before for before, after in pairwise([*points, points[0] + period]))
    pieces = pieces_of(Slices(made).edges)
    assert period % pieces.span == 0
    times = period // pieces.span
    assert lengths == sorted(length for length, count in pieces.lengths for _ in range(count * times))


@settings(max_examples=400)
@given(segmentations, st.one_of(windows(longest=24), segmentations))
def test_pieces_serve_what_they_tile(pieces, other):
    if isinstance(other, Window):
        period = lcm(other.slide, *(step for step, _ in edges_of(pieces)[None]))
        instances = [(a, a + other.range) for a in range(other.offset, other.offset + period, other.slide)]
    else:
        period = lcm(*(step for step, _ in (*other.edges, *edges_of(pieces)[None])))
        instances = [(a, other.bounds_of(a)[1]) for a in listed(other.edges, 0, period)]
    points = listed(edges_of(pieces)[None], -30, period + 60)
    assert refines(pieces, other) == all(a in points and b in points for a, b in instances)


@settings(max_examples=600)
@given(related())
def test_a_sparse_partition_is_what_its_definition_says(pair):
    """Some instances of the parent, end to end from the child's start on, make up each instance of the child."""
    parent, child = pair
    expected = child.range % parent.range == 0 and all(
        {(u, u + parent.range) for u in range(a, b, parent.range)} <= set(instances_inside(parent, a, b))
        for a, b in instances_of_a_period(child, parent)
    )
    assert tiles(parent, child) == expected
    if expected:
        assert fewest(parent, child) == child.range // parent.range
        if child.range > parent.range:
            assert covers(parent, child)


@settings(max_examples=400)
@given(related())
def test_a_sparse_cover_is_the_smallest_there_is(pair):
    parent, child = pair
    if child == parent or not covers(parent, child):
        return
    a, b = instances_of_a_period(child, parent)[0]
    inside = instances_inside(parent, a, b)
    chosen = fewest_set(parent, child, a)
    assert len(chosen) == fewest(parent, child) == len(set(chosen))
    assert set(chosen) <= {u for u, _ in inside}
    assert set().union(*(range(u, u + parent.range) for u in chosen)) == set(range(a, b))
    covered, count = a, 0
    while covered < b:  # The greedy choice, always the instance that reaches farthest, is known to be smallest.
        covered, count = max(v for u, v in inside if u <= covered), count + 1
    assert count == len(chosen)


@settings(max_examples=250)
@given(window_sets(most=4, longest=12), st.sampled_from([Kind.OVERLAP_SAFE, Kind.MERGEABLE]))
def test_what_can_be_made_of_what_can_be_made_of_a_node_can_be_made_of_it(made, kind):
    nodes = [*made, slices_of(made), slices_of(made[:2]), Window(range=1, slide=1)]
    for one in nodes:
        for two in nodes:
            if one != two and can_make(one, two, kind):
                assert topological_key(one) < topological_key(two) or can_make(two, one, kind)
                assert all(can_make(one, three, kind) for three in nodes if can_make(two, three, kind))


@given(window_sets(most=4))
def test_slices_of_windows_serve_all_of_them_and_have_no_edge_too_many(made):
    segmentation = slices_of(made)
    assert is_partition(segmentation)
    assert all(refines(segmentation, window) for window in made)
    needed = [edge for window in made for edge in edges_of(window)[None]]
    assert all(within(edge, needed) for edge in edges_of(segmentation)[None])


@given(related())
def test_a_partition_of_the_paper_is_one_here(pair):
    if pair[0] != pair[1] and partitions(*pair):
        assert refines(*pair)
        assert tiles(*pair)


def test_slices_whose_first_edges_are_at_equal_distances_have_the_later_ones_too():
    """The first day ends after five thousand pieces of 17 seconds, and within one."""
    windows = [tumbling("17 seconds"), tumbling("1 day")]
    slices = slices_of(windows)
    assert all(refines(slices, window) for window in windows)
    plan = optimize(Query(time="t", windows=windows, aggregates=["sum(v)"]), search="slicing", rate=1000)
    assert {node.parent for node in plan.nodes if node.exposed} == {slices.label}
