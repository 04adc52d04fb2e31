"""SQL gives what Spark gives for the same text: rows, names, types and nullability."""

import datetime

import pytest
import sql_texts
from comparing import columns_of
from pyspark.sql import functions as F
from sql_equality import assert_same_sql, register

import factor_windows as fw

W, H = sql_texts.W, sql_texts.H


@pytest.fixture
def session(spark, one_partition):
    """The session with the tables that the texts are about."""
    register(spark, sql_texts.rows(), sql_texts.SCHEMA)
    yield spark
    spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.long
@pytest.mark.parametrize("texts", ["ALIASES", "FIELDS", "NAMES", "GROUPS", "SETS", "AFTERWARDS", "SOURCES", "UNIONS"])
def test_sql_gives_what_spark_gives(session, texts):
    for text in getattr(sql_texts, texts):
        assert_same_sql(session, text)


def test_case_tells_columns_apart_where_the_session_says_so(session):
    session.conf.set("spark.sql.caseSensitive", "true")
    begin = datetime.datetime(2024, 1, 1)
    rows = [(begin + datetime.timedelta(seconds=30 * i), "ab"[i % 2], "xyz"[i % 3], i) for i in range(12)]
    session.createDataFrame(rows, "ts timestamp, k string, K string, v int").createOrReplaceTempView("cased")
    for text in (
        f"SELECT k, K, max(v) AS m FROM cased GROUP BY k, K, {W}",
        f"SELECT K AS a, max(v) AS m FROM cased GROUP BY K, {H}",
        f"SELECT upper(k) AS K, max(v) AS m FROM cased GROUP BY k, K, {W} HAVING K = 'x'",
        f"SELECT K, k, sum(v) AS m FROM cased GROUP BY ROLLUP(K, k), {H}",
        f"SELECT k, max(v) AS m FROM cased GROUP BY k, {W} UNION ALL SELECT K, max(v) FROM cased GROUP BY K, {H}",
    ):
        assert_same_sql(session, text)


def test_names_that_differ_only_by_case_are_two_keys_without_a_session():
    query = fw.parse(f"SELECT k, max(v) AS m FROM r GROUP BY k, K, {W}")
    assert [key.sql for key in query.parsed_keys] == ["k", "K"]


def test_an_alias_that_is_a_column_after_all_is_refused(session):
    text = f"SELECT k, upper(k) AS site, count(*) AS c FROM r GROUP BY k, site, {W}"
    query = fw.parse(text)
    assert (query.absent, [key.sql for key in query.parsed_keys]) == (("site",), ["k", "upper(k)"])
    plan = fw.Plan.from_json(fw.optimize(query).to_json())
    with pytest.raises(fw.QueryError, match=r"^the events have a column 'site', which Spark takes before the alias"):
        plan.run(session.table("r"))
    with pytest.raises(fw.QueryError, match="a column 'site'"):
        fw.optimize([query, fw.parse(f"SELECT max(v) AS m FROM r GROUP BY {H}")]).run(session.table("r"))
    assert fw.optimize(query).run(session.table("r").drop("site")).count() == 21


def test_a_statement_around_a_query_is_executed(session, tmp_path):
    select = f"SELECT k, window.start AS s, max(v) AS m FROM r GROUP BY k, {W} UNION ALL SELECT k, window.start, "
    select += f"max(v) FROM r GROUP BY k, {H}"
    expected = sorted(map(tuple, session.sql(select).collect()), key=repr)

    def rows(table):
        return sorted(map(tuple, session.table(table).collect()), key=repr)

    try:
        fw.sql(session, f"CREATE OR REPLACE TEMP VIEW viewed AS {select}")
        assert rows("viewed") == expected
        fw.sql(session, f"CREATE TABLE made USING parquet LOCATION '{tmp_path}/made' AS {select}")
        assert rows("made") == expected
        fw.sql(session, f"INSERT INTO made {select}")
        assert len(rows("made")) == 2 * len(expected)
        fw.sql(session, f"INSERT OVERWRITE made (s, k, m) SELECT s, k, m FROM ({select})")
        assert rows("made") == expected
        fw.sql(session, f"WITH w AS ({select}) INSERT OVERWRITE made SELECT * FROM w WHERE k = 'a'")
        assert rows("made") == [row for row in expected if row[0] == "a"]
    finally:
        session.sql("DROP TABLE IF EXISTS made")
        session.catalog.dropTempView("viewed")


def test_a_statement_of_two_queries_runs_as_one_stream(session, tmp_path):
    session.table("r").withColumn("ts", F.col("ts").cast("timestamp")).write.parquet(f"{tmp_path}/events")
    late = session.createDataFrame(
        [(datetime.datetime(2024, 1, 2), "z", "z", 0.0, 0, None, None, None)], sql_texts.SCHEMA
    )
    late.write.mode("append").parquet(f"{tmp_path}/events")
    stream = session.readStream.schema(sql_texts.SCHEMA).parquet(f"{tmp_path}/events")
    stream.withWatermark("ts", "0 seconds").createOrReplaceTempView("flowing")
    text = (
        f"SELECT k, window.start AS s, max(v) AS m, 1 AS part FROM flowing GROUP BY k, {W} HAVING max(v) > 0 UNION ALL "
        f"SELECT site, window.start, sum(n), 2 FROM flowing GROUP BY site, {H}"
    )
    found = fw.sql(session, text)
    assert found.isStreaming
    query = found.writeStream.format("memory").queryName("flowed").outputMode("append")
    query.option("checkpointLocation", f"{tmp_path}/check").trigger(availableNow=True).start().awaitTermination()
    expected = session.sql(text.replace("flowing", "r"))
    assert columns_of(session.table("flowed")) == columns_of(expected)
    assert sorted(map(tuple, session.table("flowed").collect()), key=repr) == sorted(
        map(tuple, expected.collect()), key=repr
    )
    with pytest.raises(fw.QueryError, match="by UNION ALL only"):
        fw.sql(session, f"{text} ORDER BY k")
