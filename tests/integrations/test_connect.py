"""All of it through a real Spark Connect server, and through a session that refuses what serverless compute does.

A process has one kind of session, so the facts are checked in processes of their own: `connect_client.py`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from connect_client import FACTS

CLIENT = Path(__file__).with_name("connect_client.py")
PATIENCE = 600
"""Seconds after which a client has failed."""


@pytest.fixture(scope="module", params=["connect", "serverless"])
def told(request, connect, tmp_path_factory):
    """What the client says about each fact."""
    given = [
        connect.remote,
        str(tmp_path_factory.mktemp(request.param)),
        *([request.param] * (request.param != "connect")),
    ]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("SPARK_REMOTE", "PYSPARK_"))
    }
    done = subprocess.run(
        [sys.executable, str(CLIENT), *given],
        capture_output=True, text=True, timeout=PATIENCE, env=environment, check=False,
    )  # fmt: skip
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"fact"')]
    assert lines, done.stderr[-3000:]
    return {line["fact"]: line for line in lines}


@pytest.mark.parametrize("fact", FACTS)
def test_through_connect(told, fact):
    assert fact in told, "the client ended before it came to this"
    assert not told[fact]["trouble"], told[fact]["trouble"]
