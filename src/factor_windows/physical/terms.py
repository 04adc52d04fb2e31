"""Terms: what the steps of a physical plan compute for a row, in words that every engine can write down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from factor_windows.algebra.slices import Progression


@dataclass(frozen=True, slots=True)
class Term:
    """Something that has a value in each row."""

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

    def equals(self, other: Term | int) -> Call:
        """Say whether both have the same value."""
        return Call("=", (self, _term(other)))


@dataclass(frozen=True, slots=True)
class Column(Term):
    """A column of the row."""

    name: str


@dataclass(frozen=True, slots=True)
class Number(Term):
    """A whole number."""

    value: int
    type: str = "bigint"


@dataclass(frozen=True, slots=True)
class Lookup(Term):
    """The number at the place that a column has: by the row's entry, its node, or its slot."""

    by: str
    name: str
    values: tuple[int, ...]
    type: str = "bigint"


@dataclass(frozen=True, slots=True)
class Call(Term):
    """An operator, or one of a few functions.

    `least`, `greatest`, `int`, `if` (a condition, a value; null otherwise), `case` (a subject, a default, pairs of
    a number and a value).
    """

    function: str
    arguments: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Sql(Term):
    """An expression or an aggregate in Spark SQL: the user's, or of a function's states."""

    text: str


def look_up(by: str, name: str, values: Sequence[int], type: str = "bigint") -> Term:
    """Return the number at the place that a column has; one constant, if it is the same everywhere.

    >>> look_up("entry", "lag", [5, 5]), look_up("entry", "lag", [5, 6])
    (Number(value=5, type='bigint'), Lookup(by='entry', name='lag', values=(5, 6), type='bigint'))
    """
    return Number(values[0], type) if len(set(values)) == 1 else Lookup(by, name, tuple(values), type)


def after_edge(edges: Sequence[Progression], time: Term) -> Term:
    """Return how long a time is after the last of some edges that is not after it."""
    terms = tuple((time - offset) % step for step, offset in edges)
    return terms[0] if len(terms) == 1 else Call("least", terms)


def only_if(condition: Term, value: Term) -> Call:
    """Return a value where a condition holds, and null elsewhere."""
    return Call("if", (condition, value))


def parts_of(term: Term) -> Iterator[Term]:
    """List a term and all terms in it."""
    yield term
    if isinstance(term, Call):
        for argument in term.arguments:
            yield from parts_of(argument)


def _term(value: Term | int) -> Term:
    return Number(value) if isinstance(value, int) else value


def _combine(sign: str, left: Term, right: Term | int) -> Term:
    right = _term(right)
    return left if isinstance(right, Number) and right.value == 0 else Call(sign, (left, right))
