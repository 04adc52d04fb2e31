"""Whether the panes of a query depend on the time zone of the session that makes them."""

from __future__ import annotations

from pyspark.sql import types as T
from sqlglot import exp

from factor_windows.engines.spark_panes import Kept
from factor_windows.functions.expression import columns_of, parse_once
from factor_windows.query import Query

_TIMES = ("timestamp", "date")
"""The names of time types, also inside other types."""
_BLIND = (exp.And, exp.Or, exp.Coalesce, exp.Case, exp.If, exp.Concat, exp.Lower, exp.Upper, exp.Substring, exp.Abs)
"""Functions known not to use a clock; any other might."""


def depends_on_zone(query: Query, kept: Kept) -> bool:
    """Say whether a time is a date, whose start depends on the zone, or an expression may use a wall clock."""
    kinds = {field.name.lower(): field.dataType for field in kept.events}
    times = {name for name, kind in kinds.items() if any(word in kind.simpleString() for word in _TIMES)}
    plain = kinds.get(kept.time.strip("`").lower())
    if plain is None or isinstance(plain, T.DateType):
        return True
    texts = [*kept.keys, kept.where, *kept.derived.values()]
    for aggregate in query.parsed_aggregates:
        texts += [*aggregate.arguments, aggregate.filter]
    return any(_may_look(text, times) for text in texts if text and text != "*")


def _may_look(text: str, times: set[str]) -> bool:
    tree = parse_once(text)
    if isinstance(tree, exp.Column):
        return False
    calls = (call for call in tree.find_all(exp.Func) if not isinstance(call, _BLIND))
    return next(calls, None) is not None or any(name.lower() in times for name in columns_of(text))
