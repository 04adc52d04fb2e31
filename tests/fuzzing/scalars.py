"""DuckDB's text over a table of scalar functions in keys, arguments and conditions, compared with Spark by value."""
# ruff: noqa: E501

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal

from pyspark.sql import SparkSession

from factor_windows import FactorWindowsError, Query, optimize, tumbling
from fuzzing.naive import by_hand
from fuzzing.settings import Settings
from fuzzing.trouble import first_line

QUERIES = 8
"""Queries for each seed; all of them are one DuckDB connection and one Spark session."""
COLUMNS = (
    "ts timestamp, k string, s string, site int, i int, n bigint, v double, d decimal(12,3), dt date, flag boolean"
)
NUMBERS = (
    "CAST(v AS INT)", "CAST(v AS BIGINT)", "CAST(d AS INT)", "pmod(i, 3)", "i % 3", "mod(n, 4)", "i DIV 2", "n / 2", "i / 2",
    "abs(i)", "ceil(v)", "floor(v)", "round(v)", "round(v, 1)", "round(d, 1)", "bround(v, 1)", "sign(v)", "sqrt(abs(v))",
    "power(i, 2)", "exp(i)", "ln(abs(i) + 1)", "log10(abs(i) + 1)", "log2(abs(i) + 1)", "greatest(i, site)",
    "least(i, site)", "coalesce(i, site)", "nullif(i, 1)", "nvl(i, 0)", "ifnull(i, 0)", "if(flag, i, site)", "-i",
    "nvl2(i, 1, 0)", "i & 3", "i | 3", "i ^ 3", "~i", "shiftleft(i, 2)", "shiftright(i, 1)", "length(s)", "instr(s, 'a')",
    "char_length(s)", "locate('a', s)", "position('a' IN s)", "ascii(s)", "year(dt)", "month(dt)", "day(dt)",
    "dayofweek(dt)", "dayofyear(dt)", "weekday(dt)", "weekofyear(dt)", "quarter(dt)", "hour(ts)", "minute(ts)",
    "second(ts)", "unix_timestamp(ts)", "unix_micros(ts)", "unix_seconds(ts)", "datediff(dt, DATE'2024-01-01')",
    "months_between(dt, DATE'2024-01-01')", "CAST(flag AS INT)", "CAST(ts AS BIGINT)", "extract(DOW FROM dt)",
    "extract(HOUR FROM ts)", "date_part('YEAR', dt)", "CASE WHEN i > 0 THEN i ELSE -i END", "levenshtein(k, s)",
    "cbrt(v)", "degrees(v)", "radians(v)", "sin(v)", "atan2(v, 1)", "hypot(v, 1)", "factorial(3)", "bit_count(i)",
    "crc32(s)", "hash(i)", "xxhash64(s)", "width_bucket(v, 0, 10, 4)", "trunc(v)", "CAST(v AS DECIMAL(10,1))", "i * 1.5",
    "d * 2", "CAST(s AS DOUBLE)", "try_cast(s AS INT)", "unix_date(dt)", "octet_length(s)", "find_in_set(k, 'a,b')",
)  # fmt: skip
TEXTS = (
    "upper(s)", "lower(s)", "trim(s)", "ltrim(s)", "rtrim(s)", "substr(s, 2)", "substring(s, 1, 1)", "substr(s, -1, 1)",
    "substr(s, 0, 2)", "concat(k, s)", "k || s", "concat_ws('-', k, s)", "replace(s, 'a', 'b')", "reverse(s)", "left(s, 1)",
    "right(s, 1)", "lpad(s, 3, '*')", "rpad(s, 3, '*')", "repeat(s, 2)", "initcap(s)", "split(s, ',')[0]",
    "regexp_replace(s, '[a-c]', 'z')", "regexp_extract(s, '([a-z])', 1)", "CAST(i AS STRING)", "CAST(v AS STRING)",
    "CAST(flag AS STRING)", "CAST(dt AS STRING)", "CAST(ts AS STRING)", "CAST(d AS STRING)", "date_format(ts, 'yyyy-MM-dd')",
    "date_format(dt, 'EEEE')", "date_format(ts, 'HH:mm')", "translate(s, 'ab', 'xy')", "split_part(s, ',', 1)", "md5(s)",
    "sha2(s, 256)", "hex(i)", "bin(i)", "chr(65)", "soundex(s)", "format_number(v, 2)", "substring_index(s, ',', 1)",
    "nullif(s, '')", "if(s = '', 'empty', s)", "dayname(dt)", "monthname(dt)", "btrim(s)", "overlay(s PLACING 'x' FROM 1)",
    "element_at(split(s, ','), 1)", "from_unixtime(0)", "base64(CAST(s AS BINARY))", "elt(1, k, s)", "to_char(i, '999')",
)  # fmt: skip
DATES = (
    "date_add(dt, 1)", "date_sub(dt, 1)", "dt + 1", "dt - 1", "last_day(dt)", "add_months(dt, 1)", "trunc(dt, 'MONTH')",
    "CAST(ts AS DATE)", "to_date(CAST(dt AS STRING))", "next_day(dt, 'Mon')", "make_date(2024, 1, 31)", "date(ts)",
    "dt + INTERVAL 1 MONTH", "date_trunc('HOUR', ts)", "date_trunc('WEEK', ts)", "ts + INTERVAL 90 SECONDS", "dateadd(DAY, 1, dt)",
    "timestamp_seconds(i)", "to_timestamp('2024-01-31 10:00:00')", "date_from_unix_date(i)", "trunc(dt, 'YEAR')",
)  # fmt: skip
CONDITIONS = (
    "s LIKE 'a%'", "s ILIKE 'A%'", "s RLIKE '^[a-c]'", "regexp_like(s, 'b$')", "startswith(s, 'a')", "endswith(s, 'c')",
    "contains(s, 'b')", "i IN (1, 2)", "i BETWEEN -1 AND 2", "i <=> site", "NOT flag", "flag OR i > 0", "isnull(i)",
    "isnotnull(i)", "v > 1.5", "isnan(v)", "d > 0.5", "dt > DATE'2024-01-01'", "s = 'A '", "k IS DISTINCT FROM s", "i <> 0",
    "length(s) > 1", "s > 'a'", "i = 1 AND k = 'a'", "CAST(i AS BOOLEAN)", "dayofweek(dt) = 1", "exists(array(i), x -> x > 0)",
    "array_contains(array(1, 2), i)", "s NOT LIKE '%c'", "mod(i, 2) = 0", "s IN ('a', 'b')", "s LIKE 'a\\\\_%'",
)  # fmt: skip
AGGREGATES = (
    "count(*)", "min(i)", "max(s)", "sum(n)", "avg(v)", "percentile(v, 0.25)", "median(i)", "var_pop(v)", "stddev(v)",
    "corr(v, i)", "covar_samp(v, i)", "bool_and(flag)", "bit_or(i)", "count_if(flag)", "sum(d)", "avg(d)", "max_by(s, ts)",
    "min_by(i, ts)", "count(DISTINCT s)", "collect_set(i)", "mode(i, true)", "skewness(i)", "kurtosis(i)", "bit_xor(i)",
    "regr_slope(i, v)", "count(i, s)", "percentile_cont(0.25) WITHIN GROUP (ORDER BY i)", "try_sum(i)",
    "percentile_disc(0.25) WITHIN GROUP (ORDER BY i)", "listagg(s, ',') WITHIN GROUP (ORDER BY s)", "max(i) - min(i)",
)  # fmt: skip
WHOLE = tuple(text for text in NUMBERS if not text.startswith("CAST(s"))


def draw_scalars(seed: int) -> list[Query]:
    """Draw queries, each with one function in a key, in an argument or in a condition."""
    rng = random.Random(seed)
    return [_query(rng) for _ in range(QUERIES)]


def _query(rng: random.Random) -> Query:
    kind = rng.random()
    keys, where, aggregates = ["k"], "", ["count(*) AS n"]
    if kind < 0.3:
        keys = [f"{rng.choice([*NUMBERS, *TEXTS, *TEXTS, *DATES, *DATES])} AS key"]
    elif kind < 0.6:
        call, text = rng.choice(
            [
                ("{0}({1}) AS a", rng.choice(WHOLE)),
                ("min({1}) AS a", rng.choice(TEXTS)),
                ("max({1}) AS a", rng.choice(DATES)),
            ]
        )
        aggregates = [call.format(rng.choice(["sum", "max", "avg"]), text)]
    elif kind < 0.8:
        where = rng.choice(CONDITIONS)
    elif kind < 0.9:
        aggregates = [f"count(*) FILTER (WHERE {rng.choice(CONDITIONS)}) AS a"]
    else:
        aggregates = [f"{rng.choice(AGGREGATES)} AS a"]
    windows = [tumbling("1m", name="one"), tumbling("2m", name="two")]
    try:
        return Query(time="ts", keys=keys, windows=windows, aggregates=aggregates, where=where, source="r")
    except FactorWindowsError:
        return _query(rng)


def events_of(seed: int) -> list[tuple[object, ...]]:
    """Draw events with values on which engines differ: halves, negative numbers, weekends, empty and padded text."""
    rng = random.Random(seed)

    def maybe(value: object) -> object:
        return None if rng.random() < 0.1 else value

    return [
        (
            1_709_164_620_000_000 + second * 997_001,
            maybe(rng.choice("ab")),
            maybe(rng.choice(["", "a", "abc", "A ", "b,c", "ä", "12", " 7", "a_b"])),
            maybe(rng.randrange(-2, 3)),
            maybe(rng.randrange(-5, 6)),
            maybe(rng.randrange(-(2**33), 2**33)),
            maybe(rng.choice([-2.5, 2.5, 1.5, 0.5, -0.5, 121.1, 3.0, 1e-7, 123456789.0])),
            maybe(Decimal(rng.choice(["0.125", "-2.500", "7.000", "1.450"]))),
            maybe(rng.choice([date(2024, 2, 29), date(2024, 3, 3), date(1969, 12, 31), date(2023, 1, 1)])),
            maybe(rng.random() < 0.5),
        )
        for second in rng.sample(range(300), 40)
    ]


def check_scalars(spark: SparkSession, seed: int) -> tuple[list[str], list[str]]:
    """Compare DuckDB's rows with Spark's; return what differs, and what was refused with a reason."""
    import duckdb

    session = Settings().session(spark)
    rows = events_of(seed)
    raw = COLUMNS.replace("ts timestamp", "ts bigint")
    events = session.createDataFrame(rows, raw).selectExpr("timestamp_micros(ts) AS ts", "* EXCEPT (ts)")
    problems, refused = [], []
    with duckdb.connect() as db:
        names = raw.replace("string", "VARCHAR").replace("double", "DOUBLE")
        db.execute(f"CREATE TABLE raw ({names})")
        db.executemany(f"INSERT INTO raw VALUES ({', '.join('?' * len(rows[0]))})", rows)
        db.execute("CREATE TABLE r AS SELECT * REPLACE (make_timestamp(ts) AS ts) FROM raw")
        for query in draw_scalars(seed):
            shown = (*query.keys, *query.aggregates, query.where)
            try:
                expected = [tuple(row) for row in by_hand(query, events).collect()]
            except Exception as trouble:
                refused.append(f"Spark itself: {first_line(trouble)}")
                continue
            try:
                text = optimize(query).sql(dialect="duckdb")
            except FactorWindowsError as refusal:
                refused.append(str(refusal))
                continue
            try:
                found = db.execute(text).fetchall()
            except Exception as trouble:
                # The text itself raises errors for values on which the engines differ.
                said = refused if "differ" in first_line(trouble) else problems
                said.append(f"duckdb, {shown}: {first_line(trouble)}")
                continue
            if _plain(found) != _plain(expected):
                here, there = Counter(_plain(found)), Counter(_plain(expected))
                some = list((there - here).elements())[:1], list((here - there).elements())[:1]
                problems.append(f"duckdb, {shown}: missing {some[0]}, extra {some[1]}")
    return problems, refused


def _plain(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return sorted((tuple(map(_value, row)) for row in rows), key=repr)


def _value(value: object) -> object:
    """Write values of both engines alike: numbers to nine digits, instants in UTC, sets in order."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float | Decimal):
        return ("number", _number(value))
    if isinstance(value, datetime):
        return ("time", value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value)
    if isinstance(value, list):
        return sorted(map(_value, value), key=repr)
    return value


def _number(value: int | float | Decimal) -> str:
    """Write whole numbers as such and others to nine digits, whatever the type that an engine gives them.

    >>> _number(Decimal("3.0")), _number(2.9999999999999), _number(2**60), _number(0.1), _number(-1e-17)
    ('3', '3', '1152921504606846976', '0.1', '0')
    """
    if isinstance(value, int):
        return str(value)
    number = float(value)
    return "0" if abs(number) < 1e-7 else f"{number:.9g}"
