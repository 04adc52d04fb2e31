"""Mentions of the window in a SELECT: which column of the computed result each one stands for."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from factor_windows.functions.expression import sql_of, tree_of
from factor_windows.query import WINDOW_COLUMNS

_WHOLE = "named_struct('start', window_start, 'end', window_end)"
_MILLISECOND_BEFORE = "window_end - INTERVAL '1' MILLISECOND"
_AZURE = dict.fromkeys(("system.window().id", "system.windowid()"), "window_id")
_AZURE |= dict.fromkeys(("system.timestamp()", "system.timestamp"), "window_end")
_FLINK_TABLE = {"window_start": "window_start", "window_end": "window_end", "window_time": _MILLISECOND_BEFORE}
_FLINK_GROUP = {"start": "window_start", "end": "window_end"}
_FLINK_GROUP |= dict.fromkeys(("rowtime", "proctime"), _MILLISECOND_BEFORE)


def window_mentions(call: exp.Anonymous | None) -> dict[str, str]:
    """Map the ways to mention the window of GROUP BY to what they stand for; none is given for Flink's, a table."""
    if call is None:
        return _AZURE | _FLINK_TABLE
    text, name = _plain(call), call.name.lower()
    if name in ("tumble", "hop"):
        return _AZURE | {f"{name}_{end}{text.removeprefix(name)}": column for end, column in _FLINK_GROUP.items()}
    found = _AZURE | ({column: column for column in WINDOW_COLUMNS} if name == "windows" else {})
    for prefix in ("window", text):
        found |= {prefix: _WHOLE, f"{prefix}.start": "window_start", f"{prefix}.end": "window_end"}
        found[f"window_time({prefix})"] = "window_end - INTERVAL '1' MICROSECOND"
    return found


def window_column(node: exp.Expr, mentions: Mapping[str, str]) -> exp.Expr | None:
    """Return what a mention of the window stands for, if it is one, over the result's columns."""
    found = mentions.get(_plain(node)) if isinstance(node, exp.Column | exp.Dot | exp.Anonymous) else None
    return None if found is None else tree_of(found)


def _plain(node: exp.Expr) -> str:
    return sql_of(node).lower().replace("`", "")
