"""The commands `python -m benchmarks` and `python -m benchmarks report`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

app = typer.Typer(invoke_without_command=True, pretty_exceptions_enable=False, rich_markup_mode=None)
RESULTS = Path("bench-results.jsonl")
ResultsOption = Annotated[Path, typer.Option("--results", help="The file of results, one line of JSON for each case.")]


@app.callback()
def bench(
    context: typer.Context,
    quick: Annotated[
        bool, typer.Option("--quick", help="A few minutes instead of an hour: fewer cases and events.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Only cases with this in their name; choices, gaps, soak, dashboards run only so."),
    ] = None,
    sets: Annotated[int | None, typer.Option(min=1, max=10, help="How many window sets of each kind.")] = None,
    events: Annotated[int | None, typer.Option(min=1, help="How many events each stream has.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="How often each contender runs; slow ones less often.")] = 3,
    seed: Annotated[int, typer.Option(help="What the order of contenders is drawn with.")] = 7,
    results: ResultsOption = RESULTS,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget the results that are there, and begin anew.")] = False,
    data: Annotated[
        Path | None, typer.Option(envvar="FACTOR_WINDOWS_DATA", help="The folder with the real data.")
    ] = None,
    flink: Annotated[
        Path | None, typer.Option(help="The Python of an environment that has apache-flink, to run Flink too.")
    ] = None,
    list_only: Annotated[bool, typer.Option("--list", help="Only list the cases.")] = False,
) -> None:
    """Measure the whole evaluation of the paper on Spark, resuming where an earlier call stopped."""
    if context.invoked_subcommand is not None:
        return
    from benchmarks.results import Store
    from benchmarks.run import Evaluation, Options, run

    options = Options(quick, tuple(only or ()), sets, events, repeats, seed, data, flink)
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
    from benchmarks.results import Store

    for path in write(Store(results), output):
        print(path)
