"""First runs: what a user who starts a program sees, with every run in its own process with a new JVM."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from pyspark.sql import Row

from benchmarks import first_run
from benchmarks.batch import EXACT, Folders, known_stream, same
from benchmarks.experiments import ALONE, PHASES, TOLD, Case
from benchmarks.results import Result
from benchmarks.timing import rounds
from factor_windows.spark.session import settings

LAST_LINES = 15
"""How much output of a failed run is shown."""


def measure(case: Case, folders: Folders, *, repeats: int, random: Random) -> Result:
    """Start contenders in shuffled rounds, and compare the rows of the first round."""
    folder = folders.of(case.stream, case.events)
    taken: dict[str, list[dict[str, float]]] = {name: [] for name in case.contenders}
    found: dict[str, Row] = {}

    def start(name: str) -> dict[str, Any]:
        return _run(_job(case, folder, name) | {"check": name != ALONE and name not in found})

    contenders = {name: partial(start, name) for name in case.contenders}
    for name, _, answer in rounds(contenders, repeats=repeats, random=random):
        taken[name].append(answer["phases"])
        if answer["found"] is not None:
            found[name] = Row(**answer["found"])
    wrong = tuple(name for name in found if not same(found[name], found["naive"]))
    right = {name: laps for name, laps in taken.items() if name not in wrong}
    return Result.of(
        case,
        {name: [sum(each.get(phase, 0) for phase in PHASES) for each in laps] for name, laps in right.items()},
        rows=found["naive"]["rows"],
        phases={
            name: {phase: round(median(each[phase] for each in laps), 4) for phase in laps[0]}
            for name, laps in right.items()
        },
        wrong=wrong,
    )


def _job(case: Case, folder: Path, contender: str) -> first_run.Job:
    query, known = case.query, known_stream(case.stream, case.events)
    windows = [
        {"name": window.name, "range": f"{window.range} microseconds", "slide": f"{window.slide} microseconds"}
        for window in case.windows
    ]
    return {
        "contender": contender,
        "folder": str(folder.resolve()),
        "time": query.time,
        "keys": list(query.keys),
        "windows": windows[:1] if contender == ALONE else windows,
        "aggregates": list(query.aggregates),
        "statistics": [known.events, known.keys, known.span.total_seconds()] if contender == TOLD else None,
        "exact": case.function in EXACT,
        "settings": settings(status_page=True),
    }


def _run(job: first_run.Job) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", first_run.__name__],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[1],
    )
    if done.returncode:
        said = "\n".join(done.stderr.splitlines()[-LAST_LINES:])
        raise RuntimeError(f"a first run of {job['contender']!r} failed:\n{said}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer
