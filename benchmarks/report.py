"""The report: results as a document with tables and figures, and as one page for a browser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from statistics import mean

from benchmarks import paper, tables
from benchmarks.experiments import ALONE, amount
from benchmarks.results import Result, Store
from benchmarks.tables import chosen
from factor_windows.errors import OptionError

FIGURES = "benchmarks"
"""The folder of the figures, next to the document."""
OPENING = ("first", "growth", "peers")
"""The figures at the start of the document, before any table."""
NOTES = "benchmarks-notes.md"
"""People's own notes on the figures; included in the report unchanged, if they exist."""
STREAMS = {
    "synthetic": "no key, one event a second, as in the paper",
    "dense": "no key, 100 events a second",
    "devices": "20 devices, 100 events a second together",
    "factory": "no key, 100 events a second: the sample of the paper's real data set, repeated in time",
    "plugs": "real readings of 45 smart plugs over two days (tracebase, ODbL 1.0)",
}
SYNTHETIC_STREAMS = ("dense", "devices", "synthetic")


def write(store: Store, output: Path) -> list[Path]:
    """Write the document, the figures and the page, and return their paths."""
    results = store.results()
    if not results:
        raise OptionError(f"there are no results in {str(store.path)!r}; python -m benchmarks makes them")
    try:
        from benchmarks.plots import draw
    except ImportError:
        raise OptionError("the report needs matplotlib, which `make bench` installs") from None
    output.mkdir(parents=True, exist_ok=True)
    captions = draw(results, output / FIGURES)
    notes = output / NOTES
    text = document(results, store.runs(), captions, notes.read_text(encoding="utf-8") if notes.exists() else "")
    (output / "benchmarks.md").write_text(text, encoding="utf-8")
    (output / FIGURES / "index.html").write_text(page(text, output), encoding="utf-8")
    return [output / "benchmarks.md", output / FIGURES / "index.html"]


def document(results: Sequence[Result], runs: Sequence[dict[str, object]], captions: dict[str, str], notes: str) -> str:
    """Write the whole report as Markdown; sections without results are left out."""
    parts = ["# Benchmarks", *_charts(captions), *_first_runs(results), *_preface(results, runs)]
    parts += [*_boosts(results, captions), *_short(results, notes)]
    parts += [*_cost_model(results, captions), *_planning(results, captions)]
    parts += [*_other_queries(results, captions), *_other_engines(results, captions), *_loads(results, captions)]
    return "\n\n".join(parts) + "\n"


def _charts(captions: dict[str, str]) -> Iterator[str]:
    """Write what a reader wants to see first: a first run, and how time grows."""
    for name in OPENING:
        if name in captions:
            yield f"**{captions[name]}.**"
            yield from _figure(name, captions)


def _first_runs(results: Sequence[Result]) -> Iterator[str]:
    """Write what a user who starts a program sees; everything after this is for a warm JVM."""
    own = sorted(chosen(results, experiment="first"), key=lambda each: each.events)
    if not own:
        return
    yield "What a user sees at the first run: a new Python process, a new JVM, the query runs once."
    yield tables.first_table(own)
    fewest, most = (few(len(times) for each in own for times in each.seconds.values()) for few in (min, max))
    runs = (f"{fewest}" if fewest == most else f"{fewest} to {most}") + (" runs" if most > 1 else " run")
    yield (
        f"Medians of {runs} of each contender in shuffled order (`python -m benchmarks --only first`). "
        "The time counts from when the Spark session stands until all rows are computed. "
        f"`{ALONE}` is the first window of each case by itself, as people write it; `naive` is one "
        "`groupBy(window(...))` for each window and a union; `ours` is `fw.optimize(query).run(events)`, and its time "
        "includes `import factor_windows`. Where statistics are given, the plan is made for the known rate and number "
        f"of keys. The events are in Parquet: {STREAMS['devices']}; `plugs` are {STREAMS['plugs']}. "
        "The rows of the first round are compared with those of `naive`, after the time is taken."
    )
    yield "## Where the time of a first run goes"
    yield (
        "Seconds, medians of each phase. `import`: `import factor_windows`, after PySpark. `read`: "
        "`spark.read.parquet`. `plan`: the query and `optimize`. `build`: the DataFrame, which Spark analyzes. "
        "`compile`: Spark optimizes and plans the query and generates the first stage's code, until its first job "
        "starts, by its status page. `execute`: the rest, with the code of later stages; rows go to the `noop` sink. "
        "The start of Spark is not in the total."
    )
    yield tables.phase_table(own)
    yield "## How it was measured"


def _preface(results: Sequence[Result], runs: Sequence[dict[str, object]]) -> Iterator[str]:
    yield (
        "What the paper measures on Trill, measured on Spark, beside the paper's own figures. Written by "
        "`python -m benchmarks report` from the lines that `python -m benchmarks` wrote."
    )
    yield from dict.fromkeys(map(_machine, runs))
    wrong = [f"{each.name}: {', '.join(each.wrong)}" for each in results if each.wrong]
    said = f"WRONG ROWS: {'; '.join(wrong)}" if wrong else "every contender gave exactly the rows of the naive query"
    yield f"{len(results)} cases; {said}."
    if warm := [each for each in results if each.experiment != "first"]:
        yield (
            "All but first runs are warm: contenders run in shuffled order after a warm-up on a part of the events, "
            "and each run computes all rows and hashes them. Two runs of the same contender are "
            f"{tables.noise(warm):.0%} apart in the median, so differences of that size mean little.\n\n"
            "`naive` is one `groupBy(window(...))` for each window and a union; `coverage` is the paper's Algorithm 1 "
            "(without factor windows), `factor` its Algorithm 3 (with them); `slicing` cuts time at the edges of all "
            "windows, as Scotty does; `best` is the default here."
        )


def _machine(run: dict[str, object]) -> str:
    versions = run["versions"]
    assert isinstance(versions, dict)
    listed = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    return (
        f"Measured on {run['cores']} cores ({run['processor']}), {run['memory_gb']} GB of memory, "
        f"{run['driver_memory']} of it for Spark's driver; {listed}."
    )


def _boosts(results: Sequence[Result], captions: dict[str, str]) -> Iterator[str]:
    """Write the paper's Tables I to IV."""
    own = chosen(results, experiment="tables")
    if not own:
        return
    yield "## The paper's tables: throughput over the naive query's"
    yield (
        "Mean (maximum) over the window sets of a set-up. `R` and `S` are the paper's generators RandomGen and "
        "SequentialGen, the number is that of the windows, the function is `min`. The paper's figures are of ten sets."
    )
    places = dict.fromkeys((each.stream, each.events) for each in own)
    ordered = sorted(places, key=lambda place: -place[1] if place[0] in SYNTHETIC_STREAMS else 0)
    for stream, events in ordered:
        those = chosen(own, stream=stream, events=events)
        real = stream not in SYNTHETIC_STREAMS
        first = paper.REAL_32M if real else paper.SYNTHETIC_1M if events < 5_000_000 else paper.SYNTHETIC_10M
        number = "II" if real else "IV" if events < 5_000_000 else "I"
        yield f"### {stream}, {amount(events)} events"
        yield f"{STREAMS[stream][0].upper()}{STREAMS[stream][1:]}; beside Table {number}{'' if real else ' and III'}."
        yield tables.boost_table(those, first if real else first | paper.SCALABILITY)
        yield from _figure(f"throughput-{stream}-{amount(events)}".replace(".", "-"), captions)


def _short(results: Sequence[Result], notes: str) -> Iterator[str]:
    """Write which results are below the paper's, and why."""
    found = [
        short
        for stream in ("dense", "devices")
        for short in tables.shortfalls(
            [each for each in chosen(results, experiment="tables", stream=stream) if each.events >= 5_000_000],
            paper.SYNTHETIC_10M | paper.SCALABILITY,
        )
    ]
    measured = {
        (each.stream, each.setup)
        for each in chosen(results, experiment="tables")
        if each.stream in ("dense", "devices") and each.events >= 5_000_000
    }
    if measured:
        yield "### Where `best` is below the paper"
        yield (
            f"Of the {len(measured)} set-ups with 10 million dense events, with and without a key, `best` is at or "
            f"above the paper's mean with factor windows in {len(measured) - len(found)}."
        )
        if found:
            rows = [
                [
                    f"{each.stream}, {each.setup}",
                    f"{each.ours:.1f}",
                    f"{each.papers:.1f}",
                    f"{each.ours / each.papers:.2f}",
                ]
                for each in found
            ]
            yield tables.markdown(["set-up", "ours", "paper", "ours / paper"], rows)
    if notes:
        yield notes.strip()


def _cost_model(results: Sequence[Result], captions: dict[str, str]) -> Iterator[str]:
    own = chosen(results, experiment="tables")
    if not own:
        return
    yield "## Does the cost model predict what happens?"
    large = [each for each in own if each.events >= 5_000_000] or own
    hidden = tables.speedups(large, "coverage", "factor", "best")
    every = tables.speedups(large, "naive", "coverage", "factor", "slicing", "best")
    rows = [
        [chart, str(len(hidden[chart])), _r(hidden[chart]), str(len(every[chart])), _r(every[chart])]
        for chart in tables.CHARTS
    ]
    yield (
        f"Pearson's r of predicted gains, by `cost='spark'`, and observed ones, with {amount(large[0].events)} events. "
        "First as in the paper's appendix: how many times as fast plans with hidden windows (`factor`, `best`) are as "
        f"the one without (`coverage`); the paper has at least {paper.CORRELATION}, for its own engine and costs. Then "
        "of all plans over the naive query."
    )
    yield tables.markdown(["chart", "plans", "r, over coverage", "plans", "r, over naive"], rows)
    yield from _figure("correlation", captions)
    seconds = tables.plan_seconds(results)
    if (found := tables.pearson(seconds)) is not None:
        yield f"Predicted and measured seconds of all {len(seconds):,} plans have r = {found:.3f}."
    worst = tables.regrets(results)
    above = sum(regret > 1.1 for regret, _ in worst)
    yield (
        f"Whether it chooses well: `best` took at most {worst[0][0]:.2f} times as long as the fastest contender on "
        f"Spark ({worst[0][1].name}), and more than 1.1 times in {above} of {len(worst)} cases."
    )
    slicing = [each for each in own if {"slicing", "best"} <= each.seconds.keys()]
    if slicing:
        yield (
            f"Against flat slices, over {len(slicing)} cases: `best` is "
            f"{tables.typical_gain(slicing, 'best', 'slicing'):.2f} times as fast (geometric mean), "
            f"`factor` {tables.typical_gain(slicing, 'factor', 'slicing'):.2f} times."
        )


def _r(points: Sequence[tuple[float, float]]) -> str:
    found = tables.pearson(points)
    return "" if found is None else f"{found:.2f}"


def _planning(results: Sequence[Result], captions: dict[str, str]) -> Iterator[str]:
    if own := chosen(results, experiment="planning"):
        yield "## Planning time"
        yield "Mean and standard deviation over the window sets, planned with cold caches. The paper: below 100 ms."
        yield from _figure("planning", captions)
        yield tables.planning_table(own)
    if own := chosen(results, experiment="gaps"):
        yield "## How far the paper's plans are from the optimum"
        yield "Predicted gain over naive by the paper's costs, means of ten sets; tumbling as `sum`, hopping as `min`."
        yield tables.gap_table(own)


def _other_queries(results: Sequence[Result], captions: dict[str, str]) -> Iterator[str]:
    if own := chosen(results, experiment="functions"):
        yield "## Other functions"
        yield f"{STREAMS['devices'].capitalize()}, {amount(own[0].events)} events."
        yield tables.time_table(own, "function and windows", lambda each: f"{each.function}, {each.setup}")
    if own := chosen(results, experiment="growth"):
        yield "## How time grows with the number of windows"
        yield f"{STREAMS['devices'].capitalize()}, {amount(own[0].events)} events; the first windows of one random set."
        yield tables.time_table(own, "windows", lambda each: str(each.windows))
    if own := chosen(results, experiment="extremes"):
        yield "## Extremes"
        yield tables.time_table(
            own, "windows", lambda each: f"{each.setup}, {each.stream}, {amount(each.events)} events"
        )
    if own := chosen(results, experiment="calendars"):
        yield "## Calendar windows"
        yield (
            f"{amount(own[0].events)} events of 20 devices over two years. A day, month, quarter and year of Berlin "
            "beside quarter hours; days of Berlin, New York, Kolkata, Tokyo and Sydney. `one window` is the first of "
            "them alone."
        )
        yield tables.time_table(own, "windows", lambda each: each.setup)


def _other_engines(results: Sequence[Result], captions: dict[str, str]) -> Iterator[str]:
    if own := chosen(results, experiment="peers"):
        yield "## Other engines"
        yield (
            f"{STREAMS['devices'].capitalize()}, {amount(own[0].events)} events in Parquet. DuckDB and Polars run the "
            "query as their users write it, one group-by for each window and a union; `duckdb rewritten` runs our "
            'plan as SQL (`plan.sql(dialect="duckdb")`). All use the same cores.'
        )
        yield tables.time_table(own, "windows", lambda each: each.setup)
        rewritten = [
            each.boost("duckdb rewritten", "duckdb")
            for each in own
            if {"duckdb", "duckdb rewritten"} <= each.seconds.keys()
        ]
        if rewritten:
            yield (
                f"Our rewriting makes DuckDB {min(rewritten):.1f} to {max(rewritten):.1f} times as fast, "
                f"{mean(rewritten):.1f} in the mean."
            )
    if own := chosen(results, experiment="flink"):
        yield "## Flink"
        yield (
            f"{STREAMS['devices'].capitalize()}, {amount(own[0].events)} events in CSV, in batch mode: one window "
            "function for each window and a union, and our plan as Flink's SQL."
        )
        yield tables.flink_table(own)


def _loads(results: Sequence[Result], captions: dict[str, str]) -> Iterator[str]:
    if own := chosen(results, experiment="streaming"):
        yield "## Streams"
        yield (
            f"{own[0].name.split(', ', 2)[2].capitalize()} events each, state in RocksDB, append mode; the median of "
            "the micro-batches after the first three, and the largest state."
        )
        yield tables.state_table(own)
    if own := [each for each in chosen(results, experiment="soak") if each.seconds]:
        yield "## Load"
        yield (
            "Events made on the fly, `count` and `sum` by 100 devices, every result checked by the sums of each window "
            "(`make soak`). Memory is that of the driver's process, in which everything runs. Of the stream, the "
            "seconds are those of a micro-batch of five million events."
        )
        yield from _figure("load", captions)
        yield tables.soak_table(own)
    if own := chosen(results, experiment="store"):
        yield "## The store"
        yield (
            "Two years of 20 devices, and ten windows from an hour to 90 days by a day (`benchmarks.store`): `best` is "
            "`plan.run` over all events, a refresh appends one day and gives the rows that are new. On a stream, the "
            "time of a micro-batch of the plan's two operators, of ingestion into a store, and with the new rows given."
        )
        yield tables.store_table(own)
        if sizes := [each.state["bytes"] for each in own if "bytes" in each.state]:
            yield f"The store takes {sizes[0]['store']:,} bytes, and the raw events {sizes[0]['raw']:,}."
    if own := chosen(results, experiment="dashboards"):
        yield "## Many queries"
        yield (
            "Twelve dashboards over one stream (`benchmarks.dashboards`): windows of a minute to a day, by "
            "device, by site and over all, with three conditions. `naive` runs them one by one; `dearest alone` is the "
            "one of them that takes longest; `best` is one shared plan, all twelve results written. On a stream, "
            "the time of a micro-batch, and for `naive` of all twelve."
        )
        yield tables.time_table(own, "dashboards", lambda each: f"{each.setup}, {each.name.rpartition(', ')[2]}")
        yield tables.state_table([each for each in own if each.state])
    if own := chosen(results, experiment="choices"):
        yield "## Plans of every kind"
        yield tables.time_table(
            own, "windows", lambda each: f"{each.setup}, {each.stream}, {amount(each.events)} events"
        )


def _figure(name: str, captions: dict[str, str]) -> Iterator[str]:
    if name in captions:
        yield f"![{captions[name]}]({FIGURES}/{name}.svg)"


PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>factor-windows: benchmarks</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }}
table {{ border-collapse: collapse; display: block; overflow-x: auto; font-size: 0.9rem; }}
th, td {{ padding: 0.2rem 0.7rem; border-bottom: 1px solid color-mix(in srgb, currentColor 25%, transparent); }}
figure {{ margin: 1rem 0; background: #fff; color: #000; border-radius: 4px; padding: 0.5rem; }}
figure svg {{ width: 100%; height: auto; }}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def page(text: str, folder: Path) -> str:
    """Combine the document and its figures in one file."""
    from markdown_it import MarkdownIt

    body = str(MarkdownIt("commonmark", {"html": False}).enable("table").render(text))
    for figure in sorted((folder / FIGURES).glob("*.svg")):
        svg = figure.read_text(encoding="utf-8")
        drawing = svg[svg.index("<svg") :]
        start = f'<p><img src="{FIGURES}/{figure.name}" alt="'
        while start in body:
            before, _, rest = body.partition(start)
            caption, _, after = rest.partition('" /></p>')
            named = drawing.replace("<svg", f'<svg role="img" aria-label="{escape(caption, quote=True)}"', 1)
            body = f"{before}<figure>{named}<figcaption>{caption}</figcaption></figure>{after}"
    return PAGE.format(body=body)
