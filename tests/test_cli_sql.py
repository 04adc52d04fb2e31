"""`factor-windows rewrite` and `run`: SQL files in, SQL or results out."""

import json
import re

import duckdb
import pytest

from factor_windows.cost.timing import Timing
from factor_windows.engines import spark_script

QUERY = """
SELECT DeviceID, System.Window().Id AS w, System.Timestamp() AS ended, MIN(T) AS min_t, AVG(T) AS mean_t
FROM Input TIMESTAMP BY EntryTime
GROUP BY DeviceID, Windows(Window('20 min', TumblingWindow(minute, 20)), Window('hourly', HoppingWindow(hour, 1, 1)),
  HoppingWindow(Duration(hour, 1), Hop(minute, 10)))
"""


@pytest.fixture
def query(tmp_path):
    path = tmp_path / "q.sql"
    path.write_text(QUERY)
    return path


def test_rewrite_prints_sql(command, query):
    code, out, err = command("rewrite", query, "--to", "duckdb")
    assert code == 0, err
    with duckdb.connect() as db:
        db.execute("CREATE TABLE Input AS SELECT 'd' AS DeviceID, TIMESTAMP '2024-01-01' AS EntryTime, 1.5 AS T")
        assert len(db.execute(out).fetchall()) == 8
    described = json.loads(command("rewrite", "-", "--json", input=QUERY)[1])
    assert described["dialect"] == "spark"
    assert "10 minutes" in [node["name"] for node in described["plans"][0]["nodes"]]


def test_explain_takes_a_query(command, query):
    code, out, _ = command("explain", "--query", query)
    assert "hourly" in out
    assert code == 0


@pytest.fixture
def readings(tmp_path):
    with duckdb.connect() as db:
        db.execute(
            "COPY (SELECT 'd' || (i % 3) AS DeviceID, TIMESTAMP '2024-01-01' + INTERVAL (i * 61) SECOND AS EntryTime, "
            f"i % 17 / 3.0 AS T FROM range(500) t(i)) TO '{tmp_path}/in.parquet'"
        )
    return f"Input={tmp_path}/in.parquet"


def test_run_writes_what_is_verified(query, readings, tmp_path, inside):
    options = ("--output", tmp_path / "out.csv", "--verify", "--explain")
    code, out, err = inside("run", query, "--input", readings, *options)
    assert code == 0, err
    assert "verified: all" in err
    assert "10 minutes" in out
    with duckdb.connect() as db:
        rows = db.execute(f"SELECT DISTINCT w FROM read_csv('{tmp_path}/out.csv/*.csv') ORDER BY w").fetchall()
    assert rows == [("1 hour / 10 minutes",), ("20 min",), ("hourly",)]


@pytest.fixture
def take(monkeypatch):
    """Let the plan and the naive query take so many seconds, after they were run twice."""

    def taking(plan, naive):
        def timing(run_plan, run_naive):
            for run in (run_plan, run_naive, run_naive, run_plan):
                run()
            return Timing((plan,), (naive,))

        monkeypatch.setattr(spark_script, "time_in_turns", timing)

    return taking


@pytest.mark.parametrize(
    ("plan", "naive", "said", "gain"),
    [
        (2.0, 5.0, "2.0 s, window by window 5.0 s, both warm: 2.5 times faster", 2.5),
        (5.0, 2.0, "5.0 s, window by window 2.0 s, both warm: 2.5 times slower", 0.4),
        (0.2, 0.1, "the data is too small to compare times", None),
        (5.0, 5.1, "too close to tell which is faster", None),
    ],
)
def test_verify_tells_what_times_can_tell(query, readings, tmp_path, inside, take, plan, naive, said, gain):
    take(plan, naive)
    page = tmp_path / "plan.html"
    options = ("--output", tmp_path / "out.csv", "--verify", "--json", "--html", page)
    code, out, err = inside("run", query, "--input", readings, *options)
    assert code == 0, err
    [verified] = [line for line in err.splitlines() if line.startswith("verified: all")]
    assert verified.endswith(said)
    assert bool(re.search(r"\d times (faster|slower)", err)) == (gain is not None)
    described = json.loads(out)
    assert described["measured"] == (None if gain is None else {"plan": plan, "naive": naive, "gain": gain})
    assert ("not_measured" in described) == (gain is None)
    assert f"{said[1:]}.</p>" in page.read_text()
    assert ("Predicted and measured" in page.read_text()) == (gain is not None)


@pytest.mark.long
def test_verify_writes_once_and_times_nothing_that_spark_kept(readings, tmp_path, inside, take, spark, monkeypatch):
    script = tmp_path / "script.sql"
    script.write_text(SCRIPT)
    take(2.0, 5.0)
    written, kept = [], []
    cached = spark._jsparkSession.sharedState().cacheManager().numCachedEntries
    before = cached()
    write, computed = spark_script.write, spark_script.run

    def run(*arguments, **options):
        kept.append(cached() - before)
        return computed(*arguments, **options)

    monkeypatch.setattr(spark_script, "write", lambda result, place: (written.append(place), write(result, place)))
    monkeypatch.setattr(spark_script, "run", run)
    code, _, err = inside("run", script, "--input", readings, "--output", tmp_path / "out", "--verify")
    assert code == 0, err
    assert [place.rpartition("/")[2] for place in written] == ["devices.parquet", "hours.parquet", "query_3.parquet"]
    assert (kept, cached()) == ([0, 0, 0], before)


def test_rows_that_differ_are_told_and_not_timed(query, readings, tmp_path, inside, monkeypatch):
    monkeypatch.setattr(spark_script, "differing_rows", lambda *_: 3)
    monkeypatch.setattr(spark_script, "time_in_turns", lambda *_: pytest.fail("was timed"))
    code, out, err = inside("run", query, "--input", readings, "--output", tmp_path / "o.csv", "--verify", "--json")
    assert code == 1
    assert err.splitlines()[-1] == "3 rows differ from the query run window by window"
    described = json.loads(out)
    assert (described["verified"], described["measured"], described["not_measured"]) == (False, None, "rows differ")


SCRIPT = """
INSERT INTO devices SELECT DeviceID, window.start AS s, avg(T) AS m FROM Input
  GROUP BY DeviceID, window(EntryTime, '20 minutes');
INSERT INTO hours SELECT window.start AS s, count(*) AS n FROM Input WHERE T > 2 GROUP BY window(EntryTime, '1 hour');
SELECT DeviceID, window.end AS e, max(T) AS high FROM Input
  GROUP BY window(EntryTime, '1 hour', '10 minutes'), ROLLUP(DeviceID)
"""


@pytest.mark.long
def test_run_writes_a_result_for_every_statement(readings, tmp_path, inside):
    script = tmp_path / "script.sql"
    script.write_text(SCRIPT)
    command = ("run", script, "--input", readings, "--verify", "--explain", "--json")
    code, out, err = inside(*command, "--output", tmp_path / "results")
    assert code == 0, err
    described = json.loads(out.splitlines()[-1])
    assert [each["name"] for each in described["results"]] == ["devices", "hours", "query_3"]
    assert described["verified"]
    assert "in 1 pass over the events" in out
    assert "for devices, hours, query_3.1, query_3.2" in out
    for each in described["results"]:
        with duckdb.connect() as db:
            [[count]] = db.execute(f"SELECT count(*) FROM '{each['output']}/*.parquet'").fetchall()
        assert count == each["rows"] > 0
    code, _, err = inside("run", script, "--input", readings, "--output", tmp_path / "x.csv")
    assert (code, "there are 3 results but one --output" in err) == (2, True)
    code, _, err = inside("run", script, "--input", readings, "--output", tmp_path / "{name}.csv")
    assert code == 0, err
    assert (tmp_path / "hours.csv" / "_SUCCESS").exists()


def test_explain_and_rewrite_take_a_script(tmp_path, command):
    script = tmp_path / "script.sql"
    script.write_text(SCRIPT)
    [plan] = json.loads(command("explain", "--query", script, "--json")[1])
    assert [query["name"] for query in plan["queries"]] == ["devices", "hours", "query_3.1", "query_3.2"]
    assert len(plan["passes"]) == 1
    assert "together" in command("explain", "--query", script)[1]
    assert command("rewrite", script)[1].count("WITH\n") >= 3


def test_explain_of_a_script_takes_the_options_of_a_query(tmp_path, command):
    script, drawn = tmp_path / "script.sql", tmp_path / "plan.svg"
    script.write_text(SCRIPT)
    known = ("--rate", "1", "--unit", "1s", "--keys", "100000", "--svg", drawn)
    assert command("explain", "--query", script, *known)[1] != command("explain", "--query", script)[1]
    assert drawn.read_text().startswith("<svg")
    code, _, problem = command("explain", "--query", script, "--operators")
    assert (code, "--operators works for one query only" in problem) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["rewrite", "nowhere.sql"], "cannot read 'nowhere.sql'"),
        (["rewrite", "{query}", "--to", "oracle"], "allowed are spark, duckdb, flink"),
        (["rewrite", "{query}", "--from", "oracle"], "allowed are spark, azure, flink"),
        (["run", "{query}", "--input", "Input", "--output", "x.parquet"], "is not NAME=PLACE"),
        (["run", "{query}", "--input", "Input=x.xlsx", "--output", "x.parquet"], "'x.xlsx' ends in .xlsx; supported"),
        (["run", "{query}", "--input", "Input=x.csv", "--output", "x.xlsx"], "'x.xlsx' ends in .xlsx; supported are"),
        (["run", "{query}", "--input", "Input={query}x", "--output", "x.csv"], "ends in .sqlx"),
        (
            ["run", "{query}", "--input", "Inpt=x.csv", "--output", "x.csv"],
            "Inpt is not in the query, which reads Input",
        ),
        (["explain", "--query", "{query}", "-w", "1h"], "--window cannot be combined with --query"),
    ],
)
def test_a_mistake_is_one_sentence(command, query, arguments, problem):
    code, _, err = command(*(text.replace("{query}", str(query)) for text in arguments))
    assert code == 2
    assert err.startswith("error: ")
    assert problem in err
    assert len(err.strip().splitlines()) == 1


def test_run_says_what_is_wrong_with_a_query_in_one_line(query, readings, tmp_path, inside):
    wrong = tmp_path / "wrong.sql"
    wrong.write_text(QUERY.replace("MIN(T)", "MIN(Tee)"))
    code, out, err = inside("run", wrong, "--input", readings, "--output", tmp_path / "out.parquet")
    assert (code, out) == (2, "")
    assert err == ("error: Spark cannot read the query: there is no column Tee; there are T, DeviceID, EntryTime\n")
    nowhere = tmp_path / "nowhere.sql"
    nowhere.write_text(QUERY.replace("Input", "Nowhere"))
    code, out, err = inside("run", nowhere, "--output", tmp_path / "out.parquet")
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        "error: Spark cannot run the query: there is no table or view `Nowhere`; name a file for it with "
        "--input Nowhere=readings.parquet, or register a view of that name"
    ]


def test_rewrite_keeps_what_stands_around_a_query(tmp_path, command):
    select = "SELECT k, max(v) AS m FROM r GROUP BY k, window(ts, '1 hour')"
    for around in ("CREATE OR REPLACE TEMPORARY VIEW out AS ", "INSERT INTO out (a, b) "):
        path = tmp_path / "q.sql"
        path.write_text(around + select)
        code, out, err = command("rewrite", path)
        assert code == 0, err
        assert out.startswith(around + "WITH\n")


def test_run_knows_the_columns_of_its_inputs(tmp_path, inside):
    with duckdb.connect() as db:
        db.execute(
            "COPY (SELECT 'a' AS k, 's' || (i % 3) AS site, TIMESTAMP '2024-01-01' + INTERVAL (i) SECOND AS ts "
            f"FROM range(6) t(i)) TO '{tmp_path}/in.parquet'"
        )
    path = tmp_path / "q.sql"
    path.write_text(
        "CREATE TABLE out AS SELECT upper(k) AS site, count(*) AS n FROM r GROUP BY k, site, window(ts, '1 minute')"
    )
    place = tmp_path / "out.csv"
    code, _, err = inside("run", path, "--input", f"r={tmp_path}/in.parquet", "--output", place, "--verify", "--json")
    assert (code, "verified: all 3 rows" in err) == (0, True), err
    with duckdb.connect() as db:
        assert db.execute(f"SELECT site, n FROM read_csv('{place}/*.csv')").fetchall() == [("A", 2)] * 3


def test_a_plan_is_told_in_the_names_of_the_query(tmp_path, command):
    path = tmp_path / "q.sql"
    path.write_text(
        "SELECT upper(k) AS big, max(v) - min(v) AS spread FROM r GROUP BY upper(k), window(ts, '20 minutes') "
        "UNION ALL SELECT upper(k), max(v) - min(v) FROM r GROUP BY upper(k), window(ts, '30 minutes')"
    )
    _, out, _ = command("explain", "--query", path)
    assert out.startswith("spread per big over 2 windows")


def test_a_misspelled_function_is_told(tmp_path, command):
    path = tmp_path / "q.sql"
    path.write_text("SELECT avrage(v) FROM r GROUP BY window(ts, '20 minutes')")
    assert "or did you mean avg for avrage?" in command("explain", "--query", path)[2]


def test_files_that_are_missing_or_in_the_way_are_told_before_spark_starts(tmp_path, query, command, monkeypatch):
    monkeypatch.setattr("factor_windows.spark.session.session", lambda **_: pytest.fail("Spark was started"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "readings.csv").write_text("EntryTime,DeviceID,T\n")
    for place, output, problem in (
        ("reading.csv", "out.csv", "there is no file 'reading.csv'; did you mean 'readings.csv'?"),
        ("readings.csv", "readings.csv", "--output 'readings.csv' exists already; --overwrite replaces it"),
    ):
        code, _, err = command("run", query, "--input", f"Input={place}", "--output", output)
        assert (code, err) == (2, f"error: {problem}\n")
