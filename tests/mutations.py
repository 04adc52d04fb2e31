"""Do the tests notice? Plants one bug at a time in a copy of the project, and says which test catches it.

`python tests/mutations.py` takes some minutes, `--only NAME` plants the bugs whose names contain NAME; docs/testing.md
has the outcome. planted_bugs.py lists them, each with the test that should catch it, which is run first.
test_mutations.py fails when the text of one stands there no more.
"""

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from planted_bugs import BUGS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "factor_windows"
PURE = (
    "test_coverage.py",
    "test_slices.py",
    "test_physical.py",
    "test_workload.py",
    "test_serialize.py",
    "test_search.py",
)
ON_SPARK = ("test_fuzz.py", "test_spark_batch.py", "test_many.py", "test_spark_stream.py")


def misfits(name: str, file: str, right: str, wrong: str, test: str = "") -> list[str]:
    """Say why a bug cannot be planted, or its test not be run: code moves on, and this list must follow.

    >>> misfits("none", "algebra/window.py", "no such text", "", "test_window.py::test_of_nothing")
    ["'no such text' is 0 times in algebra/window.py", 'there is no test_window.py::test_of_nothing']
    """
    times = (PACKAGE / file).read_text(encoding="utf-8").count(right)
    found = [] if times == 1 else [f"{right!r} is {times} times in {file}"]
    if test:
        path, _, function = test.partition("::")
        tests = ROOT / "tests" / path
        if not tests.exists() or f"def {function.partition('[')[0]}(" not in tests.read_text(encoding="utf-8"):
            found.append(f"there is no {test}")
    return found


def caught(name: str, file: str, right: str, wrong: str, test: str = "") -> str:
    """Plant a bug and return the first test that fails: the one that should, or else any."""
    with TemporaryDirectory() as folder:
        copy = copied(Path(folder))
        path = copy / "src" / "factor_windows" / file
        path.write_text(path.read_text(encoding="utf-8").replace(right, wrong), encoding="utf-8")
        for tests in ((test,), PURE, ON_SPARK):
            if tests != ("",) and (failed := first_failure(copy, tests)):
                return failed
    return ""


def copied(folder: Path) -> Path:
    """Copy the project without what is made of it."""
    ignored = shutil.ignore_patterns(".venv*", ".git", "site", "node_modules", ".*_cache", "docs/benchmarks")
    return shutil.copytree(ROOT, folder / "project", ignore=ignored)


def first_failure(project: Path, tests: Iterable[str]) -> str:
    """Run tests of a copy until one fails, and return its name."""
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
    paths = f"{project / 'src'}:{project / 'tests'}"
    environment = {"PYTHONPATH": paths, "PATH": "/usr/bin:/bin", "HOME": str(project.parent), "CI": "1"}
    ran = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True)
    if ran.returncode == 0:
        return ""
    found = re.findall(r"^(?:FAILED|ERROR) (?:tests/)?(\S+)", ran.stdout, flags=re.MULTILINE)
    return found[0] if found else ran.stdout[-500:] + ran.stderr[-500:]


def main() -> int:
    """Plant all bugs, or those that are asked for; 1 if one goes unnoticed or cannot be planted."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", default="", metavar="NAME", help="the bugs whose names contain this")
    asked = [bug for bug in BUGS if options.parse_args().only in bug[0]]
    if problems := [problem for bug in asked for problem in misfits(*bug)] or ([] if asked else ["no such bug"]):
        print("\n".join(problems))
        return 1
    with TemporaryDirectory() as folder:
        hinted = dict.fromkeys(bug[4] for bug in asked if bug[4:])
        if failed := first_failure(copied(Path(folder)), hinted or PURE):
            print(f"{failed} fails without any bug")
            return 1
    missed = 0
    for bug in asked:
        test = caught(*bug)
        missed += not test
        print(f"| {bug[0]} | `{bug[1]}` | {f'`{test}`' if test else 'NOT CAUGHT'} |", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
