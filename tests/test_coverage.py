"""Each relation agrees with its definition, checked by listing intervals."""

from math import lcm

from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import windows

from factor_windows import Window, hopping
from factor_windows.algebra.coverage import covering_set, covers, multiplier, partitions

many = settings(max_examples=600)


@st.composite
def related(draw):
    """A pair of windows that is often, but not always, related."""
    parent = draw(windows(longest=12))
    if draw(st.booleans()):
        return parent, draw(windows(longest=36))
    slide = parent.slide * draw(st.integers(1, 4))
    length = max(slide, parent.range) + parent.slide * draw(st.integers(0, 6)) + draw(st.sampled_from([0, 0, 1]))
    return parent, Window(range=length, slide=slide, offset=parent.offset + draw(st.sampled_from([0, 0, 1])))


def instances_inside(window, start, end):
    first = start + (window.offset - start) % window.slide
    return [(a, a + window.range) for a in range(first, end - window.range + 1, window.slide)]


def instances_of_a_period(child, parent):
    period = lcm(child.slide, parent.slide)
    return [(a, a + child.range) for a in range(child.offset, child.offset + period, child.slide)]


def covered_by_definition(child, parent):
    """Paper, Definition 1: the first and the last interval end and start strictly inside."""
    if child == parent:
        return True
    if child.range <= parent.range:
        return False
    for a, b in instances_of_a_period(child, parent):
        inside = instances_inside(parent, a, b)
        if not (any(u == a and v < b for u, v in inside) and any(v == b and u > a for u, v in inside)):
            return False
    return True


def partitioned_by_definition(child, parent):
    if not covered_by_definition(child, parent):
        return False
    for a, b in instances_of_a_period(child, parent):
        inside = instances_inside(parent, a, b)
        if sum(v - u for u, v in inside) != b - a:
            return False
    return True


@many
@given(related())
def test_covers_agrees_with_its_definition(pair):
    parent, child = pair
    assert covers(parent, child) == covered_by_definition(child, parent)


@many
@given(related())
def test_partitions_agrees_with_its_definition(pair):
    parent, child = pair
    assert partitions(parent, child) == partitioned_by_definition(child, parent)


@many
@given(related())
def test_the_multiplier_is_the_size_of_the_covering_set(pair):
    parent, child = pair
    if covers(parent, child):
        for a, b in instances_of_a_period(child, parent):
            listed = instances_inside(parent, a, b)
            assert multiplier(parent, child) == len(listed)
            assert list(covering_set(parent, child, a)) == [u for u, _ in listed]
            assert set().union(*(range(u, v) for u, v in listed)) == set(range(a, b))


@many
@given(related(), windows(longest=36))
def test_coverage_is_a_partial_order(pair, third):
    first, second = pair
    assert covers(first, first)
    if covers(first, second) and covers(second, first):
        assert first == second
    if covers(first, second) and covers(second, third):
        assert covers(first, third)


@given(windows(longest=6), st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))
def test_coverage_is_transitive_along_chains(first, one, two, three):
    second = Window(range=first.range + first.slide * one, slide=first.slide, offset=first.offset)
    slide = min(second.slide * two, second.range)
    if slide % second.slide == 0:
        third = Window(range=second.range + second.slide * three, slide=slide, offset=second.offset)
        assert covers(first, second)
        assert covers(second, third)
        assert covers(first, third)


def test_the_papers_example():
    assert multiplier(hopping("8 minutes", "2 minutes"), hopping("10 minutes", "2 minutes")) == 2


def test_offsets_matter():
    ten = Window(range=10, slide=10, offset=5)
    assert covers(ten, Window(range=20, slide=20, offset=15))
    assert not covers(ten, Window(range=20, slide=20))
