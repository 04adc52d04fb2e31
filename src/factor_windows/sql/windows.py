"""Windows as written in SQL: Spark's window(), WINDOWS(...), Azure's and Flink's functions, and references to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta

from sqlglot import exp

from factor_windows.algebra.calendar import AnyWindow, cumulating
from factor_windows.algebra.session import Session
from factor_windows.algebra.window import MICROSECONDS, Window, duration
from factor_windows.functions.expression import sql_of, tree_of
from factor_windows.query import WINDOW_COLUMNS
from factor_windows.sql.located_error import errors_at, located_error
from factor_windows.sql.window_text import read_window_text

_AZURE_UNITS = {
    "day": ("day", "days", "dd", "d"),
    "hour": ("hour", "hours", "hh"),
    "minute": ("minute", "minutes", "mi", "n"),
    "second": ("second", "seconds", "ss", "s"),
    "millisecond": ("millisecond", "milliseconds", "ms"),
    "microsecond": ("microsecond", "microseconds", "mcs"),
}
UNITS = {spelling: MICROSECONDS[unit] for unit, spellings in _AZURE_UNITS.items() for spelling in spellings}
_UNSUPPORTED = {"slidingwindow", "sessionwindow", "snapshotwindow"}
_FLINK_LENGTHS = {"tumble": ("size",), "hop": ("slide", "size"), "cumulate": ("step", "size"), "session": ("gap",)}
WINDOW_CALLS = {
    "window",
    "session_window",
    "windows",
    "tumblingwindow",
    "hoppingwindow",
    *_FLINK_LENGTHS,
    *_UNSUPPORTED,
}
TABLE_CALLS = set(_FLINK_LENGTHS)
SUPPORTED = (
    "these are: window(), session_window(), WINDOWS(), TumblingWindow, HoppingWindow, TUMBLE, HOP, CUMULATE, SESSION, "
    "date_trunc(), trunc() and time_bucket()"
)
WHOLE_WINDOW = "named_struct('start', window_start, 'end', window_end)"
_MILLISECOND_BEFORE = "window_end - INTERVAL '1' MILLISECOND"
_AZURE = dict.fromkeys(("system.window().id", "system.windowid()"), "window_id")
_AZURE |= dict.fromkeys(("system.timestamp()", "system.timestamp"), "window_end")
_FLINK_TABLE = {"window_start": "window_start", "window_end": "window_end", "window_time": _MILLISECOND_BEFORE}
_FLINK_GROUP = {"start": "window_start", "end": "window_end"}
_FLINK_GROUP |= dict.fromkeys(("rowtime", "proctime"), _MILLISECOND_BEFORE)


def call_name(node: exp.Expr | None) -> str:
    """Return the lower-case name of a call, or an empty text."""
    return node.name.lower() if isinstance(node, exp.Anonymous) else ""


def grouped_windows(call: exp.Anonymous) -> Iterator[AnyWindow]:
    """Read the windows that an item of GROUP BY stands for."""
    name, arguments = call_name(call), call.expressions
    _check_supported(call)
    with errors_at(call):
        if name == "window":
            if not 2 <= len(arguments) <= 4:
                raise located_error(call, "window() is written window(ts, '20 minutes'[, slide[, start]])")
            yield _window(*map(_spelled, arguments[1:]))
        elif name == "session_window":
            if len(arguments) != 2:
                raise located_error(call, "session_window() is written session_window(ts, '30 minutes')")
            yield Session(_spelled(arguments[1]))
        elif name in _FLINK_LENGTHS:
            yield _flink_window(call, arguments[1:])
        elif name == "windows":
            for argument in arguments[1:] if time_of(call) is not None else arguments:
                yield _one_of_several(argument)
        else:
            yield _azure_window(call)


def time_of(call: exp.Anonymous) -> exp.Expr | None:
    """Return the time column that a window call names, if any."""
    first: exp.Expr | None = next(iter(call.expressions), None)
    if call_name(call) in ("window", "session_window", *_FLINK_LENGTHS):
        return first
    given = isinstance(first, exp.Alias | exp.Literal | exp.Interval | None) or call_name(first) in WINDOW_CALLS
    return first if call_name(call) == "windows" and not given else None


def table_window(call: exp.Anonymous) -> tuple[exp.Table, exp.Expr, AnyWindow]:
    """Read Flink's TUMBLE(TABLE t, DESCRIPTOR(ts), size); HOP and CUMULATE have a slide or a step before the size."""
    _check_supported(call)
    if call_name(call) == "session":
        raise located_error(
            call,
            "SESSION as a table has keys of its own, its PARTITION BY; write GROUP BY k, SESSION(ts, gap)",
        )
    lengths = _FLINK_LENGTHS[call_name(call)]
    arguments = _in_order(call, ("data", "timecol", *lengths, "offset"))
    if (
        len(arguments) not in (2 + len(lengths), 3 + len(lengths))
        or not isinstance(arguments[0], exp.Table)
        or call_name(arguments[1]) != "descriptor"
        or len(arguments[1].expressions) != 1
    ):
        form = ", ".join(lengths)
        raise located_error(call, f"{call.name} is written {call.name}(TABLE t, DESCRIPTOR(ts), {form}[, offset])")
    with errors_at(call):
        return arguments[0], arguments[1].expressions[0], _flink_window(call, arguments[2:])


def _check_supported(call: exp.Expr) -> None:
    if call_name(call) in _UNSUPPORTED:
        raise located_error(call, f"{call.name} is not supported; {SUPPORTED}")


def _window(size: int, slide: int | None = None, offset: int = 0, *, name: str = "") -> Window:
    return Window(range=size, slide=size if slide is None else slide, offset=offset, name=name)


def _in_order(call: exp.Anonymous, names: tuple[str, ...]) -> list[exp.Expr]:
    """List the arguments of a call in order, although they may be given by name: SIZE => INTERVAL '1' HOUR."""
    given = [each for each in call.expressions if isinstance(each, exp.Kwarg)]
    if not given:
        return list(call.expressions)
    named = {each.this.name.lower(): each.expression for each in given}
    if len(given) < len(call.expressions) or len(named) < len(given) or not named.keys() <= set(names):
        allowed = ", ".join(name.upper() for name in names)
        raise located_error(call, f"{call.name} takes all its arguments by name or none, each once: {allowed}")
    return [named[name] for name in names if name in named]


def _flink_window(call: exp.Anonymous, arguments: list[exp.Expr]) -> AnyWindow:
    lengths = _FLINK_LENGTHS[call_name(call)]
    if call_name(call) == "session" and len(arguments) == 1:
        return Session(_interval(arguments[0]))
    if len(arguments) not in (len(lengths), len(lengths) + 1) or call_name(call) == "session":
        offset_form = "" if call_name(call) == "session" else "[, offset]"
        raise located_error(call, f"{call.name} is written {call.name}(ts, {', '.join(lengths)}{offset_form})")
    read = dict(zip((*lengths, "offset"), map(_interval, arguments), strict=False))
    if "step" in read:
        size, step, offset = (timedelta(microseconds=read.get(part, 0)) for part in ("size", "step", "offset"))
        return cumulating(size, step=step, offset=offset)
    return _window(read["size"], read.get("slide"), read.get("offset", 0))


def _one_of_several(argument: exp.Expr) -> AnyWindow:
    """Read one entry of WINDOWS(...): text, Azure's Window(id, window), or a window without an id."""
    name = ""
    if isinstance(argument, exp.Alias):
        name, argument = argument.alias, argument.this
    if isinstance(argument, exp.Literal) and argument.is_string:
        return read_window_text(argument, name)
    if isinstance(argument, exp.Interval):
        return read_window_text(exp.Literal.string(interval_text(argument)), name)
    if call_name(argument) == "window":
        if len(argument.expressions) != 2 or not argument.expressions[0].is_string:
            raise located_error(argument, "Window is written Window('id', TumblingWindow(minute, 20))")
        name, argument = argument.expressions[0].this, argument.expressions[1]
    if not isinstance(argument, exp.Anonymous) or call_name(argument) not in WINDOW_CALLS:
        raise located_error(argument, f"{sql_of(argument)} is not a window; {SUPPORTED}")
    _check_supported(argument)
    if call_name(argument) not in ("tumblingwindow", "hoppingwindow"):
        raise located_error(
            argument,
            f"{sql_of(argument)} stands by itself in GROUP BY; in WINDOWS() write such as 'SESSION 30 minutes'",
        )
    plain = _azure_window(argument)
    return _window(plain.range, plain.slide, plain.offset, name=name)


def _azure_window(call: exp.Anonymous) -> Window:
    """Read TumblingWindow and HoppingWindow, with a unit first or with Duration(), Hop() and Offset()."""
    hops = call_name(call) == "hoppingwindow"
    wanted = ("duration", "hop") if hops else ("duration",)
    arguments = list(call.expressions)
    offset = _azure_length(arguments.pop()) if arguments and call_name(arguments[-1]) == "offset" else 0
    if arguments and isinstance(arguments[0], exp.Column):
        unit = _unit(arguments[0])
        numbers = [_whole(argument) * unit for argument in arguments[1:]]
        if len(numbers) == len(wanted) + 1 and not offset:
            offset = numbers.pop()
    else:
        for argument, name in zip(arguments, wanted, strict=False):
            if call_name(argument) != name:
                raise located_error(
                    argument, f"{sql_of(argument)} stands where {name.capitalize()}(unit, number) is expected"
                )
        numbers = [_azure_length(argument) for argument in arguments]
    if len(numbers) != len(wanted):
        form = "unit, size, hop" if hops else "unit, size"
        raise located_error(
            call, f"{call.name} is written {call.name}({form}[, offset]) or with Duration(...) and Hop(...)"
        )
    return Window(range=numbers[0], slide=numbers[-1], offset=offset)


def _azure_length(call: exp.Expr) -> int:
    if not isinstance(call, exp.Anonymous) or len(call.expressions) != 2:
        raise located_error(call, f"{sql_of(call)} is not a length; write it such as Duration(minute, 20)")
    unit, number = call.expressions
    return _unit(unit) * _whole(number)


def _unit(node: exp.Expr) -> int:
    if node.name.lower() not in UNITS:
        raise located_error(node, f"{sql_of(node)} is not a unit of time; allowed are {', '.join(_AZURE_UNITS)}")
    return UNITS[node.name.lower()]


def _whole(node: exp.Expr) -> int:
    if isinstance(node, exp.Neg):
        return -_whole(node.this)
    if not isinstance(node, exp.Literal) or not node.is_int:
        raise located_error(node, f"{sql_of(node)} is not a whole number")
    return int(node.this)


def _spelled(node: exp.Expr) -> int:
    """Read a length that is text, as in Spark, or an INTERVAL."""
    if isinstance(node, exp.Interval):
        return _interval(node)
    if not isinstance(node, exp.Literal) or not node.is_string:
        raise located_error(node, f"{sql_of(node)} is not a length of time; write it such as '20 minutes'")
    return duration(node.this.removeprefix("interval ").removeprefix("INTERVAL "))


def _interval(node: exp.Expr) -> int:
    with errors_at(node):
        return duration(interval_text(node))


def interval_text(node: exp.Expr) -> str:
    """Return the length of an INTERVAL as text."""
    if not isinstance(node, exp.Interval) or node.this is None or not isinstance(node.unit, exp.Var | None):
        raise located_error(node, f"{sql_of(node)} is not a length of time; write it such as INTERVAL '20' MINUTES")
    return f"{node.this.name} {node.unit.name if node.unit else ''}".strip()


def window_mentions(call: exp.Anonymous | None) -> dict[str, str]:
    """Map the ways to refer to the window of GROUP BY to their meaning; pass no call for Flink's, which is a table."""
    if call is None:
        return _AZURE | _FLINK_TABLE
    text, name = _plain(call), call.name.lower()
    if name in _FLINK_LENGTHS:
        return _AZURE | {f"{name}_{end}{text.removeprefix(name)}": column for end, column in _FLINK_GROUP.items()}
    found = _AZURE | ({column: column for column in WINDOW_COLUMNS} if name == "windows" else {})
    for prefix in ("session_window" if name == "session_window" else "window", text):
        found |= {prefix: WHOLE_WINDOW, f"{prefix}.start": "window_start", f"{prefix}.end": "window_end"}
        found[f"window_time({prefix})"] = "window_end - INTERVAL '1' MICROSECOND"
    return found


def window_column(node: exp.Expr, mentions: Mapping[str, str]) -> exp.Expr | None:
    """Return the meaning of a reference to the window, over the result's columns, if the node is one."""
    found = mentions.get(_plain(node)) if isinstance(node, exp.Column | exp.Dot | exp.Anonymous) else None
    return None if found is None else tree_of(found)


def _plain(node: exp.Expr) -> str:
    return sql_of(node).lower().replace("`", "")
