"""A note in a stream's checkpoint: the plan whose state it holds, so that no other plan misreads the state.

A restarted stream runs the stored plan, which fits the state, and shows those of its results that the query asks for
now.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from factor_windows.errors import PlanError, QueryError
from factor_windows.functions.expression import conjuncts, parse, sql_of
from factor_windows.physical.assigner import Assigner
from factor_windows.physical.layout import Level
from factor_windows.query import Query
from factor_windows.serialize import pass_from_json, pass_to_json
from factor_windows.tree import Pass
from factor_windows.workload import Output

FOLDER = "factor-windows"
OF_SPARK = "{metadata,offsets,commits}"
"""A pattern for the files that Spark itself writes into a checkpoint."""
_GLOB = "{}[]*?\\"
_MISSING = "PATH_NOT_FOUND"
_EARLIER_NAMES = {"most": "max_lag", "reach": "max_age"}
"""The names that notes of earlier versions use for the fields of an assigner."""


@dataclass(frozen=True, slots=True)
class Note:
    """What a checkpoint's state holds: a plan, how its levels feed each other, and its states in order."""

    plan: Pass
    levels: tuple[Level, ...]
    states: tuple[Any, ...]
    """The lift and combine of each state or, without states, the aggregates themselves."""
    mode: str
    derived: Mapping[str, str] | None = field(default_factory=dict)
    """Columns that several queries first compute from the events; `None` in notes that predate them."""
    keyed_by_window: bool = False
    """Whether the state holds an instance's start and end in a struct, as in notes without this field."""

    def to_json(self) -> str:
        """Write the note; `from_json` reads it."""
        levels = [[asdict(each) for each in level.assigners] for level in self.levels]
        found: dict[str, Any] = {
            "levels": levels,
            "states": self.states,
            "mode": self.mode,
            "derived": self.derived,
            "keyed_by_window": self.keyed_by_window,
            "plan": pass_to_json(self.plan),
        }
        return json.dumps(found)

    @classmethod
    def from_json(cls, text: str) -> Note:
        """Read a note written by this version or an earlier one."""
        found = json.loads(text)
        levels = tuple(_read_level(feeds) for feeds in found["levels"])
        states = tuple(tuple(each) if isinstance(each, list) else each for each in found["states"])
        derived = found.get("derived")
        if derived is not None:
            derived = {name: _expression(text) for name, text in derived.items()}
        is_keyed_by_window = found.get("keyed_by_window", True)
        return cls(pass_from_json(found["plan"]), levels, states, found["mode"], derived, is_keyed_by_window)


def read_note(spark: SparkSession, place: str) -> Note | None:
    """Read the note of a checkpoint in which a stream has started; `None` if none has started yet."""
    if not _is_there(spark, place, OF_SPARK):
        # Someone looked at a plan but started nothing: there is no state to misread.
        return None
    try:
        lines = _read(spark, place, FOLDER).collect() if _is_there(spark, place, FOLDER) else []
        if lines:
            return Note.from_json(lines[0][0])
    except (ValueError, KeyError, TypeError) as trouble:
        raise PlanError(
            f"the note in {place}/{FOLDER} is damaged: {type(trouble).__name__} {trouble}; use a new checkpoint"
        ) from None
    raise PlanError(
        f"the checkpoint {place!r} was started without checkpoint=, so its state is unknown; use a new one, and "
        "pass its place to run(..., checkpoint=...) too"
    )


def name_of_stream(spark: SparkSession, place: str) -> str:
    """Return Spark's name for the stream of a checkpoint, which stays the same across restarts."""
    [line] = _read(spark, place, "metadata").limit(1).collect()
    return str(json.loads(line[0])["id"])


def write_note(spark: SparkSession, place: str, note: Note) -> None:
    """Write the note of a checkpoint, which says what its state means."""
    rows = spark.createDataFrame([(note.to_json(),)], "value string").coalesce(1)
    rows.write.mode("overwrite").text(f"{place}/{FOLDER}")


def check_fits(note: Note, place: str, plan: Pass, *, mode: str, derived: Mapping[str, str]) -> None:
    """Refuse a plan that the state of a checkpoint cannot serve, and say what differs."""
    reasons = list(_differences(note, plan, mode, derived))
    if reasons:
        raise refusal(place, reasons)


def refusal(place: str, reasons: Sequence[str]) -> PlanError:
    """Return the error that says why a checkpoint does not fit."""
    return PlanError(
        f"the checkpoint {place!r} belongs to another plan: {', '.join(reasons)}; "
        "use a new checkpoint, or go back to the old query"
    )


def literally(place: str) -> str:
    r"""Write a path so that Spark reads it literally, not as a pattern.

    >>> print(literally("s3://jobs/ck[1]"))
    s3://jobs/ck\[1\]
    """
    return "".join(f"\\{letter}" if letter in _GLOB else letter for letter in place)


def _read(spark: SparkSession, place: str, pattern: str) -> DataFrame:
    # Given one path, Spark first checks whether a stream wrote it, and logs a stack trace if not; given two, it
    # does not check.
    return spark.read.text([f"{literally(place)}/{pattern}"] * 2)


def _is_there(spark: SparkSession, place: str, pattern: str) -> bool:
    try:
        # Asking for the schema makes Spark look for the files without reading any.
        return bool(_read(spark, place, pattern).schema)
    except AnalysisException as mistake:
        if mistake.getCondition() == _MISSING:
            return False
        raise


def _differences(note: Note, plan: Pass, mode: str, derived: Mapping[str, str]) -> Iterator[str]:
    """List what a plan needs that a checkpoint's state does not hold."""
    before, now = note.plan.query, plan.query
    if note.mode != mode:
        yield f"its mode is {note.mode}, not {mode}"
        return
    if before.parsed_time.sql != now.parsed_time.sql:
        yield f"its time is {before.parsed_time.sql}, not {now.parsed_time.sql}"
    if _conditions(before) != _conditions(now):
        yield f"its condition is {before.where or 'none'}, not {now.where or 'none'}"
    if plan.search == "none" and len(note.levels) > 1:
        yield f"its plan is of search {note.plan.search!r}, not of search 'none', which feeds all windows from events"
    kept = {each.node: _aggregates(each, before) for each in note.plan.outputs}
    for each in plan.outputs:
        label = ", ".join(each.names)
        if each.node not in kept:
            yield f"{label} is new"
            continue
        for aggregate in dict.fromkeys(_aggregates(each, now)):
            if aggregate not in kept[each.node]:
                yield f"{_readable(aggregate, derived)} of {label} is new"


def _aggregates(asked: Output, query: Query) -> list[str]:
    return [query.parsed_aggregates[place].sql for place in asked.aggregates]


def _conditions(query: Query) -> set[str]:
    return {part for part in conjuncts(query.where) if part != "TRUE"} if query.where else set()


def _readable(aggregate: str, derived: Mapping[str, str]) -> str:
    for name, text in derived.items():
        aggregate = aggregate.replace(name, text)
    return aggregate


def _read_level(feeds: list[dict[str, Any]]) -> Level:
    read = tuple(_read_assigner(feed) for feed in feeds)
    return Level(nodes=tuple(each.target for each in read), assigners=read)


def _read_assigner(found: dict[str, Any]) -> Assigner:
    named = {_EARLIER_NAMES.get(name, name): value for name, value in found.items()}
    return Assigner(**named | {"edges": tuple(map(tuple, found["edges"])), "grid": tuple(found["grid"])})


def _expression(text: str) -> str:
    """Read text from a file as one expression and nothing else."""
    return sql_of(parse(text, what="column", error=QueryError)[0])
