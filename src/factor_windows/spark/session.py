"""A Spark session for the command line: all cores of this machine, or the master that is named."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pyspark.sql import SparkSession


def session(
    *, master: str | None = None, status_page: bool = False, conf: Mapping[str, str] | None = None
) -> SparkSession:
    """Start Spark with further settings in `conf`, or return the session that runs already."""
    own = settings(master=master, status_page=status_page)
    started = SparkSession.builder.config(map={**own, **(conf or {})}).getOrCreate()
    started.sparkContext.setLogLevel("ERROR")
    return started


def settings(*, master: str | None = None, status_page: bool = False) -> dict[str, str | int | bool]:
    """Return what a session is started with."""
    cores = os.cpu_count() or 2
    everywhere: dict[str, str | int | bool] = {
        "spark.master": master or f"local[{cores}]",
        "spark.app.name": "factor-windows",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": status_page,
        "spark.ui.port": 0,
        "spark.ui.showConsoleProgress": False,
    }
    if master is not None:
        return everywhere
    # A cluster has its own number of partitions and its own memory, and must reach the driver.
    return everywhere | {
        "spark.sql.shuffle.partitions": 4 * cores,
        "spark.driver.bindAddress": "127.0.0.1",
        # From where packages are fetched, also by this process itself.
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": os.environ.get("FACTOR_WINDOWS_MEMORY", "1g"),
    }
