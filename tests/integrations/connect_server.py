"""A Spark Connect server as a process of its own on this machine, from the installed PySpark."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pyspark

START = 90
"""How many seconds a server has to answer."""
MAIN = "org.apache.spark.sql.connect.service.SparkConnectServer"
_ADDRESS = re.compile(r"Spark Connect server started at: 127\.0\.0\.1:(\d+)")


class ConnectServer:
    """A server with the settings of a session; it listens on loopback, on a port that it finds itself."""

    def __init__(self, folder, settings):
        self.log = Path(folder) / "server.log"
        home = Path(pyspark.__file__).parent
        given = {
            **settings,
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": "0",
        }
        options = [part for name, value in given.items() for part in ("--conf", f"{name}={value}")]
        self._command = [home / "bin" / "spark-submit", "--master", "local[2]", *options, "--class", MAIN]
        # What a stream calls for each micro-batch runs in a Python that the server starts.
        self._environment = os.environ | {
            "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"
        }  # fmt: skip
        self._process = None
        self.port = None

    @property
    def remote(self):
        """Where it is reached, as `SparkSession.builder.remote` takes it."""
        return f"sc://127.0.0.1:{self.port}"

    def start(self):
        """Start it, and wait until it answers."""
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                [*map(str, self._command), "spark-internal"],
                stdout=log,
                stderr=log,
                env=self._environment,
                cwd=self.log.parent,
            )
        give_up = time.monotonic() + START
        while not (found := _ADDRESS.search(self.log.read_text(encoding="utf-8"))):
            if self._process.poll() is not None or time.monotonic() > give_up:
                self.stop()
                raise RuntimeError(self.log.read_text(encoding="utf-8")[-2000:])
            time.sleep(0.1)
        self.port = int(found[1])
        return self

    def stop(self):
        """Stop it."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None
