"""Aggregates as users write them, such as `avg(temperature) AS mean_t`, read into values."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp, parse_one

from factor_windows.errors import AggregateError
from factor_windows.expressions import VerbatimSpark, name_of, parse, sql_of
from factor_windows.functions import FUNCTIONS, Function, Kind, State

_ELSEWHERE_AGGREGATES = {
    *("any_value", "approx_top_k", "array_agg", "bit_xor", "bitmap_or_agg", "collect_list", "count_min_sketch"),
    *("histogram_numeric", "hll_sketch_agg", "hll_union_agg", "kurtosis", "listagg", "percentile_cont"),
    *("percentile_disc", "product", "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2"),
    *("regr_slope", "regr_sxx", "regr_sxy", "regr_syy", "skewness", "string_agg", "try_avg", "try_sum"),
}
"""Spark's aggregates that are not supported here, but must not be taken for plain functions either."""
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

    @classmethod
    def read(cls, text: str) -> Aggregate:
        tree, alias = parse(text, what="aggregate", error=AggregateError)
        call, condition, ignore_nulls = _taken_apart(tree)
        if not isinstance(call, exp.Anonymous):
            raise AggregateError(
                f"aggregate {text!r} is not one call of an aggregate function; write it such as 'min(temperature)'"
            )
        function = FUNCTIONS.get(call.name.lower())
        if function is None:
            raise AggregateError(
                f"aggregate {text!r} uses the unknown function {call.name!r}; known are {', '.join(sorted(FUNCTIONS))}"
            )
        arguments = call.expressions
        distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
        if distinct:
            arguments = arguments[0].expressions
        for part in (*arguments, *([condition] if condition else [])):
            inner = aggregate_inside(part)
            if inner:
                raise AggregateError(f"aggregate {text!r} has the aggregate {inner!r} inside; aggregates do not nest")
        if condition is not None and condition.find(exp.Star):
            raise AggregateError(f"aggregate {text!r} has '*' in its FILTER; write a condition such as 'ok'")
        _check_arguments(function, arguments, distinct, text)
        if ignore_nulls:
            if "ignore_nulls" not in function.parameters or len(arguments) > 1:
                raise AggregateError(f"aggregate {text!r} has IGNORE NULLS, which only first(x) and last(x) take")
            arguments = [*arguments, exp.true()]
        return cls(
            sql=sql_of(tree),
            name=alias or name_of(tree),
            function=function,
            arguments=tuple(sql_of(argument) for argument in arguments),
            filter=sql_of(condition) if condition else "",
            distinct=distinct,
        )

    @property
    def kind(self) -> Kind:
        """Say how the aggregate may be shared; distinct values cannot be merged in bounded space."""
        return Kind.HOLISTIC if self.distinct else self.function.kind

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

        >>> Aggregate.read("count(v) FILTER (WHERE ok)").states(time="ts")
        (State(name='count', lift='count(v) FILTER(WHERE ok)', combine='sum(:count)'),)
        """
        if self.kind is Kind.HOLISTIC:
            return ()
        values = {
            parameter: _expression(text)
            for parameter, text in zip(self.function.parameters, self.arguments, strict=False)
        }
        conditions = [_expression(self.filter)] if self.filter else []
        ignored = values.get("ignore_nulls")
        if isinstance(ignored, exp.Boolean) and ignored.this:
            conditions.append(_expression("NOT :x IS NULL"))
        filled = []
        for state in self.function.states:
            lift: exp.Expr = _expression(state.lift)
            own = [lift.expression.this] if isinstance(lift, exp.Filter) else []
            call = lift.this if isinstance(lift, exp.Filter) else lift
            if own + conditions:
                lift = exp.Filter(this=call, expression=exp.Where(this=exp.and_(*own, *conditions)))
            complete = exp.replace_placeholders(lift, **values, time=_expression(time))
            filled.append(State(state.name, sql_of(complete), state.combine))
        return tuple(filled)


def _taken_apart(tree: exp.Expr) -> tuple[exp.Expr, exp.Expr | None, bool]:
    """Split `call [IGNORE NULLS] [FILTER (WHERE condition)]` into its three parts."""
    condition = None
    ignore_nulls = False
    while True:
        if isinstance(tree, exp.Filter) and condition is None:
            condition, tree = tree.expression.this, tree.this
        elif isinstance(tree, exp.IgnoreNulls):
            ignore_nulls, tree = True, tree.this
        elif isinstance(tree, exp.Paren):
            tree = tree.this
        else:
            return tree, condition, ignore_nulls


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
    if isinstance(call, exp.IgnoreNulls):
        return exp.IgnoreNulls(this=filtered(call.this, where))
    if isinstance(call, exp.Filter):
        condition = exp.and_(call.expression.this, condition)
        call = call.this
    return exp.Filter(this=call, expression=exp.Where(this=condition))


def _check_arguments(function: Function, arguments: list[exp.Expr], distinct: bool, text: str) -> None:
    most = len(function.parameters)
    least = most - function.optional
    many_values = function.name == "count" and distinct
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
