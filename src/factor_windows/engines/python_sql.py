"""Spark SQL over plain Python rows, with Spark's rules for null and NaN: used by the reference engine."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlglot import exp

Row = Mapping[str, Any]


_BINARY: dict[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
    exp.Div: lambda a, b: a / b if b else None,
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.GT: lambda a, b: sort_key(a) > sort_key(b),
    exp.GTE: lambda a, b: sort_key(a) >= sort_key(b),
    exp.LT: lambda a, b: sort_key(a) < sort_key(b),
    exp.LTE: lambda a, b: sort_key(a) <= sort_key(b),
}


def value_of(tree: exp.Expr, row: Row, group: Sequence[Row] = ()) -> Any:
    """Evaluate an expression with SQL's rules for null; aggregate calls use the whole group."""

    def inner(part: exp.Expr) -> Any:
        return value_of(part, row, group)

    match tree:
        case exp.Filter():
            chosen = [member for member in group if value_of(tree.expression.this, member) is True]
            return value_of(tree.this, row, chosen)
        case exp.IgnoreNulls() | exp.RespectNulls():
            return inner(tree.this)
        case exp.Anonymous() if tree.name.lower() in _AGGREGATES:
            return _aggregate(tree, group)
        case exp.Anonymous():
            return _SCALARS[tree.name.lower()](*(inner(argument) for argument in tree.expressions))
        case exp.Column():
            return row[tree.name]
        case exp.Placeholder():
            return row[f":{tree.name}"]
        case exp.Star():
            return 1
        case exp.Literal():
            return tree.this if tree.is_string else float(tree.this) if "." in tree.this else int(tree.this)
        case exp.Boolean():
            return bool(tree.this)
        case exp.Null():
            return None
        case exp.Paren():
            return inner(tree.this)
        case exp.Neg():
            value = inner(tree.this)
            return None if value is None else -value
        case exp.Is():
            return inner(tree.this) is inner(tree.expression)
        case exp.Not():
            value = inner(tree.this)
            return None if value is None else not value
        case exp.And() | exp.Or():
            values = [inner(tree.this), inner(tree.expression)]
            decisive = isinstance(tree, exp.Or)
            return decisive if decisive in values else None if None in values else not decisive
        case exp.Case():
            for branch in tree.args["ifs"]:
                if inner(branch.this) is True:
                    return inner(branch.args["true"])
            return inner(tree.args["default"]) if tree.args.get("default") else None
        case exp.Cast():
            value = inner(tree.this)
            return None if value is None else float(value)
        case _ if type(tree) in _BINARY:
            left, right = inner(tree.this), inner(tree.expression)
            return None if left is None or right is None else _BINARY[type(tree)](left, right)
    raise NotImplementedError(f"the reference does not evaluate {tree.sql()}")


def _aggregate(call: exp.Anonymous, group: Sequence[Row]) -> Any:
    arguments = call.expressions
    distinct = bool(arguments) and isinstance(arguments[0], exp.Distinct)
    if distinct:
        arguments = arguments[0].expressions
    inputs = [tuple(value_of(argument, member) for argument in arguments) for member in group]
    if distinct:
        inputs = list({sort_key(values): values for values in inputs}.values())
    return _AGGREGATES[call.name.lower()](inputs)


def sort_key(value: Any) -> tuple[Any, ...]:
    """Order values as Spark does: null first, NaN last."""
    if value is None:
        return (0,)
    if isinstance(value, tuple):
        return (1, tuple(sort_key(part) for part in value))
    return (2,) if isinstance(value, float) and math.isnan(value) else (1, value)


Inputs = list[tuple[Any, ...]]


def _known(inputs: Inputs) -> list[Any]:
    return [values[0] for values in inputs if values[0] is not None]


def _pairs(inputs: Inputs) -> list[tuple[float, float]]:
    """List the (x, y) of regr_xxx(y, x) where both are known."""
    return [(float(x), float(y)) for y, x in inputs if x is not None and y is not None]


def _added(values: list[Any]) -> Any:
    if not values:
        return None
    return math.fsum(values) if any(isinstance(value, float) for value in values) else sum(values)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _comoment(pairs: Sequence[tuple[float, float]]) -> float | None:
    if not pairs:
        return None
    mean_x = math.fsum(x for x, _ in pairs) / len(pairs)
    mean_y = math.fsum(y for _, y in pairs) / len(pairs)
    return math.fsum((x - mean_x) * (y - mean_y) for x, y in pairs)


def _spread(inputs: Inputs, *, taken: int, root: bool) -> float | None:
    """Return the variance or standard deviation, with the count minus `taken` as the divisor."""
    values = [(float(value), float(value)) for value in _known(inputs)]
    if len(values) <= taken:
        return None
    variance = (_comoment(values) or 0.0) / (len(values) - taken)
    return math.sqrt(variance) if root else variance


def _covariance(inputs: Inputs, *, taken: int) -> float | None:
    pairs = _pairs(inputs)
    return None if len(pairs) <= taken else (_comoment(pairs) or 0.0) / (len(pairs) - taken)


def _correlation(inputs: Inputs) -> float | None:
    pairs = _pairs(inputs)
    if len(pairs) < 2:
        return None
    squares = [_comoment([(x, x) for x, _ in pairs]) or 0.0, _comoment([(y, y) for _, y in pairs]) or 0.0]
    return (_comoment(pairs) or 0.0) / math.sqrt(squares[0]) / math.sqrt(squares[1]) if all(squares) else None


def _line(pairs: list[tuple[float, float]]) -> tuple[float | None, float | None, float | None]:
    """Return the slope, intercept and r2 of the least-squares line; `None` where x does not vary."""
    if len({x for x, _ in pairs}) < 2:
        return None, None, None
    square = _comoment([(x, x) for x, _ in pairs]) or 0.0
    slope = (_comoment(pairs) or 0.0) / square
    other = _comoment([(y, y) for _, y in pairs]) or 0.0
    mean_x, mean_y = (_mean([pair[place] for pair in pairs]) or 0.0 for place in (0, 1))
    share = slope * (_comoment(pairs) or 0.0) / other if len({y for _, y in pairs}) > 1 else 1.0
    return slope, mean_y - slope * mean_x, share


def _shape(values: list[Any], order: int) -> float | None:
    """Return the skewness (order 3) or excess kurtosis (order 4); `None` where values do not vary."""
    if len(set(values)) < 2:
        return None
    mean = math.fsum(values) / len(values)
    spread, moment = (math.fsum((value - mean) ** power for value in values) / len(values) for power in (2, order))
    return float(moment / spread ** (order / 2) - (3 if order == 4 else 0))


def _listed(values: list[Any], delimiter: str | None) -> str | None:
    return (delimiter or "").join(map(str, values)) if values else None


def _chosen(inputs: Inputs, choose: Callable[..., tuple[Any, Any]]) -> Any:
    known = [(by, value) for value, by in inputs if by is not None]
    return choose(known, key=sort_key)[1] if known else None


def _interpolated(values: list[Any], share: float) -> float | None:
    ordered = sorted(values)
    if not ordered:
        return None
    position = share * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return float(ordered[low] + (position - low) * (ordered[high] - ordered[low]))


def _ranked(values: Iterable[Any], share: float) -> Any:
    ordered = sorted(values, key=sort_key)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def _mode(values: list[Any]) -> Any:
    counts = {sort_key(value): values.count(value) for value in values}
    return min(values, key=lambda value: (-counts[sort_key(value)], sort_key(value))) if values else None


def _distinct(values: Iterable[Any]) -> list[Any]:
    return sorted({sort_key(value): value for value in values}.values(), key=sort_key)


_AGGREGATES: dict[str, Callable[[Inputs], Any]] = {
    "min": lambda i: min(_known(i), key=sort_key, default=None),
    "max": lambda i: max(_known(i), key=sort_key, default=None),
    "bool_and": lambda i: all(_known(i)) if _known(i) else None,
    "bool_or": lambda i: any(_known(i)) if _known(i) else None,
    "bit_and": lambda i: _folded(operator.and_, _known(i)),
    "bit_or": lambda i: _folded(operator.or_, _known(i)),
    "bit_xor": lambda i: _folded(operator.xor, _known(i)),
    "any_value": lambda i: next((values[0] for values in i if len(values) == 1 or values[0] is not None), None),
    "collect_set": lambda i: _distinct(_known(i)),
    "collect_list": _known,
    "listagg": lambda i: _listed(_known(i), i[0][1] if i and len(i[0]) > 1 else None),
    "min_by": lambda i: _chosen(i, min),
    "max_by": lambda i: _chosen(i, max),
    "count": lambda i: sum(None not in values for values in i),
    "count_if": lambda i: sum(values[0] is True for values in i),
    "sum": lambda i: _added(_known(i)),
    "try_sum": lambda i: _added(_known(i)),
    "avg": lambda i: _mean([float(value) for value in _known(i)]),
    "try_avg": lambda i: _mean([float(value) for value in _known(i)]),
    "var_pop": lambda i: _spread(i, taken=0, root=False),
    "var_samp": lambda i: _spread(i, taken=1, root=False),
    "stddev_pop": lambda i: _spread(i, taken=0, root=True),
    "stddev_samp": lambda i: _spread(i, taken=1, root=True),
    "covar_pop": lambda i: _covariance(i, taken=0),
    "covar_samp": lambda i: _covariance(i, taken=1),
    "corr": _correlation,
    "regr_count": lambda i: len(_pairs(i)),
    "regr_avgx": lambda i: _mean([x for x, _ in _pairs(i)]),
    "regr_avgy": lambda i: _mean([y for _, y in _pairs(i)]),
    "regr_sxy": lambda i: _comoment(_pairs(i)),
    "regr_sxx": lambda i: _comoment([(x, x) for x, _ in _pairs(i)]),
    "regr_syy": lambda i: _comoment([(y, y) for _, y in _pairs(i)]),
    "regr_slope": lambda i: _line(_pairs(i))[0],
    "regr_intercept": lambda i: _line(_pairs(i))[1],
    "regr_r2": lambda i: _line(_pairs(i))[2],
    "skewness": lambda i: _shape(_known(i), 3),
    "kurtosis": lambda i: _shape(_known(i), 4),
    "approx_count_distinct": lambda i: len(_distinct(_known(i))),
    "hll_sketch_agg": lambda i: _distinct(_known(i)),
    "hll_union_agg": lambda i: _distinct(value for part in _known(i) for value in part),
    "approx_percentile": lambda i: _ranked(_known(i), i[0][1]) if i else None,
    "kll_sketch_agg": _known,
    "kll_merge_agg": lambda i: [value for part in _known(i) for value in part],
    "median": lambda i: _interpolated(_known(i), 0.5),
    "percentile": lambda i: _interpolated(_known(i), i[0][1]) if i else None,
    "mode": lambda i: _mode(_known(i)),
}
_SYNONYMS = {"mean": "avg", "std": "stddev_samp", "stddev": "stddev_samp", "variance": "var_samp"}
_SYNONYMS |= {"every": "bool_and", "some": "bool_or", "any": "bool_or", "percentile_approx": "approx_percentile"}
_SYNONYMS |= {"array_agg": "collect_list", "string_agg": "listagg"}
_AGGREGATES |= {synonym: _AGGREGATES[name] for synonym, name in _SYNONYMS.items()}

_SCALARS: dict[str, Callable[..., Any]] = {
    "shiftleft": operator.lshift,
    "sqrt": lambda value: None if value is None else math.sqrt(value),
    "upper": lambda value: None if value is None else value.upper(),
    "greatest": lambda *values: max((value for value in values if value is not None), key=sort_key, default=None),
    "array_distinct": _distinct,
    "flatten": lambda parts: [value for part in parts for value in part],
    "size": len,
    "array_join": lambda values, delimiter: _listed(values, delimiter),
    "coalesce": lambda *values: next((value for value in values if value is not None), None),
    "isnan": lambda value: isinstance(value, float) and math.isnan(value),
    "hll_sketch_estimate": len,
    "kll_sketch_get_quantile": _ranked,
}


def _folded(combine: Callable[[int, int], int], values: list[int]) -> int | None:
    result = None
    for value in values:
        result = value if result is None else combine(result, value)
    return result
