"""Branches of a statement made one query: windows side by side, each with its own aggregates and conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from factor_windows.algebra.window import Window
from factor_windows.functions.aggregate import filtered
from factor_windows.functions.expression import quoted, sql_of
from factor_windows.query import WINDOW_COLUMNS, Query
from factor_windows.sql.branch import Branch, Held, key_names

WINDOW_ID = WINDOW_COLUMNS[0]


def merged(branches: Sequence[Branch]) -> Query:
    """Make one query of branches that differ in their windows, and perhaps in their aggregates and conditions."""
    first = branches[0]
    windows, names = _named_windows(branches)
    conditions = [sql_of(branch.where) if branch.where else "" for branch in branches]
    shared_where = len(set(conditions)) == 1
    aggregates: dict[str, str] = {}
    used: list[set[str]] = [set() for _ in branches]

    def value(call: exp.Expr, number: int, wanted: str = "") -> exp.Expr:
        where = None if shared_where else branches[number].where
        text = sql_of(filtered(call, where) if where else call)
        if text not in aggregates:
            taken = {name.lower() for name in (*WINDOW_COLUMNS, *key_names(first.keys), *aggregates.values())}
            free = wanted and wanted.lower() not in taken and not wanted.lower().startswith("value_")
            aggregates[text] = wanted if free else f"value_{len(aggregates)}"
        used[number].add(text)
        return exp.column(aggregates[text], quoted=True)

    def lowered(tree: exp.Expr, number: int, name: str = "") -> str:
        branch = branches[number]
        wanted = name if isinstance(tree, Held) else ""

        def change(node: exp.Expr) -> exp.Expr:
            if isinstance(node, Held):
                return value(node.this, number, wanted)
            if isinstance(node, exp.Column) and node.name == WINDOW_ID:
                return _shown_id(branch, names[number])
            return node

        return sql_of(tree.transform(change))

    order = {form: position for position, form in enumerate(first.key_forms)}
    columns = []
    aligned = [
        branch if branch.keys == first.keys else _same_keys(branch, order, key_names(first.keys)) for branch in branches
    ]
    for place, (name, _) in enumerate(first.columns):
        texts = [lowered(branch.columns[place][1], number, name) for number, branch in enumerate(aligned)]
        columns.append((name, _by_window(texts, names)))
    kept = []
    for number, branch in enumerate(aligned):
        present = exp.Anonymous(this="count", expressions=[exp.Star()])
        tests = [] if shared_where or not branch.where else [f"{sql_of(value(present, number))} > 0"]
        tests += [lowered(branch.having, number)] if branch.having else []
        kept.append(" AND ".join(f"({test})" for test in tests))
    if not aggregates:
        # Groups are of interest even where nothing is computed of them.
        value(exp.Anonymous(this="count", expressions=[exp.Star()]), 0)
    where = conditions[0] if shared_where else ""
    if not shared_where and all(conditions):
        where = " OR ".join(f"({condition})" for condition in dict.fromkeys(conditions))
    return Query(
        time=first.time,
        keys=[f"{key} AS {quoted(name)}" for key, name in zip(first.keys, key_names(first.keys), strict=True)],
        windows=windows,
        aggregates=[f"{text} AS {quoted(name)}" for text, name in aggregates.items()],
        where=where,
        having=_by_window([test or "TRUE" for test in kept], names) if any(kept) else "",
        output=[f"{text} AS {quoted(name)}" for name, text in columns],
        source=first.source,
        absent=dict.fromkeys(name for branch in branches for name in branch.absent),
        asked=_asked(branches, used, list(aggregates)),
    )


def _asked(branches: Sequence[Branch], used: Sequence[set[str]], every: list[str]) -> list[list[int]]:
    """List for each window the places of the aggregates that its branch shows, unless all show all."""
    if all(len(own) == len(every) for own in used):
        return []
    places = [[place for place, text in enumerate(every) if text in own] for own in used]
    return [own for branch, own in zip(branches, places, strict=True) for _ in branch.windows]


def _same_keys(branch: Branch, order: dict[exp.Expr, int], names: tuple[str, ...]) -> Branch:
    """Call a branch's keys by the names of the first branch's."""
    own = {name: names[order[form]] for name, form in zip(key_names(branch.keys), branch.key_forms, strict=True)}

    def change(node: exp.Expr) -> exp.Expr:
        if isinstance(node, Held):
            return node.copy()
        if isinstance(node, exp.Column) and node.name in own:
            return exp.column(own[node.name], quoted=True)
        return node

    having = branch.having.transform(change) if branch.having else None
    return replace(
        branch, having=having, columns=tuple((name, tree.transform(change)) for name, tree in branch.columns)
    )


def _named_windows(branches: Sequence[Branch]) -> tuple[list[Window], list[list[str]]]:
    """Give every window of every branch a name of its own."""
    windows: list[Window] = []
    names: list[list[str]] = []
    taken: set[str] = set()
    for branch in branches:
        names.append([])
        for window in branch.windows:
            name, times = window.name, 1
            while name in taken:
                times += 1
                name = f"{window.name} ({times})"
            taken.add(name)
            names[-1].append(name)
            windows.append(Window(window.range, window.slide, window.offset, name))
    return windows, names


def _shown_id(branch: Branch, names: list[str]) -> exp.Expr:
    """Return the id that the user gave, where windows had to be renamed to be told apart."""
    if all(window.name == name for window, name in zip(branch.windows, names, strict=True)):
        return exp.column(WINDOW_ID)
    pairs = [
        exp.If(this=exp.Literal.string(name), true=exp.Literal.string(window.name))
        for window, name in zip(branch.windows, names, strict=True)
    ]
    return exp.Case(this=exp.column(WINDOW_ID), ifs=pairs)


def _by_window(texts: list[str], names: list[list[str]]) -> str:
    """Return an expression that is another one for each branch's windows; just the one if all are the same."""
    if len(set(texts)) == 1:
        return texts[0]
    *cases, last = zip(texts, names, strict=True)
    # The last one without a condition: an expression that is never null would be nullable with one.
    when = [f"WHEN {sql_of(exp.Literal.string(name))} THEN {text}" for text, own in cases for name in own]
    return f"CASE {WINDOW_ID} {' '.join(when)} ELSE {last[0]} END"
