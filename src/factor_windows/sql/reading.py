"""Take a SQL statement apart: the window aggregates in it become queries, the SQL around them stays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from factor_windows.algebra.session import Session
from factor_windows.functions.expression import sql_of
from factor_windows.query import Query
from factor_windows.sql.branch import Branch, read_branches, windows_in
from factor_windows.sql.located_error import errors_at, located_error
from factor_windows.sql.merge import merge_branches
from factor_windows.sql.names import Tables
from factor_windows.sql.resolve import ASSUMED, check_buckets, resolve
from factor_windows.sql.split import AT_THE_END, cut_in_two, does_more, orders_by_shown
from factor_windows.sql.statement import Statement, braced


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read a text: its dialect, the time column if the text names none, and what is known about its tables."""

    dialect: str
    time: str | None
    tables: Tables
    mark: str
    """The prefix of the results' names while a statement is taken apart; no name in the text starts with it."""
    text: str = ""
    """The statement as the user wrote it, if it is the only one."""

    def statement(self, tree: exp.Expr) -> Statement:
        is_view = isinstance(tree, exp.Create) and tree.args["kind"] == "VIEW"
        into, command, tree = _take_command(tree, self.mark)
        for target in list(tree.find_all(exp.Into)):
            if into and into != sql_of(target.this):
                raise located_error(target, "several INTO in one statement; a statement has one result")
            into = sql_of(target.this)
            target.pop()
        tree, assumed = self._resolve(tree, "" if command else self.text)
        tops = list(_tops(tree))
        if not tops:
            check_buckets(tree, self.tables)
            raise located_error(
                tree,
                "there is no window to aggregate over; GROUP BY needs one, such as window(ts, '20 minutes'), "
                "date_trunc('month', ts), TumblingWindow(minute, 20), or FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), "
                "INTERVAL '20' MINUTES))",
            )
        notes = [f"{name} is read as the alias in the SELECT list, not as a column of the table" for name in assumed]
        if len(tops) > 1:
            notes.append(f"{len(tops)} parts of the statement aggregate over windows, and each is planned on its own")
        for union in tree.find_all(exp.Union) if self.dialect == "azure" else ():
            union.set("distinct", False)
        queries: list[Query] = []
        for top in tops:
            groups = self._groups(top)
            said = dict.fromkeys(branch.note for group in groups.values() for branch in group)
            notes += [note for note in said if note and note not in notes]
            if len(groups) > 1:
                notes.append(_explain_groups(list(groups)))
            numbers = range(len(queries), len(queries) + len(groups))
            with errors_at(top):
                queries += [merge_branches(group) for group in groups.values()]
            tree = self._put_results(tree, top, list(numbers))
        outer = self._template(tree, len(queries))
        outer = "" if outer == "SELECT * FROM {result0}" else outer
        return Statement(tuple(queries), outer, into, tuple(notes), command, is_view)

    def _resolve(self, tree: exp.Expr, text: str) -> tuple[exp.Expr, list[str]]:
        """Write out names, and split SELECTs that do more than aggregate; also return what was assumed."""
        assumed: dict[str, None] = {}
        first = next(_selects(tree), None)
        for select in list(tree.find_all(exp.Select)):
            names = not _is_further(select)
            if not resolve(select, self.tables, text=text if select is first else "", names=names):
                continue
            assumed |= dict.fromkeys(select.meta[ASSUMED])
            if does_more(select, self.tables, outermost=select is tree):
                cut = cut_in_two(select.copy(), self.tables)
                tree = cut if select is tree else tree
                select.replace(cut)
        return tree, list(assumed)

    def _groups(self, top: exp.Expr) -> dict[tuple[object, ...], list[Branch]]:
        """Group the branches of a part by their common properties; each group becomes one query."""
        _check_inside(top)
        branches = [
            branch
            for select in _selects(top)
            for branch in read_branches(select, dialect=self.dialect, time=self.time, tables=self.tables)
        ]
        if len({len(branch.columns) for branch in branches}) > 1:
            raise located_error(top, "the SELECTs joined by UNION have different numbers of columns")
        groups: dict[tuple[object, ...], list[Branch]] = {}
        # The starts and ends of sessions depend on which events count.
        apart = any(isinstance(window, Session) for branch in branches for window in branch.windows)
        for branch in branches:
            groups.setdefault((*branch.shares, branch.where if apart else None), []).append(branch)
        return groups

    def _put_results(self, tree: exp.Expr, top: exp.Expr, numbers: list[int]) -> exp.Expr:
        """Replace the parts that are computed by their results; order, limit and DISTINCT of the whole stay outside."""
        results = [exp.select("*").from_(exp.to_identifier(self._name(number))) for number in numbers]
        united: exp.Query = results[0] if len(results) == 1 else exp.union(*results, distinct=False)
        modifiers: dict[str, exp.Expr] = {name: top.args[name] for name in AT_THE_END if top.args.get(name)}
        if isinstance(top, exp.Union) and self.dialect != "azure":
            distinct = [inner for inner in top.find_all(exp.Union) if inner.args.get("distinct")]
            if distinct and top not in distinct:
                raise located_error(
                    distinct[0], "UNION inside UNION ALL cannot be shared; write UNION ALL, or UNION outermost"
                )
            if distinct:
                united = _wrap(united).distinct()
        if modifiers:
            self._check_modifiers(tree, top, modifiers)
            united = _wrap(united) if len(results) > 1 else united
            for name, modifier in modifiers.items():
                united.set(name, modifier.copy())
        if top is tree:
            return united
        around = top.parent
        if isinstance(around, exp.Subquery) and around.alias and united is results[0] and not modifiers:
            named = exp.to_table(self._name(numbers[0])).as_(around.alias, table=True)
            if not [part for part, value in around.args.items() if value and part not in ("this", "alias")]:
                around.replace(named)
                return tree
        if isinstance(around, exp.Union) and len(numbers) > 1:
            united = _wrap(united)
        united.set("with_", top.args.get("with_"))
        top.replace(united)
        return tree

    def _check_modifiers(self, tree: exp.Expr, top: exp.Expr, modifiers: dict[str, exp.Expr]) -> None:
        if top is not tree:
            raise located_error(
                next(iter(modifiers.values())),
                "ORDER BY or LIMIT inside a part of the query cannot be kept; write it at the end of the whole",
            )
        if not orders_by_shown(top, next(_selects(top)), self.tables):
            raise located_error(
                modifiers["order"], "ORDER BY of a UNION takes columns of its result; name one with AS and use that"
            )

    def _name(self, number: int) -> str:
        return f"{self.mark}_{number}_"

    def _template(self, tree: exp.Expr, count: int) -> str:
        """Write the rest as Spark SQL, with placeholders for the results."""
        text = braced(sql_of(tree))
        for number in range(count):
            text = text.replace(self._name(number), f"{{result{number}}}")
        return text


def _wrap(query: exp.Query) -> exp.Select:
    return exp.select("*").from_(query.subquery("united"))


def _take_command(tree: exp.Expr, mark: str) -> tuple[str, str, exp.Expr]:
    """Remove the command applied to a query's result; return the name it goes to, the command, and the query."""
    if not isinstance(tree, exp.Insert | exp.Create):
        if not isinstance(tree, exp.Query):
            raise located_error(tree, f"{tree.key.upper()} is not supported; write a SELECT")
        return "", "", tree
    query = tree.expression
    kinds = ("VIEW", "TABLE")
    if not isinstance(query, exp.Query) or (isinstance(tree, exp.Create) and tree.args["kind"] not in kinds):
        raise located_error(tree, f"this {tree.key.upper()} is not supported; write it around a SELECT with windows")
    target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    if not isinstance(target, exp.Table):
        raise located_error(
            tree, f"this {tree.key.upper()} is not supported; write it such as INSERT INTO name SELECT ..."
        )
    with_ = tree.args.get("with_")
    if with_ is not None:
        own = query.args.get("with_")
        query.set("with_", exp.With(expressions=[*with_.expressions, *(own.expressions if own else [])]))
        tree.set("with_", None)
    around = tree.copy()
    around.set("expression", exp.Var(this=mark))
    name = exp.Table(**{part: target.args.get(part) for part in ("this", "db", "catalog")})
    return sql_of(name), braced(sql_of(around)).replace(mark, "{query}"), query.pop()


def _is_further(select: exp.Expr) -> bool:
    """Say whether a SELECT is a later part of a UNION, whose first part names the columns."""
    node = select
    while isinstance(node.parent, exp.SetOperation | exp.Subquery):
        if isinstance(node.parent, exp.SetOperation) and node is node.parent.expression:
            return True
        node = node.parent
    return False


def _check_inside(top: exp.Expr) -> None:
    """Refuse clauses that would be lost when the parts of a union become one query."""
    if top.find_ancestor(exp.Where, exp.Having):
        raise located_error(top, "a window aggregate inside a condition is not supported; write it as a step of WITH")
    for inner in top.find_all(exp.Union, exp.Subquery):
        if inner.args.get("by_name"):
            raise located_error(inner, "UNION BY NAME is not supported; list the columns in the same order")
        part = isinstance(inner, exp.Union) or _all_windowed(inner)
        if inner is not top and part and any(inner.args.get(name) for name in AT_THE_END):
            raise located_error(
                inner, "ORDER BY or LIMIT inside a part of the query cannot be kept; write it at the end"
            )


def _tops(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Find the largest parts that consist only of window aggregates."""
    if _all_windowed(tree):
        yield tree
        return
    for child in tree.iter_expressions():
        yield from _tops(child)


def _all_windowed(tree: exp.Expr) -> bool:
    if isinstance(tree, exp.Select):
        return windows_in(tree)
    if isinstance(tree, exp.Union):
        return _all_windowed(tree.this) and _all_windowed(tree.expression)
    # In FROM, a sub-query stays in place, with its name, PIVOT and the like; elsewhere it is a part of a union.
    in_union = not isinstance(tree.parent, exp.From | exp.Join)
    return isinstance(tree, exp.Subquery) and not tree.alias and in_union and _all_windowed(tree.this)


def _selects(tree: exp.Expr) -> Iterator[exp.Select]:
    if isinstance(tree, exp.Select):
        yield tree
    elif isinstance(tree, exp.Union | exp.Subquery):
        yield from _selects(tree.this)
        yield from _selects(tree.expression) if isinstance(tree, exp.Union) else ()


def _explain_groups(groups: list[tuple[object, ...]]) -> str:
    names = (
        *("the table they read", "their time column", "their keys", "functions that cannot be shared"),
        "their conditions, which decide where sessions end",
    )
    differing = [name for name, values in zip(names, zip(*groups, strict=True), strict=True) if len(set(values)) > 1]
    how = "share one pass" if differing == ["their keys"] else "run side by side"
    return f"{len(groups)} queries {how}, since the SELECTs differ in {' and '.join(differing)}"
