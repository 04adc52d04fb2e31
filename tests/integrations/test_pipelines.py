"""The example of a Declarative Pipeline runs, and its tables hold what Spark computes window by window."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import functions as F

import factor_windows as fw
from factor_windows.spark.compare import differing_rows
from factor_windows.spark.naive import naive

EXAMPLE = Path(__file__).parents[2] / "examples" / "pipeline"
PATIENCE = 240
"""Seconds after which a run has failed."""
SETTINGS = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.driver.host": "127.0.0.1"}
HOUR, DAY = fw.tumbling("1 hour"), fw.tumbling("1 day")
RETURNED = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession
import factor_windows as fw

spark = SparkSession.active()
query = fw.Query(time="ts", windows=[fw.tumbling("1h"), fw.tumbling("2h")], aggregates=["count(*)"])


@dp.materialized_view
def counted():
    return fw.optimize(query).run(spark.read.table("readings"))
"""


def pipeline(command, folder):
    """Call `spark-pipelines` as a user does; the tables are in the folder's spark-warehouse."""
    home = Path(pyspark.__file__).parent
    options = [part for name, value in SETTINGS.items() for part in ("--conf", f"{name}={value}")]
    environment = os.environ | {
        "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"
    }  # fmt: skip
    return subprocess.run(
        [str(home / "bin" / "spark-pipelines"), command, "--spec", str(folder / "spark-pipeline.yml"), *options],
        cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip


@pytest.fixture
def example(tmp_path):
    """A copy of the example whose files are in a folder of the test."""
    folder = tmp_path / "pipeline"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__", "spark-warehouse"))
    settings = folder / "spark-pipeline.yml"
    settings.write_text(settings.read_text().replace("file:///tmp/temperatures", f"file://{tmp_path}"))
    return folder


def test_the_tables_of_the_example_are_right(spark, example, tmp_path):
    events = spark.range(432).selectExpr(
        "timestamp_seconds(1704067200 + id * 600) AS ts",
        "id % 3 AS device",
        "CAST(id * 7 % 31 AS DOUBLE) AS temperature",
    )
    events.coalesce(1).write.parquet(str(tmp_path / "files"))
    done = pipeline("run", example)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]

    def table(name):
        return spark.read.parquet(str(example / "spark-warehouse" / name))

    def asked(aggregate, *windows, keys=("device",)):
        return naive(fw.Query(time="ts", keys=keys, windows=windows, aggregates=aggregate), events)

    assert differing_rows(table("readings"), events) == 0
    several = (HOUR, fw.hopping("6 hours", "1 hour"), fw.calendar("1 day"))
    temperatures = asked(["min(temperature) AS low", "avg(temperature) AS mean"], *several)
    assert table("temperatures").columns == temperatures.columns
    assert differing_rows(table("temperatures"), temperatures) == 0
    peaks = asked(["max(temperature) AS peak"], HOUR, fw.hopping("6 hours", "1 hour"), DAY)
    assert differing_rows(table("peaks"), peaks.drop("window_start")) == 0
    highs = asked(["max(temperature) AS high"], HOUR, fw.tumbling("3 hours"))
    assert differing_rows(table("highs"), highs) == 0
    assert differing_rows(table("counts"), asked(["count(*) AS n"], DAY, keys=())) == 0
    watermark = events.agg(F.max("ts") - F.expr("INTERVAL 1 HOUR")).first()[0]
    closed = highs.where(F.col("window_end") <= F.lit(watermark))
    assert closed.count() > 200
    assert differing_rows(table("closed_windows"), closed) == 0


def test_a_plan_that_is_run_in_a_flow_function_says_where_to_run_it(example):
    for file in (example / "transformations").glob("[sw]*.py"):
        file.unlink()
    (example / "transformations" / "counted.py").write_text(RETURNED)
    done = pipeline("dry-run", example)
    assert done.returncode != 0
    assert "run the plan outside the function and return the result in it" in done.stderr + done.stdout
