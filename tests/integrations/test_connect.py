"""All of it through a real Spark Connect server, and through a session that refuses what serverless compute does.

A process has one kind of session, so the facts are checked in processes of their own: `connect_client.py`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from connect_client import ALSO_PLAIN, FACTS, SHARED

CLIENT = Path(__file__).with_name("connect_client.py")
PATIENCE = 600
"""Seconds after which a client has failed."""


@pytest.fixture(scope="module")
def client(connect):
    """Run the client in a process of its own, or several at once; return what each has said."""

    def run(*calls):
        environment = {
            name: text for name, text in os.environ.items() if not name.startswith(("SPARK_REMOTE", "PYSPARK_"))
        }
        started = [
            subprocess.Popen(
                [sys.executable, str(CLIENT), connect.remote, *map(str, call)],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
            )
            for call in calls
        ]  # fmt: skip
        told = []
        try:
            for process in started:
                out, err = process.communicate(timeout=PATIENCE)
                assert process.returncode == 0, err[-3000:]
                told.append({line["fact"]: line for line in map(json.loads, out.splitlines()) if "fact" in line})
        finally:
            for process in started:
                process.kill()
        return told

    return run


@pytest.fixture(scope="module")
def plain(client, tmp_path_factory):
    """What the client says about facts."""
    return client([tmp_path_factory.mktemp("plain")])[0]


@pytest.fixture(scope="module")
def serverless(client, tmp_path_factory):
    """What it says in a session with restrictions."""
    return client([tmp_path_factory.mktemp("serverless"), "serverless"])[0]


def check(facts, fact):
    assert fact in facts, "the client ended before it came to this"
    assert not facts[fact]["trouble"], facts[fact]["trouble"]


@pytest.mark.parametrize("fact", FACTS)
def test_through_a_session_that_refuses_what_serverless_compute_does(serverless, fact):
    check(serverless, fact)


@pytest.mark.parametrize("fact", ALSO_PLAIN)
def test_through_connect(plain, fact):
    check(plain, fact)


def test_two_jobs_write_one_store_at_once_and_nothing_is_lost(client, tmp_path):
    client([tmp_path, "create"])
    client(*([tmp_path, "write", writer] for writer in range(2)))
    [found] = client([tmp_path, "check"])
    assert {table: line["trouble"] for table, line in found.items()} == dict.fromkeys(SHARED.values(), 0)
