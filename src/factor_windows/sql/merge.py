"""Merge the branches of a statement into one query: windows together, each with its own aggregates and conditions.

A workload of several queries is different: here all keys are the same and the result is one table, whose columns are
another expression for each window; conditions become FILTERs, so that one query is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from factor_windows.functions.aggregate import add_filter
from factor_windows.functions.expression import quoted, sql_of
from factor_windows.functions.guards import either
from factor_windows.query import WINDOW_COLUMNS, Query
from factor_windows.sql.branch import Branch, Held
from factor_windows.sql.statement import choose_by

WINDOW_ID = WINDOW_COLUMNS[0]
_EVENTS = exp.Anonymous(this="count", expressions=[exp.Star()])


def merge_branches(branches: Sequence[Branch]) -> Query:
    """Make one query of branches that differ in their windows, and perhaps in their aggregates and conditions."""
    return _Merger(branches).query()


class _Merger:
    def __init__(self, branches: Sequence[Branch]) -> None:
        self.branches, self.first = branches, branches[0]
        self.ids = _name_windows(branches)
        self.conditions = [sql_of(branch.where) if branch.where else "" for branch in branches]
        self.is_same_where = len(set(self.conditions)) == 1
        self.calls: dict[str, str] = {}
        """The aggregates of all branches, each with the name of its column."""
        self.used: list[set[str]] = [set() for _ in branches]

    def query(self) -> Query:
        first, branches = self.first, self.branches
        numbers = range(len(branches))
        output = []
        for place, (name, _) in enumerate(first.columns):
            texts = [self._lower(number, branches[number].columns[place][1], name) for number in numbers]
            output.append(f"{choose_by(WINDOW_ID, self.ids, texts)} AS {quoted(name)}")
        kept = [self._kept(number) for number in numbers]
        if not self.calls:
            # Groups matter even if nothing is computed from them.
            self._column(0, _EVENTS)
        return Query(
            time=self._time(),
            keys=[f"{key.sql} AS {quoted(key.name)}" for key in first.keys],
            windows=[
                replace(window, name=name)
                for branch, ids in zip(branches, self.ids, strict=True)
                for window, name in zip(branch.windows, ids, strict=True)
            ],
            aggregates=[f"{text} AS {quoted(name)}" for text, name in self.calls.items()],
            where=either(list(dict.fromkeys(self.conditions))) if all(self.conditions) else "",
            having=choose_by(WINDOW_ID, self.ids, [test or "TRUE" for test in kept]) if any(kept) else "",
            output=output,
            source=first.source,
            absent=dict.fromkeys(name for branch in branches for name in branch.absent),
            asked=self._asked(),
        )

    def _time(self) -> str:
        """Write the time; a null time of a bucket raises an error, since null is not a window."""
        time = self.first.time
        refusing = [place for place, branch in enumerate(self.branches) if branch.note]
        if not refusing:
            return time
        message = exp.Literal.string(f"{time} is null, which is no window; add WHERE {time} IS NOT NULL")
        error = f"raise_error({sql_of(message)})"
        conditions = [self.conditions[place] for place in refusing]
        if not self.is_same_where and all(conditions):
            error = f"CASE WHEN {either(conditions)} THEN {error} END"
        return f"coalesce({time}, {error})"

    def _asked(self) -> list[list[int]]:
        """List for each window the positions of the aggregates that its branch shows, unless all branches show all."""
        if all(len(own) == len(self.calls) for own in self.used):
            return []
        places = [[place for place, text in enumerate(self.calls) if text in own] for own in self.used]
        return [own for own, ids in zip(places, self.ids, strict=True) for _ in ids]

    def _column(self, number: int, call: exp.Expr, wanted: str = "") -> exp.Expr:
        """Return the column of a branch's aggregate, named `wanted` if nothing else has this name."""
        where = None if self.is_same_where else self.branches[number].where
        text = sql_of(add_filter(call, where) if where else call)
        if text not in self.calls:
            keys = (key.name for key in self.first.keys)
            taken = {name.lower() for name in (*WINDOW_COLUMNS, *keys, *self.calls.values())}
            is_free = wanted and wanted.lower() not in taken and not wanted.lower().startswith("value_")
            self.calls[text] = wanted if is_free else f"value_{len(self.calls)}"
        self.used[number].add(text)
        return exp.column(self.calls[text], quoted=True)

    def _lower(self, number: int, tree: exp.Expr, name: str = "") -> str:
        """Write a branch's expression over the common columns; an aggregate that is all of it is named `name`."""
        branch = self.branches[number]
        wanted = name if isinstance(tree, Held) else ""
        keys = {} if branch.keys == self.first.keys else self._shown_keys(branch)

        def change(node: exp.Expr) -> exp.Expr:
            if isinstance(node, Held):
                return self._column(number, node.this, wanted)
            if isinstance(node, exp.Column) and node.name == WINDOW_ID:
                return _shown_id(branch, self.ids[number])
            if isinstance(node, exp.Column) and node.name in keys:
                return exp.column(keys[node.name], quoted=True)
            return node

        return sql_of(tree.transform(change))

    def _shown_keys(self, branch: Branch) -> dict[str, str]:
        """Map the names of a branch's keys to those of the first branch's."""
        shown = {form: key.name for form, key in zip(self.first.key_forms, self.first.keys, strict=True)}
        return {key.name: shown[form] for form, key in zip(branch.key_forms, branch.keys, strict=True)}

    def _kept(self, number: int) -> str:
        """Write the condition for a branch's rows of the common result: events of its own, and its HAVING."""
        branch = self.branches[number]
        tests = [f"{sql_of(self._column(number, _EVENTS))} > 0"] if branch.where and not self.is_same_where else []
        tests += [self._lower(number, branch.having)] if branch.having else []
        return " AND ".join(f"({test})" for test in tests)


def _name_windows(branches: Sequence[Branch]) -> list[list[str]]:
    """Give every window of every branch a unique name."""
    taken: set[str] = set()
    names: list[list[str]] = [[] for _ in branches]
    for branch, own in zip(branches, names, strict=True):
        for window in branch.windows:
            name, times = window.name, 1
            while name in taken:
                times += 1
                name = f"{window.name} ({times})"
            taken.add(name)
            own.append(name)
    return names


def _shown_id(branch: Branch, names: list[str]) -> exp.Expr:
    """Return the id that the user gave, where windows had to be renamed to be unique."""
    pairs = [(name, window.name) for window, name in zip(branch.windows, names, strict=True)]
    if all(name == shown for name, shown in pairs):
        return exp.column(WINDOW_ID)
    literal = exp.Literal.string
    ifs = [exp.If(this=literal(name), true=literal(shown)) for name, shown in pairs]
    return exp.Case(this=exp.column(WINDOW_ID), ifs=ifs)
