"""The example job runs by `spark-submit`, with the package as a wheel or a zip file and nowhere else."""

import os
import runpy
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pyspark
import pytest

import factor_windows
from factor_windows.spark.compare import differing_rows
from factor_windows.spark.naive import naive

ROOT = Path(__file__).parents[2]
JOB = ROOT / "examples" / "submit" / "job.py"
HOME = Path(pyspark.__file__).parent
PATIENCE = 240
"""Seconds after which a job has failed."""
SETTINGS = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}


def wheel(folder):
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(ROOT)], check=True, capture_output=True, timeout=120)
    [built] = folder.glob("*.whl")
    return built


def zipped(folder):
    source = Path(factor_windows.__file__).parent
    return Path(shutil.make_archive(str(folder / "factor_windows"), "zip", source.parent, source.name))


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory):
    """A Python that has what the package needs, and not the package: `-S` leaves the editable install out."""
    script = tmp_path_factory.mktemp("bare") / "python"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    script.chmod(0o755)
    return script


@pytest.fixture(scope="module")
def environment(bare_python):
    return os.environ | {
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": str(bare_python),
        "PYTHONPATH": sysconfig.get_path("purelib"),
    }


def test_the_bare_python_has_no_package(bare_python, environment):
    done = subprocess.run(
        [str(bare_python), "-c", "import sqlglot, scipy, rich, factor_windows"],
        env=environment, cwd="/", capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert "No module named 'factor_windows'" in done.stderr


@pytest.mark.parametrize("package", [wheel, zipped])
def test_a_job_is_submitted_with_the_package_as_one_file(spark, tmp_path, environment, package):
    events = spark.range(500).selectExpr(
        "timestamp_seconds(id * 61) AS ts", "id % 3 AS device", "CAST(id * 7 % 31 AS DOUBLE) AS temperature"
    )
    events.write.parquet(str(tmp_path / "in"))
    file = package(tmp_path)
    options = [part for name, value in SETTINGS.items() for part in ("--conf", f"{name}={value}")]
    command = [HOME / "bin" / "spark-submit", *options, "--py-files", file, JOB, tmp_path / "in", tmp_path / "out"]
    done = subprocess.run(
        [*map(str, command), "--page", str(tmp_path / "plan.html")],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"factor-windows {factor_windows.__version__} from " in done.stdout
    assert f"{file.name}/factor_windows/__init__.py" in done.stdout
    assert "</html>" in (tmp_path / "plan.html").read_text(encoding="utf-8")
    query = runpy.run_path(str(JOB))["query"]
    assert differing_rows(spark.read.parquet(str(tmp_path / "out")), naive(query, events)) == 0
