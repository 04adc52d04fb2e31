"""The steps of a plan that counts values: rows have one more key, and at the end an instance's rows become one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from factor_windows.physical.assigner import RAW
from factor_windows.physical.layout import Level
from factor_windows.physical.steps import Explode, Group, Named, Project, Step
from factor_windows.physical.target import Names, Values
from factor_windows.physical.terms import Column, Number, Sql, Term, only_if
from factor_windows.tree import Pass

Where = Callable[[Sequence[bool], str, Term], Term]
"""A function that keeps a term in some entries of a level."""


class ValueSteps:
    """The extra steps of a plan that counts values; there are none if it does not."""

    def __init__(self, plan: Pass, names: Names, values: Values) -> None:
        self.plan, self.names, self.values = plan, names, values
        self.columns = tuple(column for key in values.keys for column in key.columns)
        self.needs = plan.needs([each.columns for each in values.results]) if values.keys else []

    def compute_values(self) -> Iterator[Step]:
        """Compute the values of each event."""
        parts = [
            (f"{column}_", Sql(part))
            for key in self.values.keys
            for column, part in zip(key.columns, key.parts, strict=True)
        ]
        if parts:
            yield Project(tuple(parts), keeps_others=True)

    def give_to_entries(self) -> Iterator[Step]:
        """Assign each event to an entry for each value that it is counted by."""
        if len(self.values.keys) > 1:
            yield Explode((RAW,) * len(self.values.keys), self.names.value_entry, None, self.names.step)

    def carried(self, level: Level, where: Where, *, is_first: bool) -> Iterator[Named]:
        """Return the values of a row, in the entries of a level that need them."""
        for place, key in enumerate(self.values.keys):
            for column in key.columns:
                value: Term = Column(f"{column}_" if is_first else column)
                if is_first and len(self.values.keys) > 1:
                    value = only_if(Column(self.names.value_entry).equals(Number(place, "int")), value)
                needed = [column in self.needs[each.target] for each, _ in level.entries]
                yield column, where(needed, f"has_{column}", value)

    def merge_values(
        self, level: Level, chunk: tuple[str, ...], end: Term, ends: tuple[tuple[str, Sql], ...] = ()
    ) -> Group:
        """Make one row of all rows of an instance: merge states once more, and compute aggregates of counted values.

        If rows have the times of their first and last event, these are merged, too.
        """
        names, states = self.names, self.values.states
        merged = [(state.name, Sql(state.combine)) for state in states]
        results = enumerate(self.values.results)
        found = [(names.value(place), Sql(each.merged)) for place, each in results if each.merged]
        by_node = len(level.nodes) > 1
        node = () if by_node else ((names.node, Number(level.nodes[0], "int")),)
        return Group(
            by=(*names.keys, *([names.node] if by_node else []), names.start, *chunk),
            aggregates=(*merged, *found, *ends),
            constants=node,
            end=end,
            merges=True,
            reads=(*self.columns, *(state.name for state in states), *(name for name, _ in ends)),
        )
