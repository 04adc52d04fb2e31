"""Every function that is translated to DuckDB gives there what it gives on Spark, also where engines differ."""

import datetime as dt
import decimal
import math

import duckdb
import pytest
from sqlglot import parse_one

import factor_windows as fw
from factor_windows.engines import duckdb as translation
from factor_windows.functions.expression import VerbatimSpark

NAN, INF, D = float("nan"), float("inf"), decimal.Decimal
COLUMNS = {
    "i": ("INT", [7, -7, 7, -7, 0, None, 2147483, 1, 12, 3]),
    "j": ("INT", [2, 2, -3, -3, 5, 1, 7, 1, 4, 3]),
    "b": ("BIGINT", [10**12, -(10**12), 9007199254740993, 0, 1, None, -1, 5, 77, 8]),
    "x": ("DOUBLE", [2.5, -2.5, 3.5, -0.5, 0.0, None, NAN, INF, 1e15 + 0.5, 2.675]),
    "y": ("DOUBLE", [2.5, -2.5, 3.7, -0.5, 0.0, None, 99.99, -99.99, 1.005, 0.3]),
    "m": ("DECIMAL(10, 2)", [D(text) if text else None for text in [
        "2.55", "-2.55", "0.50", "-0.50", "", "12345678.99", "1.45", "1.05", "-99.99", "9.95"]]),
    "s": ("STRING", ["Straße", "", "hello", "  a b ", None, "ü😀x", "a_c%\\d", "A\nb", "12.7", "tab\t"]),
    "t": ("STRING", ["s", "", "l", "a", None, "😀", "_", "\n", "2", "t"]),
    "p": ("BOOLEAN", [True, False, None, True, None, False, True, True, False, False]),
    "d": ("DATE", [dt.date(*day) if day else None for day in [
        (2024, 2, 29), (1969, 12, 31), (1970, 1, 1), (1900, 3, 1), None, (2021, 1, 3), (2000, 12, 31), (2023, 1, 1),
        (2024, 12, 30), (2024, 1, 31)]]),
    "ts": ("TIMESTAMP", [dt.datetime(*time) if time else None for time in [
        (2024, 2, 29, 23, 59, 59, 999999), (1969, 12, 31, 23, 59, 59, 500000), (1970, 1, 1), (1900, 3, 1, 12, 30, 1),
        None, (2021, 1, 3, 6, 5, 4, 3), (2000, 12, 31, 0, 0, 0, 1), (2023, 1, 1, 1, 1, 1), (2024, 12, 30, 5),
        (2024, 1, 31, 11, 11, 11, 111111)]]),
}  # fmt: skip
SAME = r"""
abs(i); abs(x); acos(x); acos(i / 10); asin(x); asin(y); atan(x); atan2(x, i); cbrt(x); ceil(y); ceil(i); ceil(b);
ceiling(m); floor(y); floor(i); floor(b); floor(m); cos(x); sin(x); tan(x); degrees(x); radians(x); exp(i / 10);
exp(x); ln(x); log(x); log10(x); log2(x); sqrt(x); pow(i, 2); power(x, 0.5D); sign(x); sign(i); signum(m); round(x);
round(CAST(y AS DECIMAL(10, 4)), 2); round(m, 1); round(m); round(i, -1); round(i); round(b, -3); mod(i, j); i % j;
x % 2; m % 2; y % 0.3D; pmod(i, j); pmod(b, 7); pmod(x, 2.0D); pmod(-7, j); i div j; b div j; -7 div j; i / j; b / 7;
x / 2; i + j; i * j; i - b; x + i; m + i; m * 2; -x; -i; negative(i); positive(i); i & 3; i | 8; ~i; greatest(i, j);
greatest(x, 1.0D); greatest(i, NULL, 3); least(i, j, 3); least(x, 1.0D); nanvl(x, 0.0D); isnan(x); 5L; 1.5D; 1e3; 0.1;
1.5BD; 2S; 3Y; coalesce(i, j); coalesce(s, 'none'); ifnull(i, 0); nvl(s, 'n'); nvl2(s, 1, 2); nullif(i, 7); isnull(s);
isnotnull(s); if(i > 0, s, t); if(i > 0, 1, 2.5D); if(p, 1, 0); CASE WHEN i > 0 THEN 'pos' WHEN i < 0 THEN 'neg' END;
CASE i WHEN 7 THEN 1 ELSE 0 END; array(i, j); x = x; x > 1e20; x < 5; i = 7 OR x > 1; NOT p; p AND i > 1; p OR i > 1;
p IS NULL; p IS TRUE; p IS NOT TRUE; i <=> j; s <=> NULL; i == j; i != j; i IN (7, 0); i NOT IN (7, NULL);
i BETWEEN 0 AND 5; NOT i BETWEEN 0 AND 5; s < 'b'; s = t; s IS NOT DISTINCT FROM t; s IS DISTINCT FROM t; length(s);
len(s); char_length(s); character_length(s); concat(s, t); concat(s, '-', i); concat(s); s || t; s || '!';
contains(s, t); startswith(s, t); endswith(s, t); instr(s, t); locate(t, s); position('l' IN s); left(s, 2);
left(s, 0); left(s, -1); left(s, i); right(s, 2); right(s, 0); right(s, -1); right(s, i); upper(s); lower(s); trim(s);
ltrim(s); rtrim(s); trim(BOTH 'a' FROM s); trim(LEADING ' ' FROM s); trim(TRAILING 'd' FROM s); md5(s); sha2(s, 256);
sha2(s, 0); repeat(s, 2); repeat(s, 0); repeat(s, -1); replace(s, 'l', 'L'); replace(s, t, '+'); replace(s, '', '+');
reverse(s); substr(s, 2); substr(s, 0); substr(s, -2); substr(s, -9); substr(s, i); substr(s, 2, 2); substr(s, 0, 2);
substr(s, -3, 2); substr(s, -9, 6); substr(s, -9, 20); substr(s, i, 2); substr(s, 2, i); substr(s, -9, i);
substr(s, 2, -1); substring(s, 2, 1000); substring(s FROM 2 FOR 2); s LIKE 'a%'; s LIKE 'a\\_c%'; s LIKE '%\\\\d';
s LIKE '%b'; s LIKE 'A_b'; s NOT LIKE 'h%'; s LIKE 'a!_c%' ESCAPE '!'; s RLIKE 'l+o'; s RLIKE '^[a-z]+';
s RLIKE '[^a-z]'; regexp_like(s, 'h|a'); rlike(s, 'b'); 'it''s'; date(ts); to_date(ts); to_date('2024-05-06');
date_add(d, 1); date_add(d, i); date_add(ts, 1); date_sub(d, 40); d + 1; d - 1; date_diff(d, date(ts));
datediff(DATE '2024-03-01', d); datediff(ts, d); add_months(d, 1); add_months(d, -12); add_months(ts, 1); last_day(d);
last_day(ts); day(d); dayofmonth(ts); dayofweek(d); dayofweek(ts); dayofyear(d); weekday(d); weekofyear(d);
quarter(ts); month(d); year(ts); hour(ts); minute(ts); second(ts); extract(year FROM ts); extract(month FROM d);
extract(hour FROM ts); extract(dayofweek FROM d); date_trunc('week', ts); date_trunc('MONTH', ts);
date_trunc('quarter', ts); date_trunc('hour', ts); date_trunc('day', d); date_trunc('second', ts); trunc(d, 'MM');
trunc(d, 'week'); trunc(d, 'quarter'); trunc(ts, 'year'); unix_date(d); unix_micros(ts); unix_millis(ts);
unix_seconds(ts); unix_timestamp(ts); ts + INTERVAL 1 HOUR; ts - INTERVAL '90' MINUTES; ts + INTERVAL 1 DAY;
ts + INTERVAL 1 MONTH; d + INTERVAL 1 HOUR; INTERVAL 1 DAY + ts; INTERVAL '2' MONTHS + ts; -(i + j);
NOT (p AND i > 1); (i + j) * 2; pmod(i - j, j + 10); pmod(-i, 3) * 2; date_add(d, i + 1); -abs(i - 9);
isnotnull(i) AND p; NOT isnull(s); concat(s, t) || t; mod(i, 4) = 1; d > DATE '1970-01-01'; d = ts;
ts > DATE '1970-01-01'; CAST(y AS INT); CAST(y AS BIGINT); CAST(m AS INT); CAST(m AS BIGINT); CAST(b AS BIGINT);
CAST(j AS TINYINT); CAST(j AS SMALLINT); CAST(p AS INT); CAST('12' AS INT); CAST(2.7 AS INT); CAST(2.7D AS INT);
CAST(8 AS INT); CAST(1.50 AS STRING); CAST(9 AS STRING); CAST(CAST(i AS STRING) AS INT); CAST(i AS STRING);
CAST(m AS STRING); CAST(d AS STRING); CAST(ts AS STRING); CAST(p AS STRING); CAST(s AS STRING); CAST(i AS DOUBLE);
CAST(m AS DOUBLE); CAST(x AS FLOAT); CAST(i AS BOOLEAN); CAST(i AS DECIMAL(12, 2)); CAST(m AS DECIMAL(12, 1));
CAST(y AS DECIMAL(10, 1)); CAST(y AS DECIMAL(10, 2)); CAST(i AS DECIMAL(9, 0)); CAST('1.005' AS DECIMAL(4, 2));
coalesce(i, j, 0, raise_error('none'));
CAST(ts AS DATE); CAST(d AS TIMESTAMP_NTZ); CAST('2024-05-06' AS DATE); y::int; m::decimal(11, 1)
"""
REFUSED = """
a[0]; element_at(a, 1); size(a); hash(s); xxhash64(s); initcap(s); translate(s, 'l', 'r'); split(s, 'l'); soundex(s);
concat_ws('-', s, t); date_format(ts, 'yyyy'); bround(x); lpad(s, 3, 'x'); hex(i); crc32(s); ascii(s); struct(i, s);
rand(); current_date(); shiftleft(i, 1); make_date(2024, 1, i); width_bucket(x, 0, 10, 5); s ILIKE 'HELLO';
CAST(s AS BINARY); i ^ 3; s RLIKE 'o$'; s RLIKE t; regexp_replace(s, 'a', 'b'); TRY_CAST(s AS INT); from_unixtime(b);
to_date(s, 'yyyy'); my_function(i); sha2(s, 512); log(2, x); unix_timestamp(s, 'yyyy'); kurtosis(x);
percentile(x, 0.5, 2); date_trunc('decade', ts); sum(i, j)
"""


def listed(text):
    return [each.strip() for each in text.split(";") if each.strip()]


def rows():
    return list(zip(*(values for _, values in COLUMNS.values()), strict=True))


def in_duckdb(expression):
    return translation.translate(parse_one(expression, dialect=VerbatimSpark)).sql(
        dialect="duckdb", normalize_functions=False
    )


def same(left, right):
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or math.isclose(left, right, rel_tol=1e-14)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, D) or isinstance(right, D):
        return left == right
    return left == right and type(left) is type(right)


@pytest.fixture(scope="module")
def db():
    with duckdb.connect() as connection:
        kinds = ", ".join(f"{name} {kind.replace('STRING', 'VARCHAR')}" for name, (kind, _) in COLUMNS.items())
        connection.execute(f"CREATE TABLE vals (n INTEGER, {kinds})")
        marks = ", ".join("?" * (len(COLUMNS) + 1))
        connection.executemany(f"INSERT INTO vals VALUES ({marks})", [(n, *row) for n, row in enumerate(rows())])
        yield connection


@pytest.fixture(scope="module")
def vals(spark):
    kinds = ", ".join(f"{name} {kind.replace('TIMESTAMP', 'TIMESTAMP_NTZ')}" for name, (kind, _) in COLUMNS.items())
    frame = spark.createDataFrame([(n, *row) for n, row in enumerate(rows())], f"n INT, {kinds}")
    return frame.withColumn("ts", frame.ts.cast("timestamp")).coalesce(1).orderBy("n").cache()


def test_what_is_translated_gives_what_spark_gives(vals, db):
    expressions = listed(SAME)
    found = db.execute(f"SELECT {', '.join(map(in_duckdb, expressions))} FROM vals ORDER BY n").fetchall()
    # As naked times, which have no zone to get wrong.
    texts = [f"CAST({each} AS TIMESTAMP_NTZ)" if kind == "timestamp" else each
             for each, (_, kind) in zip(expressions, vals.selectExpr(*expressions).dtypes, strict=True)]  # fmt: skip
    expected = vals.selectExpr(*texts).collect()
    differing = {
        expression: (row, left, right)
        for row, (ours, sparks) in enumerate(zip(found, expected, strict=True))
        for expression, left, right in zip(expressions, ours, sparks, strict=True)
        if not same(left, right)
    }
    assert differing == {}


def test_every_function_of_the_table_is_compared():
    compared = " ".join([*listed(SAME), *AGGREGATES])
    assert [name for name in translation.functions() if f"{name}(" not in compared] == []


@pytest.mark.parametrize("expression", listed(REFUSED))
def test_what_has_no_faithful_translation_is_refused_by_name(expression):
    with pytest.raises(fw.QueryError) as refused:
        in_duckdb(expression)
    name = expression.split("(")[0] if not expression.startswith(("s ", "i ")) else expression
    assert str(refused.value).lower().startswith(name.lower())
    assert "has no faithful translation to DuckDB" in str(refused.value)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("round(y, 2)", "rounds the decimal digits"),
        ("CAST(x AS STRING)", "write floating numbers differently"),
        ("d + INTERVAL 1 DAY", "a date moved by days"),
        ("upper('ﬁn')", "upper\\(\\) of this text differs"),
        ("lower('ΟΔΟΣ')", "lower\\(\\) of this text differs"),
    ],
)
def test_what_differs_for_some_values_only_is_an_error_for_those(db, expression, message):
    with pytest.raises(duckdb.Error, match=message):
        db.execute(f"SELECT {in_duckdb(expression)} FROM vals").fetchall()


AGGREGATES = [
    "any(p)", "approx_count_distinct(i)", "approx_count_distinct(s, 0.01)", "approx_percentile(i, 0.25)",
    "approx_percentile(y, 0.5, 1000)", "percentile_approx(i, 0.75)", "avg(i)", "mean(y)", "avg(b)", "bit_and(i)",
    "bit_or(i)", "bit_xor(i)", "count(i, s)", "bool_and(p)", "bool_or(p)", "every(p)", "some(p)", "collect_set(i)",
    "collect_set(i) FILTER (WHERE p)", "corr(i, j)", "count(*)", "count(i)", "count(DISTINCT i)",
    "count(DISTINCT i, s)", "count_if(i > 0)", "covar_pop(i, j)", "covar_samp(i, j)", "max(x)", "min(x)", "max(s)",
    "min(ts)", "max_by(i, j)", "min_by(s, b)", "median(i)", "median(y)", "percentile(i, 0.25)",
    "percentile(y, array(0.1, 0.5))", "mode(j * 0)", "std(i)", "stddev(y)", "stddev_pop(i)", "stddev_samp(i)",
    "sum(i)", "sum(y)", "sum(m)", "var_pop(i)", "var_samp(y)", "variance(i)", "count(*) FILTER (WHERE i > 0)",
    "sum(i) FILTER (WHERE p)", "count_if(i > 0) FILTER (WHERE p)", "collect_list(i)", "regr_avgx(i, j)",
    "regr_avgy(i, j)", "regr_count(i, j)", "regr_sxx(i, j)", "regr_sxy(i, j)", "regr_syy(i, j)",
]  # fmt: skip


def comparable(value):
    return sorted(value) if isinstance(value, list) else value


@pytest.mark.parametrize("rest", ["GROUP BY p ORDER BY p NULLS FIRST", "WHERE FALSE"])
def test_aggregates_give_what_sparks_give(spark, vals, db, rest):
    vals.createOrReplaceTempView("vals")
    expected = spark.sql(f"SELECT {', '.join(AGGREGATES)} FROM vals {rest}").collect()
    found = db.execute(f"SELECT {', '.join(map(in_duckdb, AGGREGATES))} FROM vals {rest}").fetchall()
    assert len(found) == len(expected)
    differing = [
        (aggregate, left, right)
        for ours, sparks in zip(found, expected, strict=True)
        for aggregate, left, right in zip(AGGREGATES, ours, sparks, strict=True)
        if not same(comparable(left), comparable(right))
    ]
    assert differing == []


def test_a_query_with_such_expressions_gives_the_rows_that_spark_gives(spark, vals, db):
    vals.createOrReplaceTempView("vals")
    shown = "percentile(y, 0.25) AS q, collect_set(i) AS all, count_if(p) FILTER (WHERE i > 0) AS n"
    keys = "dayofweek(d), pmod(i, 3), CAST(m AS INT)"
    text = " UNION ALL ".join(
        f"SELECT dayofweek(d) AS a, pmod(i, 3) AS b, CAST(m AS INT) AS c, {shown}, date_add(window.start, 1) AS next "
        f"FROM vals WHERE NOT s LIKE 'a\\\\_c%' GROUP BY {keys}, window(ts, '{length}')"
        for length in ("1 day", "2 days")
    )
    query = fw.parse(text)
    found = db.execute(fw.optimize(query).sql(dialect="duckdb")).fetchall()
    expected = spark.sql(text).collect()
    assert len(found) == 16
    assert sorted(map(repr, found)) == sorted(repr(tuple(row)) for row in expected)


@pytest.mark.parametrize(
    ("kind", "made"),
    [("TIMESTAMP", "TIMESTAMP"), ("TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITH TIME ZONE"), ("DATE", "TIMESTAMP")],
)
def test_windows_start_and_end_in_the_type_of_the_time(kind, made):
    windows = [fw.tumbling("1 hour"), fw.tumbling("3 hours")]
    query = fw.Query(time="ts", windows=windows, aggregates=["count(*) AS n"], source="r")
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'America/New_York'")
        # Two hours, of which the second is called like the first: half past one comes twice in this night.
        instants = "to_timestamp(1730608200 + i * 600)" if "ZONE" in kind else "make_timestamp(1730608200000000)"
        db.execute(f"CREATE TABLE r AS SELECT CAST({instants} AS {kind}) AS ts FROM range(12) t(i)")
        result = db.execute(fw.optimize(query).sql(dialect="duckdb"))
        assert [str(column[1]) for column in result.description] == ["VARCHAR", made, made, "HUGEINT"]
        db.execute(f"CREATE TABLE found AS {fw.optimize(query).sql(dialect='duckdb')}")
        length = "CASE window_id WHEN '1 hour' THEN 3600000000 ELSE 10800000000 END"
        asked = (
            "SELECT window_id, epoch_us(window_start), epoch_us(window_end), n FROM found ORDER BY ALL",
            f"SELECT window_id, l, l + s, count(*) FROM (SELECT *, epoch_us(ts) // s * s AS l FROM r, "
            f"(SELECT window_id, {length} AS s FROM (VALUES ('1 hour'), ('3 hours')) t(window_id))) GROUP BY ALL "
            "ORDER BY ALL",
        )
        found, expected = (db.execute(each).fetchall() for each in asked)
        assert found == expected
