"""Aggregates as users write them, such as `avg(temperature) AS mean_t`, read into values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches

from sqlglot import exp, parse_one

from factor_windows.errors import AggregateError
from factor_windows.functions.expression import VerbatimSpark, name_of, parse, sql_of
from factor_windows.functions.guards import only_where
from factor_windows.functions.table import FUNCTIONS, Function, Kind, State

_ELSEWHERE_AGGREGATES = {
    *("approx_top_k", "bitmap_construct_agg", "bitmap_or_agg", "count_min_sketch", "grouping", "grouping_id"),
    *("histogram_numeric", "hll_sketch_agg", "hll_union_agg", "product"),
}
"""Spark's aggregates that are not supported here, but must not be taken for plain functions either."""
_ORDERED = {"listagg", "mode", "percentile_cont", "percentile_disc"}
"""Functions that take WITHIN GROUP (ORDER BY ...)."""
_NULLS = {"any_value", "collect_list", "first", "last"}
"""Functions that take IGNORE NULLS and RESPECT NULLS."""
_CONSTANTS = {
    "ignore_nulls": "true or false",
    "deterministic": "true or false",
    "deviation": "a number above 0 and below 1",
    "share": "a number from 0 to 1, or an array of them,",
    "accuracy": "a positive whole number",
}


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate column of a query: a function of arguments, all in Spark SQL, under a name.

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

    @classmethod
    def read(cls, text: str) -> Aggregate:
        """Read one aggregate from text, perhaps with an alias."""
        tree, alias = parse(text, what="aggregate", error=AggregateError)
        return cls.of_tree(tree, alias or name_of(tree), text)

    @classmethod
    def of_tree(cls, tree: exp.Expr, name: str, text: str) -> Aggregate:
        """Read a parsed call; `text` is what a message quotes."""
        parts = _taken_apart(tree)
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
            if function.name not in _NULLS or len(arguments) > 1:
                takers = ", ".join(f"{each}(x)" for each in sorted(_NULLS))
                raise AggregateError(f"aggregate {text!r} has {parts.nulls} NULLS, which only {takers} take")
            if parts.nulls == "IGNORE" and "ignore_nulls" in function.parameters:
                arguments.append(exp.true())
        if function.name == "listagg" and len(arguments) == 1:
            arguments.append(exp.null())
        keeps_nulls = parts.nulls == "RESPECT" and function.name == "collect_list"
        return cls(
            sql=sql_of(tree),
            name=name,
            function=function,
            arguments=tuple(sql_of(argument) for argument in arguments),
            filter=sql_of(parts.condition) if parts.condition else "",
            distinct=distinct,
            whole=keeps_nulls or parts.order is not None or "number" in function.parameters[: len(arguments)],
        )

    @property
    def kind(self) -> Kind:
        """Say how the aggregate may be shared; distinct values cannot be merged in bounded space."""
        return Kind.HOLISTIC if self.distinct or self.whole else self.function.kind

    def only(self, condition: str) -> str:
        """Return the aggregate's call over those events only for which a condition holds too.

        >>> Aggregate.read("sum(v) FILTER (WHERE ok) AS total").only("v > 0")
        'sum(v) FILTER(WHERE ok AND v > 0)'
        """
        return sql_of(filtered(_expression(self.sql), _expression(condition)))

    def direct(self, *, time: str) -> str:
        """Return the aggregate as one call over events; first and last go by event time, which Spark's own do not.

        >>> Aggregate.read("first(v) FILTER (WHERE ok)").direct(time="ts")
        'min_by(v, ts) FILTER(WHERE ok)'
        """
        if self.function.name in ("first", "last") and not self.distinct:
            return next(state.lift for state in self.states(time=time) if state.name == "value")
        return self.sql

    def states(self, *, time: str) -> tuple[State, ...]:
        """List the partial states with the arguments and the filter put into their lifts; none if it is holistic.

        >>> [(each.lift, each.combine) for each in Aggregate.read("count(v) FILTER (WHERE ok)").states(time="ts")]
        [('count(v) FILTER(WHERE ok)', 'sum(:count)')]
        """
        return () if self.kind is Kind.HOLISTIC else self.fill(self.function.states, time=time)

    def fill(self, states: Iterable[State], *, time: str, guard: bool = True) -> tuple[State, ...]:
        """Put the arguments and the filter into the lifts of states, such as other ones than the function's own.

        Arguments that may fail are guarded by the filter: what several lifts have in common, Spark computes before it
        looks at their filters.

        >>> mean = Aggregate.read("avg(CAST(code AS INT)) FILTER (WHERE kind = 'n')")
        >>> mean.states(time="ts")[1].lift
        "count(CASE WHEN kind = 'n' THEN CAST(code AS INT) END) FILTER(WHERE kind = 'n')"
        """
        guards = [self.filter] if guard and self.filter else [""]
        arguments = [text if text == "*" else only_where(text, guards) for text in self.arguments]
        values = {
            parameter: _expression(text) for parameter, text in zip(self.function.parameters, arguments, strict=False)
        }
        conditions = [_expression(self.filter)] if self.filter else []
        ignored = values.get("ignore_nulls")
        if isinstance(ignored, exp.Boolean) and ignored.this:
            conditions.append(_expression("NOT :x IS NULL"))
        filled = []
        for state in states:
            lift: exp.Expr = _expression(state.lift)
            own = [lift.expression.this] if isinstance(lift, exp.Filter) else []
            call = lift.this if isinstance(lift, exp.Filter) else lift
            for further in arguments[len(self.function.parameters) :]:
                call.append("expressions", _expression(further))
            if own + conditions:
                lift = exp.Filter(this=call, expression=exp.Where(this=exp.and_(*own, *conditions)))
            complete = exp.replace_placeholders(lift, **values, time=_expression(time))
            filled.append(replace(state, lift=sql_of(complete)))
        return tuple(filled)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What an aggregate is written with: `call [WITHIN GROUP (order)] [FILTER (WHERE condition)] [nulls NULLS]`."""

    call: exp.Expr
    order: exp.Expr | None = None
    condition: exp.Expr | None = None
    nulls: str = ""


def _taken_apart(tree: exp.Expr) -> _Parts:
    """Split an aggregate into what it is written with; Spark also takes `first(x IGNORE NULLS)`."""
    parts = _Parts(tree)
    while True:
        tree = parts.call
        match tree:
            case exp.Filter() if parts.condition is None:
                parts = replace(parts, call=tree.this, condition=tree.expression.this)
            case exp.WithinGroup() if parts.order is None:
                parts = replace(parts, call=tree.this, order=tree.expression)
            case exp.IgnoreNulls() | exp.RespectNulls() if not parts.nulls:
                parts = replace(parts, call=tree.this, nulls=_nulls(tree))
            case exp.Anonymous(expressions=[exp.IgnoreNulls() | exp.RespectNulls() as inner]) if not parts.nulls:
                call = exp.Anonymous(this=tree.this, expressions=[inner.this])
                return replace(parts, call=call, nulls=_nulls(inner))
            case exp.Paren():
                parts = replace(parts, call=tree.this)
            case _:
                return parts


def _nulls(tree: exp.Expr) -> str:
    return "IGNORE" if isinstance(tree, exp.IgnoreNulls) else "RESPECT"


def is_call(tree: exp.Expr) -> bool:
    """Say whether an expression is an aggregate, with what belongs to it."""
    if isinstance(tree, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        return True
    return isinstance(tree, exp.Anonymous) and tree.name.lower() in FUNCTIONS


def unknown(name: str, text: str) -> AggregateError:
    """Return what to say about a function that is none of the known aggregates, such as a user's own."""
    near = get_close_matches(name.lower(), FUNCTIONS, n=3)
    hint = f"near it are {', '.join(near)}; " if near else ""
    known = ", ".join(sorted(FUNCTIONS))
    return AggregateError(f"aggregate {text!r} uses the unknown function {name!r}; {hint}known are {known}")


def aggregate_inside(tree: exp.Expr) -> str:
    """Return the first aggregate call inside an expression, or nothing."""
    for call in tree.find_all(exp.Anonymous):
        if call.name.lower() in FUNCTIONS or call.name.lower() in _ELSEWHERE_AGGREGATES:
            return sql_of(call)
    return ""


def filtered(call: exp.Expr, where: exp.Expr) -> exp.Expr:
    """Add a condition to an aggregate, to what conditions it already has."""
    call = call.copy()
    condition: exp.Expr = where.copy()
    if isinstance(call, exp.IgnoreNulls | exp.RespectNulls):
        return type(call)(this=filtered(call.this, where))
    if isinstance(call, exp.Filter):
        condition = exp.and_(call.expression.this, condition)
        call = call.this
    return exp.Filter(this=call, expression=exp.Where(this=condition))


def _check_parts(function: Function, arguments: list[exp.Expr], parts: _Parts, text: str) -> None:
    for part in (*arguments, *(each for each in (parts.condition, parts.order) if each is not None)):
        inner = aggregate_inside(part)
        if inner:
            raise AggregateError(f"aggregate {text!r} has the aggregate {inner!r} inside; aggregates do not nest")
    if parts.condition is not None and parts.condition.find(exp.Star):
        raise AggregateError(f"aggregate {text!r} has '*' in its FILTER; write a condition such as 'ok'")
    if parts.order is not None and function.name not in _ORDERED:
        takers = ", ".join(sorted(_ORDERED))
        raise AggregateError(f"aggregate {text!r} has WITHIN GROUP, which only {takers} take")
    if parts.order is None and (function.parameters == ("share",) or (not arguments and function.name == "mode")):
        raise AggregateError(f"aggregate {text!r} has no order; write WITHIN GROUP (ORDER BY ...) after it")


def _check_arguments(function: Function, arguments: list[exp.Expr], distinct: bool, ordered: bool, text: str) -> None:
    most = len(function.parameters)
    least = 0 if ordered and function.name == "mode" else most - function.optional
    many_values = function.name == "count"
    if not (least <= len(arguments) <= most or (many_values and arguments)):
        expected = " or ".join(
            f"{function.name}({', '.join(function.parameters[:count])})" for count in range(least, most + 1)
        )
        raise AggregateError(f"aggregate {text!r} has {len(arguments)} arguments; write {expected}")
    for parameter, argument in zip(function.parameters, arguments, strict=False):
        if argument.find(exp.Star) and (function.name != "count" or distinct or not isinstance(argument, exp.Star)):
            raise AggregateError(f"aggregate {text!r} has '*' as its argument; only count(*) takes it")
        if parameter in _CONSTANTS and not _fits(parameter, argument):
            raise AggregateError(
                f"aggregate {text!r} has {sql_of(argument)!r} where {_CONSTANTS[parameter]} is expected"
            )


def _fits(parameter: str, argument: exp.Expr) -> bool:
    if parameter in ("ignore_nulls", "deterministic"):
        return isinstance(argument, exp.Boolean)
    if parameter == "share" and isinstance(argument, exp.Array):
        return bool(argument.expressions) and all(_fits("share", each) for each in argument.expressions)
    if not isinstance(argument, exp.Literal) or argument.is_string:
        return False
    number = float(argument.this)
    if parameter == "accuracy":
        return number > 0 and number == int(number)
    return 0 < number < 1 if parameter == "deviation" else 0 <= number <= 1


def _expression(text: str) -> exp.Expr:
    return exp.Star() if text == "*" else parse_one(text, dialect=VerbatimSpark)
