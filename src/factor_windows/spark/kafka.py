"""A Kafka topic of JSON messages as a stream of events, by its address: `kafka://HOST:PORT/TOPIC?OPTION=VALUE`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from factor_windows.errors import OptionError
from factor_windows.functions.expression import quoted
from factor_windows.spark.messages import first_sentence

MESSAGES = "factor_windows.messages"
"""The metrics in which a stream reports how many messages it has read, and how many of them have no time."""
OPTIONS = (
    *("startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy"),
    *("failOnDataLoss", "maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "minPartitions"),
    *("maxRecordsPerPartition", "groupIdPrefix", "kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries"),
    "fetchOffset.retryIntervalMs",
)
"""The options that Spark's source accepts for a stream, besides all that start with `kafka.`."""
_ABSENT = ("KAFKA_DATA_SOURCE_NOT_ENABLED", "_LEGACY_ERROR_TEMP_1140")


@dataclass(frozen=True, slots=True)
class Topic:
    """The location of messages, and how Spark should read them."""

    servers: str
    name: str
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_address(cls, address: str) -> Topic:
        """Read an address.

        >>> Topic.of_address("kafka://one:9092,two:9092/readings?maxOffsetsPerTrigger=1000")
        Topic(servers='one:9092,two:9092', name='readings', options={'maxOffsetsPerTrigger': '1000'})
        """
        parts = urlsplit(address)
        name = parts.path.strip("/")
        if not parts.netloc or not name or "/" in name:
            raise OptionError(
                f"{address!r} has no Kafka topic; write kafka://HOST:PORT/TOPIC, such as "
                "kafka://localhost:9092/readings"
            )
        if "@" in parts.netloc:
            raise OptionError("a Kafka address has no user; configure the login with ?kafka.sasl.jaas.config=...")
        known = {option.lower(): option for option in OPTIONS}
        options: dict[str, str] = {}
        for option, value in parse_qsl(parts.query, keep_blank_values=True):
            if option.lower() in ("schema", "watermark"):
                raise OptionError(f"{option} is not part of a Kafka address; use --{option.lower()} {value!r}")
            if not option.startswith("kafka.") and option.lower() not in known:
                raise OptionError(
                    f"a Kafka address has no option {option!r}; it takes what begins with kafka., {', '.join(OPTIONS)}"
                )
            options[known.get(option.lower(), option)] = value
        return cls(parts.netloc, name, options)

    def read(self, spark: SparkSession, *, schema: str, time: str, delay: str) -> DataFrame:
        """Read the messages as a stream of rows with a schema and a watermark on their time.

        Messages that exist before the stream starts count, unless the options say where to start.
        """
        kind = read_schema(spark, schema)
        known = [column for column in kind.names if column.lower() == time.lower()]
        if not known:
            raise OptionError(
                f"the query's time is {time!r}, and --schema has {', '.join(kind.names)}; add it as {time} TIMESTAMP"
            )
        # By default Spark starts a stream with the messages that arrive from now on; a run that ends would see none.
        reader = spark.readStream.format("kafka").options(**{"startingOffsets": "earliest", **self.options})
        try:
            messages = reader.option("kafka.bootstrap.servers", self.servers).option("subscribe", self.name).load()
            rows = messages.select(F.from_json(F.col("value").cast("string"), kind).alias("event")).select("event.*")
            missing = F.count_if(F.col(quoted(known[0])).isNull())
            told = rows.observe(MESSAGES, F.count(F.lit(1)).alias("read"), missing.alias("without_time"))
            return told.withWatermark(known[0], delay)
        except AnalysisException as mistake:
            if mistake.getCondition() in _ABSENT:
                raise OptionError(_how_to_add(spark.version)) from None
            raise OptionError(f"the topic {self.name} cannot be read: {first_sentence(mistake)}") from None


def read_schema(spark: SparkSession, text: str) -> StructType:
    """Read columns as Spark writes them: `ts TIMESTAMP, device STRING`."""
    try:
        # Not StructType.fromDDL, which Spark Connect does not have everywhere.
        kind = spark.range(0).select(F.from_json(F.lit("{}"), text).alias("event")).schema[0].dataType
    except (AnalysisException, ParseException) as mistake:
        raise OptionError(f"--schema {text!r} cannot be read: {first_sentence(mistake)}") from None
    if not isinstance(kind, StructType):
        raise OptionError(f"--schema {text!r} has no columns; write such as 'ts TIMESTAMP, device STRING'")
    return kind


def messages_in(progress: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many messages a micro-batch has read, and how many of them have no time."""
    told = progress["observedMetrics"].get(MESSAGES)
    return (0, 0) if told is None else (int(told["read"] or 0), int(told["without_time"] or 0))


def _how_to_add(version: str) -> str:
    package = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{version.partition('-')[0]}"
    return f"this Spark has no Kafka source; add it with --conf spark.jars.packages={package}"
