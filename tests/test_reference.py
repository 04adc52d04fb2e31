"""The oracle itself: it agrees with DuckDB, an independent engine, and its states agree with its definitions."""

import math

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import events, windows

from factor_windows import Query, Window, optimize
from factor_windows.engines.python import evaluate, evaluate_plan
from factor_windows.functions.table import FUNCTIONS, Kind

IN_DUCKDB = {
    "min(v)": "min(v)",
    "max(v)": "max(v)",
    "count(*)": "count(*)",
    "count(v)": "count(v)",
    "count(DISTINCT v)": "count(DISTINCT v)",
    "sum(v)": "sum(v)",
    "sum(v + w)": "sum(v + w)",
    "avg(v)": "avg(v)",
    "avg(v) FILTER (WHERE ok AND w > 0)": "avg(v) FILTER (WHERE ok AND w > 0)",
    "var_pop(v)": "var_pop(v)",
    "var_samp(v)": "var_samp(v)",
    "stddev_pop(v)": "stddev_pop(v)",
    "stddev(v)": "stddev_samp(v)",
    "covar_pop(v, w)": "covar_pop(v, w)",
    "covar_samp(v, w)": "covar_samp(v, w)",
    "count_if(ok)": "count(*) FILTER (WHERE ok)",
    "bool_and(ok)": "bool_and(ok)",
    "bool_or(ok)": "bool_or(ok)",
    "bit_and(v)": "bit_and(v)",
    "bit_or(v)": "bit_or(v)",
    "median(v)": "median(v)",
    "percentile(v, 0.25)": "quantile_cont(v, 0.25)",
    "first(v)": "list(v ORDER BY t, v NULLS FIRST)[1]",
    "collect_set(v)": "coalesce(list_sort(list(DISTINCT v) FILTER (WHERE v IS NOT NULL)), [])",
}


@pytest.fixture(scope="module")
def connection():
    with duckdb.connect() as connected:
        connected.execute("CREATE TABLE events (t BIGINT, k VARCHAR, v BIGINT, w BIGINT, ok BOOLEAN)")
        yield connected


def in_duckdb(connection, window, rows):
    connection.execute("DELETE FROM events")
    if rows:
        connection.executemany(
            "INSERT INTO events VALUES (?, ?, ?, ?, ?)",
            [tuple(row[name] for name in ("t", "k", "v", "w", "ok")) for row in rows],
        )
    return connection.execute(
        f"""
        SELECT k, begin, begin + {window.range}, {", ".join(IN_DUCKDB.values())}
        FROM (SELECT *, {window.offset} + unnest(range(-200, 200)) * {window.slide} AS begin FROM events)
        WHERE begin <= t AND t < begin + {window.range}
        GROUP BY k, begin
        """
    ).fetchall()


@settings(max_examples=60)
@given(windows(longest=12), events())
def test_the_reference_agrees_with_duckdb(connection, window, rows):
    query = Query(time="t", keys=["k"], windows=[window], aggregates=list(IN_DUCKDB))
    found = {(row["k"], row["window_start"]): list(row.values()) for row in evaluate(query, rows)}
    expected = {(row[0], row[1]): [row[0], window.name, *row[1:]] for row in in_duckdb(connection, window, rows)}
    assert found.keys() == expected.keys()
    for group, values in expected.items():
        for column, left, right in zip(query.columns, found[group], values, strict=True):
            assert equal(left, right), column


def equal(left, right):
    if isinstance(left, float) and isinstance(right, float | int):
        return math.isclose(left, float(right), rel_tol=1e-9, abs_tol=1e-9)
    return left == right


SHARED = [name for name, function in FUNCTIONS.items() if function.kind < Kind.COUNTED and function.name == name]
ARGUMENTS = {"approx_percentile": "v, 0.5", "count_if": "ok", "bool_and": "ok", "bool_or": "ok", "listagg": "k, ','"}
ARGUMENTS |= {"min_by": "v, w", "max_by": "v, w", "any_value": "k", "collect_list": "k"}
"""Where any value is right, or any order, those of the key are all alike."""


@pytest.mark.parametrize("name", SHARED)
@settings(max_examples=40)
@given(rows=events(), tiled=st.booleans())
def test_the_states_of_every_function_give_what_the_function_means(name, rows, tiled):
    """Through a tumbling window for all, and through overlapping instances for those that do not mind."""
    function = FUNCTIONS[name]
    arguments = ARGUMENTS.get(name, "v, w" if len(function.parameters) == 2 and not function.optional else "v")
    overlapping = function.kind is Kind.OVERLAP_SAFE and not tiled
    parent = Window(range=6, slide=2) if overlapping else Window(range=4, slide=4)
    child = Window(range=12, slide=4)
    aggregates = [f"{name}({arguments}) AS a", f"{name}({arguments}) FILTER (WHERE w > 0) AS b"]
    query = Query(time="t", keys=["k"], windows=[parent, child], aggregates=aggregates)
    plan = optimize(query, search="coverage", cost="paper", unit="1 microsecond")
    assert plan.nodes[1].parent == plan.nodes[0].name
    left, right = (sorted(rows, key=repr) for rows in (evaluate_plan(plan, rows), evaluate(query, rows)))
    keys = [[(row["k"], row["window_id"], row["window_start"]) for row in rows] for rows in (left, right)]
    assert sorted(keys[0], key=repr) == sorted(keys[1], key=repr)
    by_key = {(row["k"], row["window_id"], row["window_start"]): row for row in right}
    for row in left:
        other = by_key[row["k"], row["window_id"], row["window_start"]]
        assert equal(row["a"], other["a"])
        assert equal(row["b"], other["b"])


def test_variance_keeps_its_digits_far_from_zero():
    rows = [{"t": t, "v": 1e6 + (t % 7) / 3} for t in range(400)]
    query = Query(
        time="t", windows=[Window(range=10, slide=10), Window(range=200, slide=100)], aggregates=["variance(v) AS s"]
    )
    plan = optimize(query, search="coverage", cost="paper", unit="1 microsecond")
    merged = {(row["window_id"], row["window_start"]): row["s"] for row in evaluate_plan(plan, rows)}
    for row in evaluate(query, rows):
        assert math.isclose(row["s"], merged[row["window_id"], row["window_start"]], rel_tol=1e-9)


def test_spark_rules():
    """Null times fall out, negative times round down, NaN is the greatest, sums of nothing are null, counts are not."""
    rows = [
        {"t": None, "v": 1.0},
        {"t": -1, "v": float("nan")},
        {"t": -2, "v": 5.0},
        {"t": 0, "v": None},
    ]
    query = Query(
        time="t",
        windows=[Window(range=10, slide=10, name="w")],
        aggregates=["max(v) AS a", "min(v) AS b", "sum(v) AS c", "count(v) AS d", "count(*) AS e"],
    )
    early, late = evaluate(query, rows)
    assert math.isnan(early.pop("a"))
    assert math.isnan(early.pop("c"))
    assert early == {"window_id": "w", "window_start": -10, "window_end": 0, "b": 5.0, "d": 2, "e": 2}
    assert late == {
        "window_id": "w", "window_start": 0, "window_end": 10, "a": None, "b": None, "c": None, "d": 0, "e": 1,
    }  # fmt: skip
