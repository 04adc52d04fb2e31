"""The figures of the report, as SVG and PNG. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot

from benchmarks.experiments import ALONE, amount
from benchmarks.results import Result
from benchmarks.tables import CHARTS, FIRST_LABELS, chart_of, chosen, pearson, speedups

COLOURS = {
    "naive": "#8a8f98",
    "one window": "#c3c7cd",
    "none": "#b8a9c9",
    "coverage": "#56b4e9",
    "factor": "#009e73",
    "slicing": "#e69f00",
    "best": "#d55e00",
    "duckdb": "#f0c419",
    "duckdb rewritten": "#8c6d00",
    "polars": "#0072b2",
}
"""Colours that can be distinguished with any kind of colour vision."""
TITLES = {
    "R-tumbling": "RandomGen, tumbling",
    "R-hopping": "RandomGen, hopping",
    "S-tumbling": "SequentialGen, tumbling",
    "S-hopping": "SequentialGen, hopping",
}
FEW = 1_000_000
"""First runs on at most this many events have their own scale."""
STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 9,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "factor-windows",
}


def draw(results: Sequence[Result], folder: Path) -> dict[str, str]:
    """Draw every figure that has results, and return captions by file name without the extension."""
    folder.mkdir(parents=True, exist_ok=True)
    captions: dict[str, str] = {}
    tables = [each for each in results if each.experiment == "tables"]
    figures: list[tuple[str, str, Callable[[Sequence[Result]], Any], Sequence[Result]]] = [
        ("first", "What a user sees at the first run; few events and many have scales of their own", _first,
         chosen(results, experiment="first")),
        ("correlation", "What hidden windows gain: predicted and observed", _correlation,
         [each for each in tables if each.events >= 5_000_000] or tables),
        ("planning", "Planning time: mean and standard deviation of ten window sets", _planning,
         [each for each in chosen(results, experiment="planning") if each.windows <= 20 and chart_of(each) in CHARTS]),
        ("growth", "Time for 1 to 100 windows", _growth, chosen(results, experiment="growth")),
        ("load", "Time for more and more events and windows, and memory on the way", _load,
         [each for each in chosen(results, experiment="soak") if each.seconds]),
        ("peers", "Other engines, and our rewriting for them", _peers, chosen(results, experiment="peers")),
    ]  # fmt: skip
    for stream, events in dict.fromkeys((each.stream, each.events) for each in tables):
        name = f"throughput-{stream}-{amount(events)}".replace(" ", "-").replace(".", "-")
        caption = f"Throughput for every window set: {stream}, {amount(events)} events"
        figures.append((name, caption, _throughput, chosen(tables, stream=stream, events=events)))
    with pyplot.rc_context(STYLE):
        for name, caption, draw_one, those in figures:
            if those:
                figure = draw_one(those)
                figure.savefig(folder / f"{name}.svg", metadata={"Date": None}, bbox_inches="tight")
                figure.savefig(folder / f"{name}.png", dpi=110, metadata={"Software": None}, bbox_inches="tight")
                pyplot.close(figure)
                captions[name] = caption
    return captions


def _first(results: Sequence[Result]) -> Any:
    ordered = sorted(results, key=lambda each: each.events)
    few, many = ([each for each in ordered if (each.events <= FEW) == is_small] for is_small in (True, False))
    groups = [group for group in (few, many) if group]
    figure, axes = pyplot.subplots(
        1, len(groups), figsize=(11, 4), width_ratios=[*map(len, groups)], squeeze=False, layout="constrained"
    )
    for panel, group in zip(axes.flat, groups, strict=True):
        for place, name in enumerate((ALONE, "naive", "best")):
            there = [(at, each) for at, each in enumerate(group) if name in each.seconds]
            bars = panel.bar(
                [at + (place - 1) * 0.27 for at, _ in there],
                [each.typical(name) for _, each in there],
                0.27,
                color=COLOURS[name],
                label=FIRST_LABELS[name],
            )
            panel.bar_label(bars, fmt="%.1f", fontsize=7, padding=1)
        panel.grid(visible=False, axis="x")
        panel.set_xticks(range(len(group)), [_case_label(each) for each in group], fontsize=8)
        panel.set_ylabel("seconds")
    figure.legend(*axes.flat[0].get_legend_handles_labels(), ncols=3, loc="outside upper center")
    return figure


def _case_label(result: Result) -> str:
    return f"{result.setup}\n{amount(result.events)} {'events' if result.stream == 'devices' else 'readings of plugs'}"


def _correlation(results: Sequence[Result]) -> Any:
    figure, axes = pyplot.subplots(2, 2, figsize=(9, 7), layout="constrained")
    every = speedups(results, "coverage", "factor", "best")
    for panel, chart in zip(axes.flat, CHARTS, strict=True):
        for search in ("factor", "best"):
            own = speedups(results, "coverage", search)[chart]
            panel.scatter(
                [predicted for predicted, _ in own],
                [observed for _, observed in own],
                s=14,
                alpha=0.75,
                color=COLOURS[search],
                label=search,
            )
        most = max(map(max, every[chart]), default=1)
        panel.plot([0, most], [0, most], color="#999999", linewidth=0.8, linestyle="--")
        found = pearson(every[chart])
        panel.set_title(TITLES[chart] + (f", r = {found:.2f}" if found is not None else ""))
        panel.set_xlabel("predicted gain over coverage")
        panel.set_ylabel("observed")
        panel.legend()
    return figure


def _planning(results: Sequence[Result]) -> Any:
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for panel, search in zip(axes, ("factor", "best"), strict=True):
        for place, chart in enumerate(CHARTS):
            own = sorted((each for each in results if chart_of(each) == chart), key=lambda each: each.windows)
            times = [[1000 * seconds for seconds in each.seconds[search]] for each in own]
            panel.errorbar(
                [each.windows + 0.15 * (place - 1.5) for each in own],
                [mean(each) for each in times],
                [stdev(each) for each in times],
                marker="o",
                markersize=3,
                capsize=2,
                linewidth=1,
                label=TITLES[chart],
            )
        panel.set_title(f"search {search}")
        panel.set_xlabel("windows")
        panel.set_ylabel("milliseconds")
        panel.set_ylim(bottom=0)
        panel.set_xticks(sorted({each.windows for each in results}))
    axes[0].legend()
    return figure


def _throughput(results: Sequence[Result]) -> Any:
    figure, axes = pyplot.subplots(2, 2, figsize=(11, 6.5), layout="constrained")
    names = [
        name for name in ("naive", "coverage", "factor", "slicing", "best") if any(name in r.seconds for r in results)
    ]
    for panel, chart in zip(axes.flat, CHARTS, strict=True):
        own = sorted(
            (each for each in results if chart_of(each) == chart), key=lambda each: (each.windows, each.number)
        )
        width = 0.8 / len(names)
        sizes = sorted({each.windows for each in own})
        # Sets of more windows stand apart, so that one label for each number of windows is enough.
        spots = [at + sizes.index(each.windows) for at, each in enumerate(own)]
        for place, name in enumerate(names):
            there = [(at, each) for at, each in zip(spots, own, strict=True) if name in each.seconds]
            panel.bar(
                [at + (place - (len(names) - 1) / 2) * width for at, _ in there],
                [each.events / each.typical(name) / 1e6 for _, each in there],
                width,
                color=COLOURS[name],
                label=name,
            )
        panel.set_title(TITLES[chart])
        panel.grid(visible=False, axis="x")
        middles = [mean(at for at, each in zip(spots, own, strict=True) if each.windows == size) for size in sizes]
        panel.set_xticks(middles, [f"{size} windows" for size in sizes])
        panel.set_ylabel("million events per second")
    axes.flat[0].legend(ncols=2, fontsize=8)
    return figure


def _growth(results: Sequence[Result]) -> Any:
    figure, panel = pyplot.subplots(figsize=(6.5, 4), layout="constrained")
    ordered = sorted(results, key=lambda each: each.windows)
    for name in ("naive", "factor", "best"):
        own = [each for each in ordered if name in each.seconds]
        panel.plot(
            [each.windows for each in own],
            [each.typical(name) for each in own],
            marker="o",
            markersize=3,
            color=COLOURS[name],
            label=name,
        )
    panel.set_xlabel("windows")
    panel.set_ylabel(f"seconds for {amount(ordered[0].events)} events")
    panel.set_ylim(bottom=0)
    panel.legend()
    return figure


def _load(results: Sequence[Result]) -> Any:
    figure, axes = pyplot.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    for panel, what in zip(axes, ("events", "windows"), strict=False):
        own = sorted((each for each in results if each.setup == what), key=lambda each: getattr(each, what))
        panel.plot(
            [getattr(each, what) for each in own],
            [each.typical("best") for each in own],
            marker="o",
            markersize=3,
            color=COLOURS["best"],
            label="measured",
        )
        if own:
            times = [getattr(each, what) / getattr(own[0], what) for each in own]
            linear = [own[0].typical("best") * each for each in times]
            panel.plot([getattr(each, what) for each in own], linear, color="0.6", linestyle="--", label="linear")
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xlabel(what)
        panel.set_ylabel("seconds")
        panel.legend()
    for each in results:
        if each.setup == "stream" or each.events >= 100_000_000:
            samples = sorted((int(place), value) for place, value in each.state["samples"].items())
            share = [place / max(1, len(samples) - 1) for place, _ in samples]
            axes[2].plot(
                share, [value for _, value in samples], label=each.setup if each.setup == "stream" else "batch"
            )
    axes[2].set_xlabel("share of the run")
    axes[2].set_ylabel("MB of the driver's process")
    axes[2].set_ylim(bottom=0)
    axes[2].legend()
    return figure


def _peers(results: Sequence[Result]) -> Any:
    figure, panel = pyplot.subplots(figsize=(9, 4), layout="constrained")
    names = [name for name in COLOURS if any(name in each.seconds for each in results)]
    labels = {"naive": "Spark, naive", "best": "Spark, best", "one window": "Spark, one window alone"}
    width = 0.8 / len(names)
    for place, name in enumerate(names):
        there = [(at, each) for at, each in enumerate(results) if name in each.seconds]
        bars = panel.bar(
            [at + (place - (len(names) - 1) / 2) * width for at, _ in there],
            [each.typical(name) for _, each in there],
            width,
            color=COLOURS[name],
            label=labels.get(name, name),
        )
        panel.bar_label(bars, fmt="%.1f", fontsize=6, padding=1)
    panel.set_yscale("log")
    panel.grid(visible=False, axis="x")
    panel.set_xticks(range(len(results)), [each.setup for each in results], fontsize=8)
    panel.set_ylabel(f"seconds for {amount(results[0].events)} events (log)")
    panel.legend(ncols=3, fontsize=8, loc="upper right", bbox_to_anchor=(1, 1.16))
    return figure
