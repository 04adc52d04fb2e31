"""A Spark session for the command line: all cores of this machine, or the master that is named."""

from __future__ import annotations

import os

from pyspark.sql import SparkSession


def session(*, master: str | None = None, status_page: bool = False) -> SparkSession:
    """Start Spark, or return the session that runs already."""
    cores = os.cpu_count() or 2
    builder = (
        SparkSession.builder.master(master or f"local[{cores}]")
        .appName("factor-windows")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", status_page)
        .config("spark.ui.port", 0)
        .config("spark.ui.showConsoleProgress", "false")
    )
    if master is None:
        # A cluster has its own number of partitions and its own memory, and must reach the driver.
        builder = (
            builder.config("spark.sql.shuffle.partitions", 4 * cores)
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.memory", os.environ.get("FACTOR_WINDOWS_MEMORY", "1g"))
        )
    started: SparkSession = builder.getOrCreate()
    started.sparkContext.setLogLevel("ERROR")
    return started
