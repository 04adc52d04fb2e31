"""Every aggregate function as data: its class, its partial states, and how they lower to its result."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from factor_windows.functions.state import (
    COMOMENTS,
    ENDS_X,
    ENDS_Y,
    MEAN_X,
    MEAN_Y,
    MOMENTS,
    PAIRS,
    SQUARE_X,
    SQUARE_Y,
    added,
    sum_and_count,
    varies,
)
from factor_windows.functions.state import State as State


class Kind(IntEnum):
    """How a function may be shared, from the most lenient to the strictest."""

    OVERLAP_SAFE = 1
    """Overlapping parts do no harm: reads from covers and partitions (Paper: Theorem 6)."""
    MERGEABLE = 2
    """Disjoint parts can be merged: reads from partitions (Paper: Theorem 5)."""
    HOLISTIC = 3
    """No part of bounded size helps: reads raw events only."""


@dataclass(frozen=True, slots=True)
class Function:
    """An aggregate function: `lower` turns its combined states into the result."""

    name: str
    kind: Kind
    parameters: tuple[str, ...]
    states: tuple[State, ...] = ()
    lower: str = ""
    optional: int = 0
    """How many of the last parameters may be left out."""


def _itself(name: str, *, fold: str = "", kind: Kind = Kind.OVERLAP_SAFE) -> Function:
    """A function whose result is its own state, such as min."""
    return Function(name, kind, ("x",), (State(name, f"{name}(:x)", f"{name}(:{name})", True, fold),), f":{name}")


def _added(name: str) -> Function:
    """A function whose parts are summed, such as count."""
    return Function(name, Kind.MERGEABLE, ("x",), (added(name, f"{name}(:x)"),), f":{name}")


def _chosen(name: str, parameters: tuple[str, ...], choose: str, by: str, *, optional: int = 0) -> Function:
    """A function that returns the value of one event: the one whose `by` is smallest or greatest."""
    states = (
        State("by", f"{choose}({by})", f"{choose}(:by)", True, "least" if choose == "min" else "greatest"),
        State("value", f"{choose}_by(:x, {by})", f"{choose}_by(:value, :by)"),
    )
    return Function(name, Kind.OVERLAP_SAFE, parameters, states, ":value", optional)


def _listed(name: str, parameters: tuple[str, ...], lower: str, *, optional: int = 0) -> Function:
    """A function of all values that are not null; in the order of parts, as Spark promises none."""
    states = (State("list", "collect_list(:x)", "flatten(collect_list(:list))"),)
    return Function(name, Kind.MERGEABLE, parameters, states, lower, optional)


def _mean(name: str, parameters: tuple[str, ...] = ("x",), *states: State) -> Function:
    return Function(name, Kind.MERGEABLE, parameters, states or sum_and_count(), "CASE WHEN :n > 0 THEN :sum / :n END")


def _moments(name: str, lower: str) -> Function:
    return Function(name, Kind.MERGEABLE, ("x",), MOMENTS, lower)


def _regression(name: str, lower: str, *states: State) -> Function:
    """A function of y and x, in this order."""
    return Function(name, Kind.MERGEABLE, ("y", "x"), states, lower)


def _sketch(
    name: str, kind: Kind, parameters: tuple[str, ...], lift: str, combine: str, lower: str, optional: int
) -> Function:
    return Function(name, kind, parameters, (State("sketch", lift, combine),), lower, optional)


_ALL = (
    _itself("min", fold="least"),
    _itself("max", fold="greatest"),
    _itself("bool_and", fold="least"),
    _itself("bool_or", fold="greatest"),
    _itself("bit_and"),
    _itself("bit_or"),
    _itself("bit_xor", kind=Kind.MERGEABLE),
    Function(
        "collect_set",
        Kind.OVERLAP_SAFE,
        ("x",),
        (State("set", "collect_set(:x)", "array_distinct(flatten(collect_list(:set)))"),),
        ":set",
    ),
    _listed("collect_list", ("x",), ":list"),
    _listed(
        "listagg",
        ("x", "delimiter"),
        "CASE WHEN size(:list) > 0 THEN array_join(:list, coalesce(:delimiter, '')) END",
        optional=1,
    ),
    _sketch(
        "approx_count_distinct",
        Kind.OVERLAP_SAFE,
        ("x", "deviation"),
        "hll_sketch_agg(:x)",
        "hll_union_agg(:sketch)",
        "hll_sketch_estimate(:sketch)",
        optional=1,
    ),
    # A part without any event that passes a FILTER has null, which must not be taken for the value of an event.
    Function(
        "any_value",
        Kind.OVERLAP_SAFE,
        ("x", "ignore_nulls"),
        (State("value", "any_value(:x)", "any_value(:value, TRUE)"),),
        ":value",
        optional=1,
    ),
    _chosen("first", ("x", "ignore_nulls"), "min", ":time", optional=1),
    _chosen("last", ("x", "ignore_nulls"), "max", ":time", optional=1),
    _chosen("min_by", ("x", "y", "number"), "min", ":y", optional=1),
    _chosen("max_by", ("x", "y", "number"), "max", ":y", optional=1),
    _added("count"),
    _added("count_if"),
    _added("sum"),
    _mean("avg"),
    Function("try_sum", Kind.MERGEABLE, ("x",), sum_and_count(careful=True), ":sum"),
    _mean("try_avg", ("x",), *sum_and_count(careful=True)),
    _moments("var_pop", "CASE WHEN :n > 0 THEN greatest(0.0D, :m2) / :n END"),
    _moments("var_samp", "CASE WHEN :n > 1 THEN greatest(0.0D, :m2) / (:n - 1) END"),
    _moments("stddev_pop", "CASE WHEN :n > 0 THEN sqrt(greatest(0.0D, :m2) / :n) END"),
    _moments("stddev_samp", "CASE WHEN :n > 1 THEN sqrt(greatest(0.0D, :m2) / (:n - 1)) END"),
    Function("covar_pop", Kind.MERGEABLE, ("x", "y"), COMOMENTS, "CASE WHEN :n > 0 THEN :c / :n END"),
    Function("covar_samp", Kind.MERGEABLE, ("x", "y"), COMOMENTS, "CASE WHEN :n > 1 THEN :c / (:n - 1) END"),
    Function(
        "corr",
        Kind.MERGEABLE,
        ("x", "y"),
        (*COMOMENTS, SQUARE_X, SQUARE_Y, *ENDS_X, *ENDS_Y),
        f"CASE WHEN :n > 1 AND {varies('x')} AND {varies('y')} THEN :c / sqrt(:m2_x) / sqrt(:m2_y) END",
    ),
    _regression("regr_count", ":n", PAIRS),
    _mean("regr_avgx", ("y", "x"), *sum_and_count(":x", of=":y")),
    _mean("regr_avgy", ("y", "x"), *sum_and_count(":y", of=":x")),
    _regression("regr_sxx", "CASE WHEN :n > 0 THEN greatest(0.0D, :m2_x) END", PAIRS, MEAN_X, SQUARE_X),
    _regression("regr_syy", "CASE WHEN :n > 0 THEN greatest(0.0D, :m2_y) END", PAIRS, MEAN_Y, SQUARE_Y),
    _regression("regr_sxy", ":c", *COMOMENTS),
    _regression("regr_slope", f"CASE WHEN {varies('x')} THEN :c / :m2_x END", *COMOMENTS, SQUARE_X, *ENDS_X),
    _regression(
        "regr_intercept",
        f"CASE WHEN {varies('x')} THEN :mean_y - :c / :m2_x * :mean_x END",
        *(*COMOMENTS, SQUARE_X, *ENDS_X),
    ),
    _regression(
        "regr_r2",
        f"CASE WHEN {varies('x')} AND {varies('y')} THEN :c / :m2_x * :c / :m2_y WHEN {varies('x')} THEN 1.0D END",
        *(*COMOMENTS, SQUARE_X, SQUARE_Y, *ENDS_X, *ENDS_Y),
    ),
    _sketch(
        "approx_percentile",
        Kind.MERGEABLE,
        ("x", "share", "accuracy"),
        "kll_sketch_agg(:x)",
        "kll_merge_agg(:sketch)",
        "kll_sketch_get_quantile(:sketch, :share)",
        optional=1,
    ),
    Function("kurtosis", Kind.HOLISTIC, ("x",)),
    Function("skewness", Kind.HOLISTIC, ("x",)),
    Function("median", Kind.HOLISTIC, ("x",)),
    Function("percentile", Kind.HOLISTIC, ("x", "share", "frequency"), optional=1),
    Function("percentile_cont", Kind.HOLISTIC, ("share",)),
    Function("percentile_disc", Kind.HOLISTIC, ("share",)),
    Function("mode", Kind.HOLISTIC, ("x", "deterministic"), optional=1),
)
_SYNONYMS = {
    "mean": "avg",
    "std": "stddev_samp",
    "stddev": "stddev_samp",
    "variance": "var_samp",
    "every": "bool_and",
    "some": "bool_or",
    "any": "bool_or",
    "array_agg": "collect_list",
    "string_agg": "listagg",
    "first_value": "first",
    "last_value": "last",
    "percentile_approx": "approx_percentile",
}
FUNCTIONS = {function.name: function for function in _ALL}
FUNCTIONS |= {synonym: FUNCTIONS[name] for synonym, name in _SYNONYMS.items()}
"""By their names, those that Spark also has for them among these."""
