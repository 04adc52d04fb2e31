"""Comparing what this library makes of SQL with what Spark makes of the same text."""

from comparing import columns_of, equal

import factor_windows as fw


def register(spark, rows, schema):
    """Make the tables that the texts of `sql_texts` are about."""
    spark.createDataFrame(rows, schema).createOrReplaceTempView("r")
    spark.createDataFrame([("a", "first"), ("b", "second")], "k string, label string").createOrReplaceTempView("d")


def assert_same_sql(spark, text):
    """Check that a text gives the rows, names, types and nullability that Spark gives; the order too if it has one."""
    ours, theirs = fw.sql(spark, text), spark.sql(text)
    assert columns_of(ours) == columns_of(theirs), text
    found, expected = ([tuple(row) for row in frame.collect()] for frame in (ours, theirs))
    if "ORDER BY" not in text.rsplit(")", 1)[-1]:
        found, expected = sorted(found, key=repr), sorted(expected, key=repr)
    assert len(found) == len(expected), text
    for left, right in zip(found, expected, strict=True):
        assert all(map(equal, left, right)), f"{text}: {left} instead of {right}"
