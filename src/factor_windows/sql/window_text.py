"""A window as written in WINDOWS(...): '1 hour SLIDE 10 minutes', '1 month' IN 'Europe/Berlin', 'SESSION 30 minutes'.

SLIDE, OFFSET, STEP, ORIGIN and IN are inside the text or after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta

from sqlglot import exp

from factor_windows.algebra.calendar import AnyWindow, calendar, cumulating
from factor_windows.algebra.session import session
from factor_windows.algebra.window import Duration, hopping
from factor_windows.sql.dialects import WINDOW_PARTS, WINDOW_WORDS
from factor_windows.sql.located_error import located_error

_SESSION = re.compile(r"session\s+(.*)", re.IGNORECASE)
_MONTHS = re.compile(r"\d\s*(mo|month|q|quarter|y|year)s?\b", re.IGNORECASE)


def read_window_text(literal: exp.Literal, name: str) -> AnyWindow:
    """Read a window from its text and the words after it."""
    parts = _parts(literal)
    size = parts["size"]
    if gap := _SESSION.fullmatch(size):
        if others := sorted(parts.keys() - {"size"}):
            raise located_error(literal, f"the window {literal.this!r} is a session, which has no {others[0].upper()}")
        return session(gap[1], name=name)
    if counts_months(size) or parts.keys() & {"in", "origin"}:
        if "offset" in parts:
            raise located_error(
                literal,
                f"the window {literal.this!r} is one of a calendar, which has no OFFSET; write the date of a start, "
                "such as ORIGIN '2024-04-01'",
            )
        given = {part: parts.get(part) for part in ("slide", "step", "origin")}
        return calendar(size, zone=parts.get("in", "UTC"), name=name, **given)
    offset: Duration = parts.get("offset", timedelta(0))
    if "step" not in parts:
        return hopping(size, parts.get("slide", size), offset=offset, name=name)
    if "slide" in parts:
        raise located_error(
            literal, f"the window {literal.this!r} has SLIDE and STEP; one that grows by a step has no slide of its own"
        )
    return cumulating(size, step=parts["step"], offset=offset, name=name)


def counts_months(length: str) -> bool:
    """Say whether a length is in months, quarters or years, which only calendars have.

    >>> counts_months("1 quarter"), counts_months("18mo"), counts_months("1 minute")
    (True, True, False)
    """
    return _MONTHS.search(length) is not None


def _parts(literal: exp.Literal) -> dict[str, str]:
    """Return the length of a window, and its other properties by their lower-case words."""
    parts: dict[str, list[str]] = {"size": []}

    def start(word: str) -> list[str]:
        if word.lower() in parts:
            raise located_error(literal, f"the window {literal.this!r} has {word.upper()} twice")
        return parts.setdefault(word.lower(), [])

    part = parts["size"]
    for word in literal.this.split():
        if word.upper() in WINDOW_WORDS:
            part = start(word)
        else:
            part.append(word)
    after: Iterable[tuple[str, str]] = literal.meta.get(WINDOW_PARTS, ())
    for word, text in after:
        start(word).append(text)
    return {word: " ".join(texts) for word, texts in parts.items()}
