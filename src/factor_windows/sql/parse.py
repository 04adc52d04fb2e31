"""SQL text to queries: finds the window aggregates in a statement, and keeps what is around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp
from sqlglot.errors import SqlglotError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from factor_windows.errors import OptionError, QueryError, SqlError
from factor_windows.expressions import sql_of
from factor_windows.query import Query
from factor_windows.sql.branch import Branch, merged, read_branches, windows_in
from factor_windows.sql.dialects import DIALECTS, recognized
from factor_windows.sql.statement import Statement
from factor_windows.sql.trouble import trouble

RESULT = "__fw_result"
"""What stands for the result of a query while its statement is taken apart."""
DEEPEST = 150
"""How deeply parentheses may nest."""


def parse(text: str, *, dialect: str | None = None, time: str | None = None) -> Query | list[Query]:
    """Read a query, or a list of them where one will not do, from SQL of Spark, Azure Stream Analytics or Flink.

    >>> query = parse("SELECT k, window.end AS till, min(v) AS low FROM r GROUP BY k, window(ts, '20 minutes')")
    >>> query.columns, query.source
    (('k', 'till', 'low'), 'r')
    """
    queries = []
    for statement in read(text, dialect=dialect, time=time):
        if len(statement.queries) == 1:
            [query] = statement.queries
            outer = statement.outer_of_one if statement.outer else query.outer
            queries.append(replace(query, outer=outer, name=statement.into.replace("`", "")))
        else:
            united = " UNION ALL ".join(f"SELECT * FROM {{result{n}}}" for n in range(len(statement.queries)))
            if statement.outer != united:
                raise SqlError(
                    f"the statement is {len(statement.queries)} queries and more around them; run it with fw.sql, "
                    "or give the queries one at a time"
                )
            queries += statement.queries
    return queries[0] if len(queries) == 1 else queries


def read(text: str, *, dialect: str | None = None, time: str | None = None) -> tuple[Statement, ...]:
    """Read every statement of a text."""
    if dialect is not None and dialect not in DIALECTS:
        raise OptionError(f"dialect {dialect!r} is not read; allowed are {', '.join(DIALECTS)}")
    if isinstance(text, str) and RESULT in text:
        raise SqlError(f"the name {RESULT} is used inside; call it something else")
    if not isinstance(text, str) or not text.strip():
        raise SqlError("the SQL text is empty; write a SELECT with GROUP BY and a window, such as window(ts, '1 hour')")
    try:
        name = dialect or recognized(text)
        grammar = DIALECTS[name]()
        tokens = grammar.tokenize(text)
        _check_depth(tokens)
        trees = [tree for tree in grammar.parser().parse(tokens, text) if tree is not None]
    except TokenError as mistake:
        line, _, column = str(mistake.__cause__ or mistake).rpartition(" from ")[2].partition(":")
        place = f"line {line}, column {column}" if line.isdigit() and column.isdigit() else "line 1, column 1"
        raise SqlError(f"{place}: this is not valid SQL; is a quote or a comment not closed?") from None
    except SqlglotError as mistake:
        details = getattr(mistake, "errors", None)
        first = details[0] if details else {}
        place = f"line {first['line']}, column {first['col']}: " if first.get("line") else ""
        near = f" near {first['highlight']!r}" if first.get("highlight") else ""
        raise SqlError(f"{place}this is not valid SQL{near}; a SELECT with GROUP BY and a window is expected") from None
    except RecursionError:
        raise SqlError("line 1, column 1: the text is nested too deeply") from None
    if not trees:
        raise SqlError("the SQL text has no statement; write a SELECT with GROUP BY and a window")
    return tuple(_statement(tree, dialect=name, time=time) for tree in trees)


def _check_depth(tokens: list[Token]) -> None:
    depth = 0
    for token in tokens:
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if depth > DEEPEST:
            raise SqlError(
                f"line {token.line}, column {token.col}: parentheses nest more than {DEEPEST} deep; write it simpler"
            )


def _statement(tree: exp.Expr, *, dialect: str, time: str | None) -> Statement:
    into = ""
    if isinstance(tree, exp.Insert):
        more = [part for part, value in tree.args.items() if value and part not in ("this", "expression")]
        if more or not isinstance(tree.this, exp.Table) or not isinstance(tree.expression, exp.Query):
            raise trouble(tree, "this INSERT is not supported; write INSERT INTO name SELECT ...")
        into = sql_of(tree.this)
        tree = tree.expression
    if not isinstance(tree, exp.Query):
        raise trouble(tree, f"{tree.key.upper()} is not supported; write a SELECT")
    for target in list(tree.find_all(exp.Into)):
        if into and into != sql_of(target.this):
            raise trouble(target, "several INTO in one statement; a statement has one result")
        into = sql_of(target.this)
        target.pop()
    tops = list(_tops(tree))
    if not tops:
        raise trouble(
            tree,
            "there is no window to aggregate over; GROUP BY needs one, such as window(ts, '20 minutes'), "
            "TumblingWindow(minute, 20), or FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '20' MINUTES))",
        )
    queries: list[Query] = []
    notes: list[str] = []
    if len(tops) > 1:
        notes.append(f"{len(tops)} parts of the statement aggregate over windows, and each is planned on its own")
    for union in tree.find_all(exp.Union) if dialect == "azure" else ():
        union.set("distinct", False)
    for top in tops:
        _check_inside(top)
        branches = [branch for select in _selects(top) for branch in read_branches(select, dialect=dialect, time=time)]
        width = {len(branch.columns) for branch in branches}
        if len(width) > 1:
            raise trouble(top, "the SELECTs joined by UNION have different numbers of columns")
        groups: dict[tuple[object, ...], list[Branch]] = {}
        for branch in branches:
            groups.setdefault(branch.shares, []).append(branch)
        if len(groups) > 1:
            notes.append(_apart(list(groups)))
        numbers = range(len(queries), len(queries) + len(groups))
        queries += [_checked(group, top) for group in groups.values()]
        tree = _replaced(tree, top, list(numbers), dialect=dialect)
    outer = _spark(tree)
    return Statement(tuple(queries), "" if outer == "SELECT * FROM {result0}" else outer, into, tuple(notes))


def _check_inside(top: exp.Expr) -> None:
    """Refuse what would be lost when the parts of a union become one query."""
    if top.find_ancestor(exp.Where, exp.Having):
        raise trouble(top, "a window aggregate inside a condition is not supported; write it as a step of WITH")
    for inner in top.find_all(exp.Union, exp.Subquery):
        if inner.args.get("by_name"):
            raise trouble(inner, "UNION BY NAME is not supported; list the columns in the same order")
        part = isinstance(inner, exp.Union) or _all_windowed(inner)
        if inner is not top and part and any(inner.args.get(name) for name in ("order", "limit", "offset")):
            raise trouble(inner, "ORDER BY or LIMIT inside a part of the query cannot be kept; write it at the end")


def _checked(branches: list[Branch], top: exp.Expr) -> Query:
    try:
        return merged(branches)
    except SqlError:
        raise
    except QueryError as mistake:
        raise trouble(top, str(mistake)) from None


def _tops(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Find the largest parts that are made of window aggregates only."""
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
    return isinstance(tree, exp.Subquery) and not tree.alias and _all_windowed(tree.this)


def _selects(tree: exp.Expr) -> Iterator[exp.Select]:
    if isinstance(tree, exp.Union):
        yield from _selects(tree.this)
        yield from _selects(tree.expression)
    elif isinstance(tree, exp.Subquery):
        yield from _selects(tree.this)
    elif isinstance(tree, exp.Select):
        yield tree


def _replaced(tree: exp.Expr, top: exp.Expr, numbers: list[int], *, dialect: str) -> exp.Expr:
    """Put the results in the place of what computes them; order, limit and DISTINCT of the whole stay outside."""
    results: list[exp.Select] = [exp.select("*").from_(exp.to_identifier(f"{RESULT}{number}")) for number in numbers]
    united: exp.Query = results[0] if len(results) == 1 else exp.union(*results, distinct=False)
    modifiers: dict[str, exp.Expr] = {
        name: top.args[name] for name in ("order", "limit", "offset") if top.args.get(name)
    }
    if isinstance(top, exp.Union) and dialect != "azure":
        distinct = [inner for inner in top.find_all(exp.Union) if inner.args.get("distinct")]
        if distinct and top not in distinct:
            raise trouble(distinct[0], "UNION inside UNION ALL cannot be shared; write UNION ALL, or UNION outermost")
        if distinct:
            united = exp.select("*").distinct().from_(united.subquery("united"))
    if modifiers:
        if top is not tree:
            raise trouble(
                next(iter(modifiers.values())),
                "ORDER BY or LIMIT inside a part of the query cannot be kept; write it at the end of the whole",
            )
        _check_order(modifiers.get("order"), next(_selects(top)))
        if len(results) > 1:
            united = exp.select("*").from_(united.subquery("united"))
        for name, modifier in modifiers.items():
            united.set(name, modifier.copy())
    if top is tree:
        return united
    if isinstance(top.parent, exp.Union) and len(numbers) > 1:
        united = exp.select("*").from_(united.subquery("united"))
    with_ = top.args.get("with_")
    if with_ is not None:
        united.set("with_", with_)
    top.replace(united)
    return tree


def _check_order(order: exp.Expr | None, select: exp.Select) -> None:
    shown = {column.alias_or_name.lower() for column in select.expressions}
    texts = {sql_of(column.unalias()).lower(): column.alias for column in select.expressions if column.alias}
    for ordered in order.expressions if order else []:
        key = ordered.this if isinstance(ordered, exp.Ordered) else ordered
        if sql_of(key).lower() in texts:
            key.replace(exp.column(texts[sql_of(key).lower()], quoted=True))
            continue
        plain = isinstance(key, exp.Column) and not key.table and key.name.lower() in shown
        if not plain and not (isinstance(key, exp.Literal) and key.is_int):
            raise trouble(
                key, f"ORDER BY {sql_of(key)} is not a column of the result; give it a name with AS and use that"
            )


def _spark(tree: exp.Expr) -> str:
    """Write what is left in Spark SQL, ready for results to be put in."""
    text = sql_of(tree).replace("{", "{{").replace("}", "}}")
    for number in range(text.count(RESULT), -1, -1):
        text = text.replace(f"{RESULT}{number}", f"{{result{number}}}")
    return text


def _apart(groups: list[tuple[object, ...]]) -> str:
    names = ("the table they read", "their time column", "their keys", "functions that cannot be shared")
    differing = [name for name, values in zip(names, zip(*groups, strict=True), strict=True) if len(set(values)) > 1]
    how = "share one pass" if differing == ["their keys"] else "run side by side"
    return f"{len(groups)} queries {how}, since the SELECTs differ in {' and '.join(differing)}"
