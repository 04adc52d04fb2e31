"""Aggregation buffers: the columns in which Spark keeps aggregate functions in a stream's state, and their meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from factor_windows.functions.expression import fill_template, sql_of, tree_of


@dataclass(frozen=True, slots=True)
class Buffer:
    """The columns of one function, by Spark's own names, and the expression of its value."""

    columns: tuple[str, ...]
    value: str


_COUNT = (Buffer(("count",), ":count"),)
_LEAST, _GREATEST = (Buffer(("min",), ":min"),), (Buffer(("max",), ":max"),)
# Sums that may overflow, or are decimals, are distinguished from the sum of no values.
_SUM = (Buffer(("sum", "isEmpty"), "CASE WHEN NOT :isEmpty THEN :sum END"), Buffer(("sum",), ":sum"))
_MEAN = (Buffer(("sum", "count"), "CASE WHEN :count > 0 THEN :sum / :count END"),)
_CHOSEN = (Buffer(("valueWithExtremumOrdering", "extremumOrdering"), ":valueWithExtremumOrdering"),)
_MOMENT = (Buffer(("n", "avg", "m2"), "CASE WHEN :n > 0 THEN :m2 END"),)
_COMOMENT = (Buffer(("n", "xAvg", "yAvg", "ck"), "CASE WHEN :n > 0 THEN :ck END"),)

BUFFERS = {
    **dict.fromkeys(("count", "count_if", "regr_count"), _COUNT),
    **dict.fromkeys(("sum", "try_sum"), _SUM),
    **dict.fromkeys(("avg", "regr_avgx", "regr_avgy"), _MEAN),
    **dict.fromkeys(("min", "bool_and"), _LEAST),
    **dict.fromkeys(("max", "bool_or"), _GREATEST),
    **{name: (Buffer((name,), f":{name}"),) for name in ("bit_and", "bit_or", "bit_xor")},
    **dict.fromkeys(("min_by", "max_by"), _CHOSEN),
    "any_value": (Buffer(("first", "valueSet"), ":first"),),
    **dict.fromkeys(("regr_sxx", "regr_syy"), _MOMENT),
    "regr_sxy": _COMOMENT,
}
"""The buffers that a function may have, longest first."""


def column(place: int) -> str:
    """Name a column of a state by its position: Spark gives many of them the same name."""
    return f"b{place}"


def has_buffers(text: str) -> bool:
    """Say whether an aggregate consists entirely of functions whose buffers are known.

    >>> has_buffers("sum(v) / count(*)"), has_buffers("collect_list(v)")
    (True, False)
    """
    return None not in _calls(exp.Paren(this=tree_of(text)))


def read_buffers(texts: Sequence[str], names: Sequence[str], key: Callable[[str], str] = str) -> list[str] | None:
    """Express aggregates in terms of the columns of a state, which are in the order of the calls.

    `names` are Spark's own for the columns. Spark keeps calls that it considers the same only once: those of the same
    `key`. Return `None` if the aggregates have other columns than these.

    >>> read_buffers(["count(*)", "sum(v) / count(*)"], ["count", "sum"])
    ['b0', 'b1 / b0']
    """
    known: dict[str, exp.Expr] = {}
    place = 0
    found = []
    for text in texts:
        root = exp.Paren(this=tree_of(text))
        for call in list(_calls(root)):
            buffer = _fitting(call, names[place:])
            same = "" if call is None else key(sql_of(call))
            if call is None or (same not in known and buffer is None):
                return None
            if same not in known and buffer is not None:
                columns = {each: exp.column(column(place + step)) for step, each in enumerate(buffer.columns)}
                known[same] = fill_template(buffer.value, columns)
                place += len(buffer.columns)
            call.replace(known[same].copy())
        found.append(sql_of(root.this))
    return found if place == len(names) else None


def _calls(tree: exp.Expr) -> Iterator[exp.Expr | None]:
    """List the calls of aggregate functions in the order in which Spark finds them, `None` for an unknown one."""
    for each in tree.iter_expressions():
        if _function(each) in BUFFERS:
            yield each
        elif isinstance(each, exp.Column):
            yield None
        else:
            yield from _calls(each)


def _function(tree: exp.Expr) -> str:
    call = tree.this if isinstance(tree, exp.Filter) else tree
    return call.name.lower() if isinstance(call, exp.Anonymous) else ""


def _fitting(call: exp.Expr | None, names: Sequence[str]) -> Buffer | None:
    possible = () if call is None else BUFFERS[_function(call)]
    return next((each for each in possible if tuple(names[: len(each.columns)]) == each.columns), None)
