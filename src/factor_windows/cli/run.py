"""`factor-windows run`: SQL over files, tables or a Kafka topic, run on Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from factor_windows.cli.options import (
    Dialect,
    Json,
    QueryFile,
    SparkOptions,
    Time,
    expand_options,
    notes_of,
    only_pass,
    outputs_of,
    read_text,
    show_plan,
    write_text,
)
from factor_windows.cli.stream import StreamOptions, check_script, job_of, run_stream, topic_in
from factor_windows.cost.timing import Timing
from factor_windows.errors import OptionError
from factor_windows.sql.names import Tables
from factor_windows.sql.parse import read
from factor_windows.sql.script import Script, plan_script


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What to read, write and show."""

    output: Annotated[
        str,
        typer.Option(
            help="Where to write the result: a .parquet, .csv or .json file, or a table. For several results, a folder "
            "or a name with {name} in it."
        ),
    ]
    input: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="NAME=PLACE",
            help="What a table of the query is: a file, a folder, a table, or kafka://HOST:PORT/TOPIC. A topic is read "
            "as a stream from its first message; ?startingOffsets=latest, ?maxOffsetsPerTrigger=N and ?kafka.ANY=VALUE "
            "go to Spark.",
        ),
    ] = None
    conf: Annotated[
        list[str] | None,
        typer.Option(
            "--conf",
            metavar="NAME=VALUE",
            help="A Spark setting, such as spark.jars.packages for Kafka, Delta or Iceberg.",
        ),
    ] = None
    dialect: Dialect = None
    time: Time = None
    explain: Annotated[bool, typer.Option("--explain", help="Also show the plan.")] = False
    verify: Annotated[
        bool, typer.Option("--verify", help="Also run the query window by window; compare rows and times.")
    ] = False
    html: Annotated[
        Path | None, typer.Option(help="Also write a page that explains the plan and its run to this file.")
    ] = None
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing results.")] = False
    as_json: Json = False

    def to_inputs(self) -> dict[str, str]:
        """Return the place of each named table."""
        return _pairs(self.input, lambda text: f"--input {text!r} is not NAME=PLACE, such as readings=readings.parquet")

    def to_settings(self) -> dict[str, str]:
        """Return the settings of Spark."""
        return _pairs(self.conf, lambda text: f"--conf {text!r} is not NAME=VALUE, such as spark.driver.memory=4g")

    def refuse_on_stream(self) -> None:
        """Refuse options that make no sense for a stream, which has no end."""
        if self.verify:
            raise OptionError(
                "--verify compares whole results, which a stream does not have; run the query over files, such "
                "as --input readings=readings.parquet, to verify it"
            )
        if self.overwrite:
            raise OptionError(
                "--overwrite would remove what the stream has written so far; to start over, use another --output and "
                "another --checkpoint"
            )
        if self.html is not None:
            raise OptionError("--html is for runs over files; for a stream, use factor-windows explain --query --html")


def _pairs(texts: list[str] | None, problem: Callable[[str], str]) -> dict[str, str]:
    pairs = {}
    for text in texts or []:
        name, _, value = text.partition("=")
        if not name or not value:
            raise OptionError(problem(text))
        pairs[name] = value
    return pairs


def _check_read(inputs: Mapping[str, str], text: str, script: Script) -> None:
    """Refuse an input that the query does not mention; it is usually misspelled."""
    for name in inputs:
        if name.lower() not in text.lower():
            sources = dict.fromkeys(query.source for plan in script.plans for query in plan.queries)
            reads = ", ".join(source.replace("`", "") for source in sources if not source.startswith("("))
            raise OptionError(f"--input {name} is not in the query" + (f", which reads {reads}" if reads else ""))


@expand_options
def run(query: QueryFile, options: RunOptions, stream: StreamOptions, engine: SparkOptions) -> None:
    """Run SQL queries over many windows on Spark, and write their results. Queries over one table share one pass.

    A query over a Kafka topic runs as a stream. It reads what is there and stops, or waits for more with --follow. It
    needs --schema, --watermark and --checkpoint. Delta and Iceberg tables are upserted in each micro-batch; files are
    appended to. Fields that do not fit the schema become null. Messages that are not JSON or have no time are skipped
    and counted.
    """
    from rich.console import Console

    from factor_windows.engines.spark_script import run_script
    from factor_windows.spark.files import check_ending, check_local_files

    text, dialect, time = read_text(query), options.dialect, options.time
    statements = read(text, dialect=dialect, time=time)
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    inputs, conf = options.to_inputs(), options.to_settings()
    topic = topic_in(inputs, stream)
    job = None
    if topic is not None:
        options.refuse_on_stream()
        job = job_of(topic, inputs[topic], options.output, stream)
    for note in notes_of(statements):
        console.print(note)
    script = plan_script(statements)
    time_column = check_script(script, options.output, stream) if job else ""
    if options.html is not None:
        only_pass(script.plans)
    outputs = outputs_of(options.output, script.names)
    _check_read(inputs, text, script)
    for place in (*(inputs.values() if job is None else ()), *outputs.values()):
        check_ending(place)
    if job is None and engine.reads_this_machine and not conf:
        check_local_files(inputs.values(), () if options.overwrite else outputs.values())
    if options.explain:
        for plan in script.plans:
            show_plan(plan, physical=job is None, streaming=job is not None)
            print()

    def again(tables: Tables) -> Script:
        return plan_script(read(text, dialect=dialect, time=time, tables=tables))

    with engine.session(conf) as spark:
        if job is not None:
            came = run_stream(spark, job, stream, time=time_column, inputs=inputs, again=again, console=console)
            if options.as_json:
                print(json.dumps(came))
            return
        ran = run_script(
            spark,
            script,
            inputs=inputs,
            outputs=outputs,
            verify=options.verify,
            overwrite=options.overwrite,
            console=console,
            again=again,
        )
    if options.html is not None:
        write_text(options.html, script.plans[0].to_html(measured=ran.timing or Timing((ran.seconds,))))
    if options.as_json:
        print(json.dumps(ran.described()))
    if ran.differing:
        raise typer.Exit(1)
