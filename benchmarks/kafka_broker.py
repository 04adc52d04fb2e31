"""A Kafka broker in its own process on this machine: a single node that is its own controller (KRaft).

The benchmark of streams from Kafka and the integration tests start one.
"""

from __future__ import annotations

import socket
import subprocess
import time
from contextlib import closing
from pathlib import Path

JARS = Path(__file__).parents[1] / "jars" / "kafka"
CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
START = 60
"""The seconds within which a broker must answer."""


class Broker:
    """A broker that keeps its port and its messages when it is restarted."""

    def __init__(self, folder: Path, *, partitions: int = 2) -> None:
        self.folder = folder
        self.port, controller = free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None
        self._settings = self.folder / "server.properties"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._settings.write_text(
            f"""process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{self.port}
controller.listener.names=CONTROLLER
log.dirs={self.folder / "messages"}
num.partitions={partitions}
auto.create.topics.enable=true
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
""",
            encoding="utf-8",
        )
        tool = self._java("kafka.tools.StorageTool", "format", "--standalone", "-t", CLUSTER, "-c", self._settings)
        subprocess.run(tool, check=True, capture_output=True, timeout=START)

    @property
    def servers(self) -> str:
        """Return its address, as Spark's `kafka.bootstrap.servers`."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> Broker:
        """Start it, and wait until it answers."""
        with (self.folder / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(self._java("kafka.Kafka", self._settings), stdout=log, stderr=log)
        give_up = time.monotonic() + START
        while not is_listening(self.port):
            if self._process.poll() is not None or time.monotonic() > give_up:
                self.stop()
                raise RuntimeError((self.folder / "broker.log").read_text(encoding="utf-8")[-2000:])
            time.sleep(0.1)
        return self

    def stop(self) -> None:
        """Stop it, but keep its messages."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None

    def kill(self) -> None:
        """End it immediately, as a fault does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _java(self, main: str, *arguments: str | Path) -> list[str]:
        options = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        return ["java", *options, "-cp", f"{JARS}/*", main, *map(str, arguments)]


def free_ports(count: int) -> list[int]:
    """Find loopback ports that nothing listens on."""
    with closing(socket.socket()) as first, closing(socket.socket()) as second:
        found = []
        for each in (first, second)[:count]:
            each.bind(("127.0.0.1", 0))
            found.append(each.getsockname()[1])
        return found


def is_listening(port: int) -> bool:
    """Say whether anything answers on a port."""
    with closing(socket.socket()) as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
