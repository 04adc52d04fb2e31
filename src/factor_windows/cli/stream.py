"""`factor-windows run` over a Kafka topic: its options, what they exclude, and the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer
from sqlglot import exp

from factor_windows.algebra.window import duration
from factor_windows.errors import OptionError
from factor_windows.sql.identity import identity_of
from factor_windows.sql.names import Tables, parts_of
from factor_windows.sql.script import Script

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from rich.console import Console

    from factor_windows.engines.spark_stream_script import StreamJob

Mode = Literal["append", "update"]
ADDRESS = "kafka://localhost:9092/readings"


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How to read a Kafka topic, and how to write the results of its stream."""

    schema: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNS", help="Kafka: the columns of the JSON messages, such as 'ts TIMESTAMP, device STRING'."
        ),
    ] = None
    watermark: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Kafka: how late messages may be, such as '10 minutes'.")
    ] = None
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Kafka: the folder for the stream's progress; the next run continues there."),
    ] = None
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", help="Kafka: wait for more messages until Ctrl-C, which stops it cleanly (exit code 0)."
        ),
    ] = False
    mode: Annotated[
        str | None,
        typer.Option(
            help="Kafka: append (the default) writes each window once, when it is complete; update writes early "
            "results and corrections, to a table only."
        ),
    ] = None
    format: Annotated[
        str | None, typer.Option(help="Kafka: delta or iceberg, to create the --output table if it does not exist.")
    ] = None

    @property
    def given(self) -> list[str]:
        """List the options that were given."""
        return [f"--{field.name}" for field in fields(self) if getattr(self, field.name)]


def topic_in(inputs: Mapping[str, str], stream: StreamOptions) -> str | None:
    """Return the name of the input that is a Kafka topic, if there is one; refuse options that need one."""
    topics = [name for name, place in inputs.items() if place.lower().startswith("kafka://")]
    if len(topics) > 1:
        raise OptionError(f"{' and '.join(topics)} are Kafka topics; a query runs over one stream, so name one")
    if topics:
        return topics[0]
    if stream.given:
        raise OptionError(
            f"{stream.given[0]} is for streams, and no input is a Kafka topic; name one, such as "
            f"--input readings={ADDRESS}"
        )
    return None


def job_of(name: str, address: str, output: str, stream: StreamOptions) -> StreamJob:
    """Return the job, or refuse options that are missing something it needs."""
    from factor_windows.engines.spark_stream_script import StreamJob
    from factor_windows.spark.kafka import Topic

    topic = Topic.of_address(address)
    if stream.schema is None:
        raise OptionError(
            f"{name} is a Kafka topic, whose messages have no schema; add --schema 'ts TIMESTAMP, device STRING, ...'"
        )
    if stream.watermark is None:
        raise OptionError(
            f"{name} is a stream, whose windows never close without a watermark; say how late messages may be, "
            "such as --watermark '10 minutes'"
        )
    delay = duration(stream.watermark)
    if delay < 0:
        raise OptionError(f"--watermark {stream.watermark!r} is negative; it is how late messages may be")
    if stream.checkpoint is None:
        raise OptionError(
            f"{name} is a stream, which needs a folder for its progress; add one, such as --checkpoint state"
        )
    if stream.mode not in (None, *get_args(Mode)):
        raise OptionError(f"--mode {stream.mode!r} is unknown; allowed are {', '.join(get_args(Mode))}")
    _check_output(output, stream)
    mode: Mode = "update" if stream.mode == "update" else "append"
    return StreamJob(
        name,
        topic,
        stream.schema,
        f"{delay} microseconds",
        output,
        stream.checkpoint.rstrip("/"),
        mode,
        stream.follow,
    )


def check_script(script: Script, output: str, stream: StreamOptions) -> str:
    """Refuse scripts that a stream cannot run; return the time column of the query."""
    if len(script.statements) > 1:
        raise OptionError(
            f"the text has {len(script.statements)} statements; a stream runs one, so run each with its own checkpoint"
        )
    if len(script.plans) > 1:
        raise OptionError("the statement reads several tables, or several times of one; a stream runs one plan")
    [plan], [statement] = script.plans, script.statements
    time = plan.queries[0].parsed_time
    if not isinstance(time.tree, exp.Column) or len(parts_of(time.tree)) > 1:
        raise OptionError(
            f"the query's time is {time.sql}; on a stream it is a column of --schema, so group by such as "
            "window(ts, '1 hour')"
        )
    if is_table(output, stream):
        identity_of(statement)
    if stream.mode == "update":
        if any(query.having for query in plan.queries):
            raise OptionError(
                "in mode update a row that HAVING, or the WHERE of a branch, no longer keeps would stay in the table; "
                "use --mode append, or leave the condition to those who read the table"
            )
        if any(query.has_sessions for query in plan.queries):
            raise OptionError("in mode update there are no sessions, since they may merge; use --mode append")
    return time.tree.name


def run_stream(
    spark: SparkSession,
    job: StreamJob,
    stream: StreamOptions,
    *,
    time: str,
    inputs: Mapping[str, str],
    again: Callable[[Tables], Script],
    console: Console,
) -> dict[str, Any]:
    """Run the query over the topic, and write its results as they arrive."""
    from factor_windows.engines.spark_stream_script import run_stream_script
    from factor_windows.spark.lakehouse import schema_of, table_name
    from factor_windows.store.upsert import upsert

    table = job.output if is_table(job.output, stream) else None
    if table and stream.format is None and schema_of(spark, table_name(table)) is None:
        raise OptionError(f"there is no table {table}; --format delta or --format iceberg creates it")

    def merge(script: Script, rows: DataFrame) -> None:
        upsert(rows, job.output, by=identity_of(script.statements[0]), format=stream.format)

    others = {name: place for name, place in inputs.items() if name != job.name}
    return run_stream_script(
        spark, job, time=time, inputs=others, again=again, upsert=merge if table else None, console=console
    )


def is_table(output: str, stream: StreamOptions) -> bool:
    """Say whether an output is a table; a folder is a Delta table if the format says so."""
    from factor_windows.spark.files import FORMATS, is_file

    return not is_file(output) or (stream.format == "delta" and Path(output).suffix.lower() not in FORMATS)


def _check_output(output: str, stream: StreamOptions) -> None:
    """Refuse unknown formats, and files that would have to be updated."""
    from factor_windows.spark.files import FORMATS as OF_FILES
    from factor_windows.spark.lakehouse import FORMATS

    if stream.format not in (None, *FORMATS):
        raise OptionError(f"--format {stream.format!r} is unknown; allowed are {' or '.join(FORMATS)}")
    if is_table(output, stream):
        return
    if stream.format is not None:
        raise OptionError(
            f"--format {stream.format} creates a table, but {output!r} is a file; name a table, or leave it out"
        )
    if Path(output).suffix.lower() not in OF_FILES:
        # It may be a Delta table, which a stream's files would damage.
        raise OptionError(
            f"{output!r} may be a Delta table or files; add --format delta, or use a name that ends in "
            f"{', '.join(OF_FILES)}"
        )
    if stream.mode == "update":
        raise OptionError(f"files such as {output!r} are never updated; write into a table, or use --mode append")
