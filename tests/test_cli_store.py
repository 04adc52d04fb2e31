"""`factor-windows store`: files in, windows out."""

import json

import duckdb
import pytest
from comparing import assert_equal, by_instance

import factor_windows as fw

WINDOWS = ("-w", "1h", "-w", "6h/1h", "-k", "device", "-f", "avg(t) AS mean_t", "-f", "count(*) AS n")
QUERY = fw.Query(
    time="ts",
    keys=["device"],
    windows=[fw.tumbling("1 hour"), fw.hopping("6 hours", "1 hour")],
    aggregates=["avg(t) AS mean_t", "count(*) AS n"],
)
SCRIPT = """
INSERT INTO devices SELECT device, window.start AS s, avg(t) AS m FROM r GROUP BY device, window(ts, '20 minutes');
INSERT INTO hours SELECT window.start AS s, count(*) AS n FROM r WHERE t > 2 GROUP BY window(ts, '1 hour')
"""


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    """Two files of events, of a day each, and a text that is none."""
    folder = tmp_path_factory.mktemp("days")
    with duckdb.connect() as db:
        for day in (1, 2):
            db.execute(
                f"COPY (SELECT 'd' || (i % 3) AS device, TIMESTAMPTZ '2024-01-0{day} 00:00:00+00' + "
                f"INTERVAL (i * 610) SECOND AS ts, i % 17 / 3.0 AS t FROM range(100) t(i)) TO '{folder}/{day}.parquet'"
            )
    (folder / "notes.txt").write_text("no events")
    return folder


@pytest.fixture
def store(inside, tmp_path):
    """Run a command of the store in a folder; return its output, or with `code` what it says is wrong."""
    place = tmp_path / "store"

    def run(name, *arguments, code=0):
        left, out, err = inside("store", name, place, *arguments)
        assert left == code, err
        return err if code else json.loads(out) if "--json" in arguments else out

    return run


@pytest.fixture
def filled(store, days):
    """The same, of a store that has two days of events."""
    store("create", *WINDOWS)
    store("append", days / "1.parquet", days / "2.parquet")
    return store


def test_a_store_is_created_without_a_jvm(command, tmp_path, monkeypatch):
    monkeypatch.setattr("factor_windows.spark.session.session", lambda **_: pytest.fail("Spark was started"))
    code, out, err = command("store", "create", tmp_path / "store", *WINDOWS, "--finest", "15m", "--delay", "1h")
    assert (code, err) == (0, "")
    assert out.splitlines()[1:] == ["panes of 15 minutes", "panes of 1 hour"]
    described = json.loads(command("store", "describe", tmp_path / "store", "--json")[1])
    assert (described["version"], described["delay"], described["last_event"]) == (0, "1 hour", None)
    assert [each["panes"] for each in described["resolutions"]] == ["15 minutes", "1 hour"]
    code, _, err = command("store", "read", tmp_path / "nowhere")
    assert (code, "nowhere is not a store" in err) == (2, True)


def test_a_file_that_is_appended_twice_counts_once(store, days, spark, tmp_path):
    store("create", *WINDOWS)
    assert store("append", days / "1.parquet") == f"version 1: {days}/1.parquet\n"
    again = store("append", f"{days}/../{days.name}/1.parquet", f"file://{days}/2.parquet", "--json")
    assert [(each["version"], each["added"]) for each in again["batches"]] == [(1, False), (2, True)]
    assert "was there already" in store("append", days / "2.parquet")
    written = store("read", "--output", tmp_path / "out.parquet", "--json")
    found = by_instance(QUERY, spark.read.parquet(written["output"]))
    events = spark.read.parquet(f"{days}/*.parquet")
    every = fw.aggregate(
        events, time="ts", keys=QUERY.keys, windows=QUERY.windows, aggregates=QUERY.aggregates, statistics=None
    )
    assert_equal(QUERY, found, by_instance(QUERY, every))
    assert (written["version"], written["rows"]) == (2, len(found))
    assert "exists already" in store("read", "--output", tmp_path / "out.parquet", code=2)


def test_a_table_is_appended_under_a_name(store, days, spark):
    store("create", *WINDOWS)
    spark.read.parquet(f"{days}/1.parquet").createOrReplaceTempView("readings")
    assert store("append", "readings", "--batch", "first") == "version 1: readings\n"
    assert store("append", "readings", "--batch", "second", "--json")["version"] == 2
    assert "there is no file and no table 'no_readings'" in store("append", "no_readings", code=2)
    assert "--batch names one file" in store("append", "readings", "readings", "--batch", "third", code=2)


def test_rows_are_shown_or_printed_as_json(filled):
    shown = filled("read", "--window", "1d", "--since", "2024-01-02")
    assert shown.count("2024-01-02 00:00:00") == 3
    assert shown.splitlines()[-1] == "version 2"
    read = filled("read", "-w", "1d", "--until", "2024-01-02", "--json")
    assert (read["version"], read["rows"]) == (2, 3)
    assert {row["window_start"] for row in read["result"]} == {"2024-01-01T00:00:00.000000Z"}
    assert sum(row["n"] for row in read["result"]) == 100
    assert "only showing top 20 rows" in filled("read")


def test_changes_are_the_rows_since_a_version(filled, tmp_path):
    changed = filled("changes", "--since", "1", "-w", "1d", "--delay", "1h", "--json")
    assert {(row["window_start"][:10], row["is_final"]) for row in changed["result"]} == {
        ("2024-01-01", True),
        ("2024-01-02", False),
    }
    assert filled("changes", "--since", changed["version"], "--json")["result"] == []
    assert "wrote" in filled("changes", "--since", "0", "--output", tmp_path / "changes.csv")
    assert "not among the versions 0 to 2" in filled("changes", "--since", "9", code=2)


def test_what_was_appended_is_compacted_and_expires(filled):
    assert "appended since the last compaction: 102 rows in 2 files" in filled("explain")
    compacted = filled("compact", "--json")
    assert (compacted["version"], compacted["before"]["files"], compacted["after"]["files"]) == (3, 2, 1)
    assert filled("explain", "-w", "2h").splitlines()[:2] == [
        "panes of 1 hour: 102 rows in 1 file, compact",
        "  2 hours",
    ]
    assert filled("expire", "12h", "--keep", "2h").splitlines()[1].split() == ["rows", "files", "bytes"]
    described = filled("describe", "--json")
    assert [(each["panes"], each["since"]) for each in described["resolutions"]] == [
        ("1 hour", "2024-01-02 04:46:30+00:00"),
        ("2 hours", None),
    ]
    shown = filled("describe")
    assert "batches     2\n" in shown
    assert "1 hour, appended  the last compaction" in shown
    assert "have expired" in filled("read", "--since", "2024-01-01", code=2)
    assert "is a session" in filled("expire", "1d", "--keep", "gap1h", code=2)


def test_a_store_of_several_queries_gives_each_under_its_name(store, days, tmp_path):
    script = tmp_path / "script.sql"
    script.write_text(SCRIPT)
    assert store("create", "--query", script).splitlines()[1:] == ["panes of 20 minutes"]
    store("append", days / "1.parquet")
    lines = store("read").splitlines()
    assert lines.index("devices") < lines.index("hours")
    written = store("read", "--output", tmp_path / "results", "--json")["results"]
    assert [each["name"] for each in written] == ["devices", "hours"]
    for each in written:
        with duckdb.connect() as db:
            [[count]] = db.execute(f"SELECT count(*) FROM '{each['output']}/*.parquet'").fetchall()
        assert count == each["rows"] > 0
    assert "there are 2 results but one --output" in store("read", "--output", tmp_path / "x.csv", code=2)
    assert [each["rows"] for each in store("read", "-w", "2d", "--json")["results"]] == [3, 1]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["create", "{new}", "-w", "0m", "-f", "count(*)"], "range 0 seconds is not positive"),
        (["create", "{new}", "-w", "1h"], "there is no function"),
        (["create", "{new}", "-f", "count(*)"], "the query has no window"),
        (["create", "{new}", "-q", "{sql}", "-k", "k"], "--key cannot be combined with --query"),
        (["create", "{new}", "-q", "{joined}"], "a store takes events as they are"),
        (["create", "{new}", "-q", "{two}"], "the queries read r, s; a store has the events of one table"),
        (["create", "{sql}/new", "-w", "1h", "-f", "count(*)"], "cannot use"),
        (["create", "{store}", "-w", "1h", "-f", "count(*)"], "there is a store in"),
        (["append", "{store}", "{days}/notes.txt"], "ends in .txt"),
        (["append", "{store}", "{days}/3.parquet"], "there is no file"),
        (["read", "{new}"], "is not a store"),
        (["read", "{store}", "-w", "20parsecs"], "unknown unit 'parsecs'"),
        (["read", "{store}", "-w", "7m"], "cannot be made of panes of 1 hour"),
        (["read", "{store}", "--since", "noon"], "since 'noon' is not a time"),
        (["read", "{store}", "--output", "{new}.txt"], "ends in .txt"),
        (["read", "{store}", "--overwrite"], "--overwrite does nothing without --output"),
        (["read", "{store}", "--output", "{store}", "--overwrite"], "is inside the store or contains it"),
        (["expire", "{store}", "soon"], "'soon'"),
    ],
)
def test_a_mistake_is_one_sentence(inside, held, arguments, problem):
    code, out, err = inside("store", *(text.format(**held) for text in arguments))
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert problem in err
    assert err.count("\n") == 1


@pytest.fixture(scope="module")
def held(spark, days, tmp_path_factory):
    """Places: a store with events, one where nothing is, and files of SQL."""
    folder = tmp_path_factory.mktemp("held")
    fw.Store.create(spark, folder / "store", QUERY).append(spark.read.parquet(f"{days}/1.parquet"))
    select = "SELECT k, count(*) AS n FROM {} GROUP BY k, window(ts, '1 hour')"
    texts = {
        "sql": select.format("r"),
        "joined": select.format("r JOIN s USING (k)"),
        "two": f"{select.format('r')}; {select.format('s')}",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return {name: folder / name for name in (*texts, "store", "new")} | {"days": days}
