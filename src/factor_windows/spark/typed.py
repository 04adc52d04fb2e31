"""The partial states of an aggregate, and their lower, where they depend on the types of a DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, log2

from pyspark.sql import DataFrame
from pyspark.sql import types as T
from sqlglot import exp

from factor_windows.functions.aggregate import Aggregate
from factor_windows.functions.columns import IDENTITY
from factor_windows.functions.expression import sql_of
from factor_windows.functions.state import ENDS_X, ENDS_Y, HALVES, JOINED_HALVES, added, guarded, sum_and_count
from factor_windows.functions.table import Kind, State

_KLL: dict[type[T.DataType], str] = {T.FloatType: "float", T.DoubleType: "double"}
_KLL |= dict.fromkeys((T.ByteType, T.ShortType, T.IntegerType, T.LongType), "bigint")
_OTHER_ARGUMENT = {"regr_avgx": (":x", ":y"), "regr_avgy": (":y", ":x")}
_INTERVAL_OVERFLOW: dict[type[T.DataType], str] = {
    T.DayTimeIntervalType: "INTERVAL '106751991' DAY + INTERVAL '106751991' DAY * least(:n, 1) < INTERVAL '0' DAY",
    T.YearMonthIntervalType: "INTERVAL '2147483647' MONTH + INTERVAL '1' MONTH * least(:n, 1) < INTERVAL '0' MONTH",
}
"""Sums of intervals that overflow if there is any value, with the error that Spark gives in every mode."""

_CORRELATION = "CASE WHEN :n > 1 AND :m2_x > 0 AND :m2_y > 0 THEN :c / sqrt(:m2_x) / sqrt(:m2_y) END"

Typed = tuple[Sequence[State], str]
"""Templates of states and of their lower."""


def typed_states(
    aggregate: Aggregate, result: T.DataType, types: list[T.DataType], events: DataFrame, *, earlier: bool = False
) -> Typed | None:
    """Return the states and the lower that suit the types, or `None` if the aggregate cannot be shared.

    A stream continues with the states of its checkpoint, which may be those of an `earlier` version.
    """
    if aggregate.kind >= Kind.COUNTED:
        return None
    function = aggregate.function
    if earlier and (found := _earlier(aggregate, result, types, events)) is not None:
        return found
    match function.name:
        case "sum":
            return _sum(types[0])
        case "avg" | "try_avg":
            return _mean(result, types[0], ":x", tries=function.name == "try_avg")
        case "regr_avgx" | "regr_avgy":
            argument, other = _OTHER_ARGUMENT[function.name]
            return _mean(result, types[function.parameters.index(argument[1:])], argument, of=other)
        case "listagg" if isinstance(types[0], T.BinaryType):
            return None
        case "listagg" if not isinstance(types[0], T.StringType):
            [listed] = function.states
            return [replace(listed, lift="collect_list(CAST(:x AS STRING))")], function.lower
        case "approx_count_distinct" if has_maps(types[0]):
            return None
        case "approx_count_distinct":
            [sketch] = function.states
            plain = isinstance(types[0], T.IntegerType | T.LongType | T.StringType | T.BinaryType)
            lift = f"hll_sketch_agg({':x' if plain else IDENTITY}, {_hll_size(aggregate)})"
            return [replace(sketch, lift=lift)], function.lower
        case "approx_percentile":
            return _percentile(aggregate, types[0], events)
    return function.states, function.lower


def _earlier(aggregate: Aggregate, result: T.DataType, types: list[T.DataType], events: DataFrame) -> Typed | None:
    """Return the states of version 0.1.0, where they were different."""
    function = aggregate.function
    match function.name:
        case "sum":
            return [added("sum", "sum(:x)")], ":sum"
        case "avg" if isinstance(result, T.DecimalType) and isinstance(types[0], T.DecimalType):
            return sum_and_count(), _decimal_mean(result, types[0], cast="CAST")
        case "avg" if isinstance(result, T.DoubleType):
            return [added("sum", "sum(CAST(:x AS DOUBLE))"), added("n", "count(CAST(:x AS DOUBLE))")], function.lower
        case "approx_count_distinct" if not isinstance(
            types[0], T.IntegerType | T.LongType | T.StringType | T.BinaryType
        ):
            [sketch] = function.states
            return [replace(sketch, lift=f"hll_sketch_agg(CAST(:x AS STRING), {_hll_size(aggregate)})")], function.lower
        case "covar_pop" | "covar_samp" | "corr":
            ends = {state.name for state in (*ENDS_X, *ENDS_Y)}
            lifts = {"mean_x": "regr_avgx(:y, :x)", "mean_y": "regr_avgy(:y, :x)"}
            kept = [state for state in function.states if state.name not in ends]
            lower = _CORRELATION if function.name == "corr" else function.lower
            return [replace(state, lift=lifts.get(state.name, state.lift)) for state in kept], lower
        case "approx_percentile" if kind := _KLL.get(type(types[0])):
            if _has_function(events, f"kll_sketch_agg_{kind}"):
                return _plain_percentile(aggregate, kind)
    return None


def _sum(argument: T.DataType) -> Typed:
    match argument:
        case T.LongType():
            return HALVES, JOINED_HALVES
        case T.DecimalType() if _is_wide(argument):
            return sum_and_count(careful=True), guarded(":sum")
        case T.DayTimeIntervalType() | T.YearMonthIntervalType():
            return sum_and_count(careful=True), guarded(":sum", _INTERVAL_OVERFLOW[type(argument)])
    return [added("sum", "sum(:x)")], ":sum"


def _mean(result: T.DataType, argument: T.DataType, name: str, *, of: str = "", tries: bool = False) -> Typed:
    mean = "CASE WHEN :n > 0 THEN :sum / :n END"
    match result:
        case T.DecimalType() if isinstance(argument, T.DecimalType):
            mean = _decimal_mean(result, argument, cast="TRY_CAST" if tries else "CAST")
            if not _is_wide(argument):
                return sum_and_count(name, of=of), mean
            return sum_and_count(name, of=of, careful=True), mean if tries else guarded(mean)
        case T.DayTimeIntervalType() | T.YearMonthIntervalType():
            lower = mean if tries else guarded(mean, _INTERVAL_OVERFLOW[type(result)])
            return sum_and_count(name, of=of, careful=True), lower
    return sum_and_count(f"CAST({name} AS DOUBLE)", of=of), mean


def _is_wide(decimal: T.DecimalType) -> bool:
    """Say whether sums of such decimals can overflow: Spark gives them up to ten digits more, within its maximum."""
    return decimal.precision + 10 > 38


def _decimal_mean(result: T.DecimalType, argument: T.DecimalType, *, cast: str) -> str:
    """Divide a decimal sum by a count and round once, to the result's scale, as Spark's own avg does.

    Spark's division of two decimals first cuts the quotient to a scale that depends on the types' precision. So the
    whole part and the remainder are divided separately, in types that keep all the digits they need.
    """
    digits = max(1, result.precision - result.scale - 1)
    rest = f"DECIMAL({min(38, 19 + argument.scale)}, {argument.scale})"
    fraction = (
        f"CAST(CAST(:sum % :n AS {rest}) / CAST(:n AS DECIMAL(19, 0)) AS DECIMAL({result.scale + 1}, {result.scale}))"
    )
    parts = ":sum - :sum % :n", ":n" if result.precision < 38 else ":n * 1000000BD"
    whole = f"try_divide({', '.join(parts)})" if cast == "TRY_CAST" else f"({parts[0]}) / ({parts[1]})"
    if result.precision == 38:
        # Spark keeps six digits after the point of any quotient, and the widest decimals have no room for them: so they
        # are divided by a million more, which those six digits hold exactly.
        whole = f"(floor({whole}) * 1000000BD + CAST(({whole} - floor({whole})) * 1000000BD AS DECIMAL(7, 0)))"
    value = f"CAST({whole} AS DECIMAL({digits}, 0)) + {fraction}"
    if result.precision == 38:
        # A sum of two such decimals would lose its last digit if the whole part used all the digits that it may have.
        carried = f"CAST(abs({whole}) AS DECIMAL(38, 0)) + CAST(floor(abs({fraction})) AS DECIMAL(1, 0))"
        text = (
            f"concat(CASE WHEN :sum < 0 THEN '-' ELSE '' END, CAST({carried} AS STRING), {_digits(fraction, result)})"
        )
        longest = f"{cast}({text} AS DECIMAL(38, {result.scale}))"
        value = f"CASE WHEN abs({whole}) < CAST('1E{digits}' AS DECIMAL(38, 0)) THEN {value} ELSE {longest} END"
    return f"CASE WHEN :n > 0 THEN {value} END"


def _digits(fraction: str, result: T.DecimalType) -> str:
    """Write the digits of a fraction after its whole part."""
    return f"substr(to_char(abs({fraction}), '0.{'0' * result.scale}'), 2)"


def _percentile(aggregate: Aggregate, argument: T.DataType, events: DataFrame) -> Typed | None:
    kind = _KLL.get(type(argument))
    if kind is None or not _has_function(events, f"kll_sketch_agg_{kind}"):
        return None
    if kind == "bigint":
        return _plain_percentile(aggregate, kind)
    merge, quantile = f"kll_merge_agg_{kind}(:sketch)", f"kll_sketch_get_quantile_{kind}"
    count, size = f"kll_sketch_get_n_{kind}(:sketch)", _kll_size(aggregate)

    def among_nans(share: str) -> str:
        """Return NaN, the greatest value, where the rank is that of a NaN; the sketch stores NaN as infinity."""
        last = f"ceil({share} * {count}) > {count} - :nans OR {count} = :nans"
        value = f"CASE WHEN {last} THEN double('NaN') ELSE {quantile}(:sketch, {share}) END"
        # It is never null, and Spark must know it: Spark's own arrays of quantiles contain no nulls.
        return f"coalesce({value}, 0.0D)"

    tree = aggregate.constants["share"]
    shares = [among_nans(sql_of(share)) for share in (tree.expressions if isinstance(tree, exp.Array) else [tree])]
    values = f"array({', '.join(shares)})" if isinstance(tree, exp.Array) else shares[0]
    lift = f"kll_sketch_agg_{kind}(nanvl(:x, {kind}('Infinity')), {size})"
    states = [State("sketch", lift, merge), added("nans", "count_if(isnan(:x))")]
    return states, f"CASE WHEN {count} > 0 THEN {values} END"


def _plain_percentile(aggregate: Aggregate, kind: str) -> Typed:
    """Return the sketch of values that include no NaN."""
    lift = f"kll_sketch_agg_{kind}(:x, {_kll_size(aggregate)})"
    quantile = f"kll_sketch_get_quantile_{kind}(:sketch, :share)"
    states = [State("sketch", lift, f"kll_merge_agg_{kind}(:sketch)")]
    return states, f"CASE WHEN kll_sketch_get_n_{kind}(:sketch) > 0 THEN {quantile} END"


def has_maps(kind: T.DataType) -> bool:
    """Say whether values of a type contain maps, which Spark can group by, but neither sort nor hash."""
    if isinstance(kind, T.ArrayType):
        return has_maps(kind.elementType)
    if isinstance(kind, T.StructType):
        return any(has_maps(field.dataType) for field in kind)
    return isinstance(kind, T.MapType)


def _hll_size(aggregate: Aggregate) -> int:
    """Return the sketch's lgConfigK for a relative standard deviation, which is about 1.04 / sqrt(2^lgConfigK)."""
    deviation = float(aggregate.arguments[1]) if len(aggregate.arguments) > 1 else 0.05
    return min(21, max(12, ceil(2 * log2(1.04 / deviation))))


def _kll_size(aggregate: Aggregate) -> int:
    """Return the sketch's k for Spark's accuracy: the error in rank is about 2.5 / k, and should be 1 / accuracy."""
    accuracy = int(aggregate.arguments[2]) if len(aggregate.arguments) > 2 else 10_000
    return min(65_535, max(8, ceil(2.5 * accuracy)))


def _has_function(events: DataFrame, name: str) -> bool:
    return bool(events.sparkSession.catalog.functionExists(name))
