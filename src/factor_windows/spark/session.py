"""A Spark session for the command line: on all cores of this machine, or on the given master."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from tempfile import TemporaryFile

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession


def session(
    *,
    master: str | None = None,
    status_page: bool = False,
    conf: Mapping[str, str] | None = None,
    verbose: bool = False,
) -> SparkSession:
    """Start Spark with extra settings in `conf`, or return the running session; `verbose` shows Spark's own log."""
    wanted = settings(master=master, status_page=status_page) | dict(conf or {})
    if SparkContext._active_spark_context is None and not verbose:
        _start_quietly(wanted)
    started = SparkSession.builder.config(map=dict(wanted)).getOrCreate()
    if not verbose:
        started.sparkContext.setLogLevel("ERROR")
    return started


def settings(*, master: str | None = None, status_page: bool = False) -> dict[str, str]:
    """Return the settings to start a session with."""
    cores = os.cpu_count() or 2
    everywhere = {
        "spark.master": master or f"local[{cores}]",
        "spark.app.name": "factor-windows",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": str(status_page).lower(),
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
    }
    if master is not None:
        return everywhere
    # A cluster has its own number of partitions and its own memory, and must reach the driver.
    return everywhere | {
        "spark.sql.shuffle.partitions": str(4 * cores),
        "spark.driver.bindAddress": "127.0.0.1",
        # Where packages are fetched from, also by this process itself.
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": os.environ.get("FACTOR_WINDOWS_MEMORY", "1g"),
    }


def _start_quietly(conf: Mapping[str, str]) -> None:
    """Start a JVM whose log goes to a file: log4j settings do not affect what the JVM and the launcher print."""
    pairs = SparkConf().setAll(list(conf.items()))
    with TemporaryFile() as log:
        try:
            gateway = launch_gateway(pairs, {"stderr": log})  # type: ignore[no-untyped-call]
        except PySparkRuntimeError:
            log.seek(0)
            reason = start_failure(log.read().decode(errors="replace"))
            raise PySparkRuntimeError(f"it did not start: {reason}; --verbose shows its whole log") from None
    SparkContext(conf=pairs, gateway=gateway)


def start_failure(log: str) -> str:
    r"""Find in Spark's log the reason why it did not start.

    >>> start_failure('WARN x\nException in thread "main" java.lang.RuntimeException: [unresolved dependency]\n\tat A')
    '[unresolved dependency]'
    >>> start_failure("JAVA_HOME is not set\n"), start_failure("")
    ('JAVA_HOME is not set', 'it said nothing')
    """
    thrown = re.findall(r"^(?:Exception in thread .*?|Error): (.+)", log, flags=re.MULTILINE)
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return (thrown or lines or ["it said nothing"])[-1].strip()
