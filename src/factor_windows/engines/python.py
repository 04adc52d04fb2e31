"""The reference: plans and queries over plain Python lists, slow and obvious, following Spark's rules.

`evaluate` computes a query from its definition. `run` computes it as a physical plan says, step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import add, and_, eq, floordiv, ge, le, lt, mod, mul, ne, or_, sub
from typing import Any

from sqlglot import exp

from factor_windows import physical
from factor_windows.algebra.calendar import AnyWindow
from factor_windows.algebra.session import Session
from factor_windows.engines.python_sql import Row, sort_key, value_of
from factor_windows.functions.aggregate import Aggregate
from factor_windows.functions.expression import parse_once
from factor_windows.functions.table import FUNCTIONS
from factor_windows.physical import PhysicalPlan, Target
from factor_windows.physical.assigner import RAW
from factor_windows.physical.steps import (
    Aside,
    Chunk,
    Explode,
    Filter,
    FindSessions,
    Group,
    OwnWindow,
    Project,
    Repartition,
    Scan,
    ScanBlocks,
    Show,
    Step,
    Unpack,
    prefix_column,
    slot_column,
    suffix_column,
)
from factor_windows.physical.terms import Call, Column, Instant, Lookup, Number, Sql, Term, Tick
from factor_windows.plan import Plan
from factor_windows.query import Query

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "+": add,
    "-": sub,
    "*": mul,
    "%": mod,
    "div": floordiv,
    "<=": le,
    "<": lt,
    ">=": ge,
    "=": eq,
    "<>": ne,
    "AND": and_,
    "OR": or_,
    "least": min,
    "greatest": max,
    "int": int,
}
_FOLDS: Mapping[str, Callable[[list[Any]], Any]] = {
    "add": sum,
    "least": lambda values: min(values, key=sort_key),
    "greatest": lambda values: max(values, key=sort_key),
}


def evaluate(query: Query, rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Compute a query from its definition; times may be datetimes or microseconds, and are returned as microseconds.

    >>> from factor_windows.algebra.window import Window
    >>> query = Query(time="t", windows=[Window(range=10, slide=10, name="w")], aggregates=["sum(v) AS total"])
    >>> evaluate(query, [{"t": -1, "v": 1}, {"t": 3, "v": 2}, {"t": 9, "v": None}])[0]
    {'window_id': 'w', 'window_start': -10, 'window_end': 0, 'total': 1}
    """
    events = [{**row, ":time": time} for row, time in _events(query.where, query.parsed_time.sql, rows)]
    results = []
    for window, names in query.names.items():
        groups: dict[tuple[tuple[Any, ...], tuple[int, int]], list[Row]] = {}
        for keys, own in _by_keys(query, events).items():
            for event, bounds in _instances(window, own):
                groups.setdefault((keys, bounds), []).append(event)
        for (keys, bounds), group in groups.items():
            values = [_direct(aggregate, group) for aggregate in query.parsed_aggregates]
            results += [_result(query, [*keys, name, *bounds, *values]) for name in names]
    return results


def _by_keys(query: Query, events: Iterable[Row]) -> dict[tuple[Any, ...], list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = {}
    for event in events:
        keys = tuple(value_of(parse_once(key.sql), event) for key in query.parsed_keys)
        found.setdefault(keys, []).append(event)
    return found


def _instances(window: AnyWindow, events: Iterable[Row]) -> Iterator[tuple[Row, tuple[int, int]]]:
    """Assign each event of a key to every instance that contains it, by its start and end."""
    if isinstance(window, Session):
        for start, end in window.sessions(event[":time"] for event in events):
            yield from ((event, (start, end)) for event in events if start <= event[":time"] < end)
    else:
        yield from ((event, window.bounds_of(each)) for event in events for each in window.starts_of(event[":time"]))


def evaluate_plan(plan: Plan, rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Compute a query the way a plan does: lift events to states, merge them down the tree, lower them."""
    return run(physical.compile(plan.passes[0], Target.assumed(plan.query)), rows)


def run(compiled: PhysicalPlan, rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Compute a physical plan, step by step."""
    engine = _Steps(compiled)
    found: list[Row] = list(rows)
    shown: list[Row] = []
    for step in compiled.steps:
        if isinstance(step, Aside):
            node = step.show.node
            shown += engine.rows_after(step.show, [{**row, node: engine.value(step.node, row)} for row in found])
        else:
            found = list(engine.rows_after(step, found))
    return [_result(compiled.plan.query, list(row.values())) for row in (*shown, *found)]


def _events(where: str, time: str, rows: Iterable[Row]) -> Iterator[tuple[Row, int]]:
    """List the events that meet the condition, with their times in microseconds; drop those without a time."""
    for row in rows:
        if where and value_of(parse_once(where), row) is not True:
            continue
        at = value_of(parse_once(time), row)
        if isinstance(at, datetime):
            aware = at if at.tzinfo else at.replace(tzinfo=UTC)
            at = (aware - _EPOCH) // timedelta(microseconds=1)
        if at is not None:
            yield row, at


def _result(query: Query, values: Sequence[Any]) -> dict[str, Any]:
    computed = dict(zip(query.computed, values, strict=True))
    if not query.formulas:
        return computed
    return {column.name: value_of(parse_once(column.sql), computed) for column in query.parsed_output}


def _direct(aggregate: Aggregate, group: list[Row]) -> Any:
    call = parse_once(aggregate.sql).copy()
    if aggregate.function.by_time and not aggregate.distinct:
        calls = call.find_all(exp.Anonymous)
        [chosen] = (each for each in calls if FUNCTIONS.get(each.name.lower()) is aggregate.function)
        value = chosen.expressions[0]
        chosen.set("this", "min_by" if aggregate.function.states[0].fold == "least" else "max_by")
        chosen.set("expressions", [value, exp.Placeholder(this="time")])
        if "TRUE" in aggregate.arguments[1:]:
            group = [row for row in group if value_of(value, row) is not None]
    return value_of(call, {}, group)


@dataclass(frozen=True, slots=True)
class _Steps:
    compiled: PhysicalPlan

    def rows_after(self, step: Step, rows: list[Row]) -> Iterable[Row]:
        """Apply a step to rows."""
        match step:
            case Scan():
                for row, time in _events(step.where, step.time, rows):
                    yield {
                        **row,
                        **{name: value_of(parse_once(sql), row) for name, sql in step.keys},
                        step.column: time,
                    }
            case Explode():
                yield from self._exploded(step, rows)
            case FindSessions():
                yield from self._in_sessions(step, rows)
            case ScanBlocks():
                yield from self._in_blocks(step, rows)
            case Filter(conditions=conditions):
                yield from (row for row in rows if all(self.value(each, row) for each in conditions))
            case Project():
                for row in rows:
                    made = {name: self.value(term, row) for name, term in step.columns}
                    yield {**row, **made} if step.keeps_others else made
            case Group():
                yield from self._grouped(step, rows)
            case Chunk():
                for row in rows:
                    after = (row[step.start] - step.offset) % step.length
                    for back in (0, step.length) if after < step.reach else (0,):
                        yield {**row, step.column: row[step.start] - after - back}
            case Unpack():
                yield from (found for row in rows for found in self._unpacked(step, row))
            case OwnWindow():
                yield from [*rows, *self._windowed(step, rows)]
            case Show():
                yield from (found for row in rows if step.node in row for found in self._shown(step, row))
            case Repartition():
                yield from rows

    def _exploded(self, step: Explode, rows: list[Row]) -> Iterator[Row]:
        node = self.compiled.target.names.node
        for row in rows:
            for entry, source in enumerate(step.sources):
                if row.get(node, source) == source:
                    copy = {**row, step.entry: entry}
                    steps = 1 if step.counts is None else self.value(step.counts, copy)
                    yield from ({**copy, step.step: number} for number in range(steps))

    def _in_sessions(self, step: FindSessions, rows: list[Row]) -> Iterator[Row]:
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in rows:
            groups.setdefault(tuple(row[name] for name in step.by), []).append(row)
        for members in groups.values():
            starts: dict[str, int] = {}
            last: int | None = None
            for row in sorted(members, key=lambda row: row[step.first]):
                first = row[step.first]
                starts |= {name: first for name, gap in step.gaps if last is None or first - last > gap}
                last = row[step.last]
                yield {**row, **starts}

    def _in_blocks(self, step: ScanBlocks, rows: list[Row]) -> Iterator[Row]:
        blocks: dict[tuple[Any, ...], list[Row]] = {}
        for row in rows:
            begin = row[step.start] - (row[step.start] - step.offset) % step.length
            blocks.setdefault((*(row[name] for name in step.by), begin), []).append(row)
        for (*_, begin), members in blocks.items():
            members.sort(key=lambda row: row[step.start])
            edges = [begin, *(row[step.start] for row in members), begin + step.length]
            for place, row in enumerate(members):
                merged = {step.previous: edges[place], step.next: edges[place + 2]}
                for column, part in ((prefix_column, members[: place + 1]), (suffix_column, members[place:])):
                    merged |= {column(name): value_of(parse_once(sql.text), {}, part) for name, sql in step.aggregates}
                yield {**row, **merged}

    def _grouped(self, step: Group, rows: list[Row]) -> Iterator[Row]:
        groups: dict[tuple[Any, ...], list[Row]] = {}
        start = self.compiled.target.names.start
        for row in rows:
            # The lowest bits of starts are left out, as on Spark.
            short = {**row, start: row[start] >> step.zeros << step.zeros}
            groups.setdefault(tuple(short[name] for name in step.by), []).append(row)
        for values, members in groups.items():
            constants = {name: self.value(term, {}) for name, term in step.constants}
            computed = {name: value_of(parse_once(sql.text), {}, members) for name, sql in step.aggregates}
            yield {**dict(zip(step.by, values, strict=True)), **constants, **computed}

    def _windowed(self, step: OwnWindow, rows: list[Row]) -> Iterator[Row]:
        names = self.compiled.target.names
        groups: dict[tuple[Any, ...], list[Row]] = {}
        assert not isinstance(step.window, Session)
        for row in rows:
            if row.get(names.node, RAW) == step.source:
                for start in step.window.starts_of(row[names.time if step.source == RAW else names.start]):
                    groups.setdefault((*(row[key] for key in names.keys), start), []).append(row)
        for (*keys, start), members in groups.items():
            computed = {name: value_of(parse_once(sql.text), {}, members) for name, sql in step.aggregates}
            yield {**dict(zip(names.keys, keys, strict=True)), names.start: start, names.node: step.node, **computed}

    def _unpacked(self, step: Unpack, row: Row) -> Iterator[Row]:
        for node, slots in step.entries:
            if row[step.filled] & sum(1 << slot for slot in slots):
                states = {}
                for state in step.states:
                    parts = [row[slot_column(state.name, slot)] for slot in slots]
                    known = [part for part in parts if part is not None]
                    states[state.name] = parts[0] if len(parts) == 1 else _FOLDS[state.fold](known) if known else None
                start = row[step.start] + slots.start * step.pane_row.pane.range
                yield {**{name: row[name] for name in step.keeps}, step.start: start, step.node: node, **states}

    def _shown(self, step: Show, row: Row) -> Iterator[Row]:
        keys = {name: row[name] for name in step.keys}
        ends = {"start": self.value(step.start, row), "end": self.value(step.end, row)}
        values = {f"value {place}": self.value(term, row) for place, term in enumerate(step.values)}
        for name in step.names[row[step.node]]:
            yield {**keys, "name": name, **ends, **values}

    def value(self, term: Term, row: Row) -> Any:
        """Compute a term for a row."""
        match term:
            case Column(name=name):
                return row[name]
            case Number(value=value):
                return value
            case Lookup(by=by, values=values):
                return values[row[by]]
            case Sql(text=text):
                return value_of(parse_once(text), row)
            case Tick(clock=clock, time=time):
                return clock.tick(self.value(time, row))
            case Instant(clock=clock, tick=tick):
                return clock.instant(self.value(tick, row))
            case Call(function="least" | "greatest" as function, arguments=arguments):
                known = [value for each in arguments if (value := self.value(each, row)) is not None]
                return _FUNCTIONS[function](known)
            case Call(function="if", arguments=(condition, value, *other)):
                chosen = [value] if self.value(condition, row) else other
                return self.value(chosen[0], row) if chosen else None
            case Call(function="case", arguments=(subject, default, *pairs)):
                number = self.value(subject, row)
                found = {self.value(pairs[place], row): pairs[place + 1] for place in range(0, len(pairs), 2)}
                return self.value(found.get(number, default), row)
            case Call(function=function, arguments=arguments):
                return _FUNCTIONS[function](*(self.value(argument, row) for argument in arguments))
        raise TypeError(f"{term!r} is not a term")
