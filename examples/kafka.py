"""Kafka: early results of a stream, corrected in a Delta table as late messages arrive.

For those who show numbers before their windows are complete. Sends readings of two pumps to a topic in three lots, the
last of them late, and prints the table after each. Needs a broker, and a Spark with Kafka and Delta:
python examples/kafka.py localhost:9092
"""

import json
import sys
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import factor_windows as fw

TOPIC = "pumps"
PACKAGES = ("org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.3", "io.delta:delta-spark_4.1_2.13:4.4.0")
LOTS = (
    [("09:00:10", "pump 1", 60.0), ("09:03:00", "pump 2", 61.5), ("09:07:20", "pump 1", 62.0)],
    [("09:11:00", "pump 1", 70.0), ("09:12:30", "pump 2", 61.0)],
    [("09:04:59", "pump 1", 91.0), ("09:08:00", "pump 2", 63.5)],
)
"""Readings in the order in which they arrive; those of the last lot are minutes late."""


def send(spark: SparkSession, servers: str, readings: list[tuple[str, str, float]]) -> None:
    """Send readings to the topic as JSON."""
    texts = [(json.dumps({"ts": f"2024-01-01T{at}Z", "pump": pump, "celsius": c}),) for at, pump, c in readings]
    messages = spark.createDataFrame(texts, "value string")
    messages.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", TOPIC).save()


def events_of(spark: SparkSession, servers: str) -> DataFrame:
    """Read the topic as a stream, from its first message on."""
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", TOPIC)
    messages = source.option("startingOffsets", "earliest").load()
    event = F.from_json(F.col("value").cast("string"), "ts TIMESTAMP, pump STRING, celsius DOUBLE")
    return messages.select(event.alias("event")).select("event.*").withWatermark("ts", "10 minutes")


def main(spark: SparkSession, servers: str, folder: str) -> None:
    """Send a lot, let the stream read it, show the table, and begin again."""
    table, checkpoint = f"{folder}/pumps", f"{folder}/checkpoint"
    query = fw.Query(
        time="ts",
        keys=["pump"],
        windows=[fw.tumbling("5 minutes"), fw.tumbling("15 minutes")],
        aggregates=["count(*) AS readings", "max(celsius) AS hottest"],
    )
    plan = fw.optimize(query)

    def upsert(batch: DataFrame, number: int) -> None:
        fw.upsert(batch, table, format="delta")

    for lot in LOTS:
        send(spark, servers, lot)
        result = plan.run(events_of(spark, servers), mode="update", checkpoint=checkpoint)
        writer = result.writeStream.foreachBatch(upsert).outputMode("update")
        running = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        running.awaitTermination()
        rows = spark.read.format("delta").load(table).withColumn("start", F.date_format("window_start", "HH:mm"))
        print(f"{len(lot)} more readings:")
        shown = ("pump", "window_id", "start", "readings", "hottest")
        rows.orderBy("window_id", "window_start", "pump").select(*shown).show()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/kafka.py HOST:PORT")
    session = (
        SparkSession.builder.master("local[*]")
        .config("spark.jars.packages", ",".join(PACKAGES))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    with TemporaryDirectory() as folder:
        main(session, sys.argv[1], folder)
    session.stop()
