"""A query checks its parts."""

import pytest

from factor_windows import Query, QueryError, hopping, tumbling
from factor_windows.functions import Kind


def query(**changes):
    return Query(**{"time": "ts", "windows": [tumbling("1h")], "aggregates": ["min(t)"]} | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"windows": []}, "the query has no window"),
        ({"aggregates": []}, "the query has no aggregate"),
        ({"windows": ["20m"]}, "'20m' is not a Window"),
        (
            {"windows": [tumbling("20m", name="a"), tumbling("30m", name="a")]},
            "the window name 'a' is used twice, for 20 minutes and for 30 minutes",
        ),
        ({"keys": ["ts"]}, "key 'ts' is also the time column"),
        ({"keys": ["TS AS other"]}, "key 'TS' is also the time column"),
        ({"keys": ["(`ts`)"]}, "is also the time column"),
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


def test_the_same_window_twice_is_one_window_with_both_names():
    asked = query(windows=[tumbling("60m", name="a"), hopping("1h", "1h", name="b"), tumbling("1h", name="a")])
    assert asked.names == {tumbling("1h"): ("a", "b")}


def test_a_windows_name_makes_another_query():
    assert query(windows=[tumbling("1h", name="a")]) != query(windows=[tumbling("1h", name="b")])


def test_the_strictest_function_decides():
    assert query(aggregates=["min(t)", "max(t)"]).kind is Kind.OVERLAP_SAFE
    assert query(aggregates=["min(t)", "sum(t)"]).kind is Kind.MERGEABLE
    assert query(aggregates=["min(t)", "sum(t)", "median(t)"]).kind is Kind.HOLISTIC


def test_keys_are_expressions():
    asked = query(keys=["`my key`", "upper(city) AS city", "lower(site)"])
    assert asked.columns[:3] == ("my key", "city", "lower(site)")


def test_one_key_or_window_or_aggregate_needs_no_list():
    assert query(keys="device", windows=tumbling("1h"), aggregates="min(t)") == query(keys=["device"])
