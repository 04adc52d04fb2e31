"""Adopt a stream: its open windows become rows of a store, which continues with its events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factor_windows.engines.spark_panes import APPENDED, FIRST, LAST, NODE, START, VERSION, PaneWriter, meanings
from factor_windows.engines.spark_state import StreamState
from factor_windows.errors import StoreError
from factor_windows.spark.checkpoint import Note, name_of_stream, read_note
from factor_windows.spark.watermark import closed_until
from factor_windows.store import files
from factor_windows.store.append import with_kept
from factor_windows.store.manifest import Adopted, Manifest
from factor_windows.store.panes import StoredPanes
from factor_windows.store.place import CUT

STATE, ASIDE = "state", "state.adopted"
"""Where Spark keeps the state of a stream in its checkpoint, and where it is moved to.

Spark refuses to continue without the operators that have a state there."""
_KIND, _CHUNK = CUT


@dataclass(frozen=True, slots=True)
class _Stopped:
    """A stopped stream, by its checkpoint."""

    place: str
    path: Path
    note: Note
    name: str
    """Spark's name for it."""
    batch: int
    """The number of the last micro-batch that finished."""

    @property
    def has_state(self) -> bool:
        return (self.path / STATE).exists()


def adopt_stream(panes: StoredPanes, events: DataFrame, place: str) -> int:
    """Take over the open windows of a stopped stream; return the version that contains them."""
    stopped = _stopped(panes, place)
    manifest = panes.load()
    adopted = manifest.adopted
    if adopted is None or adopted.stream != stopped.name:
        adopted = _commit(panes, manifest, events, stopped)
    elif adopted.batch != stopped.batch and stopped.has_state:
        raise StoreError(
            f"the stream of the checkpoint {place!r} has continued since it was adopted, so the store lacks its "
            "later events; create a new store"
        )
    if stopped.has_state:
        _set_aside(stopped.path)
    return adopted.version


def _stopped(panes: StoredPanes, place: str) -> _Stopped:
    """Find the stream of a checkpoint."""
    path = files.local_path(place)
    if path is None:
        raise StoreError(
            f"the checkpoint {place!r} is not in a folder that this process can reach; copy it to one, and "
            "continue there"
        )
    note = read_note(panes.spark, place)
    if note is None:
        raise StoreError(f"no stream has used the checkpoint {place!r}; append events, or write_stream() them")
    name = name_of_stream(panes.spark, place)
    if any(query.id == name for query in panes.spark.streams.active):
        raise StoreError(f"the stream of the checkpoint {place!r} is running; stop() it first")
    done = (int(each.name) for each in (path / "commits").glob("*") if each.name.isdigit())
    return _Stopped(place, path, note, name, max(done, default=-1))


def _commit(panes: StoredPanes, manifest: Manifest, events: DataFrame, stopped: _Stopped) -> Adopted:
    """Make a version of a store that contains the open windows of a stream."""
    place, note, batch = stopped.place, stopped.note, stopped.batch
    if manifest.kept is not None:
        raise StoreError(
            f"the store in {panes.place.location} has events already, and those that the stream has seen may be among "
            "them; create a new store for the stream"
        )
    if batch < 0:
        raise StoreError(
            f"the stream of the checkpoint {place!r} has finished no micro-batch; write_stream() its events with a new "
            "checkpoint"
        )
    writer, own = panes.writer(manifest, events)
    reasons = [*_unfit(note), *writer.kept.differences(note.plan)]
    if reasons:
        raise StoreError(f"the panes of this store cannot go on with the stream of {place!r}: {', '.join(reasons)}")
    if not stopped.has_state:
        raise StoreError(f"the checkpoint {place!r} has no state left; another store has adopted its stream")
    state = StreamState(note, events, place, batch)
    edge = closed_until(panes.spark, None, place, state.on_spark.types.time)
    seen = state.times_seen(edge)
    reached, until = seen or (edge, edge)
    adopted = Adopted(stopped.name, batch, manifest.version + 1, tuple(state.windows.values()), edge, until, ())
    shape = writer.lift(own, APPENDED, f"0L AS {VERSION}")
    rows = _as_panes(writer, state, adopted, shape)
    cut = rows.selectExpr("*", f"{NODE} AS {_KIND}", f"0L AS {_CHUNK}")
    following = with_kept(manifest, writer, shape).following()
    taken = replace(
        following,
        adopted=adopted,
        history=((following.version, reached),) if seen or edge else (),
        streams={**manifest.streams, stopped.name: (batch, following.version)},
    )
    panes.commit(taken, cut)
    return adopted


def _unfit(note: Note) -> Iterator[str]:
    """List what a stream does that panes do not."""
    if note.mode != "append":
        yield f"its mode is {note.mode}, in which no window is ever closed"
    if note.derived or len(note.plan.workload.members) > 1:
        yield "it computes several queries"
    if note.plan.query.has_sessions:
        yield "it has sessions, which are made anew with every event"


def _as_panes(writer: PaneWriter, state: StreamState, adopted: Adopted, shape: DataFrame) -> DataFrame:
    """Return the open windows of a stream with the columns of panes; states that only panes have are null."""
    names, numbers = state.on_spark.names, adopted.numbers
    cases = " ".join(f"WHEN {place} THEN {numbers[window]}" for place, window in state.windows.items())
    texts = {
        NODE: f"CASE {names.node} {cases} END",
        **dict.fromkeys((START, FIRST, LAST), names.start),
        VERSION: f"{adopted.version}L",
        **dict(zip(writer.names.keys, names.keys, strict=True)),
        **_matched(writer, state),
    }
    columns = (F.expr(texts.get(field.name, "NULL")).cast(field.dataType).alias(field.name) for field in shape.schema)
    return state.rows().select(*columns)


def _matched(writer: PaneWriter, state: StreamState) -> Mapping[str, str]:
    """Map the states of the panes to those of a stream; refuse a stream that lacks one that is read."""
    own = dict(zip(meanings(state.on_spark), state.on_spark.types.states, strict=True))
    types, found = writer.on_spark.types, {}
    # The last result counts events, whether the query does or not.
    results = list(zip(writer.on_spark.query.parsed_aggregates, types.results, strict=True))[:-1]
    for public, kept, meaning in zip(writer.names.states, types.states, meanings(writer.on_spark), strict=True):
        readers = [aggregate.sql for aggregate, result in results if kept.name in result.states]
        counted = [aggregate.sql for aggregate, result in results if result.merged and kept.name in result.states]
        same = own.get(meaning)
        lacking = [
            window.label
            for place, window in state.windows.items()
            if same is None or counted or same.name not in state.states_of(place)
        ]
        if readers and lacking:
            raise StoreError(
                f"the stream keeps no {(counted or readers)[0]} of {lacking[0]}; create the store without it, or "
                "append the events of the open windows instead"
            )
        if same is not None and not lacking:
            found[public] = same.name
    return found


def _set_aside(path: Path) -> None:
    try:
        files.rename(path / STATE, path / ASIDE)
    except OSError as trouble:
        raise StoreError(
            f"the stream was adopted, but {path / STATE} could not be renamed to {ASIDE} ({trouble.strerror}); rename "
            "it before write_stream() continues there"
        ) from None
