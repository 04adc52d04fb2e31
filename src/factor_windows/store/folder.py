"""A store in a folder: Parquet files that never change, and manifests that name the files to read."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from factor_windows.engines.spark_panes import LAST, START, VERSION
from factor_windows.errors import StoreConflictError, StoreError
from factor_windows.spark.checkpoint import literally
from factor_windows.spark.footers import contents_of
from factor_windows.store import files
from factor_windows.store.manifest import FORMAT, Manifest, Part, check_format, plain, read_item
from factor_windows.store.place import CUT, Stretch

_WRITING = {
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "maxRecordsPerFile": "5000000",
}
"""Files need not appear all at once, or be marked as complete: nobody reads them until a manifest names them."""
_STORE, _MANIFESTS, _LISTS, _DATA = "store.json", "manifests", "lists", "data"
_MANY = ("parts", "batches", "removed")
"""The items of a manifest that may be numerous."""
_LIST = 200
"""The number of items in a list; only the last ones are in the manifest itself."""
_VERSIONS = 20
"""The number of manifests to keep."""
_ORPHAN = 86_400
"""The seconds after which a folder that no manifest names counts as left behind by a dead writer."""

Item = Part | str | tuple[str, float]


class Folder:
    """The files of one store."""

    format = "parquet"

    def __init__(self, location: str) -> None:
        self.path = _local(location)
        self._lists: dict[str, tuple[Item, ...]] = {}
        self._names: dict[int, str] = {}

    def create(self, document: dict[str, Any], manifest: Manifest) -> None:
        """Create a store, unless there is one."""
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            if (self.path / _STORE).exists():
                raise StoreError(f"there is a store in {self.path} already; fw.Store.open(spark, ...) opens it")
            raise StoreError(f"{self.path} has files but is not a store; choose a new or empty folder")
        for name in (_MANIFESTS, _LISTS, _DATA):
            files.make_folder(self.path / name)
        if not self._publish(manifest) or not files.create(
            self.path / _STORE, json.dumps({"format": FORMAT, **document}, indent=1)
        ):
            raise StoreError(f"there is a store in {self.path} already; fw.Store.open(spark, ...) opens it")

    def open(self) -> dict[str, Any]:
        """Read what a store was created for."""
        try:
            found: dict[str, Any] = json.loads((self.path / _STORE).read_text(encoding="utf-8"))
        except OSError:
            raise StoreError(f"{self.path} is not a store; fw.Store.create(spark, ..., query) makes one") from None
        except ValueError:
            found = {}
        if not isinstance(found, dict) or not {"format", "queries", "is_single", "delay"} <= found.keys():
            raise StoreError(f"{self.path / _STORE} is damaged; the store cannot be read")
        check_format(found)
        return found

    @property
    def location(self) -> str:
        """Return the location."""
        return str(self.path)

    def load_version(self, version: int) -> Manifest:
        """Return an earlier version, if it still exists."""
        try:
            manifest = self._read(self._document(version))
        except FileNotFoundError:
            manifest = None
        if manifest is None or not all((self.path / part.path).exists() for part in manifest.every_part):
            raise StoreError(
                f"version {version} of the store in {self.path} is no longer there; a folder keeps the last "
                f"{_VERSIONS}, until a compaction has removed their files"
            )
        return manifest

    def load(self, known: Manifest | None = None) -> Manifest:
        """Return the latest version: the `known` one, if it still is."""
        while True:
            newest = max(self._versions(), default=None)
            if newest is None:
                raise StoreError(f"{self.path} has no manifest left; the store cannot be read")
            if known is not None and known.version == newest:
                return known
            try:
                return self._read(self._document(newest))
            except FileNotFoundError as trouble:
                # Many versions may have been added meanwhile, and the oldest removed.
                if self._place(newest).exists():
                    raise StoreError(f"{self._place(newest)} names {trouble.filename}, which is gone") from None
            except (ValueError, KeyError, TypeError) as trouble:
                raise StoreError(f"{self._place(newest)} is damaged: {type(trouble).__name__} {trouble}") from None

    def commit(
        self,
        manifest: Manifest,
        rows: DataFrame | None = None,
        *,
        gone: Collection[Part] = (),
        stretches: Collection[Stretch] = (),
    ) -> Manifest:
        """Write rows to new files, and make the version that contains them the latest."""
        if rows is not None:
            manifest = manifest.with_parts(self._write(rows, version=manifest.version))
        if gone:
            now = time.time()
            there = ((path, since) for path, since in manifest.removed if (self.path / path).exists())
            removed = (*there, *((path, now) for path in sorted(part.path for part in gone)))
            manifest = replace(manifest, removed=removed)
        self._make_newest(manifest)
        return manifest

    def _make_newest(self, manifest: Manifest) -> None:
        """Publish a version, unless another one with its number was published before."""
        is_newest = max(self._versions(), default=-1) < manifest.version and self._publish(manifest)
        # A number may be free again, if so many others were added that its manifest was removed.
        if not is_newest or max(self._versions()) >= manifest.version + _VERSIONS:
            raise StoreConflictError(
                f"another writer has written version {manifest.version} of the store in {self.path}; "
                "nothing was changed, so try again"
            )
        for version in sorted(self._versions())[:-_VERSIONS]:
            files.discard(self._place(version))

    def _write(self, rows: DataFrame, *, version: int) -> tuple[Part, ...]:
        """Write rows of panes to new files, which nobody reads until a manifest names them.

        They are split by `CUT`: the kind of panes, and the number of a stretch of time.
        """
        place = self.path / _DATA / f"{version:09d}-{uuid4().hex[:12]}"
        writer = rows.write.options(**_WRITING).partitionBy(*CUT)
        writer.parquet(f"file://{place}")
        return tuple(self._parts(place))

    def read(self, spark: SparkSession, manifest: Manifest, parts: Iterable[Part], schema: StructType) -> DataFrame:
        """Read parts of a version as one DataFrame, without looking at the files."""
        paths = [f"file://{literally(str(self.path / part.path))}" for part in parts]
        if not paths:
            return spark.createDataFrame([], schema=schema)
        return spark.read.schema(schema).option("ignoreMissingFiles", "false").parquet(*paths)

    def clean(self, manifest: Manifest, retain: float) -> None:
        """Remove what has not been read for this many seconds, and what dead writers left behind long ago."""
        now = time.time()
        live = {part.path for part in manifest.every_part}
        waiting = {path for path, since in manifest.removed if now - since < retain} | live
        for path, _ in manifest.removed:
            if path not in waiting:
                files.discard_folder(self.path / path)
        kept, named = ({Path(path).parts[1] for path in paths} for paths in (waiting, dict(manifest.removed)))
        old = now - max(retain, _ORPHAN)
        for folder in (self.path / _DATA).iterdir():
            if folder.name not in kept and (folder.name in named or files.is_older(folder, old)):
                files.discard_folder(folder)
        try:
            used = {name for names in self._document(manifest.version)["lists"].values() for name in names}
        except FileNotFoundError:
            # Other writers have been busy; they clean up as well.
            return
        unused = (each for each in (self.path / _LISTS).iterdir() if each.name not in used)
        drafts = (self.path / _MANIFESTS).glob(".*")
        for each in (*unused, *drafts):
            if files.is_older(each, old):
                files.discard(each)

    def extent(self, manifest: Manifest) -> dict[str, int]:
        """Return the number of files and their total size."""
        parts = manifest.every_part
        return {"files": sum(part.files for part in parts), "bytes": sum(part.size for part in parts)}

    def _parts(self, place: Path) -> Iterable[Part]:
        for folder in sorted(place.glob("/".join(f"{name}=*" for name in CUT))):
            node, chunk = (int(name.partition("=")[2]) for name in folder.parts[-2:])
            paths = sorted(folder.glob("*.parquet"))
            found = [contents_of(path, (START, LAST, VERSION)) for path in paths]
            yield Part(
                folder.relative_to(self.path).as_posix(),
                node,
                chunk,
                max(each.ranges[VERSION][1] for each in found),
                sum(each.rows for each in found),
                sum(path.stat().st_size for path in paths),
                len(paths),
                min(each.ranges[START][0] for each in found),
                max(each.ranges[START][1] for each in found),
                max(each.ranges[LAST][1] for each in found),
            )

    def _versions(self) -> list[int]:
        return [int(path.stem) for path in (self.path / _MANIFESTS).glob("[0-9]*.json")]

    def _place(self, version: int) -> Path:
        return self.path / _MANIFESTS / f"{version:09d}.json"

    def _document(self, version: int) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._place(version).read_text(encoding="utf-8"))
        return found

    def _publish(self, manifest: Manifest) -> bool:
        lists, rest = {}, {}
        for kind in _MANY:
            lists[kind], rest[kind] = self._in_lists(getattr(manifest, kind))
        return files.create(self._place(manifest.version), json.dumps({**manifest.document(), "lists": lists, **rest}))

    def _in_lists(self, items: Sequence[Item]) -> tuple[list[str], list[Any]]:
        """Move all but the last of many items to lists, which never change and so are written only once."""
        names = []
        full = len(items) // _LIST * _LIST
        for place in range(0, full, _LIST):
            block = items[place : place + _LIST]
            key = hash(tuple(item.path if isinstance(item, Part) else item for item in block))
            if key not in self._names or not files.touch(self.path / _LISTS / self._names[key]):
                name = f"{uuid4().hex}.json"
                files.create(self.path / _LISTS / name, json.dumps([plain(item) for item in block]))
                self._names[key], self._lists[name] = name, tuple(block)
            names.append(self._names[key])
        return names, [plain(item) for item in items[full:]]

    def _read(self, found: dict[str, Any]) -> Manifest:
        many: dict[str, Any] = {
            kind: tuple(
                item
                for items in (*map(self._list, found["lists"][kind]), map(read_item, found[kind]))
                for item in items
            )
            for kind in _MANY
        }
        return replace(Manifest.of_document(found), **many)

    def _list(self, name: str) -> tuple[Item, ...]:
        if name not in self._lists:
            found = json.loads((self.path / _LISTS / name).read_text(encoding="utf-8"))
            block = tuple(map(read_item, found))
            self._lists[name] = block
            self._names[hash(tuple(item.path if isinstance(item, Part) else item for item in block))] = name
        return self._lists[name]


def _local(location: str) -> Path:
    path = files.local_path(location)
    if path is None:
        raise StoreError(
            f"a store in files is in a folder that this process can reach, not in {location!r}; "
            "mount it, or name a path without a scheme"
        )
    return path
