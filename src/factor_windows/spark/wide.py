"""Wide results: a row for each key and time, and a column for each aggregate and window, as in feature tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampNTZType

from factor_windows.errors import OptionError, QueryError
from factor_windows.functions.expression import quoted
from factor_windows.query import WINDOW_COLUMNS
from factor_windows.spark.grouped import grouped
from factor_windows.spark.result import WINDOW_NAMES

_STRANGERS = (
    "fw.wide: some rows are of windows that the result does not name, as in a union of different results; "
    "make each of them wide, and join them"
)


def wide(
    result: DataFrame, *, latest: bool = False, at: datetime | None = None, name: str = "{aggregate}_{window}"
) -> DataFrame:
    """Turn a result into a feature table: a row for each key and `window_end`, a column for each aggregate and window.

    A value is null where a window has no instance that ends then. With `latest` there is one row for each key, with the
    last instance of each window that ended by the time `at`. Instances without events have no row in a result, so one
    window may show an older instance than another. `name` gives the names of the columns.
    """
    keys, values = _parts(result)
    _check_at(at, latest=latest)
    windows = _windows(result)
    titles = {(value, number): _title(name, value, each) for value in values for number, each in enumerate(windows)}
    _check_titles([*keys, "window_end", *titles.values()])
    if at is not None:
        result = result.where(F.col("window_end") <= _moment(at, result))
    # Windows by number: fast to compare, and safe in SQL text whatever their names contain.
    number = F.array_position(F.lit(windows), F.col("window_id")) - 1
    rows = result.withColumn("window_id", F.when(number >= 0, number).otherwise(F.raise_error(_STRANGERS)))
    chosen = "max_by({}, window_end)" if latest else "any_value({})"
    columns = [
        F.expr(f"{chosen.format(quoted(value))} FILTER (WHERE window_id = {number})").alias(title)
        for (value, number), title in titles.items()
    ]
    groups = [quoted(key) for key in keys]
    if not latest:
        return grouped(rows, [*groups, "window_end"], *columns)
    # Without keys, Spark returns a row even if there are no rows.
    return grouped(rows, groups, F.max("window_end").alias("window_end"), *columns).where("window_end IS NOT NULL")


def _parts(result: DataFrame) -> tuple[list[str], list[str]]:
    """List the columns before and after the window's: keys and values."""
    columns = result.columns if isinstance(result, DataFrame) else [repr(result)]
    before = columns.index("window_id") if "window_id" in columns else 0
    after = before + len(WINDOW_COLUMNS)
    if tuple(columns[before:after]) != WINDOW_COLUMNS or not columns[after:]:
        wanted = f"the keys, {', '.join(WINDOW_COLUMNS)} and the aggregates"
        raise QueryError(f"wide takes the result of a plan, with {wanted} in this order; not {', '.join(columns)}")
    if result.isStreaming:
        raise QueryError("wide takes a batch and this is a stream; call it on each micro-batch, in foreachBatch")
    return columns[:before], columns[after:]


def _check_at(at: datetime | None, *, latest: bool) -> None:
    if at is not None and not isinstance(at, datetime):
        raise OptionError(f"at {at!r} is not a time; give a datetime")
    if at is not None and not latest:
        raise OptionError("at= limits how recent the latest instances may be; set latest=True with it")


def _windows(result: DataFrame) -> list[str]:
    """List the windows' names, as the plan noted them or, if that is lost, as found by a job, shortest first."""
    noted = result.schema["window_id"].metadata.get(WINDOW_NAMES)
    if noted:
        return list(noted)
    length = F.expr("min(window_end - window_start)")
    found = grouped(result, ["window_id"], length.alias("length")).orderBy("length", "window_id").collect()
    if not found:
        raise QueryError("the result has no rows, and its window_id no longer says which windows there are")
    return [row[0] for row in found]


def _title(name: str, aggregate: str, window: str) -> str:
    try:
        return name.format(aggregate=aggregate, window=window)
    except (AttributeError, LookupError, TypeError, ValueError):
        raise OptionError(
            f"name {name!r} is not a format of {{aggregate}} and {{window}}, such as '{{aggregate}} over {{window}}'"
        ) from None


def _check_titles(titles: Sequence[str]) -> None:
    seen: set[str] = set()
    for title in titles:
        if title.lower() in seen:
            raise OptionError(
                f"two columns would be named {title!r}; give another name=, such as '{{aggregate}} over {{window}}'"
            )
        seen.add(title.lower())


def _moment(at: datetime, result: DataFrame) -> Column:
    """Return a time as a Spark column of the same type as the windows' ends."""
    kind = result.schema["window_end"].dataType
    return F.lit(at.isoformat(" ")).cast(kind) if isinstance(kind, TimestampNTZType) else F.lit(at)
