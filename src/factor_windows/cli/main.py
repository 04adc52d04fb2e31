"""The command line: `factor-windows demo | explain | rewrite | run | bench | calibrate`."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from factor_windows import __version__
from factor_windows.algebra.window import parse_window
from factor_windows.cost.prices import Prices
from factor_windows.errors import FactorWindowsError, OptionError
from factor_windows.functions.table import FUNCTIONS
from factor_windows.plan import Plan
from factor_windows.query import Query
from factor_windows.request import Search
from factor_windows.search import optimize
from factor_windows.sql.parse import read
from factor_windows.sql.statement import Statement
from factor_windows.tree import Pass

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)

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
    except Exception as trouble:
        if "pyspark" not in sys.modules:
            raise
        from factor_windows.spark.messages import is_of_spark, sentence

        if not is_of_spark(trouble):
            raise
        print(f"error: Spark could not finish: {sentence(trouble)}", file=sys.stderr)
        raise SystemExit(3) from None


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
    asked and 3 for a fault on the way (data, disk, cluster), which one sentence explains, and 130 for an interruption.
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
    from factor_windows.explain.operators import OperatorGraph
    from factor_windows.explain.picture import picture

    options: dict[str, Any] = {
        "search": search,
        "cost": cost,
        "unit": unit,
        "rate": _number(rate),
        "keys": keys,
        "slices": slices,
        "time_limit": time_limit,
        "prices": Prices.load(prices) if prices else None,
    }
    if query_file is not None:
        statements = _statements(query_file, dialect=None, time=time)
        for note in dict.fromkeys(note for statement in statements for note in statement.notes):
            print(note, file=sys.stderr)
        queries = [part for statement in statements for part in statement.queries]
        if len(queries) > 1:
            from factor_windows.sql.script import planned

            unfit = {"--operators": operators, "--candidates": candidates}
            if given := [name for name, value in unfit.items() if value]:
                raise OptionError(f"{', '.join(given)} shows one query, and {str(query_file)!r} has {len(queries)}")
            plans = planned(statements, **options).plans
            if as_json:
                print(json.dumps([_described(plan) for plan in plans], indent=2, ensure_ascii=False))
                return
            if svg is not None:
                _write(svg, picture(_only_plan(plans)))
            if html is not None:
                _only_plan(plans)
                _write(html, plans[0].to_html())
            for plan in plans:
                _show_any(plan, physical=physical, streaming=streaming)
                print()
            return
        [query] = queries
    else:
        query = Query(
            time=time or "ts",
            keys=key or [],
            windows=[parse_window(text) for text in window or []],
            aggregates=[_aggregate(text) for text in function or ["min"]],
        )
    plan = optimize(query, **options)
    if svg is not None:
        _write(svg, picture(plan.passes[0]))
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
                for place in considered(plan.passes[0])
            ]
        print(json.dumps(described, indent=2, ensure_ascii=False))
        return
    _show(plan, physical=physical, streaming=streaming)
    if candidates:
        print("\nfactor windows looked at\n" + "\n".join(f"  {place}" for place in considered(plan.passes[0])))
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
    from factor_windows.engines.sql import emit_statement
    from factor_windows.explain.document import document

    rewritten = []
    for statement in _statements(query, dialect=dialect, time=time):
        plans = [optimize(part, search=cast("Search", search)) for part in statement.queries]
        text = emit_statement(statement, plans, dialect=to)
        described = {"sql": text, "dialect": to, "into": statement.into or None, "plans": [document(p) for p in plans]}
        rewritten.append((described, [*(f"-- {note}" for note in statement.notes), text]))
    if as_json:
        found = [described for described, _ in rewritten]
        print(json.dumps(found[0] if len(found) == 1 else found, indent=2, ensure_ascii=False))
        return
    print(";\n\n".join("\n".join(lines) for _, lines in rewritten))


@app.command()
def run(
    query: QueryFile,
    output: Annotated[
        str,
        typer.Option(
            help="Where the result goes: .parquet, .csv, .json, or a table's name; a folder, or {name}, for several."
        ),
    ],
    input: Annotated[
        list[str] | None, typer.Option("--input", metavar="NAME=PLACE", help="A table: a file, a folder, a table.")
    ] = None,
    master: Annotated[str | None, typer.Option(help="The Spark master; by default all cores of this machine.")] = None,
    dialect: DialectOption = None,
    time: TimeOption = None,
    explain: Annotated[bool, typer.Option(help="Show the plan too.")] = False,
    verify: Annotated[bool, typer.Option(help="Also run it window by window, and compare row by row.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page that explains the plan and its run too.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace results that are there already.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Run SQL queries over many windows on Spark, and write their results; those over one table share one pass."""
    from rich.console import Console

    from factor_windows.engines.spark_script import Ran, run_script
    from factor_windows.spark.messages import without_json
    from factor_windows.spark.session import session
    from factor_windows.sql.script import planned

    text = _text(query)
    statements = read(text, dialect=dialect, time=time)
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    places = [text.partition("=") for text in input or []]
    for name, equals, place in places:
        if not name or not equals or not place:
            raise OptionError(f"input {name + equals + place!r} is not NAME=PLACE, such as readings=readings.parquet")
    for note in dict.fromkeys(note for statement in statements for note in statement.notes):
        console.print(note)
    script = planned(statements)
    if html is not None:
        _only_plan(script.plans)
    outputs = _outputs(output, script.names)
    if explain:
        for plan in script.plans:
            _show_any(plan, physical=True)
            print()
    with without_json():
        ran: Ran = run_script(
            session(master=master),
            script,
            inputs={name: place for name, _, place in places},
            outputs=outputs,
            verify=verify,
            overwrite=overwrite,
            console=console,
            again=lambda tables: planned(read(text, dialect=dialect, time=time, tables=tables)),
        )
    if html is not None:
        _write(html, script.plans[0].to_html(measured=ran.seconds))
    if as_json:
        print(json.dumps(ran.described()))
    if ran.differing:
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

    from factor_windows.spark.calibrate import fit, measure
    from factor_windows.spark.session import session

    fitted = fit(tuple(measure(session(master=master))))
    fitted.prices.save(output)
    if as_json:
        print(json.dumps(asdict(fitted.prices) | {"error": fitted.error}, indent=2))
        return
    print(f"{'plan':<34} {'measured':>10} {'predicted':>10}")
    for each in fitted.measured:
        print(f"{each.name:<34} {each.seconds:8.2f} s {each.predicted(fitted.prices):8.2f} s")
    print("\nprices in nanoseconds")
    for name, value in asdict(fitted.prices).items():
        print(f"  {name:<8} {value:16,.1f}")
    print(f"\npredictions are off by {fitted.error:.0%} in the median; wrote {output}")


def _statements(path: Path, *, dialect: str | None, time: str | None) -> tuple[Statement, ...]:
    """Read the statements of a file."""
    return read(_text(path), dialect=dialect, time=time)


def _text(path: Path) -> str:
    """Read a file, or what is piped in."""
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except OSError as problem:
        raise OptionError(f"cannot read {str(path)!r}: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise OptionError(f"cannot read {str(path)!r}: it is not text in UTF-8") from None


def _outputs(output: str, names: Sequence[str]) -> dict[str, str]:
    """Say where the result of each statement goes."""
    if "{name}" in output:
        return {name: output.replace("{name}", name) for name in names}
    if len(names) == 1:
        return {names[0]: output}
    if Path(output).suffix:
        raise OptionError(
            f"there are {len(names)} results and one output {output!r}; write a folder, or such as results/{{name}}.csv"
        )
    return {name: f"{output.rstrip('/')}/{name}.parquet" for name in names}


def _only_plan(plans: Sequence[Plan]) -> Pass:
    """Return the plan that a picture or a page can explain."""
    trees = [tree for plan in plans for tree in plan.passes]
    if len(trees) > 1:
        raise OptionError(f"a picture or a page explains one plan; these queries need {len(trees)}")
    return trees[0]


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

    from factor_windows.explain.running import explain_physical, explain_streaming
    from factor_windows.explain.terminal import show

    show(plan, Console(highlight=False, soft_wrap=True))
    for wanted, further in ((physical, explain_physical), (streaming, explain_streaming)):
        if wanted:
            print(f"\n{further(plan.passes[0])}")


def _show_any(plan: Plan, *, physical: bool = False, streaming: bool = False) -> None:
    """Print a plan for one query or for several."""
    if plan.is_single:
        _show(plan, physical=physical, streaming=streaming)
    else:
        print(plan.explain(physical=physical, streaming=streaming))


def _described(plan: Plan) -> dict[str, Any]:
    from factor_windows.explain.document import document

    return document(plan)


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
