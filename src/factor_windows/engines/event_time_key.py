"""The key of instances in a stream's state, which also tells Spark when they end (engines/spark_stream.py)."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from factor_windows.physical.steps import Group
from factor_windows.physical.target import Names
from factor_windows.spark.types import microseconds, timestamp
from factor_windows.spark.watermark import OF_A_WINDOW, WATERMARK


@dataclass(frozen=True, slots=True)
class EventTimeKey:
    """The start of an instance, and its end as Spark's event time: Spark drops a row when the watermark passes it."""

    names: Names
    time: DataType
    is_window: bool = False
    """Whether both are in a struct, as in Spark's own window() and in checkpoints of earlier versions.

    Spark's fast hash table does not support structs."""

    @property
    def column(self) -> str:
        """Name the column that carries event time."""
        return f"{self.names.prefix}{'window' if self.is_window else 'end'}"

    @property
    def start(self) -> str:
        """Return the start of an instance in microseconds, after rows are grouped."""
        return microseconds(f"{self.column}.start", self.time) if self.is_window else self.names.start

    @property
    def end(self) -> str:
        """Return the end of an instance in microseconds, after rows are grouped."""
        return microseconds(f"{self.column}.end" if self.is_window else self.column, self.time)

    def added_to(self, rows: DataFrame, end: str) -> DataFrame:
        """Add the column, given the end in microseconds."""
        at = F.expr(timestamp(end, self.time))
        if not self.is_window:
            return rows.select("*", at.alias(self.column, metadata={WATERMARK: 0}))
        instance = F.struct(F.expr(timestamp(self.names.start, self.time)).alias("start"), at.alias("end"))
        return rows.select("*", instance.alias(self.column, metadata=OF_A_WINDOW))

    def by(self, group: Group) -> list[str]:
        """List the columns to group rows by, in the order that a checkpoint keeps."""
        if self.is_window:
            return [self.column if name == self.names.start else name for name in group.by]
        return [*group.by, self.column]
