"""Sessions that allow less than Spark does: nothing is kept or set, few settings are told, or nothing may be asked."""

import sys

import pytest
from comparing import assert_equal, by_instance
from pyspark.errors import AnalysisException
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.conf import RuntimeConfig

import factor_windows as fw
from factor_windows.engines.spark_queries import NOTHING_KEPT
from factor_windows.spark.naive import naive
from factor_windows.spark.restricted import PIPELINE
from factor_windows.spark.settings import shuffle_partitions

LIVE = fw.Query(
    time="ts", keys=["k"], windows=[fw.tumbling("1m"), fw.tumbling("5m")], aggregates=["sum(v)"], name="live"
)
PEAK = fw.Query(time="ts", windows=[fw.tumbling("1h")], aggregates=["max(v)"], where="v > 3", name="peak")


def refuse(text):
    def refused(*_, **__):
        raise AnalysisException(text)

    return refused


@pytest.fixture
def events(spark):
    return spark.range(300).selectExpr("timestamp_seconds(id * 7) AS ts", "id % 3 AS k", "id % 11 AS v")


@pytest.fixture
def serverless(monkeypatch):
    """A session that refuses what serverless compute does; tests/integrations/connect_client.py has it in full."""
    kept = refuse("[NOT_SUPPORTED_WITH_SERVERLESS] PERSIST TABLE is not supported on serverless compute.")
    for method in ("persist", "cache", "unpersist", "localCheckpoint"):
        monkeypatch.setattr(ClassicDataFrame, method, kept)
    unavailable = refuse("[CONFIG_NOT_AVAILABLE] Configuration spark.any is not available.")
    truth = RuntimeConfig.get

    def tell(*asked):
        # PySpark asks for settings itself.
        return (truth if sys._getframe(1).f_globals["__name__"].startswith("pyspark.") else unavailable)(*asked)

    monkeypatch.setattr(RuntimeConfig, "set", unavailable)
    monkeypatch.setattr(RuntimeConfig, "get", tell)


def test_several_queries_are_computed_one_by_one_where_nothing_is_kept(events, request):
    expected = {query.name: by_instance(query, naive(query, events)) for query in (LIVE, PEAK)}
    request.getfixturevalue("serverless")
    with pytest.warns(UserWarning, match="reads the events anew") as said:
        results = fw.optimize([LIVE, PEAK]).run(events)
    assert [str(each.message) for each in said] == [NOTHING_KEPT]
    assert said[0].filename == __file__
    with results:
        assert results.kept == ()
        for query in (LIVE, PEAK):
            assert_equal(query, by_instance(query, results[query.name]), expected[query.name])


def test_statistics_are_measured_where_nothing_is_kept(events, serverless):
    found = fw.analyze(events, queries=[LIVE, PEAK], sample=1)
    assert (found.events, found.keys) == (300, 3)


def test_a_mistake_in_what_is_kept_is_no_refusal(events, monkeypatch):
    monkeypatch.setattr(ClassicDataFrame, "persist", refuse("[UNRESOLVED_COLUMN] no such column"))
    with pytest.raises(AnalysisException, match="no such column"):
        fw.optimize([LIVE, PEAK]).run(events)


def test_a_state_store_that_cannot_be_set_is_refused_in_words(spark, serverless):
    with pytest.raises(fw.OptionError, match="leave use_rocksdb out"):
        fw.use_rocksdb(spark)


def test_partitions_that_spark_chooses_itself_are_no_number(spark, monkeypatch):
    monkeypatch.setattr(RuntimeConfig, "get", lambda *_: "auto")
    assert shuffle_partitions(spark) is None


@pytest.fixture
def flow_function(monkeypatch):
    """What a flow function of a pipeline may ask about a DataFrame: nothing."""
    refused = refuse(f"[{PIPELINE}] Operations that trigger DataFrame analysis or execution are not allowed")
    for name in ("isStreaming", "schema", "columns"):
        monkeypatch.setattr(ClassicDataFrame, name, property(refused))


def test_a_plan_says_where_it_can_be_run_in_a_pipeline(events, flow_function):
    with pytest.raises(fw.OptionError, match="run the plan outside the function"):
        fw.optimize(LIVE).run(events)
    with pytest.raises(fw.OptionError, match="run the plan outside the function"):
        fw.aggregate(events, time="ts", windows=LIVE.windows, aggregates=LIVE.aggregates)


def test_sql_is_handed_over_as_text_in_a_flow_function(spark, events, request):
    events.createOrReplaceTempView("ticks")
    text = "SELECT k, window.end AS e, max(v) AS m FROM ticks GROUP BY k, window(ts, '{}')"
    both = " UNION ALL ".join(map(text.format, ("1 minute", "5 minutes")))
    expected = sorted(spark.sql(both).collect())
    request.getfixturevalue("flow_function")
    found = fw.sql(spark, both)
    request.getfixturevalue("monkeypatch").undo()
    assert sorted(found.collect()) == expected


def test_sql_whose_names_cannot_be_looked_up_is_refused_in_a_flow_function(spark, events, flow_function):
    text = "SELECT k AS q, max(v) AS m FROM ticks GROUP BY q, window(ts, '1 minute')"
    with pytest.raises(fw.SqlError, match="'q' is an alias here and may be a column too"):
        fw.sql(spark, text)
