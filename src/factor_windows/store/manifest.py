"""A manifest: the contents of a version of a store. The latest manifest is the store."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import astuple, dataclass, field, replace
from typing import Any

from factor_windows.algebra.slices import Segmentation
from factor_windows.engines.spark_panes import ADOPTED, APPENDED
from factor_windows.errors import StoreError
from factor_windows.serialize import read_segmentation, segmentation_document

FORMAT = 1
"""The format of stores; it grows when an earlier version could not read them."""
MOST_HISTORY = 1_000
"""The number of versions for which the time of their last event is remembered."""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of panes of one kind and one stretch of time: a folder of files, or a partition of a table."""

    path: str
    node: int
    """The kind of panes, or that they were appended since the last compaction; or which window was adopted."""
    chunk: int
    """The number of the stretch."""
    version: int
    """The last version in which any of its rows was added."""
    rows: int
    size: int
    """In bytes."""
    files: int
    first: int
    """The start of the first pane."""
    last: int
    """The start of the last pane."""
    latest: int
    """The time of the last event."""

    @property
    def is_compact(self) -> bool:
        """Say whether there is one row for each pane and keys, and coarser panes contain these rows."""
        return self.node != APPENDED

    @property
    def is_finest(self) -> bool:
        """Say whether it consists of the finest panes."""
        return self.node in (0, APPENDED)


@dataclass(frozen=True, slots=True)
class Resolution:
    """Panes of one kind that a store keeps."""

    panes: Segmentation
    chunk: int
    """The length of the stretches of time by which files are split, in microseconds."""
    since: int | None = None
    """The time from which they are kept; earlier ones have expired."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """What was taken over from a stream: partial results of the windows that were open when it stopped."""

    stream: str
    """Spark's name for the stream."""
    batch: int
    """The number of its last micro-batch."""
    version: int
    """The version that took them over."""
    windows: tuple[Segmentation, ...]
    """The windows of the stream."""
    edge: int
    """The time up to which it had closed them."""
    until: int
    """A time that none of its events has reached."""
    parts: tuple[Part, ...]

    @property
    def numbers(self) -> dict[Segmentation, int]:
        """Return the kind number of each window's rows, as other rows have the number of their kind of panes."""
        return {window: ADOPTED - place for place, window in enumerate(self.windows)}

    def document(self) -> dict[str, Any]:
        """Describe it as plain values."""
        own = {name: getattr(self, name) for name in ("stream", "batch", "version", "edge", "until")}
        windows = [segmentation_document(window) for window in self.windows]
        return {**own, "windows": windows, "parts": [plain(part) for part in self.parts]}

    @classmethod
    def of_document(cls, found: Mapping[str, Any]) -> Adopted:
        """Read what `document` returned."""
        windows = tuple(map(read_segmentation, found["windows"]))
        parts = tuple(Part(*part) for part in found["parts"])
        return cls(**{**found, "windows": windows, "parts": parts})


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything about one version of a store that may change between versions."""

    version: int
    resolutions: tuple[Resolution, ...]
    """The finest panes, then coarser ones."""
    parts: tuple[Part, ...] = ()
    kept: Mapping[str, Any] | None = None
    """The contents of rows, which the first events determine."""
    rows: Mapping[str, Any] | None = None
    """The columns of rows."""
    zone: str = ""
    """The session's time zone at the time of the first events, if it matters to them."""
    is_local: bool = False
    """Whether times are local ones, without a zone."""
    batches: tuple[str, ...] = ()
    """The names of the appended batches."""
    streams: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """For each stream, the number of its last micro-batch, and the version that it made."""
    history: tuple[tuple[int, int], ...] = ()
    """The time of the last event of each of the last versions."""
    removed: tuple[tuple[str, float], ...] = ()
    """Folders that are no longer read, and since when."""
    adopted: Adopted | None = None
    """What was taken over from a stream, if anything."""

    @property
    def every_part(self) -> tuple[Part, ...]:
        """List all parts, including those that were taken over from a stream."""
        return *self.parts, *(self.adopted.parts if self.adopted else ())

    @property
    def latest(self) -> int | None:
        """Return the time of the last event."""
        return self.history[-1][1] if self.history else None

    def latest_in(self, version: int) -> int | None:
        """Return the time of the last event in an earlier version; `None` if it is not remembered."""
        known = [latest for at, latest in self.history if at <= version]
        return known[-1] if known else None

    def following(self, gone: Collection[Part] = ()) -> Manifest:
        """Return the next version, without some parts; its new parts are not in it yet."""
        left = set(gone)
        return replace(self, version=self.version + 1, parts=tuple(part for part in self.parts if part not in left))

    def with_parts(self, parts: Collection[Part]) -> Manifest:
        """Return this version with its new parts."""
        own = tuple(part for part in parts if part.node > ADOPTED)
        times = [part.latest for part in own if part.node == APPENDED]
        history = self.history
        if times:
            latest = max(times) if self.latest is None else max(*times, self.latest)
            history = (*history, (self.version, latest))[-MOST_HISTORY:]
        taken = tuple(part for part in parts if part.node <= ADOPTED)
        adopted = replace(self.adopted, parts=(*self.adopted.parts, *taken)) if self.adopted and taken else self.adopted
        return replace(self, parts=(*self.parts, *own), history=history, adopted=adopted)

    def document(self) -> dict[str, Any]:
        """Describe it as plain values, without the lists that may be long."""
        return {
            "format": FORMAT,
            "version": self.version,
            "resolutions": [
                {"panes": segmentation_document(each.panes), "chunk": each.chunk, "since": each.since}
                for each in self.resolutions
            ],
            "kept": self.kept,
            "rows": self.rows,
            "zone": self.zone,
            "is_local": self.is_local,
            "streams": {name: list(last) for name, last in self.streams.items()},
            "history": [list(each) for each in self.history],
            "adopted": None if self.adopted is None else self.adopted.document(),
        }

    @classmethod
    def of_document(cls, found: Mapping[str, Any]) -> Manifest:
        """Read what `document` returned."""
        check_format(found)
        resolutions = tuple(
            Resolution(read_segmentation(each["panes"]), each["chunk"], each["since"]) for each in found["resolutions"]
        )
        return cls(
            version=found["version"],
            resolutions=resolutions,
            kept=found["kept"],
            rows=found["rows"],
            zone=found["zone"],
            is_local=found["is_local"],
            streams={name: (number, version) for name, (number, version) in found["streams"].items()},
            history=tuple((version, latest) for version, latest in found["history"]),
            adopted=Adopted.of_document(adopted) if (adopted := found.get("adopted")) else None,
        )


def check_format(found: Mapping[str, Any]) -> None:
    """Refuse a store that a later version of this library has written in a newer format."""
    if found["format"] > FORMAT:
        raise StoreError(
            f"the store is of format {found['format']}, and this version reads up to {FORMAT}; install a later one"
        )


def plain(item: Part | str | tuple[str, float]) -> Any:
    """Describe an item of a long list (a part, the name of a batch or a removed folder) as plain values."""
    return astuple(item) if isinstance(item, Part) else item


def read_item(found: Any) -> Part | str | tuple[str, float]:
    """Read an item that `plain` described."""
    if isinstance(found, str):
        return found
    return Part(*found) if len(found) > 2 else (found[0], found[1])
