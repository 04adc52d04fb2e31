"""Physical plans give what a query means, whichever layout is chosen; computed in plain Python, without Spark."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import window_sets

import factor_windows as fw
from factor_windows import PlanError, Query, Window, hopping, optimize, physical, tumbling
from factor_windows.algebra.pane_row import Packing
from factor_windows.algebra.slices import Slices
from factor_windows.engines.python import evaluate, run
from factor_windows.physical import Target, work
from factor_windows.physical.assigner import RAW
from factor_windows.physical.choose import choose_layout
from factor_windows.physical.layout import Distribution, Layout, flatten, layouts
from factor_windows.physical.steps import Chunk, Explode, Group
from factor_windows.physical.work import FAST_HASH_GROUPS, Work

times = st.lists(st.integers(-40, 40), max_size=25)


def rows_of(results):
    return sorted(map(tuple, (row.values() for row in results)))


def assert_every_layout_gives(plan, events, expected):
    """Compute a plan in plain Python as each layout says, its rows shuffled in each way there is."""
    target, one = Target.assumed(plan.query), plan.passes[0]
    with_windows = physical.compile(one, replace(target, has_windows=True))
    assert rows_of(run(with_windows, events)) == expected
    longest = max(node.window.range for node in plan.nodes)
    for layout in layouts(one, Packing.of(plan.query), reuses=True, scans=True):
        if layout.asides:
            assert rows_of(run(physical.compile(one, target, layout), events)) == expected
            continue
        length = layout.pane_row.window.range if layout.pane_row else 1
        chunk = -(-longest // length) * length
        for distribution in Distribution:
            if distribution is not Distribution.EVENTS_BY_KEY or not layout.pane_row:
                compiled = physical.compile(one, target, replace(layout, distribution=distribution, chunk=chunk))
                assert rows_of(run(compiled, events)) == expected


@settings(max_examples=80, deadline=None)
@given(
    window_sets(most=4, longest=24),
    times,
    st.sampled_from([0.5, 5, 500]),
    st.sampled_from(["coverage", "factor", "slicing", "best"]),
    st.sampled_from([["count(*)", "sum(v)"], ["min(v)", "max(v)"]]),
)
def test_whichever_layout_is_chosen_the_rows_are_the_same(made, at, rate, search, functions):
    query = Query(time="t", keys=["k"], windows=made, aggregates=functions)
    events = [{"t": time, "k": place % 2, "v": time} for place, time in enumerate(at)]
    plan = optimize(query, search=search, rate=rate, unit="1 microsecond")
    assert_every_layout_gives(plan, events, rows_of(evaluate(query, events)))


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
    seconds = (-100, -3, 0, 1, 1, 2, 30, 31, 95, 200)
    events = [{"t": second * 1_000_000 + 17, "v": second % 7} for second in seconds]
    assert_every_layout_gives(plan, events, rows_of(evaluate(plan.query, events)))


def scanning(plan):
    """List the layouts in which a node is made of prefix and suffix scans."""
    return [each for each in layouts(plan, None, scans=True) if any(level.scanned for level in each.levels)]


HOPS = {
    "alone": [Window(60, 5)],
    "with an offset": [Window(63, 7, offset=4)],
    "its panes shown": [Window(60, 5), Window(5, 5)],
    "read by others": [Window(40, 5), Window(80, 5), Window(40, 40)],
    "beside longer slides": [Window(60, 5), Window(30, 10), Window(20, 20)],
}


@pytest.mark.parametrize(
    "functions", [["sum(v)", "count(*)"], ["min(v)"], ["stddev(v)"], ["max_by(v, w)"], ["collect_list(v)"]]
)
@pytest.mark.parametrize("name", HOPS)
def test_prefix_and_suffix_scans_give_what_a_query_means(name, functions):
    """Sparse panes and dense ones, before 1970 too, several rows of a pane where panes are kept, and null as a key."""
    query = Query(time="t", keys=["k"], windows=HOPS[name], aggregates=functions)
    one = optimize(query, rate=500, unit="1 microsecond").passes[0]
    ways = [
        replace(layout, distribution=distribution, chunk=length * one.longest)
        for layout in scanning(one)
        for distribution in Distribution
        for length in (1, 2)
    ]
    assert ways
    sparse, dense = (-1000, -400, -399, -340, -336, 7, 500), range(-70, 70, 3)
    for times in (sparse, dense, dense[:1], ()):
        events = [
            {"t": time, "k": (None, 1)[time % 3 == 0], "v": (None, *range(6))[time % 7], "w": time * 31 % 17}
            for time in times
        ]
        expected = approximately(evaluate(query, events))
        for way in ways:
            for target in (Target.assumed(query), replace(Target.assumed(query, partitions=8), keeps_panes=True)):
                assert approximately(run(physical.compile(one, target, way), events)) == expected


def approximately(results):
    def near(value):
        return sorted(value) if isinstance(value, list) else round(value, 9) if isinstance(value, float) else value

    return sorted((tuple(map(near, row.values())) for row in results), key=repr)


def test_several_rows_of_a_pane_are_one_in_scans():
    """Where panes are kept, an append more is a row more."""
    query = Query(time="t", keys=["k"], windows=[Window(20, 5)], aggregates=["sum(v)"])
    one = optimize(query, rate=500, unit="1 microsecond").passes[0]
    target = replace(Target.assumed(query, partitions=8), keeps_panes=True)
    compiled = physical.compile(one, target, scanning(one)[0])
    events = [{"t": time, "k": 1, "v": time % 7} for time in (-9, -8, -6, -6, -5, 0, 1, 4, 12, 12, 40)]
    # The first group leaves each event a row of its own.
    [first, *_] = (place for place, step in enumerate(compiled.steps) if isinstance(step, Group))
    by_event = replace(compiled.steps[first], by=(*compiled.steps[first].by, target.names.time))
    again = replace(compiled, steps=(*compiled.steps[:first], by_event, *compiled.steps[first + 1 :]))
    assert rows_of(run(again, events)) == rows_of(evaluate(query, events))


def test_a_long_hopping_window_is_scanned_and_many_of_them_are_not():
    def chosen(*windows):
        query = Query(time="t", keys=["k"], windows=windows, aggregates=["min(v)"])
        plan = optimize(query, statistics=Stream(100.0, 20, 10**7)).passes[0]
        return choose_layout(plan, scans=True)

    day = chosen(hopping("1 day", "1 minute"))
    assert [level.scanned is None for level in day.levels] == [True, False]
    ten = chosen(*(hopping(f"{n * 20}s", f"{n * 10}s") for n in range(1, 11)))
    assert not any(level.scanned for level in ten.levels)


def test_a_physical_plan_says_what_is_scanned():
    query = Query(time="t", keys=["k"], windows=[hopping("1 day", "1 minute")], aggregates=["min(v)"])
    plan = optimize(query, statistics=Stream(100.0, 20, 10**7)).passes[0]
    lines = str(physical.compile(plan, Target.assumed(query, partitions=8))).splitlines()
    assert lines[-1] == "    1 day / 1 minute from 1 minute, two reads by prefix and suffix scans instead of 1440"


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
    assert [len(choose_layout(optimize(query, statistics=each).passes[0]).levels) for each in (Small, Large)] == [1, 2]


class Stream:
    """The statistics of a stream."""

    def __init__(self, rate, keys, events):
        self.rate, self.keys, self.events = rate, keys, events


def hopping_by_key(keys, events):
    """Plan an hour by ten seconds: so many updates of each pane that it is moved to all that reads it."""
    query = Query(time="ts", keys=["k"], windows=[hopping("1h", "10s"), tumbling("10s")], aggregates=["min(v)"])
    return optimize(query, search="factor", statistics=Stream(100.0 * keys, keys, events)).passes[0]


def test_spark_chooses_the_partitions_unless_rows_grow_too_much_there():
    """A task takes longer than merging a few rows; partitions of many rows that grow take more memory than there is."""
    few, many = (choose_layout(hopping_by_key(500, events), partitions=8) for events in (10**6, 10**9))
    assert few.partitions is None
    assert many.partitions == 32


@pytest.mark.parametrize(("keys", "distribution"), [(15, Distribution.BY_KEY_AND_CHUNK), (20, Distribution.BY_KEY)])
def test_keys_are_enough_to_spread_the_work_if_every_partition_has_two(keys, distribution):
    assert choose_layout(hopping_by_key(keys, 10**9), partitions=8).distribution is distribution


def test_levels_that_leave_few_rows_bring_them_together_by_themselves():
    query = Query(time="t", keys=["k"], windows=[tumbling(f"{n}s") for n in (20, 30, 50)], aggregates=["sum(v)"])
    plan = optimize(query, statistics=Stream(1000.0, 20, 10**7)).passes[0]
    assert choose_layout(plan, partitions=8).distribution is Distribution.BY_LEVEL


def test_sparse_events_are_moved_once_and_panes_of_them_never():
    query = Query(time="t", keys=["k"], windows=[tumbling(f"{n}s") for n in (20, 30, 50)], aggregates=["sum(v)"])
    plan = optimize(query, statistics=Stream(100.0, 10**6, 10**7)).passes[0]
    assert choose_layout(plan, partitions=8).distribution is Distribution.EVENTS_BY_KEY


@pytest.mark.parametrize(("keys", "crowded"), [([], 1 - FAST_HASH_GROUPS / 1_000_000), (["k"], 1.0)])
def test_updates_are_slow_with_keys_and_beyond_the_quick_hash_table(keys, crowded):
    class Known:
        rate, keys, events = 1000.0, 1, 1_000_000_000

    query = Query(time="t", keys=keys, windows=[tumbling("1s")], aggregates=["sum(v)"])
    plan = optimize(query, statistics=Known())
    counts = Work(plan.passes[0], plan.cost_model).count(choose_layout(plan.passes[0]))
    assert counts["crowded"] == pytest.approx(crowded * counts["update"])


@pytest.mark.parametrize("function", ["sum(v)", "min(v)"])
def test_no_row_is_copied_more_often_than_the_cost_says(function):
    # The pane of these windows is a microsecond; hopping ones of it would have each row looked at millions of times.
    windows = [hopping("30s", "10s"), hopping("2000001 microseconds", "1s"), hopping("144s", "12s")]
    query = Query(time="ts", windows=windows, aggregates=[function])
    for options in ({}, {"rate": 10**9}, {"slices": False, "keys": 500, "rate": 10**11}, {"rate": 50}):
        plan = optimize(query, unit="1 second", **options)
        levels = flatten(plan.passes[0], frozenset(range(1, 1 + len(plan.nodes))))
        cost, rows = plan.cost_model, [plan.cost_model.rows_of(node.node) for node in plan.nodes]
        for feed in (feed for level in levels for feed in level.assigners if feed.source not in (RAW, feed.target)):
            parent, child = (plan.nodes[place].window for place in (feed.source, feed.target))
            looked = feed.steps * rows[feed.source] * cost.prices.relative("edge")
            assert looked <= 1.01 * cost.of(child, parent)


def keyed(*windows, function="min(v)", **options):
    query = Query(time="t", keys=["k"], windows=windows, aggregates=[function])
    return query, optimize(query, slices=False, **({"statistics": Stream(20.0, 20, 10**8)} | options))


def test_panes_of_few_events_are_packed_and_those_of_many_are_not():
    few = keyed(*(tumbling(f"{n}s") for n in (10, 15, 20, 35)))
    many = keyed(*(tumbling(f"{n}m") for n in (10, 15, 20, 35)), statistics=Stream(20.0, 20, 10**7))
    packs = [choose_layout(plan.passes[0], packing=Packing.of(query)).pane_row for query, plan in (few, many)]
    assert packs[0] is not None
    assert packs[1] is None


def test_panes_are_packed_where_that_makes_few_groups_of_many():
    """Spark's fast hash table then holds the groups of the first level."""
    query, plan = keyed(*(tumbling(f"{n}m") for n in (10, 15, 20, 35)))
    layout = choose_layout(plan.passes[0], packing=Packing.of(query))
    plain = choose_layout(plan.passes[0])
    assert (layout.pane_row is not None, layout.groups_text, plain.groups_text) == (True, True, False)


def test_packs_are_not_worth_their_code_for_few_events():
    query, plan = keyed(*(tumbling(f"{n}s") for n in (10, 15, 20, 35)), statistics=Stream(20.0, 20, 10**6))
    assert choose_layout(plan.passes[0], packing=Packing.of(query)).pane_row is None


def test_windows_that_fit_into_a_pack_are_merged_there_and_need_no_second_level():
    query, plan = keyed(tumbling("10s"), tumbling("15s"), tumbling("20s"), tumbling("1m"))
    physical = choose_layout(plan.passes[0], packing=Packing.of(query))
    assert (len(physical.levels), physical.distribution) == (1, Distribution.BY_LEVEL)
    assert {plan.nodes[place].window for place in physical.unpacked(plan.passes[0])} == set(query.windows)


def test_chunks_are_whole_packs(monkeypatch):
    monkeypatch.setattr(work, "STAGES", {Distribution.BY_KEY_AND_CHUNK: -100.0})
    windows = [tumbling(f"{seconds} seconds") for seconds in range(10, 60, 5)]
    query = Query(time="t", windows=windows, aggregates=["sum(v)"])
    plan = optimize(query, slices=False, statistics=Stream(1.0, 1, 10**8)).passes[0]
    physical = choose_layout(plan, packing=Packing.of(query))
    assert physical.distribution == Distribution.BY_KEY_AND_CHUNK
    assert (physical.pane_row.window.range, physical.pane_row.slots) == (60_000_000, 12)
    assert physical.chunk % physical.pane_row.window.range == 0


@pytest.mark.parametrize("function", ["collect_set(v)", "median(v)", "min_by(v, w)", "approx_count_distinct(v)"])
def test_states_without_a_fixed_size_are_not_packed(function):
    assert Packing.of(keyed(tumbling("10s"), function=function)[0]) is None


def test_moments_are_packed_but_not_merged_inside_rows():
    assert Packing.of(keyed(tumbling("10s"), function="stddev(v)")[0]) == Packing(states=3, folds=False)


def compiled_paper_plan():
    query = Query(time="t", windows=[tumbling(f"{n}m") for n in (20, 30, 40)], aggregates=["sum(v)"])
    plan = optimize(query, search="factor", rate=1000, unit="1 second")
    return physical.compile(plan.passes[0], Target.assumed(query, partitions=8))


def test_a_physical_plan_prints_itself():
    assert str(compiled_paper_plan()).splitlines()[1:] == [
        "  each level brings its rows together by itself",
        "  level 1",
        "    10 minutes from raw events",
        "  level 2",
        "    20 minutes from 10 minutes",
        "    40 minutes from 10 minutes",
        "    30 minutes from 10 minutes",
    ]


def test_a_physical_plan_refuses_a_column_that_nobody_makes(monkeypatch):
    monkeypatch.setattr(work, "STAGES", {Distribution.BY_KEY_AND_CHUNK: -100.0})
    compiled = compiled_paper_plan()
    steps = tuple(step for step in compiled.steps if not isinstance(step, Chunk))
    with pytest.raises(PlanError, match="Repartition reads the column '__fw_chunk', which no step before it makes"):
        replace(compiled, steps=steps)


def test_a_physical_plan_refuses_a_lookup_with_too_few_entries():
    compiled = compiled_paper_plan()
    steps = tuple(
        replace(step, sources=step.sources[1:]) if isinstance(step, Explode) else step for step in compiled.steps
    )
    with pytest.raises(PlanError, match="has 3 values for 2 places"):
        replace(compiled, steps=steps)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda *levels: levels[1:], "level 1 reads '10 minutes', which the one above does not have"),
        (
            lambda *levels: (levels[0], replace(levels[1], assigners=levels[1].assigners * 2)),
            "'20 minutes' is computed twice",
        ),
        (lambda *levels: levels[:1], "'20 minutes' is shown, and the last level does not have it"),
    ],
)
def test_a_physical_plan_refuses_levels_that_do_not_compute_every_node_once(change, problem):
    compiled = compiled_paper_plan()
    with pytest.raises(PlanError, match=problem):
        replace(compiled, layout=Layout(change(*compiled.layout.levels)))


def test_a_physical_plan_refuses_a_relation_that_is_not_true():
    compiled = compiled_paper_plan()
    place = {node.name: place for place, node in enumerate(compiled.plan.nodes)}
    first, second = compiled.layout.levels
    wrong = replace(second.assigners[0], source=place["20 minutes"], target=place["30 minutes"])
    above = tuple(each for each in second.assigners if each.target != wrong.target)
    levels = (first, replace(second, assigners=above), replace(second, assigners=(wrong,)))
    with pytest.raises(PlanError, match="'30 minutes' cannot be computed from '20 minutes' for such functions"):
        replace(compiled, layout=Layout(levels))


def test_a_physical_plan_refuses_a_level_that_does_not_pass_on_what_is_shown():
    windows = [tumbling("10m"), tumbling("20m")]
    plan = optimize(Query(time="t", windows=windows, aggregates=["sum(v)"]), rate=1000, unit="1 second")
    compiled = physical.compile(plan.passes[0], Target.assumed(plan.query, partitions=8))
    first, second = compiled.layout.levels
    passed = replace(second, nodes=(1,), assigners=tuple(each for each in second.assigners if not each.passes_through))
    with pytest.raises(PlanError, match="'10 minutes' is shown, and the last level does not have it"):
        replace(compiled, layout=Layout((first, passed)))


def test_nan_is_the_greatest_in_pane_rows_too():
    query = Query(time="t", windows=[tumbling("1s"), tumbling("2s")], aggregates=["min(v) AS low", "max(v) AS high"])
    plan = optimize(query, rate=1, unit="1 second")
    events = [{"t": 0, "v": 1.0}, {"t": 1_000_000, "v": float("nan")}]
    rows_of_panes = [each for each in layouts(plan.passes[0], Packing.of(query)) if each.pane_row]
    rows = run(physical.compile(plan.passes[0], Target.assumed(query), rows_of_panes[0]), events)
    [low, high] = next((row["low"], row["high"]) for row in rows if row["window_id"] == "2 seconds")
    assert low == 1.0
    assert high != high


@pytest.mark.long
@pytest.mark.parametrize("function", ["sum(v)", "min(v)"])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "Pacific/Apia"])
def test_calendars_give_the_same_rows_in_every_layout_also_grouped_by_ticks(zone, function):
    """Operators group by ticks and ask for instants afterwards, in chunks of time too; text asks at once."""
    windows = [fw.calendar("1 day", zone=zone), fw.calendar("7 days", slide="1 day", zone=zone)]
    windows += [fw.calendar("1 month", zone=zone), tumbling("30 minutes"), tumbling("6 hours"), tumbling("12 hours")]
    query = Query(time="t", keys=["k"], windows=windows, aggregates=[function])
    seconds = [begin + place * 7_777 for begin in (1_325_000_000, -777_000, -2_000_000_000) for place in range(40)]
    events = [{"t": second * 1_000_000, "k": second % 2, "v": second % 7} for second in seconds]
    expected = rows_of(evaluate(query, events))
    for search in ("none", "slicing", "best"):
        one = optimize(query, search=search).passes[0]
        for target in (Target.assumed(query), Target.assumed(query, partitions=8)):
            for layout in layouts(one, None, reuses=True):
                for distribution in Distribution if not layout.asides else [Distribution.BY_LEVEL]:
                    chosen = replace(layout, distribution=distribution, chunk=2 * one.longest)
                    assert rows_of(run(physical.compile(one, target, chosen), events)) == expected
