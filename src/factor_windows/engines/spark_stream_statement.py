"""A statement with several queries over a stream: one chain computes them all, and its rows become one result.

A union of streams would not work: each part would have its own operators, and Spark loses rows of such unions.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from sqlglot import exp

from factor_windows.errors import QueryError
from factor_windows.functions.expression import sql_of, tree_of
from factor_windows.query import Query
from factor_windows.request import Mode
from factor_windows.sql.names import field_of, parts_of
from factor_windows.sql.script import Script
from factor_windows.sql.statement import choose_by, is_union_of_all


def run_on_stream(
    script: Script, events: DataFrame, *, mode: Mode = "append", checkpoint: str | None = None
) -> DataFrame:
    """Run the single statement of a script over a stream of events, which all its queries read."""
    if len(script.statements) > 1 or len(script.plans) > 1 or not is_union_of_all(script.statements[0]):
        raise QueryError(
            "on a stream a statement may join queries over the same events by UNION ALL only, with nothing around; "
            "run the queries with fw.optimize([...]).run(events), and the rest in foreachBatch"
        )
    [plan], [queries] = script.plans, script.queries
    rows = plan.run(events, mode=mode, checkpoint=checkpoint)
    assert isinstance(rows, DataFrame)
    names = [[query.name] for query in queries]
    if any(query.having for query in queries):
        kept = [_of_query(query, query.having) if query.having else "true" for query in queries]
        rows = rows.where(choose_by("query_id", names, kept))
    columns = []
    for place, first in enumerate(queries[0].parsed_output):
        texts = [_of_query(query, query.parsed_output[place].sql) for query in queries]
        columns.append(F.expr(choose_by("query_id", names, texts)).alias(first.name))
    return rows.select(*columns)


def _of_query(query: Query, sql: str) -> str:
    """Rewrite an expression over a query's columns for the common rows, which hold them in a struct."""

    def change(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column):
            first, *fields = parts_of(node)
            return field_of(exp.column(first.name, table=query.name, quoted=True), fields)
        return node

    return sql_of(tree_of(sql).transform(change))
