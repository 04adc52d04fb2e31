"""A store in a Delta or Iceberg table: rows of panes and a row with the manifest, changed in one transaction.

Each version is a commit of the format itself, which fails if another one with its number was made before: Delta accepts
a number of each application only once, Iceberg checks that nobody else has replaced the manifest.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from factor_windows.engines.spark_panes import LAST, START, VERSION
from factor_windows.errors import StoreConflictError, StoreError
from factor_windows.functions.expression import quoted
from factor_windows.spark.lakehouse import add_columns, create_table, is_conflict, narrowed, schema_of, table_name
from factor_windows.spark.messages import spark_says, without_json
from factor_windows.store import files
from factor_windows.store.folder import Folder
from factor_windows.store.manifest import FORMAT, Manifest, Part, check_format, plain, read_item
from factor_windows.store.place import CUT, Place, Stretch

KIND, CHUNK = CUT
WRITTEN, MANIFEST = "pane_written", "pane_manifest"
"""The columns for the version that wrote a row, and for the text of a manifest."""
MANIFESTS = -1_000_000
"""The kind of the row with a manifest; other rows have the kind of their panes."""
APPLICATION = "factor-windows"
"""The name under which the format records a commit."""

RECENT = 20
"""The number of recent commits in which a new one is first searched for."""


@dataclass(frozen=True, slots=True)
class _Commit:
    """A commit of the format: its position in the table's history, and the note recorded with it."""

    at: int
    note: str | None


class Table:
    """The table of one store."""

    def __init__(self, spark: SparkSession, location: str, format: str) -> None:
        path = files.local_path(location)
        is_path = "/" in location and "`" not in location and ":" not in location
        self.format, self.location = format, str(path) if is_path else location
        self._spark, self.name = spark, table_name(self.location)
        self._at: dict[int, int] = {}
        """The positions, in the table's history, of the versions that were loaded."""
        self._document: Mapping[str, Any] = {}

    def create(self, document: dict[str, Any], manifest: Manifest) -> None:
        """Create a store, unless there is one."""
        with spark_says(f"cannot make the table {self.location}"):
            columns = schema_of(self._spark, self.name)
            if columns is not None and MANIFEST in columns.names:
                raise StoreError(f"there is a store in {self.location} already; fw.Store.open(spark, ...) opens it")
            if columns is not None:
                raise StoreError(f"there is a table {self.location} that is not a store; choose another name")
            self._document = {"format": FORMAT, **document}
            create_table(self._row(manifest), self.name, self.format, by=CUT)

    def open(self) -> dict[str, Any]:
        """Read what a store was created for."""
        return dict(self._read_manifest(self._newest())["store"])

    def load(self, known: Manifest | None = None) -> Manifest:
        """Return the latest version: the `known` one, if it still is."""
        newest = self._newest()
        if known is not None and self._at.get(known.version) == newest:
            return known
        return self._load(newest)

    def load_version(self, version: int) -> Manifest:
        """Return an earlier version, if the format has kept it."""
        if version not in self._at:
            # The first commit creates the table, and has no note.
            history = self._history()
            own = [each for each in history if (each.note or "").startswith(f"{version} ")] if version else history[-1:]
            gone = StoreError(
                f"version {version} of the store in {self.location} is no longer in the history of its table"
            )
            if not own:
                raise gone
            manifest = self._load(own[0].at)
            if manifest.version != version:
                raise gone
            return manifest
        return self._load(self._at[version])

    def commit(
        self,
        manifest: Manifest,
        rows: DataFrame | None = None,
        *,
        gone: Collection[Part] = (),
        stretches: Collection[Stretch] = (),
    ) -> Manifest:
        """Make a version the latest, with more rows and without some parts, unless another one was committed before."""
        token = f"{manifest.version} {uuid4().hex}"
        found = self._row(manifest)
        replaced = _within({*((part.node, part.chunk) for part in gone), *stretches})
        is_late = False
        try:
            if rows is not None:
                self._add_columns(rows.schema)
                written = rows.withColumn(WRITTEN, F.lit(manifest.version).cast("long"))
                found = written.unionByName(found, allowMissingColumns=True)
            self._write(found, manifest.version, token, replaced)
        except Exception as trouble:
            is_late = is_conflict(trouble)
            if not is_late:
                raise
        # A commit that is sent twice, as after a lost connection, conflicts with itself.
        at = self._find(token)
        if at is None:
            raise self._conflict(manifest) if is_late else self._left_out(manifest)
        self._at[manifest.version] = at
        return manifest if rows is None else self._measured(manifest)

    def read(self, spark: SparkSession, manifest: Manifest, parts: Iterable[Part], schema: StructType) -> DataFrame:
        """Read parts of a version as one DataFrame."""
        columns = [
            f"CAST({quoted(each.name)} AS {each.dataType.simpleString()}) AS {quoted(each.name)}" for each in schema
        ]
        within = _within({(part.node, part.chunk) for part in parts}) or "false"
        return spark.sql(f"SELECT {', '.join(columns)} FROM {self._as_of(manifest)} WHERE {within}")

    def clean(self, manifest: Manifest, retain: float) -> None:
        """Leave files that are no longer read to the format: VACUUM of Delta, expire_snapshots of Iceberg."""

    def extent(self, manifest: Manifest) -> dict[str, int]:
        """Return the number of files and their total size."""
        if self.format == "delta":
            count, size = "numFiles", "sizeInBytes"
            found = self._spark.sql(f"DESCRIBE DETAIL {self.name}")
        else:
            count, size = "count(*)", "coalesce(sum(file_size_in_bytes), 0)"
            found = self._spark.table(f"{self.name}.files")
        [row] = found.selectExpr(f"{count} AS files", f"{size} AS bytes").collect()
        return {"files": row["files"], "bytes": row["bytes"]}

    def _write(self, rows: DataFrame, version: int, token: str, replaced: str) -> None:
        """Commit rows under the number of a version, instead of those that are replaced, if any."""
        if self.format == "iceberg":
            options = {
                "isolation-level": "serializable",
                "validate-from-snapshot-id": str(self._at[version - 1]),
                "fanout-enabled": "true",
                f"snapshot-property.{APPLICATION}": token,
            }
            before = f"{KIND} = {MANIFESTS}{f' OR {replaced}' if replaced else ''}"
            rows.writeTo(self.name).options(**options).overwrite(F.expr(before))
            return
        options = {"txnAppId": APPLICATION, "txnVersion": str(version), "userMetadata": token}
        writer = rows.writeTo(self.name).options(**options)
        if replaced:
            writer.overwrite(F.expr(f"{KIND} = {MANIFESTS} OR {replaced}"))
        else:
            # New rows can only be written together with the rows that they replace; of several manifests, the latest
            # counts.
            writer.append()

    def _add_columns(self, wanted: StructType) -> None:
        """Add the columns of rows to the table; it may have some of a failed append, of events of other types."""
        has = self._spark.table(self.name).schema
        for before, new in narrowed(has, wanted):
            raise StoreError(
                f"the column {new.name!r} of the table {self.location} is {before.dataType.simpleString()}, and these "
                f"events make it {new.dataType.simpleString()}; cast them, or create a new store"
            )
        add_columns(self._spark, self.name, has, wanted)

    def _load(self, at: int) -> Manifest:
        found = self._read_manifest(at)
        many: dict[str, Any] = {kind: tuple(map(read_item, found[kind])) for kind in ("parts", "batches")}
        manifest = replace(Manifest.of_document(found), **many)
        self._at[manifest.version] = at
        return self._measured(manifest)

    def _read_manifest(self, at: int) -> dict[str, Any]:
        """Read the manifest that was the latest at a commit."""
        [row] = self._spark.sql(
            f"SELECT max_by({MANIFEST}, {VERSION}) FROM {self.name} VERSION AS OF {at} WHERE {KIND} = {MANIFESTS}"
        ).collect()
        if row[0] is None:
            raise StoreError(f"{self.location} has no manifest left; the store cannot be read")
        found: dict[str, Any] = json.loads(row[0])
        check_format(found)
        self._document = found["store"]
        return found

    def _measured(self, manifest: Manifest) -> Manifest:
        """Return a manifest with the parts that its own version wrote, which are known only once they are written."""
        if manifest.kept is None:
            return manifest
        of = f"{KIND}, {CHUNK}"
        rows = self._spark.sql(
            f"SELECT {of}, max({VERSION}), count(*), min({START}), max({START}), max({LAST}) "
            f"FROM {self._as_of(manifest)} WHERE {WRITTEN} = {manifest.version} AND {KIND} <> {MANIFESTS} GROUP BY {of}"
        ).collect()
        return manifest.with_parts(
            [
                Part(f"{kind}/{chunk}/{manifest.version}", kind, chunk, version, count, 0, 0, first, last, latest)
                for kind, chunk, version, count, first, last, latest in rows
            ]
        )

    def _row(self, manifest: Manifest) -> DataFrame:
        """Return the row with a manifest."""
        many = {kind: [plain(item) for item in getattr(manifest, kind)] for kind in ("parts", "batches")}
        text = json.dumps({**manifest.document(), **many, "store": self._document})
        number = manifest.version
        columns = {KIND: f"{MANIFESTS}", CHUNK: "0L", WRITTEN: f"{number}L", VERSION: f"{number}L"}
        own = (F.expr(column).alias(name) for name, column in columns.items())
        return self._spark.range(0, 1, 1, 1).select(*own, F.lit(text).alias(MANIFEST))

    def _as_of(self, manifest: Manifest) -> str:
        return f"{self.name} VERSION AS OF {self._at[manifest.version]}"

    def _newest(self) -> int:
        """Return the latest commit."""
        try:
            if self.format == "delta":
                return self._history(1)[0].at
            # Others may have written to the table since this session last read it.
            self._spark.catalog.refreshTable(self.name)
            [row] = self._spark.sql(f"SELECT snapshot_id FROM {self.name}.refs WHERE name = 'main'").collect()
        except AnalysisException:
            raise StoreError(f"there is no store in {self.location}; fw.Store.create(...) makes one") from None
        return int(row[0])

    def _find(self, token: str) -> int | None:
        """Return the commit with a note; `None` if Delta has skipped it, because another commit took its number."""
        if self.format == "iceberg":
            # Another thread may have read the table before the commit, for the whole session.
            self._spark.catalog.refreshTable(self.name)
        for most in (RECENT, None):
            for each in self._history(most):
                if each.note == token:
                    return each.at
        return None

    def _history(self, most: int | None = None) -> list[_Commit]:
        """List the commits of the table, latest first."""
        if self.format == "delta":
            rows = self._spark.sql(f"DESCRIBE HISTORY {self.name}{f' LIMIT {most}' if most else ''}")
            found = rows.select("version", "userMetadata")
        else:
            rows = self._spark.table(f"{self.name}.snapshots").orderBy(F.desc("committed_at"))
            found = rows.selectExpr("snapshot_id", f"summary['{APPLICATION}']").limit(most or 2**31 - 1)
        return [_Commit(at, note) for at, note in found.collect()]

    def _left_out(self, manifest: Manifest) -> StoreError:
        """Explain why a commit is missing that the format has said nothing about."""
        if self._load(self._newest()).version >= manifest.version:
            return self._conflict(manifest)
        return StoreError(
            f"version {manifest.version} is not in the history of the table {self.location}; if that was restored to "
            "an earlier state, create a new store: a table takes each version once"
        )

    def _conflict(self, manifest: Manifest) -> StoreConflictError:
        return StoreConflictError(
            f"another writer has written version {manifest.version} of the store in {self.location}; "
            "nothing was changed, so try again"
        )


def find_place(spark: SparkSession, location: str) -> Place:
    """Return the place of an existing store: the folder of this name, or else the table."""
    path = files.local_path(location)
    if path is not None and path.exists() and not (path / "_delta_log").is_dir():
        return Folder(location)
    name, columns = Table(spark, location, "delta").name, None
    # Without Delta, a table cannot be found by its path.
    with without_json(), suppress(AnalysisException):
        columns = schema_of(spark, name)
    if columns is None:
        return Folder(location)
    if MANIFEST not in columns.names:
        raise StoreError(f"the table {location} is not a store; fw.Store.create(spark, ..., query) makes one")
    if "/" in location:
        return Table(spark, location, "delta")
    told = {row["col_name"]: row["data_type"] for row in spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()}
    return Table(spark, location, str(told["Provider"]).lower())


def _within(stretches: Collection[Stretch]) -> str:
    """Write in SQL that a row is in one of some stretches; nothing if there are none.

    >>> _within([(0, 3), (-1, 7), (0, 4)])
    '((pane_kind = -1 AND pane_chunk IN (7)) OR (pane_kind = 0 AND pane_chunk IN (3, 4)))'
    """
    of: dict[int, list[int]] = {}
    for kind, chunk in sorted(stretches):
        of.setdefault(kind, []).append(chunk)
    texts = (f"({KIND} = {kind} AND {CHUNK} IN ({', '.join(map(str, chunks))}))" for kind, chunks in of.items())
    return f"({' OR '.join(texts)})" if stretches else ""
