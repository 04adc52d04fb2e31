"""The command line: `factor-windows demo | explain | rewrite | run | bench | calibrate`."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from factor_windows import __version__
from factor_windows.bench.commands import app as bench
from factor_windows.errors import FactorWindowsError, OptionError
from factor_windows.functions import FUNCTIONS
from factor_windows.plan import Plan
from factor_windows.prices import Prices
from factor_windows.query import Query
from factor_windows.search import optimize
from factor_windows.sql.parse import read
from factor_windows.sql.statement import Statement
from factor_windows.window import parse_window

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)
app.add_typer(bench, name="bench")

WindowOption = Annotated[
    list[str] | None,
    typer.Option("--window", "-w", metavar="[NAME=]RANGE[/SLIDE][@OFFSET]", help="A window, such as 20m or 1h/10m@5m."),
]
FunctionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--function", "-f", help="A function, such as min, or an aggregate, such as 'avg(t) AS mean_t'; by default min."
    ),
]


def main() -> None:
    """Run the command line; a user's mistake ends in one sentence and exit code 2."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    try:
        app()
    except FactorWindowsError as mistake:
        print(f"error: {mistake}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"factor-windows {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Aggregates over many windows of one stream for about the price of one.

    Exit codes: 0 for success, 1 if a result is not what it should be (run --verify, bench), 2 for a mistake in what was
    asked, which one sentence explains, and 130 for an interruption.
    """


@app.command()
def explain(
    query_file: Annotated[
        Path | None, typer.Option("--query", "-q", help="A file with a SQL query, instead of windows and functions.")
    ] = None,
    window: WindowOption = None,
    function: FunctionOption = None,
    key: Annotated[list[str] | None, typer.Option("--key", "-k", help="A key to group by, such as device.")] = None,
    time: Annotated[str | None, typer.Option(help="The time column; by default ts, or as the SQL says.")] = None,
    search: Annotated[str, typer.Option(help="none, coverage, factor, slicing or best.")] = "best",
    cost: Annotated[str, typer.Option(help="The cost model: spark or paper.")] = "spark",
    unit: Annotated[
        str | None, typer.Option(help="The unit of time, such as 1m; by default the windows' greatest common divisor.")
    ] = None,
    rate: Annotated[
        str | None, typer.Option(help="Events per unit of time; by default 1 (paper), or a dense stream (spark).")
    ] = None,
    keys: Annotated[int | None, typer.Option(help="How many combinations of keys there are; by default 1.")] = None,
    slices: Annotated[bool, typer.Option(help="Let the search best use slices.")] = True,
    time_limit: Annotated[float, typer.Option(help="After how many seconds the search best ends.")] = 1.0,
    prices: Annotated[Path | None, typer.Option(help="Prices of your Spark, as calibrate writes them.")] = None,
    operators: Annotated[bool, typer.Option(help="Show the operators too, before and after the rewriting.")] = False,
    candidates: Annotated[bool, typer.Option(help="Show the factor windows that were looked at too.")] = False,
    svg: Annotated[Path | None, typer.Option(help="Write a picture of the plan to this file too.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page that explains the plan to this file too.")] = None,
    physical: Annotated[bool, typer.Option(help="Show how the plan runs on Spark too.")] = False,
    streaming: Annotated[bool, typer.Option(help="Show how the plan runs on a stream too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Show the cheapest plan for a set of windows, and why."""
    from factor_windows.explain.candidates import considered
    from factor_windows.explain.document import document
    from factor_windows.explain.picture import picture
    from factor_windows.operators import OperatorGraph

    if query_file is not None:
        statement = _statement(query_file, dialect=None, time=time)
        for note in statement.notes:
            print(note, file=sys.stderr)
        if len(statement.queries) > 1:
            for part in statement.queries:
                print(optimize(part, search=search, cost=cost).explain(physical=physical) + "\n")
            return
        [query] = statement.queries
    else:
        query = Query(
            time=time or "ts",
            keys=key or [],
            windows=[parse_window(text) for text in window or []],
            aggregates=[_aggregate(text) for text in function or ["min"]],
        )
    plan = optimize(
        query,
        search=search,
        cost=cost,
        unit=unit,
        rate=_number(rate),
        keys=keys,
        slices=slices,
        time_limit=time_limit,
        prices=Prices.load(prices) if prices else None,
    )
    if svg is not None:
        _write(svg, picture(plan))
    if html is not None:
        _write(html, plan.to_html())
    before, after = OperatorGraph.of(plan.naive()), OperatorGraph.of(plan)
    if as_json:
        described = document(plan)
        if operators:
            described["operators"] = {
                name: [[str(source), str(target)] for source, target in graph.links]
                for name, graph in (("before", before), ("after", after))
            }
        if candidates:
            described["candidates"] = [
                {
                    "above": place.above.name if place.above else None,
                    "below": [window.name for window in place.below],
                    "candidates": [window.label for window in place.candidates],
                    "best": place.best.label if place.best else None,
                }
                for place in considered(plan)
            ]
        print(json.dumps(described, indent=2, ensure_ascii=False))
        return
    _show(plan, physical=physical, streaming=streaming)
    if candidates:
        print("\nfactor windows looked at\n" + "\n".join(f"  {place}" for place in considered(plan)))
    if operators:
        for name, graph in (("before", before), ("after", after)):
            print(f"\noperators {name}\n" + "\n".join(f"  {line}" for line in str(graph).splitlines()))


QueryFile = Annotated[Path, typer.Argument(metavar="QUERY.SQL", help="A file with a SQL query; - reads the input.")]
DialectOption = Annotated[
    str | None, typer.Option("--from", help="The query's dialect: spark, azure or flink; by default it is recognized.")
]
TimeOption = Annotated[str | None, typer.Option(help="The time column, where the query names none.")]


@app.command()
def rewrite(
    query: QueryFile,
    to: Annotated[str, typer.Option(help="The dialect to write: spark, duckdb or flink.")] = "spark",
    dialect: DialectOption = None,
    time: TimeOption = None,
    search: Annotated[str, typer.Option(help="none, coverage, factor, slicing or best.")] = "best",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Rewrite a SQL query over many windows into one that shares their work, and print it."""
    from factor_windows.explain.document import document
    from factor_windows.sql.emit import emit_statement

    statement = _statement(query, dialect=dialect, time=time)
    plans = [optimize(part, search=search) for part in statement.queries]
    text = emit_statement(statement, plans, dialect=to)
    if as_json:
        described = {"sql": text, "dialect": to, "into": statement.into or None, "plans": [document(p) for p in plans]}
        print(json.dumps(described, indent=2, ensure_ascii=False))
        return
    for note in statement.notes:
        print(f"-- {note}")
    print(text)


@app.command()
def run(
    query: QueryFile,
    output: Annotated[str, typer.Option(help="Where the result goes: .parquet, .csv, .json, or a table's name.")],
    input: Annotated[
        list[str] | None, typer.Option("--input", metavar="NAME=PLACE", help="A table: a file, a folder, a table.")
    ] = None,
    master: Annotated[str | None, typer.Option(help="The Spark master; by default all cores of this machine.")] = None,
    dialect: DialectOption = None,
    time: TimeOption = None,
    explain: Annotated[bool, typer.Option(help="Show the plan too.")] = False,
    verify: Annotated[bool, typer.Option(help="Also run it window by window, and compare row by row.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page that explains the plan and its run too.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Run a SQL query over many windows on Spark, and write its result."""
    from time import perf_counter

    from pyspark.sql import Observation
    from pyspark.sql import functions as F
    from rich.console import Console

    from factor_windows.cost import share
    from factor_windows.spark.compare import compared
    from factor_windows.spark.files import register, write
    from factor_windows.spark.progress import shown
    from factor_windows.spark.session import session
    from factor_windows.spark.statement import run as run_statement
    from factor_windows.spark.statement import run_naively

    statement = _statement(query, dialect=dialect, time=time)
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    places = [text.partition("=") for text in input or []]
    for name, equals, place in places:
        if not name or not equals or not place:
            raise OptionError(f"input {name + equals + place!r} is not NAME=PLACE, such as readings=readings.parquet")
    for note in statement.notes:
        console.print(note)
    plans = [optimize(part) for part in statement.queries]
    if explain:
        for plan in plans:
            _show(plan, physical=True, streaming=False)
            print()
    spark = session(master=master)
    for name, _, place in places:
        register(spark, name, place)
    counted = Observation("written")
    result = run_statement(spark, statement).observe(counted, F.count(F.lit(1)).alias("rows"))
    begin = perf_counter()
    with shown(spark, "running", console):
        write(result, output)
    seconds = {"plan": perf_counter() - begin}
    rows = counted.get["rows"]
    predicted = share(sum(plan.naive_cost for plan in plans), sum(plan.cost for plan in plans))
    console.print(f"wrote {output}: {rows:,} rows in {seconds['plan']:.1f} s; predicted gain {predicted:.1f} times")
    differing = 0
    if verify:
        with shown(spark, "running window by window", console):
            begin = perf_counter()
            run_naively(spark, statement).write.format("noop").mode("overwrite").save()
            seconds["naive"] = perf_counter() - begin
        with shown(spark, "comparing with the query run window by window", console):
            rows, differing = compared(run_statement(spark, statement), run_naively(spark, statement))
        gain = seconds["naive"] / seconds["plan"]
        console.print(f"window by window it takes {seconds['naive']:.1f} s: measured gain {gain:.1f} times")
        console.print(
            f"{differing} rows differ from the query run window by window"
            if differing
            else f"verified: all {rows:,} rows equal those of the query run window by window"
        )
    if html is not None:
        if len(plans) > 1:
            raise OptionError(f"--html explains one plan; the statement has {len(plans)}")
        _write(html, plans[0].to_html(measured=seconds))
    if as_json:
        verdict = {"verified": not differing} if verify else {}
        print(json.dumps({"output": output, "rows": rows, "seconds": seconds, "predicted_gain": predicted} | verdict))
    if differing:
        raise typer.Exit(1)


@app.command()
def demo(
    output: Annotated[Path, typer.Option(help="Where the result and the page go.")] = Path("demo-output"),
    events: Annotated[int, typer.Option(min=1, help="How many readings to make.")] = 2_000_000,
    stream: Annotated[bool, typer.Option("--stream", help="Watch a stream instead: a live table of windows.")] = False,
    seconds: Annotated[int, typer.Option(min=1, help="How long to watch the stream.")] = 60,
) -> None:
    """Run the paper's query and one of ten windows on local Spark, naive and planned, and compare."""
    from factor_windows.demo import run
    from factor_windows.demo_stream import run as watch
    from factor_windows.spark.session import session

    if stream:
        watch(session(), seconds=seconds)
        return
    run(session(), output, events=events)


@app.command()
def calibrate(
    output: Annotated[Path, typer.Option(help="Where the prices go.")] = Path("prices.json"),
    master: Annotated[str | None, typer.Option(help="The Spark master; by default all cores of this machine.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Measure what your Spark takes for each kind of work, for explain --prices and optimize(prices=...)."""
    from dataclasses import asdict

    from factor_windows.bench.calibrate import fit, measure
    from factor_windows.spark.session import session

    fitted = fit(tuple(measure(session(master=master))))
    fitted.prices.save(output)
    if as_json:
        print(json.dumps(asdict(fitted.prices) | {"error": fitted.error}, indent=2))
        return
    print(f"{'plan':<28} {'measured':>10} {'predicted':>10}")
    for each in fitted.measured:
        print(f"{each.name:<28} {each.seconds:8.2f} s {each.predicted(fitted.prices):8.2f} s")
    print("\nprices in nanoseconds")
    for name, value in asdict(fitted.prices).items():
        print(f"  {name:<8} {value:16,.1f}")
    print(f"\npredictions are off by {fitted.error:.0%} in the median; wrote {output}")


def _statement(path: Path, *, dialect: str | None, time: str | None) -> Statement:
    """Read the one statement of a file."""
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except OSError as problem:
        raise OptionError(f"cannot read {str(path)!r}: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise OptionError(f"cannot read {str(path)!r}: it is not text in UTF-8") from None
    statements = read(text, dialect=dialect, time=time)
    if len(statements) > 1:
        raise OptionError(f"{str(path)!r} has {len(statements)} statements; give one at a time")
    return statements[0]


def _aggregate(text: str) -> str:
    """Complete a bare function name to an aggregate over columns named like its parameters."""
    function = FUNCTIONS.get(text.strip().lower())
    if function is None:
        return text if "(" in text or not text.strip() else f"{text}(x)"
    required = function.parameters[: len(function.parameters) - function.optional]
    return f"{text}({', '.join('0.5' if parameter == 'share' else parameter for parameter in required)})"


def _show(plan: Plan, *, physical: bool, streaming: bool) -> None:
    """Print a plan: in colour for people, as plain text for programs."""
    from rich.console import Console

    from factor_windows.explain.terminal import show
    from factor_windows.explain.text import explain_physical, explain_streaming

    show(plan, Console(highlight=False, soft_wrap=True))
    for wanted, further in ((physical, explain_physical), (streaming, explain_streaming)):
        if wanted:
            print(f"\n{further(plan)}")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise OptionError(f"cannot write {str(path)!r}: {problem.strerror}") from None


def _number(text: str | None) -> float | int | None:
    if text is None:
        return None
    try:
        return int(text) if text.strip().lstrip("+-").isdigit() else float(text)
    except ValueError:
        raise OptionError(f"rate {text!r} is not a number; it is the number of events per unit of time") from None
