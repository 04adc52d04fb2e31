"""Mentions of the window in a SELECT: which column of the computed result each one stands for."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from factor_windows.functions.expression import sql_of
from factor_windows.query import WINDOW_COLUMNS

WINDOW_ID, WINDOW_START, WINDOW_END = WINDOW_COLUMNS
_FLINK_ENDS = {"start": WINDOW_START, "end": WINDOW_END}


def call_texts(call: exp.Anonymous) -> dict[str, str]:
    """Return a window call as it is mentioned elsewhere, with the name of the function."""
    return {_plain(call): call.name.lower()}


def window_column(node: exp.Expr, calls: Mapping[str, str]) -> exp.Expr | None:
    """Return the result's column that a mention of the window stands for, if it is one.

    `calls` are the window calls of GROUP BY; there are none for Flink's, which are tables.
    """
    if not isinstance(node, exp.Column | exp.Dot | exp.Anonymous):
        return None
    text = _plain(node)
    start, end = exp.column(WINDOW_START), exp.column(WINDOW_END)
    if text in ("system.window().id", "system.windowid()"):
        return exp.column(WINDOW_ID)
    if text in ("system.timestamp()", "system.timestamp"):
        return end
    if not calls or "windows" in calls.values():
        if text == WINDOW_ID and not calls:
            return None
        if text in WINDOW_COLUMNS:
            return exp.column(text)
    if not calls:
        return exp.Sub(this=end, expression=_interval("MILLISECOND")) if text == "window_time" else None
    for call, name in calls.items():
        if name in ("tumble", "hop"):
            return _of_flink_group(text, call, name)
    for prefix in ("window", *calls):
        if text == prefix and (isinstance(node, exp.Column) or text in calls):
            return exp.Anonymous(this="named_struct", expressions=[_text("start"), start, _text("end"), end])
        if text in (f"{prefix}.start", f"{prefix}.end"):
            return start if text.endswith("start") else end
        if text == f"window_time({prefix})":
            return exp.Sub(this=end, expression=_interval("MICROSECOND"))
    return None


def _of_flink_group(text: str, call: str, name: str) -> exp.Expr | None:
    """Read TUMBLE_START(...) and its like, beside GROUP BY TUMBLE(...)."""
    arguments = call.removeprefix(name)
    for word, column in _FLINK_ENDS.items():
        if text == f"{name}_{word}{arguments}":
            return exp.column(column)
    if text in (f"{name}_rowtime{arguments}", f"{name}_proctime{arguments}"):
        return exp.Sub(this=exp.column(WINDOW_END), expression=_interval("MILLISECOND"))
    return None


def _plain(node: exp.Expr) -> str:
    return sql_of(node).lower().replace("`", "")


def _text(value: str) -> exp.Literal:
    return exp.Literal.string(value)


def _interval(unit: str) -> exp.Interval:
    return exp.Interval(this=exp.Literal.string("1"), unit=exp.var(unit))
