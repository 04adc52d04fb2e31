"""Every aggregate function as data: its partial states, how they lower to its result, and its syntax."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

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
    Fold,
    Weight,
    added,
    chosen,
    sum_and_count,
    varies,
)
from factor_windows.functions.state import Kind as Kind
from factor_windows.functions.state import State as State


class Engines(IntEnum):
    """The engines that can merge the states of a function, from fewest to most."""

    TYPED_SPARK = 1
    """Spark, and only if the types of the arguments are known."""
    SPARK = 2
    """Spark, which alone has the sketches, or arrays of arrays."""
    SPARK_AND_DUCKDB = 3
    ALL = 4


@dataclass(frozen=True, slots=True)
class Function:
    """An aggregate function: `lower` turns its combined states into the result; without states it is holistic."""

    name: str
    parameters: tuple[str, ...]
    states: tuple[State, ...] = ()
    lower: str = ""
    optional: int = 0
    """The number of parameters at the end that may be omitted."""
    default: str = ""
    """The default of the last parameter, in SQL; empty if there is none."""
    variadic: bool = False
    """Whether it takes several values, or `*`."""
    takes_nulls: bool = False
    """Whether it takes IGNORE NULLS and RESPECT NULLS."""
    order: Literal["", "rows", "value"] = ""
    """What WITHIN GROUP (ORDER BY ...) gives, if it is allowed: the order of `rows`, or the `value`."""
    engines: Engines = Engines.SPARK_AND_DUCKDB
    counted: bool = False
    """Whether it has no states of its own, but is computed from how often each value occurs."""
    own_weight: Weight | None = None
    """What Spark's own function keeps for each group, if not the states."""

    @property
    def kind(self) -> Kind:
        """Return how the function may be shared: the kind of its strictest state."""
        return max((state.kind for state in self.states), default=Kind.COUNTED if self.counted else Kind.HOLISTIC)

    @property
    def by_time(self) -> bool:
        """Say whether the function depends on the order of event times."""
        return any(state.by_time for state in self.states)


def _itself(name: str, *, fold: Fold = "", kind: Kind = Kind.OVERLAP_SAFE) -> Function:
    """Return a function whose result is its own state, such as bool_or."""
    return Function(name, ("x",), (State(name, f"{name}(:x)", f"{name}(:{name})", True, fold, kind),), f":{name}")


def _by(choose: str, by: str, *, by_time: bool = False) -> tuple[State, ...]:
    """Return the states for the value of one event: the one whose `by` is smallest or greatest."""
    value = State("value", f"{choose}_by(:x, {by})", f"{choose}_by(:value, :by)", kind=Kind.OVERLAP_SAFE)
    return chosen("by", choose, by, by_time=by_time), value


# Weights are measured (docs/decisions.md).
_LIST_WEIGHT = Weight(5.0, is_object=True)
_LIST = (State("list", "collect_list(:x)", "flatten(collect_list(:list))", weight=_LIST_WEIGHT),)
"""All values that are not null, in the order of parts; Spark promises no order."""
_SET = (
    State(
        "set",
        "collect_set(:x)",
        "array_distinct(flatten(collect_list(:set)))",
        kind=Kind.OVERLAP_SAFE,
        weight=_LIST_WEIGHT,
    ),
)
# A part in which no event passes a FILTER has null, which must not be mistaken for the value of an event.
_ANY_VALUE = (State("value", "any_value(:x)", "any_value(:value, TRUE)", kind=Kind.OVERLAP_SAFE),)
_HLL_WEIGHT, _KLL_WEIGHT = Weight(8.0, is_object=True), Weight(12.0, per_accuracy=0.0075, is_object=True)
_HLL = (State("sketch", "hll_sketch_agg(:x)", "hll_union_agg(:sketch)", kind=Kind.OVERLAP_SAFE, weight=_HLL_WEIGHT),)
_KLL = (State("sketch", "kll_sketch_agg(:x)", "kll_merge_agg(:sketch)", weight=_KLL_WEIGHT),)
_REGISTERS, _DIGEST, _BUFFER = Weight(4.0), Weight(12.0, is_object=True), Weight(2.0, is_object=True)
"""What Spark's own functions keep instead."""
_LINE = (*COMOMENTS, SQUARE_X, *ENDS_X)
_CORRELATION = (*COMOMENTS, SQUARE_X, SQUARE_Y, *ENDS_X, *ENDS_Y)
_MEAN = "CASE WHEN :n > 0 THEN :sum / :n END"
_QUANTILE = "kll_sketch_get_quantile(:sketch, :share)"
_JOINED = "CASE WHEN size(:list) > 0 THEN array_join(:list, coalesce(:delimiter, '')) END"
_X_VARIES, _Y_VARIES = varies("x"), varies("y")
_CORR = f"CASE WHEN :n > 1 AND {_X_VARIES} AND {_Y_VARIES} THEN :c / sqrt(:m2_x) / sqrt(:m2_y) END"
_R2 = f"CASE WHEN {_X_VARIES} AND {_Y_VARIES} THEN :c / :m2_x * :c / :m2_y WHEN {_X_VARIES} THEN 1.0D END"
_X, _XY, _YX = ("x",), ("x", "y"), ("y", "x")
_VALUE, _VALUE_BY = ("x", "ignore_nulls"), ("x", "y", "number")
_TYPED, _SPARK, _EVERY = Engines.TYPED_SPARK, Engines.SPARK, Engines.ALL

_ALL = (
    Function("min", _X, (chosen("min", "min", ":x"),), ":min", engines=_EVERY),
    Function("max", _X, (chosen("max", "max", ":x"),), ":max", engines=_EVERY),
    _itself("bool_and", fold="least"),
    _itself("bool_or", fold="greatest"),
    _itself("bit_and"),
    _itself("bit_or"),
    _itself("bit_xor", kind=Kind.MERGEABLE),
    Function("collect_set", _X, _SET, ":set", engines=_SPARK, own_weight=_BUFFER),
    Function("collect_list", _X, _LIST, ":list", takes_nulls=True, engines=_SPARK, own_weight=_BUFFER),
    Function(
        "listagg",
        ("x", "delimiter"),
        _LIST,
        _JOINED,
        1,
        default="NULL",
        order="rows",
        engines=_TYPED,
        own_weight=_BUFFER,
    ),
    Function(
        "approx_count_distinct",
        ("x", "deviation"),
        _HLL,
        "hll_sketch_estimate(:sketch)",
        1,
        engines=_SPARK,
        own_weight=_REGISTERS,
    ),
    Function("any_value", _VALUE, _ANY_VALUE, ":value", 1, takes_nulls=True),
    Function("first", _VALUE, _by("min", ":time", by_time=True), ":value", 1, takes_nulls=True),
    Function("last", _VALUE, _by("max", ":time", by_time=True), ":value", 1, takes_nulls=True),
    Function("min_by", _VALUE_BY, _by("min", ":y"), ":value", 1),
    Function("max_by", _VALUE_BY, _by("max", ":y"), ":value", 1),
    Function("count", _X, (added("count", "count(:x)"),), ":count", variadic=True, engines=_EVERY),
    Function("count_if", _X, (added("count_if", "count_if(:x)"),), ":count_if"),
    Function("sum", _X, (added("sum", "sum(:x)"),), ":sum", engines=_EVERY),
    Function("avg", _X, sum_and_count(), _MEAN, engines=_EVERY),
    Function("try_sum", _X, sum_and_count(careful=True), ":sum"),
    Function("try_avg", _X, sum_and_count(careful=True), _MEAN),
    Function("var_pop", _X, MOMENTS, "CASE WHEN :n > 0 THEN greatest(0.0D, :m2) / :n END"),
    Function("var_samp", _X, MOMENTS, "CASE WHEN :n > 1 THEN greatest(0.0D, :m2) / (:n - 1) END"),
    Function("stddev_pop", _X, MOMENTS, "CASE WHEN :n > 0 THEN sqrt(greatest(0.0D, :m2) / :n) END"),
    Function("stddev_samp", _X, MOMENTS, "CASE WHEN :n > 1 THEN sqrt(greatest(0.0D, :m2) / (:n - 1)) END"),
    Function("covar_pop", _XY, COMOMENTS, "CASE WHEN :n > 0 THEN :c / :n END"),
    Function("covar_samp", _XY, COMOMENTS, "CASE WHEN :n > 1 THEN :c / (:n - 1) END"),
    Function("corr", _XY, _CORRELATION, _CORR),
    Function("regr_count", _YX, (PAIRS,), ":n"),
    Function("regr_avgx", _YX, sum_and_count(":x", of=":y"), _MEAN),
    Function("regr_avgy", _YX, sum_and_count(":y", of=":x"), _MEAN),
    Function("regr_sxx", _YX, (PAIRS, MEAN_X, SQUARE_X), "CASE WHEN :n > 0 THEN greatest(0.0D, :m2_x) END"),
    Function("regr_syy", _YX, (PAIRS, MEAN_Y, SQUARE_Y), "CASE WHEN :n > 0 THEN greatest(0.0D, :m2_y) END"),
    Function("regr_sxy", _YX, COMOMENTS, ":c"),
    Function("regr_slope", _YX, _LINE, f"CASE WHEN {_X_VARIES} THEN :c / :m2_x END"),
    Function("regr_intercept", _YX, _LINE, f"CASE WHEN {_X_VARIES} THEN :mean_y - :c / :m2_x * :mean_x END"),
    Function("regr_r2", _YX, _CORRELATION, _R2),
    Function("approx_percentile", ("x", "share", "accuracy"), _KLL, _QUANTILE, 1, engines=_TYPED, own_weight=_DIGEST),
    Function("kurtosis", _X),
    Function("skewness", _X),
    Function("median", _X, counted=True),
    Function("percentile", ("x", "share", "frequency"), optional=1, counted=True),
    Function("percentile_cont", ("share",), order="value", counted=True),
    Function("percentile_disc", ("share",), order="value", counted=True),
    Function("mode", ("x", "deterministic"), optional=1, order="value", counted=True),
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
"""The functions by name, including Spark's synonyms."""
