"""Run times of a plan and its naive query: both run in turns, and what their times can show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter

ROUNDS = 5
"""The number of rounds to count, if there is time for them."""
BUDGET = 10.0
"""The time in seconds after which no further round starts."""
SMALL = 1.0
"""Below this many seconds, a run mostly measures the time Spark takes to start steps."""
CLOSE = 0.2
"""The share by which two times may differ by chance."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The seconds of each run of a plan, and of its naive query if that was run too."""

    plan: tuple[float, ...]
    naive: tuple[float, ...] = ()

    @classmethod
    def of(cls, seconds: Mapping[str, float]) -> Timing:
        """Make a timing from one run of `plan`, and of `naive` if that was run too."""
        return cls(*((seconds[name],) for name in ("plan", "naive") if name in seconds))

    @property
    def seconds(self) -> dict[str, float]:
        """Return the median of each."""
        return {name: median(times) for name, times in (("plan", self.plan), ("naive", self.naive)) if times}

    @property
    def gain(self) -> float | None:
        """Return how many times as fast as naive the plan is; `None` if the times do not tell.

        >>> Timing((2.0, 2.1, 2.0), (5.0, 4.0, 5.0)).gain
        2.5
        >>> too_short, too_close, too_noisy = Timing((0.2,), (0.5,)), Timing((2.0,), (2.1,)), Timing((2, 4), (3, 5))
        >>> too_short.gain, too_close.gain, too_noisy.gain
        (None, None, None)
        """
        if not self.naive or self.is_small:
            return None
        plan, naive = median(self.plan), median(self.naive)
        noise = max(_spread(self.plan) + _spread(self.naive), CLOSE * min(plan, naive))
        return naive / plan if abs(naive - plan) > noise else None

    @property
    def is_small(self) -> bool:
        """Say whether the runs are too short to compare."""
        return max(self.seconds.values()) < SMALL

    def __str__(self) -> str:
        """Say which was faster.

        >>> print(Timing((3.0,), (2.0,)))
        the plan takes 3.0 s, window by window 2.0 s, both warm: 1.5 times slower
        """
        if not self.naive:
            return f"the plan took {median(self.plan):.1f} s"
        if self.is_small:
            return "the data is too small to compare times"
        both = f"the plan takes {median(self.plan):.1f} s, window by window {median(self.naive):.1f} s, both warm"
        if self.gain is None:
            return f"{both}: too close to tell which is faster"
        return f"{both}: " + (f"{self.gain:.1f} times faster" if self.gain > 1 else f"{1 / self.gain:.1f} times slower")


def time_in_turns(
    plan: Callable[[], object], naive: Callable[[], object], *, clock: Callable[[], float] = perf_counter
) -> Timing:
    """Time both for about ten seconds; the first round warms up, and counts only if it took all the time."""
    turns = [("plan", plan), ("naive", naive)]
    took: dict[str, list[float]] = {"plan": [], "naive": []}
    begin = clock()
    for _ in range(1 + ROUNDS):
        for name, run in turns:
            start = clock()
            run()
            took[name].append(clock() - start)
        turns.reverse()
        if clock() - begin > BUDGET or all(times[-1] < SMALL for times in took.values()):
            break
    return Timing(**{name: tuple(times[1:] or times) for name, times in took.items()})


def _spread(times: tuple[float, ...]) -> float:
    """Return how far a typical run is from the median."""
    return median(abs(each - median(times)) for each in times)
