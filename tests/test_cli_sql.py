"""`factor-windows rewrite` and `run`: SQL files in, SQL or results out."""

import json
import subprocess
import sys

import duckdb
import pytest

QUERY = """
SELECT DeviceID, System.Window().Id AS w, System.Timestamp() AS ended, MIN(T) AS min_t, AVG(T) AS mean_t
FROM Input TIMESTAMP BY EntryTime
GROUP BY DeviceID, Windows(Window('20 min', TumblingWindow(minute, 20)), Window('hourly', HoppingWindow(hour, 1, 1)),
  HoppingWindow(Duration(hour, 1), Hop(minute, 10)))
"""


def command(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "factor_windows", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        **options,
    )


@pytest.fixture
def query(tmp_path):
    path = tmp_path / "q.sql"
    path.write_text(QUERY)
    return path


def test_rewrite_prints_sql(query):
    done = command("rewrite", query, "--to", "duckdb")
    assert done.returncode == 0, done.stderr
    with duckdb.connect() as db:
        db.execute("CREATE TABLE Input AS SELECT 'd' AS DeviceID, TIMESTAMP '2024-01-01' AS EntryTime, 1.5 AS T")
        assert len(db.execute(done.stdout).fetchall()) == 8
    described = json.loads(command("rewrite", "-", "--json", input=QUERY).stdout)
    assert described["dialect"] == "spark"
    assert "10 minutes" in [node["name"] for node in described["plans"][0]["nodes"]]


def test_explain_takes_a_query(query):
    done = command("explain", "--query", query)
    assert "hourly" in done.stdout
    assert done.returncode == 0


def test_run_writes_what_is_verified(query, tmp_path):
    with duckdb.connect() as db:
        db.execute(
            "COPY (SELECT 'd' || (i % 3) AS DeviceID, TIMESTAMP '2024-01-01' + INTERVAL (i * 61) SECOND AS EntryTime, "
            f"i % 17 / 3.0 AS T FROM range(500) t(i)) TO '{tmp_path}/in.parquet'"
        )
    done = command(
        "run",
        query,
        "--input",
        f"Input={tmp_path}/in.parquet",
        "--output",
        f"{tmp_path}/out.csv",
        "--verify",
        "--explain",
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "verified: all" in done.stderr
    assert "10 minutes" in done.stdout
    with duckdb.connect() as db:
        rows = db.execute(f"SELECT DISTINCT w FROM read_csv('{tmp_path}/out.csv/*.csv') ORDER BY w").fetchall()
    assert rows == [("1 hour / 10 minutes",), ("20 min",), ("hourly",)]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["rewrite", "nowhere.sql"], "cannot read 'nowhere.sql'"),
        (["rewrite", "{query}", "--to", "oracle"], "allowed are spark, duckdb, flink"),
        (["rewrite", "{query}", "--from", "oracle"], "allowed are spark, azure, flink"),
        (["run", "{query}", "--input", "Input", "--output", "x.parquet"], "is not NAME=PLACE"),
    ],
)
def test_a_mistake_is_one_sentence(query, arguments, problem):
    done = command(*(text.replace("{query}", str(query)) for text in arguments))
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert problem in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
