"""What all tests share."""

import os
import sys

import pytest
from hypothesis import settings

# Tests start many short-lived JVMs, which spend most of their time on optimizing code that then runs a few times.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# Randomness finds more, but what lands must not depend on luck: only a local run looks further.
settings.register_profile("ci", deadline=None, derandomize=True)
settings.register_profile("local", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files with what is printed now")


@pytest.fixture
def golden(request):
    """Compare text with a golden file, or write the file anew with --update-golden."""

    def compare(path, text):
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text + "\n", encoding="utf-8")
        assert path.read_text(encoding="utf-8") == text + "\n"

    return compare


@pytest.fixture(scope="session")
def spark():
    """The one Spark session of all tests."""
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def inside(spark, monkeypatch, capsys):
    """Run the command line within the tests' own session, and return its exit code and what it printed."""
    from factor_windows.cli.main import main

    partitions = spark.conf.get("spark.sql.shuffle.partitions")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["factor-windows", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        printed = capsys.readouterr()
        return left.value.code or 0, printed.out, printed.err

    yield run
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
