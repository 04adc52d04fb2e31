"""Flink as a peer: the query as Flink's users write it, and our plan as Flink SQL, in a separate environment.

PyFlink and PySpark cannot share an environment, since each needs its own version of Py4J: `--flink` names the
interpreter.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks import flink_script
from benchmarks.batch import known_stream
from benchmarks.experiments import Case
from benchmarks.results import Result
from benchmarks.workloads import stream
from factor_windows.algebra.window import Window
from factor_windows.errors import OptionError
from factor_windows.functions.expression import quoted
from factor_windows.search import optimize
from factor_windows.spark.compare import TOLERANCE

REPEATS = 2
LAST_WORDS = 300
"""How much of Flink's output is shown if it fails."""


def measure(spark: SparkSession, case: Case, python: Path) -> Result:
    """Run a case on Flink, and check that both ways return the rows that Spark returns."""
    plan = optimize(case.query, statistics=known_stream(case.stream, case.events))
    queries = {"flink": " UNION ALL ".join(map(_select, case.windows)), "flink rewritten": plan.sql(dialect="flink")}
    events = stream(spark, case.stream, case.events)
    with TemporaryDirectory(prefix="factor-windows-") as folder:
        events.write.option("timestampFormat", "yyyy-MM-dd HH:mm:ss.SSS").csv(f"{folder}/in")
        job = {"folder": f"{folder}/in", "queries": queries, "repeats": REPEATS, "parallelism": os.cpu_count()}
        answer = _run(python, job)
    right = _by_window(plan.run(events))
    wrong = [name for name in queries if not _same(answer[name]["found"], right)]
    seconds = {name: answer[name]["seconds"] for name in queries if name not in wrong}
    return Result.of(case, seconds, rows=sum(count for count, _ in right.values()), wrong=tuple(wrong))


def _select(window: Window) -> str:
    slide, range = (f"INTERVAL '{length / 1e6:.3f}' SECOND(4, 3)" for length in (window.slide, window.range))
    function = f"TUMBLE(TABLE events, DESCRIPTOR(ts), {range})"
    if not window.is_tumbling:
        function = f"HOP(TABLE events, DESCRIPTOR(ts), {slide}, {range})"
    return (
        f"SELECT device, '{window.name}' AS window_id, window_start, window_end, MIN(v) AS v "
        f"FROM TABLE({function}) GROUP BY device, window_start, window_end"
    )


def _run(python: Path, job: dict[str, Any]) -> dict[str, Any]:
    try:
        done = subprocess.run(
            [str(python), flink_script.__file__], input=json.dumps(job), capture_output=True, text=True, check=True
        )
    except OSError as problem:
        raise OptionError(f"cannot run {str(python)!r}: {problem.strerror}") from None
    except subprocess.CalledProcessError as failed:
        said = failed.stderr.splitlines()
        last = next((line for line in said if "Exception: " in line), " ".join(said))[-LAST_WORDS:]
        raise OptionError(f"{str(python)!r} cannot run Flink (pip install apache-flink): {last}") from None
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _by_window(result: DataFrame) -> dict[str, tuple[int, float]]:
    """Return for each window the number of its rows and the sum of their values."""
    value = F.col(quoted(result.columns[-1]))
    rows = result.groupBy("window_id").agg(F.count("*").alias("rows"), F.sum(value).alias("total")).collect()
    return {row["window_id"]: (row["rows"], row["total"]) for row in rows}


def _same(found: dict[str, list[float]], right: dict[str, tuple[int, float]]) -> bool:
    return found.keys() == right.keys() and all(
        found[name][0] == count and math.isclose(found[name][1], total, rel_tol=TOLERANCE)
        for name, (count, total) in right.items()
    )
