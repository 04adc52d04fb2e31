"""Plans as text give on Spark what the user's own query gives there: for every type of time, zone and setting."""

import contextlib
import re
from html import unescape

import pytest
from comparing import equal
from pyspark.sql import functions as F

import factor_windows as fw
from factor_windows.spark.naive import naive as window_by_window

ZONES = ("UTC", "America/New_York", "Asia/Kolkata")
REPEATED_HOUR = 1730608200
"""Half past one in New York, half an hour before clocks go back from two to one; a sum of the epoch's seconds."""
TIMES = {
    "timestamp": "timestamp_seconds(id * 437 + 1730608200)",
    "timestamp_ntz": "TIMESTAMP_NTZ '2024-11-03 00:31:00.000001' + INTERVAL '437' SECOND * id",
    "date": "date_add(DATE '2024-10-31', CAST(id % 5 AS INT))",
}
WINDOWS = [fw.tumbling("1 hour"), fw.hopping("3 hours", "1 hour"), fw.tumbling("2 days", offset="5 hours")]


@contextlib.contextmanager
def settings(spark, **values):
    """Set some of Spark's settings for a while."""
    names = {name: "spark.sql." + name.replace("_", ".") for name in values}
    before = {name: spark.conf.get(names[name]) for name in values}
    try:
        for name, value in values.items():
            spark.conf.set(names[name], value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(names[name], value)


def contents(frame):
    """The names and types of a result, and its rows as sorted text, in which times have no zone to get wrong."""
    fields = [(field.name, field.dataType.simpleString()) for field in frame.schema]
    texts = frame.selectExpr(*(f"coalesce(CAST(`{name}` AS STRING), 'NULL')" for name, _ in fields)).collect()
    return fields, sorted(map(tuple, texts))


def naive(table, windows, aggregates, keys=("k",)):
    """The same windows in the user's own words."""
    shown = ", ".join(keys)
    return " UNION ALL ".join(
        f"SELECT {shown}, '{window.name}' AS window_id, window.start AS window_start, window.end AS window_end, "
        f"{', '.join(aggregates)} FROM {table} GROUP BY {shown}, window(ts, '{window.range} microseconds', "
        f"'{window.slide} microseconds', '{window.offset} microseconds')"
        for window in windows
    )


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("kind", TIMES)
def test_text_gives_the_times_of_sparks_own_windows_in_every_zone(spark, kind, zone):
    aggregates = ["count(*) AS n", "max(v) AS high"]
    query = fw.Query(time="ts", keys=["k"], windows=WINDOWS, aggregates=aggregates, source="timed")
    with settings(spark, session_timeZone=zone):
        spark.range(60).selectExpr(f"{TIMES[kind]} AS ts", "id % 2 AS k", "id AS v").createOrReplaceTempView("timed")
        expected = contents(spark.sql(naive("timed", WINDOWS, aggregates)))
        assert dict(expected[0])["window_start"] == ("timestamp_ntz" if kind == "timestamp_ntz" else "timestamp")
        assert contents(spark.sql(fw.optimize(query).sql())) == expected


MERGED = [
    "min(x) AS a", "max(s) AS b", "count(*) AS c", "count(v) FILTER (WHERE v > 3) AS d", "sum(v) AS e", "sum(x) AS f",
    "avg(v) AS g", "avg(x) AS h", "avg(f) AS i", "stddev_samp(v) AS j", "corr(v, x) AS k0", "min_by(s, v) AS l",
    "bool_or(v > 5) AS m", "bit_or(v) AS n", "approx_count_distinct(s) AS o", "approx_count_distinct(x) AS p",
    "sum(i) AS q", "avg(i) AS r", "max(struct(v, s)) AS t", "sort_array(collect_set(v)) AS u", "sum(wide) AS w",
]  # fmt: skip
"""One of each kind of state; the last is a decimal that has no room to grow."""


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_text_gives_the_values_and_types_of_the_users_own_query(spark, ansi):
    windows = [fw.tumbling("1 minute"), fw.hopping("3 minutes", "1 minute")]
    spark.range(60).selectExpr(
        "timestamp_seconds(id * 11) AS ts", "CASE WHEN id % 3 > 0 THEN id % 3 END AS k", "id % 7 AS v",
        "CASE WHEN id % 4 > 0 THEN CAST(id % 5 AS DOUBLE) / 2 END AS x", "CAST(id % 5 AS FLOAT) AS f",
        "CASE WHEN id % 2 = 0 THEN 'a' ELSE 'b' END AS s", "make_dt_interval(0, 0, CAST(id AS INT)) AS i",
        "CAST(id AS DECIMAL(38, 2)) AS wide",
    ).createOrReplaceTempView("typed")  # fmt: skip
    aggregates = [each.replace("sort_array(collect_set(v))", "collect_set(v)") for each in MERGED]
    query = fw.Query(time="ts", keys=["k"], windows=windows, aggregates=aggregates, source="typed")
    with settings(spark, ansi_enabled=ansi):
        found = spark.sql(fw.optimize(query).sql())
        fields, rows = contents(found.withColumn("u", F.sort_array("u")))
        expected = contents(spark.sql(naive("typed", windows, MERGED)))
        assert fields == expected[0]
        assert len(rows) == len(expected[1]) == 72
        for ours, sparks in zip(rows, expected[1], strict=True):
            assert all(map(alike, ours, sparks)), (ours, sparks)


def alike(left, right):
    """Compare two texts: exactly, but for the last digits of floating numbers."""
    try:
        return equal(float(left), float(right))
    except ValueError:
        return left == right


BIG = "CASE WHEN id < 4 THEN 9e37BD WHEN id < 8 THEN -9e37BD ELSE 1BD END"


def test_a_sum_that_leaves_its_digits_in_a_part_is_null_in_the_whole(spark):
    windows = [fw.tumbling("1 minute"), fw.tumbling("2 minutes")]
    aggregates = ["sum(big) AS s", "avg(big) IS NULL AS lost"]
    query = fw.Query(time="ts", windows=windows, aggregates=["sum(big) AS s"], keys=["k"], source="wide")
    mean = fw.Query(
        time="ts",
        windows=windows,
        aggregates=["avg(big) AS m"],
        keys=["k"],
        source="wide",
        output=["k", "window_id", "window_start", "window_end", "m IS NULL AS lost"],
    )
    with settings(spark, ansi_enabled="false"):
        rows = "timestamp_seconds(id * 13) AS ts", f"CAST({BIG} AS DECIMAL(38, 0)) AS big", "id % 2 AS k"
        spark.range(30).selectExpr(*rows).createOrReplaceTempView("wide")
        summed, lost = (spark.sql(naive("wide", windows, [each])) for each in aggregates)
        assert contents(spark.sql(fw.optimize(query).sql())) == contents(summed)
        assert contents(spark.sql(fw.optimize(mean).sql())) == contents(lost)


def test_a_mean_of_whole_numbers_does_not_overflow(spark):
    windows = [fw.tumbling("1 minute"), fw.tumbling("2 minutes")]
    query = fw.Query(time="ts", windows=windows, aggregates=["avg(v) AS m"], keys=["k"], source="long")
    spark.range(30).selectExpr(
        "timestamp_seconds(id * 13) AS ts", "9223372036854775807L AS v", "id % 2 AS k"
    ).createOrReplaceTempView("long")
    for ansi in ("true", "false"):
        with settings(spark, ansi_enabled=ansi):
            expected = contents(spark.sql(naive("long", windows, ["avg(v) AS m"])))
            assert contents(spark.sql(fw.optimize(query).sql())) == expected


@pytest.mark.parametrize("sensitive", ["false", "true"])
def test_no_column_of_a_table_is_in_the_way_of_a_hidden_one(spark, sensitive):
    hidden = [
        "fw_time",
        "FW_START",
        "Fw_Node",
        "fw_epoch",
        "fw_to",
        "fw_name",
        "fw_range",
        "fw_shown",
        "fw_slide",
        "feeds",
        "names",
    ]
    with settings(spark, caseSensitive=sensitive):
        others = (f"id * 100 AS {name}" for name in hidden)
        spark.range(40).selectExpr(
            "timestamp_seconds(id * 7) AS ts", "id % 2 AS k", "id AS v", *others
        ).createOrReplaceTempView("level_1")
        windows = [fw.tumbling("1 minute"), fw.hopping("2 minutes", "1 minute")]
        query = fw.Query(
            time="ts",
            windows=windows,
            aggregates=["sum(v) AS s"],
            keys=["k"],
            source="level_1" if sensitive == "true" else "LEVEL_1",
        )
        expected = contents(spark.sql(naive("level_1", windows, ["sum(v) AS s"])))
        assert contents(spark.sql(fw.optimize(query).sql())) == expected
        used = fw.Query(
            time="ts", windows=windows, aggregates=["sum(fw_time) AS s"], keys=["fw_shown % 3 AS k"], source="level_1"
        )
        expected = contents(
            spark.sql(naive("(SELECT ts, fw_shown % 3 AS k, fw_time FROM level_1)", windows, ["sum(fw_time) AS s"]))
        )
        assert contents(spark.sql(fw.optimize(used).sql())) == expected


def test_columns_that_differ_in_case_alone_stay_apart(spark):
    windows = [fw.tumbling("1 minute"), fw.tumbling("2 minutes")]
    with settings(spark, caseSensitive="true"):
        spark.range(40).selectExpr(
            "timestamp_seconds(id * 7) AS ts", "id % 2 AS k", "id % 3 AS K", "id AS v"
        ).createOrReplaceTempView("cased")
        query = fw.Query(
            time="ts",
            windows=windows,
            aggregates=["sum(v + K) AS s", "max(struct(K, k)) AS top"],
            keys=["k"],
            source="cased",
        )
        expected = contents(spark.sql(naive("cased", windows, ["sum(v + K) AS s", "max(struct(K, k)) AS top"])))
        assert contents(spark.sql(fw.optimize(query).sql())) == expected


def test_a_column_that_is_written_in_two_cases_is_read_once_for_each(spark):
    windows = [fw.tumbling("1 minute"), fw.tumbling("2 minutes")]
    spark.range(40).selectExpr("timestamp_seconds(id * 7) AS ts", "id % 2 AS k").createOrReplaceTempView("cased")
    query = fw.Query(time="ts", windows=windows, aggregates=["sum(K + k) AS s"], keys=["k"], source="cased")
    expected = contents(spark.sql(naive("cased", windows, ["sum(K + k) AS s"])))
    assert contents(spark.sql(fw.optimize(query).sql())) == expected


def test_distinct_instants_of_a_repeated_hour_are_counted_apart(spark):
    windows = [fw.tumbling("1 hour"), fw.tumbling("1 day")]
    query = fw.Query(time="ts", windows=windows, aggregates=["approx_count_distinct(ts) AS n"], source="repeated")
    with settings(spark, session_timeZone="America/New_York"):
        spark.range(180).selectExpr(
            f"timestamp_seconds(id * 60 + {REPEATED_HOUR - 1800}) AS ts"
        ).createOrReplaceTempView("repeated")
        rows = spark.sql(fw.optimize(query).sql()).collect()
    assert sorted((row.window_id, row.n) for row in rows) == [("1 day", 180)] + [("1 hour", 60)] * 3


def test_braces_in_a_users_text_are_left_alone(spark):
    inner = "SELECT count(*) AS n FROM braced GROUP BY window(ts, '1 hour')"
    text = f"SELECT '{{result}} {{{{x}}}}' AS braces, n FROM ({inner}) AS c"
    spark.range(9).selectExpr("timestamp_seconds(id * 7) AS ts").createOrReplaceTempView("braced")
    query = fw.parse(text)
    assert contents(spark.sql(fw.optimize(query).sql())) == contents(spark.sql(text))


DASHBOARDS = {
    "devices": fw.Query(
        time="ts", keys=["k"], windows=[fw.tumbling("1 minute", name="short"), fw.tumbling("5 minutes")],
        aggregates=["avg(v) AS mean", "max(v) AS high"], where="ok", source="board", name="devices",
    ),
    "all": fw.Query(
        time="ts", windows=[fw.tumbling("5 minutes"), fw.hopping("10 minutes", "5 minutes")],
        aggregates=["max(v) AS high"], where="ok AND v > 3", having="high > 5", source="board", name="all",
    ),
    "sites": fw.Query(
        time="ts", keys=["upper(site) AS s", "k"], windows=[fw.tumbling("10 minutes")],
        aggregates=["count(*) AS n", "sum(v) AS total"], output=["s", "n + total AS both", "window_end"],
        source="board", name="sites",
    ),
    "odd": fw.Query(time="ts", windows=[fw.tumbling("10 minutes")], aggregates=["median(v) AS mid"], source="board",
                    name="odd"),
}  # fmt: skip


def statements(text):
    """Take the text of several queries apart, by their names."""
    parts = [part.partition("\n") for part in text.split(";\n\n")]
    return {head.removeprefix("-- query "): body for head, _, body in parts}


def test_several_queries_are_written_as_a_statement_for_each(spark):
    spark.range(120).selectExpr(
        "timestamp_seconds(id * 11) AS ts", "id % 3 AS k", "id % 7 AS v", "id % 5 > 0 AS ok",
        "CASE WHEN id % 2 = 0 THEN 'a' ELSE 'b' END AS site",
    ).createOrReplaceTempView("board")  # fmt: skip
    plan = fw.optimize(list(DASHBOARDS.values()))
    written = statements(plan.sql())
    assert list(written) == list(DASHBOARDS)
    for name, query in DASHBOARDS.items():
        expected = contents(fw.optimize(query, search="none").run(spark.table("board")))
        assert contents(spark.sql(written[name])) == expected
    with pytest.raises(fw.OptionError, match="dialect 'oracle' is not written; allowed are spark, duckdb, flink"):
        plan.sql(dialect="oracle")


def test_the_page_of_several_queries_shows_sql_that_runs(spark, inside, tmp_path):
    spark.range(200).selectExpr(
        "timestamp_seconds(id * 11) AS ts", "id % 3 AS k", "id % 7 AS v", "id % 5 > 0 AS ok"
    ).createOrReplaceTempView("board")
    queries = [
        "SELECT k, window.start AS s, avg(v) AS mean FROM board WHERE ok GROUP BY k, window(ts, '1 minute')",
        "SELECT window.start AS s, avg(v) AS mean, count(*) AS n FROM board WHERE v > 2 "
        "GROUP BY window(ts, '10 minutes') HAVING count(*) > 3",
    ]
    script, page = tmp_path / "dashboards.sql", tmp_path / "page.html"
    script.write_text(";\n".join(queries), encoding="utf-8")
    assert inside("explain", "--query", script, "--html", page)[0] == 0
    shown = re.search(r'<code id="sql-spark">(.*?)</code>', page.read_text(encoding="utf-8"), re.DOTALL)
    written = statements(unescape(re.sub(r"<[^>]*>", "", shown[1])).strip())
    assert list(written) == ["query_1", "query_2"]
    for text, query in zip(written.values(), queries, strict=True):
        assert contents(spark.sql(text)) == contents(spark.sql(query))


def test_a_query_that_cannot_be_written_is_named():
    plan = fw.optimize(list(DASHBOARDS.values()))
    with pytest.raises(fw.QueryError, match=r"^query 'odd': median\(v\) cannot be written for Flink"):
        plan.sql(dialect="flink")


@pytest.mark.parametrize("names", ["true", "false"])
def test_what_stands_in_double_quotes_is_a_name_in_text_too_where_the_session_says_so(spark, names):
    before = spark.conf.get("spark.sql.ansi.doubleQuotedIdentifiers")
    frame = spark.range(40).selectExpr("timestamp_seconds(id * 7) AS ts", "id % 3 AS `my key`", "'x' AS k", "id AS v")
    frame.createOrReplaceTempView("quoting")
    windows = [fw.tumbling("1m"), fw.tumbling("2m")]
    keys = ['"my key" AS a', 'concat("k", k) AS b']
    query = fw.Query(time="ts", keys=keys, windows=windows, aggregates=["max(v) AS m"], source="quoting")
    try:
        spark.conf.set("spark.sql.ansi.doubleQuotedIdentifiers", names)
        found = sorted(map(tuple, spark.sql(fw.optimize(query).sql()).collect()))
        assert found == sorted(map(tuple, window_by_window(query, frame).collect()))
        assert {row[0] for row in found} == ({0, 1, 2} if names == "true" else {"my key"})
    finally:
        spark.conf.set("spark.sql.ansi.doubleQuotedIdentifiers", before)
