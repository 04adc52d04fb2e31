"""`factor-windows rewrite`: SQL in, SQL out."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from factor_windows.cli.options import Dialect, Json, QueryFile, Search, Time, read_text
from factor_windows.search import optimize
from factor_windows.sql.parse import read
from factor_windows.sql.templates import Template


def rewrite(
    query: QueryFile,
    to: Annotated[str, typer.Option(help="The output dialect: spark, duckdb or flink.")] = "spark",
    dialect: Dialect = None,
    time: Time = None,
    search: Search = "best",
    as_json: Json = False,
) -> None:
    """Rewrite a SQL query over many windows so that they share work, and print it.

    dbt models may use Jinja for tables, as in FROM {{ ref('readings') }}.
    """
    from factor_windows.engines.sql import emit_statement
    from factor_windows.explain.document import document

    options: dict[str, Any] = {"search": search}
    rewritten = []
    template = Template.of(read_text(query))
    for statement in read(template.query, dialect=dialect, time=time):
        plans = [optimize(part, **options) for part in statement.queries]
        text = emit_statement(statement, plans, dialect=to)
        described = {
            "sql": template.fill(text),
            "dialect": to,
            "into": statement.into or None,
            "plans": [document(p) for p in plans],
        }
        rewritten.append((described, [*(f"-- {note}" for note in statement.notes), text]))
    if as_json:
        found = [described for described, _ in rewritten]
        print(json.dumps(found[0] if len(found) == 1 else found, indent=2, ensure_ascii=False))
        return
    print(template.fill(";\n\n".join("\n".join(lines) for _, lines in rewritten)))
