"""A stream from files to files that can be killed and started again: `python tests/killed_job.py FOLDER`."""

import sys

import factor_windows as fw

SCHEMA = "ts timestamp, k string, v double"
QUERY = fw.Query(
    time="ts",
    keys=["k"],
    windows=[fw.tumbling("20s"), fw.tumbling("30s"), fw.hopping("60s", "20s")],
    aggregates=["min(v)", "count(*) AS n"],
)


def start(spark, folder):
    """Start the stream, or go on with it, until it has read all files that are there."""
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(f"{folder}/in")
    # A stream is a chain of operators if it is taken to be fast.
    plan = fw.optimize(QUERY, rate=1_000_000, unit="1 second")
    result = plan.run(stream.withWatermark("ts", "30 seconds"), checkpoint=f"{folder}/checkpoint")
    writer = result.writeStream.format("parquet").option("path", f"{folder}/out")
    return writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()


if __name__ == "__main__":
    from conftest import new_session

    running = start(new_session(), sys.argv[1])
    print("started", flush=True)
    running.awaitTermination()
