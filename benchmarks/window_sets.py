"""The window sets of the paper's evaluation. Paper: Algorithm 6 and section V-A."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from factor_windows.algebra.window import Window
from factor_windows.errors import OptionError

SEED_RANGES = (2, 5, 10)
SEED_SLIDES = (5, 10, 20)
MULTIPLIER = 50


def random_windows(
    size: int, *, tumbling: bool, seed: int, unit: int = 1_000_000, multiplier: int = MULTIPLIER
) -> tuple[Window, ...]:
    """Draw a window set with RandomGen: each range (or slide) is a random multiple of a random seed.

    Windows that occur twice are drawn again, so that the set has the requested size.

    >>> [window.name for window in random_windows(3, tumbling=True, seed=1)]
    ['1 minute 16 seconds', '36 seconds', '1 minute 6 seconds']
    """
    seeds = SEED_RANGES if tumbling else SEED_SLIDES
    possible = {seed * times for seed in seeds for times in range(2, multiplier + 1)}
    if size > len(possible):
        raise OptionError(f"{size} windows are too many; with the multiplier {multiplier} there are {len(possible)}")
    random = Random(seed)
    chosen: dict[Window, None] = {}
    while len(chosen) < size:
        step = random.choice(seeds) * random.randint(2, multiplier) * unit
        chosen[_window(step, tumbling)] = None
    return tuple(chosen)


def sequential_windows(
    size: int, *, tumbling: bool, seed: int, unit: int = 1_000_000, multiplier: int = MULTIPLIER
) -> tuple[Window, ...]:
    """Draw a window set with SequentialGen: 2, 3, 4, ... times one random seed.

    >>> [window.name for window in sequential_windows(3, tumbling=False, seed=1)]
    ['20 seconds / 10 seconds', '30 seconds / 15 seconds', '40 seconds / 20 seconds']
    """
    if size > multiplier - 1:
        raise OptionError(f"{size} windows are too many; with the multiplier {multiplier} there are {multiplier - 1}")
    start = Random(seed).choice(SEED_RANGES if tumbling else SEED_SLIDES)
    return tuple(_window(start * times * unit, tumbling) for times in range(2, size + 2))


def _window(step: int, tumbling: bool) -> Window:
    return Window(range=step if tumbling else 2 * step, slide=step)


GENERATORS: dict[str, Callable[..., tuple[Window, ...]]] = {"R": random_windows, "S": sequential_windows}
