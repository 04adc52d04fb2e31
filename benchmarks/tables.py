"""The arithmetic of the report: means, maxima, correlations and shortfalls, as rows of text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import correlation, geometric_mean, mean, median, stdev

from benchmarks.experiments import ALONE, PHASES, TOLD, amount
from benchmarks.paper import Boosts
from benchmarks.results import Result

PLANS = ("coverage", "factor", "slicing", "best")
CHARTS = ("R-tumbling", "R-hopping", "S-tumbling", "S-hopping")
"""The paper's four panels: a generator and a kind of windows each."""

FIRST_LABELS = {ALONE: ALONE, "naive": "naive", "best": "ours", TOLD: "ours, statistics given"}
"""The names of the contenders of a first run in its tables and its figure."""


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table; the first column is text, the others are numbers.

    >>> print(markdown(["set", "gain"], [["R-5", "1.2"]]))
    | set | gain |
    |---|---:|
    | R-5 | 1.2 |
    """
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" if line is not lines[1] else f"|{'|'.join(line)}|" for line in lines)


def chosen(results: Iterable[Result], **facts: object) -> list[Result]:
    """Keep the results that have all these facts."""
    return [each for each in results if all(getattr(each, name) == value for name, value in facts.items())]


def by_setup(results: Iterable[Result]) -> dict[str, list[Result]]:
    """Group results by their set-up, in order of appearance."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.setup, []).append(result)
    return groups


def boosts(results: Iterable[Result], contender: str) -> list[float]:
    """List how many times as fast as naive a contender was, where it ran and was correct."""
    return [each.boost(contender) for each in results if contender in each.seconds and "naive" in each.seconds]


def summary(values: Sequence[float]) -> str:
    """Write a mean and, in brackets, a maximum.

    >>> summary([1.0, 2.0]), summary([])
    ('1.5 (2.0)', '')
    """
    return f"{mean(values):.1f} ({max(values):.1f})" if values else ""


def boost_table(results: Sequence[Result], paper: Mapping[str, Boosts]) -> str:
    """Compare our boosts with the paper's: mean and maximum for each set-up."""
    plans = [plan for plan in PLANS if any(plan in each.seconds for each in results)]
    header = [
        "set-up",
        "sets",
        "paper without",
        "coverage",
        "paper with",
        *(plan for plan in plans if plan != "coverage"),
    ]
    groups = by_setup(results)
    rows = []
    for setup, theirs in paper.items():
        if ours := groups.get(setup):
            without = f"{theirs.mean_without:.1f} ({theirs.max_without:.1f})"
            with_them = f"{theirs.mean_with:.1f} ({theirs.max_with:.1f})"
            found = {plan: summary(boosts(ours, plan)) for plan in plans}
            others = [found[plan] for plan in plans if plan != "coverage"]
            rows.append([setup, str(len(ours)), without, found.get("coverage", ""), with_them, *others])
    return markdown(header, rows)


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A set-up in which we gain less than the paper reports for its own system."""

    stream: str
    events: int
    setup: str
    ours: float
    papers: float


def shortfalls(results: Sequence[Result], paper: Mapping[str, Boosts]) -> list[Shortfall]:
    """List the set-ups whose mean boost with `best` is below the paper's with factor windows."""
    found = []
    for setup, group in by_setup(results).items():
        values = boosts(group, "best")
        if setup in paper and values and mean(values) < paper[setup].mean_with:
            found.append(Shortfall(group[0].stream, group[0].events, setup, mean(values), paper[setup].mean_with))
    return found


def chart_of(result: Result) -> str:
    """Return which of the four panels a result belongs to.

    >>> from benchmarks.results import Result
    >>> chart_of(Result("", "tables", "dense", 1, "R-10-tumbling", 0, "min", 10, {}))
    'R-tumbling'
    """
    letter, _, rest = result.setup.partition("-")
    return f"{letter}-{rest.rpartition('-')[2]}"


def speedups(results: Iterable[Result], over: str, *searches: str) -> dict[str, list[tuple[float, float]]]:
    """List predicted and observed gains of searches over a contender, for each of the four charts."""
    points: dict[str, list[tuple[float, float]]] = {chart: [] for chart in CHARTS}
    for result in results:
        predicted = result.predicted
        for search in searches:
            if {search, over} <= result.seconds.keys() & predicted.keys():
                points[chart_of(result)].append((predicted[over] / predicted[search], result.boost(search, over)))
    return points


def pearson(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the correlation of predicted and observed values; `None` if there are too few.

    >>> pearson([(1, 1), (2, 2), (3, 3)]), pearson([(1, 1), (1, 2), (1, 3)])
    (1.0, None)
    """
    predicted, observed = [one for one, _ in points], [other for _, other in points]
    if len(points) < 3 or len(set(predicted)) == 1 or len(set(observed)) == 1:
        return None
    return correlation(predicted, observed)


def plan_seconds(results: Iterable[Result]) -> list[tuple[float, float]]:
    """List predicted and measured seconds of all plans."""
    return [
        (result.predicted[name], result.typical(name))
        for result in results
        for name in result.predicted
        if name in result.seconds
    ]


def regrets(results: Iterable[Result]) -> list[tuple[float, Result]]:
    """List, worst first, how many times as long `best` took as the fastest contender on Spark."""
    found = []
    for result in results:
        plans = [name for name in result.counts if name in result.seconds and name != "best"]
        if "best" in result.seconds and plans:
            found.append((result.typical("best") / min(map(result.typical, plans)), result))
    return sorted(found, key=lambda pair: -pair[0])


def time_table(results: Sequence[Result], first: str, label: Callable[[Result], str]) -> str:
    """List the times of all contenders, in seconds, and the gain of `best` over naive."""
    names = list(dict.fromkeys(name for each in results for name in each.seconds))
    rows = [
        [
            label(each),
            *(f"{each.typical(name):.2f}" if name in each.seconds else "" for name in names),
            f"{each.boost('best'):.1f}" if {"best", "naive"} <= each.seconds.keys() else "",
        ]
        for each in results
    ]
    return markdown([first, *(f"{name}, s" for name in names), "naive / best"], rows)


def first_table(results: Sequence[Result]) -> str:
    """List the times of first runs, in seconds, and how many times as long as the others ours takes."""
    names = [name for name in FIRST_LABELS if any(name in each.seconds for each in results)]
    rows = [
        [
            each.setup,
            _source(each),
            *(f"{each.typical(name):.1f}" if name in each.seconds else "" for name in names),
            *(
                f"{each.boost(name, 'best'):.2f}" if {name, "best"} <= each.seconds.keys() else ""
                for name in (ALONE, "naive")
            ),
        ]
        for each in results
    ]
    header = ["windows", "events", *(f"{FIRST_LABELS[name]}, s" for name in names)]
    return markdown([*header, f"ours / {ALONE}", "ours / naive"], rows)


def phase_table(results: Sequence[Result]) -> str:
    """List the phases of first runs, in seconds."""
    rows = [
        [
            f"{each.setup}, {_source(each)}: {label}",
            *(f"{each.phases[name][phase]:.2f}" if phase in each.phases[name] else "" for phase in PHASES),
            f"{each.typical(name):.2f}",
            f"{each.phases[name]['start']:.2f}",
        ]
        for each in results
        for name, label in FIRST_LABELS.items()
        if name in each.phases
    ]
    return markdown(["windows, events, contender", *PHASES, "total", "start of Spark"], rows)


def _source(result: Result) -> str:
    return f"{amount(result.events)} {'' if result.stream == 'devices' else result.stream}".rstrip()


def flink_table(results: Sequence[Result]) -> str:
    """List Flink's times for both queries."""
    names = ("flink", "flink rewritten")
    rows = [
        [each.setup, *(f"{each.typical(name):.2f}" for name in names), f"{each.boost(names[1], names[0]):.1f}"]
        for each in results
        if set(names) <= each.seconds.keys()
    ]
    return markdown(["windows", *(f"{name}, s" for name in names), "gain"], rows)


def planning_table(results: Sequence[Result]) -> str:
    """List planning times: mean and standard deviation in milliseconds."""
    rows = [
        [
            each.setup,
            str(each.windows),
            *(f"{1000 * mean(times):.1f} ± {1000 * stdev(times):.1f}" for times in each.seconds.values()),
        ]
        for each in results
    ]
    return markdown(["windows", "number", "factor, ms", "best, ms"], rows)


def state_table(results: Sequence[Result]) -> str:
    """List the times of micro-batches, and how large the state gets."""
    rows = []
    for each in results:
        pairs = [f"{each.state['naive'][what]:,} → {each.state['best'][what]:,}" for what in ("operators", "rows")]
        megabytes = [f"{each.state[who]['bytes'] / 1e6:.1f}" for who in ("naive", "best")]
        times = [f"{each.typical(who):.2f}" for who in ("naive", "best")] if "best" in each.seconds else ["", ""]
        gain = f"{each.boost('best'):.1f}" if "best" in each.seconds else "wrong rows"
        rows.append([each.setup, *times, gain, *pairs, " → ".join(megabytes)])
    return markdown(["windows", "naive, s", "best, s", "gain", "operators", "rows of state", "MB of state"], rows)


def soak_table(results: Sequence[Result]) -> str:
    """List times under load (seconds or, for a stream, of a micro-batch), and the driver's memory early and late."""
    rows = []
    for each in results:
        samples = [value for _, value in sorted(each.state["samples"].items(), key=lambda pair: int(pair[0]))]
        third = max(1, len(samples) // 3)
        early, late = median(samples[third : 2 * third] or samples), median(samples[-third:])
        rows.append([
            each.setup, f"{each.events:,}", str(each.windows), f"{each.typical('best'):.2f}", f"{each.rows:,}",
            f"{early:,.0f}", f"{late:,.0f}", f"{max(samples):,}",
        ])  # fmt: skip
    header = ["what grows", "events", "windows", "s", "rows", "MB, middle third", "MB, last third", "MB, most"]
    return markdown(header, rows)


def store_table(results: Sequence[Result]) -> str:
    """List the time of each way, and how many times as long as the fastest of its case it takes."""
    rows = []
    for each in results:
        quickest = min(map(each.typical, each.seconds))
        rows += [
            [each.setup, name, f"{each.typical(name):.2f}", f"{each.typical(name) / quickest:.1f}"]
            for name in each.seconds
        ]
    return markdown(["case", "what", "s", "times the quickest"], rows)


def gap_table(results: Sequence[Result]) -> str:
    """List predicted gains over naive by the paper's costs."""
    ways = list(results[0].gains)
    rows = [[each.setup, str(each.number), *(f"{each.gains[way]:.1f}" for way in ways)] for each in results]
    return markdown(["set-up", "events per unit", *ways], rows)


def noise(results: Iterable[Result]) -> float:
    """Return the median distance between the runs of one contender, as a share of their median."""
    return median(
        [each.spread(name) for each in results for name in each.seconds if len(each.seconds[name]) > 1] or [0]
    )


def typical_gain(results: Iterable[Result], one: str, other: str) -> float:
    """Return the geometric mean of how many times as fast as another a contender is."""
    return geometric_mean([each.boost(one, other) for each in results if {one, other} <= each.seconds.keys()])
