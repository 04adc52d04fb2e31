"""Columns without an alias are named as Spark names them."""

import pytest
from pyspark.sql import functions as F
from sqlglot import parse_one

from factor_windows.functions.expression import VerbatimSpark, name_of

NAMES = {
    "window.start": "start",
    "window.start + INTERVAL 1 HOUR": "window.start + INTERVAL '01' HOUR",
    "ts + INTERVAL 90 MINUTES": "ts + INTERVAL '90' MINUTE",
    "INTERVAL '1-2' YEAR TO MONTH": "INTERVAL '1-2' YEAR TO MONTH",
    "-v": "(- v)",
    "-1.5": "-1.5",
    "abs(-(v + 1))": "abs((- (v + 1)))",
    "v IN (1, 2)": "(v IN (1, 2))",
    "v NOT IN (1, 2)": "(NOT (v IN (1, 2)))",
    "v BETWEEN 1 AND 3": "between(v, 1, 3)",
    "v NOT BETWEEN 1 AND 3": "(NOT between(v, 1, 3))",
    "1e3": "1000.0",
    "1e-3": "0.001",
    "1.0E10": "1.0E10",
    "5L": "5",
    "1.5BD": "1.5",
    ".5": "0.5",
    "st.b.c": "c",
    "st.a + 1": "(st.a + 1)",
    "ar[0]": "ar[0]",
    "m['a']": "m[a]",
    "CASE WHEN v > 1 AND ok THEN 'a' ELSE 'b' END": "CASE WHEN ((v > 1) AND ok) THEN a ELSE b END",
    "CASE i WHEN 1 THEN 'x' END": "CASE WHEN (i = 1) THEN x END",
    "CAST(v AS INT)": "v",
    "CAST(v + 1 AS INT)": "CAST((v + 1) AS INT)",
    "v::int": "v",
    "int(v)": "v",
    "TRY_CAST(s AS INT)": "s",
    "s || 'x' || 'y'": "concat(concat(s, x), y)",
    "v IS NOT NULL": "(v IS NOT NULL)",
    "ok IS NOT TRUE": "(NOT (ok <=> true))",
    "v <> 1": "(NOT (v = 1))",
    "v IS DISTINCT FROM 1": "(NOT (v <=> 1))",
    "s NOT LIKE 'a%'": "(NOT s LIKE a%)",
    "s RLIKE 'a'": "RLIKE(s, a)",
    "s ILIKE 'a'": "ilike(s, a)",
    "i DIV 2": "(i div 2)",
    "~i": "~i",
    "if(ok, 1, 2)": "(IF(ok, 1, 2))",
    "POWER(v, 2)": "POWER(v, 2)",
    "log(v)": "LOG(E(), v)",
    "split(s, ',')[0]": "split(s, ,, -1)[0]",
    "DATE '2020-01-01'": "DATE '2020-01-01'",
    "extract(HOUR FROM ts)": "extract(HOUR FROM ts)",
    "substring(s FROM 1 FOR 2)": "substring(s, 1, 2)",
    "named_struct('a', v)": "named_struct(a, v)",
    "'it''s'": "it's",
    '"text"': "text",
}
OF_AGGREGATES = {
    "-max(v)": "(- max(v))",
    "max(v) IN (1, 2)": "(max(v) IN (1, 2))",
    "max(v) BETWEEN 1 AND 3": "between(max(v), 1, 3)",
    "sum(v) / count(*)": "(sum(v) / count(1))",
    "sum(CAST(v AS INT))": "sum(CAST(v AS INT))",
    "sum(v) FILTER (WHERE ok IS NOT NULL)": "sum(v) FILTER (WHERE (ok IS NOT NULL))",
    "first(v, true)": "first(v)",
    "array_agg(v)": "collect_list(v)",
    "collect_list(v) RESPECT NULLS": "collect_list(v) RESPECT NULLS",
    "listagg(s)": "listagg(s, NULL)",
    "approx_percentile(v, 0.5)": "approx_percentile(v, 0.5, 10000)",
    "listagg(s, ',') WITHIN GROUP (ORDER BY i DESC)": "listagg(s, ,) WITHIN GROUP (ORDER BY i DESC NULLS LAST)",
}


@pytest.mark.parametrize(("text", "name"), [*NAMES.items(), *OF_AGGREGATES.items()])
def test_a_column_without_an_alias_has_a_name(text, name):
    assert name_of(parse_one(text, dialect=VerbatimSpark)) == name


def test_spark_names_them_so(spark):
    events = spark.sql(
        """SELECT timestamp_micros(0) AS ts, 1D AS v, 1 AS i, true AS ok, 'a' AS s, array(1) AS ar, map('a', 1) AS m,
                  named_struct('a', 1, 'b', named_struct('c', 1)) AS st"""
    ).withColumn("window", F.window("ts", "1 minute"))
    assert events.select(*map(F.expr, NAMES)).columns == list(NAMES.values())
    assert events.agg(*map(F.expr, OF_AGGREGATES)).columns == list(OF_AGGREGATES.values())
