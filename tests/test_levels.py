"""Levels give what a query means, whichever depths of the tree they keep; checked in plain Python, without Spark."""

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import window_sets

from factor_windows import Query, Window, hopping, optimize, tumbling
from factor_windows.algebra.packs import Packing
from factor_windows.algebra.slices import Slices
from factor_windows.physical.levels import (
    FAST_HASH_GROUPS,
    RAW,
    Physical,
    _depths_to_keep,
    _flattened,
    _layouts,
    compile_levels,
    counts_of,
)

times = st.lists(st.integers(-40, 40), max_size=25)


def counted_by_levels(levels, plan, events, pack=None):
    """Run levels as Spark does: fan every row out to its entries, and group by node and start."""
    rows = [(RAW, time, 1, time) for time in events]
    for number, level in enumerate(levels):
        if pack and number == 1:
            rows = out_of_packs(rows, pack, plan, unpacked(levels, plan))
        groups = defaultdict(list)
        for node, begin, count, least in rows:
            for feed, step in level.entries:
                for each in [step] if level.flat else range(feed.steps):
                    if feed.source == node:
                        edge = max(begin - (begin - offset) % length for length, offset in feed.edges)
                        start = edge - feed.back(each)
                        on_grid = (start - feed.grid[1]) % feed.grid[0] == 0
                        if begin - start <= feed.reach and on_grid:
                            groups[feed.target, start].append((count, least))
        rows = [(*key, sum(c for c, _ in found), min(v for _, v in found)) for key, found in groups.items()]
    if pack and len(levels) == 1:
        rows = out_of_packs(rows, pack, plan, unpacked(levels, plan))
    return {(plan.nodes[node].window, start): (count, least) for node, start, count, least in rows}


def unpacked(levels, plan):
    return Physical(levels, "nothing", 0, None, ()).unpacked(plan)


def out_of_packs(rows, pack, plan, wanted):
    """Put panes into the slots of rows, and take each pane and what is merged of several out again."""
    stretches = defaultdict(dict)
    for _, start, count, least in rows:
        after = (start - pack.window.offset) % pack.window.range
        stretches[start - after][after // pack.pane.range] = (count, least)
    found = []
    for begin, filled in stretches.items():
        for node in wanted:
            for slots in pack.slots_of(plan.nodes[node].window):
                inside = [filled[slot] for slot in slots if slot in filled]
                if inside:
                    start = begin + slots.start * pack.pane.range
                    found.append((node, start, sum(c for c, _ in inside), min(v for _, v in inside)))
    return found


def counted_by_definition(windows, events):
    groups = defaultdict(list)
    for window in windows:
        for time in events:
            for start in window.starts_of(time):
                groups[window, start].append(time)
    return {key: (len(found), min(found)) for key, found in groups.items()}


@settings(max_examples=80, deadline=None)
@given(
    window_sets(most=4, longest=24),
    times,
    st.sampled_from([0.5, 5, 500]),
    st.sampled_from(["coverage", "factor", "slicing", "best"]),
    st.sampled_from(["count(*)", "min(t)"]),
)
def test_whichever_depths_are_kept_the_rows_are_the_same(made, events, rate, search, function):
    plan = optimize(
        Query(time="t", windows=made, aggregates=[function]), search=search, rate=rate, unit="1 microsecond"
    )
    expected = counted_by_definition(made, events)
    for levels, pack in _layouts(plan, Packing(states=2, folds=True)):
        found = counted_by_levels(levels, plan, events, pack)
        assert found.keys() == expected.keys()
        for key, (count, least) in expected.items():
            assert found[key][1] == least
            if function == "count(*)":
                assert found[key][0] == count


LONG = {
    "a ladder": [hopping("96s", "1s")],
    "a ladder of panes": [hopping("60s", "7s"), hopping("90s", "7s")],
    "a ladder and a longer slide": [hopping("48s", "1s"), hopping("48s", "6s"), tumbling("12s")],
    "slices and offsets": [tumbling("15s"), tumbling("17s", offset="2s"), hopping("19s", "8s", offset="1s")],
}


@pytest.mark.parametrize("function", ["sum(v)", "min(v)"])
@pytest.mark.parametrize("name", LONG)
def test_long_windows_run_through_hidden_ones(name, function):
    plan = optimize(Query(time="t", windows=LONG[name], aggregates=[function]), rate=1000, unit="1 second")
    assert any(isinstance(node.window, Slices) or not node.exposed for node in plan.nodes)
    events = [second * 1_000_000 + 17 for second in (-100, -3, 0, 1, 1, 2, 30, 31, 95, 200)]
    expected = counted_by_definition(LONG[name], events)
    for kept in _depths_to_keep(plan):
        found = counted_by_levels(_flattened(plan, kept), plan, events)
        assert found.keys() == expected.keys()
        assert all(found[key][1] == least for key, (_, least) in expected.items())
        if function == "sum(v)":
            assert found == expected


def test_a_tumbling_window_reads_one_instance_of_a_hopping_one_of_its_range():
    plan = optimize(
        Query(time="t", windows=[hopping("60s", "1s"), Window(60_000_000, 60_000_000)], aggregates=["sum(v)"]),
        rate=1000,
        unit="1 second",
    )
    tumbles = next(node for node in plan.nodes if node.name == "1 minute")
    assert (tumbles.parent, plan.reads(tumbles)) == ("1 minute / 1 second", 1)


def test_small_data_runs_in_one_level_and_large_data_in_two():
    class Small:
        rate, keys, events = 100.0, 20, 50_000

    class Large:
        rate, keys, events = 100.0, 20, 500_000_000

    query = Query(time="t", keys=["k"], windows=[tumbling(f"{n}s") for n in (20, 30, 50)], aggregates=["sum(v)"])
    assert [len(compile_levels(optimize(query, statistics=each)).levels) for each in (Small, Large)] == [1, 2]


def test_few_rows_are_brought_together_in_few_partitions():
    """A task takes longer than merging a few rows; where nobody knows how many there are, work is spread finely."""
    windows = [Window(range=n * 1_000_000, slide=n * 1_000_000) for n in range(20, 120, 10)]
    query = Query(time="ts", windows=windows, aggregates=["min(v)"])

    class Known:
        rate, keys, events = 100.0, 1, 5_000_000

    class Long(Known):
        events = 10**10

    assert compile_levels(optimize(query, statistics=Known()), partitions=8).partitions == 1
    assert compile_levels(optimize(query, statistics=Long()), partitions=8).partitions == 32
    assert compile_levels(optimize(query, rate=100, unit="1 second"), partitions=8).partitions == 32


@pytest.mark.parametrize(("keys", "together", "partitions"), [(15, "chunks", 32), (20, "keys", 10), (500, "keys", 32)])
def test_keys_are_enough_to_spread_the_work_if_every_partition_has_two(keys, together, partitions):
    query = Query(time="t", keys=["k"], windows=[tumbling(f"{n}s") for n in (20, 30, 50)], aggregates=["sum(v)"])
    physical = compile_levels(optimize(query, rate=1000 * keys, unit="1 second", keys=keys), partitions=8)
    assert (physical.together, physical.partitions) == (together, partitions)


@pytest.mark.parametrize(("keys", "crowded"), [([], 1 - FAST_HASH_GROUPS / 1_000_000), (["k"], 1.0)])
def test_updates_are_slow_with_keys_and_beyond_the_quick_hash_table(keys, crowded):
    class Known:
        rate, keys, events = 1000.0, 1, 1_000_000_000

    query = Query(time="t", keys=keys, windows=[tumbling("1s")], aggregates=["sum(v)"])
    plan = optimize(query, statistics=Known())
    counts = counts_of(compile_levels(plan), plan, plan.cost_model)
    assert counts["crowded"] == pytest.approx(crowded * counts["update"])


@pytest.mark.parametrize("function", ["sum(v)", "min(v)"])
def test_no_row_is_copied_more_often_than_the_cost_says(function):
    # The pane of these windows is a microsecond; hopping ones of it would have each row looked at millions of times.
    windows = [hopping("30s", "10s"), hopping("2000001 microseconds", "1s"), hopping("144s", "12s")]
    query = Query(time="ts", windows=windows, aggregates=[function])
    for options in ({}, {"rate": 10**9}, {"slices": False, "keys": 500, "rate": 10**11}, {"rate": 50}):
        plan = optimize(query, unit="1 second", **options)
        levels = _flattened(plan, frozenset(range(1, 1 + len(plan.nodes))))
        cost, rows = plan.cost_model, [plan.cost_model.rows_of(node.node) for node in plan.nodes]
        for feed in (feed for level in levels for feed in level.feeds if feed.source not in (RAW, feed.target)):
            parent, child = (plan.nodes[place].window for place in (feed.source, feed.target))
            looked = feed.steps * rows[feed.source] * cost.prices.relative("edge")
            assert looked <= 1.01 * cost.of(child, parent)


def keyed(*windows, function="min(v)", **options):
    query = Query(time="t", keys=["k"], windows=windows, aggregates=[function])
    return query, optimize(query, rate=100, unit="1 second", keys=20, **options)


def test_panes_of_few_events_are_packed_and_those_of_many_are_not():
    few = keyed(*(tumbling(f"{n}s") for n in (10, 15, 20, 35)))
    many = keyed(*(tumbling(f"{n}m") for n in (10, 15, 20, 35)))
    packs = [compile_levels(plan, packing=Packing.of(query)).pack for query, plan in (few, many)]
    assert packs[0] is not None
    assert packs[1] is None


def test_windows_that_fit_into_a_pack_are_merged_there_and_need_no_second_level():
    query, plan = keyed(tumbling("10s"), tumbling("15s"), tumbling("20s"), tumbling("1m"))
    physical = compile_levels(plan, packing=Packing.of(query))
    assert (len(physical.levels), physical.together) == (1, "nothing")
    assert {plan.nodes[place].window for place in physical.unpacked(plan)} == set(query.windows)


def test_chunks_are_whole_packs():
    windows = [tumbling(f"{seconds} seconds") for seconds in range(10, 60, 5)]
    query = Query(time="t", windows=windows, aggregates=["sum(v)"])
    physical = compile_levels(optimize(query, rate=1, unit="1 second"), packing=Packing.of(query))
    assert physical.together == "chunks"
    assert (physical.pack.window.range, physical.pack.slots) == (120_000_000, 24)
    assert physical.chunk % physical.pack.window.range == 0


@pytest.mark.parametrize("function", ["collect_set(v)", "median(v)", "min_by(v, w)", "approx_count_distinct(v)"])
def test_states_without_a_fixed_size_are_not_packed(function):
    assert Packing.of(keyed(tumbling("10s"), function=function)[0]) is None


def test_moments_are_packed_but_not_merged_inside_rows():
    assert Packing.of(keyed(tumbling("10s"), function="stddev(v)")[0]) == Packing(states=3, folds=False)
