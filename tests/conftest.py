"""What all tests share."""

import io
import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# Tests start many short-lived JVMs, which spend most of their time on optimizing code that then runs a few times.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# Most of a tiny query's time goes into generating and compiling its code; `compiled` is for those that show that it
# gives the same.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}

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
def real_data():
    """The folder with real data: FACTOR_WINDOWS_DATA, or the one beside the project."""
    return Path(os.environ.get("FACTOR_WINDOWS_DATA", Path(__file__).parents[2] / "shared" / "data"))


def new_session():
    """Start Spark for tiny data."""
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config(map=INTERPRETED)
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session


@pytest.fixture(scope="session")
def spark():
    """The one Spark session of all tests."""
    session = new_session()
    yield session
    session.stop()


@pytest.fixture
def interpreting(monkeypatch):
    """Let other JVMs that a test starts interpret too, whatever session they make."""
    options = " ".join(f"-D{name}={value}" for name, value in INTERPRETED.items())
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", f"{os.environ['SPARK_SUBMIT_OPTS']} {options}")


@pytest.fixture
def compiled(spark):
    """Let a test run generated code, adaptively, as Spark does unless it is told otherwise."""
    spark.conf.set("spark.sql.codegen.wholeStage", "true")
    spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    yield
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)


@pytest.fixture
def one_partition(spark):
    """Streams with little data, whose cost is their number of tasks."""
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", before)


@pytest.fixture
def chained(monkeypatch):
    """Let operators of a stream cost nothing, so that a plan over few events is a chain of them, too."""
    monkeypatch.setattr("factor_windows.physical.choose.OPERATOR", 0.0)


@pytest.fixture
def command(monkeypatch, capsys):
    """Run the command line in this process, and return its exit code and what it printed."""
    from factor_windows.cli.main import main

    def run(*arguments, input=""):
        monkeypatch.setattr(sys, "argv", ["factor-windows", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(input))
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        printed = capsys.readouterr()
        return left.value.code or 0, printed.out, printed.err

    return run


@pytest.fixture
def inside(spark, command, monkeypatch):
    """Run the command line within the tests' own session, as it is."""
    monkeypatch.setattr("factor_windows.spark.session.session", lambda **_: spark)
    return command
