"""The whole evaluation, case by case: known results are skipped, and every new result is stored immediately."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from benchmarks import experiments, planning
from benchmarks.results import Result, Store
from factor_windows.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from benchmarks.batch import Folders
    from benchmarks.dashboards import Case as DashboardsCase
    from benchmarks.soak import Case as SoakCase
    from benchmarks.store import Case as StoreCase
    from benchmarks.streaming import Case as StreamingCase

ON_REQUEST = ("choices", "gaps", "soak", "dashboards")
"""Experiments that only run if requested by name."""
QUICK_FIRST_RUNS = 2
"""The number of first runs of a contender with `--quick`: eighteen processes in all take about three minutes."""
START_UP = 3.0
"""Rough number of seconds for a case on Spark, whatever its size."""
FIRST_START_UP = 8.0
"""Rough number of seconds for a first run, whatever its size."""
PER_MILLION = 0.6
"""Rough number of seconds per million events for each window and all contenders; used only to show the time left."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure, and how often."""

    quick: Annotated[
        bool,
        typer.Option("--quick", help="A few minutes instead of two hours: fewer cases, events and runs."),
    ] = False
    only: Annotated[
        list[str] | None,
        typer.Option(help="Only cases with this in their name; choices, gaps, soak, dashboards run only so."),
    ] = None
    sets: Annotated[
        int | None,
        typer.Option(min=1, max=10, help="How many window sets of each kind; 10 for the tables of 10M events, else 1."),
    ] = None
    events: Annotated[int | None, typer.Option(min=1, help="How many events each stream has.")] = None
    repeats: Annotated[
        int | None,
        typer.Option(min=1, help="How often each contender runs: 3 times, slow ones less often; first runs 5 times."),
    ] = None
    seed: Annotated[int, typer.Option(help="What the order of contenders is drawn with.")] = 7
    data: Annotated[Path | None, typer.Option(envvar="FACTOR_WINDOWS_DATA", help="The folder with the real data.")] = (
        None
    )
    flink: Annotated[
        Path | None, typer.Option(help="The Python of an environment that has apache-flink, to run Flink too.")
    ] = None

    def warm_repeats(self, number: int = 0) -> int:
        """Return how often a contender runs in a warm JVM; once for all window sets of a set-up except the first."""
        return self.repeats or (1 if number else 3)

    def first_repeats(self, events: int) -> int:
        """Return how many first runs a contender has; fewer where they take long."""
        return self.repeats or (QUICK_FIRST_RUNS if self.quick else 3 if events >= 10_000_000 else 5)

    def wants(self, name: str) -> bool:
        """Say whether to measure a case."""
        if self.only:
            return any(part in name for part in self.only)
        return not name.startswith(ON_REQUEST)


@dataclass(frozen=True, slots=True)
class Job:
    """A case waiting to be measured."""

    name: str
    measure: Callable[[], Result]
    weight: float
    """The expected number of seconds, roughly."""


class Evaluation:
    """All jobs of one call of the command."""

    def __init__(self, options: Options, root: Path) -> None:
        self.options, self.root = options, root
        self.random = Random(options.seed)
        self.warm = False

    @cached_property
    def spark(self) -> SparkSession:
        """Start Spark when the first job needs it."""
        from factor_windows.spark.session import session

        return session(status_page=True)

    @cached_property
    def folders(self) -> Folders:
        """Return the place where streams are kept during the evaluation."""
        from benchmarks.batch import Folders

        return Folders(self.spark, self.root, self.options.data)

    def jobs(self) -> Iterator[Job]:
        """List all requested jobs, those without Spark first."""
        return (job for job in self._all() if self.options.wants(job.name))

    def _all(self) -> Iterator[Job]:
        from benchmarks import dashboards, soak, store, streaming

        options = self.options
        for planned in planning.cases(quick=options.quick):
            yield Job(planned.name, partial(planning.measure, planned), 3.0)
        for gap in planning.gaps():
            yield Job(gap.name, partial(planning.predict, gap), 3.0)
        for first in experiments.first_cases(quick=options.quick, events=options.events):
            runs = options.first_repeats(first.events) * len(first.contenders)
            yield Job(first.name, partial(self._first, first), runs * (FIRST_START_UP + first.events / 1e6))
        for batch in experiments.cases(quick=options.quick, sets=options.sets, events=options.events):
            weight = START_UP + PER_MILLION * len(batch.windows) * batch.events / 1e6
            yield Job(batch.name, partial(self._batch, batch), weight)
        for stream in () if options.quick else streaming.cases():
            yield Job(stream.name, partial(self._stream, stream), 60.0)
        for kept in store.cases(quick=options.quick):
            yield Job(kept.name, partial(self._store, kept), 120.0)
        for load in soak.cases():
            yield Job(load.name, partial(self._soak, load), 30.0)
        for many in () if options.quick else dashboards.cases(options.events or 10_000_000):
            yield Job(many.name, partial(self._dashboards, many), 150.0)
        if options.flink is not None:
            for case in experiments.flink_cases(options.events or 1_000_000):
                yield Job(case.name, partial(self._flink, case, options.flink), 60.0)

    def _first(self, case: experiments.Case) -> Result:
        from benchmarks.first import measure

        return measure(case, self.folders, repeats=self.options.first_repeats(case.events), random=self.random)

    def _flink(self, case: experiments.Case, python: Path) -> Result:
        from benchmarks.flink import measure

        return measure(self.spark, case, python)

    def _batch(self, case: experiments.Case) -> Result:
        from benchmarks.batch import measure

        if not self.warm:
            # The first case of a new JVM would pay for starting everything.
            measure(self.spark, case, self.folders, repeats=1, random=Random(self.options.seed))
            self.warm = True
        repeats = self.options.warm_repeats(case.number)
        return measure(self.spark, case, self.folders, repeats=repeats, random=self.random)

    def _store(self, case: StoreCase) -> Result:
        from benchmarks.store import measure

        return measure(self.spark, case, random=self.random)

    def _soak(self, case: SoakCase) -> Result:
        from benchmarks.soak import measure

        return measure(self.spark, case)

    def _dashboards(self, case: DashboardsCase) -> Result:
        from benchmarks.dashboards import measure

        return measure(self.spark, case, repeats=self.options.warm_repeats(), random=self.random)

    def _stream(self, case: StreamingCase) -> Result:
        from benchmarks.streaming import measure

        return measure(self.spark, case)


def run(store: Store, options: Options, console: Console) -> int:
    """Measure what is not known yet, and return the number of contenders with wrong rows."""
    known = {result.name for result in store.results()}
    with TemporaryDirectory(prefix="factor-windows-") as root:
        jobs = list(Evaluation(options, Path(root)).jobs())
        waiting = [job for job in jobs if job.name not in known]
        if not jobs:
            raise OptionError(f"no case has {' or '.join(map(repr, options.only or []))} in its name")
        if len(waiting) < len(jobs):
            console.print(f"{len(jobs) - len(waiting)} of {len(jobs)} cases are in {store.path} already")
        if waiting:
            names = ("quick", "only", "sets", "events", "repeats", "seed")
            store.begin({name: getattr(options, name) for name in names} | {"only": options.only or []})
        return sum(len(result.wrong) for result in _measured(waiting, store, console))


def _measured(jobs: list[Job], store: Store, console: Console) -> Iterator[Result]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=sum(job.weight for job in jobs))
        for place, job in enumerate(jobs, start=1):
            progress.update(task, description=f"{place}/{len(jobs)} {job.name}")
            try:
                result = job.measure()
            except OptionError as missing:
                console.print(f"{job.name}: left out, {missing}", style="yellow")
                continue
            store.append(result)
            console.print(line(result))
            progress.advance(task, job.weight)
            yield result


def line(result: Result) -> str:
    """Describe in one line how long a case took."""
    if not result.seconds:
        gains = ", ".join(f"{name} {gain:.1f}" for name, gain in result.gains.items())
        return f"{result.name}: predicted gains {gains}"
    if result.experiment == "store":
        from benchmarks.store import line as store_line

        return store_line(result)
    if result.experiment == "soak":
        most = result.state["memory"]["most"]
        return (
            f"{result.name}: {result.typical('best'):.2f} s, at most {most:,} MB"
            if result.seconds
            else f"{result.name}: WRONG SUMS"
        )
    if "naive" not in result.seconds:
        took = ", ".join(f"{name} {1000 * result.typical(name):.1f} ms" for name in result.seconds)
        return f"{result.name}: {took}"
    others = [name for name in result.seconds if name != "naive"]
    took = ", ".join(f"{name} {result.typical(name):.2f} s ({result.boost(name):.1f} times)" for name in others)
    wrong = f"; WRONG ROWS: {', '.join(result.wrong)}" if result.wrong else ""
    return f"{result.name}: naive {result.typical('naive'):.2f} s, {took}{wrong}"
