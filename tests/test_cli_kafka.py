"""`factor-windows run` over a Kafka topic: what is refused before Spark starts, or by a Spark without Kafka."""

import pytest

from factor_windows.errors import QueryError
from factor_windows.sql.identity import identity_of
from factor_windows.sql.parse import read

HOURS = "SELECT device, window.start AS s, max(t) AS m FROM readings GROUP BY device, window(ts, '1 hour')"
TOPIC = "readings=kafka://127.0.0.1:9092/readings"
COMPLETE = {"input": TOPIC, "schema": "ts TIMESTAMP, device STRING, t DOUBLE", "watermark": "10m", "checkpoint": "ck"}


@pytest.fixture
def run(tmp_path, command, monkeypatch):
    """Run a query with options, some of them left out, where nothing may start Spark."""
    monkeypatch.setattr("factor_windows.spark.session.session", lambda **_: pytest.fail("Spark was started"))

    def run(*flags, text=HOURS, output="hours", **options):
        path = tmp_path / "q.sql"
        path.write_text(text)
        named = {name: value for name, value in (COMPLETE | options).items() if value is not None}
        return command(
            *("run", path, "--output", output, *flags),
            *(text for name, value in named.items() for text in (f"--{name}", value)),
        )

    return run


@pytest.mark.parametrize(
    ("flags", "options", "problem"),
    [
        ((), {"schema": None}, "readings is a Kafka topic, whose messages have no schema; add --schema"),
        ((), {"watermark": None}, "say how late messages may be, such as --watermark '10 minutes'"),
        ((), {"watermark": "soon"}, "duration 'soon' cannot be read"),
        ((), {"watermark": "-5m"}, "--watermark '-5m' is negative"),
        ((), {"checkpoint": None}, "needs a folder for its progress; add one, such as --checkpoint state"),
        ((), {"mode": "complete"}, "--mode 'complete' is unknown; allowed are append, update"),
        ((), {"mode": "update", "output": "out.parquet"}, "files such as 'out.parquet' are never updated"),
        ((), {"format": "hudi"}, "--format 'hudi' is unknown; allowed are delta or iceberg"),
        ((), {"format": "delta", "output": "out.csv"}, "--format delta creates a table, but 'out.csv' is a file"),
        ((), {"format": "iceberg", "output": "lake/out"}, "--format iceberg creates a table, but 'lake/out' is a file"),
        ((), {"output": "lake/out"}, "'lake/out' may be a Delta table or files; add --format delta, or use"),
        ((), {"html": "page.html"}, "--html is for runs over files"),
        ((), {"conf": "spark.jars"}, "--conf 'spark.jars' is not NAME=VALUE"),
        (("--verify",), {}, "--verify compares whole results, which a stream does not have"),
        (("--overwrite",), {}, "--overwrite would remove what the stream has written so far"),
        (("--input", "more=kafka://127.0.0.1:9092/more"), {}, "more and readings are Kafka topics"),
        (("--follow",), {"input": "readings=r.parquet", "schema": None, "watermark": None, "checkpoint": None},
         "--follow is for streams, and no input is a Kafka topic; name one, such as --input readings=kafka://"),
        ((), {"input": "readings=r.parquet", "schema": None, "watermark": None}, "--checkpoint is for streams"),
        ((), {"input": "readings=kafka://127.0.0.1:9092"}, "has no Kafka topic; write kafka://HOST:PORT/TOPIC"),
        ((), {"input": "readings=kafka://me:secret@host:9092/r"}, "a Kafka address has no user"),
        ((), {"input": f"{TOPIC}?schema=ts TIMESTAMP"}, "schema is not part of a Kafka address; use --schema 'ts TIM"),
        ((), {"input": f"{TOPIC}?endingOffsets=latest"}, "a Kafka address has no option 'endingOffsets'; it "),
        ((), {"text": f"{HOURS}; {HOURS}"}, "the text has 2 statements; a stream runs one"),
        ((), {"text": HOURS.replace("window(ts,", "window(CAST(ts AS TIMESTAMP),")}, "is a column of --schema"),
        ((), {"text": f"{HOURS} HAVING m > 3", "mode": "update"}, "in mode update a row that HAVING"),
        ((), {"text": HOURS.replace("window.start AS s, ", "")}, "the query does not show the start of its windows"),
    ],
)  # fmt: skip
def test_what_a_stream_cannot_do_is_one_sentence_before_spark_starts(run, flags, options, problem):
    code, out, err = run(*flags, **options)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert problem in err
    assert len(err.strip().splitlines()) == 1


def test_secrets_of_an_address_are_not_repeated(run):
    _, _, err = run(input="readings=kafka://me:secret@host:9092/r")
    assert "secret" not in err


def test_a_spark_without_kafka_is_told_which_package_it_needs(spark, inside, tmp_path):
    path = tmp_path / "q.sql"
    path.write_text(HOURS)
    options = ("--schema", COMPLETE["schema"], "--watermark", "10m", "--checkpoint", tmp_path / "ck")
    code, _, err = inside("run", path, "--input", TOPIC, "--output", tmp_path / "out.parquet", *options)
    assert code == 2
    assert err.splitlines() == [
        "error: this Spark has no Kafka source; add it with --conf "
        f"spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version}"
    ]
    for schema, problem in (("ts TIMESTAMP, device", "cannot be read"), ("at TIMESTAMP", "add it as ts TIMESTAMP")):
        options = ("--schema", schema, "--watermark", "10m", "--checkpoint", tmp_path / "ck")
        code, _, err = inside("run", path, "--input", TOPIC, "--output", tmp_path / "out.parquet", *options)
        assert (code, problem in err) == (2, True), err
        assert len(err.strip().splitlines()) == 1


def two(first, second):
    return f"SELECT {first} GROUP BY d, window(ts, '20 minutes') UNION ALL SELECT {second}"


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT r.d AS x, window.end AS e, max(t) FROM r GROUP BY d, window(ts, '1 hour')", ["x", "e"]),
        ("SELECT window, upper(d) AS u, max(t) FROM r GROUP BY 2, window(ts, '1 hour')", ["u", "window"]),
        (
            two("d, 'a' AS w, window.start AS s, max(t) FROM r", "d, 'b', window.start, max(t) FROM r GROUP BY 1, ")
            + "window(ts, '1 hour')",
            ["d", "w", "s"],
        ),
        (
            two("d, window.*, max(t) FROM r", "d, window.*, max(t) FROM r GROUP BY 1, ") + "window(ts, '1 hour')",
            ["d", "start", "end"],
        ),
    ],
)
def test_rows_are_told_apart_by_what_a_query_shows_of_keys_and_windows(text, columns):
    [statement] = read(text)
    assert identity_of(statement) == columns


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SELECT window, max(t) FROM r GROUP BY d, window(ts, '1 hour')", "does not show d;"),
        (
            two("d, window.*, max(t) FROM r", "d, window.*, max(t) FROM r GROUP BY 1, ")
            + "window(ts, '20 minutes', '10 minutes')",
            "does not show which window a row is of",
        ),
        (
            two("d, 'a' AS w, window.start, max(t) FROM r", "d, 'a', window.start, max(t) FROM r GROUP BY 1, ")
            + "window(ts, '1 hour')",
            "does not show which window a row is of",
        ),
        ("SELECT d, window, max(t) AS m FROM r GROUP BY d, window(ts, '1 hour') ORDER BY m", "with nothing around it"),
    ],
)
def test_rows_that_cannot_be_told_apart_are_refused(text, problem):
    [statement] = read(text)
    with pytest.raises(QueryError, match=problem):
        identity_of(statement)
