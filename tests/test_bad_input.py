"""Every mistake ends with one sentence: the tables of docs/errors.md, and what the command line leaves behind."""

import re
import resource
from pathlib import Path

import pytest

import factor_windows as fw

TEXT = (Path(__file__).parents[1] / "docs" / "errors.md").read_text(encoding="utf-8")
MISTAKES = re.findall(r"^\| `(fw\..+?)` \| `(.+?)` \|$", TEXT, flags=re.MULTILINE)
FAULTS = {
    fault: re.findall(r"`([^`]+)`", says)[0] for fault, says in re.findall(r"^\| (an? .+?) \| (.+?) \|$", TEXT, re.M)
}
QUERY = "SELECT k, window.start AS s, {} AS x FROM r GROUP BY k, window({}, '10 seconds')"


@pytest.mark.parametrize(("code", "says"), MISTAKES)
def test_a_mistake_says_what_the_page_says(code, says):
    with pytest.raises(fw.FactorWindowsError, match=re.escape(says)) as raised:
        eval(code, {"fw": fw})
    assert "\n" not in str(raised.value)


def test_the_page_has_all_faults():
    assert len(MISTAKES) == 13
    assert len(FAULTS) == 10


@pytest.fixture
def run(spark, tmp_path, inside):
    """Run a query over some rows from the command line, and return its exit code and the last line it says."""

    def run(text, *options, place=None):
        (tmp_path / "query.sql").write_text(text, encoding="utf-8")
        if place is None:
            place = tmp_path / "in.parquet"
            readings(spark).write.mode("overwrite").parquet(str(place))
        command = ("run", tmp_path / "query.sql", "--input", f"r={place}", "--output", tmp_path / "out.parquet")
        code, _, said = inside(*command, *options)
        return code, (said.strip().splitlines() or [""])[-1]

    return run


def readings(spark):
    return spark.range(100).selectExpr(
        "timestamp_seconds(id) AS ts",
        "CAST(timestamp_seconds(id) AS STRING) AS at",
        "id % 2 AS k",
        "'x' AS word",
        "id AS v",
    )


def is_whole(place):
    return (place / "_SUCCESS").exists()


def test_a_query_that_is_right_runs(run, tmp_path):
    assert run(QUERY.format("sum(v)", "ts"))[0] == 0
    assert is_whole(tmp_path / "out.parquet")


@pytest.mark.parametrize(
    ("fault", "aggregate", "time", "code"),
    [
        ("a text column summed, with text that is no number", "sum(word)", "ts", 3),
        ("a time column that is text", "sum(v)", "at", 2),
        ("a column that is not there", "sum(nothing)", "ts", 2),
    ],
)
def test_a_column_that_does_not_fit_is_named(run, tmp_path, fault, aggregate, time, code):
    found, said = run(QUERY.format(aggregate, time))
    assert found == code
    assert said.startswith("error: ")
    assert FAULTS[fault] in said
    assert not is_whole(tmp_path / "out.parquet")


def test_a_column_that_is_there_twice_is_named(spark):
    twice = readings(spark).alias("a").join(readings(spark).alias("b"), "ts")
    query = fw.Query(time="ts", windows=[fw.tumbling("10s"), fw.tumbling("20s")], aggregates=["sum(v)"])
    with pytest.raises(fw.QueryError, match=FAULTS["a column that is there twice"]):
        fw.optimize(query).run(twice)


def test_a_stream_without_a_watermark_is_refused(spark):
    query = fw.Query(time="timestamp", windows=[fw.tumbling("10s")], aggregates=["sum(value)"])
    with pytest.raises(fw.QueryError, match=FAULTS["a stream without a watermark"]):
        fw.optimize(query).run(spark.readStream.format("rate").load())


def test_a_corrupt_file_ends_the_command(run, tmp_path):
    place = tmp_path / "corrupt.parquet"
    place.write_bytes(b"PAR1 this is not what it says it is")
    code, said = run(QUERY.format("sum(v)", "ts"), place=place)
    assert code == 3
    assert FAULTS["a corrupt Parquet file"] in said
    assert not (tmp_path / "out.parquet").exists()


def test_an_input_that_is_not_there_is_named(run, tmp_path):
    code, said = run(QUERY.format("sum(v)", "ts"), place=tmp_path / "nowhere.parquet")
    assert (code, FAULTS["an input that is not there"] in said) == (2, True)


def test_an_output_that_is_there_is_kept(run, spark, tmp_path):
    place = tmp_path / "out.parquet"
    spark.range(3).write.parquet(str(place))
    code, said = run(QUERY.format("sum(v)", "ts"))
    assert code == 2
    assert FAULTS["an output that is there already"] in said
    assert spark.read.parquet(str(place)).count() == 3
    assert run(QUERY.format("sum(v)", "ts"), "--overwrite")[0] == 0
    assert spark.read.parquet(str(place)).count() == 20


def test_a_full_disk_leaves_nothing_that_looks_whole(run, spark, tmp_path):
    many = spark.range(200_000).selectExpr("timestamp_seconds(id) AS ts", "xxhash64(id) AS k", "id AS v")
    java = spark.sparkContext._gateway.proc.pid
    before = resource.prlimit(java, resource.RLIMIT_FSIZE)
    many.write.parquet(str(tmp_path / "in.parquet"))
    # No file may grow beyond this: what a full disk does to whoever writes.
    resource.prlimit(java, resource.RLIMIT_FSIZE, (500_000, before[1]))
    try:
        code, said = run(QUERY.format("sum(v)", "ts"), place=tmp_path / "in.parquet")
    finally:
        resource.prlimit(java, resource.RLIMIT_FSIZE, before)
    assert code == 3
    assert FAULTS["a disk that is full"] in said
    assert not is_whole(tmp_path / "out.parquet")


def test_user_text_is_never_executed():
    root = Path(fw.__file__).parent
    for path in root.rglob("*.py"):
        code = path.read_text(encoding="utf-8")
        found = re.findall(r"(?<![\w.])(eval|exec|__import__|pickle|os\.system|shell=True)\b", code)
        # Plans are compiled, by physical.compile.
        found += re.findall(r"(?<![\w.])(?<!def )compile\(", code)
        assert not found, f"{path.name} has {found}"


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "a'; DROP TABLE r; --", "`; DROP TABLE r`", "{v}", "\\' OR 1=1", "x\ny"]
)
def test_a_column_of_any_name_is_only_a_name(spark, name):
    events = spark.range(20).selectExpr("timestamp_seconds(id) AS ts", "id AS v").withColumnRenamed("v", name)
    quoted = "`" + name.replace("`", "``") + "`"
    query = fw.Query(time="ts", windows=[fw.tumbling("5s"), fw.tumbling("10s")], aggregates=[f"sum({quoted}) AS total"])
    plan = fw.optimize(query)
    assert plan.run(events).groupBy("window_id").sum("total").collect()[0][1] == 190
    page = plan.to_html()
    assert "<script>alert(1)" not in page
    assert "<script>alert" not in plan._repr_html_()
