"""`factor-windows run`: SQL over files or tables, run on Spark."""

from __future__ import annotations

import json
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
from factor_windows.cost.timing import Timing
from factor_windows.errors import OptionError
from factor_windows.sql.parse import read


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
        list[str] | None, typer.Option("--input", metavar="NAME=PLACE", help="A table: a file, a folder, a table.")
    ] = None
    master: Master = None
    dialect: Dialect = None
    time: Time = None
    explain: Annotated[bool, typer.Option(help="Show the plan too.")] = False
    verify: Annotated[bool, typer.Option(help="Also run it window by window, and compare rows and times.")] = False
    html: Annotated[Path | None, typer.Option(help="Write a page that explains the plan and its run too.")] = None
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace results that are there already.")] = False
    as_json: Json = False

    def to_inputs(self) -> dict[str, str]:
        """Return the place of each named table."""
        inputs = {}
        for text in self.input or []:
            name, _, place = text.partition("=")
            if not name or not place:
                raise OptionError(f"input {text!r} is not NAME=PLACE, such as readings=readings.parquet")
            inputs[name] = place
        return inputs


@expand_options
def run(query: QueryFile, options: RunOptions) -> None:
    """Run SQL queries over many windows on Spark, and write their results; those over one table share one pass."""
    from rich.console import Console

    from factor_windows.engines.spark_script import run_script
    from factor_windows.spark.messages import without_json
    from factor_windows.spark.session import session
    from factor_windows.sql.script import plan_script

    text, dialect, time = read_text(query), options.dialect, options.time
    statements = read(text, dialect=dialect, time=time)
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    inputs = options.to_inputs()
    for note in notes_of(statements):
        console.print(note)
    script = plan_script(statements)
    if options.html is not None:
        only_pass(script.plans)
    outputs = outputs_of(options.output, script.names)
    if options.explain:
        for plan in script.plans:
            show_plan(plan, physical=True)
            print()
    with without_json():
        ran = run_script(
            session(master=options.master),
            script,
            inputs=inputs,
            outputs=outputs,
            verify=options.verify,
            overwrite=options.overwrite,
            console=console,
            again=lambda tables: plan_script(read(text, dialect=dialect, time=time, tables=tables)),
        )
    if options.html is not None:
        write_text(options.html, script.plans[0].to_html(measured=ran.timing or Timing((ran.seconds,))))
    if options.as_json:
        print(json.dumps(ran.described()))
    if ran.differing:
        raise typer.Exit(1)
