"""The few operations on files that a store relies on: each is done whole or not at all."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit
from uuid import uuid4


def local_path(location: str) -> Path | None:
    """Return the path that a location names, if it is one of files that this process can reach."""
    parts = urlsplit(location)
    if parts.scheme not in ("", "file"):
        return None
    return Path(unquote(parts.path) if parts.scheme else location).absolute()


def make_folder(path: Path) -> None:
    """Make a folder, and those above it."""
    path.mkdir(parents=True, exist_ok=True)


def create(path: Path, text: str) -> bool:
    """Write a file that was not there; say whether it was not. Nobody ever sees a part of it."""
    draft = write_draft(path, text)
    try:
        return publish(draft, path)
    finally:
        discard(draft)


def write_draft(path: Path, text: str) -> Path:
    """Write a file beside the place where it will be, down to the disk."""
    draft = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        with draft.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        # Of a full disk nothing must be left over.
        discard(draft)
        raise
    return draft


def publish(draft: Path, path: Path) -> bool:
    """Give a draft its name, unless the name is taken: of two who try, one succeeds."""
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    return True


def rename(path: Path, other: Path) -> None:
    """Give a folder another name."""
    os.rename(path, other)


def discard(path: Path) -> None:
    """Remove a file, if it is there."""
    with suppress(OSError):
        path.unlink()


def touch(path: Path) -> bool:
    """Make a file as new as one that was written now; say whether it is there."""
    try:
        os.utime(path)
    except OSError:
        return False
    return True


def is_older(path: Path, time: float) -> bool:
    """Say whether a file, or a folder, has not changed since a time; not if it is gone."""
    try:
        return path.stat().st_mtime <= time
    except OSError:
        return False


def discard_folder(path: Path) -> None:
    """Remove a folder with all that is in it, as far as that can be done."""
    shutil.rmtree(path, ignore_errors=True)
