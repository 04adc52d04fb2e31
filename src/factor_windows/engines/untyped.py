"""Partial states for text that is written without knowing types: correct for every type that an argument may have."""

from __future__ import annotations

from dataclasses import replace

from factor_windows.functions.aggregate import Aggregate
from factor_windows.functions.columns import IDENTITY
from factor_windows.functions.table import FUNCTIONS, Engines, Function, Kind, State

_DECIMALS = State("decimals", "count(CASE WHEN typeof(:x) LIKE 'decimal%' THEN :x END)", "sum(:decimals)")
"""The number of decimals added. Spark knows types before it runs: for others, nothing of this remains to compute."""


def _sum(name: str, lift: str) -> State:
    """Return a sum that stays null once a part is: outside ANSI mode, a decimal that does not fit is null."""
    return State(name, lift, f"CASE WHEN count_if(:decimals > 0 AND :{name} IS NULL) = 0 THEN sum(:{name}) END")


_UNTYPED: dict[str, Function] = {
    "sum": replace(FUNCTIONS["sum"], states=(_DECIMALS, _sum("sum", "sum(:x)"))),
    # Spark's own mean adds decimals exactly, and integers as floating-point numbers, which do not overflow.
    "avg": replace(
        FUNCTIONS["avg"],
        states=(
            State("n", "count(:x)", "sum(:n)"),
            _DECIMALS,
            _sum("exact", "sum(CASE WHEN typeof(:x) LIKE 'decimal%' THEN :x END)"),
            State("floating", "sum(CASE WHEN NOT typeof(:x) LIKE 'decimal%' THEN :x / 1 END)", "sum(:floating)"),
        ),
        lower="CASE WHEN :n = 0 THEN NULL WHEN typeof(:exact) LIKE 'decimal%' THEN :exact / :n ELSE :floating / :n END",
    ),
    # Text would not work: the two instants of a repeated hour have the same text. Spark's own function uses this hash.
    "approx_count_distinct": replace(
        FUNCTIONS["approx_count_distinct"],
        states=(replace(FUNCTIONS["approx_count_distinct"].states[0], lift=f"hll_sketch_agg({IDENTITY})"),),
    ),
}


def untyped(aggregate: Aggregate) -> Aggregate:
    """Return an aggregate with states that suit every type on Spark.

    >>> [state.lift for state in untyped(Aggregate.read("sum(v) FILTER (WHERE ok)")).states(time="ts")]
    ["count(CASE WHEN typeof(v) LIKE 'decimal%' THEN v END) FILTER(WHERE ok)", 'sum(v) FILTER(WHERE ok)']
    """
    return replace(aggregate, function=_UNTYPED.get(aggregate.function.name, aggregate.function))


def is_shared(aggregate: Aggregate, dialect: str) -> bool:
    """Say whether an aggregate has partial states that this engine can merge without knowing types."""
    least = Engines.SPARK if dialect == "spark" else Engines.SPARK_AND_DUCKDB
    return aggregate.kind < Kind.COUNTED and aggregate.function.engines >= least
