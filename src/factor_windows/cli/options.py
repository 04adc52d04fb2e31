"""Options and inputs that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from factor_windows.cost.prices import Prices
from factor_windows.errors import OptionError
from factor_windows.plan import Plan
from factor_windows.sql.statement import Statement
from factor_windows.tree import Pass

QueryFile = Annotated[Path, typer.Argument(metavar="QUERY.SQL", help="A file with a SQL query; - reads the input.")]
Dialect = Annotated[
    str | None, typer.Option("--from", help="The query's dialect: spark, azure or flink; by default it is recognized.")
]
Time = Annotated[str | None, typer.Option(help="The time column, where the query names none.")]
Search = Annotated[str, typer.Option(help="none, coverage, factor, slicing or best.")]
Master = Annotated[str | None, typer.Option(help="The Spark master; by default all cores of this machine.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def expand_options(command: Callable[..., None]) -> Callable[..., None]:
    """Let typer see the fields of a command's dataclass parameters as options of their own."""
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
class PlanningOptions:
    """What `optimize` takes."""

    search: Search = "best"
    cost: Annotated[str, typer.Option(help="The cost model: spark or paper.")] = "spark"
    unit: Annotated[
        str | None, typer.Option(help="The unit of time, such as 1m; by default the windows' greatest common divisor.")
    ] = None
    rate: Annotated[
        str | None, typer.Option(help="Events per unit of time; by default 1 (paper), or a dense stream (spark).")
    ] = None
    keys: Annotated[int | None, typer.Option(help="How many combinations of keys there are; by default 1.")] = None
    slices: Annotated[bool, typer.Option(help="Let the search best use slices.")] = True
    time_limit: Annotated[float, typer.Option(help="After how many seconds the search best ends.")] = 1.0
    prices: Annotated[Path | None, typer.Option(help="Prices of your Spark, as calibrate writes them.")] = None

    def to_keywords(self) -> dict[str, Any]:
        """Return the keywords of `optimize`."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return given | {"rate": _number(self.rate), "prices": Prices.load(self.prices) if self.prices else None}


def _number(text: str | None) -> float | int | None:
    if text is None:
        return None
    try:
        return int(text) if text.strip().lstrip("+-").isdigit() else float(text)
    except ValueError:
        raise OptionError(f"rate {text!r} is not a number; it is the number of events per unit of time") from None


def read_text(path: Path) -> str:
    """Read a file, or what is piped in."""
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except OSError as problem:
        raise OptionError(f"cannot read {str(path)!r}: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise OptionError(f"cannot read {str(path)!r}: it is not text in UTF-8") from None


def write_text(path: Path, text: str) -> None:
    """Write a file."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise OptionError(f"cannot write {str(path)!r}: {problem.strerror}") from None


def outputs_of(output: str, names: Sequence[str]) -> dict[str, str]:
    """Say where each of several results goes, by its name."""
    if "{name}" in output:
        return {name: output.replace("{name}", name) for name in names}
    if len(names) == 1:
        return {names[0]: output}
    if Path(output).suffix:
        raise OptionError(
            f"there are {len(names)} results and one output {output!r}; write a folder, or such as results/{{name}}.csv"
        )
    return {name: f"{output.rstrip('/')}/{name}.parquet" for name in names}


def notes_of(statements: Iterable[Statement]) -> list[str]:
    """List what the readers of statements have to say, each sentence once."""
    return list(dict.fromkeys(note for statement in statements for note in statement.notes))


def only_pass(plans: Iterable[Plan]) -> Pass:
    """Return what a picture or a page can explain."""
    passes = [each for plan in plans for each in plan.passes]
    if len(passes) > 1:
        raise OptionError(f"a picture or a page explains one plan; these queries need {len(passes)}")
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
