"""The few file operations that a store relies on: each happens entirely or not at all."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit
from uuid import uuid4


def local_path(location: str) -> Path | None:
    """Return the path that a location names, if this process can access it as files."""
    parts = urlsplit(location)
    if parts.scheme not in ("", "file"):
        return None
    return Path(unquote(parts.path) if parts.scheme else location).absolute()


def make_folder(path: Path) -> None:
    """Make a folder and its parents."""
    path.mkdir(parents=True, exist_ok=True)


def create(path: Path, text: str) -> bool:
    """Write a new file; say whether it was new. No reader ever sees a part of it."""
    draft = write_draft(path, text)
    try:
        return publish(draft, path)
    finally:
        discard(draft)


def write_draft(path: Path, text: str) -> Path:
    """Write a file next to its final place, and flush it to disk."""
    draft = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        with draft.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        # If the disk is full, nothing must be left behind.
        discard(draft)
        raise
    return draft


def publish(draft: Path, path: Path) -> bool:
    """Give a draft its name, unless the name is taken: if two writers try, one succeeds."""
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    return True


def rename(path: Path, other: Path) -> None:
    """Rename a folder."""
    os.rename(path, other)


def discard(path: Path) -> None:
    """Remove a file, if it exists."""
    with suppress(OSError):
        path.unlink()


def touch(path: Path) -> bool:
    """Set a file's modification time to now; say whether it exists."""
    try:
        os.utime(path)
    except OSError:
        return False
    return True


def is_older(path: Path, time: float) -> bool:
    """Say whether a file or folder has not changed since a time; false if it is gone."""
    try:
        return path.stat().st_mtime <= time
    except OSError:
        return False


def discard_folder(path: Path) -> None:
    """Remove a folder and its contents, as far as possible."""
    shutil.rmtree(path, ignore_errors=True)
