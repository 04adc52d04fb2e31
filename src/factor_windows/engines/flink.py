"""A physical plan in Flink SQL: a WITH step for each node, with Flink's own TUMBLE and HOP over its input.

Flink's windows chain through `window_time`, the last instant of the instance that made a row. A node's own columns
`window_start` and `window_end` are renamed: its readers get new ones with the same names.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from factor_windows import physical
from factor_windows.algebra.calendar import AnyWindow
from factor_windows.algebra.growing import Growing
from factor_windows.algebra.session import Session
from factor_windows.algebra.window import MICROSECONDS
from factor_windows.engines.read_columns import ReadColumns
from factor_windows.engines.sql_steps import free, indented, one_line, own_prefix
from factor_windows.errors import QueryError
from factor_windows.functions.expression import quoted, sql_of, tree_of
from factor_windows.functions.table import Engines, Kind
from factor_windows.physical import Target
from factor_windows.physical.assigner import RAW
from factor_windows.physical.steps import OwnWindow, Scan, Show
from factor_windows.physical.target import Names, Values
from factor_windows.physical.terms import Sql, parts_of
from factor_windows.query import Query
from factor_windows.sql.dialects import Flink
from factor_windows.tree import Pass

_ENDS = ("window_start", "window_end", "window_time")


def emit_flink(plan: Pass) -> str:
    """Write a plan in Flink SQL."""
    query = plan.query
    _check(query)
    names = Names(own_prefix(query), tuple(key.name for key in query.parsed_keys), query.time)
    values = Values.of(query.parsed_aggregates, names, shared=True)
    compiled = physical.compile(plan, Target(names, values, has_windows=True))
    own = [step for step in compiled.steps if isinstance(step, OwnWindow)]
    prefix = free(("events", "node_", "computed"), query.source or "events")
    columns = ReadColumns(names.prefix, taken=[*names.keys, *_ENDS])
    lifts = {
        sql.text: sql_of(columns.take(tree_of(sql.text)))
        for step in own
        if step.source == RAW
        for _, sql in step.aggregates
    }
    steps = [f"-- events\n{prefix}events AS (\n  SELECT {_events(compiled.scan, columns, query, names)}\n)"]
    tables = {RAW: f"{prefix}events", **{step.node: f"{prefix}node_{step.node + 1}" for step in own}}
    keys = [quoted(key) for key in names.keys]
    for step in own:
        node = compiled.plan.nodes[step.node]
        made = [f"{lifts.get(sql.text, sql.text)} AS {name}" for name, sql in step.aggregates]
        listed = [*keys, *(f"{name} AS {names.prefix}{name.removeprefix('window_')}" for name in _ENDS), *made]
        shown = " = ".join(node.shown_as) if node.exposed else f"{node.name} (hidden)"
        source = tables[step.source]
        steps.append(
            f"-- {one_line(f'{shown}: from {source}')}\n{tables[step.node]} AS (\n  SELECT {', '.join(listed)}\n"
            f"  FROM TABLE({_call(step.window, source, f'{names.prefix}time')})\n"
            f"  GROUP BY {', '.join([*keys, *_ENDS])}\n)"
        )
    united = "\nUNION ALL\n".join(_shown(compiled.show, query, tables, names))
    if not query.parsed_output and not query.having:
        return _with(steps, united)
    steps.append(f"-- every window under its name\n{prefix}computed AS (\n{indented(united)}\n)")
    chosen = ", ".join(f"{column.sql} AS {quoted(column.name)}" for column in query.parsed_output)
    having = f"\nWHERE {query.kept}" if query.having else ""
    return _with(steps, f"SELECT {chosen or '*'}\nFROM {prefix}computed{having}")


def _check(query: Query) -> None:
    for aggregate in query.parsed_aggregates:
        if aggregate.function.engines < Engines.ALL or aggregate.kind >= Kind.COUNTED:
            raise QueryError(
                f"{aggregate.sql} cannot be written for Flink, which cannot merge its parts; "
                "min, max, count, sum and avg can"
            )
    for window in query.windows:
        if isinstance(window, Session):
            raise QueryError(
                f"the window {window.name!r} cannot be written for Flink, whose sessions are made of events and not of "
                "partial results; tumbling, hopping and cumulating ones can"
            )
        if any(part.clock for part in window.parts):
            raise QueryError(
                f"the window {window.name!r} cannot be written for Flink, whose windows have fixed lengths and know no "
                "calendar; tumbling, hopping and cumulating ones can"
            )
    if query.outer or not query.parsed_time.sql.replace("`", "").isidentifier():
        raise QueryError("only plain window aggregates over a time column can be written for Flink")


def _with(steps: list[str], final: str) -> str:
    listed = ",\n".join(steps)
    return f"WITH\n{listed}\n{final}"


def _events(scan: Scan, columns: ReadColumns, query: Query, names: Names) -> str:
    """Select the keys, the columns that are read, and the time."""
    keys = [f"{sql} AS {quoted(name)}" for name, sql in scan.keys]
    listed = [*keys, *map(sql_of, columns.selected), f"{scan.time} AS {names.prefix}time"]
    where = f" WHERE {scan.where}" if scan.where else ""
    return f"{', '.join(listed)} FROM {query.source or 'events'}{where}"


def _shown(show: Show, query: Query, tables: dict[int, str], names: Names) -> Iterable[str]:
    """Select each window under its names."""
    lowers = [part.text for value in show.values for part in parts_of(value) if isinstance(part, Sql)]
    values = [f"{sql} AS {quoted(each.name)}" for each, sql in zip(query.parsed_aggregates, lowers, strict=True)]
    ends = [f"{names.prefix}{end} AS window_{end}" for end in ("start", "end")]
    for node, shown_as in enumerate(show.names):
        for name in shown_as:
            window_id = f"{exp.Literal.string(name).sql(dialect=Flink)} AS window_id"
            listed = [*map(quoted, show.keys), window_id, *ends, *values]
            yield f"SELECT {', '.join(listed)}\nFROM {tables[node]}"


def _call(window: AnyWindow, source: str, time: str) -> str:
    assert not isinstance(window, Session)
    if isinstance(window, Growing):
        growing = [_interval(part.range) for part in (window.step, window.period)]
        growing += [_interval(window.period.offset)] if window.period.offset else []
        return f"CUMULATE(TABLE {source}, DESCRIPTOR({time}), {', '.join(growing)})"
    lengths = [_interval(window.range)] if window.is_tumbling else [_interval(window.slide), _interval(window.range)]
    if window.offset:
        lengths.append(_interval(window.offset))
    function = "TUMBLE" if window.is_tumbling else "HOP"
    return f"{function}(TABLE {source}, DESCRIPTOR({time}), {', '.join(lengths)})"


def _interval(microseconds: int) -> str:
    for unit in ("day", "hour", "minute", "second"):
        if microseconds % MICROSECONDS[unit] == 0:
            number = str(microseconds // MICROSECONDS[unit])
            # Flink accepts two digits, unless more are declared.
            return f"INTERVAL '{number}' {unit.upper()}" + (f"({len(number)})" if len(number) > 2 else "")
    if microseconds % 1000:
        raise QueryError("Flink's windows are whole milliseconds long; this plan has a finer one")
    seconds, milliseconds = divmod(microseconds // 1000, 1000)
    return f"INTERVAL '{seconds}.{milliseconds:03}' SECOND({max(2, len(str(seconds)))}, 3)"
