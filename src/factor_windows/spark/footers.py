"""The contents of Parquet files from their footers, where this machine can read them: rows, and ranges of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from struct import error, unpack
from typing import Any
from urllib.parse import unquote, urlsplit

MOST_FILES = 64
"""The number of files whose footers are read; the others are assumed to have as many rows per byte."""
_MAGIC = b"PAR1"
_ROWS = 3
"""The number of the field with the rows, in the footer's outermost struct."""
_ROW_GROUPS, _STATISTICS, _MOST, _LEAST = 4, 12, 5, 6
"""The numbers of the fields with the row groups, with a column's statistics, and with its largest and least values."""


def count_rows(files: Sequence[str]) -> float | None:
    """Count the rows of files; return `None` if some are not local, not Parquet, or cannot be read."""
    if not files or not all(urlsplit(each).scheme in ("", "file") for each in files):
        return None
    step = -(-len(files) // MOST_FILES)
    rows = seen = total = 0
    try:
        for place, path in enumerate(Path(unquote(urlsplit(each).path)) for each in files):
            size = path.stat().st_size
            total += size
            if place % step == 0:
                rows, seen = rows + _rows(path, size), seen + size
    except (OSError, ValueError, IndexError, error):
        return None
    return rows * total / seen


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a file: its rows, and the least and greatest values of some integer columns."""

    rows: int
    ranges: Mapping[str, tuple[int, int]]


def contents_of(path: Path, columns: Sequence[str]) -> Contents:
    """Read the footer of a file; a column of nothing but nulls has no range."""
    footer = _footer(path, path.stat().st_size).struct()
    ranges: dict[str, tuple[int, int]] = {}
    for group in footer[_ROW_GROUPS]:
        for chunk in group[1]:
            about = chunk[3]
            name = b".".join(about[3]).decode()
            if name in columns and _LEAST in (known := about.get(_STATISTICS, {})):
                least, most = (int.from_bytes(known[each], "little", signed=True) for each in (_LEAST, _MOST))
                before = ranges.get(name, (least, most))
                ranges[name] = min(least, before[0]), max(most, before[1])
    return Contents(footer[_ROWS], ranges)


def _rows(path: Path, size: int) -> int:
    return _footer(path, size).rows()


def _footer(path: Path, size: int) -> _Footer:
    with path.open("rb") as file:
        file.seek(size - 8)
        length, magic = unpack("<I4s", file.read(8))
        if magic != _MAGIC:
            raise ValueError(f"{path} is not Parquet, or is encrypted")
        file.seek(size - 8 - length)
        return _Footer(file.read(length))


class _Footer:
    """Reads only as much of a footer as needed; a footer is a struct of Thrift's compact protocol."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def rows(self) -> int:
        """Return the rows of the file, which follow its schema."""
        field = 0
        while True:
            kind, field = self._field(field)
            if kind == 0:
                raise ValueError("a footer without rows")
            value = self._value(kind)
            if field == _ROWS:
                return int(value)

    def struct(self) -> dict[int, Any]:
        """Read a struct, field by field."""
        found: dict[int, Any] = {}
        field = 0
        while True:
            kind, field = self._field(field)
            if kind == 0:
                return found
            found[field] = self._value(kind)

    def _field(self, before: int) -> tuple[int, int]:
        """Read the type and the number of the next field; a type of 0 ends a struct."""
        head = self._byte()
        kind, step = head & 15, head >> 4
        return kind, before + step if step or not kind else self._zigzag()

    def _value(self, kind: int) -> Any:
        match kind:
            case 1 | 2:
                return kind == 1
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._zigzag()
            case 7:
                return self._bytes(8)
            case 8:
                return self._bytes(self._varint())
            case 9 | 10:
                head = self._byte()
                count, each = head >> 4, head & 15
                # In a list, a boolean takes one byte.
                return [
                    self._value(3 if each in (1, 2) else each) for _ in range(self._varint() if count == 15 else count)
                ]
            case 12:
                return self.struct()
        raise ValueError(f"a footer has no type {kind}")

    def _bytes(self, length: int) -> bytes:
        self.at += length
        return self.data[self.at - length : self.at]

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
