"""Options and inputs that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from os import environ
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from factor_windows.cost.prices import Prices
from factor_windows.errors import OptionError
from factor_windows.plan import Plan
from factor_windows.sql.statement import Statement
from factor_windows.tree import Pass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QueryFile = Annotated[
    Path, typer.Argument(metavar="QUERY.SQL", help="A file with a SQL query; - reads standard input.")
]
Dialect = Annotated[
    str | None, typer.Option("--from", help="The query's dialect: spark, azure or flink; default: detected.")
]
Time = Annotated[str | None, typer.Option(help="The time column, if the query names none.")]
Search = Annotated[str, typer.Option(help="The search: none, coverage, factor, slicing or best.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show Spark's own log.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def expand_options(command: Callable[..., None]) -> Callable[..., None]:
    """Show typer the fields of a command's dataclass parameters as separate options."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hints[name] for name in signature(command).parameters if is_dataclass(hints[name])}
    shown: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        if parameter.name not in groups:
            shown.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[parameter.name]))
            continue
        of_group = get_type_hints(groups[parameter.name], include_extras=True)
        for field in fields(groups[parameter.name]):
            default = Parameter.empty if field.default is MISSING else field.default
            shown.append(
                Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=of_group[field.name])
            )

    @wraps(command)
    def expanded(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given)

    expanded.__signature__ = Signature(shown)  # type: ignore[attr-defined]
    expanded.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return expanded


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """Which Spark to use, and how much to print."""

    master: Annotated[str | None, typer.Option(help="The Spark master; default: all cores of this machine.")] = None
    verbose: Verbose = False

    @property
    def reads_this_machine(self) -> bool:
        """Say whether a path without a scheme is on this machine, not in a cluster's file system."""
        return self.master is None and "HADOOP_CONF_DIR" not in environ

    @contextmanager
    def session(self, conf: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
        """Start Spark; without --verbose, hide its log."""
        from factor_windows.spark.messages import without_json
        from factor_windows.spark.session import session

        with nullcontext() if self.verbose else without_json():
            yield session(master=self.master, conf=conf, verbose=self.verbose)


@dataclass(frozen=True, slots=True)
class PlanningOptions:
    """The options of `optimize`."""

    search: Search = "best"
    cost: Annotated[str, typer.Option(help="The cost model: spark or paper.")] = "spark"
    unit: Annotated[
        str | None, typer.Option(help="The unit of time, such as 1m; default: the windows' greatest common divisor.")
    ] = None
    rate: Annotated[
        str | None, typer.Option(help="Events per unit of time; default: 1 (paper), or a dense stream (spark).")
    ] = None
    keys: Annotated[int | None, typer.Option(help="The number of combinations of keys; default: 1.")] = None
    slices: Annotated[bool | None, typer.Option(help="Allow slices (search best only); default: allowed.")] = None
    time_limit: Annotated[
        float | None, typer.Option(help="Stop searching after this many seconds (search best only); default: 1.")
    ] = None
    prices: Annotated[Path | None, typer.Option(help="The prices of your Spark, from calibrate (cost spark only).")] = (
        None
    )

    def to_keywords(self) -> dict[str, Any]:
        """Return the keywords of `optimize`; refuse options that would have no effect."""
        given = {field.name: value for field in fields(self) if (value := getattr(self, field.name)) is not None}
        for needed, value, names in (("search", "best", ("slices", "time_limit")), ("cost", "spark", ("prices",))):
            unused = next((name for name in names if name in given), None)
            if unused is not None and given[needed] != value:
                option = "--no-slices" if given[unused] is False else option_of(unused)
                raise OptionError(
                    f"{option} does nothing with --{needed} {given[needed]}; it is for --{needed} {value}"
                )
        if self.rate is not None:
            given["rate"] = _number(self.rate)
        if self.prices is not None:
            given["prices"] = Prices.load(self.prices)
        return given


def option_of(name: str) -> str:
    """Return the command-line option that sets a keyword argument of Python.

    >>> option_of("time_limit")
    '--time-limit'
    """
    return f"--{name.replace('_', '-')}"


def in_options(message: str) -> str:
    """Rewrite a message about a keyword of `optimize` as one about an option.

    >>> in_options("time_limit 0.0 is not positive"), in_options("the query has no window")
    ('--time-limit 0.0 is not positive', 'the query has no window')
    """
    first, space, rest = message.partition(" ")
    keywords = {field.name for field in fields(PlanningOptions)}
    return f"{option_of(first)}{space}{rest}" if first in keywords else message


def _number(text: str | None) -> float | int | None:
    if text is None:
        return None
    try:
        return int(text) if text.strip().lstrip("+-").isdigit() else float(text)
    except ValueError:
        raise OptionError(f"--rate {text!r} is not a number; it is the number of events per unit of time") from None


def read_text(path: Path) -> str:
    """Read a file, or standard input."""
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except OSError as problem:
        raise OptionError(f"cannot read {str(path)!r}: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise OptionError(f"cannot read {str(path)!r}: it is not text in UTF-8") from None


def write_text(path: Path, text: str) -> None:
    """Write a file, and report it separately from the output."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise OptionError(f"cannot write {str(path)!r}: {problem.strerror}") from None
    print(f"wrote {path}", file=sys.stderr)


def outputs_of(output: str, names: Sequence[str]) -> dict[str, str]:
    """Map the name of each result to its output."""
    if "{name}" in output:
        return {name: output.replace("{name}", name) for name in names}
    if len(names) == 1:
        return {names[0]: output}
    if Path(output).suffix:
        raise OptionError(
            f"there are {len(names)} results but one --output {output!r}; use a folder, or a name such as "
            "results/{name}.csv"
        )
    return {name: f"{output.rstrip('/')}/{name}.parquet" for name in names}


def notes_of(statements: Iterable[Statement]) -> list[str]:
    """List the distinct notes of statements."""
    return list(dict.fromkeys(note for statement in statements for note in statement.notes))


def only_pass(plans: Iterable[Plan]) -> Pass:
    """Return the only pass of some plans, for a picture or a page."""
    passes = [each for plan in plans for each in plan.passes]
    if len(passes) > 1:
        raise OptionError(f"--svg and --html show one plan; these queries need {len(passes)}")
    return passes[0]


def show_plan(plan: Plan, *, physical: bool = False, streaming: bool = False) -> None:
    """Print a plan: in colour for people, as plain text for programs."""
    from rich.console import Console

    from factor_windows.explain.running import explain_physical, explain_streaming
    from factor_windows.explain.terminal import show

    if not plan.is_single:
        print(plan.explain(physical=physical, streaming=streaming))
        return
    show(plan, Console(highlight=False, soft_wrap=True))
    for wanted, further in ((physical, explain_physical), (streaming, explain_streaming)):
        if wanted:
            print(f"\n{further(plan.passes[0])}")
