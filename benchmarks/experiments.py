"""What is measured: every case of the evaluation, by name, without how it is run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from benchmarks.window_sets import GENERATORS, random_windows
from factor_windows.algebra.calendar import calendar
from factor_windows.algebra.window import Window, hopping, tumbling
from factor_windows.query import Query

SIZES = (5, 10, 15, 20)
TEN_TUMBLING = tuple(tumbling(f"{seconds} seconds") for seconds in range(20, 120, 10))
TEN_HOPPING = tuple(hopping(f"{seconds} seconds", f"{seconds // 2} seconds") for seconds in range(20, 120, 10))
PAPERS = ("naive", "coverage", "factor", "best")
PAPERS_SETS = 10
"""The number of window sets that the paper draws for each set-up."""
WITH_SLICING = (*PAPERS, "slicing")
GROWTH = (1, 2, 5, 10, 20, 40, 100)
PEERS = ("naive", "best", "duckdb", "duckdb rewritten", "polars")
ALONE = "one window"
"""The contender that computes only the first window of a case, as people write it: a lower limit for all others."""
TOLD = "best, statistics given"
"""The default plan of a stream whose statistics are known in advance."""
FIRST = (ALONE, "naive", "best", TOLD)
PHASES = ("import", "read", "plan", "build", "compile", "execute")
"""The phases of a first run after the Spark session has started; contenders without a plan skip some."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Events to aggregate: how many per second, and from how many keys."""

    rate: float
    keys: int = 1
    column: str = "v"

    @property
    def by(self) -> tuple[str, ...]:
        """Return the columns that a query groups by, apart from time."""
        return ("device",) if self.keys > 1 else ()


STREAMS = {
    "synthetic": Stream(rate=1),
    "dense": Stream(rate=100),
    "devices": Stream(rate=100, keys=20),
    "factory": Stream(rate=100),
    "plugs": Stream(rate=17.5, keys=45, column="power_1s"),
    "hundreds of keys": Stream(rate=100, keys=200),
    "thousands of keys": Stream(rate=100, keys=20_000),
    "sparse keys": Stream(rate=100, keys=1_000_000),
    "two years": Stream(rate=10_000_000 / (730 * 86_400), keys=20),
}
"""`synthetic` is the paper's, one event per unit of time; `factory` stands in for its Real-32M; `plugs` are real."""
PLUGS = 3_034_526
"""The number of readings of the smart plugs."""


@dataclass(frozen=True, slots=True)
class Case:
    """One set of windows over one stream, and its contenders."""

    experiment: str
    stream: str
    events: int
    setup: str
    """For example R-10-tumbling."""
    windows: tuple[Window, ...]
    number: int = 0
    """The number of this window set within the set-up."""
    function: str = "min"
    contenders: tuple[str, ...] = WITH_SLICING

    @property
    def name(self) -> str:
        """Return a name that identifies the case; a resumed run skips the names it knows."""
        parts = (self.experiment, self.stream, amount(self.events), self.setup, f"set {self.number}", self.function)
        return ", ".join(parts)

    @property
    def query(self) -> Query:
        """Return the query to compute."""
        stream = STREAMS[self.stream]
        aggregates = [f"{function}({stream.column})" for function in self.function.split("+")]
        return Query(time="ts", keys=stream.by, windows=self.windows, aggregates=aggregates)


def amount(count: int) -> str:
    """Write a round number of events in short form.

    >>> amount(10_000_000), amount(200_000), amount(3_034_526)
    ('10M', '200k', '3.03M')
    """
    for unit, letter in ((1_000_000, "M"), (1_000, "k")):
        if count >= unit:
            return f"{count / unit:.3g}{letter}"
    return str(count)


def cases(*, quick: bool = False, sets: int | None = None, events: int | None = None) -> Iterator[Case]:
    """List what is measured on Spark; `events` replaces all numbers of events, `sets` all numbers of sets.

    The tables of ten million events have ten sets for each set-up, as in the paper; the others have one. The last
    experiment, `choices`, only runs if requested by name.
    """
    small, large = events or 1_000_000, events or 10_000_000
    if quick:
        yield from _tables(("dense",), small, (5, 10), sets or 1)
        yield from _growth(small, GROWTH[:4])
        yield from list(_peers(small))[:2]
        yield from _calendars(small)
        return
    yield from _tables(("dense", "devices"), large, SIZES, sets or PAPERS_SETS)
    yield from _peers(large)
    yield from _tables(("plugs",), PLUGS, (5, 10), sets or 1)
    yield from _growth(small, GROWTH)
    yield from _extremes(small)
    yield from _calendars(large)
    yield from _functions(small, sets or 1)
    yield from _tables(("synthetic",), small, SIZES, sets or 1)
    yield from _tables(("factory",), small, (5, 10), sets or 1)
    yield from _choices(events or 2_000_000)


def _tables(streams: tuple[str, ...], events: int, sizes: tuple[int, ...], sets: int) -> Iterator[Case]:
    """List the cases of the paper's Tables I to IV and its comparison with slicing, which stops at ten windows."""
    for stream, size, kind in product(streams, sizes, ("tumbling", "hopping")):
        for letter in GENERATORS:
            for number, windows in enumerate(window_sets(letter, size, kind == "tumbling", sets)):
                contenders = WITH_SLICING if size <= 10 else PAPERS
                setup = f"{letter}-{size}-{kind}"
                yield Case("tables", stream, events, setup, windows, number, contenders=contenders)


def window_sets(letter: str, size: int, is_tumbling: bool, count: int) -> list[tuple[Window, ...]]:
    """Draw different window sets with the seeds 0, 1, 2, ...; a SequentialGen has only as many as it has seed ranges.

    >>> [len(window_sets(letter, 5, True, 10)) for letter in GENERATORS]
    [10, 3]
    """
    drawn = (GENERATORS[letter](size, tumbling=is_tumbling, seed=seed) for seed in range(10 * count))
    return list(dict.fromkeys(drawn))[:count]


def _functions(events: int, sets: int) -> Iterator[Case]:
    """List what the paper measures with MIN, with functions that must not count an event twice."""
    kinds = (("R", True), ("S", False))
    for function, (letter, is_tumbling) in product(("sum", "avg", "stddev"), kinds):
        for number, windows in enumerate(window_sets(letter, 10, is_tumbling, sets)):
            setup = f"{letter}-10-{'tumbling' if is_tumbling else 'hopping'}"
            yield Case("functions", "devices", events, setup, windows, number, function)


def _growth(events: int, counts: tuple[int, ...]) -> Iterator[Case]:
    """List the first 1, 2, 5, ... windows of one random set of a hundred."""
    windows = random_windows(max(GROWTH), tumbling=True, seed=0)
    for count in counts:
        yield Case(
            "growth", "devices", events, f"{count} windows", windows[:count], contenders=("naive", "factor", "best")
        )


def _extremes(events: int) -> Iterator[Case]:
    """List windows without a common divisor, a long window with a short slide, and more keys than events."""
    who = ("naive", "factor", "best", ALONE)
    primes = tuple(tumbling(f"{seconds} seconds") for seconds in (15, 17, 19))
    minutes = tuple(tumbling(f"{n} minutes") for n in range(1, 11))
    hour = (hopping("1 hour", "10 seconds"),)
    yield Case("extremes", "devices", events, "15, 17 and 19 seconds", primes, contenders=who)
    yield Case("extremes", "devices", events, "1 hour by 10 seconds", hour, contenders=("naive", "factor", "best"))
    yield Case("extremes", "sparse keys", events, "1 to 10 minutes", minutes, contenders=who)


def _calendars(events: int) -> Iterator[Case]:
    """List local days and longer together with short windows, and days of zones that have little in common."""
    who = ("naive", "best", ALONE)
    zones = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Asia/Tokyo", "Australia/Sydney")
    local = [calendar(f"1 {unit}", zone=zones[0]) for unit in ("day", "month", "quarter", "year")]
    days = [calendar("1 day", zone=zone) for zone in zones]
    for setup, made in (("15 minutes to a year", [tumbling("15m"), *local]), ("days of five zones", days)):
        windows = tuple(window for window in made if isinstance(window, Window))
        yield Case("calendars", "two years", events, setup, windows, contenders=who)


def _peers(events: int) -> Iterator[Case]:
    """List the engines that a user would choose instead."""
    kinds = {"ten tumbling": TEN_TUMBLING, "ten hopping": TEN_HOPPING}
    for letter, kind in (("R", "tumbling"), ("S", "hopping")):
        kinds[f"{letter}-10-{kind}"] = window_sets(letter, 10, kind == "tumbling", 1)[0]
    for setup, windows in kinds.items():
        yield Case("peers", "devices", events, setup, windows, contenders=(*PEERS, ALONE))


def first_cases(*, quick: bool = False, events: int | None = None) -> Iterator[Case]:
    """List what runs in new processes; `events` replaces all numbers of events except that of the smart plugs."""
    primes = tuple(tumbling(f"{seconds} seconds") for seconds in (15, 17, 19))
    kinds = {"ten tumbling": TEN_TUMBLING, "ten hopping": TEN_HOPPING, "15, 17 and 19 seconds": primes}
    who = tuple(name for name in FIRST if not quick or name != TOLD)
    if quick:
        kinds.pop("ten hopping")
    two = (tumbling("1 minute"), tumbling("5 minutes"))
    three = (tumbling("1 minute"), tumbling("15 minutes"), tumbling("1 hour"))
    yield Case("first", "devices", events or 200_000, "1 and 5 minutes", two, contenders=who)
    sizes = (events,) if events else (1_000_000,) if quick else (1_000_000, 10_000_000)
    for size, (setup, windows) in product(sizes, kinds.items()):
        yield Case("first", "devices", size, setup, windows, contenders=who)
    if not quick:
        yield Case("first", "plugs", PLUGS, "1 minute to 1 hour", three, contenders=who)


def _choices(events: int) -> Iterator[Case]:
    """List plans of every kind, to see whether the cost model chooses well: many and few keys, many and few events."""
    who = ("naive", "none", "coverage", "factor", "best")
    kinds = {
        "20 and 60 seconds": (tumbling("20s"), tumbling("60s")),
        "15, 17 and 19 seconds": tuple(tumbling(f"{length}s") for length in (15, 17, 19)),
        "30 seconds by 1 second": (hopping("30s", "1s"),),
        "60 by 25 seconds": (hopping("60s", "25s"), tumbling("60s"), tumbling("90s")),
    }
    for letter, size, is_tumbling in product(GENERATORS, (5, 10), (True, False)):
        setup = f"{letter}-{size}-{'tumbling' if is_tumbling else 'hopping'}"
        kinds[setup] = window_sets(letter, size, is_tumbling, 2)[-1]
    streams = {"devices": 1.0, "hundreds of keys": 1.0, "synthetic": 0.1, "thousands of keys": 0.3}
    for (stream, share), (setup, windows) in product(streams.items(), kinds.items()):
        yield Case("choices", stream, round(events * share), setup, windows, function="sum", contenders=who)


def flink_cases(events: int) -> Iterator[Case]:
    """List what runs on Flink, if an interpreter with PyFlink is given."""
    for setup, windows in (("ten tumbling", TEN_TUMBLING), ("ten hopping", TEN_HOPPING)):
        yield Case("flink", "devices", events, setup, windows, contenders=("flink", "flink rewritten"))
