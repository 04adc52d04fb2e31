"""What the tests submit to a cluster: a batch of many windows, or a stream of them."""

import sys
from threading import Thread
from time import sleep

from pyspark.sql import SparkSession

import factor_windows as fw

QUERY = fw.Query(
    time="ts",
    keys=["k"],
    windows=[fw.tumbling("10s"), fw.tumbling("15s"), fw.hopping("1m", "10s"), fw.tumbling("17s")],
    aggregates=["count(*) AS n", "sum(v) AS total", "max(v) AS high"],
)
SCHEMA = "ts timestamp, k bigint, v bigint"


def say_when_half_is_done(spark: SparkSession) -> None:
    """Print a line as soon as half of the tasks of the first stage that has many are done."""
    tracker = spark.sparkContext.statusTracker()
    while True:
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        if any(stage and 4 < stage.numTasks <= 2 * stage.numCompletedTasks for stage in stages):
            print("half-way", flush=True)
            return
        sleep(0.02)


def main(kind: str, events: str, output: str, checkpoint: str) -> None:
    spark = SparkSession.builder.appName(f"factor-windows {kind}").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    print("code from", fw.__file__, flush=True)
    # A stream is a chain of operators if it is taken to be fast.
    plan = fw.optimize(QUERY, rate=1_000_000, unit="1 second")
    if kind == "batch":
        Thread(target=say_when_half_is_done, args=(spark,), daemon=True).start()
        plan.run(spark.read.parquet(events)).write.parquet(output)
    else:
        stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(events)
        running = (
            plan.run(stream.withWatermark("ts", "5 seconds"), checkpoint=checkpoint)
            .writeStream.format("parquet")
            .option("path", output)
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        seen = -1
        while not running.awaitTermination(0.1):
            progress = running.lastProgress
            if progress and progress["batchId"] > seen:
                seen = progress["batchId"]
                print("batch", seen, flush=True)
        print("watermark", running.lastProgress["eventTime"]["watermark"], flush=True)
    print("done", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
