"""Several queries as one: what they have in common, what tells them apart, and when they are better off apart."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import windows

from factor_windows import OptionError, PlanError, Query, QueryError, hopping, optimize, parse, tumbling
from factor_windows.functions.expression import conjuncts, depends_on
from factor_windows.search import SEARCHES
from factor_windows.search.plan_request import plan_in_one_pass, plan_request
from factor_windows.tree import Pass
from factor_windows.workload import merge_queries, name_queries

HOUR, FIVE, DAY = tumbling("1 hour"), tumbling("5 minutes"), tumbling("1 day")


def query(name="", *, keys=(), windows=(HOUR,), aggregates=("count(*)",), where="", time="ts"):
    return Query(time=time, keys=keys, windows=windows, aggregates=aggregates, where=where, name=name)


def test_a_plan_for_several_queries_reads_the_events_once():
    plan = optimize([query("a", keys=["device"], windows=[FIVE]), query("b"), query("c", keys=["site"])])
    assert [node.parent for node in plan.nodes].count(None) == 1
    assert len(plan.passes) == 1
    assert plan.cost < plan.naive_cost


def test_fewer_keys_are_computed_from_more():
    plan = optimize([query("a", keys=["device", "site"]), query("b", keys=["site"]), query("c")])
    assert {node.name: node.parent for node in plan.nodes} == {
        "1 hour by device, site": None,
        "1 hour by site": "1 hour by device, site",
        "1 hour": "1 hour by site",
    }


def test_keys_that_nobody_has_together_are_so_in_a_hidden_node():
    plan = optimize([query("a", keys=["device"]), query("b", keys=["site"])], rate=1e6, unit="1 second", keys=20)
    [root] = [node for node in plan.nodes if node.parent is None]
    assert (root.kind, root.node.keys) == ("factor", {"device", "site"})


def test_keys_of_very_many_values_are_not_put_together():
    plan = optimize([query("a", keys=["device"]), query("b", keys=["site"])], rate=10, unit="1 second", keys=10**8)
    assert all(node.parent is None for node in plan.nodes)


def test_an_expression_over_keys_is_computed_from_them():
    plan = optimize([query("a", keys=["device"]), query("b", keys=["substr(device, 1, 3) AS site"])])
    assert {node.name: node.parent for node in plan.nodes} == {
        "1 hour by device": None,
        "1 hour by substr(device, 1, 3)": "1 hour by device",
    }


def test_an_expression_by_chance_is_a_key_of_its_own():
    plan = optimize([query("a", keys=["device"]), query("b", keys=["concat(device, uuid())"])])
    by_name = {node.name: node for node in plan.nodes}
    for node in plan.nodes:
        assert node.parent is None or node.node.keys <= by_name[node.parent].node.keys
    assert not any("uuid" in key for node in plan.nodes for key in node.node.keys if node.name == "1 hour by device")
    assert depends_on("concat(device, uuid())") is None


@pytest.mark.parametrize("search", SEARCHES)
def test_every_search_plans_several_queries(search):
    queries = [
        query("a", keys=["k"], windows=[tumbling("10m"), hopping("1h", "5m")]),
        query("b", windows=[DAY], aggregates=["max(v)"], where="ok"),
    ]
    plan = optimize(queries, search=search)
    assert plan.search == search
    assert plan.cost <= plan.naive_cost * (1 + 1e-12)


def test_each_node_carries_only_what_somebody_needs():
    workload = merge_queries(
        [query("a", windows=[FIVE], aggregates=["min(v)"]), query("b", aggregates=["max(v)", "min(v)"])]
    )
    assert [(each.names, each.aggregates) for each in workload.outputs] == [
        (("5 minutes",), (0,)),
        (("1 hour",), (1, 0)),
    ]


def test_what_all_conditions_begin_with_is_applied_to_the_events():
    workload = merge_queries(
        name_queries([query(where="v > 0 AND ok"), query(where="v > 0 AND NOT late"), query(where="v > 0")])
    )
    assert workload.query.where == "v > 0"
    assert sorted(workload.flags.values()) == ["v > 0 AND NOT late", "v > 0 AND ok"]


def test_a_condition_is_not_moved_before_one_that_it_may_rely_on():
    workload = merge_queries(
        name_queries([query(where="kind = 'n' AND code > 3"), query(where="kind = 'm' AND code > 3")])
    )
    assert workload.query.where == "((kind = 'n') AND (code > 3)) OR ((kind = 'm') AND (code > 3))"


def test_a_key_that_may_fail_is_computed_for_its_own_queries_events_only():
    number = "CAST(code AS INT)"
    workload = merge_queries(
        name_queries([query(keys=[number], where="kind = 'n'"), query(keys=["upper(site)"], where="ok")])
    )
    assert workload.guarded == {
        f"{number} WHERE kind = 'n'": f"CASE WHEN kind = 'n' THEN {number} END",
    }
    assert [key.sql for key in workload.query.parsed_keys] == [f"`{number} WHERE kind = 'n'`", "upper(site)"]
    assert merge_queries(name_queries([query(keys=[number], where="kind = 'n'"), query(keys=[number])])).guarded == {}


def test_queries_by_different_times_are_planned_apart_and_it_is_said():
    plan = optimize([query("a"), query("b", time="seen"), query("c", keys=["k"])])
    assert [[member.name for member in each.workload.members] for each in plan.passes] == [["a", "c"], ["b"]]
    assert "queries by different times do not share: ts, seen" in plan.explain().splitlines()
    with pytest.raises(QueryError, match="different time columns, seen and ts, and a stream has one event time"):
        plan_request(replace(plan.request, in_one_pass=True))


def test_events_that_no_query_is_about_are_left_out():
    workload = merge_queries(name_queries([query(where="ok"), query(where="v > 0")]))
    assert workload.query.where == "(ok) OR (v > 0)"


def test_equal_aggregates_are_computed_once():
    workload = merge_queries(
        name_queries([query(aggregates=["sum(v) AS a"]), query(aggregates=["sum(v) AS b", "count(*)"])])
    )
    assert len(workload.query.aggregates) == 2


def test_conditions_are_taken_apart():
    assert conjuncts("(a AND (b OR c)) AND NOT d") == ("a", "b OR c", "NOT d")


def test_a_query_without_a_shared_function_has_its_own_pass():
    plan = optimize([query("a"), query("b", aggregates=["median(v)"]), query("c", aggregates=["max(v)"])])
    assert [[member.name for member in each.workload.members] for each in plan.passes] == [["a", "c"], ["b"]]
    assert [len(each.nodes) for each in plan_request(replace(plan.request, in_one_pass=True)).passes] == [1]


def test_a_condition_by_chance_has_its_own_pass():
    plan = optimize([query("a"), query("b", where="rand() < 0.5")])
    assert len(plan.passes) == 2


def test_a_condition_that_keeps_few_events_has_its_own_pass_if_that_is_cheaper():
    many = [f"stddev(v + {number})" for number in range(40)]
    queries = [query("a", windows=[FIVE]), query("rare", windows=[tumbling("7 minutes")], aggregates=many, where="odd")]
    asked = {"rate": 1000, "unit": "1 second"}
    assert len(optimize(queries, **asked).passes) == 1
    apart = optimize(queries, selectivity={"rare": 0.001}, **asked)
    assert [[member.name for member in each.workload.members] for each in apart.passes] == [["a"], ["rare"]]
    assert len(optimize(queries, selectivity={"rare": 0.99}, **asked).passes) == 1


def test_the_naive_plan_of_several_queries_reads_the_events_for_every_window():
    plan = optimize([query("a", keys=["k"], windows=[FIVE, DAY]), query("b"), query("c", time="seen")])
    naive = plan.naive()
    assert [node.parent for node in naive.nodes] == [None] * 4
    assert (naive.queries, naive.search, naive.naive_cost) == (plan.queries, "none", plan.naive_cost)
    # As if it had been asked for, but for what only the search that is asked for lets windows read.
    assert plan_request(naive.request).nodes == naive.nodes


def test_several_passes_are_drawn_as_one_diagram():
    plan = optimize([query("a"), query("b", time="seen", windows=[HOUR, DAY])], cost="paper", unit="30 minutes")
    assert plan.to_mermaid().splitlines() == [
        "flowchart LR",
        '  raw["raw events"]',
        '  n0["1 hour<br/>cost 2"]',
        '  n1["1 hour<br/>cost 48"]',
        '  n2["1 day<br/>cost 24"]',
        '  raw -- "2 ×" --> n0',
        '  raw -- "2 ×" --> n1',
        '  n1 -- "24 ×" --> n2',
    ]
    assert plan.to_dot().count("raw -> ") == 2


def test_what_only_one_query_has_is_not_guessed_for_several():
    plan = optimize([query("a"), query("b", time="seen")])
    with pytest.raises(PlanError, match=r"use plan\.queries instead of plan\.query"):
        _ = plan.query
    with pytest.raises(PlanError, match="takes 2 passes over the events"):
        _ = plan.cost_model


def test_costs_are_shared_in_full():
    plan = optimize([query("a", keys=["k"], windows=[FIVE, DAY]), query("b", keys=["k"]), query("c", windows=[DAY])])
    assert sum(plan.shares().values()) == pytest.approx(plan.cost)
    assert min(plan.shares().values()) > 0


def test_explain_says_who_reads_and_who_pays():
    text = optimize([query("devices", keys=["device"], windows=[FIVE]), query("hours")]).explain()
    assert "5 minutes by device" in text
    assert "for devices, hours" in text
    assert text.splitlines()[-4].split() == ["query", "alone", "shared"]


def test_names_of_nodes_do_not_depend_on_other_queries():
    first = [query("a", keys=["device"], windows=[FIVE]), query("b", windows=[DAY])]
    before = optimize(first)
    after = optimize([*first, query("c", keys=["device"], windows=[HOUR])])
    assert {node.name for node in before.nodes} <= {node.name for node in after.nodes}
    told = after.explain(since=before)
    assert "+ query c" in told
    assert "+ node 1 hour by device, which reads 5 minutes by device" in told
    assert "needs a new checkpoint" in told
    assert "goes on with its checkpoint" in before.explain(since=optimize(first))


def test_another_condition_is_another_plan():
    first, other = ([query("a"), query("b", where=condition)] for condition in ("v > 90", "v > 80"))
    before, after = optimize(first), optimize(other)
    assert before.passes[0].query != after.passes[0].query
    assert "needs a new checkpoint" in after.explain(since=before)
    common = optimize([query("a", where="ok"), query("b", where="ok AND v > 90")])
    assert "needs a new checkpoint" in common.explain(since=before)
    assert "goes on with its checkpoint" in optimize(first[::-1]).explain(since=before)


def test_a_hundred_queries_are_planned():
    lengths = (1, 2, 5, 10, 15, 30, 60, 120, 240, 1440)
    queries = [
        query(
            keys=(["device"], ["site"], [], ["device", "site"])[number % 4],
            windows=[tumbling(f"{lengths[number % 10]} minutes"), hopping("1 day", f"{lengths[number // 10]} minutes")],
            aggregates=("count(*)", "avg(v)", "max(v)")[: number % 3 + 1],
            where=("", "ok", "v > 1")[number % 3],
        )
        for number in range(100)
    ]
    plan = optimize(queries, rate=100, unit="1 second", keys=1000)
    assert len(plan.queries) == 100
    assert [node.parent for node in plan.nodes].count(None) == 1


@pytest.mark.parametrize(
    ("queries", "problem"),
    [
        ([query("a"), query("A")], "two queries are named 'A'"),
        ([], "is not a Query"),
        (["SELECT"], "is not a Query"),
    ],
)
def test_a_mistake_is_said_in_one_sentence(queries, problem):
    with pytest.raises((QueryError, OptionError), match=problem):
        optimize(queries)


@pytest.mark.parametrize(("name", "share"), [("b", 0.5), ("a", 1.5), ("a", -1)])
def test_a_selectivity_is_checked(name, share):
    with pytest.raises(OptionError, match="selectivity"):
        optimize([query("a")], selectivity={name: share})


def test_a_script_is_a_list_of_queries_with_their_names():
    text = "INSERT INTO x SELECT count(*) AS n FROM r GROUP BY window(ts, '1 hour'); " + (
        "SELECT k, min(v) AS low FROM r GROUP BY k, window(ts, '5 minutes')"
    )
    queries = parse(text)
    assert [each.name for each in queries] == ["x", ""]
    assert [each.name for each in optimize(queries).queries] == ["x", "query_2"]


KEYS = st.lists(st.sampled_from(["a", "b", "upper(a)"]), unique=True, max_size=3)


@given(st.lists(st.tuples(windows(), KEYS), min_size=1, max_size=6), st.sampled_from(["min(v)", "sum(v)"]))
def test_a_plan_for_several_queries_is_valid_and_costs_no_more_than_none(asked, function):
    queries = [query(keys=keys, windows=[window], aggregates=[function]) for window, keys in asked]
    plan = optimize(queries, rate=3, unit="1 second", keys=7, time_limit=0.1)
    assert plan.cost <= plan.naive_cost * (1 + 1e-9)
    assert all(isinstance(each, Pass) for each in plan.passes)
    derived = {"upper(a)"} if any("upper(a)" in keys for _, keys in asked) else set()
    expected = {(window, frozenset({*keys, *(derived if "a" in keys else ())})) for window, keys in asked}
    assert {(node.window, node.node.keys) for node in plan.nodes if node.exposed} == expected


def test_a_plan_for_a_stream_stays_one_pass_however_it_is_planned_again():
    hour = [tumbling("1 hour")]
    queries = [
        Query(time="ts", keys=["x"], windows=hour, aggregates=["sum(v)"], name="a"),
        Query(time="ts", keys=["upper(x)"], windows=hour, aggregates=["avg(v)"], where="rare", name="b"),
    ]
    plan = plan_in_one_pass(optimize(queries, rate=1, unit="1 second", keys=1000, selectivity={"b": 0.05}))
    assert len(plan_request(replace(plan.request, derive=False)).passes) == 1
