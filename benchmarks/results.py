"""Results as lines of JSON, one for each case, so that an interrupted run can be resumed."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.experiments import Case
from factor_windows.cost.prices import Prices
from factor_windows.errors import OptionError

PACKAGES = ("factor-windows", "pyspark", "duckdb", "polars", "sqlglot", "scipy")


@dataclass(frozen=True, slots=True)
class Result:
    """The times of a case: all runs of all contenders with correct results."""

    name: str
    experiment: str
    stream: str
    events: int
    setup: str
    number: int
    function: str
    windows: int
    seconds: Mapping[str, list[float]]
    rows: int = 0
    """The number of rows of the result."""
    counts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The work of each plan, by the names of the prices."""
    gains: Mapping[str, float] = field(default_factory=dict)
    """Predicted gains over naive by the paper's costs, where nothing is run."""
    planning: Mapping[str, float] = field(default_factory=dict)
    phases: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """For a first run: the median seconds of each phase, for each contender."""
    shuffled: Mapping[str, int] = field(default_factory=dict)
    """Bytes that one run shuffles."""
    state: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """For a stream: stateful operators, rows and bytes of state."""
    wrong: tuple[str, ...] = ()
    """Contenders whose rows differ from the naive query's; their times are not kept."""

    @classmethod
    def of(cls, case: Case, seconds: Mapping[str, list[float]], **facts: Any) -> Result:
        """Combine a case with its times."""
        return cls(
            name=case.name,
            experiment=case.experiment,
            stream=case.stream,
            events=case.events,
            setup=case.setup,
            number=case.number,
            function=case.function,
            windows=len(case.windows),
            seconds={name: [round(each, 4) for each in taken] for name, taken in seconds.items()},
            **facts,
        )

    @property
    def predicted(self) -> dict[str, float]:
        """Return the predicted seconds of plans, by the shipped prices."""
        return {name: Prices().total(counts) / 1e9 for name, counts in self.counts.items()}

    def typical(self, contender: str) -> float:
        """Return the median of a contender's times."""
        return median(self.seconds[contender])

    def spread(self, contender: str) -> float:
        """Return the range of the times, as a share of their median; 0 for a single one."""
        times = self.seconds[contender]
        return (max(times) - min(times)) / median(times)

    def boost(self, contender: str, over: str = "naive") -> float:
        """Return how many times as fast as another a contender is."""
        return self.typical(over) / self.typical(contender)


class Store:
    """A file of results."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def results(self) -> list[Result]:
        """Read all results; if two have the same name, the later one counts."""
        known = (line for line in self._lines() if "name" in line)
        return list({line["name"]: Result(**line | {"wrong": tuple(line["wrong"])}) for line in known}.values())

    def runs(self) -> list[dict[str, Any]]:
        """Read the descriptions of the machine, one for each start of the command."""
        return [line["run"] for line in self._lines() if "run" in line]

    def append(self, result: Result) -> None:
        """Write one result immediately, in case the next one never arrives."""
        self._write(asdict(result))

    def begin(self, options: Mapping[str, Any]) -> None:
        """Record the machine, the versions, and the command's options."""
        self._write({"run": machine() | {"options": dict(options)}})

    def clear(self) -> None:
        """Remove all results."""
        self.path.unlink(missing_ok=True)

    def _lines(self) -> Iterator[dict[str, Any]]:
        if not self.path.exists():
            return
        lines = self.path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, start=1):
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                # The last line is cut off if a run is interrupted while writing; any other such line has been edited.
                if number < len(lines):
                    raise OptionError(
                        f"line {number} of {str(self.path)!r} is not JSON; is it a file of results?"
                    ) from None

    def _write(self, line: Mapping[str, Any]) -> None:
        self._mend()
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        except OSError as problem:
            raise OptionError(f"cannot write {str(self.path)!r}: {problem.strerror}") from None

    def _mend(self) -> None:
        """Remove a last line that was cut off, so that the next one is not appended to it."""
        if self.path.exists():
            text = self.path.read_text(encoding="utf-8")
            if text and not text.endswith("\n"):
                self.path.write_text(text[: text.rfind("\n") + 1], encoding="utf-8")


def machine() -> dict[str, Any]:
    """Describe what a result depends on: processor, cores, memory, versions; no names of hosts or people."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "driver_memory": os.environ.get("FACTOR_WINDOWS_MEMORY", "1g"),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "versions": {"python": platform.python_version()} | {name: _version(name) for name in PACKAGES},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())
