"""Aggregates are read from text, and their states fit together."""

import pytest
from sqlglot import exp, parse_one

from factor_windows import AggregateError
from factor_windows.engines.untyped import untyped
from factor_windows.functions.aggregate import Aggregate
from factor_windows.functions.expression import VerbatimSpark, fill_template, sql_of, tree_of
from factor_windows.functions.table import FUNCTIONS, Engines, Kind


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("min(temperature)", "min(temperature)", Kind.OVERLAP_SAFE),
        ("avg(temperature) AS mean_t", "mean_t", Kind.MERGEABLE),
        ("count(*) FILTER (WHERE ok) AS good", "good", Kind.MERGEABLE),
        ("count(*)", "count(1)", Kind.MERGEABLE),
        ("COUNT(*) FILTER (WHERE ok AND v > 3)", "count(1) FILTER (WHERE (ok AND (v > 3)))", Kind.MERGEABLE),
        ("sum(price * qty)", "sum((price * qty))", Kind.MERGEABLE),
        ("stddev(v)", "stddev(v)", Kind.MERGEABLE),
        ("max(`my column`)", "max(my column)", Kind.OVERLAP_SAFE),
        ("approx_percentile(v, 0.9) AS p90", "p90", Kind.MERGEABLE),
        ("median(v)", "median(v)", Kind.COUNTED),
        ("count(DISTINCT v)", "count(DISTINCT v)", Kind.COUNTED),
        ("min(DISTINCT v)", "min(DISTINCT v)", Kind.COUNTED),
    ],
)
def test_aggregates_are_read(text, name, kind):
    aggregate = Aggregate.read(text)
    assert (aggregate.name, aggregate.kind) == (name, kind)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "aggregate is empty"),
        ("temperature", "not one call of an aggregate function"),
        ("max(t) - min(t)", "not one call of an aggregate function"),
        ("summ(t)", "uses the unknown function 'summ'; did you mean sum?"),
        ("frobnicate(t)", "unknown function 'frobnicate'; known are any, any_value, approx_count_distinct"),
        ("min(sum(t))", "has the aggregate 'sum(t)' inside"),
        ("sum(t) FILTER (WHERE max(u) > 3)", "has the aggregate 'max(u)' inside"),
        ("min(t, u)", "has 2 arguments; write min(x)"),
        ("max_by(t)", "has 1 arguments; write max_by(x, y)"),
        ("sum(*)", "only count(*) takes it"),
        ("min(t", "not valid Spark SQL at line 1"),
        ("min(t) OVER (PARTITION BY d)", "OVER"),
        ("min((SELECT 1))", "sub-queries"),
        ("min(t); DROP TABLE x", "is not one plain expression"),
        ("min(t ORDER BY u)", "is not one plain expression"),
        ("sum(any_value(t))", "has the aggregate 'any_value(t)' inside"),
        ("first(t, 5)", "where true or false is expected"),
        ("percentile(t, 2)", "where a number from 0 to 1"),
        ("count(x.*)", "only count(*) takes it"),
        ("min(t) FILTER (WHERE *)", "'*' in its FILTER"),
        ("min(" + " + ".join(["t"] * 3000) + ")", "is"),
        ("min(:t)", "placeholder"),
        ("approx_percentile(t, u)", "where a number from 0 to 1, or an array of them, is expected"),
        ("min(t) IGNORE NULLS", "has IGNORE NULLS, which only any_value(x), collect_list(x), first(x), last(x) take"),
        ("min(t) RESPECT NULLS", "has RESPECT NULLS, which only any_value(x), collect_list(x), first(x), last(x) take"),
        ("my_avg(t)", "uses the unknown function 'my_avg'; did you mean try_avg or avg?"),
        ("percentile_cont(0.5)", "has no order; write WITHIN GROUP (ORDER BY ...) after it"),
        ("mode()", "has no order; write WITHIN GROUP (ORDER BY ...) after it"),
        ("sum(t) WITHIN GROUP (ORDER BY t)", "has WITHIN GROUP, which only listagg, mode, percentile_cont"),
        ("listagg(s, ',') WITHIN GROUP (ORDER BY max(t))", "has the aggregate 'max(t)' inside"),
        ("min(" + "(" * 5000 + "t" + ")" * 5000 + ")", "nested too deeply"),
        (None, "is not text"),
    ],
)
def test_a_mistake_gets_one_clear_sentence(text, message):
    with pytest.raises(AggregateError) as error:
        Aggregate.read(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("function", {f.name: f for f in FUNCTIONS.values()}.values(), ids=lambda f: f.name)
def test_every_function_is_complete(function):
    """Holistic functions have no states; all others have states that use each other, the arguments and nothing else."""
    assert (function.kind >= Kind.COUNTED) == (not function.states) == (not function.lower)
    inputs = {*function.parameters, "time"}
    names = {state.name for state in function.states}
    for state in function.states:
        lift = parse_one(state.lift, dialect=VerbatimSpark)
        call = lift.this if isinstance(lift, exp.Filter) else lift
        assert isinstance(call, exp.Anonymous), "a lift is one call, so that a FILTER can be added"
        assert placeholders(lift) <= inputs
        assert placeholders(parse_one(state.combine, dialect=VerbatimSpark)) <= names
    if function.lower:
        assert placeholders(parse_one(function.lower, dialect=VerbatimSpark)) <= names | inputs


def placeholders(tree):
    return {node.name for node in tree.find_all(exp.Placeholder)}


@pytest.mark.parametrize(
    ("text", "lifts"),
    [
        ("min(v)", ["min(v)"]),
        ("count(*) FILTER (WHERE ok OR v > 2)", ["count(*) FILTER(WHERE ok OR v > 2)"]),
        ("avg(a + b)", ["sum(a + b)", "count(a + b)"]),
        (
            "first(v, true) FILTER (WHERE a OR b)",
            [
                "min(ts) FILTER(WHERE (a OR b) AND NOT v IS NULL)",
                "min_by(v, ts) FILTER(WHERE (a OR b) AND NOT v IS NULL)",
            ],
        ),
        ("max_by(v, a + b)", ["max(a + b)", "max_by(v, a + b)"]),
        ("max_by(v, a, 2)", []),
        ("count(a, b) FILTER (WHERE ok)", ["count(a, b) FILTER(WHERE ok)"]),
        ("any(ok)", ["bool_or(ok)"]),
        ("any_value(v) IGNORE NULLS", ["any_value(v) FILTER(WHERE NOT v IS NULL)"]),
        ("first(v) RESPECT NULLS", ["min(ts)", "min_by(v, ts)"]),
        ("collect_list(v) RESPECT NULLS", []),
        ("listagg(v, ',') WITHIN GROUP (ORDER BY a)", []),
        ("regr_avgy(a, b)", ["sum(a) FILTER(WHERE NOT b IS NULL)", "regr_count(a, b)"]),
        ('max("v")', ['max("v")']),
    ],
)
def test_arguments_and_filters_go_into_the_lifts(text, lifts):
    assert [state.lift for state in Aggregate.read(text).states(time="ts")] == lifts


def test_a_function_is_as_strict_as_its_strictest_state():
    for function in FUNCTIONS.values():
        if function.states:
            assert function.kind is max(state.kind for state in function.states)
    assert {name for name, function in FUNCTIONS.items() if function.by_time} == {
        *("first", "first_value", "last", "last_value")
    }


def test_flink_gets_only_what_it_can_merge():
    every = {name for name, function in FUNCTIONS.items() if function.engines is Engines.ALL}
    assert every == {"min", "max", "count", "sum", "avg", "mean"}


def test_text_is_parsed_once_and_every_reader_has_a_tree_of_its_own():
    one, other = tree_of("a + b"), tree_of("a + b")
    one.this.replace(tree_of("c"))
    assert [sql_of(tree) for tree in (one, other, tree_of("a + b"))] == ["c + b", "a + b", "a + b"]


def test_arguments_stay_together_in_the_place_of_a_placeholder():
    assert sql_of(fill_template("NOT :x IS NULL", {"x": tree_of("a OR b")})) == "NOT (a OR b) IS NULL"


@pytest.mark.parametrize("text", ["sum(v)", "avg(v)", "approx_count_distinct(v)", "min(v)"])
def test_states_that_suit_every_type_are_shared_as_the_functions_own(text):
    aggregate = Aggregate.read(text)
    assert untyped(aggregate).kind is aggregate.kind
