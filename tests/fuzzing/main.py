"""Looking for differences until the time, or the number of cases, is over."""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from pyspark.sql import SparkSession

from fuzzing.batch import check, draw_cases
from fuzzing.many import check_many
from fuzzing.scalars import QUERIES, check_scalars
from fuzzing.settings import quick_session
from fuzzing.shrink import script, shrunk
from fuzzing.statements import check_statements, draw_statements
from fuzzing.streams import check_stream
from fuzzing.trouble import first_line

KINDS = ("batch", "many", "sql", "batch", "scalars", "batch", "many", "sql", "stream", "batch")
"""The kinds in turn: of ten seeds four are batch cases, which are eighteen cases each."""


@dataclass
class Tally:
    """What was run, what was refused with a reason, and what differed."""

    skip: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    seconds: Counter[str] = field(default_factory=Counter)
    lock: Lock = field(default_factory=Lock)

    def is_known(self, problem: str) -> bool:
        """Say whether a problem is one that is looked past, and count it."""
        for pattern in self.skip:
            if re.search(pattern, problem):
                with self.lock:
                    self.counts[f"skipped: {pattern}"] += 1
                return True
        return False

    def found(self, *texts: str) -> None:
        texts = tuple(text for text in texts if not self.is_known(text))
        with self.lock:
            self.findings.extend(texts)

    def ran(self, kind: str, count: int, refused: list[str] | None = None) -> None:
        with self.lock:
            self.counts[kind] += count
            self.refusals.update(_reason(text) for text in refused or [])


def _reason(refusal: str) -> str:
    """Say why something was refused, without the place and the names.

    >>> _reason("line 1, column 8: the function 'x' is unknown: SELECT x(v)")
    'the function … is unknown'
    """
    text = re.sub(r"^line \d+, column \d+: ", "", refusal)
    return re.sub(r"(['`\"]).*?\1", "…", text).split(":")[0][:110]


def look(spark: SparkSession, kind: str, seed: int, tally: Tally) -> None:
    """Check one seed of a kind; whatever goes wrong is a finding."""
    begun = time.monotonic()
    try:
        if kind == "batch":
            _batch(spark, seed, tally)
        elif kind == "sql":
            settings, data, texts = draw_statements(seed)
            problems, refused = check_statements(spark, settings, data, texts)
            tally.ran("SQL statements", len(texts), refused)
            tally.found(*(f"# sql, seed {seed}, {text}" for text in problems))
        elif kind == "scalars":
            problems, refused = check_scalars(spark, seed)
            tally.ran("queries on DuckDB", QUERIES, refused)
            tally.found(*(f"# scalars, seed {seed}, {text}" for text in problems))
        else:
            problems = (check_many if kind == "many" else check_stream)(spark, seed)
            tally.ran({"many": "sets of queries", "stream": "streams"}[kind], 1)
            tally.found(*(f"# {kind}, {text}" for text in problems))
    except Exception as trouble:
        tally.found(f"# {kind}, seed {seed}: {first_line(trouble)}")
    with tally.lock:
        tally.seconds[kind] += time.monotonic() - begun


def _batch(spark: SparkSession, seed: int, tally: Tally) -> None:
    cases = draw_cases(seed)
    found = [(case, problem) for case, problem in check(spark, cases) if not tally.is_known(problem)]
    tally.ran("batch cases", len(cases))
    tally.ran("of them on DuckDB and by the reference", sum(case.is_plain for case in cases))
    if found:
        # The others of a seed are mostly the same difference, found by another search.
        case, problem = found[0]
        small = shrunk(spark, case, problem)
        ways = sorted({f"{case.options['search']} {case.way}" for case, _ in found})
        tally.found(
            f"# batch, seed {seed}, {len(found)} of {len(cases)} cases: {', '.join(ways)}\n{script(small, problem)}"
        )


def main() -> int:
    """Look for differences, print what was run, and write what was found."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=5.0, help="how long to look (default 5)")
    options.add_argument("--seeds", type=int, default=0, help="how many seeds to look at, instead of a time")
    options.add_argument("--seed", type=int, default=int(time.time()), help="the first (default: another each time)")
    options.add_argument("--kind", choices=["all", *sorted(set(KINDS))], default="all", help="what to look at")
    options.add_argument("--skip", action="append", default=[], metavar="REGEX", help="findings to look past")
    options.add_argument("--output", type=Path, default=Path("fuzz-failures.txt"), help="where differences go")
    chosen = options.parse_args()
    spark = quick_session()
    begun = time.monotonic()
    until = begun + (60 * chosen.minutes if not chosen.seeds else 10**9)
    tally = Tally(chosen.skip)
    number = 0
    with ThreadPoolExecutor(2) as pool:
        waiting = set()
        while waiting or not number or (time.monotonic() < until and number != chosen.seeds):
            while time.monotonic() < until and len(waiting) < 3 and (not chosen.seeds or number < chosen.seeds):
                kind = KINDS[number % len(KINDS)] if chosen.kind == "all" else chosen.kind
                waiting.add(pool.submit(look, spark, kind, chosen.seed + number, tally))
                number += 1
            waiting = {future for future in waiting if not future.done()}
            time.sleep(0.02)
    return _reported(tally, chosen.seed, number, time.monotonic() - begun, chosen.output)


def _reported(tally: Tally, seed: int, seeds: int, seconds: float, output: Path) -> int:
    for name, count in sorted(tally.counts.items(), key=lambda pair: -pair[1]):
        print(f"{count:7,} {name}")
    for name, count in tally.refusals.most_common(12):
        print(f"{count:7,} refused: {name}")
    spent = ", ".join(f"{kind} {seconds:.0f} s" for kind, seconds in tally.seconds.most_common())
    print(
        f"seeds {seed} to {seed + seeds - 1} in {seconds / 60:.1f} minutes ({spent}): {len(tally.findings)} differences"
    )
    if tally.findings:
        output.write_text("\n".join(tally.findings), encoding="utf-8")
        print(f"they are in {output}")
    return 1 if tally.findings else 0
