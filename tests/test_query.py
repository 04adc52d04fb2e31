"""A query checks its parts."""

import pytest

from factor_windows import AggregateError, Query, QueryError, hopping, tumbling
from factor_windows.functions.table import Kind


def query(**changes):
    return Query(**{"time": "ts", "windows": [tumbling("1h")], "aggregates": ["min(t)"]} | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"windows": []}, "the query has no window"),
        ({"aggregates": []}, "the query has no aggregate"),
        ({"windows": ["20m"]}, "'20m' is not a window"),
        (
            {"windows": [tumbling("20m", name="a"), tumbling("30m", name="a")]},
            "the window name 'a' is used twice, for 20 minutes and for 30 minutes",
        ),
        ({"keys": ["ts"]}, "key 'ts' is also the time column"),
        ({"keys": ["TS AS other"]}, "key 'TS' is also the time column"),
        ({"keys": ["(`ts`)"]}, "is also the time column"),
        ({"time": "f(ts)", "keys": ["F(`ts`)"]}, "is also the time column"),
        ({"aggregates": ["max(t) - min(t) AS a", "max(t) AS A"]}, "two columns named"),
        ({"keys": ["sum(v)"]}, "key 'sum(v)' has the aggregate 'sum(v)'"),
        ({"time": "max(ts)"}, "time 'max(ts)' has the aggregate"),
        ({"windows": None}, "windows None is not a list"),
        ({"keys": ["a", "A"]}, "two columns named 'A'"),
        ({"keys": ["window_id"]}, "two columns named 'window_id'"),
        ({"aggregates": ["min(t)", "MIN(t)"]}, "two columns named 'min(t)'"),
        ({"keys": ["a b c"]}, "key 'a b c' is not valid Spark SQL at line 1"),
        ({"keys": [""]}, "key is empty"),
        ({"time": ""}, "time is empty"),
        ({"time": None}, "time None is not text"),
    ],
)
def test_a_mistake_gets_one_clear_sentence(changes, message):
    with pytest.raises(QueryError) as error:
        query(**changes)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("aggregate", "message"),
    [
        ("t", "'t' is not a call of an aggregate function, nor an expression over such"),
        ("1 + 1", "is not a call of an aggregate function, nor an expression over such"),
        ("max(t) - u", "has 'u' outside of any aggregate function; aggregate it, or add it to the"),
        ("my_sum(t) + 1", "uses the unknown function 'my_sum'; did you mean try_sum or sum?"),
        ("my_sum(t) + max(t)", "uses the unknown function 'my_sum'; did you mean try_sum or sum?"),
        ("approx_top_k(t) + max(t)", "uses the unknown function 'approx_top_k'"),
    ],
)
def test_what_is_no_expression_over_aggregates_is_refused(aggregate, message):
    with pytest.raises(AggregateError) as error:
        query(aggregates=[aggregate])
    assert message in str(error.value)


def test_the_same_window_twice_is_one_window_with_both_names():
    asked = query(windows=[tumbling("60m", name="a"), hopping("1h", "1h", name="b"), tumbling("1h", name="a")])
    assert asked.names == {tumbling("1h"): ("a", "b")}


def test_a_windows_name_makes_another_query():
    assert query(windows=[tumbling("1h", name="a")]) != query(windows=[tumbling("1h", name="b")])


def test_the_strictest_function_decides():
    assert query(aggregates=["min(t)", "max(t)"]).kind is Kind.OVERLAP_SAFE
    assert query(aggregates=["min(t)", "sum(t)"]).kind is Kind.MERGEABLE
    assert query(aggregates=["min(t)", "sum(t)", "median(t)"]).kind is Kind.COUNTED
    assert query(aggregates=["median(t)", "kurtosis(t)"]).kind is Kind.HOLISTIC


def test_keys_are_expressions():
    asked = query(keys=["`my key`", "upper(city) AS city", "lower(site)"])
    assert asked.columns[:3] == ("my key", "city", "lower(site)")


def test_one_key_or_window_or_aggregate_needs_no_list():
    assert query(keys="device", windows=tumbling("1h"), aggregates="min(t)") == query(keys=["device"])


def test_a_key_may_be_a_function_of_another_column_than_time():
    assert query(time="fts", keys=["f(ts)"]).columns[0] == "f(ts)"


def test_an_expression_over_aggregates_is_computed_from_the_calls_in_it():
    asked = query(keys=["k"], aggregates=["max(t)", "max(t) - min(t) AS spread", "sum(t) / count(*)", "k || max(t)"])
    assert [each.sql for each in asked.parsed_aggregates] == ["max(t)", "min(t)", "sum(t)", "count(*)"]
    assert asked.columns == (
        *("k", "window_id", "window_start", "window_end"),
        *("max(t)", "spread", "(sum(t) / count(1))", "concat(k, max(t))"),
    )
    assert [each.sql for each in asked.formulas] == [
        "`max(t)`",
        "`max(t)` - `__call_1`",
        "`__call_2` / `__call_3`",
        "`k` || `max(t)`",
    ]


def test_having_and_output_know_expressions_by_their_names():
    asked = query(aggregates=["max(t) - min(t) AS spread"], having="Spread > 1", output=["-spread AS less"])
    assert asked.kept == "(`__call_0` - `__call_1`) > 1"
    assert [each.sql for each in asked.parsed_output] == ["-(`__call_0` - `__call_1`)"]
    assert asked.columns == ("less",)


def test_plain_aggregates_are_asked_for_in_the_users_own_words():
    asked = query(keys=["(`k`)"], aggregates=["MIN( t )"])
    assert (asked.asked_keys, asked.asked_aggregates, asked.parsed_output) == (("(`k`)",), ("MIN( t )",), ())


def test_a_query_of_expressions_is_read_back_from_json():
    from factor_windows import Plan, optimize

    plan = optimize(query(windows=[tumbling("1h"), tumbling("2h")], aggregates=["max(t) - min(t) AS spread"]))
    assert Plan.from_json(plan.to_json()) == plan


def test_a_cast_of_a_key_is_told_apart_from_it():
    assert query(keys=["v", "CAST(v AS STRING)"]).columns[:2] == ("v", "CAST(v AS STRING)")


def test_a_query_is_shown_by_what_is_asked():
    asked = query(keys=["device"], windows=[tumbling("20m"), tumbling("30m", name="half")], aggregates=["min(t)"])
    assert repr(asked) == "Query(time='ts', keys=[device], windows=[20 minutes, half: 30 minutes], aggregates=[min(t)])"
    assert repr(query(where="ok", name="n")).startswith("Query(name='n', time='ts', windows=[")
    assert repr(query(where="ok")).endswith(", where='ok')")
