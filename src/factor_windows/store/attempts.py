"""Retries: of writers that commit at the same time one is first, and the others try again a little later."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from factor_windows.errors import StoreConflictError

ATTEMPTS = 20
"""The number of attempts if other writers are faster each time."""
LONGEST_WAIT = 2.0
"""The longest wait before the last attempt, in seconds."""
Done = TypeVar("Done")


def try_until_first(write: Callable[[], Done]) -> Done:
    """Call `write` until no other writer is faster, or until that has happened too often."""
    for attempt in range(1, ATTEMPTS):
        try:
            return write()
        except StoreConflictError:
            # Other writers retry as well, but should not all do so at the same time.
            time.sleep(random.uniform(0, LONGEST_WAIT * attempt / ATTEMPTS))
    return write()
