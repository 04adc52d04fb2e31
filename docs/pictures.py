"""The pictures of the pages, each drawn by the command that stands above it: `factor-windows explain ... --svg ...`.

An extension of Sphinx, so that they are drawn before the pages are read.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from io import StringIO
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from factor_windows.cli.main import app

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PICTURES = "pictures"
"""The folder beside the pages that the commands write to."""
CALLS = ("factor-windows ", ".venv/bin/factor-windows ")
"""How a line begins that calls the command line."""


def draw(folder: Path) -> None:
    """Run the commands of all pages in a folder that draw something."""
    (folder / PICTURES).mkdir(exist_ok=True)
    with chdir(folder), redirect_stdout(StringIO()):
        for page in sorted(folder.glob("*.md")):
            for arguments in commands(page.read_text(encoding="utf-8")):
                if any(argument.startswith(f"{PICTURES}/") for argument in arguments):
                    app(arguments, standalone_mode=False)


def commands(text: str) -> Iterator[list[str]]:
    """List the arguments of every line that calls the command line, up to a >; a backslash continues a line."""
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith(CALLS):
            yield list(takewhile(lambda part: part != ">", shlex.split(line, comments=True)[1:]))


def setup(sphinx: Sphinx) -> dict[str, bool]:
    """Have Sphinx draw the pictures."""
    sphinx.connect("builder-inited", lambda sphinx: draw(Path(sphinx.confdir)))
    return {"parallel_read_safe": True}
