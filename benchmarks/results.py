"""Results as lines of JSON, one for each case, so that a run that was interrupted can be taken up again."""

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
    """What a case took: all times of all contenders whose results were right."""

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
    """How many rows the result has."""
    counts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """What each plan does, by the names of the prices."""
    gains: Mapping[str, float] = field(default_factory=dict)
    """Predicted gains over naive by the paper's costs, where nothing is run."""
    planning: Mapping[str, float] = field(default_factory=dict)
    phases: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Of a first run: the median seconds of each phase, for each contender."""
    shuffled: Mapping[str, int] = field(default_factory=dict)
    """Bytes that one run shuffles."""
    state: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """On a stream: stateful operators, rows and bytes of state."""
    wrong: tuple[str, ...] = ()
    """Contenders whose rows are not those of the naive query; their times are not kept."""

    @classmethod
    def of(cls, case: Case, seconds: Mapping[str, list[float]], **facts: Any) -> Result:
        """Put a case beside what it took."""
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
        """Return what plans should take in seconds, by the shipped prices."""
        return {name: Prices().total(counts) / 1e9 for name, counts in self.counts.items()}

    def typical(self, contender: str) -> float:
        """Return the median of a contender's times."""
        return median(self.seconds[contender])

    def spread(self, contender: str) -> float:
        """Return how far the times are apart, as a share of their median; 0 for a single one."""
        times = self.seconds[contender]
        return (max(times) - min(times)) / median(times)

    def boost(self, contender: str, over: str = "naive") -> float:
        """Return how many times as fast a contender is as another."""
        return self.typical(over) / self.typical(contender)


class Store:
    """A file of results."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def results(self) -> list[Result]:
        """Read all results; of two with the same name the later one counts."""
        known = (line for line in self._lines() if "name" in line)
        return list({line["name"]: Result(**line | {"wrong": tuple(line["wrong"])}) for line in known}.values())

    def runs(self) -> list[dict[str, Any]]:
        """Read what is known about the machine, one entry for each time the command was started."""
        return [line["run"] for line in self._lines() if "run" in line]

    def append(self, result: Result) -> None:
        """Write one result, so that it is there even if the next one never comes."""
        self._write(asdict(result))

    def begin(self, options: Mapping[str, Any]) -> None:
        """Write down the machine, the versions, and how the command was called."""
        self._write({"run": machine() | {"options": dict(options)}})

    def clear(self) -> None:
        """Forget everything."""
        self.path.unlink(missing_ok=True)

    def _lines(self) -> Iterator[dict[str, Any]]:
        if not self.path.exists():
            return
        lines = self.path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, start=1):
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                # The last line is cut when a run is interrupted while it writes; any other has been tampered with.
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
        """Take away a last line that was cut, so that the next one does not become part of it."""
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
