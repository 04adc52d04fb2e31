"""SQL text is read as it is meant, or refused with the place and the reason."""

from dataclasses import replace

import pytest

from factor_windows import Query, SqlError, hopping, optimize, parse, tumbling
from factor_windows.sql.names import Tables
from factor_windows.sql.parse import read

MINUTES = (20, 30, 40)
AZURE = (
    "SELECT DeviceID, System.Window().Id AS w, MIN(T) AS min_t FROM Input TIMESTAMP BY EntryTime GROUP BY DeviceID, "
    "Windows(Window('20 min', TumblingWindow(minute, 20)), Window('30 min', TumblingWindow(minute, 30)), "
    "Window('40 min', TumblingWindow(minute, 40)))"
)
SPARK = " UNION ALL ".join(
    f"SELECT DeviceID, '{n} min' AS w, MIN(T) AS min_t FROM Input GROUP BY window(EntryTime, '{n} minutes'), DeviceID"
    for n in MINUTES
)
FLINK = " UNION ALL ".join(
    f"SELECT DeviceID, '{n} min' AS w, MIN(T) AS min_t FROM TABLE(TUMBLE(TABLE Input, DESCRIPTOR(EntryTime), "
    f"INTERVAL '{n}' MINUTES)) GROUP BY DeviceID, window_start, window_end"
    for n in MINUTES
)


@pytest.mark.parametrize("text", [AZURE, SPARK, FLINK], ids=["azure", "spark", "flink"])
def test_the_papers_query_reads_in_every_dialect(text):
    query = parse(text)
    assert [window.range // 60_000_000 for window in query.windows] == list(MINUTES)
    assert (query.time, query.source, query.columns) == ("EntryTime", "Input", ("DeviceID", "w", "min_t"))
    plan = optimize(query)
    assert (plan.nodes[0].name, plan.nodes[0].exposed) == ("10 minutes", False)


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("TumblingWindow(minute, 10)", tumbling("10m")),
        ("TumblingWindow(mi, 10)", tumbling("10m")),
        ("TumblingWindow(n, 10)", tumbling("10m")),
        ("tumblingwindow(HH, 1)", tumbling("1h")),
        ("TumblingWindow(dd, 1)", tumbling("1d")),
        ("TumblingWindow(ms, 250)", tumbling("250ms")),
        ("TumblingWindow(second, 10, 3)", tumbling("10s", offset="3s")),
        ("TumblingWindow(Duration(hour, 1), Offset(minute, 5))", tumbling("1h", offset="5m")),
        ("TumblingWindow(Duration(hour, 1), Offset(millisecond, -1))", tumbling("1h", offset="-1ms")),
        ("HoppingWindow(second, 60, 10)", hopping("60s", "10s")),
        ("HoppingWindow(ss, 60, 10, 5)", hopping("60s", "10s", offset="5s")),
        ("HoppingWindow(Duration(hour, 1), Hop(minute, 5))", hopping("1h", "5m")),
        ("HoppingWindow(Duration(hour, 1), Hop(minute, 5), Offset(minute, 2))", hopping("1h", "5m", offset="2m")),
        ("window(ts, '20 minutes')", tumbling("20m")),
        ("window(ts, '1 hour', '10 minutes')", hopping("1h", "10m")),
        ("window(ts, '1 hour', '10 minutes', '5 minutes')", hopping("1h", "10m", offset="5m")),
        ("window(ts, INTERVAL '20' MINUTES)", tumbling("20m")),
        ("WINDOWS('20 minutes')", tumbling("20m")),
        ("WINDOWS(ts, '1 hour SLIDE 10 minutes')", hopping("1h", "10m")),
        ("WINDOWS('1 hour SLIDE 10 minutes OFFSET 5 minutes')", hopping("1h", "10m", offset="5m")),
    ],
)
def test_a_window_is_read(text, window):
    query = parse(f"SELECT max(v) AS m FROM r TIMESTAMP BY ts GROUP BY {text}")
    assert query.windows == (window,)
    assert query.time == "ts"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("SELECT max(v) AS m FROM r WHERE k <> 'it\\'s' GROUP BY window(ts, '1 hour')", "k <> 'it\\'s'"),
        ("SELECT max(v) AS m FROM r WHERE k <> \"it's\" GROUP BY window(ts, '1 hour')", 'k <> "it\'s"'),
        (
            "SELECT MAX(v) AS m FROM r TIMESTAMP BY ts WHERE [k] <> 'C:\\' GROUP BY TumblingWindow(hour, 1)",
            "`k` <> 'C:\\\\'",
        ),
    ],
)
def test_each_dialect_keeps_its_own_quotes(text, where):
    assert parse(text).where == where


def test_windows_keep_their_ids():
    text = (
        "SELECT k, window_id, max(v) FROM r GROUP BY k, WINDOWS(ts, '20 minutes', '1 hour SLIDE 10 minutes' AS hourly)"
    )
    assert parse(text).window_names == ("20 minutes", "hourly")


@pytest.mark.parametrize(
    ("call", "window"),
    [
        ("HOP(TABLE r, DESCRIPTOR(ts), INTERVAL '5' MINUTE, INTERVAL '1' HOUR)", hopping("1h", "5m")),
        ("TUMBLE(TABLE r, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '3' SECOND)", tumbling("10s", offset="3s")),
    ],
)
def test_a_flink_window_is_read(call, window):
    query = parse(f"SELECT k, window_end, window_time, sum(v) FROM TABLE({call}) GROUP BY k, window_start, window_end")
    assert query.windows == (window,)
    assert query.output[2].startswith("window_end - INTERVAL '1' MILLISECOND")


def test_expressions_over_aggregates_conditions_and_constants_survive():
    query = parse(
        "SELECT upper(city) AS city, window.start, max(t) - min(t) AS spread, sum(x) / count(*), 'abc' AS c FROM r "
        "WHERE t > 0 AND x < 5 GROUP BY upper(city), window(ts, '1 hour') HAVING count(*) > 2"
    )
    assert query.columns == ("city", "start", "spread", "(sum(x) / count(1))", "c")
    assert query.output[2:] == (
        "`value_0` - `value_1` AS `spread`",
        "`value_2` / `value_3` AS `(sum(x) / count(1))`",
        "'abc' AS `c`",
    )
    assert (query.where, query.having) == ("t > 0 AND x < 5", "(`value_3` > 2)")
    assert query.parsed_keys[0].sql == "upper(city)"


def test_group_by_goes_by_place_and_by_alias():
    by_place = parse("SELECT lower(k) AS key, window(ts, '1 hour') AS w, max(v) AS m FROM r GROUP BY 1, 2")
    by_alias = parse("SELECT lower(k) AS key, window(ts, '1 hour') AS w, max(v) AS m FROM r GROUP BY key, w")
    assert by_place == replace(by_alias, absent=())
    assert by_alias.absent == ("key", "w")
    assert by_place.parsed_keys[0].sql == "lower(k)"


def test_an_alias_does_not_hide_the_column_it_is_made_of():
    query = parse("SELECT upper(k) AS k, max(v) AS m FROM r GROUP BY k, window(ts, '1 hour')")
    assert (query.parsed_keys[0].sql, query.output[0]) == ("k", "upper(`k`) AS `k`")


def test_branches_with_other_aggregates_and_conditions_share_one_query():
    query = parse(
        "SELECT k, min(v) AS x FROM r WHERE a GROUP BY k, window(ts, '10 minutes') "
        "UNION ALL SELECT k, max(v) FROM r WHERE b GROUP BY window(ts, '20 minutes'), k"
    )
    assert isinstance(query, Query)
    assert len(query.windows) == 2
    assert query.where == "(a) OR (b)"
    assert "FILTER(WHERE a)" in query.aggregates[0]


def test_branches_that_cannot_share_stay_apart_and_it_says_why():
    [statement] = read(
        "SELECT k, min(v) AS x FROM r GROUP BY k, window(ts, '10 minutes') "
        "UNION ALL SELECT s, max(v) FROM r GROUP BY s, window(ts, '20 minutes')"
    )
    assert len(statement.queries) == 2
    assert statement.notes == ("2 queries share one pass, since the SELECTs differ in their keys",)
    assert statement.outer == "SELECT * FROM {result0} UNION ALL SELECT * FROM {result1}"
    assert isinstance(parse("SELECT max(v) FROM r GROUP BY window(ts, '1 hour') UNION ALL "
                            "SELECT median(v) FROM r GROUP BY window(ts, '2 hours')"), list)  # fmt: skip


def test_what_is_around_the_windows_stays_around_them():
    [statement] = read(
        "WITH clean AS (SELECT * FROM raw WHERE ok), agg AS (SELECT c.k, System.Timestamp() AS t, AVG(v) AS m "
        "FROM clean c TIMESTAMP BY ts GROUP BY c.k, HoppingWindow(minute, 10, 5)) "
        "SELECT a.*, r.name INTO out FROM agg a JOIN ref r ON r.k = a.k WHERE m > 2"
    )
    assert statement.into == "out"
    assert "JOIN ref AS r ON r.k = a.k" in statement.outer
    assert statement.queries[0].source.startswith("(WITH clean AS (SELECT * FROM raw WHERE ok) SELECT ts AS `ts`")


def test_a_join_before_the_windows_is_part_of_the_source():
    query = parse(
        "SELECT i.k, r.name, window.end AS e, sum(v) AS s FROM input i JOIN ref r ON i.k = r.k WHERE i.x > 1 "
        "GROUP BY i.k, r.name, window(i.ts, '10 minutes') ORDER BY e LIMIT 5"
    )
    assert "JOIN ref AS r ON i.k = r.k WHERE i.x > 1" in query.source
    assert query.outer == "SELECT * FROM {result} ORDER BY e LIMIT 5"


AZURE_EXAMPLES = {
    "six tumbling windows": (
        "SELECT System.Window().Id, SUM(v) AS total FROM r TIMESTAMP BY ts GROUP BY Windows("
        + ", ".join(f"Window('{n} minutes', TumblingWindow(minute, {n}))" for n in range(10, 70, 10))
        + ")",
        6,
    ),
    "a tumbling window and three hopping ones": (
        "SELECT k, System.Window().Id AS id, COUNT(*) AS n FROM r TIMESTAMP BY ts GROUP BY k, Windows("
        "TumblingWindow(minute, 1), HoppingWindow(minute, 15, 1), HoppingWindow(minute, 30, 1), "
        "HoppingWindow(minute, 60, 1))",
        4,
    ),
    "hopping windows joined with reference data": (
        "WITH counted AS (SELECT k, System.Window().Id AS id, System.Timestamp() AS t, COUNT(*) AS n "
        "FROM r TIMESTAMP BY ts GROUP BY k, Windows("
        + ", ".join(f"Window('{n} min', HoppingWindow(minute, {n}, 5))" for n in range(10, 70, 10))
        + ")) SELECT c.k, c.id, c.t, c.n, ref.limit_n INTO alerts "
        "FROM counted c JOIN ref ON c.k = ref.k AND c.id = ref.id WHERE c.n > ref.limit_n",
        6,
    ),
}


@pytest.mark.parametrize("name", AZURE_EXAMPLES)
def test_the_examples_of_azures_documentation_are_read(name):
    text, count = AZURE_EXAMPLES[name]
    query = parse(text)
    assert len(query.windows) == count
    assert optimize(query).sql(dialect="duckdb")


BAD = {
    "an empty text": ("", "empty"),
    "only a comment": ("-- nothing", "no statement"),
    "no SQL at all": ("hello there you", "valid SQL|SELECT"),
    "ten thousand parentheses": ("SELECT " + "(" * 10_000 + "1" + ")" * 10_000, "nest more than"),
    "no window": ("SELECT k, max(v) FROM r GROUP BY k", "no window"),
    "no FROM": ("SELECT max(v) GROUP BY window(ts, '1 hour')", "no FROM"),
    "an update": ("UPDATE r SET a = 1", "not supported"),
    "a dropped table": ("DROP TABLE r", "not supported"),
    "a session without a gap": ("SELECT max(v) FROM r GROUP BY session_window(ts)", "session_window.ts, '30 minutes'"),
    "a gap for each event": (
        "SELECT max(v) FROM r GROUP BY session_window(ts, CASE WHEN v > 1 THEN '5 minutes' ELSE '1 hour' END)",
        "is not a length of time",
    ),
    "a session that hops": (
        "SELECT max(v) FROM r GROUP BY WINDOWS(ts, 'SESSION 5 minutes SLIDE 1 minute')",
        "is a session, which has no SLIDE",
    ),
    "a session in a list": (
        "SELECT max(v) FROM r GROUP BY WINDOWS(ts, session_window(ts, '5 minutes'))",
        "write such as 'SESSION 30 minutes'",
    ),
    "Flink's session as a table": (
        "SELECT max(v) FROM TABLE(SESSION(TABLE r, DESCRIPTOR(ts), INTERVAL '5' MINUTE)) GROUP BY window_end",
        "write GROUP BY k, SESSION",
    ),
    "Flink's session with an offset": (
        "SELECT max(v) FROM r GROUP BY SESSION(ts, INTERVAL '5' MINUTE, INTERVAL '1' MINUTE)",
        "SESSION is written SESSION.ts, gap.",
    ),
    "Azure's session windows": (
        "SELECT max(v) FROM r TIMESTAMP BY ts GROUP BY SessionWindow(minute, 5)",
        "SessionWind",
    ),
    "sliding windows": ("SELECT max(v) FROM r TIMESTAMP BY ts GROUP BY SlidingWindow(minute, 5)", "SlidingWindow is"),
    "a slide over its range": (
        "SELECT max(v) FROM r GROUP BY window(ts, '1 hour', '2 hours')",
        "slide 2 hours is long",
    ),
    "a window of no length": ("SELECT max(v) FROM r GROUP BY window(ts, '0 seconds')", "not positive"),
    "a length without a unit": ("SELECT max(v) FROM r GROUP BY window(ts, '20')", "cannot be read"),
    "a month": ("SELECT max(v) FROM r GROUP BY window(ts, '1 month')", "unit 'month'"),
    "an unknown unit": ("SELECT max(v) FROM r TIMESTAMP BY ts GROUP BY TumblingWindow(fortnight, 1)", "not a unit"),
    "half a window": ("SELECT max(v) FROM r TIMESTAMP BY ts GROUP BY TumblingWindow(minute, 1.5)", "whole number"),
    "a window of too few arguments": (
        "SELECT max(v) FROM r TIMESTAMP BY ts GROUP BY HoppingWindow(minute, 5)",
        "written",
    ),
    "a length that is a column": ("SELECT max(v) FROM r GROUP BY window(ts, length)", "not a length"),
    "two windows": ("SELECT max(v) FROM r GROUP BY window(ts, '1 hour'), window(ts, '2 hours')", "two windows"),
    "an empty WINDOWS": ("SELECT max(v) FROM r TIMESTAMP BY ts GROUP BY WINDOWS(ts)", "no window"),
    "no time column": ("SELECT max(v) FROM r GROUP BY WINDOWS('1 hour')", "no time column"),
    "different times": (
        "SELECT max(v) FROM a TIMESTAMP BY t1 JOIN b TIMESTAMP BY t2 ON a.k = b.k GROUP BY TumblingWindow(minute, 5)",
        "different TIMESTAMP BY",
    ),
    "nested aggregates": ("SELECT max(min(v)) FROM r GROUP BY window(ts, '1 hour')", "nest"),
    "an unknown aggregate": ("SELECT approx_top_k(v) FROM r GROUP BY window(ts, '1 hour')", "approx_top_k"),
    "an aggregate as a key": ("SELECT max(v) FROM r GROUP BY max(v), window(ts, '1 hour')", "GROUP BY has the aggreg"),
    "a column that is not grouped": ("SELECT city, max(v) FROM r GROUP BY window(ts, '1 hour')", "'city' is neither"),
    "a star": ("SELECT *, max(v) FROM r GROUP BY window(ts, '1 hour')", "SELECT \\*"),
    "ORDER BY what is not shown": (
        "SELECT max(v) AS m FROM r GROUP BY window(ts, '1 hour') ORDER BY k",
        "'k' is neither",
    ),
    "a place that is none": ("SELECT k, max(v) FROM r GROUP BY k, 9, window(ts, '1 hour')", "9 is no place"),
    "GROUPING SETS without the window": (
        "SELECT k, max(v) FROM r GROUP BY GROUPING SETS ((k, window(ts, '1 hour')), (k))",
        "a set of keys has no window",
    ),
    "WITH ROLLUP": ("SELECT k, max(v) FROM r GROUP BY k, window(ts, '1 hour') WITH ROLLUP", "ROLLUP"),
    "a CUBE of nine": (
        "SELECT max(v) FROM r GROUP BY window(ts, '1 hour'), CUBE(a, b, c, d, e, f, g, h, i)",
        "at most 256",
    ),
    "branches of different widths": (
        "SELECT k, max(v) FROM r GROUP BY k, window(ts, '1 hour') UNION ALL "
        "SELECT max(v) FROM r GROUP BY k, window(ts, '2 hours')",
        "numbers of columns",
    ),
    "half a TUMBLE": ("SELECT max(v) FROM TABLE(TUMBLE(TABLE r, DESCRIPTOR(ts))) GROUP BY window_start", "is written"),
    "TUMBLE without window_end": (
        "SELECT max(v) FROM TABLE(TUMBLE(TABLE r, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY window_start",
        "both window_start and window_end",
    ),
    "windows over windows": (
        "SELECT max(m) FROM (SELECT window.end AS ts, max(v) AS m FROM r GROUP BY window(ts, '1 minute')) "
        "GROUP BY window(ts, '1 hour')",
        "other windows",
    ),
    "a quote that does not end": ("SELECT max(v) FROM r GROUP BY window(ts, '1 hour)", "valid SQL"),
    "two INTO": (
        "WITH a AS (SELECT max(v) AS m INTO x FROM r TIMESTAMP BY ts GROUP BY TumblingWindow(minute, 5)) "
        "SELECT * INTO y FROM a",
        "several INTO",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_query_gets_one_sentence(name):
    text, problem = BAD[name]
    with pytest.raises(SqlError, match=problem) as caught:
        parse(text)
    assert "\n" not in str(caught.value)
    if text.strip() and name != "only a comment":
        assert str(caught.value).startswith("line ")


W, H = "window(ts, '20 minutes')", "window(ts, '1 hour')"


@pytest.mark.parametrize(
    ("table", "kept"),
    [
        ("r TABLESAMPLE (10 PERCENT)", "TABLESAMPLE (10 PERCENT)"),
        ("r VERSION AS OF 3", "VERSION AS OF 3"),
        ("r AS t(ts, k, v)", "AS t(ts, k, v)"),
    ],
)
def test_what_stands_after_a_table_stays_there(table, kept):
    assert kept in parse(f"SELECT k, max(v) AS m FROM {table} GROUP BY k, {W}").source


@pytest.mark.parametrize(
    "text",
    [
        f"(SELECT k, max(v) m FROM r GROUP BY k, {W} UNION ALL SELECT k, max(v) FROM r GROUP BY k, {H} LIMIT 1) "
        f"UNION ALL SELECT k, max(v) FROM r GROUP BY k, {H}",
        f"((SELECT k, max(v) m FROM r GROUP BY k, {W}) LIMIT 1) UNION ALL SELECT k, max(v) FROM r GROUP BY k, {H}",
        f"SELECT k, max(v) m FROM r GROUP BY k, {W} UNION ALL BY NAME SELECT k, max(v) m FROM r GROUP BY k, {H}",
        f"SELECT * FROM d WHERE EXISTS (SELECT count(*) FROM r WHERE r.k = d.k GROUP BY {W})",
        f"SELECT k, max(v) FROM r WHERE window.start > '2024-01-01' GROUP BY k, {W}",
        f"SELECT k, max(v) m FROM r GROUP BY k, {W} UNION SELECT j, max(v) FROM r GROUP BY j, {W} ORDER BY m LIMIT 1",
        "CREATE FUNCTION f AS 'x'",
        "INSERT INTO t TABLE r",
        "SELECT k, COUNT(*) AS c FROM r TIMESTAMP BY GROUP BY k, TumblingWindow(minute, 5)",
        f"SELECT k, max(v) FROM r GROUP BY k, WINDOWS(ts, '20 minutes', n), {W}",
        "SELECT k, max(v) FROM r GROUP BY k, WINDOWS(ts, '20 minutes', n)",
    ],
)
def test_what_would_be_lost_is_refused(text):
    with pytest.raises(SqlError):
        parse(text)


def test_names_are_compared_as_spark_does():
    for shown, grouped in (("K", "k"), ("`k`", "k"), ("k", "(k)"), ("UPPER(k)", "upper(K)"), ("r.k", "k")):
        query = parse(f"SELECT {shown} AS key, max(v) AS m FROM r GROUP BY {grouped}, {W}")
        assert query.columns == ("key", "m")
    both = parse(
        f"SELECT k, max(v) m FROM r GROUP BY k, {W} UNION ALL SELECT K, MAX(v) FROM R GROUP BY K, window(TS, '1 hour')"
    )
    assert isinstance(both, Query)


def test_a_column_goes_before_an_alias():
    query = parse(f"SELECT j AS k, k AS a, count(*) AS c FROM r GROUP BY j, k, {H}")
    assert [key.sql for key in query.parsed_keys] == ["j", "k"]
    assert parse(f"SELECT k AS a, sum(v) AS k FROM r GROUP BY k, {W}").columns == ("a", "k")


def test_steps_before_a_union_are_shared_and_azures_union_keeps_duplicates():
    [statement] = read(
        "WITH s AS (SELECT * FROM r) SELECT k, COUNT(*) AS c FROM s TIMESTAMP BY ts "
        "GROUP BY k, TumblingWindow(minute, 20) "
        "UNION SELECT k, COUNT(*) FROM s TIMESTAMP BY ts GROUP BY k, TumblingWindow(hour, 1)"
    )
    assert (len(statement.queries), statement.outer) == (1, "")


def test_having_order_by_and_dates_know_what_is_shown():
    query = parse(f"SELECT k, sum(v) AS s, window.start AS b FROM r GROUP BY k, {W} HAVING s > 1 ORDER BY window.start")
    assert (query.having, query.outer) == ("(`s` > 1)", "SELECT * FROM {result} ORDER BY `b`")
    azure = parse(
        "SELECT k, DATEADD(mi, -5, System.Timestamp()) AS s, MAX(v) AS m FROM r TIMESTAMP BY ts "
        "WHERE System.Timestamp() > '2024-01-01' GROUP BY k, TumblingWindow(minute, 5), System.Timestamp()"
    )
    assert azure.output[1] == "DATEADD(minute, -5, window_end) AS `s`"
    assert azure.where == "ts > '2024-01-01'"


def test_an_error_says_where():
    with pytest.raises(SqlError, match=r"^line 3, column \d+: column 'city'"):
        parse("SELECT\n  max(v),\n  city\nFROM r\nGROUP BY window(ts, '1 hour')")


def test_an_unknown_dialect_is_refused():
    with pytest.raises(ValueError, match="allowed are spark, azure, flink"):
        parse(SPARK, dialect="oracle")


FLINK_WINDOWS = {
    "GROUP BY TUMBLE": (
        "SELECT k, TUMBLE_START(ts, INTERVAL '5' MINUTE) AS s, TUMBLE_END(ts, INTERVAL '5' MINUTE) AS e, max(v) AS m "
        "FROM r GROUP BY k, TUMBLE(ts, INTERVAL '5' MINUTE)",
        tumbling("5m"),
    ),
    "GROUP BY HOP": (
        "SELECT k, HOP_START(ts, INTERVAL '1' MINUTE, INTERVAL '5' MINUTE) AS s, "
        "HOP_END(ts, INTERVAL '1' MINUTE, INTERVAL '5' MINUTE) AS e, max(v) AS m "
        "FROM r GROUP BY k, HOP(ts, INTERVAL '1' MINUTE, INTERVAL '5' MINUTE)",
        hopping("5m", "1m"),
    ),
    "named arguments": (
        "SELECT k, window_start AS s, window_end AS e, max(v) AS m FROM TABLE(HOP(DATA => TABLE r, "
        "TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '5' MINUTE, SLIDE => INTERVAL '1' MINUTE)) "
        "GROUP BY k, window_start, window_end",
        hopping("5m", "1m"),
    ),
}


@pytest.mark.parametrize("name", FLINK_WINDOWS)
def test_flinks_other_windows_are_read(name):
    text, window = FLINK_WINDOWS[name]
    query = parse(text)
    assert (query.windows, query.time, query.source) == ((window,), "ts", "r")
    assert query.output == ("`k` AS `k`", "window_start AS `s`", "window_end AS `e`", "`m` AS `m`")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("FROM TABLE(HOP(TABLE r, DESCRIPTOR(ts), SIZE => INTERVAL '5' MINUTE)) GROUP BY", "all its arguments by name"),
        ("FROM TABLE(TUMBLE(DATA => TABLE r, LENGTH => INTERVAL '5' MINUTE)) GROUP BY", "DATA, TIMECOL, SIZE, OFFSET"),
        ("FROM r GROUP BY TUMBLE(ts), ", r"TUMBLE\(ts, size\[, offset\]\)"),
    ],
)
def test_a_mistake_in_flinks_windows_is_explained(text, problem):
    with pytest.raises(SqlError, match=problem):
        parse(f"SELECT max(v) {text} window_start, window_end")


def test_what_stands_around_a_query_is_kept():
    select = f"SELECT k, max(v) AS m FROM r GROUP BY k, {W}"
    commands = {
        "INSERT INTO a.t (x, y) {query}": ("`a`.`t`".replace("`", ""), False),
        "INSERT OVERWRITE TABLE t PARTITION(p = 'q') {query}": ("t", False),
        "CREATE OR REPLACE TEMPORARY VIEW t AS {query}": ("t", True),
        "CREATE TABLE t USING PARQUET TBLPROPERTIES ('p'='{{q}}') AS {query}": ("t", False),
    }
    for command, (into, is_view) in commands.items():
        [statement] = read(command.format(query=select))
        assert (statement.command, statement.into, statement.is_view) == (command, into, is_view)
        assert statement.queries[0].columns == ("k", "m")


def test_an_assumption_is_noted_and_a_table_settles_it():
    text = f"SELECT k, upper(k) AS site, max(v) AS m FROM r GROUP BY k, site, {W}"
    [assumed] = read(text)
    assert assumed.notes == ("site is read as the alias in the SELECT list, not as a column of the table",)
    for columns, keys in ((["ts", "k", "v", "Site"], ["k", "site"]), (["ts", "k", "v"], ["k", "upper(k)"])):
        asked = []

        def known(select, columns=columns, asked=asked):
            asked.append(select)
            return columns

        [statement] = read(text, tables=Tables(known))
        assert ([key.sql for key in statement.queries[0].parsed_keys], statement.notes) == (keys, ())
        assert set(asked) == {"SELECT * FROM r"}


def test_braces_of_a_text_are_no_results():
    text = f"SELECT '{{result}}' AS b, max(v) AS `{{result0}}` FROM r GROUP BY {W} ORDER BY upper('{{result0}}'), b"
    query = parse(text)
    assert query.outer.count("{result}") == query.outer.count("{{result}}") + 1
    rewritten = optimize(query).sql(dialect="spark")
    assert rewritten.count("'{result}'") == text.count("'{result}'")
    assert "upper('{result0}')" in rewritten
