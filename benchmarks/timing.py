"""Time contenders in a shuffled order, round by round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random
from time import perf_counter
from typing import TypeVar

Answer = TypeVar("Answer")


def rounds(
    contenders: Mapping[str, Callable[[], Answer]],
    *,
    repeats: int,
    random: Random,
    enough: Callable[[str], float] = lambda _: float("inf"),
) -> Iterator[tuple[str, float, Answer]]:
    """Run every contender this many times, and yield its name, seconds and answer each time.

    A contender that has taken `enough` seconds in total is not run again, but each runs at least once.

    >>> timed = rounds({"a": lambda: 1, "b": lambda: 2}, repeats=2, random=Random(7), enough={"a": 60, "b": 1e-9}.get)
    >>> sorted((name, answer) for name, seconds, answer in timed)
    [('a', 1), ('a', 1), ('b', 2)]
    """
    spent = dict.fromkeys(contenders, 0.0)
    for _ in range(repeats):
        for name in random.sample(list(contenders), len(contenders)):
            if spent[name] >= enough(name):
                continue
            begin = perf_counter()
            answer = contenders[name]()
            seconds = perf_counter() - begin
            spent[name] += seconds
            yield name, seconds, answer
