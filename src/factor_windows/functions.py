"""Every aggregate function as data: its class, its partial states, and how they lift, combine and lower.

Lifts, combines and lowers are Spark SQL with placeholders: `:x`, `:y`, ... are the arguments, `:time` is the
event time, and a state goes by its own name. A lift is one aggregate call, perhaps with a FILTER, so that the
user's own FILTER can be added to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Kind(IntEnum):
    """How a function may be shared, from the most lenient to the strictest."""

    OVERLAP_SAFE = 1
    """Overlapping parts do no harm: reads from covers and partitions (Paper: Theorem 6)."""
    MERGEABLE = 2
    """Disjoint parts can be merged: reads from partitions (Paper: Theorem 5)."""
    HOLISTIC = 3
    """No part of bounded size helps: reads raw events only."""


@dataclass(frozen=True, slots=True)
class State:
    """One partial result that a node carries: made from events by `lift`, merged by `combine`."""

    name: str
    lift: str
    combine: str


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


def _itself(name: str) -> Function:
    """A function whose result is its own state, such as min."""
    return Function(name, Kind.OVERLAP_SAFE, ("x",), (State(name, f"{name}(:x)", f"{name}(:{name})"),), f":{name}")


def _added(name: str) -> Function:
    """A function whose parts are summed, such as count."""
    return Function(name, Kind.MERGEABLE, ("x",), (State(name, f"{name}(:x)", f"sum(:{name})"),), f":{name}")


def _chosen(name: str, parameters: tuple[str, ...], choose: str, by: str, *, optional: int = 0) -> Function:
    """A function that returns the value of one event: the one whose `by` is smallest or greatest."""
    states = (
        State("by", f"{choose}({by})", f"{choose}(:by)"),
        State("value", f"{choose}_by(:x, {by})", f"{choose}_by(:value, :by)"),
    )
    return Function(name, Kind.OVERLAP_SAFE, parameters, states, ":value", optional)


def _merged_mean(mean: str) -> str:
    """The mean of all parts: the plain mean of the parts' means, corrected by how these go with the parts' sizes."""
    return f"avg(:{mean}) + regr_sxy(:n, :{mean}) / sum(:n)"


def _merged_moment(moment: str, x: str, y: str) -> str:
    """The co-moment of all parts: sum(c) + sum(n * (x - overall x) * (y - overall y)), x and y being the parts' means.

    The textbook's difference of sums of squares loses all digits far from zero. Here only deviations from the plain
    means are multiplied, and Spark's own regr_sxy, which is careful about them, does it (docs/decisions.md).
    """
    together = f"regr_sxy(:n * :{y}, :{x}) - avg(:{y}) * regr_sxy(:n, :{x})"
    return f"sum(:{moment}) + {together} - regr_sxy(:n, :{x}) * regr_sxy(:n, :{y}) / sum(:n)"


_MOMENTS = (
    State("n", "count(:x)", "sum(:n)"),
    State("mean", "avg(CAST(:x AS DOUBLE))", _merged_mean("mean")),
    State("m2", "regr_sxx(:x, :x)", _merged_moment("m2", "mean", "mean")),
)
_COMOMENTS = (
    State("n", "regr_count(:y, :x)", "sum(:n)"),
    State("mean_x", "regr_avgx(:y, :x)", _merged_mean("mean_x")),
    State("mean_y", "regr_avgy(:y, :x)", _merged_mean("mean_y")),
    State("c", "regr_sxy(:y, :x)", _merged_moment("c", "mean_x", "mean_y")),
)
_SQUARES = (
    State("m2_x", "regr_sxx(:y, :x)", _merged_moment("m2_x", "mean_x", "mean_x")),
    State("m2_y", "regr_syy(:y, :x)", _merged_moment("m2_y", "mean_y", "mean_y")),
)


def _moments(name: str, lower: str) -> Function:
    return Function(name, Kind.MERGEABLE, ("x",), _MOMENTS, lower)


def _sketch(
    name: str, kind: Kind, parameters: tuple[str, ...], lift: str, combine: str, lower: str, optional: int
) -> Function:
    return Function(name, kind, parameters, (State("sketch", lift, combine),), lower, optional)


_ALL = (
    _itself("min"),
    _itself("max"),
    _itself("bool_and"),
    _itself("bool_or"),
    _itself("bit_and"),
    _itself("bit_or"),
    Function(
        "collect_set",
        Kind.OVERLAP_SAFE,
        ("x",),
        (State("set", "collect_set(:x)", "array_distinct(flatten(collect_list(:set)))"),),
        ":set",
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
    _chosen("first", ("x", "ignore_nulls"), "min", ":time", optional=1),
    _chosen("last", ("x", "ignore_nulls"), "max", ":time", optional=1),
    _chosen("min_by", ("x", "y"), "min", ":y"),
    _chosen("max_by", ("x", "y"), "max", ":y"),
    _added("count"),
    _added("count_if"),
    _added("sum"),
    Function(
        "avg",
        Kind.MERGEABLE,
        ("x",),
        (State("sum", "sum(:x)", "sum(:sum)"), State("n", "count(:x)", "sum(:n)")),
        "CASE WHEN :n > 0 THEN :sum / :n END",
    ),
    _moments("var_pop", "CASE WHEN :n > 0 THEN greatest(0.0D, :m2) / :n END"),
    _moments("var_samp", "CASE WHEN :n > 1 THEN greatest(0.0D, :m2) / (:n - 1) END"),
    _moments("stddev_pop", "CASE WHEN :n > 0 THEN sqrt(greatest(0.0D, :m2) / :n) END"),
    _moments("stddev_samp", "CASE WHEN :n > 1 THEN sqrt(greatest(0.0D, :m2) / (:n - 1)) END"),
    Function("covar_pop", Kind.MERGEABLE, ("x", "y"), _COMOMENTS, "CASE WHEN :n > 0 THEN :c / :n END"),
    Function("covar_samp", Kind.MERGEABLE, ("x", "y"), _COMOMENTS, "CASE WHEN :n > 1 THEN :c / (:n - 1) END"),
    Function(
        "corr",
        Kind.MERGEABLE,
        ("x", "y"),
        _COMOMENTS + _SQUARES,
        "CASE WHEN :n > 1 AND :m2_x > 0 AND :m2_y > 0 THEN :c / sqrt(:m2_x) / sqrt(:m2_y) END",
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
    Function("median", Kind.HOLISTIC, ("x",)),
    Function("percentile", Kind.HOLISTIC, ("x", "share", "frequency"), optional=1),
    Function("mode", Kind.HOLISTIC, ("x", "deterministic"), optional=1),
)
_SYNONYMS = {
    "mean": "avg",
    "std": "stddev_samp",
    "stddev": "stddev_samp",
    "variance": "var_samp",
    "every": "bool_and",
    "some": "bool_or",
    "first_value": "first",
    "last_value": "last",
    "percentile_approx": "approx_percentile",
}
FUNCTIONS = {function.name: function for function in _ALL}
FUNCTIONS |= {synonym: FUNCTIONS[name] for synonym, name in _SYNONYMS.items()}
