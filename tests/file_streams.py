"""Streams of files, one for each micro-batch, and what they must give: shared by the tests of streams."""

import json
import os
from datetime import UTC, datetime, timedelta

from comparing import assert_equal, by_instance

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def write_batches(spark, folder, batches, schema):
    """Write a file of JSON for each micro-batch of rows, whose `ts` is in seconds; return all events as a batch."""
    folder.mkdir()
    for number, rows in enumerate(batches):
        path = folder / f"{number}.json"
        lines = [json.dumps(row | {"ts": (EPOCH + timedelta(seconds=row["ts"])).isoformat()}) for row in rows]
        path.write_text("\n".join(lines), encoding="utf-8")
        # Spark reads files by their age.
        os.utime(path, (number + 1, number + 1))
    return spark.read.schema(schema).json(str(folder))


def stream_of(spark, folder, schema, delay="30 seconds"):
    """Read such files, one in each micro-batch."""
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(folder))
    return stream.withWatermark("ts", delay)


def finish(frame, name, mode="append", **options):
    """Run a stream into a table in memory until it has read everything."""
    started = frame.writeStream.format("memory").queryName(name).outputMode(mode).options(**options)
    query = started.trigger(availableNow=True).start()
    query.awaitTermination()
    return query


def watermark_of(running):
    return datetime.fromisoformat(running.lastProgress["eventTime"]["watermark"])


def assert_closed(query, found, everything, watermark):
    """Compare a stream's rows with everything that a batch gives, collected, up to where the watermark is."""
    end = len(query.parsed_keys) + 2
    closed = {
        group: values
        for group, values in everything.items()
        if datetime.fromisoformat(group[end]).replace(tzinfo=UTC) <= watermark
    }
    assert 0 < len(closed) < len(everything)
    assert_equal(query, by_instance(query, found), closed)
