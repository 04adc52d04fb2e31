"""A stream without files: every run of it reads the next tick, a few numbered events at one time."""

ROWS = 4
"""How many events each tick has; they are numbered from 0 on."""
STEP = 10
"""How many seconds there are from one tick to the next; the first is at 1970."""


def ticking(spark):
    """A stream of ticks with the columns `timestamp` and `value`."""
    options = {"rowsPerBatch": ROWS, "numPartitions": 1, "advanceMillisPerBatch": 1000 * STEP, "startTimestamp": 0}
    ticks = spark.readStream.format("rate-micro-batch").options(**options).load()
    return ticks.withWatermark("timestamp", "1 second")


def ticked(spark, ticks):
    """The events of so many ticks as a batch."""
    return spark.range(ROWS * ticks).selectExpr(
        f"timestamp_seconds(id DIV {ROWS} * {STEP}) AS timestamp", "id AS value"
    )


def tick(result, folder, checkpoint, times=1):
    """Read the next ticks, one in each run from the checkpoint, into Parquet files; return the last run."""
    for _ in range(times):
        writer = result.writeStream.foreachBatch(lambda rows, _: rows.write.mode("append").parquet(str(folder)))
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        query.awaitTermination()
    return query
