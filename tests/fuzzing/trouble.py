"""What went wrong, in one line, and whether it is Spark's own word about numbers that do not fit."""

from __future__ import annotations

import re

ARITHMETIC = ("ARITHMETIC_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE", "DECIMAL_PRECISION", "BINARY_ARITHMETIC_OVERFLOW")
SEVERAL = "STAGE_MATERIALIZATION_MULTIPLE_FAILURES"
"""The name of the error of two stages that fail at the same time; PySpark has no type for it, whatever they say."""


def first_line(trouble: BaseException) -> str:
    """Say what an error is, by Spark's name for it where it has one; of several at once, by the first of them.

    >>> first_line(ValueError("no\\nreason"))
    'ValueError: no reason'
    >>> first_line(ValueError("[STAGE_MATERIALIZATION_MULTIPLE_FAILURES] Multiple failures (2)\\n1. [TOO_LONG] Why."))
    'ValueError: [TOO_LONG] Why.'
    """
    text = str(trouble)
    named = re.search(rf"\[(?!{SEVERAL})[A-Z_0-9.]{{6,}}\] ?[^\n]*", text)
    return f"{type(trouble).__name__}: {named[0] if named else text[:300]}".replace("\n", " ")[:400]


def is_arithmetic(text: str) -> bool:
    """Say whether an error is about a number that does not fit its type."""
    return any(name in text for name in ARITHMETIC)
