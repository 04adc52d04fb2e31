"""SQL statements on a Spark session: plans compute the window aggregates, Spark itself the rest."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from factor_windows.engines import spark_queries as many
from factor_windows.engines.spark_batch import plan_and_run
from factor_windows.engines.spark_stream_statement import run_on_stream
from factor_windows.engines.sql import emit_statement
from factor_windows.errors import QueryError, SqlError
from factor_windows.query import Query
from factor_windows.request import Mode
from factor_windows.search import optimize
from factor_windows.spark.messages import check_events, spark_says, without_json
from factor_windows.spark.naive import naive
from factor_windows.spark.restricted import FlowFunctionError, is_in_flow_function
from factor_windows.spark.result import apply_post_aggregation
from factor_windows.spark.settings import is_case_sensitive
from factor_windows.sql.names import Tables
from factor_windows.sql.parse import read
from factor_windows.sql.script import Script, plan_script
from factor_windows.sql.statement import Statement, fill_names

CANNOT_RUN = "Spark cannot run the query"


def tables_of(spark: SparkSession) -> Tables:
    """Return a session's knowledge of tables; Spark analyzes queries for this, but runs nothing."""

    def columns(select: str) -> list[str] | None:
        try:
            with without_json():
                return spark.sql(select).columns
        except (AnalysisException, ParseException):
            return None
        except PySparkException as trouble:
            if is_in_flow_function(trouble):
                return None
            raise

    return Tables(columns, is_case_sensitive(spark), str(spark.conf.get("spark.sql.session.timeZone")))


def sql(
    spark: SparkSession, text: str, *, dialect: str | None = None, time: str | None = None, looks: bool = True
) -> DataFrame:
    """Run one statement, looking up tables in the session; Spark itself runs what surrounds its query."""
    statements = read(text, dialect=dialect, time=time, tables=tables_of(spark))
    if len(statements) > 1:
        raise SqlError(
            f"the text has {len(statements)} statements; run them one at a time, or with "
            "fw.optimize(fw.parse(text)).run(events)"
        )
    [statement] = statements
    try:
        [result] = run(spark, plan_script(statements), looks=looks)
    except FlowFunctionError:
        return _as_text(spark, statement)
    return _commanded(spark, statement, result) if statement.command else result


def run(spark: SparkSession, script: Script, *, kept: ExitStack | None = None, looks: bool = True) -> list[DataFrame]:
    """Run the statements of a script with its plans; queries with the same plan share a pass over their events.

    With `looks`, a plan is made again after a quick look at a batch. Spark caches the result of a shared pass until
    `kept` is closed.
    """
    with spark_says(CANNOT_RUN):
        computed: dict[str, DataFrame] = {}
        for plan in script.plans:
            if plan.is_single:
                events = _events(spark, plan.query)
                computed[plan.query.name] = plan_and_run(plan, events) if looks else plan.run(events, statistics=None)
            else:
                events = _events(spark, plan.queries[0])
                if events.isStreaming:
                    return [run_on_stream(script, events)]
                results = many.batch(plan, events, looks=looks)
                if kept is not None:
                    kept.enter_context(results)
                computed |= results
        return [
            _outside(spark, statement, [computed[query.name] for query in queries])
            for statement, queries in zip(script.statements, script.queries, strict=True)
        ]


def run_as_stream(spark: SparkSession, script: Script, *, mode: Mode, checkpoint: str) -> DataFrame:
    """Run the single statement of a script, which reads a stream, with its state in `checkpoint`."""
    [statement], [plan] = script.statements, script.plans
    with spark_says(CANNOT_RUN):
        events = _events(spark, plan.queries[0])
        if not events.isStreaming:
            raise QueryError(f"the query reads {plan.queries[0].source}, which is no stream; name the topic in FROM")
        if not plan.is_single:
            return run_on_stream(script, events, mode=mode, checkpoint=checkpoint)
        return _outside(spark, statement, [plan.run(events, mode=mode, checkpoint=checkpoint)])


def run_naively(spark: SparkSession, statement: Statement) -> DataFrame:
    """Run a statement window by window, as Spark would."""
    with spark_says(CANNOT_RUN):
        results = [apply_post_aggregation(query, naive(query, _events(spark, query))) for query in statement.queries]
        return _outside(spark, statement, results)


def _events(spark: SparkSession, query: Query) -> DataFrame:
    events = spark.sql(f"SELECT * FROM {query.source}")
    check_events(events)
    return events


def _outside(spark: SparkSession, statement: Statement, results: Iterable[DataFrame]) -> DataFrame:
    """Apply the rest of a statement to the results of its queries."""
    named: dict[str, Any] = {f"result{number}": result for number, result in enumerate(results)}
    return spark.sql(statement.outer, **named) if statement.outer else named["result0"]


def _as_text(spark: SparkSession, statement: Statement) -> DataFrame:
    """Pass the text of the plans to Spark, which analyzes it when the tables exist."""
    unsure = [name for query in statement.queries for name in query.absent]
    if unsure:
        raise SqlError(
            f"{unsure[0]!r} is an alias here and may be a column too, which a pipeline's flow function cannot look up; "
            "give the alias another name"
        )
    return spark.sql(_text(statement))


def _text(statement: Statement) -> str:
    return emit_statement(statement, [optimize(query) for query in statement.queries], dialect="spark")


def _commanded(spark: SparkSession, statement: Statement, result: DataFrame) -> DataFrame:
    """Carry out a statement's command, such as INSERT."""
    with spark_says(CANNOT_RUN):
        if statement.is_view:
            # A view is stored as text, so it gets the text of the plans.
            return spark.sql(_text(statement))
        return spark.sql(fill_names(statement.command, {"query": "SELECT * FROM {result}"}), result=result)
