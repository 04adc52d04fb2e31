"""The paper's figures, and the laws that every search obeys."""

import os
from dataclasses import replace
from fractions import Fraction
from functools import partial
from importlib import import_module
from itertools import combinations, product
from math import gcd, lcm

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array
from strategies import events, multiples, window_sets, windows

from benchmarks.window_sets import GENERATORS, random_windows
from factor_windows import OptionError, Query, Window, calendar, hopping, optimize, tumbling
from factor_windows.algebra.coverage import covers
from factor_windows.algebra.graph import CoverageGraph, Node, can_make
from factor_windows.algebra.slices import Slices, display_key, slices_of, topological_key
from factor_windows.cost.paper import PaperCost
from factor_windows.cost.prices import Prices
from factor_windows.cost.spark import SparkCost
from factor_windows.engines.python import evaluate, evaluate_plan
from factor_windows.explain.candidates import considered
from factor_windows.functions.table import Kind
from factor_windows.search import integer_program
from factor_windows.search.benefit import Place
from factor_windows.search.cheapest_parents import cheapest_parents
from factor_windows.search.covering_factor import best_covering_factor
from factor_windows.search.divisors import divisors
from factor_windows.search.exact import cheapest_tree
from factor_windows.search.factor import best_factors
from factor_windows.search.panes import common_panes, ladders
from factor_windows.search.partitioning_factor import partitioning_candidates

SETS = int(os.environ.get("FACTOR_WINDOWS_SETS", "1"))
rates = st.sampled_from([1, 2, 10, 100, Fraction(1, 3)])


def minutes(*lengths, function="min(t)", **options):
    query = Query(time="ts", windows=[tumbling(f"{length}m") for length in lengths], aggregates=[function])
    return optimize(query, **{"cost": "paper", "unit": "1 minute"} | options)


def small(windows, function="min(v)", keys=()):
    return Query(time="t", keys=keys, windows=windows, aggregates=[function])


@pytest.mark.parametrize("function", ["min(t)", "sum(t)"])
@pytest.mark.parametrize(
    ("lengths", "search", "naive", "cost"),
    [
        ((10, 20, 30, 40), "none", 480, 480),
        ((10, 20, 30, 40), "coverage", 480, 150),
        ((20, 30, 40), "none", 360, 360),
        ((20, 30, 40), "coverage", 360, 246),
        ((20, 30, 40), "factor", 360, 150),
        ((15, 17, 19), "coverage", 14_535, 14_535),
        ((15, 17, 19), "factor", 14_535, 14_535),
    ],
)
def test_the_papers_examples_cost_what_the_paper_says(lengths, search, naive, cost, function):
    plan = minutes(*lengths, search=search, function=function)
    assert (plan.naive_cost, plan.cost) == (naive, cost)


def test_the_papers_factor_window_is_ten_minutes_and_hidden():
    plan = minutes(20, 30, 40, search="factor")
    assert [(node.name, node.parent, node.kind) for node in plan.nodes] == [
        ("10 minutes", None, "factor"),
        ("20 minutes", "10 minutes", "window"),
        ("40 minutes", "20 minutes", "window"),
        ("30 minutes", "10 minutes", "window"),
    ]


def test_the_papers_candidates_before_pruning_are_ten_five_and_two():
    place = considered(minutes(20, 30, 40, function="sum(t)"))[0]
    assert [each.window.label for each in place.candidates] == ["10 minutes", "5 minutes", "2 minutes"]
    assert place.best == tumbling("10m")


def test_a_sum_never_reads_a_window_that_its_slides_do_not_fit():
    """Paper, Algorithm 5 as printed would take 20 minutes here, which sums wrongly."""
    query = Query(time="ts", windows=[hopping("40m", "10m"), hopping("60m", "15m")], aggregates=["sum(t)"])
    assert optimize(query, search="factor", cost="paper", unit="1m").nodes[0].window == tumbling("5m")
    assert optimize(query, slices=False).nodes[0].window == tumbling("5m")


def test_slices_pay_for_their_second_shuffle():
    """With one, plans took slices where panes are up to 1.4 times as fast; even ones are shown as they are."""
    prices = Prices(scan=0, update=1, merge=0, crowded=0, shuffle=10, group=0, edge=0, clock=0)
    cost = SparkCost(unit=1_000_000, rate=100.0, keys=20.0, prices=prices)
    panes, slices = tumbling("5s"), slices_of([tumbling("15s"), tumbling("17s")])
    assert cost.overhead(panes, None) == pytest.approx(10 * cost.rows(panes))
    assert cost.overhead(slices, None) == pytest.approx(20 * cost.rows(slices))
    even = slices_of([tumbling("15 minutes"), calendar("1 day", zone="Europe/Berlin")])
    assert cost.overhead(even, None) == pytest.approx(10 * cost.rows(even))


@pytest.mark.parametrize("letter", GENERATORS)
@pytest.mark.parametrize("is_tumbling", [True, False])
@pytest.mark.parametrize("size", [5, 10, 15, 20])
def test_more_search_never_costs_more_on_the_papers_window_sets(letter, is_tumbling, size):
    for seed, rate in ((0, 1), (1, 100)):
        made = GENERATORS[letter](size, tumbling=is_tumbling, seed=seed)
        for function in ("min(v)", "sum(v)"):
            ordered_by_search(small(made, function), rate, "1 second")


@settings(max_examples=60)
@given(window_sets(most=7), st.sampled_from(["min(v)", "sum(v)", "median(v)", "kurtosis(v)"]), rates)
def test_more_search_never_costs_more_on_any_window_set(made, function, rate):
    ordered_by_search(small(made, function), rate, "1 microsecond")


def ordered_by_search(query, rate, unit):
    for cost in ("paper", "spark"):
        best, factor, coverage, none = (
            optimize(query, search=search, cost=cost, rate=rate, unit=unit)
            for search in ("best", "factor", "coverage", "none")
        )
        assert best.cost <= factor.cost <= coverage.cost <= none.cost
        # Spark's own window() packs no panes into rows, so only what cannot be packed costs the same there.
        alone = none.cost if cost == "paper" else sum(map(replace(none.cost_model, states=0).naive, nodes(none)))
        assert alone == pytest.approx(factor.naive_cost, rel=1e-12)
        assert none.cost <= factor.naive_cost * (1 + 1e-12)


def nodes(plan):
    return [node.node for node in plan.nodes]


@settings(max_examples=120)
@given(
    window_sets(most=4, longest=12),
    st.lists(
        st.sampled_from(
            ["min(v)", "max(v) FILTER (WHERE ok)", "sum(v)", "count(*)", "avg(v)", "first(v)", "last(v, true)"]
        ),
        min_size=1,
        max_size=3,
        unique=True,
    ),
    events(),
    rates,
    st.sampled_from(["none", "coverage", "factor", "slicing", "best"]),
    st.sampled_from(["paper", "spark"]),
)
def test_every_plan_gives_what_its_query_means(made, functions, rows, rate, search, cost):
    query = Query(time="t", keys=["k"], windows=made, aggregates=functions)
    plan = optimize(query, search=search, cost=cost, rate=rate, unit="1 microsecond")
    assert same_rows(evaluate_plan(plan, rows), evaluate(query, rows))


def same_rows(left, right):
    return sorted(map(repr, map(rounded, left))) == sorted(map(repr, map(rounded, right)))


def rounded(row):
    return {name: round(value, 9) + 0.0 if isinstance(value, float) else value for name, value in row.items()}


@settings(max_examples=100)
@given(window_sets(most=4, longest=14), st.sampled_from(["min(v)", "sum(v)"]), rates)
def test_coverage_is_the_cheapest_tree_without_factor_windows(made, function, rate):
    query = small(made, function)
    graph = CoverageGraph.of_query(query)
    cost = PaperCost.of_query(query, rate=rate, unit="1 microsecond")
    choices = [[None, *graph.parents[node]] for node in graph.nodes]
    cheapest = min(
        sum(cost.of(node.window, parent and parent.window) for node, parent in zip(graph.nodes, tree, strict=True))
        for tree in product(*choices)
    )
    assert optimize(query, search="coverage", cost="paper", rate=rate, unit="1 microsecond").cost == cheapest


@st.composite
def tumbling_places(draw):
    """A tumbling window (or the raw events), a tumbling factor window below it, and windows that it partitions."""
    unit = draw(st.integers(1, 3))
    above = draw(st.sampled_from([None, Window(range=unit * 2, slide=unit * 2)]))
    step = above.range if above else unit
    factor = Window(range=step * draw(st.integers(2, 4)), slide=step * 1)
    factor = Window(range=factor.range, slide=factor.range)
    below = draw(st.lists(multiples(factor, most=5), min_size=1, max_size=4, unique=True))
    period = lcm(*(window.range for window in below)) * draw(st.integers(1, 2))
    return Place(above, below, PaperCost(unit=unit, rate=Fraction(draw(rates)), period=period)), factor


@settings(max_examples=400)
@given(tumbling_places())
def test_algorithm_4_agrees_with_the_sign_of_the_benefit(case):
    place, factor = case
    assert place.pays(factor) == (place.benefit(factor) >= 0)


@settings(max_examples=400)
@given(tumbling_places())
def test_the_benefit_is_the_difference_of_the_costs(case):
    place, factor = case
    cost = place.cost
    without = sum(cost.of(window, place.above) for window in place.below)
    within = sum(cost.of(window, factor) for window in place.below) + cost.of(factor, place.above)
    assert place.benefit(factor) == without - within


@settings(max_examples=400)
@given(tumbling_places(), st.integers(2, 9), st.integers(2, 9))
def test_theorem_9_orders_independent_candidates_by_their_costs(case, first, second):
    """As printed it divides by lambda - r'_f/r_W, which may be negative; multiplied out, the longer window wins."""
    place, _ = case
    step = place.upstream.range
    below = [Window(range=w.range * first * second, slide=w.slide * first * second) for w in place.below]
    wide = Place(
        place.above,
        below,
        PaperCost(unit=place.cost.unit, rate=place.cost.rate, period=place.cost.period * first * second),
    )
    one, other = (Window(range=step * n, slide=step * n) for n in (first, second))
    costs = [sum(wide.cost.of(w, f) for w in below) + wide.cost.of(f, wide.above) for f in (one, other)]
    assert (costs[0] <= costs[1]) == (one.range >= other.range)
    reach = step / (Fraction(1) if place.above else place.cost.rate)
    overlap = Fraction(wide.lengths) / wide.cost.period
    divisor = overlap - other.range / reach
    if divisor > 0:
        printed = Fraction(one.range, other.range) >= (overlap - one.range / reach) / divisor
        assert printed == (costs[0] <= costs[1])


@settings(max_examples=120)
@given(
    st.integers(1, 2),
    st.lists(windows(longest=24, whole=True), min_size=1, max_size=3, unique=True),
    rates,
)
def test_algorithm_2_finds_what_trying_every_range_finds(unit, below, rate):
    scaled = [Window(range=w.range * unit, slide=w.slide * unit) for w in below]
    scaled = list(dict.fromkeys(scaled))
    period = lcm(*(window.range for window in scaled))
    place = Place(None, scaled, PaperCost(unit=unit, rate=Fraction(rate), period=period))
    literal = []
    slide = gcd(*(window.slide for window in scaled))
    for s in (s for s in range(unit, slide + 1) if slide % s == 0 and s % unit == 0):
        for r in range(s, min(window.range for window in scaled) + 1, s):
            candidate = Window(range=r, slide=s)
            if (
                candidate not in scaled
                and r > unit
                and covers(Window(range=unit, slide=unit), candidate)
                and all(covers(candidate, window) for window in scaled)
            ):
                literal.append(place.benefit(candidate))
    best = best_covering_factor(place, scaled)
    assert (place.benefit(best) if best else 0) == max([0, *literal])


@given(st.lists(windows(longest=24), min_size=1, max_size=4, unique=True), rates)
def test_every_candidate_partitions_every_window_below(below, rate):
    assume(len(below) > 1)
    place = Place(None, below, PaperCost(unit=1, rate=Fraction(rate), period=lcm(*(w.range for w in below))))
    for candidate in partitioning_candidates(place):
        assert candidate.is_tumbling
        assert all(covers(candidate, window) for window in below)


@given(st.integers(1, 5000))
def test_divisors_are_all_there(number):
    assert sorted(divisors(number)) == [d for d in range(1, number + 1) if number % d == 0]


@given(st.permutations(range(6)), st.sampled_from(["min(v)", "sum(v)"]))
def test_the_plan_does_not_depend_on_the_order_of_the_windows(order, function):
    made = [Window(range=r, slide=s) for r, s in ((18, 18), (20, 4), (30, 6), (6, 2), (8, 8), (72, 24))]
    plans = [
        optimize(small([made[i] for i in which], function), cost="paper", rate=20, unit="1 microsecond").nodes
        for which in (range(6), order)
    ]
    assert plans[0] == plans[1]


@given(st.sampled_from([(2**31 - 1) * 7, 999_983 * 999_979, 604_800_000_011, 3**5 * 41**2 * 43]))
def test_divisors_of_awkward_numbers_are_found(number):
    found = divisors(number)
    assert all(number % divisor == 0 for divisor in found)
    assert len(set(found)) == len(found) >= 2


def test_planning_does_not_walk_through_units_of_time():
    weeks = [hopping(f"{n} weeks", f"{n} hours") for n in range(2, 22)]
    plan = optimize(Query(time="ts", windows=weeks, aggregates=["min(v)"]), unit="1 microsecond")
    assert plan.cost < plan.naive_cost


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"search": "magic"}, "search 'magic' is unknown; allowed are none, coverage, factor"),
        ({"cost": "free"}, "cost 'free' is unknown; allowed are spark, paper"),
        ({"rate": 0}, "rate 0 is not a positive number"),
        ({"rate": "1/0"}, "rate '1/0' is not a positive number"),
        ({"keys": 0}, "keys 0 is not a positive number; it is the number of combinations of keys"),
        ({"search": []}, "search [] is unknown"),
        ({"rate": float("nan")}, "rate nan is not a positive number"),
        ({"rate": float("inf")}, "rate inf is not a positive number"),
        ({"unit": "0s"}, "unit '0s' is not positive"),
    ],
)
def test_an_option_out_of_range_gets_one_clear_sentence(options, message):
    with pytest.raises(OptionError) as error:
        optimize(small([tumbling("1h")]), **options)
    assert message in str(error.value)


def test_only_a_query_can_be_optimized():
    with pytest.raises(OptionError, match="is not a Query"):
        optimize("SELECT 1")


def tumbling_nodes(made):
    """Every tumbling window that could serve some of the windows, but the paper's root; the windows among them."""
    return {Window(range=d, slide=d) for w in made for d in divisors(w.range) if d > 1}


def least_over_all_subsets(made, price, nodes):
    """Try every set of hidden nodes; a slow and obvious optimum."""
    hidden = sorted(nodes - set(made), key=lambda node: display_key(node))
    best = None
    for size in range(len(hidden) + 1):
        for built in combinations(hidden, size):
            there = [*made, *built]
            total = sum(
                min([price(node, None), *(price(node, other) for other in there if readable(other, node))])
                for node in there
            )
            best = total if best is None else min(best, total)
    return best


def readable(parent, child):
    return topological_key(parent) < topological_key(child) and can_make(parent, child, Kind.MERGEABLE)


@settings(max_examples=40)
@given(st.lists(st.integers(2, 14), min_size=2, max_size=4, unique=True), rates)
def test_best_is_the_optimum_over_all_tumbling_factor_windows(lengths, rate):
    made = [Window(range=length, slide=length) for length in lengths]
    plan = optimize(small(made, "sum(v)"), cost="paper", rate=rate, unit="1 microsecond", slices=False)
    assert plan.status == "optimal"
    assert plan.cost == plan.bound == least_over_all_subsets(made, plan.cost_model.of, tumbling_nodes(made))


@settings(max_examples=25)
@given(window_sets(most=3, longest=9), rates, st.sampled_from(["paper", "spark"]))
def test_best_is_the_optimum_over_all_panes_and_slices_of_small_sets(made, rate, cost):
    plan = optimize(small(made, "sum(v)"), cost=cost, rate=rate, unit="1 microsecond")
    subsets = [some for size in range(1, len(made) + 1) for some in combinations(made, size)]
    nodes = {slices_of(some) for some in subsets} | set(common_panes(made)) | set(ladders(made, Kind.MERGEABLE))
    nodes -= {Window(range=1, slide=1)} - set(made)
    if len(nodes - set(made)) <= 9:
        expected = least_over_all_subsets(made, plan.cost_model.of, nodes)
        assert float(plan.cost) <= float(expected) * (1 + 1e-9)


def optimum_by_an_independent_program(lengths, rate):
    """The least cost over all tumbling factor windows: every divisor may be built, and x[child, parent] be used."""
    nodes = sorted({d for length in lengths for d in divisors(length) if d > 1})
    edges = [
        (child, parent)
        for child in nodes
        for parent in [0, *nodes]
        if parent < child and not (parent and child % parent)
    ]
    count = len(edges) + len(nodes)
    period = lcm(*lengths)
    rows, limits = [], []
    for place, node in enumerate(nodes):
        row = np.zeros(count)
        row[[number for number, (child, _) in enumerate(edges) if child == node]] = 1
        row[len(edges) + place] = -1
        rows.append(row)
        limits.append((0, 0))
    for number, (_, parent) in enumerate(edges):
        if parent:
            row = np.zeros(count)
            row[number], row[len(edges) + nodes.index(parent)] = 1, -1
            rows.append(row)
            limits.append((-1, 0))
    prices = [rate if parent == 0 else 1 / parent for _, parent in edges] + [0.0] * len(nodes)
    low = [0.0] * len(edges) + [float(node in lengths) for node in nodes]
    found = milp(
        prices,
        constraints=LinearConstraint(csr_array(np.array(rows)), *zip(*limits, strict=True)),
        bounds=Bounds(low, 1),
        integrality=[1] * count,
        options={"mip_rel_gap": 0},
    )
    return found.fun * period


@pytest.mark.parametrize(("size", "rate"), list(product((5, 10, 20), (1, 10, 100))))
def test_best_reaches_what_an_independent_program_reaches(size, rate):
    for seed in range(SETS):
        made = random_windows(size, tumbling=True, seed=seed, unit=1)
        plan = optimize(small(made, "sum(v)"), cost="paper", rate=rate, unit="1 microsecond", slices=False)
        within = optimize(small(made, "sum(v)"), cost="paper", rate=rate, unit="1 microsecond")
        assert float(plan.cost) == pytest.approx(
            optimum_by_an_independent_program([w.range for w in made], rate), rel=1e-9
        )
        assert within.cost <= plan.cost


def test_a_day_by_a_minute_takes_few_reads():
    plan = optimize(Query(time="ts", windows=[hopping("1 day", "1 minute")], aggregates=["sum(v)"]), rate=60, unit="1m")
    assert sum(plan.reads(node) for node in plan.nodes if node.parent) <= 40
    assert plan.nodes[0].window == tumbling("1 minute")


def test_many_windows_are_planned_within_the_limit():
    made = [tumbling(f"{n} seconds") for n in range(7, 307)]
    plan = optimize(Query(time="ts", windows=made, aggregates=["sum(v)"]), time_limit=0.5)
    assert plan.status in ("heuristic", "time_limit")
    assert plan.bound <= plan.cost < plan.naive_cost


def test_the_same_query_gives_the_same_plan():
    made = random_windows(20, tumbling=False, seed=3)
    plans = {optimize(small(made, "sum(v)"), rate=10, unit="1 second", time_limit=60).explain() for _ in range(3)}
    assert len(plans) == 1


def test_an_optimum_without_slices_is_none_if_the_search_with_them_was_cut_short(monkeypatch):
    def cut_short(options, required, **given):
        solution = cheapest_tree(options, required, **given)
        return replace(solution, built=frozenset(), bound=0, optimal=False) if has_slices(options) else solution

    def has_slices(nodes):
        return any(isinstance(node.window, Slices) for node in nodes)

    def naive(tree):
        return {node: None for node in tree if node.window in query.windows}

    query = small([tumbling(f"{length}m") for length in (20, 30, 50, 70, 110)], "sum(v)")
    search = import_module("factor_windows.search.best")
    monkeypatch.setattr(search, "cheapest_tree", cut_short)
    monkeypatch.setattr(search._Search, "_pruned", lambda _, tree: tree if not has_slices(tree) else naive(tree))
    plan, without = (optimize(query, cost="paper", unit="1 minute", slices=slices) for slices in (True, False))
    assert (plan.status, without.status) == ("time_limit", "optimal")
    assert plan.bound <= plan.cost == without.cost


def test_slicing_cuts_at_every_edge_and_chooses_nothing():
    plan = optimize(small([tumbling("15s"), tumbling("17s"), hopping("40s", "25s")], "sum(v)"), search="slicing")
    [slices] = [node for node in plan.nodes if node.kind == "slices"]
    assert slices.name == "slices at 15 seconds, 17 seconds, 25 seconds, 25 seconds @ 15 seconds"
    assert {node.parent for node in plan.nodes} == {None, slices.name}
    nested = optimize(small([tumbling("10s"), tumbling("30s")]), search="slicing")
    assert [(node.name, node.parent) for node in nested.nodes] == [("10 seconds", None), ("30 seconds", "10 seconds")]
    holistic = optimize(small([tumbling("10s"), tumbling("30s")], "kurtosis(v)"), search="slicing")
    assert {node.parent for node in holistic.nodes} == {None}


@st.composite
def priced_edges(draw):
    """Draw what nodes may read at which price: the first ones are hidden, and each may read those before it."""
    nodes = [Node(Window(range=length, slide=length)) for length in range(1, draw(st.integers(4, 9)))]
    prices = st.integers(1, 60).map(float)
    options = {
        node: {None: draw(prices), **{other: draw(prices) for other in nodes[:place] if draw(st.booleans())}}
        for place, node in enumerate(nodes)
    }
    return options, nodes[-draw(st.integers(1, 3)) :]


def cost_of_building(options, required, built):
    waiting, total = list(required), 0.0
    for node in waiting:
        there = {other: price for other, price in options[node].items() if other in (None, *required, *built)}
        parent = min(there, key=there.get)
        total += there[parent]
        if parent is not None and parent not in waiting:
            waiting.append(parent)
    return total


@settings(max_examples=200, deadline=None)
@given(priced_edges())
def test_dual_ascent_and_branching_find_what_trying_all_finds(drawn):
    options, required = drawn
    hidden = [node for node in options if node not in required]
    least = min(
        cost_of_building(options, required, built)
        for size in range(len(hidden) + 1)
        for built in combinations(hidden, size)
    )
    some, every = (partial(cheapest_tree, known=nodes) for nodes in (hidden[::2], hidden))
    for solve in (cheapest_tree, some, every, integer_program.solve):
        found = solve(options, required, seconds=5)
        assert found.optimal
        assert cost_of_building(options, required, found.built) == pytest.approx(least)
        # A solver bounds nothing where there is nothing to choose.
        assert not hidden or float(found.bound) == pytest.approx(least)


@pytest.mark.parametrize("tumbling", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_what_bounds_leave_out_is_in_no_cheapest_tree(monkeypatch, seed, tumbling):
    seen = []

    def both(options, required, **given):
        found = cheapest_tree(options, required, **given)
        solved = integer_program.solve(options, required, seconds=60)
        costs = [cost_of_building(options, required, each.built) for each in (found, solved)]
        assert found.optimal
        assert costs[0] == pytest.approx(costs[1])
        seen.append(costs)
        return found

    monkeypatch.setattr(import_module("factor_windows.search.best"), "cheapest_tree", both)
    made = random_windows(14, tumbling=tumbling, seed=seed)
    optimize(small(made, "sum(v)" if tumbling else "min(v)"), rate=10, unit="1 second", time_limit=60)
    assert seen


@pytest.mark.parametrize("function", ["min(t)", "approx_count_distinct(t)"])
@pytest.mark.parametrize("cost", ["paper", "spark"])
@pytest.mark.parametrize("keys", [[], ["device"]])
def test_many_parents_are_priced_as_each_by_itself(function, cost, keys):
    windows = [hopping(f"{length} seconds", f"{1 + length % 2} seconds") for length in range(4, 160)]
    query = Query(time="ts", keys=keys, windows=windows, aggregates=[function])
    model = optimize(query, search="none", cost=cost, rate=7, unit="1 second").passes[0].cost_model
    graph = CoverageGraph.of_query(query)
    node = max(graph.nodes, key=lambda each: len(graph.parents[each]))
    parents = graph.parents[node]
    assert len(parents) > 100
    assert model.price_each(node, parents) == [model.price(node, parent) for parent in parents]


@settings(max_examples=40, deadline=None)
@given(window_sets(most=6, longest=40), rates, st.sampled_from(["paper", "spark"]))
def test_no_window_of_the_query_becomes_a_cheaper_parent_when_factor_windows_come(made, rate, cost):
    """So only the cheapest one is looked at again."""
    query = Query(time="t", windows=made, aggregates=["min(v)"])
    model = optimize(query, search="none", cost=cost, rate=rate, unit="1 microsecond").passes[0].cost_model
    graph = CoverageGraph.of_query(query)
    shared, factors = cheapest_parents(graph, model), best_factors(graph, model)
    extended = CoverageGraph.of((*graph.nodes, *factors), graph.kind)
    anew = cheapest_parents(extended, model)
    assert all(anew[node] in factors or anew[node] == shared[node] for node in graph.nodes)
    assert extended.parents == graph.parents_with(factors)
