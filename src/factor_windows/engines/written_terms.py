"""Terms as SQL text; engines differ only in a few words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from factor_windows.algebra.clock import Clock
from factor_windows.physical.terms import Call, Column, Instant, Lookup, Number, Sql, Term, Tick

_INFIX = ("+", "-", "*", "div", "<=", "<", ">=", "=", "<>", "AND", "OR")
_TIGHT = ("*", "div")


class Words(Protocol):
    """The words in which engines differ."""

    def number(self, number: Number) -> str:
        """Write a whole number."""

    def lookup(self, lookup: Lookup) -> str:
        """Write a number by the position that a column gives."""

    def modulo(self, number: str, divisor: str) -> str:
        """Write a remainder that is never negative."""

    def tick(self, clock: Clock, time: str) -> str:
        """Write the number of the last tick of a clock at or before a time."""

    def instant(self, clock: Clock, tick: str) -> str:
        """Write the time of a clock's tick."""

    def sql(self, text: str) -> str:
        """Write an expression given in Spark SQL."""


def write_term(term: Term, words: Words) -> str:
    """Write a term.

    >>> from factor_windows.engines.sql_steps import SPELLINGS, SqlWords
    >>> write_term(Column("t") - (Column("t") - 3) % 10, SqlWords(SPELLINGS["duckdb"], "fw_"))
    't - CASE WHEN t - 3 >= 0 THEN (t - 3) % 10 ELSE (((t - 3) % 10) + 10) % 10 END'
    """

    def write(part: Term) -> str:
        return write_term(part, words)

    match term:
        case Column(name=name):
            return name
        case Number():
            return words.number(term)
        case Lookup():
            return words.lookup(term)
        case Sql(text=text):
            return words.sql(text)
        case Tick(clock=clock, time=time):
            return words.tick(clock, write(time))
        case Instant(clock=clock, tick=tick):
            return words.instant(clock, write(tick))
        case Call(function="%", arguments=(number, divisor)):
            return words.modulo(write(number), write(divisor))
        case Call(function="if", arguments=(condition, value, *other)):
            otherwise = "".join(f" ELSE {write(each)}" for each in other)
            return f"CASE WHEN {write(condition)} THEN {write(value)}{otherwise} END"
        case Call(function="case", arguments=(subject, default, *pairs)):
            cases = zip(pairs[::2], pairs[1::2], strict=True)
            whens = " ".join(f"WHEN {write(number)} THEN {write(value)}" for number, value in cases)
            return f"CASE {write(subject)} {whens} ELSE {write(default)} END"
        case Call(function="int", arguments=(value,)):
            return f"CAST({write(value)} AS INT)"
        case Call(function=function) if function in _INFIX:
            return _infix(term, write)
        case Call(function=function, arguments=arguments):
            return f"{function}({', '.join(map(write, arguments))})"
    raise TypeError(f"{term!r} is not a term")


def _infix(call: Call, write: Callable[[Term], str]) -> str:
    """Write an operator between two terms, with parentheses where it binds more tightly than they do."""
    left, right = call.arguments

    def inner(part: Term, *, is_right: bool) -> str:
        loose = isinstance(part, Call) and part.function in ("+", "-")
        needs = loose and (call.function in _TIGHT or (is_right and call.function == "-"))
        if isinstance(part, Call) and part.function in ("AND", "OR"):
            needs = part.function != call.function
        return f"({write(part)})" if needs else write(part)

    return f"{inner(left, is_right=False)} {call.function} {inner(right, is_right=True)}"
