"""The commands `python -m benchmarks` and `python -m benchmarks report`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.results import Store
from benchmarks.run import Evaluation, Options, run
from factor_windows.cli.options import expand_options

app = typer.Typer(invoke_without_command=True, pretty_exceptions_enable=False, rich_markup_mode=None)
RESULTS = Path("bench-results.jsonl")
ResultsOption = Annotated[Path, typer.Option("--results", help="The file of results, one line of JSON for each case.")]


@app.callback()
@expand_options
def bench(
    context: typer.Context,
    options: Options,
    results: ResultsOption = RESULTS,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget the results that are there, and begin anew.")] = False,
    list_only: Annotated[bool, typer.Option("--list", help="Only list the cases.")] = False,
) -> None:
    """Measure the whole evaluation of the paper on Spark, resuming where an earlier call stopped."""
    if context.invoked_subcommand is not None:
        return
    if list_only:
        for job in Evaluation(options, Path()).jobs():
            print(job.name)
        return
    store = Store(results)
    if fresh:
        store.clear()
    wrong = run(store, options, Console(stderr=True, highlight=False, soft_wrap=True))
    if wrong:
        print(f"{wrong} contenders gave rows that differ from the naive query's; {results} names them", file=sys.stderr)
        raise typer.Exit(1)
    print(f"the results are in {results}; python -m benchmarks report makes tables and pictures of them")


@app.command()
def report(
    results: ResultsOption = RESULTS,
    output: Annotated[Path, typer.Option(help="The folder for benchmarks.md, the pictures and the page.")] = Path(
        "docs"
    ),
) -> None:
    """Make tables, pictures and a page of the results."""
    from benchmarks.report import write

    for path in write(Store(results), output):
        print(path)
