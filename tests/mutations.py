"""Do the tests notice? Plants one bug at a time in a copy of the project, and says which test catches it.

`python tests/mutations.py` takes some minutes; docs/testing.md has the outcome.
"""
# ruff: noqa: E501

import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
TESTS = (
    "test_coverage.py",
    "test_slices.py",
    "test_levels.py",
    "test_workload.py",
    "test_serialize.py",
    "test_search.py",
)
ON_SPARK = ("test_fuzz.py", "test_spark_batch.py", "test_many.py", "test_spark_stream.py")
BUGS = [
    ("a wrong multiplier", "coverage.py", "return 1 + (child.range - parent.range) // parent.slide",
     "return (child.range - parent.range) // parent.slide"),
    ("one tile too few", "coverage.py", "return 1 - (parent.range - child.range) // stride(parent)",
     "return -((parent.range - child.range) // stride(parent))"),
    ("truncation for floor", "spark/fan_out.py", 'terms = [f"pmod({begin}', 'terms = [f"mod({begin}'),
    ("truncation for floor, one progression", "spark/fan_out.py", 'f"pmod({begin}, {constant([step', 'f"mod({begin}, {constant([step'),
    ("slide for range", "levels.py", "always = child.range % child.slide == 0", "always = True"),
    ("a dropped FILTER", "aggregates.py", "conditions = [_expression(self.filter)] if self.filter else []", "conditions = []"),
    ("an off-by-one at a chunk's halo", "spark/batch.py", 'near = f"pmod({self.start}, {length}) < {self.longest}"',
     'near = f"pmod({self.start}, {length}) < {self.longest} - {length} / 2"'),
    ("instances of two chunks shown twice", "spark/batch.py",
     'inside += f" AND {start} < {self.chunk} + {self.physical.chunk}"', 'inside += ""'),
    ("means of parts not weighted", "functions.py", 'return f"avg(:{mean}) + regr_sxy(:n, :{mean}) / sum(:n)"',
     'return f"avg(:{mean})"'),
    ("overlapping parts summed", "graph.py", "return tiles(parent, child) or (kind is Kind.OVERLAP_SAFE and covers(parent, child))",
     "return tiles(parent, child) or covers(parent, child)"),
    ("an edge of slices forgotten", "slices.py", "return (starts,) if starts == ends else (starts, ends)", "return (starts,)"),
    ("a key kept where it should be gone", "spark/chain.py", "found[name] = above if all(has) else", "found[name] = above if any(has) else"),
    ("rows of other queries' events", "spark/many.py",
     'return f"CAST({member.present} AS INT) > 0" if member.present else "true"', 'return "true"'),
    ("the stream's window without its node", "spark/stream.py", "groups = [*self.keys, *([self.node] if by_node else []), self.window]",
     "groups = [*self.keys, self.window]"),
]  # fmt: skip


def caught(name: str, file: str, right: str, wrong: str) -> str:
    """Plant a bug and return the first test that fails."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "project"
        ignored = shutil.ignore_patterns(".venv*", ".git", "site", "node_modules", ".*_cache", "docs/benchmarks")
        shutil.copytree(ROOT, copy, ignore=ignored)
        if file:
            path = copy / "src" / "factor_windows" / file
            text = path.read_text(encoding="utf-8")
            assert text.count(right) == 1, f"{name}: {right!r} is {text.count(right)} times in {file}"
            path.write_text(text.replace(right, wrong), encoding="utf-8")
        environment = {
            "PYTHONPATH": f"{copy / 'src'}:{copy / 'tests'}",
            "PATH": "/usr/bin:/bin",
            "HOME": folder,
            "CI": "1",
        }
        for tests in (TESTS, ON_SPARK):
            command = [
                sys.executable,
                "-m",
                "pytest",
                "-x",
                "-q",
                "-p",
                "no:cacheprovider",
                *(f"tests/{each}" for each in tests),
            ]
            ran = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
            if ran.returncode:
                found = re.findall(r"^(?:FAILED|ERROR) (\S+)", ran.stdout, flags=re.MULTILINE)
                return found[0] if found else ran.stdout[-500:] + ran.stderr[-500:]
    return ""


def main() -> int:
    """Plant all bugs, or those whose names contain what is given."""
    if test := caught("nothing", "", "", ""):
        print(f"{test} fails without any bug")
        return 1
    missed = 0
    for bug in BUGS:
        if all(part in bug[0] for part in sys.argv[1:]):
            test = caught(*bug)
            missed += not test
            print(f"| {bug[0]} | `{bug[1]}` | {f'`{test}`' if test else 'NOT CAUGHT'} |", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
