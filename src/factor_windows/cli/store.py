"""`factor-windows store`: roll-ups in a folder that are kept up to date, file by file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from factor_windows.algebra.calendar import AnyWindow, parse_window
from factor_windows.algebra.session import Session
from factor_windows.cli.explain import Question
from factor_windows.cli.options import Json, SparkOptions, expand_options, notes_of, outputs_of, read_text
from factor_windows.errors import OptionError
from factor_windows.query import Query
from factor_windows.sql.parse import parse
from factor_windows.sql.parse import read as read_statements

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from factor_windows.store import Store

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Keep roll-ups up to date: append events file by file, and read any windows of them.",
)
FIRST_ROWS, WIDEST = 20, 60
"""The number of rows to show, and of letters of a value."""
SIZES = ("rows", "files", "bytes")
_AS_JSON = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Rows as JSON, including what Spark omits: nulls and microseconds."""

Location = Annotated[str, typer.Argument(metavar="LOCATION", help="The folder of the store.")]
Windows = Annotated[
    list[str] | None,
    typer.Option(
        "--window",
        "-w",
        metavar="[NAME=]RANGE[/SLIDE][@OFFSET]",
        help="A window to build from the panes, such as 1h/10m; default: the windows that the store was created for.",
    ),
]
Since = Annotated[
    str | None, typer.Option(help="Only windows that start at this time or later, such as 2024-01-31T12:00.")
]
Until = Annotated[str | None, typer.Option(help="Only windows that start before this time.")]
Retain = Annotated[str, typer.Option(help="How long to keep replaced files, for readers that still use them.")]


@dataclass(frozen=True, slots=True)
class Destination:
    """Where to write results."""

    output: Annotated[
        str | None,
        typer.Option(
            help="Where to write the result: a .parquet, .csv or .json file, or a table. For several results, a folder "
            "or a name with {name} in it. Default: print the first rows, or all rows with --json."
        ),
    ] = None
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing results.")] = False
    as_json: Json = False

    def check(self) -> None:
        """Refuse whatever is known to fail before Spark starts."""
        from factor_windows.spark.files import check_ending

        if self.output is not None:
            check_ending(self.output)
        elif self.overwrite:
            raise OptionError("--overwrite does nothing without --output; leave it out, or say where the result goes")


@app.command()
@expand_options
def create(
    location: Location,
    question: Question,
    finest: Annotated[
        str | None,
        typer.Option(help="Keep panes as fine as this, such as 1m, so that other windows can be read later."),
    ] = None,
    delay: Annotated[
        str | None, typer.Option(help="How long a window accepts late events before it is final, such as 1h.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Create a store for windows and functions, or for the queries of a SQL file."""
    from factor_windows.store import Store

    queries = _queries_of(question)
    with _explained_files():
        store = Store.create(_settings(), location, queries, finest=finest, delay=delay)
    described = store.describe()
    if as_json:
        _print_json(described)
        return
    print(f"created a store in {store.location}")
    for each in described["resolutions"]:
        print(f"panes of {each['panes']}")


@app.command()
@expand_options
def append(
    location: Location,
    engine: SparkOptions,
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Files, folders or tables of events.")],
    batch: Annotated[
        str | None, typer.Option(help="A name for the batch, which is added once; default: the path of the file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Add files of events, each as a batch. A batch that was added before is skipped."""
    from rich.console import Console
    from rich.markup import escape

    from factor_windows.spark.files import check_ending, check_local_files
    from factor_windows.spark.messages import spark_says
    from factor_windows.spark.progress import shown

    if batch is not None and len(files) > 1:
        raise OptionError(
            f"--batch names one file, but there are {len(files)}; leave it out, or append them one by one"
        )
    for file in files:
        check_ending(file)
    if engine.reads_this_machine:
        check_local_files(files)
    console = Console(stderr=True, highlight=False)
    done = []
    with _opened(location, engine) as store:
        for place, file in enumerate(files, start=1):
            before, name = store.version, _batch_of(file) if batch is None else batch
            with (
                shown(store.spark, f"{place}/{len(files)} {escape(file)}", console),
                spark_says(f"cannot add {file!r}"),
            ):
                version = store.append(_events(store.spark, file), batch=name)
            done.append({"batch": name, "version": version, "added": version > before})
            if not as_json:
                print(f"version {version}: {file}{'' if version > before else ' was there already'}")
    if as_json:
        _print_json({"version": done[-1]["version"], "batches": done})


@app.command()
@expand_options
def read(
    location: Location,
    destination: Destination,
    engine: SparkOptions,
    window: Windows = None,
    since: Since = None,
    until: Until = None,
) -> None:
    """Compute windows from the panes, and write or print them."""
    destination.check()
    windows = _windows_of(window)
    with _opened(location, engine) as store:
        version = store.version
        _give(store, version, store.read(windows, since, until), destination)


@app.command()
@expand_options
def changes(
    location: Location,
    destination: Destination,
    engine: SparkOptions,
    since: Annotated[int, typer.Option(metavar="VERSION", help="The version that you read last; 0 for all rows.")],
    window: Windows = None,
    delay: Annotated[
        str | None,
        typer.Option(help="How long a window accepts late events before it is final; default: the store's delay."),
    ] = None,
) -> None:
    """Compute the rows that changed since a version, and write or print them."""
    destination.check()
    windows = _windows_of(window)
    with _opened(location, engine) as store:
        # Before the changes are read: if a version is added meanwhile, its rows come again, and none is missed.
        version = store.version
        _give(store, version, store.changes(since, windows=windows, delay=delay), destination)


@app.command()
@expand_options
def compact(location: Location, engine: SparkOptions, retain: Retain = "1h", as_json: Json = False) -> None:
    """Merge appended files, and build coarser panes."""
    with _opened(location, engine) as store:
        before = store.describe()
        store.compact(retain=retain)
        _print_sizes(before, store.describe(), as_json=as_json)


@app.command()
@expand_options
def expire(
    location: Location,
    engine: SparkOptions,
    age: Annotated[str, typer.Argument(help="Drop panes that are this much older than the last event, such as 90d.")],
    keep: Annotated[
        str | None, typer.Option(metavar="RANGE", help="Keep these panes and coarser ones, such as 1h.")
    ] = None,
    retain: Retain = "1h",
    as_json: Json = False,
) -> None:
    """Drop old panes, or only those finer than --keep."""
    kept = None if keep is None else parse_window(keep)
    if isinstance(kept, Session):
        raise OptionError(f"keep {keep!r} is a session, which has no panes; use a length such as 1h")
    with _opened(location, engine) as store:
        before = store.describe()
        store.expire(age, keep=kept, retain=retain)
        _print_sizes(before, store.describe(), as_json=as_json)


@app.command()
def describe(location: Location, as_json: Json = False) -> None:
    """Show the queries and the contents of a store."""
    with _explained_files():
        store = _without_spark(location)
        described = store.describe()
    if as_json:
        _print_json(described)
        return
    for name in ("location", "version", "batches", "streams", "last_event", "delay"):
        print(f"{name.replace('_', ' '):<12}{'none' if described[name] is None else described[name]}")
    for query in store.queries:
        print(f"{'query':<12}{query!r}")
    rows = [(each["panes"], each["since"] or "the first event", *_sizes(each)) for each in described["resolutions"]]
    rows.append((f"{rows[0][0]}, appended", "the last compaction", *_sizes(described["appended"])))
    print()
    _print_table(("panes", "since", *SIZES), rows)


@app.command()
@expand_options
def explain(
    location: Location, engine: SparkOptions, window: Windows = None, since: Since = None, until: Until = None
) -> None:
    """Show which panes and how many files a read uses."""
    windows = _windows_of(window)
    with _opened(location, engine) as store:
        print(store.explain(windows, since, until))


def _queries_of(question: Question) -> Query | list[Query]:
    """Return the query made of the windows and functions, or the queries of a SQL file over one table."""
    if question.query_file is None:
        if not question.function:
            raise OptionError("there is no function; add one, such as --function 'avg(t)'")
        return question.to_query()
    question.check_only_query()
    text = read_text(question.query_file)
    for note in notes_of(read_statements(text, time=question.time)):
        print(note, file=sys.stderr)
    found = parse(text, time=question.time)
    sources = {query.source.lower(): query.source for query in ([found] if isinstance(found, Query) else found)}
    if len(sources) > 1:
        raise OptionError(f"the queries read {', '.join(sources.values())}; a store has the events of one table")
    for source in sources.values():
        if source.startswith("("):
            raise OptionError(f"the query reads {source}; a store takes events as they are, so read one table")
    return found


def _windows_of(texts: list[str] | None) -> list[AnyWindow] | None:
    return [parse_window(text) for text in texts] if texts else None


@contextmanager
def _opened(location: str, engine: SparkOptions) -> Iterator[Store]:
    """Open a store on Spark."""
    from factor_windows.store import Store

    with _explained_files():
        # Spark takes seconds to start, so report a wrong location first.
        _without_spark(location)
        with engine.session() as spark:
            yield Store.open(spark, location)


def _without_spark(location: str) -> Store:
    """Open a store in a folder for requests that its files alone can answer."""
    from factor_windows.store import Store
    from factor_windows.store.folder import Folder

    folder = Folder(location)
    return Store(_settings(), folder, folder.open())


def _settings() -> SparkSession:
    """Stand in for a session where a store only needs its settings."""
    from factor_windows.spark.session import settings

    return cast("SparkSession", SimpleNamespace(conf=settings()))


@contextmanager
def _explained_files() -> Iterator[None]:
    """Report in one sentence what is wrong with a file."""
    try:
        yield
    except OSError as problem:
        if problem.filename is None:
            raise
        raise OptionError(f"cannot use {str(problem.filename)!r}: {problem.strerror}") from None


def _batch_of(file: str) -> str:
    """Return a file's name in a form that does not depend on the current folder."""
    from factor_windows.spark.files import is_file

    local = file.removeprefix("file:")
    return str(Path(local).resolve()) if is_file(file) and "://" not in local else file


def _events(spark: SparkSession, file: str) -> DataFrame:
    from factor_windows.spark.files import is_file, load

    if not is_file(file) and not spark.catalog.tableExists(file):
        raise OptionError(f"there is no file and no table {file!r}")
    return load(spark, file)


def _give(store: Store, version: int, found: Any, destination: Destination) -> None:
    """Write results, or show them; `found` is a DataFrame, or for several queries a mapping from their names."""
    from factor_windows.engines.spark_queries import Results

    single = store.queries[0].name or "query_1"
    results = found if isinstance(found, Results) else {single: found}
    with found if isinstance(found, Results) else nullcontext():
        if destination.output is not None:
            places = outputs_of(destination.output, list(results))
            given = _write(store, results, places, destination)
        elif destination.as_json:
            given = [{"name": name, **_rows_of(result)} for name, result in results.items()]
        else:
            given = []
            for (name, result), query in zip(results.items(), store.queries, strict=True):
                if len(results) > 1:
                    print(name)
                (result if query.outer else _in_time(result)).show(FIRST_ROWS, truncate=WIDEST)
    if destination.as_json:
        only = {key: value for key, value in given[0].items() if key != "name"}
        _print_json({"version": version, **({"results": given} if len(given) > 1 else only)})
        return
    for each in given:
        print(f"wrote {each['output']}: {each['rows']:,} rows")
    print(f"version {version}")


def _write(
    store: Store, results: Mapping[str, DataFrame], places: Mapping[str, str], destination: Destination
) -> list[dict[str, Any]]:
    """Write each result to its place, and count its rows."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F
    from rich.console import Console

    from factor_windows.spark.files import check_free, write
    from factor_windows.spark.messages import spark_says
    from factor_windows.spark.progress import shown

    for place in places.values():
        _check_apart(place, store.location)
        if not destination.overwrite:
            check_free(store.spark, place)
    console = Console(stderr=True, highlight=False)
    written = []
    for name, result in results.items():
        counted = Observation()
        with shown(store.spark, f"reading {name}", console), spark_says(f"cannot write {places[name]!r}"):
            write(result.observe(counted, F.count(F.lit(1)).alias("rows")), places[name])
        written.append({"name": name, "output": places[name], "rows": int(counted.get["rows"])})
    return written


def _check_apart(place: str, location: str) -> None:
    """Refuse to write to the store's own location, which would remove the store."""
    own, other = Path(location).resolve(), Path(place.removeprefix("file:")).resolve()
    if own.is_relative_to(other) or other.is_relative_to(own):
        raise OptionError(f"output {place!r} is inside the store or contains it; choose another place")


def _rows_of(result: DataFrame) -> dict[str, Any]:
    """Return all rows as plain values, times as text in the session's zone."""
    from pyspark.sql import functions as F

    texts = result.select(F.to_json(F.struct("*"), _AS_JSON)).collect()
    return {"rows": len(texts), "result": [json.loads(text) for [text] in texts]}


def _in_time(result: DataFrame) -> DataFrame:
    """Sort rows by time."""
    from factor_windows.functions.expression import quoted

    times = [quoted(name) for name, kind in result.dtypes if kind.startswith("timestamp")]
    return result.orderBy(*times) if times else result


def _print_json(described: Mapping[str, Any]) -> None:
    print(json.dumps(described, indent=2, ensure_ascii=False))


def _print_sizes(before: Mapping[str, Any], after: Mapping[str, Any], *, as_json: bool) -> None:
    version = after["version"]
    if as_json:
        sizes = {when: {name: of[name] for name in SIZES} for when, of in (("before", before), ("after", after))}
        _print_json({"version": version, **sizes})
        return
    print(f"version {version}")
    _print_table(("", *SIZES), [("before", *_sizes(before)), ("after", *_sizes(after))])


def _sizes(of: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(f"{of[name]:,}" for name in SIZES)


def _print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns, right-aligning those of numbers."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in (header, *rows):
        cells = zip(header, row, widths, strict=True)
        print("  ".join(cell.rjust(width) if name in SIZES else cell.ljust(width) for name, cell, width in cells))
