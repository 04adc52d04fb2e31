"""`factor-windows run`: SQL over files, tables or a Kafka topic, run on Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from factor_windows.cli.options import (
    Dialect,
    Json,
    Master,
    QueryFile,
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
    """What a run reads, writes and shows."""

    output: Annotated[
        str,
        typer.Option(
            help="Where the result goes: .parquet, .csv, .json, or a table's name; a folder, or {name}, for several."
        ),
    ]
    input: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="NAME=PLACE",
            help="A table: a file, a folder, a table, or kafka://HOST:PORT/TOPIC, which is read as a stream from its "
            "first message on; ?startingOffsets=latest, ?maxOffsetsPerTrigger=N and ?kafka.ANY=VALUE go to Spark.",
        ),
    ] = None
    master: Master = None
    conf: Annotated[
        list[str] | None,
        typer.Option(
            "--conf",
            metavar="NAME=VALUE",
            help="A setting of Spark, such as spark.jars.packages for Kafka, Delta or Iceberg.",
        ),
    ] = None
    dialect: Dialect = None
    time: Time = None
    explain: Annotated[bool, typer.Option(help="Show the plan too.")] = False
    verify: Annotated[bool, typer.Option(help="Also run it window by window, and compare rows and times.")] = False
    html: Annotated[Path | None, typer.Option(help="Write a page that explains the plan and its run too.")] = None
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace results that are there already.")] = False
    as_json: Json = False

    def to_inputs(self) -> dict[str, str]:
        """Return the place of each named table."""
        return _pairs(self.input, lambda text: f"input {text!r} is not NAME=PLACE, such as readings=readings.parquet")

    def to_settings(self) -> dict[str, str]:
        """Return the settings of Spark."""
        return _pairs(self.conf, lambda text: f"--conf {text!r} is not NAME=VALUE, such as spark.driver.memory=4g")

    def refuse_on_stream(self) -> None:
        """Refuse what only a run that ends can do."""
        if self.verify:
            raise OptionError(
                "--verify compares whole results, and a stream has none; run the query over files, such as --input "
                "readings=readings.parquet, to verify it"
            )
        if self.overwrite:
            raise OptionError(
                "--overwrite would remove what the stream has written so far; to begin anew, write to another place "
                "with another --checkpoint"
            )
        if self.html is not None:
            raise OptionError("--html is for runs over files; factor-windows explain --query ... --html makes the page")


def _pairs(texts: list[str] | None, problem: Callable[[str], str]) -> dict[str, str]:
    pairs = {}
    for text in texts or []:
        name, _, value = text.partition("=")
        if not name or not value:
            raise OptionError(problem(text))
        pairs[name] = value
    return pairs


@expand_options
def run(query: QueryFile, options: RunOptions, stream: StreamOptions) -> None:
    """Run SQL queries over many windows on Spark, and write their results; those over one table share one pass.

    A query over a Kafka topic runs as a stream, which reads what is there and ends, or goes on with --follow. It needs
    --schema, --watermark and --checkpoint. A table, Delta or Iceberg, is upserted micro-batch by micro-batch; files are
    appended to. Fields of a message that do not fit the schema are null; messages without a time, or that are no JSON,
    count in no window, and their number is told.
    """
    from rich.console import Console

    from factor_windows.engines.spark_script import run_script
    from factor_windows.spark.messages import without_json
    from factor_windows.spark.session import session

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
    if options.explain:
        for plan in script.plans:
            show_plan(plan, physical=job is None, streaming=job is not None)
            print()

    def again(tables: Tables) -> Script:
        return plan_script(read(text, dialect=dialect, time=time, tables=tables))

    with without_json():
        spark = session(master=options.master, conf=conf)
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
