"""Partial states for text that is written without knowing types: right for every type that an argument may have."""

from __future__ import annotations

from dataclasses import replace

from factor_windows.functions.aggregate import Aggregate
from factor_windows.functions.columns import IDENTITY
from factor_windows.functions.table import FUNCTIONS, Engines, Function, Kind, State

_DECIMALS = State("decimals", "count(CASE WHEN typeof(:x) LIKE 'decimal%' THEN :x END)", "sum(:decimals)")
"""How many decimals were added up. Spark knows types before it runs: for others nothing of this is left to compute."""


def _sum(name: str, lift: str) -> State:
    """A sum that stays null once a part of it is: outside ANSI mode a decimal without room for its digits is null."""
    return State(name, lift, f"CASE WHEN count_if(:decimals > 0 AND :{name} IS NULL) = 0 THEN sum(:{name}) END")


_UNTYPED: dict[str, Function] = {
    "sum": replace(FUNCTIONS["sum"], states=(_DECIMALS, _sum("sum", "sum(:x)"))),
    # Spark's own mean adds up decimals as they are, and whole numbers as floating ones, which do not overflow.
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
    # Text would not do: the two instants of a repeated hour are the same text. Spark's own function goes by this hash.
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
