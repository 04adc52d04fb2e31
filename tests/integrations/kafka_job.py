"""A stream from Kafka into a Delta table that can be killed: `python kafka_job.py SERVERS FOLDER`."""

import sys

from pyspark.sql import functions as F

import factor_windows as fw

TOPIC = "killed"
SCHEMA = "ts TIMESTAMP, device STRING, t DOUBLE"
PER_MICRO_BATCH = 30
"""So few messages that a job is killed in the middle of many micro-batches."""
QUERY = fw.Query(
    time="ts",
    keys=["device"],
    windows=[
        *(fw.tumbling(f"{seconds}s") for seconds in (20, 30, 40, 50, 60, 70, 90)),
        *(fw.hopping("120s", "60s"), fw.hopping("90s", "30s"), fw.tumbling("5 minutes")),
    ],
    aggregates=["min(t)", "max(t)", "count(*) AS n", "avg(t) AS mean_t"],
)


def events_of(reader, servers, topic=TOPIC):
    """Read a topic's messages, all of them or as a stream, as `reader` has it."""
    source = reader.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topic)
    messages = source.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", PER_MICRO_BATCH).load()
    return messages.select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("event")).select("event.*")


def start(spark, servers, folder):
    """Start the stream, or go on with it, until it has read all messages that are there."""
    events = events_of(spark.readStream, servers).withWatermark("ts", "3 minutes")
    # A stream is a chain of operators if it is taken to be fast.
    result = fw.optimize(QUERY, rate=1_000_000, unit="1 second").run(events, checkpoint=f"{folder}/checkpoint")

    def merge(batch, number):
        print("micro-batch", number, flush=True)
        fw.upsert(batch, f"{folder}/table", format="delta")

    writer = result.writeStream.foreachBatch(merge).option("checkpointLocation", f"{folder}/checkpoint")
    return writer.trigger(availableNow=True).start()


if __name__ == "__main__":
    from conftest import lake_settings
    from pyspark.sql import SparkSession

    settings = lake_settings(f"{sys.argv[2]}/warehouse")
    session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    start(session, *sys.argv[1:]).awaitTermination()
