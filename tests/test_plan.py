"""A plan checks itself, and becomes operators and text."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from factor_windows import Plan, PlanError, Query, SharedPlan, hopping, optimize, tumbling
from factor_windows.algebra.graph import Node
from factor_windows.explain.document import document
from factor_windows.explain.operators import OperatorGraph
from factor_windows.explain.picture import picture
from factor_windows.search import plan_request

GOLDEN = Path(__file__).parent / "golden"
PAIR = (tumbling("20m"), tumbling("30m"))


def plan_of(*windows, function="sum(t)", by=("device",), **options):
    query = Query(time="ts", keys=by, windows=windows, aggregates=[function])
    return optimize(query, **{"search": "factor", "cost": "paper", "unit": "1 minute"} | options)


@pytest.fixture
def plan():
    return plan_of(tumbling("20m"), tumbling("30m"), tumbling("40m"))


def test_a_good_plan_passes(plan):
    [only] = plan.passes
    assert replace(only, status="optimal").nodes == plan.nodes


def changed(plan, which, /, **changes):
    return tuple(replace(node, **changes) if node.name == which else node for node in plan.nodes)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda plan: changed(plan, "30 minutes", parent="20 minutes"), "cannot make it up"),
        (lambda plan: changed(plan, "20 minutes", parent="40 minutes"), "does not come before it"),
        (lambda plan: changed(plan, "20 minutes", parent="5 minutes"), "does not come before it"),
        (lambda plan: changed(plan, "20 minutes", parent="20 minutes"), "does not come before it"),
        (lambda plan: changed(plan, "40 minutes", name="20 minutes"), "two nodes are named '20 minutes'"),
        (lambda plan: plan.nodes[:-1], "does not show each of the query's windows exactly once"),
        (lambda plan: changed(plan, "10 minutes", shown_as=("10 minutes",)), "does not show each"),
        (lambda plan: changed(plan, "30 minutes", shown_as=("other",)), "does not show each"),
        (
            lambda plan: (
                *plan.nodes,
                replace(plan.nodes[0], name="5 minutes", node=Node(tumbling("5m"), frozenset({"device"}))),
            ),
            "factor window '5 minutes' is read by no one",
        ),
        (
            lambda plan: (*plan.nodes, replace(plan.nodes[1], name="again")),
            "does not show each of the query's windows exactly once",
        ),
        (
            lambda plan: changed(plan, "10 minutes", node=Node(tumbling("10m"), frozenset())),
            "cannot make it up",
        ),
        (
            lambda plan: changed(plan, "40 minutes", node=Node(tumbling("40m"), frozenset())),
            "for the query's keys",
        ),
    ],
)
def test_a_plan_that_would_be_wrong_cannot_be_made(plan, spoil, message):
    with pytest.raises(PlanError) as error:
        replace(plan.passes[0], nodes=spoil(plan))
    assert message in str(error.value)


def test_a_sum_may_not_read_from_overlapping_instances():
    shared = plan_of(hopping("8m", "2m"), hopping("10m", "2m"), function="min(t)", search="coverage")
    as_sum = replace(shared.query, aggregates=["sum(t)"])
    with pytest.raises(PlanError, match="cannot make it up"):
        shared.passes[0].with_query(as_sum)


def test_a_hidden_window_does_not_take_a_users_name():
    plan = plan_of(tumbling("20m", name="10 minutes"), tumbling("30m"), tumbling("40m"))
    assert [node.name for node in plan.nodes if not node.exposed] == ["10 minutes (factor)"]


def test_both_names_of_a_window_are_shown_once():
    plan = plan_of(tumbling("20m", name="a"), tumbling("20m", name="b"), tumbling("40m"))
    assert [node.shown_as for node in plan.nodes] == [("a", "b"), ("40 minutes",)]


def test_a_window_may_be_named_like_an_operator():
    plan = plan_of(tumbling("20m", name="union"), tumbling("40m", name="input"))
    assert len(OperatorGraph.of(plan).operators) == 5


def test_the_rewriting_of_the_papers_query(plan):
    """Paper, Figure 2: the original plan, and the one with a factor window."""
    assert str(OperatorGraph.of(plan.naive())).splitlines() == [
        "input -> multicast",
        "multicast -> 20 minutes",
        "multicast -> 30 minutes",
        "multicast -> 40 minutes",
        "20 minutes -> union",
        "30 minutes -> union",
        "40 minutes -> union",
    ]
    assert str(OperatorGraph.of(plan)).splitlines() == [
        "input -> 10 minutes",
        "10 minutes -> multicast of 10 minutes",
        "multicast of 10 minutes -> 20 minutes",
        "multicast of 10 minutes -> 30 minutes",
        "20 minutes -> multicast of 20 minutes",
        "multicast of 20 minutes -> 40 minutes",
        "multicast of 20 minutes -> union",
        "40 minutes -> union",
        "30 minutes -> union",
    ]


@pytest.mark.parametrize(
    ("name", "plan"),
    [
        ("paper", plan_of(tumbling("20m"), tumbling("30m"), tumbling("40m"), function="min(t)")),
        ("nothing-to-share", plan_of(tumbling("15m"), tumbling("17m"), tumbling("19m"))),
        ("hopping", plan_of(hopping("1h", "10m", name="hourly"), hopping("40m", "20m"), tumbling("1 day"), rate=100)),
        ("offset", plan_of(tumbling("20m", offset="5m"), tumbling("30m", offset="5m"), tumbling("30m"), by=())),
        ("dense", plan_of(tumbling("20m"), hopping("1h", "10m"), cost="spark", unit=None)),
        ("sparse", plan_of(tumbling("20m"), tumbling("40m"), cost="spark", unit="1s", rate=2, keys=10_000)),
        ("one-window-two-names", plan_of(tumbling("1h", name="a"), tumbling("60m", name="b"), function="median(t)")),
    ],
)
def test_a_plan_explains_itself(name, plan, golden):
    golden(GOLDEN / f"{name}.txt", plan.explain())


def test_costs_of_any_size_are_printed():
    odd = [hopping("365 days", f"{n} us") for n in range(1_000_003, 1_000_063, 2)]
    for cost, search in product(("paper", "spark"), ("factor", "best")):
        plan = plan_of(*odd, cost=cost, search=search)
        explained = plan.explain()
        assert [window.name for window in odd if window.name not in explained] == []
        # Each node is a box and its bar, beside the box of the events.
        assert picture(plan.passes[0]).count("<rect") == 1 + 2 * len(plan.nodes)
        assert [node["name"] for node in document(plan)["nodes"]] == [node.name for node in plan.nodes]


def test_a_deep_plan_explains_itself_too():
    chain = [hopping(f"{n}s", "1s") for n in range(2, 1202)]
    plan = plan_of(*chain, function="min(t)", unit="1s", search="coverage")
    assert len(plan.explain().splitlines()) == len(chain) + 4


def test_plans_are_values(plan):
    assert isinstance(plan, Plan)
    assert plan == plan_of(tumbling("20m"), tumbling("30m"), tumbling("40m"))


def test_a_plan_is_shown_by_what_it_computes_and_gains(plan):
    assert repr(plan) == "<Plan: 3 windows by device, 1 hidden node, cost 150 instead of 360, heuristic>"
    queries = [
        replace(plan.query, name=name, aggregates=[call]) for name, call in (("a", "sum(t)"), ("b", "median(t)"))
    ]
    several = optimize(queries, search="factor", cost="paper", unit="1 minute")
    assert repr(several) == "<Plan: 2 queries, 6 windows, 2 passes, 1 hidden node, cost 510 instead of 720, heuristic>"


def test_shared_plans_are_plans(plan):
    assert SharedPlan is Plan
    assert (plan.queries, plan.is_single, plan.plans) == ((plan.query,), True, {"": plan})
    assert plan.shares() == {"": plan.cost}


@pytest.mark.parametrize(
    ("changed", "meaning"),
    [
        ({}, "goes on with its checkpoint"),
        ({"having": "window_id = '20 minutes'"}, "goes on with its checkpoint"),
        ({"keys": ["site"]}, "needs a new checkpoint"),
        ({"where": "t > 0"}, "needs a new checkpoint"),
        ({"aggregates": ["sum(u)"]}, "needs a new checkpoint"),
    ],
)
def test_what_has_changed_since_a_plan_of_one_query(plan, changed, meaning):
    after = optimize(replace(plan.query, **changed), search="factor", cost="paper", unit="1 minute")
    assert meaning in after.explain(since=plan)


def test_planning_again_is_a_function_of_the_request(plan):
    assert plan_request(plan.request) == plan
    wider = plan_request(replace(plan.request, options=replace(plan.request.options, search="best")))
    assert wider == plan_of(tumbling("20m"), tumbling("30m"), tumbling("40m"), search="best")


@pytest.mark.parametrize("cost", ["paper", "spark"])
def test_a_plan_that_was_read_can_be_planned_again(cost):
    plan = plan_of(tumbling("20m"), tumbling("30m"), tumbling("40m"), cost=cost, rate=3)
    assert plan_request(Plan.from_json(plan.to_json()).request) == plan


@pytest.mark.parametrize(
    ("windows", "counted"), [((tumbling("20m"),), "<b>1</b> window<"), (PAIR, "<b>2</b> windows<")]
)
def test_a_page_counts_windows_in_words_that_fit(windows, counted):
    assert counted in plan_of(*windows).to_html()
