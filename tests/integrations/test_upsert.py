"""Results and changes merged into Delta and Iceberg tables."""

from threading import Thread

import pytest

import factor_windows as fw
from factor_windows.spark.compare import differing_rows
from factor_windows.spark.naive import naive

WINDOWS = [fw.tumbling("20m"), fw.tumbling("30m"), fw.hopping("1h", "10m"), fw.calendar("1 day")]
QUERY = fw.Query(time="ts", keys=["device"], windows=WINDOWS, aggregates=["min(t)", "avg(t) AS mean_t"])


@pytest.fixture(scope="module")
def events(spark):
    return spark.range(900).selectExpr(
        "timestamp_seconds(id * 37 % 20000) AS ts", "nullif(id % 4, 3) AS device", "CAST(id * 7 % 31 AS DOUBLE) AS t"
    )


def test_a_result_is_merged_and_the_same_rows_again_change_nothing(spark, events, format, table):
    result = fw.optimize(QUERY).run(events)
    fw.upsert(result.where("window_id <> '20 minutes'"), table, format=format)
    fw.upsert(result, table)
    fw.upsert(result, table)
    assert differing_rows(spark.table(table), naive(QUERY, events)) == 0


def test_rows_with_null_keys_and_new_values_are_updated(spark, events, format, table):
    fw.upsert(fw.optimize(QUERY).run(events.where("ts < '1970-01-01 03:00:00'")), table, format=format)
    fw.upsert(fw.optimize(QUERY).run(events), table)
    assert differing_rows(spark.table(table), naive(QUERY, events)) == 0
    assert spark.table(table).where("device IS NULL").count() > 0


def test_an_aggregate_that_is_new_becomes_a_column(spark, events, format, table):
    fw.upsert(fw.optimize(QUERY).run(events), table, format=format)
    more = fw.Query(time="ts", keys=["device"], windows=WINDOWS[:2], aggregates=["min(t)", "max(t) AS `most {t}`"])
    fw.upsert(fw.optimize(more).run(events), table)
    found = spark.table(table)
    assert found.columns == ["device", "window_id", "window_start", "window_end", "min(t)", "mean_t", "most {t}"]
    assert found.where("mean_t IS NULL").count() == 0
    own = "window_id IN ('20 minutes', '30 minutes')"
    assert differing_rows(found.where(own).drop("mean_t"), naive(more, events)) == 0
    assert found.where(f"NOT ({own}) AND `most {{t}}` IS NOT NULL").count() == 0


def test_windows_that_grow_are_told_apart_by_their_end(spark, events, format, table):
    query = fw.Query(
        time="ts", windows=[fw.cumulating("6h", step="1h"), fw.tumbling("1h")], aggregates=["count(*) AS n"]
    )
    for _ in range(2):
        fw.upsert(fw.optimize(query).run(events), table, format=format)
    assert differing_rows(spark.table(table), naive(query, events)) == 0


def test_several_queries_are_merged_each_into_its_table(spark, events, format, table):
    other = fw.Query(time="ts", windows=[fw.tumbling("1h")], aggregates=["max(t)"], name="hours")
    plan = fw.optimize(
        [fw.Query(time="ts", keys=["device"], windows=WINDOWS, aggregates=["min(t)"], name="all"), other]
    )
    with plan.run(events) as results:
        for name, result in results.items():
            fw.upsert(result, f"{table}_{name}", format=format)
    for query in plan.queries:
        assert differing_rows(spark.table(f"{table}_{query.name}"), naive(query, events)) == 0


def test_early_results_of_a_stream_are_corrected(spark, events, format, table, tmp_path):
    for number, part in enumerate(("ts < '1970-01-01 02:00:00'", "ts >= '1970-01-01 02:00:00'", "device = 1")):
        events.where(part).repartition(1).write.parquet(f"{tmp_path}/events/{number}")
    stream = spark.readStream.schema(events.schema).option("maxFilesPerTrigger", 1).parquet(f"{tmp_path}/events/*")
    result = fw.optimize(QUERY).run(stream.withWatermark("ts", "2 days"), mode="update")

    def merge(rows, _):
        fw.upsert(rows, table, format=format)
        # As after a fault: the same micro-batch once more.
        fw.upsert(rows, table, format=format)

    writer = result.writeStream.outputMode("update").foreachBatch(merge)
    running = writer.option("checkpointLocation", f"{tmp_path}/checkpoint").trigger(availableNow=True).start()
    assert running.awaitTermination(120)
    assert running.exception() is None
    assert differing_rows(spark.table(table), naive(QUERY, events.union(events.where("device = 1")))) == 0


def test_values_that_a_column_does_not_hold_are_refused(spark, table, format):
    rows = spark.sql("SELECT 1 AS k, 2 AS v, 3L AS n")
    fw.upsert(rows, table, by=["k"], format=format)
    with pytest.raises(fw.OptionError, match=r"the column 'v' is double in these rows, and the table .* has it as int"):
        fw.upsert(rows.withColumn("v", rows["v"] + 0.5), table, by=["k"])
    fw.upsert(rows.withColumn("n", rows["n"].cast("smallint")), table, by=["k"])
    assert [tuple(row) for row in spark.table(table).collect()] == [(1, 2, 3)]


def test_several_jobs_make_one_table_at_once(spark, events, format, table):
    result, troubles = fw.optimize(QUERY).run(events), []

    def merge(window):
        try:
            fw.upsert(result.where(f"window_id = '{window.name}'"), table, format=format)
        except Exception as trouble:
            troubles.append(str(trouble)[:500])

    jobs = [Thread(target=merge, args=(window,)) for window in WINDOWS]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join(120)
    assert troubles == []
    spark.catalog.refreshTable(table)
    assert differing_rows(spark.table(table), naive(QUERY, events)) == 0


def test_wrong_use_is_answered_in_one_sentence(spark, events, table, format):
    result = fw.optimize(QUERY).run(events)
    with pytest.raises(fw.OptionError, match=r"there is no table .*; create it, or set format='delta'"):
        fw.upsert(result, table)
    with pytest.raises(fw.OptionError, match="format 'csv' is unknown; allowed are delta, iceberg"):
        fw.upsert(result, table, format="csv")
    with pytest.raises(fw.OptionError, match="table '' is not the name of a table"):
        fw.upsert(result, "", format=format)
    with pytest.raises(fw.QueryError, match=r"cannot upsert into a; DROP TABLE b: "):
        fw.upsert(result, "a; DROP TABLE b", format="delta")
    with pytest.raises(fw.OptionError, match=r"name these, such as by=\['device', 'window_id', 'window_start'\]"):
        fw.upsert(spark.createDataFrame(result.limit(1).collect(), result.schema).drop("window_id"), table)
    with pytest.raises(fw.OptionError, match="identified by device, which is none of their columns"):
        fw.upsert(result.drop("device"), table, format=format)
    result.limit(1).write.mode("overwrite").format("parquet").saveAsTable("plain_files")
    with pytest.raises(fw.QueryError, match="cannot upsert into plain_files"):
        fw.upsert(result, "plain_files")
    spark.sql("DROP TABLE plain_files")
