"""A plan that is written and read back is the same plan."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import window_sets

from factor_windows import Plan, PlanError, Query, hopping, optimize, tumbling
from factor_windows.cost.prices import Prices
from factor_windows.search import SEARCHES
from factor_windows.serialize import FORMAT, pass_from_json, pass_to_json

KEPT = Path(__file__).parent / "kept" / "plans"
"""Plans as they were written before those of several queries could be; `several.json` is one pass of such a plan."""
QUERY = Query(
    time="ts",
    keys=["device", "upper(site) AS site"],
    windows=[tumbling("15m"), tumbling("17m", name="odd"), hopping("1h", "10m", offset="5m")],
    aggregates=["avg(v) AS mean", "count(*) FILTER (WHERE ok)"],
    where="v > 'ü'",
    having="mean > 1",
)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("cost", ["spark", "paper"])
def test_a_plan_comes_back_as_it_was(search, cost):
    plan = optimize(QUERY, search=search, cost=cost, rate=7, unit="1 second")
    again = Plan.from_json(plan.to_json())
    assert again == plan
    assert (again.cost, again.naive_cost, again.explain()) == (plan.cost, plan.naive_cost, plan.explain())


def test_the_plan_of_several_queries_comes_back_as_it_was():
    other = Query(time="ts", windows=[tumbling("1h")], aggregates=["max(v)"], where="ok")
    late = Query(time="seen", windows=[tumbling("1h")], aggregates=["median(v)"], name="late")
    asked = {"rate": 3, "unit": "1 second", "keys": 50, "selectivity": {"late": 0.5}, "prices": Prices(scan=2)}
    plan = optimize([QUERY, other, late], **asked)
    again = Plan.from_json(plan.to_json())
    assert again == plan
    assert again.request == replace(plan.request, options=replace(plan.request.options, unit=timedelta(seconds=1)))
    assert (again.naive_cost, again.explain(), again.sql()) == (plan.naive_cost, plan.explain(), plan.sql())
    assert list(again.plans) == ["query_1", "query_2", "late"]


def test_a_pass_of_several_queries_comes_back_with_all_that_it_computes():
    other = Query(time="ts", windows=[tumbling("1h")], aggregates=["max(v)"], where="ok")
    [each] = optimize([QUERY, other], rate=3, unit="1 second", keys=50).passes
    again = pass_from_json(pass_to_json(each))
    assert (again.nodes, again.query, again.outputs) == (each.nodes, each.query, each.outputs)


def test_an_earlier_version_would_say_that_it_is_too_old_for_several_queries():
    formats = [json.loads(optimize(queries).to_json())["format"] for queries in (QUERY, [QUERY])]
    assert formats == [1, 2]


def test_a_plan_without_one_of_its_queries_is_refused():
    found = json.loads(optimize([replace(QUERY, name="a"), replace(QUERY, name="b")]).to_json())
    found["passes"][0]["queries"].remove("b")
    with pytest.raises(PlanError, match=r"does not show each|no pass of the plan computes the query 'b'"):
        Plan.from_json(json.dumps(found))


@given(window_sets(), st.sampled_from(["min(v)", "sum(v)"]))
def test_any_plan_comes_back_as_it_was(windows, function):
    plan = optimize(Query(time="ts", windows=windows, aggregates=[function]), rate=1, time_limit=0.05)
    assert Plan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize("kept", sorted(KEPT.glob("*.json")), ids=lambda path: path.stem)
def test_a_plan_of_an_earlier_version_is_read_and_written_as_it_was(kept):
    text = kept.read_text(encoding="utf-8")
    assert Plan.from_json(text).to_json() == pass_to_json(pass_from_json(text)) == text


def damaged(change):
    found = json.loads(optimize(QUERY).to_json())
    change(found)
    return json.dumps(found)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "this is no plan"),
        ("[]", "this is no plan"),
        ("{}", "this is no plan"),
        (damaged(lambda plan: plan.update(format=FORMAT + 1)), "install a later one"),
        (damaged(lambda plan: plan.pop("query")), "damaged: KeyError 'query'"),
        (damaged(lambda plan: plan["nodes"].pop()), "does not show each of the query's windows"),
        (damaged(lambda plan: plan["nodes"][-1].update(keys=["other"])), "cannot make it up"),
        (damaged(lambda plan: [each.update(keys=["device"]) for each in plan["asked"]]), "does not show each"),
        (damaged(lambda plan: plan["query"].update(aggregates=["kurtosis(v)"])), "cannot make it up"),
        (damaged(lambda plan: plan["query"].update(where="DROP TABLE x")), "where"),
    ],
)
def test_what_is_no_plan_is_refused(text, problem):
    with pytest.raises(Exception, match=problem) as raised:
        Plan.from_json(text)
    assert type(raised.value).__module__ == "factor_windows.errors"
    assert isinstance(raised.value, PlanError) or "where" in problem


@pytest.mark.parametrize("unknown", ["overlap_safe", "keyed"])
def test_a_plan_from_before_costs_knew_of_overlaps_and_keys_is_read(unknown):
    def older(plan):
        del plan["cost_model"][unknown]

    assert Plan.from_json(damaged(older)).nodes
