"""What went wrong, in one line, and whether it is Spark's own word about numbers that do not fit."""

from __future__ import annotations

import re

ARITHMETIC = ("ARITHMETIC_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE", "DECIMAL_PRECISION", "BINARY_ARITHMETIC_OVERFLOW")


def first_line(trouble: BaseException) -> str:
    """Say what an error is, by Spark's name for it where it has one.

    >>> first_line(ValueError("no\\nreason"))
    'ValueError: no reason'
    """
    text = str(trouble)
    named = re.search(r"\[([A-Z_0-9.]{6,})\] ?([^\n]*)", text)
    return f"{type(trouble).__name__}: {named[0] if named else text[:300]}".replace("\n", " ")[:400]


def is_arithmetic(text: str) -> bool:
    """Say whether an error is about a number that does not fit its type."""
    return any(name in text for name in ARITHMETIC)
