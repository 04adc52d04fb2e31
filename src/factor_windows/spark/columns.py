"""Aggregates and times as Spark columns: what depends on the types that a DataFrame has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from math import ceil, log2

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NumericType,
    ShortType,
    StringType,
    StructField,
    TimestampNTZType,
    TimestampType,
)
from sqlglot import exp, parse_one

from factor_windows.aggregates import Aggregate
from factor_windows.errors import QueryError
from factor_windows.expressions import VerbatimSpark, sql_of
from factor_windows.functions import Kind, State
from factor_windows.packs import Packing
from factor_windows.query import Query
from factor_windows.spark.trouble import first_sentence
from factor_windows.states import StateColumns

_KLL: dict[type[DataType], str] = {
    ByteType: "bigint",
    ShortType: "bigint",
    IntegerType: "bigint",
    LongType: "bigint",
    FloatType: "float",
    DoubleType: "double",
}
_FIXED_SIZE = (NumericType, BooleanType, DateType, TimestampType, TimestampNTZType)
_EPOCH_NTZ = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """One result: from the states by `lower`, or, for those that cannot be shared, `direct` from events."""

    name: str
    type: DataType
    lower: str
    direct: str
    states: tuple[str, ...]
    """The columns of the states that it is made from."""


@dataclass(frozen=True, slots=True)
class Types:
    """What a DataFrame says about a query: names and types, as the user's own query would have them."""

    keys: tuple[StructField, ...]
    time: DataType
    results: tuple[ResultColumn, ...]
    states: tuple[State, ...]
    """The partial states, with the names of their columns and, instead of placeholders, columns to combine."""
    shared: bool
    """Whether every aggregate can be computed from states here."""


def types_of(query: Query, events: DataFrame, prefix: str) -> Types:
    """Ask Spark, which only analyzes the query for this, and lay out the states."""
    try:
        # Names are asked for with the user's own words: written back, `x IS NOT NULL` would be another name.
        asked = [
            query.parsed_time.sql,
            *query.keys,
            *(text for each in query.parsed_aggregates for text in _read(each)),
        ]
        fields = iter(events.select(*(F.expr(text) for text in asked)).schema)
        results = events.agg(*(F.expr(aggregate) for aggregate in query.aggregates)).schema
    except AnalysisException as mistake:
        raise QueryError(f"Spark cannot read the query: {first_sentence(mistake)}") from None
    time = next(fields).dataType
    keys = tuple(islice(fields, len(query.keys)))
    if not isinstance(time, TimestampType | TimestampNTZType | DateType):
        raise QueryError(
            f"time {query.time!r} is of type {time.simpleString()}; it must be a timestamp, a timestamp_ntz or a date"
        )
    layout = StateColumns(f"{prefix}s")
    columns = []
    shared = True
    for aggregate, field in zip(query.parsed_aggregates, results, strict=True):
        types = [argument.dataType for argument in islice(fields, len(_read(aggregate)))]
        states = _typed_states(aggregate, field.dataType, types, events, f"`{prefix}t`")
        shared = shared and states is not None
        lower = "" if states is None else layout.add(aggregate, states, _typed_lower(aggregate, field.dataType, types))
        direct = aggregate.direct(time=f"`{prefix}t`")
        used = () if states is None else layout.used[-1]
        columns.append(ResultColumn(field.name, field.dataType, lower, direct, used))
    return Types(keys, time, tuple(columns), layout.states, shared)


def packing_of(query: Query, types: Types) -> Packing | None:
    """Say how the states of a query can be packed, now that their types are known."""
    packing = Packing.of(query)
    if packing is None or not all(isinstance(result.type, _FIXED_SIZE) for result in types.results):
        return None
    # Decimals grow with each addition that Spark is asked for.
    exact = not any(isinstance(result.type, DecimalType) for result in types.results)
    return replace(packing, folds=packing.folds and exact)


def _read(aggregate: Aggregate) -> list[str]:
    """List the arguments that have a type."""
    return [text for text in aggregate.arguments if text != "*"]


def _typed_states(
    aggregate: Aggregate, result: DataType, types: list[DataType], events: DataFrame, time: str
) -> list[State] | None:
    """Return the states with what depends on types put right, or nothing if the aggregate cannot be shared."""
    if aggregate.kind is Kind.HOLISTIC:
        return None
    states = list(aggregate.states(time=time))
    match aggregate.function.name:
        case "avg" if isinstance(result, DoubleType):
            return [replace(state, lift=_with_argument(state.lift, "CAST(:x AS DOUBLE)")) for state in states]
        case "approx_count_distinct":
            [sketch] = states
            plain = isinstance(types[0], IntegerType | LongType | StringType | BinaryType)
            argument = ":x" if plain else "CAST(:x AS STRING)"
            return [replace(sketch, lift=_with_argument(sketch.lift, argument, str(_hll_size(aggregate))))]
        case "approx_percentile":
            kind = _KLL.get(type(types[0]))
            if kind is None or not _has_function(events, f"kll_sketch_agg_{kind}"):
                return None
            [sketch] = states
            sized = _with_argument(sketch.lift, ":x", str(_kll_size(aggregate)))
            merge = _renamed(sketch.combine, f"kll_merge_agg_{kind}")
            return [replace(sketch, lift=_renamed(sized, f"kll_sketch_agg_{kind}"), combine=merge)]
    return states


def _typed_lower(aggregate: Aggregate, result: DataType, types: list[DataType]) -> str:
    match aggregate.function.name:
        case "approx_percentile":
            kind = _KLL[type(types[0])]
            quantile = f"kll_sketch_get_quantile_{kind}(:sketch, :share)"
            return f"CASE WHEN kll_sketch_get_n_{kind}(:sketch) > 0 THEN {quantile} END"
        case "avg" if isinstance(result, DecimalType) and isinstance(types[0], DecimalType):
            return _decimal_mean(result, types[0])
    return aggregate.function.lower


def _decimal_mean(result: DecimalType, argument: DecimalType) -> str:
    """Divide a decimal sum by a count and round once, to the result's scale, as Spark's own avg does.

    Spark's division of two decimals first cuts the quotient to a scale that depends on how wide the types are. So the
    whole part and the rest are divided apart, in types that leave them all the digits they need.
    """
    whole = f"DECIMAL({max(1, result.precision - result.scale - 1)}, 0)"
    rest = f"DECIMAL({min(38, 19 + argument.scale)}, {argument.scale})"
    fraction = (
        f"CAST(CAST(:sum % :n AS {rest}) / CAST(:n AS DECIMAL(19, 0)) AS DECIMAL({result.scale + 1}, {result.scale}))"
    )
    return f"CASE WHEN :n > 0 THEN CAST((:sum - :sum % :n) / :n AS {whole}) + {fraction} END"


def _call(lift: str) -> tuple[exp.Expr, exp.Anonymous]:
    """Return a parsed lift, and the one aggregate call in it."""
    tree = parse_one(lift, dialect=VerbatimSpark)
    call = tree.this if isinstance(tree, exp.Filter) else tree
    assert isinstance(call, exp.Anonymous)
    return tree, call


def _with_argument(lift: str, argument: str, *more: str) -> str:
    """Change the first argument of a lift, and add constants after it."""
    tree, call = _call(lift)
    first = parse_one(argument, dialect=VerbatimSpark)
    filled = exp.replace_placeholders(first, x=call.expressions[0])
    call.set("expressions", [filled, *(parse_one(each, dialect=VerbatimSpark) for each in more)])
    return sql_of(tree)


def _renamed(lift: str, name: str) -> str:
    tree, call = _call(lift)
    call.set("this", name)
    return sql_of(tree)


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


def microseconds(sql: str, time: DataType) -> str:
    """Return a time as Spark's window() counts it: microseconds since 1970."""
    if isinstance(time, TimestampNTZType):
        # No function turns a time without a zone into a number without going through the session's zone.
        return (
            f"unix_date(CAST({sql} AS DATE)) * 86400000000L + hour({sql}) * 3600000000L + minute({sql}) * 60000000L"
            f" + CAST(extract(SECOND FROM {sql}) * 1000000 AS BIGINT)"
        )
    return f"unix_micros(CAST({sql} AS TIMESTAMP))"


def timestamp(micros: str, time: DataType) -> str:
    """Return microseconds as a time of the same kind as the events'."""
    if isinstance(time, TimestampNTZType):
        return f"{_EPOCH_NTZ} + INTERVAL '0.000001' SECOND * ({micros})"
    return f"timestamp_micros({micros})"
