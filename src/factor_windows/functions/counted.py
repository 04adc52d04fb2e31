"""Functions computed from how often each value occurs: percentiles, the mode, and all functions of DISTINCT values.

Their partial results are counts by value, one row for each value, which merge as any count does (docs/theory.md). The
final result, made from all rows of an instance, is one expression over aggregates, in which `:x` is the value and `:n`
its count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from factor_windows.functions.expression import parse_once, sql_of

if TYPE_CHECKING:
    from factor_windows.functions.aggregate import Aggregate

_OTHERWISE_DISTINCT = {"any_value", "first", "last", "listagg", "mode"}
"""Functions whose DISTINCT form differs from the function of the distinct non-null values."""
_CONSTANTS = ("share", "accuracy", "deviation")
_KNOWN = "NOT :x IS NULL"
_PAIRS = f"collect_list(named_struct('x', :x, 'n', :n)) FILTER (WHERE {_KNOWN} AND :n > 0)"
_ALL = f"sum(:n) FILTER (WHERE {_KNOWN})"


@dataclass(frozen=True, slots=True)
class Counted:
    """How an aggregate is computed from the rows of values: `merged` over all of them."""

    values: tuple[str, ...]
    """The arguments that make up a value; it does not count if any of them is null."""
    merged: str
    """A template over `:x` and, if it uses counts, `:n`; with several arguments, over `:x0`, `:x1`, ..."""
    frequency: str = ""
    """How often each event counts, if not once."""


def follow_from_counts(aggregate: Aggregate) -> Counted | None:
    """Return how an aggregate is computed from value counts, if it can be.

    >>> from factor_windows.functions.aggregate import Aggregate
    >>> follow_from_counts(Aggregate.read("count(DISTINCT a, b)"))
    Counted(values=('a', 'b'), merged='count(:x0, :x1)', frequency='')
    >>> follow_from_counts(Aggregate.read("percentile(v, 0.9)")).merged
    'percentile(:x, 0.9, :n)'
    >>> follow_from_counts(Aggregate.read("kurtosis(v)"))
    """
    if aggregate.distinct:
        return _of_distinct(aggregate)
    name, arguments = aggregate.function.name, aggregate.arguments
    value = (aggregate.ordered_by,) if aggregate.ordered_by else arguments[:1]
    match name:
        case "median":
            return Counted(value, "percentile(:x, 0.5D, :n)")
        case "percentile":
            return Counted(value, f"percentile(:x, {arguments[1]}, :n)", *arguments[2:])
        case "percentile_cont" if aggregate.ordered_by and aggregate.descending:
            return Counted(value, _shares(arguments[0], _from_the_top))
        case "percentile_cont" if aggregate.ordered_by:
            return Counted(value, f"percentile(:x, {arguments[0]}, :n)")
        case "percentile_disc" if aggregate.ordered_by:
            return Counted(value, _shares(arguments[0], _last_first if aggregate.descending else _first_that_reaches))
        case "mode" if aggregate.ordered_by or not aggregate.whole:
            # Among equally frequent values, the smallest is as good as any, where any will do.
            last = aggregate.ordered_by and aggregate.descending
            most = "max_by(:x, struct(:n, :x))" if last else "min_by(:x, struct(-:n, :x))"
            return Counted(value, f"{most} FILTER (WHERE {_KNOWN} AND :n > 0)")
    return None


def _of_distinct(aggregate: Aggregate) -> Counted | None:
    """Return f over the rows of values, which is exactly f(DISTINCT x)."""
    function, arguments = aggregate.function, aggregate.arguments
    passing = " FILTER (WHERE :n > 0)" if aggregate.filter else ""
    if aggregate.whole or function.name in _OTHERWISE_DISTINCT:
        return None
    if function.name == "count":
        places = [":x"] if len(arguments) == 1 else [f":x{place}" for place in range(len(arguments))]
        return Counted(arguments, f"count({', '.join(places)}){passing}")
    if any(name not in _CONSTANTS for name in function.parameters[1 : len(arguments)]):
        return None
    return Counted(arguments[:1], f"{function.name}({', '.join([':x', *arguments[1:]])}){passing}")


def _shares(share: str, write: Callable[[str], str]) -> str:
    """Write the value at one share, or an array of the values at several shares."""
    tree = parse_once(share)
    if not isinstance(tree, exp.Array):
        return f"CASE WHEN {_ALL} > 0 THEN {write(share)} END"
    # None of them is null, and Spark must know it for the type to be the same as its own.
    each = ", ".join(f"coalesce({write(sql_of(one))}, 0D)" for one in tree.expressions)
    return f"CASE WHEN {_ALL} > 0 THEN array({each}) END"


def _from_the_top(share: str) -> str:
    """Return a percentile of values in descending order: that of the negated values, with the sign changed back.

    Both interpolate between the same numbers except for their signs, so no digit is lost. NaN, the greatest value,
    comes first and has no negative; among the negated numbers it takes the place of the least.
    """
    value = "CAST(:x AS DOUBLE)"
    turned = f"percentile(CASE WHEN isnan({value}) THEN double('-Infinity') ELSE -{value} END, {share}, :n)"
    nans = f"coalesce(sum(:n) FILTER (WHERE isnan({value})), 0L)"
    return f"CASE WHEN floor(({_ALL} - 1) * double({share})) < {nans} THEN double('NaN') ELSE 0D - {turned} END"


def _first_that_reaches(share: str, pairs: str = f"array_sort({_PAIRS})") -> str:
    """Return the first value, in order, at which a share of all values is reached."""
    needed = f"CAST(ceil({_ALL} * double({share})) AS BIGINT)"
    start = f"named_struct('least', {needed}, 'n', 0L, 'x', CAST(NULL AS DOUBLE))"
    more = "named_struct('least', a.least, 'n', a.n + p.n, 'x', CAST(p.x AS DOUBLE))"
    taken = f"(a, p) -> CASE WHEN a.n > 0 AND a.n >= a.least THEN a ELSE {more} END"
    return f"aggregate({pairs}, {start}, {taken}, a -> a.x)"


def _last_first(share: str) -> str:
    return _first_that_reaches(share, f"reverse(array_sort({_PAIRS}))")
