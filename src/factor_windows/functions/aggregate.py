"""Aggregates as users write them, such as `avg(temperature) AS mean_t`, parsed into values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache

from sqlglot import exp

from factor_windows.errors import AggregateError
from factor_windows.functions.counted import follow_from_counts
from factor_windows.functions.expression import fill_template, name_of, parse, sql_of, tree_of
from factor_windows.functions.guards import only_where
from factor_windows.functions.table import FUNCTIONS, Function, Kind, State

_ELSEWHERE_AGGREGATES = {
    *("approx_top_k", "bitmap_construct_agg", "bitmap_or_agg", "count_min_sketch", "grouping", "grouping_id"),
    *("histogram_numeric", "hll_sketch_agg", "hll_union_agg", "product"),
}
"""Spark's aggregates that are not supported here, but must not be mistaken for plain functions either."""
_PARTS = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
"""Nodes that may wrap a call and belong to it."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate column of a query: a function call with its arguments, in Spark SQL, and a name.

    >>> mean = Aggregate.read("avg(temperature) FILTER (WHERE ok) AS mean_t")
    >>> mean.function.name, mean.arguments, mean.filter, mean.name
    ('avg', ('temperature',), 'ok', 'mean_t')
    """

    sql: str
    name: str
    function: Function
    arguments: tuple[str, ...]
    filter: str = ""
    distinct: bool = False
    whole: bool = False
    """Whether it needs all events at once for another reason: an order, nulls that are kept, several values."""
    ordered_by: str = ""
    """The value given by WITHIN GROUP (ORDER BY ...), if any."""
    descending: bool = False

    @classmethod
    def read(cls, text: str) -> Aggregate:
        """Read one aggregate from text, with or without an alias."""
        tree, alias = parse(text, what="aggregate", error=AggregateError)
        return cls.of_tree(tree, alias or name_of(tree), text)

    @classmethod
    def of_tree(cls, tree: exp.Expr, name: str, text: str) -> Aggregate:
        """Read a parsed call; `text` is quoted in error messages."""
        parts = _take_apart(tree)
        call = parts.call
        if not isinstance(call, exp.Anonymous):
            raise AggregateError(
                f"aggregate {text!r} is not one call of an aggregate function; write it such as 'min(temperature)'"
            )
        function = FUNCTIONS.get(call.name.lower())
        if function is None:
            raise unknown(call.name, text)
        arguments = list(call.expressions)
        distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
        if distinct:
            arguments = arguments[0].expressions
        _check_parts(function, arguments, parts, text)
        _check_arguments(function, arguments, distinct, parts.order is not None, text)
        if parts.nulls:
            if not function.takes_nulls or len(arguments) > 1:
                takers = ", ".join(f"{each}(x)" for each in _names_of(lambda each: each.takes_nulls))
                raise AggregateError(f"aggregate {text!r} has {parts.nulls} NULLS, which only {takers} take")
            if parts.nulls == "IGNORE" and "ignore_nulls" in function.parameters:
                arguments.append(exp.true())
        if function.default and len(arguments) < len(function.parameters):
            arguments.append(tree_of(function.default))
        keeps_nulls = parts.nulls == "RESPECT" and "ignore_nulls" not in function.parameters
        return cls(
            sql=sql_of(tree),
            name=name,
            function=function,
            arguments=tuple(map(sql_of, arguments)),
            filter=sql_of(parts.condition) if parts.condition else "",
            distinct=distinct,
            whole=keeps_nulls or parts.order is not None or "number" in function.parameters[: len(arguments)],
            ordered_by=sql_of(value.this) if (value := _ordered_value(function, parts.order)) else "",
            descending=bool(value and value.args.get("desc")),
        )

    @property
    def kind(self) -> Kind:
        """Return how the aggregate may be shared; distinct values cannot be merged in bounded space."""
        if follow_from_counts(self) is not None:
            return Kind.COUNTED
        return Kind.HOLISTIC if self.distinct or self.whole else self.function.kind

    def only(self, condition: str) -> str:
        """Return the aggregate's call, restricted to events for which a condition also holds.

        >>> Aggregate.read("sum(v) FILTER (WHERE ok) AS total").only("v > 0")
        'sum(v) FILTER(WHERE ok AND v > 0)'
        """
        return sql_of(add_filter(tree_of(self.sql), tree_of(condition)))

    def direct(self, *, time: str) -> str:
        """Return the aggregate as one call over events; first and last use event time, unlike Spark's own.

        >>> Aggregate.read("first(v) FILTER (WHERE ok)").direct(time="ts")
        'min_by(v, ts) FILTER(WHERE ok)'
        """
        if self.function.by_time and not self.distinct:
            return next(state.lift for state in self.states(time=time) if state.name == "value")
        return self.sql

    def states(self, *, time: str) -> tuple[State, ...]:
        """List the partial states with the arguments and the filter put into their lifts; empty if it has no states.

        >>> [(each.lift, each.combine) for each in Aggregate.read("count(v) FILTER (WHERE ok)").states(time="ts")]
        [('count(v) FILTER(WHERE ok)', 'sum(:count)')]
        """
        return () if self.kind >= Kind.COUNTED else self.fill(self.function.states, time=time)

    def fill(self, states: Iterable[State], *, time: str, guard: bool = True) -> tuple[State, ...]:
        """Put the arguments and the filter into the lifts of states, which need not be the function's own.

        Arguments that may fail are guarded by the filter: Spark computes the common parts of several lifts before it
        looks at their filters.

        >>> mean = Aggregate.read("avg(CAST(code AS INT)) FILTER (WHERE kind = 'n')")
        >>> mean.states(time="ts")[1].lift
        "count(CASE WHEN kind = 'n' THEN CAST(code AS INT) END) FILTER(WHERE kind = 'n')"
        """
        return _filled(self, tuple(states), time, guard)

    @property
    def constants(self) -> dict[str, exp.Expr]:
        """Return the arguments after the first by name, for use in lowers."""
        return {
            name: tree_of(text) for name, text in zip(self.function.parameters[1:], self.arguments[1:], strict=False)
        }


@lru_cache(maxsize=4096)
def _filled(aggregate: Aggregate, states: tuple[State, ...], time: str, guard: bool) -> tuple[State, ...]:
    """Fill the states of an aggregate, only once although a plan asks for them many times."""
    guards = [aggregate.filter] if guard and aggregate.filter else [""]
    arguments = [tree_of(text if text == "*" else only_where(text, guards)) for text in aggregate.arguments]
    values = dict(zip(aggregate.function.parameters, arguments, strict=False)) | {"time": tree_of(time)}
    conditions = [tree_of(aggregate.filter)] if aggregate.filter else []
    ignored = values.get("ignore_nulls")
    if isinstance(ignored, exp.Boolean) and ignored.this:
        conditions.append(fill_template("NOT :x IS NULL", values))
    filled = []
    for state in states:
        lift = fill_template(state.lift, values)
        call = lift.this if isinstance(lift, exp.Filter) else lift
        for further in arguments[len(aggregate.function.parameters) :]:
            call.append("expressions", further.copy())
        filled.append(replace(state, lift=sql_of(add_filter(lift, *conditions) if conditions else lift)))
    return tuple(filled)


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of an aggregate: `call [WITHIN GROUP (order)] [FILTER (WHERE condition)] [nulls NULLS]`."""

    call: exp.Expr
    order: exp.Expr | None = None
    condition: exp.Expr | None = None
    nulls: str = ""


def _take_apart(tree: exp.Expr) -> _Parts:
    """Split an aggregate into its parts; Spark also accepts `first(x IGNORE NULLS)`."""
    parts = _Parts(tree)
    while True:
        tree = parts.call
        match tree:
            case exp.Filter() if parts.condition is None:
                parts = replace(parts, call=tree.this, condition=tree.expression.this)
            case exp.WithinGroup() if parts.order is None:
                parts = replace(parts, call=tree.this, order=tree.expression)
            case exp.IgnoreNulls() | exp.RespectNulls() if not parts.nulls:
                parts = replace(parts, call=tree.this, nulls=tree.key.removesuffix("nulls").upper())
            case exp.Anonymous(expressions=[exp.IgnoreNulls() | exp.RespectNulls() as inner]) if not parts.nulls:
                call = exp.Anonymous(this=tree.this, expressions=[inner.this])
                return replace(parts, call=call, nulls=inner.key.removesuffix("nulls").upper())
            case exp.Paren():
                parts = replace(parts, call=tree.this)
            case _:
                return parts


def _ordered_value(function: Function, order: exp.Expr | None) -> exp.Expr | None:
    """Return the expression to order by, if it is the value, and the only one."""
    ordered = order.expressions if order is not None and function.order == "value" else []
    return ordered[0] if len(ordered) == 1 else None


def is_call(tree: exp.Expr | None) -> bool:
    """Say whether an expression is an aggregate, including its filter and the like."""
    while isinstance(tree, _PARTS):
        tree = tree.this
    return isinstance(tree, exp.Anonymous) and tree.name.lower() in FUNCTIONS


def unknown(name: str, text: str) -> AggregateError:
    """Return the error for a function that is not a known aggregate, such as a user-defined one."""
    near = near_functions(name)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(sorted(FUNCTIONS))}"
    return AggregateError(f"aggregate {text!r} uses the unknown function {name!r}; {hint}")


def near_functions(name: str) -> list[str]:
    """List the aggregate functions with the most similar names.

    >>> near_functions("AVRAGE"), near_functions("frobnicate")
    (['avg'], [])
    """
    return get_close_matches(name.lower(), FUNCTIONS, n=3)


def aggregate_inside(tree: exp.Expr) -> str:
    """Return the first aggregate call inside an expression, or an empty text."""
    for call in tree.find_all(exp.Anonymous):
        if call.name.lower() in FUNCTIONS or call.name.lower() in _ELSEWHERE_AGGREGATES:
            return sql_of(call)
    return ""


def add_filter(call: exp.Expr, *conditions: exp.Expr) -> exp.Expr:
    """Add conditions to an aggregate, in addition to those it already has."""
    if isinstance(call, exp.IgnoreNulls | exp.RespectNulls):
        return type(call)(this=add_filter(call.this, *conditions))
    if isinstance(call, exp.Filter):
        call, conditions = call.this, (call.expression.this, *conditions)
    return exp.Filter(this=call.copy(), expression=exp.Where(this=exp.and_(*conditions)))


def _names_of(has: Callable[[Function], bool]) -> list[str]:
    return sorted({function.name for function in FUNCTIONS.values() if has(function)})


def _check_parts(function: Function, arguments: list[exp.Expr], parts: _Parts, text: str) -> None:
    for part in (*arguments, *(each for each in (parts.condition, parts.order) if each is not None)):
        inner = aggregate_inside(part)
        if inner:
            raise AggregateError(f"aggregate {text!r} has the aggregate {inner!r} inside; aggregates do not nest")
    if parts.condition is not None and parts.condition.find(exp.Star):
        raise AggregateError(f"aggregate {text!r} has '*' in its FILTER; write a condition such as 'ok'")
    if parts.order is not None and not function.order:
        takers = ", ".join(_names_of(lambda each: bool(each.order)))
        raise AggregateError(f"aggregate {text!r} has WITHIN GROUP, which only {takers} take")
    has_value = "x" in function.parameters[: len(arguments)]
    if parts.order is None and function.order == "value" and not has_value:
        raise AggregateError(f"aggregate {text!r} has no order; write WITHIN GROUP (ORDER BY ...) after it")


def _check_arguments(function: Function, arguments: list[exp.Expr], distinct: bool, ordered: bool, text: str) -> None:
    most = len(function.parameters)
    is_value_ordered = ordered and function.order == "value" and "x" in function.parameters
    least = 0 if is_value_ordered else most - function.optional
    if not (least <= len(arguments) <= most or (function.variadic and arguments)):
        expected = " or ".join(
            f"{function.name}({', '.join(function.parameters[:count])})" for count in range(least, most + 1)
        )
        raise AggregateError(f"aggregate {text!r} has {len(arguments)} arguments; write {expected}")
    for parameter, argument in zip(function.parameters, arguments, strict=False):
        if argument.find(exp.Star) and (not function.variadic or distinct or not isinstance(argument, exp.Star)):
            raise AggregateError(f"aggregate {text!r} has '*' as its argument; only count(*) takes it")
        expected, fits = _CONSTANTS.get(parameter, ("", None))
        if fits is not None and not fits(argument):
            raise AggregateError(f"aggregate {text!r} has {sql_of(argument)!r} where {expected} is expected")


def _is_number(holds: Callable[[float], bool]) -> Callable[[exp.Expr], bool]:
    """Return a check whether an argument is a constant number with a property."""
    return lambda argument: isinstance(argument, exp.Literal) and not argument.is_string and holds(float(argument.this))


def _is_share(argument: exp.Expr) -> bool:
    shares = argument.expressions if isinstance(argument, exp.Array) else [argument]
    return bool(shares) and all(map(_is_number(lambda number: 0 <= number <= 1), shares))


_CONSTANTS: dict[str, tuple[str, Callable[[exp.Expr], bool]]] = {
    **dict.fromkeys(("ignore_nulls", "deterministic"), ("true or false", lambda each: isinstance(each, exp.Boolean))),
    "deviation": ("a number above 0 and below 1", _is_number(lambda number: 0 < number < 1)),
    "share": ("a number from 0 to 1, or an array of them,", _is_share),
    "accuracy": ("a positive whole number", _is_number(lambda number: number > 0 and number == int(number))),
}
"""The parameters that only accept constants, and which constants these are."""
