"""Throughput from Kafka: a plan's stream and the union of one stream for each window, over the same topic.

`python -m benchmarks.kafka --messages 2000000`, in the environment of `make integrations`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated

import pyspark
import typer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.experiments import TEN_TUMBLING
from benchmarks.kafka_broker import Broker
from benchmarks.timing import rounds
from factor_windows.engines.spark_stream import use_rocksdb
from factor_windows.query import Query
from factor_windows.search import optimize
from factor_windows.spark.generate import devices
from factor_windows.spark.naive import naive

JARS = Path(__file__).parents[1] / "jars" / "spark"
TOPIC = "readings"
SCHEMA = "ts TIMESTAMP, device STRING, v DOUBLE"
BATCHES = 4
"""The number of micro-batches in which the messages are read."""
LONGEST = 1_800
"""The most seconds that a stream may take."""
QUERY = Query(time="ts", keys=["device"], windows=TEN_TUMBLING, aggregates=["min(v)"])


def main(
    messages: Annotated[int, typer.Option(help="How many messages are read.")] = 2_000_000,
    repeats: Annotated[int, typer.Option("--rounds", help="How often each stream runs.")] = 3,
    seed: Annotated[int, typer.Option(help="What shuffles the order within a round.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Load a topic once, and read it by each stream in turn, in a shuffled order; print the medians."""
    if not JARS.exists() or not any(JARS.glob("spark-sql-kafka*")):
        raise SystemExit(f"there is no Kafka source in {JARS.name}; make integrations fetches it")
    spark = _session()
    with TemporaryDirectory(prefix="factor-windows-") as folder:
        broker = Broker(Path(folder) / "broker")
        try:
            broker.start()
            load(spark, broker.servers, messages)
            seconds = measure(spark, broker.servers, Path(folder), messages, repeats=repeats, seed=seed)
        finally:
            broker.stop()
            spark.stop()
    medians = {name: median(times) for name, times in seconds.items()}
    ratio = medians["naive"] / medians["plan"]
    if as_json:
        rates = {name: messages / took for name, took in medians.items()}
        print(json.dumps({"messages": messages, "seconds": seconds, "messages_per_second": rates, "ratio": ratio}))
        return
    print(f"{messages:,} messages, ten tumbling windows, Spark {pyspark.__version__}, medians of {repeats} rounds")
    for name, took in medians.items():
        print(f"{name:<6}{took:>8.1f} s{messages / took:>12,.0f} messages/s")
    print(f"the plan takes {ratio:.1f} times less than window by window")


def load(spark: SparkSession, servers: str, messages: int) -> None:
    """Send the readings of devices as JSON, in the order of their times."""
    value, partition = F.to_json(F.struct("ts", "device", "v")), F.expr("CAST(unix_micros(ts) DIV 10000 % 2 AS INT)")
    # One task, and partitions in turn: messages sent by several tasks would be out of order, and late.
    rows = devices(spark, messages).select(value.alias("value"), partition.alias("partition")).coalesce(1)
    writer = rows.write.format("kafka")
    writer.option("kafka.bootstrap.servers", servers).option("topic", TOPIC).save()


def measure(
    spark: SparkSession, servers: str, folder: Path, messages: int, *, repeats: int, seed: int
) -> dict[str, list[float]]:
    """Run both streams in turns, after one uncounted run of each; return their seconds."""
    stream = read(spark, servers, messages // BATCHES)
    plan = optimize(QUERY, rate=100, unit="1 second", keys=20)
    frames: dict[str, DataFrame] = {"plan": plan.run(stream), "naive": naive(QUERY, stream)}
    begun = 0

    def run(frame: DataFrame) -> Callable[[], int]:
        def once() -> int:
            nonlocal begun
            begun += 1
            return finish(frame, folder / f"checkpoint-{begun}")

        return once

    contenders = {name: run(frame) for name, frame in frames.items()}
    for contender in contenders.values():
        contender()
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for name, took, count in rounds(contenders, repeats=repeats, random=Random(seed)):
        # The union has a scan of the topic for each window.
        if count not in (messages, messages * len(TEN_TUMBLING)):
            raise SystemExit(f"{name} read {count:,} messages instead of {messages:,}")
        seconds[name].append(took)
    return seconds


def read(spark: SparkSession, servers: str, per_batch: int) -> DataFrame:
    """Read the topic as a stream of readings."""
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", TOPIC)
    messages = source.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", max(1, per_batch)).load()
    event = F.from_json(F.col("value").cast("string"), SCHEMA)
    return messages.select(event.alias("event")).select("event.*").withWatermark("ts", "10 seconds")


def finish(result: DataFrame, checkpoint: Path) -> int:
    """Run a stream until it has read everything, without writing its rows; return the number of messages read."""
    writer = result.writeStream.format("noop").outputMode("append").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    if not query.awaitTermination(LONGEST):
        query.stop()
        raise SystemExit(f"a stream has not ended after {LONGEST} s")
    return sum(report["numInputRows"] for report in query.recentProgress)


def _session() -> SparkSession:
    settings = {
        "spark.jars": ",".join(map(str, sorted(JARS.glob("*.jar")))),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
    }
    spark = SparkSession.builder.master("local[*]").config(map={**settings}).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    use_rocksdb(spark)
    return spark


if __name__ == "__main__":
    typer.run(main)
