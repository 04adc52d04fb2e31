"""What must hold through a Spark Connect server, checked in a process that has no Spark of its own.

`connect_client.py sc://host:port folder [serverless]` checks every fact and prints a line of JSON for each. With
`serverless` the session refuses what Databricks' serverless compute refuses, in the words that it uses: nothing is
kept, nothing is set, and few settings are told.
"""

import json
import os
import sys
import time
import traceback
import warnings
from contextlib import suppress
from functools import partial
from pathlib import Path

from pyspark.errors.exceptions.connect import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.connect.conf import RuntimeConf
from pyspark.sql.connect.dataframe import DataFrame

import factor_windows as fw
from factor_windows.engines.spark_queries import NOTHING_KEPT
from factor_windows.spark.compare import differing_rows
from factor_windows.spark.naive import naive

WINDOWS = [fw.tumbling("20m"), fw.tumbling("30m"), fw.hopping("1h", "10m", name="hourly")]
QUERY = fw.Query(time="ts", keys=["k"], windows=WINDOWS, aggregates=["min(v)", "avg(v) AS mean", "count(*) AS n"])
LIVE = fw.Query(time="ts", keys=["k"], windows=WINDOWS[:2], aggregates=["avg(v) AS mean"], name="live")
PEAK = fw.Query(time="ts", windows=WINDOWS[2:], aggregates=["max(v) AS most"], where="n > 1", name="peak")
STREAMED = fw.Query(time="ts", keys=["k"], windows=WINDOWS, aggregates=["min(v)", "count(*) AS n"])
SCHEMA = "ts TIMESTAMP, k BIGINT, v DOUBLE, n BIGINT"
TOLD = {"spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "auto", "spark.sql.ansi.enabled": "true"}
"""The settings that serverless compute tells."""


def restrict():
    """Let Connect sessions of this process refuse what serverless compute refuses."""

    def refuse(what, *_, **__):
        text = f"[NOT_SUPPORTED_WITH_SERVERLESS] {what} is not supported on serverless compute. SQLSTATE: 0A000"
        raise AnalysisException(text, errorClass="NOT_SUPPORTED_WITH_SERVERLESS", sql_state="0A000")

    def unavailable(_, name, *__):
        text = f"[CONFIG_NOT_AVAILABLE] Configuration {name} is not available. SQLSTATE: 42K0I"
        raise AnalysisException(text, errorClass="CONFIG_NOT_AVAILABLE", sql_state="42K0I")

    truth = RuntimeConf.get
    if truth.__name__ == "tell":
        return

    def tell(conf, name, *default):
        # PySpark's own client asks for settings too, and is part of what a maker of servers ships.
        if sys._getframe(1).f_globals["__name__"].startswith("pyspark."):
            return truth(conf, name, *default)
        return TOLD[name] if name in TOLD else unavailable(conf, name)

    for method in ("cache", "persist"):
        setattr(DataFrame, method, partial(refuse, "PERSIST TABLE"))
    for method in ("unpersist", "checkpoint", "localCheckpoint"):
        setattr(DataFrame, method, partial(refuse, method))
    RuntimeConf.set, RuntimeConf.unset, RuntimeConf.get = unavailable, unavailable, tell


class Facts:
    """Each method states a fact and fails if it does not hold."""

    def __init__(self, spark, folder, *, serverless):
        self.spark, self.folder, self.serverless = spark, Path(folder), serverless
        self.events = spark.range(600).selectExpr(
            "timestamp_seconds(id * 11) AS ts", "id % 3 AS k", "CAST(id * 7 % 31 AS double) AS v", "id % 5 AS n"
        )

    def equal(self, query, found):
        assert found.count() > 0
        assert differing_rows(found, naive(query, self.events)) == 0

    def a_serverless_session_refuses_to_keep_and_to_set(self):
        asked = {
            "PERSIST TABLE": self.events.persist,
            "localCheckpoint": self.events.localCheckpoint,
            "spark.a": lambda: self.spark.conf.set("spark.a", "1"),
            "spark.sql.caseSensitive": lambda: self.spark.conf.get("spark.sql.caseSensitive"),
        }
        for what, ask in asked.items():
            said = ""
            try:
                ask()
            except AnalysisException as refusal:
                said = str(refusal)
            assert (what in said) == self.serverless, (what, said)
        assert not hasattr(self.spark, "sparkContext")
        assert not hasattr(self.spark, "_jvm")
        if not self.serverless:
            self.events.unpersist()
            self.spark.conf.unset("spark.a")

    def a_batch_is_right(self):
        self.equal(QUERY, fw.optimize(QUERY).run(self.events))
        self.equal(QUERY, fw.optimize(QUERY).run(self.events, statistics=None))
        found = fw.aggregate(self.events, time="ts", keys=["k"], windows=WINDOWS, aggregates=list(QUERY.aggregates))
        self.equal(QUERY, found)

    def sql_is_right(self):
        self.events.createOrReplaceTempView("events")
        text = "SELECT k, window.end AS e, max(v) AS m FROM events GROUP BY k, window(ts, '20 minutes') ORDER BY e, k"
        assert fw.sql(self.spark, text).collect() == self.spark.sql(text).collect()

    def medians_and_labels_are_right(self):
        query = fw.Query(time="ts", windows=WINDOWS, aggregates=["median(v) AS m", "count(DISTINCT n) AS d"])
        self.equal(query, fw.optimize(query).run(self.events))
        labels = self.spark.sql("SELECT 1L AS k, timestamp_seconds(3000) AS at")
        seen = fw.wide(fw.optimize(STREAMED).at(labels, self.events)).first()
        assert seen["n_hourly"] == self.events.where("k = 1 AND ts < timestamp_seconds(3000)").count()

    def statistics_of_several_queries_are_measured(self):
        found = fw.analyze(self.events, queries=[LIVE, PEAK], sample=1)
        assert (found.events, found.keys) == (600, 3)
        assert 0.5 < found.selectivity["peak"] < 0.7

    def several_queries_are_right_and_say_that_nothing_is_kept(self):
        plan = fw.optimize([LIVE, PEAK])
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with plan.run(self.events) as results:
                for query in (LIVE, PEAK):
                    self.equal(query, results[query.name])
        own = [str(each.message) for each in said if str(each.message) == NOTHING_KEPT]
        assert own == ([NOTHING_KEPT] if self.serverless else []), own
        assert len(results.kept) == (0 if self.serverless else 1)

    def partial_results_of_several_queries_are_merged(self):
        plan, place = fw.optimize([LIVE, PEAK]), str(self.folder / "panes")
        for part in ("n > 2", "n <= 2"):
            plan.partials(self.events.where(part)).write.mode("append").parquet(place)
        results = plan.merge(self.spark.read.parquet(place), schema=self.events.schema)
        for query in (LIVE, PEAK):
            self.equal(query, results[query.name])

    def stream(self):
        """Read the events as a stream, in two micro-batches, in the order of time."""
        place = self.folder / "in"
        if not place.exists():
            for part in ("ts < timestamp_seconds(3300)", "ts >= timestamp_seconds(3300)"):
                self.events.where(part).coalesce(1).write.mode("append").parquet(str(place))
        rows = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(place))
        return rows.withWatermark("ts", "1 minute")

    def finish(self, writer, checkpoint):
        running = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        assert running.awaitTermination(120), "the stream has not ended"
        assert running.exception() is None
        return running

    def a_stream_is_right_with_what_it_had_left_open(self):
        plan, out, state = fw.optimize(STREAMED), str(self.folder / "out"), self.folder / "state"
        result = plan.run(self.stream(), checkpoint=state)
        running = self.finish(result.writeStream.format("parquet").option("path", out), state)
        closed, left = self.spark.read.parquet(out), plan.flush(self.events, running)
        assert min(closed.count(), left.count()) > 0
        self.equal(STREAMED, closed.unionAll(left))

    def a_stream_of_several_queries_is_told_apart(self):
        plan, out, state = fw.optimize([LIVE, PEAK]), str(self.folder / "apart"), self.folder / "apart-state"

        def write(batch, number):
            for name, rows in fw.split_by_query(batch, plan=plan).items():
                rows.write.mode("append").parquet(f"{out}/{name}")

        running = self.finish(plan.run(self.stream(), checkpoint=state).writeStream.foreachBatch(write), state)
        left = plan.flush(self.events, running)
        for query in (LIVE, PEAK):
            self.equal(query, self.spark.read.parquet(f"{out}/{query.name}").unionAll(left[query.name]))

    def results_are_upserted_into_delta(self):
        self._upsert("upserted", "delta")

    def results_are_upserted_into_iceberg(self):
        self._upsert("ice.db.upserted", "iceberg")

    def _upsert(self, table, format):
        table += "_serverless" if self.serverless else ""
        plan, serverless = fw.optimize(STREAMED), self.serverless
        for _ in range(2):
            fw.upsert(plan.run(self.events), table, format=format)
        self.equal(STREAMED, self.spark.table(table))

        def write(batch, number):
            if serverless:
                restrict()
            fw.upsert(batch, f"{table}_streamed", by=["k", "window_id", "window_start"], format=format)

        state = self.folder / f"{format}-state"
        updates = plan.run(self.stream(), mode="update", checkpoint=state)
        self.finish(updates.writeStream.outputMode("update").foreachBatch(write), state)
        self.equal(STREAMED, self.spark.table(f"{table}_streamed"))

    def a_store_in_a_folder_is_right(self):
        store = fw.Store.create(self.spark, self.folder / "store", QUERY)
        self._append_to(store)

    def a_store_on_delta_is_right(self):
        self._store_on("default.kept", "delta")

    def a_store_on_iceberg_is_right(self):
        self._store_on("ice.db.kept", "iceberg")

    def _store_on(self, name, format):
        name += "_serverless" if self.serverless else ""
        self._append_to(fw.Store.create(self.spark, name, QUERY, format=format))

    def a_stream_into_a_store_upserts_what_it_changes(self):
        name = "default.live" + ("_serverless" if self.serverless else "")
        store = fw.Store.create(self.spark, name, STREAMED, format="delta")

        def merge(rows, version):
            fw.upsert(rows.drop("is_final"), f"{name}_changes", format="delta")

        state, trigger = self.folder / "live-state", {"availableNow": True}
        running = store.write_stream(self.stream(), checkpoint=state, trigger=trigger, on_changes=merge)
        assert running.awaitTermination(120), "the stream has not ended"
        self.equal(STREAMED, store.read())
        self.equal(STREAMED, self.spark.table(f"{name}_changes"))

    def _append_to(self, store):
        for _ in range(2):
            store.append(self.events.where("n > 2"), batch="one")
        store.compact()
        store.append(self.events.where("n <= 2"))
        self.equal(QUERY, store.read())
        self.equal(QUERY, store.changes(since=0).drop("is_final"))

    def a_state_store_that_cannot_be_set_is_refused_in_words(self):
        said = ""
        try:
            fw.use_rocksdb(self.spark)
        except fw.OptionError as refusal:
            said = str(refusal)
        assert ("leave use_rocksdb out" in said) == self.serverless, said


SHARED = {"delta": "default.shared", "iceberg": "ice.db.shared"}
"""Stores that several processes write at once."""
BATCHES = 3


def create_shared(spark):
    """Begin the stores."""
    for format, table in SHARED.items():
        fw.Store.create(spark, table, QUERY, format=format)


def write_shared(spark, folder, writer):
    """Append a part of the events to the stores, and one that all writers have under the same name; compact between."""
    events = Facts(spark, folder, serverless=False).events
    for table in SHARED.values():
        store = fw.Store.open(spark, table)
        store.append(events.where("n = 4"), batch="of all")
        for number in range(BATCHES):
            store.append(events.where(f"n = {writer} AND k = {number}"), batch=f"{writer} {number}")
            if number == 1:
                # One that is too late says so, and changes nothing.
                with suppress(fw.StoreConflictError):
                    store.compact()


def check_shared(spark, folder):
    """Say how many rows of the stores are wrong, and how many versions they have."""
    events = Facts(spark, folder, serverless=False).events.where("n IN (0, 1, 4)")
    for table in SHARED.values():
        store = fw.Store.open(spark, table)
        print(json.dumps({"fact": table, "trouble": differing_rows(store.read(), naive(QUERY, events))}))


FACTS = [name for name in vars(Facts) if not name.startswith("_") and name not in ("equal", "stream", "finish")]


ALSO_PLAIN = [
    "a_serverless_session_refuses_to_keep_and_to_set",
    "several_queries_are_right_and_say_that_nothing_is_kept",
    "a_stream_of_several_queries_is_told_apart",
    "a_state_store_that_cannot_be_set_is_refused_in_words",
]
"""What is checked without restrictions too: where something may be kept or set. The rest is a matter of Connect."""


def main(remote, folder, *mode):
    spark = SparkSession.builder.remote(remote).getOrCreate()
    if mode[:1] == ("create",):
        create_shared(spark)
    elif mode[:1] == ("write",):
        write_shared(spark, folder, *mode[1:])
    elif mode[:1] == ("check",):
        check_shared(spark, folder)
    else:
        check_facts(spark, folder, *mode)
    # Ending the session may wait for threads of streams that the server has ended.
    sys.stdout.flush()
    os._exit(0)


def check_facts(spark, folder, *mode):
    if mode:
        restrict()
    facts = Facts(spark, folder, serverless=bool(mode))
    for name in FACTS if mode else ALSO_PLAIN:
        began, trouble = time.monotonic(), ""
        try:
            getattr(facts, name)()
        except Exception:
            trouble = traceback.format_exc()
        seconds = round(time.monotonic() - began, 1)
        print(json.dumps({"fact": name, "trouble": trouble, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
