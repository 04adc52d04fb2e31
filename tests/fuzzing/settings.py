"""Sessions as users set them: a zone, ANSI mode, case, quotes and partitions, drawn once for each seed."""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass

from pyspark.sql import SparkSession

QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.ui.showConsoleProgress": "false",
}
"""Tiny data takes longer to compile for than to compute."""
ZONES = ("UTC", "UTC", "America/New_York", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Asia/Kathmandu")
MANY = 200
"""Spark's own number of partitions. It is slow on tiny data, so it is drawn rarely and adaptive execution is on."""


@dataclass(frozen=True)
class Settings:
    """What a session is set to; the defaults are those of the tests."""

    zone: str = "UTC"
    ansi: bool = True
    case_sensitive: bool = False
    double_quoted: bool = False
    partitions: int = 1

    def session(self, spark: SparkSession) -> SparkSession:
        """Make a session of its own, with its own settings and temporary views, beside others in one JVM."""
        session = spark.newSession()
        for name, value in (QUICK | self.values).items():
            if session.conf.isModifiable(name):
                session.conf.set(name, value)
        return session

    @property
    def values(self) -> dict[str, str]:
        """List the settings by Spark's names."""
        values = {
            "spark.sql.session.timeZone": self.zone,
            "spark.sql.ansi.enabled": self.ansi,
            "spark.sql.caseSensitive": self.case_sensitive,
            "spark.sql.ansi.doubleQuotedIdentifiers": self.double_quoted,
            "spark.sql.shuffle.partitions": self.partitions,
            "spark.sql.adaptive.enabled": self.partitions == MANY,
        }
        return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in values.items()}


def draw_settings(rng: random.Random) -> Settings:
    """Draw settings; half of the sessions differ from the defaults in more than the zone."""
    ansi = rng.random() < 0.65
    return Settings(
        zone=rng.choice(ZONES),
        ansi=ansi,
        case_sensitive=rng.random() < 0.25,
        # Spark heeds it in ANSI mode only.
        double_quoted=ansi and rng.random() < 0.1,
        partitions=rng.choice([1] * 20 + [2] * 4 + [MANY]),
    )


def quick_session() -> SparkSession:
    """Start a session that wastes no time on tiny data."""
    session = (
        SparkSession.builder.master("local[2]")
        .config(map=QUICK)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "3g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    # What fails in analysis is a finding of one line, not a page of log.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    return session
