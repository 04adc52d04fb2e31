"""`factor-windows explain`: the cheapest plan for a set of windows, and why."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from factor_windows.algebra.calendar import parse_window
from factor_windows.cli.options import (
    Json,
    PlanningOptions,
    expand_options,
    notes_of,
    only_pass,
    read_text,
    show_plan,
    write_text,
)
from factor_windows.errors import OptionError
from factor_windows.functions.table import FUNCTIONS
from factor_windows.plan import Plan
from factor_windows.query import Query
from factor_windows.search import optimize
from factor_windows.sql.parse import read
from factor_windows.sql.statement import Statement


@dataclass(frozen=True, slots=True)
class Question:
    """What to plan: a SQL file, or windows and functions."""

    query_file: Annotated[
        Path | None, typer.Option("--query", "-q", help="A file with a SQL query, in place of windows and functions.")
    ] = None
    window: Annotated[
        list[str] | None,
        typer.Option(
            "--window",
            "-w",
            metavar="[NAME=]RANGE[/SLIDE][@OFFSET]",
            help="A window, such as 20m, 1h/10m@5m, 1month[Europe/Berlin], 1d+1h or gap30m.",
        ),
    ] = None
    function: Annotated[
        list[str] | None,
        typer.Option(
            "--function",
            "-f",
            help="A function, such as min, or an aggregate, such as 'avg(t) AS mean_t'; default: min.",
        ),
    ] = None
    key: Annotated[list[str] | None, typer.Option("--key", "-k", help="A key to group by, such as device.")] = None
    time: Annotated[str | None, typer.Option(help="The time column; default: ts, or the one in the SQL.")] = None

    def check_only_query(self) -> None:
        """Refuse options that the SQL of --query already determines."""
        if given := [f"--{name}" for name in ("window", "function", "key") if getattr(self, name)]:
            raise OptionError(f"{', '.join(given)} cannot be combined with --query; change the SQL instead")

    def to_query(self) -> Query:
        """Return the query made of the windows and functions."""
        if not self.window:
            raise OptionError("the query has no window; add one, such as --window 20m, or a SQL file with --query")
        return Query(
            time=self.time or "ts",
            keys=self.key or [],
            windows=[parse_window(text) for text in self.window or []],
            aggregates=[_aggregate(text) for text in self.function or ["min"]],
        )


@dataclass(frozen=True, slots=True)
class Views:
    """What to show of the plan."""

    operators: Annotated[
        bool, typer.Option("--operators", help="Also show the operators before and after rewriting.")
    ] = False
    candidates: Annotated[
        bool, typer.Option("--candidates", help="Also show the ten best factor windows for each place, with costs.")
    ] = False
    svg: Annotated[Path | None, typer.Option(help="Also write a picture of the plan to this file.")] = None
    html: Annotated[Path | None, typer.Option(help="Also write a page that explains the plan to this file.")] = None
    physical: Annotated[bool, typer.Option("--physical", help="Also show how the plan runs on Spark.")] = False
    streaming: Annotated[bool, typer.Option("--streaming", help="Also show how the plan runs on a stream.")] = False
    as_json: Json = False

    def check(self) -> None:
        """Refuse views that JSON does not have."""
        given = [f"--{name}" for name in ("physical", "streaming") if getattr(self, name)]
        if self.as_json and given:
            raise OptionError(f"{', '.join(given)} cannot be combined with --json, which describes the plan alone")


@expand_options
def explain(question: Question, planning: PlanningOptions, views: Views) -> None:
    """Show the cheapest plan for a set of windows, and why."""
    views.check()
    if question.query_file is None:
        _explain_one(question.to_query(), planning, views)
        return
    question.check_only_query()
    statements = read(read_text(question.query_file), time=question.time)
    for note in notes_of(statements):
        print(note, file=sys.stderr)
    queries = [query for statement in statements for query in statement.queries]
    if len(queries) == 1:
        _explain_one(queries[0], planning, views)
        return
    if given := [f"--{name}" for name in ("operators", "candidates") if getattr(views, name)]:
        raise OptionError(
            f"{', '.join(given)} works for one query only; {str(question.query_file)!r} has {len(queries)}"
        )
    _explain_several(statements, planning, views)


def _explain_one(query: Query, planning: PlanningOptions, views: Views) -> None:
    plan = optimize(query, **planning.to_keywords())
    _write_files([plan], views)
    if views.as_json:
        print(json.dumps(_describe(plan, views), indent=2, ensure_ascii=False))
        return
    show_plan(plan, physical=views.physical, streaming=views.streaming)
    if views.candidates:
        from factor_windows.explain.candidates import considered

        print("\nfactor windows considered, best first")
        for place in considered(plan.passes[0]):
            print("\n".join(f"  {line}" for line in str(place).splitlines()))
    if views.operators:
        for name, graph in _operators(plan).items():
            print(f"\noperators {name}\n" + "\n".join(f"  {line}" for line in str(graph).splitlines()))


def _explain_several(statements: Sequence[Statement], planning: PlanningOptions, views: Views) -> None:
    from factor_windows.explain.document import document
    from factor_windows.sql.script import plan_script

    plans = plan_script(statements, **planning.to_keywords()).plans
    _write_files(plans, views)
    if views.as_json:
        described = [document(plan) for plan in plans]
        print(json.dumps(described, indent=2, ensure_ascii=False))
        return
    for plan in plans:
        show_plan(plan, physical=views.physical, streaming=views.streaming)
        print()


def _write_files(plans: Sequence[Plan], views: Views) -> None:
    from factor_windows.explain.picture import picture

    if views.svg is not None:
        write_text(views.svg, picture(only_pass(plans)))
    if views.html is not None:
        only_pass(plans)
        write_text(views.html, plans[0].to_html())


def _operators(plan: Plan) -> dict[str, Any]:
    from factor_windows.explain.operators import OperatorGraph

    return {"before": OperatorGraph.of(plan.naive()), "after": OperatorGraph.of(plan)}


def _describe(plan: Plan, views: Views) -> dict[str, Any]:
    """Return a plan as plain values, with the requested views."""
    from factor_windows.explain.candidates import LISTED, considered
    from factor_windows.explain.document import document

    described = document(plan)
    if views.operators:
        described["operators"] = {
            name: [[str(source), str(target)] for source, target in graph.links]
            for name, graph in _operators(plan).items()
        }
    if views.candidates:
        described["candidates"] = [
            {
                "above": place.above.name if place.above else None,
                "below": [window.name for window in place.below],
                "candidates": [
                    {"name": each.window.label, "cost": float(each.cost), "saves": float(each.saves)}
                    for each in place.candidates[:LISTED]
                ],
                "considered": len(place.candidates),
                "best": place.best.label if place.best else None,
            }
            for place in considered(plan.passes[0])
        ]
    return described


def _aggregate(text: str) -> str:
    """Complete a bare function name to an aggregate over columns named like its parameters."""
    function = FUNCTIONS.get(text.strip().lower())
    if function is None:
        return text if "(" in text or not text.strip() else f"{text}(x)"
    required = function.parameters[: len(function.parameters) - function.optional]
    return f"{text}({', '.join('0.5' if parameter == 'share' else parameter for parameter in required)})"
