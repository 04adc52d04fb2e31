"""Plans as SQL text, which runs without this library: one query, several, or a whole statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import parse_one

from factor_windows.engines.flink import emit_flink
from factor_windows.engines.sql_steps import SPELLINGS, Writer, fill, free, indented, one_line, with_steps
from factor_windows.errors import OptionError, QueryError
from factor_windows.functions.expression import VerbatimSpark
from factor_windows.plan import Plan
from factor_windows.sql.statement import Statement
from factor_windows.tree import Pass

DIALECTS = (*SPELLINGS, "flink")


def emit(plan: Pass, *, dialect: str) -> str:
    """Write a plan in the SQL of an engine."""
    if dialect not in DIALECTS:
        raise OptionError(f"dialect {dialect!r} is not written; allowed are {', '.join(DIALECTS)}")
    return emit_flink(plan) if dialect == "flink" else Writer(plan, dialect).text()


def emit_each(plan: Plan, *, dialect: str) -> dict[str, str]:
    """Write a statement for each query of a shared plan, by its name."""
    texts = {}
    for name, own in plan.plans.items():
        try:
            texts[name] = emit(own.passes[0], dialect=dialect)
        except QueryError as problem:
            raise QueryError(f"query {name!r}: {problem}") from None
    return texts


def emit_shared(plan: Plan, *, dialect: str) -> str:
    """Write the statements of a shared plan one after the other, each under the name of its query."""
    texts = emit_each(plan, dialect=dialect)
    return ";\n\n".join(f"-- query {one_line(name)}\n{text}" for name, text in texts.items())


def emit_statement(statement: Statement, plans: Sequence[Plan], *, dialect: str) -> str:
    """Write a whole statement: its queries, the SQL around them, and the command applied to the result."""
    text = _emit_query(statement, plans, dialect=dialect)
    return statement.command.format(query=text) if statement.command else text


def _emit_query(statement: Statement, plans: Sequence[Plan], *, dialect: str) -> str:
    if len(plans) == 1:
        query = replace(plans[0].query, outer=statement.outer_of_one)
        return emit(plans[0].passes[0].with_query(query), dialect=dialect)
    if dialect == "flink":
        raise OptionError("several queries in one statement cannot be written for Flink; give them one at a time")
    texts = [emit(plan.passes[0], dialect=dialect) for plan in plans]
    named = f"{fill(statement.outer, '', len(plans))} {' '.join(plan.query.source for plan in plans)}"
    prefix = free(("result",), named)
    steps = [f"{prefix}result{n} AS (\n{indented(text)}\n)" for n, text in enumerate(texts)]
    spelling = SPELLINGS[dialect]
    final = parse_one(fill(statement.outer, f"{prefix}result", len(plans)), dialect=VerbatimSpark)
    return with_steps(steps, spelling.translate(final), spelling)
