"""Labels: rows with the keys of a query and a time, and the columns that match them with the events of these keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from factor_windows.errors import OptionError, QueryError
from factor_windows.functions.expression import Expression, parse, quoted, sql_of
from factor_windows.query import Query
from factor_windows.spark.messages import first_sentence, without_json
from factor_windows.spark.nullability import never_null
from factor_windows.spark.settings import is_case_sensitive
from factor_windows.spark.typed import has_maps
from factor_windows.spark.types import Types, microseconds

WIDER = (
    (T.ByteType, T.ShortType, T.IntegerType, T.LongType),
    (T.FloatType, T.DoubleType),
)
"""Types in order: each can hold all values of those before it."""


@dataclass(frozen=True, slots=True)
class Part:
    """A key or a label's time, by which labels and events are matched, as columns that are never null."""

    column: str
    flag: str
    """The column that says whether the part is null; empty if it never is."""
    kind: T.DataType
    of_label: str
    of_event: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """List the columns that are compared."""
        return (self.column, self.flag) if self.flag else (self.column,)

    def columns(self, sql: str) -> list[str]:
        """Compute the compared columns from an expression that may be null, since joins never match nulls."""
        if not self.flag:
            return [f"{sql} AS {self.column}"]
        known = never_null(sql, T.StructField(self.column, self.kind, nullable=False))
        return [f"{known} AS {self.column}", f"({sql}) IS NULL AS {self.flag}"]

    @property
    def value(self) -> str:
        """Return the part with its nulls restored."""
        return f"CASE WHEN NOT {self.flag} THEN {self.column} END" if self.flag else self.column


@dataclass(frozen=True, slots=True)
class Labels:
    """How labels are matched with events: by their keys, and by their time in microseconds."""

    keys: tuple[Part, ...]
    time: Part
    kind: T.DataType
    """The type of times, of events too; dates may then count as another type than without labels."""

    @property
    def names(self) -> list[str]:
        """List the columns that identify a label, up to labels with the same result."""
        return [name for part in (*self.keys, self.time) for name in part.names]

    @property
    def key_names(self) -> list[str]:
        """List the columns of keys."""
        return [name for part in self.keys for name in part.names]

    @property
    def columns(self) -> list[str]:
        """Compute `names` from labels."""
        return [column for part in (*self.keys, self.time) for column in part.columns(part.of_label)]

    @property
    def event_columns(self) -> list[str]:
        """Compute `key_names` from events."""
        return [column for part in self.keys for column in part.columns(part.of_event)]

    @classmethod
    def read(cls, query: Query, labels: DataFrame, types: Types, *, time: str, prefix: str) -> Labels:
        """Find the keys and the time of labels, and check that their types match those of the events."""
        sqls = [_key(labels, key) for key in query.parsed_keys]
        fields = list(labels.select(*(F.expr(sql) for sql in (*sqls, "1"))).schema)[:-1]
        keys = tuple(
            _matched(f"{prefix}i{place}", key, (sql, own), field)
            for place, (key, sql, own, field) in enumerate(
                zip(query.parsed_keys, sqls, fields, types.keys, strict=True)
            )
        )
        own = sql_of(parse(time, what="time", error=QueryError)[0])
        field = _time(labels, own)
        kind = _common_time(query, types.time, time, field.dataType)
        micros = microseconds(f"({own})", kind)
        flag = f"{prefix}no_at" if field.nullable else ""
        if not flag:
            # Spark does not know that a time that is not null has a number.
            micros = f"coalesce({micros}, 0L)"
        return cls(keys, Part(f"{prefix}at", flag, T.LongType(), micros), kind)


def check_labels(labels: object, time: object) -> None:
    """Refuse labels that are not a DataFrame and times that are not a name, with a clear message."""
    if not isinstance(labels, DataFrame):
        raise OptionError(f"labels {labels!r} is not a PySpark DataFrame; give one with the query's keys and a time")
    if not isinstance(time, str):
        raise OptionError(f"time {time!r} is not text; it names the column of the labels' times, such as 'at'")


def _key(labels: DataFrame, key: Expression) -> str:
    """Return a key in terms of the labels' columns: the column of its name, or else the same expression over them."""
    if _has_column(labels, quoted(key.name)):
        return quoted(key.name)
    if _has_column(labels, key.sql):
        return key.sql
    raise QueryError(
        f"the labels have no column {key.name!r}, which is a key of the query; add it, or rename one of theirs: "
        f"{', '.join(labels.columns)}"
    )


def _has_column(labels: DataFrame, sql: str) -> bool:
    try:
        with without_json():
            return bool(labels.select(F.expr(sql)).schema)
    except AnalysisException:
        return False


def _matched(column: str, key: Expression, own: tuple[str, T.StructField], field: T.StructField) -> Part:
    """Convert a key of labels and of events to one type; text is moved as bytes, which takes less time."""
    sql, label = own
    kind = _common(label.dataType, field.dataType)
    if kind is None:
        raise QueryError(
            f"key {key.name!r} is of type {label.dataType.simpleString()} in the labels and of type "
            f"{field.dataType.simpleString()} in the events; cast one of them to the type of the other"
        )
    if has_maps(kind) or never_null("", T.StructField("", kind, nullable=False)) == "":
        raise QueryError(
            f"key {key.name!r} is of type {kind.simpleString()}, which cannot be joined on; convert it to text in "
            "both, for example with to_json()"
        )
    texts = [f"({sql})", f"({key.sql})"]
    if kind == T.StringType():
        kind, texts = T.BinaryType(), [f"CAST({text} AS BINARY)" for text in texts]
    elif label.dataType != field.dataType:
        texts = [f"CAST({text} AS {kind.simpleString()})" for text in texts]
    flag = f"{column}_null" if label.nullable or field.nullable else ""
    return Part(column, flag, kind, *texts)


def _common(one: T.DataType, other: T.DataType) -> T.DataType | None:
    """Return the type that holds all values of both, if it is one of them."""
    if one == other or one.simpleString() == other.simpleString():
        return other
    for line in WIDER:
        places = [line.index(type(each)) for each in (one, other) if type(each) in line]
        if len(places) == 2:
            return one if places[0] > places[1] else other
    return None


def _time(labels: DataFrame, time: str) -> T.StructField:
    try:
        with without_json():
            field = labels.select(F.expr(time)).schema[0]
    except AnalysisException as mistake:
        raise QueryError(f"Spark cannot read the labels' time {time!r}: {first_sentence(mistake)}") from None
    if not isinstance(field.dataType, T.TimestampType | T.TimestampNTZType | T.DateType):
        raise QueryError(
            f"the labels' time {time!r} is of type {field.dataType.simpleString()}; it must be a timestamp, a "
            "timestamp_ntz or a date, as the events' is"
        )
    return field


def _common_time(query: Query, events: T.DataType, time: str, labels: T.DataType) -> T.DataType:
    """Return the common type of both times; a date counts as midnight of the other's type."""
    kinds = {type(each) for each in (events, labels)} - {T.DateType}
    if len(kinds) > 1:
        raise QueryError(
            f"the labels' time {time!r} is of type {labels.simpleString()} and the events' time {query.time!r} of type "
            f"{events.simpleString()}, which differ by a time zone; cast one of them"
        )
    return kinds.pop()() if kinds else T.TimestampType()


def check_names(labels: DataFrame, shown: Sequence[str]) -> None:
    """Refuse labels with a column whose name is that of an added column."""
    exact = is_case_sensitive(labels.sparkSession)
    taken = set(labels.columns if exact else map(str.lower, labels.columns))
    for name in shown:
        if (name if exact else name.lower()) in taken:
            raise QueryError(
                f"the labels have a column {name!r}, as the result has; rename theirs, or give the aggregate another "
                "name with AS"
            )
