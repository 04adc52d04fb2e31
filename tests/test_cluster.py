"""On a real cluster, with executors, workers and drivers killed on purpose, results are right, once and whole.

A Spark standalone master and two workers run as processes of their own on the loopback, started from the installed
pyspark; jobs are submitted with the package as a zip file, as a user would.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import pyspark
import pytest
from cluster_job import QUERY, SCHEMA
from pyspark.sql import functions as F

import factor_windows
from factor_windows.spark.compare import differing_rows
from factor_windows.spark.naive import naive

ROUNDS = int(os.environ.get("FACTOR_WINDOWS_ROUNDS", "1"))
"""How often jobs are killed."""
PATIENCE = 120
"""Seconds after which something that should have happened has not."""
pytestmark = pytest.mark.cluster
HOME = Path(pyspark.__file__).parent
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
    "spark.task.maxFailures": "8",
    "spark.executor.extraJavaOptions": os.environ["SPARK_SUBMIT_OPTS"],
}


class Cluster:
    """A master and two workers of one core each."""

    def __init__(self, folder):
        self.folder = folder
        self.processes = []
        self.logs = []
        master = self._started("master", "org.apache.spark.deploy.master.Master", "--port", "0", "--webui-port", "0")
        self.address = self._found(master, r"Starting Spark master at (spark://\S+)")
        self._found(master, r"New state: ALIVE")
        self.workers = [self.worker() for _ in range(2)]

    def worker(self):
        """Start one more worker, and wait until the master knows it."""
        place = self.folder / f"work{len(self.processes)}"
        options = ["--cores", "1", "--memory", "1g", "--work-dir", str(place), "--webui-port", "0"]
        log = self._started("worker", "org.apache.spark.deploy.worker.Worker", *options, self.address)
        self._found(log, r"Successfully registered with master")
        return self.processes[-1]

    def _started(self, name, main, *options):
        log = self.folder / f"{name}{len(self.processes)}.log"
        command = [str(HOME / "bin" / "spark-class"), main, "--host", "127.0.0.1", *options]
        environment = os.environ | {
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": os.environ["SPARK_SUBMIT_OPTS"],
        }
        with log.open("w") as file:
            self.processes.append(
                subprocess.Popen(
                    command, stdout=file, stderr=subprocess.STDOUT, env=environment, start_new_session=True
                )
            )
        return log

    def _found(self, log, pattern):
        return waited(lambda: re.search(pattern, log.read_text()), f"{pattern} in {log.name}").group(
            1 if "(" in pattern else 0
        )

    def submit(self, *arguments):
        """Submit a job, with the package as one zip file."""
        package = self.folder / "factor_windows.zip"
        if not package.exists():
            source = Path(factor_windows.__file__).parent
            shutil.make_archive(str(package.with_suffix("")), "zip", source.parent, source.name)
        settings = [part for name, value in SETTINGS.items() for part in ("--conf", f"{name}={value}")]
        command = [str(HOME / "bin" / "spark-submit"), "--master", self.address, *settings]
        command += ["--py-files", str(package), str(Path(__file__).with_name("cluster_job.py")), *map(str, arguments)]
        environment = os.environ | {
            "SPARK_HOME": str(HOME), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"
        }  # fmt: skip
        log = self.folder / f"job{time.monotonic_ns()}.log"
        with log.open("w") as file:
            job = subprocess.Popen(
                command, stdout=file, stderr=subprocess.STDOUT, env=environment, start_new_session=True
            )
        self.processes.append(job)
        self.logs.append(log)
        return job, log

    def executors(self, worker):
        """List the processes of a worker's executors."""
        return [pid for pid in descendants(worker.pid) if b"CoarseGrainedExecutorBackend" in commandline(pid)]

    def stop(self):
        for process in reversed(self.processes):
            for pid in [*descendants(process.pid), process.pid]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()


def commandline(pid):
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def descendants(pid):
    """List all processes below one, from /proc."""
    below, children = [], {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    waiting = [pid]
    while waiting:
        found = children.get(waiting.pop(), [])
        below += found
        waiting += found
    return below


def waited(condition, what):
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError(f"waited {PATIENCE} s in vain for {what}")


def killed(*pids):
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def ended(job, log):
    waited(lambda: job.poll() is not None, "the job's end")
    assert job.returncode == 0, log.read_text()[-3000:]
    assert "factor_windows.zip" in log.read_text(), "the job did not use the package that was shipped"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    started = None
    try:
        started = Cluster(tmp_path_factory.mktemp("cluster"))
        yield started
    finally:
        if started is not None:
            started.stop()


@pytest.mark.parametrize("turn", range(ROUNDS))
def test_a_batch_survives_the_death_of_an_executor(spark, cluster, tmp_path, turn):
    events = spark.range(1_000_000).selectExpr(
        "timestamp_millis(id * 13) AS ts", "id % 7 AS k", "(id * 31) % 1001 AS v"
    )
    events.repartition(24).write.parquet(str(tmp_path / "in"))
    job, log = cluster.submit("batch", tmp_path / "in", tmp_path / "out", "none")
    waited(lambda: "half-way" in log.read_text() or job.poll() is not None, "half of the work")
    victims = cluster.executors(cluster.workers[turn % 2])
    assert victims, log.read_text()[-3000:]
    assert job.poll() is None, "the job ended before anything could be killed"
    killed(*victims)
    ended(job, log)
    expected = naive(QUERY, spark.read.parquet(str(tmp_path / "in")))
    assert differing_rows(spark.read.parquet(str(tmp_path / "out")), expected) == 0


@pytest.mark.parametrize("turn", range(ROUNDS))
def test_a_stream_survives_the_death_of_a_worker_and_of_its_driver(spark, cluster, tmp_path, turn):
    for number in range(8):
        rows = spark.range(number * 2000, number * 2000 + 2000).selectExpr(
            "timestamp_millis(id * 13) AS ts", "id % 3 AS k", "(id * 31) % 1001 AS v"
        )
        rows.coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
    places = (tmp_path / "in", tmp_path / "out", tmp_path / "state")
    job, log = cluster.submit("stream", *places)
    waited(lambda: "batch 1" in log.read_text(), "the second micro-batch")
    victim = cluster.workers.pop(0)
    killed(*descendants(victim.pid), victim.pid)
    cluster.workers.append(cluster.worker())
    waited(lambda: "batch 3" in log.read_text() or job.poll() is not None, "the fourth micro-batch")
    assert job.poll() is None, log.read_text()[-3000:]
    killed(*descendants(job.pid), job.pid)
    job.wait()
    job, log = cluster.submit("stream", *places)
    ended(job, log)
    watermark = datetime.fromisoformat(re.search(r"watermark (\S+)", log.read_text()).group(1))
    expected = naive(QUERY, spark.read.schema(SCHEMA).parquet(str(tmp_path / "in")))
    closed = expected.where(F.col("window_end") <= F.lit(watermark))
    assert closed.count() > 50
    assert differing_rows(spark.read.parquet(str(tmp_path / "out")), closed) == 0
