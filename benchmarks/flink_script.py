"""A script for the interpreter with PyFlink: queries over a folder of CSV files, timed. It imports nothing from here.

It reads a job as JSON from its input: folder, queries by name, repeats, parallelism. It writes JSON: for each query its
seconds and, for each window, the number of its rows and the sum of their values.
"""

from __future__ import annotations

import json
import sys
from time import perf_counter
from typing import Any

EVENTS = """
CREATE TABLE events (
  ts TIMESTAMP(3), device STRING, v DOUBLE, WATERMARK FOR ts AS ts
) WITH ('connector' = 'filesystem', 'path' = '{folder}', 'format' = 'csv')
"""
NOWHERE = """
CREATE TABLE nowhere (
  device STRING, window_id STRING, window_start TIMESTAMP(3), window_end TIMESTAMP(3), v DOUBLE
) WITH ('connector' = 'blackhole')
"""


def main() -> None:
    """Run the job."""
    from pyflink.table import EnvironmentSettings, TableEnvironment  # type: ignore[import-not-found]

    job: dict[str, Any] = json.load(sys.stdin)
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    tables.get_config().set("parallelism.default", str(job["parallelism"]))
    tables.execute_sql(EVENTS.format(folder=job["folder"]))
    tables.execute_sql(NOWHERE)
    answer: dict[str, Any] = {}
    for name, query in job["queries"].items():
        seconds = []
        for _ in range(job["repeats"] + 1):
            begin = perf_counter()
            tables.execute_sql(f"INSERT INTO nowhere {query}").wait()
            seconds.append(perf_counter() - begin)
        sums = f"SELECT window_id, COUNT(*), SUM(v) FROM ({query}) AS r (device, window_id, b, e, v) GROUP BY window_id"
        with tables.execute_sql(sums).collect() as rows:
            found = {str(row[0]): [row[1], row[2]] for row in rows}
        answer[name] = {"seconds": seconds[1:], "found": found}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
