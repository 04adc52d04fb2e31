"""Spark SQL for terms and steps: the same text for batch and for streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from factor_windows.algebra.clock import Clock
from factor_windows.engines.written_terms import write_term
from factor_windows.physical.steps import Explode
from factor_windows.physical.target import Names
from factor_windows.physical.terms import Lookup, Number, Term
from factor_windows.spark.local_time import SparkLocalTime, write_instant, write_tick

_LOCAL = SparkLocalTime()


@dataclass(frozen=True, slots=True)
class SparkWords:
    """Writes terms over the columns of a run."""

    names: Names

    def number(self, number: Number) -> str:
        """Write a number with its type: Spark reads a plain one as an integer."""
        return f"{number.value}L" if number.type == "bigint" else str(number.value)

    def lookup(self, lookup: Lookup) -> str:
        """Read a value from a list of constants, which Spark makes once."""
        return f"element_at({_array(lookup.values, lookup.type)}, {lookup.by} + 1)"

    def modulo(self, number: str, divisor: str) -> str:
        """Write a call of pmod."""
        return f"pmod({number}, {divisor})"

    def tick(self, clock: Clock, time: str) -> str:
        """Write the number of a local day or month."""
        return write_tick(clock, time, _LOCAL)

    def instant(self, clock: Clock, tick: str) -> str:
        """Write the time at which a local day or month starts."""
        return write_instant(clock, tick, _LOCAL)

    def sql(self, text: str) -> str:
        """Return text that is already Spark SQL."""
        return text

    def term(self, term: Term) -> str:
        """Write a term."""
        return write_term(term, self)

    def explodes(self, step: Explode) -> list[tuple[str, str]]:
        """List the columns that an explode makes, each with the array that it explodes."""
        found = []
        if step.has_entries:
            found.append((step.entry, self._entries(step)))
        if step.counts is not None:
            found.append((step.step, f"sequence(0, {self.term(step.counts)} - 1)"))
        return found

    def _entries(self, step: Explode) -> str:
        """Write the numbers of a row's entries: the same for all rows, or by the row's node."""
        sources = step.sources
        own = {source: [place for place, other in enumerate(sources) if other == source] for source in sources}
        if len(own) == 1 and not step.above:
            return _array(own[sources[0]], "int")
        arrays = ", ".join(_array(own.get(position, []), "int") for position in range(max(max(own) + 1, step.above)))
        return f"element_at(array({arrays}), {self.names.node} + 1)"


def _array(values: Sequence[int], type: str) -> str:
    return f"CAST(array({', '.join(map(str, values))}) AS array<{type}>)"
