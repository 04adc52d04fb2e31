"""Terms: the values that the steps of a physical plan compute for a row, in a form that every engine can render."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from factor_windows.algebra.clock import Clock, empty_days
from factor_windows.algebra.slices import Progression, Slices
from factor_windows.algebra.window import Window


@dataclass(frozen=True, slots=True)
class Term:
    """An expression with a value in each row."""

    def __add__(self, other: Term | int) -> Term:
        return _combine("+", self, other)

    def __sub__(self, other: Term | int) -> Term:
        return _combine("-", self, other)

    def __mul__(self, other: Term | int) -> Call:
        return Call("*", (self, _term(other)))

    def __mod__(self, other: Term | int) -> Term:
        """Return a remainder that is never negative."""
        divisor = _term(other)
        return Number(0) if divisor == Number(1) else Call("%", (self, divisor))

    def __floordiv__(self, other: Term | int) -> Call:
        return Call("div", (self, _term(other)))

    def __le__(self, other: Term | int) -> Call:
        return Call("<=", (self, _term(other)))

    def __lt__(self, other: Term | int) -> Call:
        return Call("<", (self, _term(other)))

    def __ge__(self, other: Term | int) -> Call:
        return Call(">=", (self, _term(other)))

    def __and__(self, other: Term) -> Call:
        return Call("AND", (self, other))

    def __or__(self, other: Term) -> Call:
        return Call("OR", (self, other))

    def differs(self, other: Term | int) -> Call:
        """Say whether the two values differ."""
        return Call("<>", (self, _term(other)))

    def equals(self, other: Term | int) -> Call:
        """Say whether the two values are equal."""
        return Call("=", (self, _term(other)))


@dataclass(frozen=True, slots=True)
class Column(Term):
    """A column of the row."""

    name: str


@dataclass(frozen=True, slots=True)
class Number(Term):
    """An integer."""

    value: int
    type: str = "bigint"


@dataclass(frozen=True, slots=True)
class Lookup(Term):
    """The number at the position given by a column: the row's entry, its node, or its slot."""

    by: str
    name: str
    values: tuple[int, ...]
    type: str = "bigint"


@dataclass(frozen=True, slots=True)
class Tick(Term):
    """The number of the last tick of a clock at or before a time."""

    clock: Clock
    time: Term


@dataclass(frozen=True, slots=True)
class Instant(Term):
    """The time of a clock's tick."""

    clock: Clock
    tick: Term


@dataclass(frozen=True, slots=True)
class Call(Term):
    """An operator, or one of a few functions.

    `least` and `greatest` (ignoring nulls), `int`, `if` (a condition, a value, and another value or null otherwise),
    `case` (a subject, a default, pairs of a number and a value).
    """

    function: str
    arguments: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Sql(Term):
    """An expression or an aggregate in Spark SQL: the user's, or of a function's states."""

    text: str


def look_up(by: str, name: str, values: Sequence[int], type: str = "bigint") -> Term:
    """Return the number at the position given by a column; one constant, if all numbers are the same.

    >>> look_up("entry", "lag", [5, 5]), look_up("entry", "lag", [5, 6])
    (Number(value=5, type='bigint'), Lookup(by='entry', name='lag', values=(5, 6), type='bigint'))
    """
    return Number(values[0], type) if len(set(values)) == 1 else Lookup(by, name, tuple(values), type)


def after_edge(edges: Sequence[Progression], time: Term) -> Term:
    """Return how long a time is after the last edge at or before it."""
    return _least([(time - offset) % step for step, offset in edges])


def after_slice_start(slices: Slices, time: Term) -> Term:
    """Return how long a time is after the start of its slice; clocks are used only for times that need them."""
    fixed = [(time - offset) % step for step, offset in slices.edges]
    own = [
        _unless_settled(slices, clock, time, time - Instant(clock, _last_tick(clock, edge, time)))
        for clock, edge in slices.calendars
    ]
    return _least([*fixed, *own])


def to_slice_end(slices: Slices, start: Term) -> Term:
    """Return the length of the slice that starts at `start`."""
    fixed = [Number(step) - (start - offset) % step for step, offset in slices.edges]
    own = [
        _unless_settled(slices, clock, start, Instant(clock, _last_tick(clock, edge, start) + edge[0]) - start)
        for clock, edge in slices.calendars
    ]
    return _least([*fixed, *own])


def start_of(window: Window, time: Term) -> Term:
    """Return the start of the instance of a tumbling window that contains a time."""
    edge = (window.slide, window.offset)
    return (
        time - after_edge([edge], time)
        if window.clock is None
        else Instant(window.clock, _last_tick(window.clock, edge, time))
    )


def end_of(window: Window, time: Term) -> Term:
    """Return the end of the instance of a tumbling window that contains a time."""
    edge = (window.slide, window.offset)
    if window.clock is None:
        return time - after_edge([edge], time) + window.range
    return Instant(window.clock, _last_tick(window.clock, edge, time) + window.range)


def end_after(window: Window, start: Term) -> Term:
    """Return the end of the instance of a window that starts at `start`."""
    if window.clock is None:
        return start + window.range
    if window.clock.unit == "day" and empty_days(window.clock.zone):
        # Where a day was skipped, two ticks have the same time, and the window's own tick is the first of them.
        return Instant(window.clock, _last_tick(window.clock, (window.slide, window.offset), start) + window.range)
    return Instant(window.clock, Tick(window.clock, start) + window.range)


def _last_tick(clock: Clock, edge: Progression, time: Term) -> Term:
    tick = Tick(clock, time)
    step, offset = edge
    return tick - (tick - offset) % step


def _unless_settled(slices: Slices, clock: Clock, time: Term, value: Term) -> Term:
    since = slices.since(clock)
    return value if since == inf else only_if(time < int(since), value)


def _least(terms: Sequence[Term]) -> Term:
    return terms[0] if len(terms) == 1 else Call("least", tuple(terms))


def only_if(condition: Term, value: Term) -> Call:
    """Return a value where a condition holds, and null otherwise."""
    return Call("if", (condition, value))


def parts_of(term: Term) -> Iterator[Term]:
    """List a term and all its parts."""
    yield term
    inner = term.arguments if isinstance(term, Call) else ()
    if isinstance(term, Tick | Instant):
        inner = (term.time if isinstance(term, Tick) else term.tick,)
    for argument in inner:
        yield from parts_of(argument)


def _term(value: Term | int) -> Term:
    return Number(value) if isinstance(value, int) else value


def _combine(sign: str, left: Term, right: Term | int) -> Term:
    right = _term(right)
    return left if isinstance(right, Number) and right.value == 0 else Call(sign, (left, right))
