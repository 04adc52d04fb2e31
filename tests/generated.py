"""Events, windows and functions drawn at random, with all that is awkward about real ones."""

import pytest

from factor_windows import Window

QUICK = 4
"""How many seeds of a test `make check` runs; `make long` runs the others."""

EXACT = [
    "min(v)", "max(n)", "count(*)", "count(v)", "sum(n)", "sum(d)", "avg(d)", "count_if(ok)", "bool_and(ok)",
    "bool_or(ok)", "bit_and(n)", "bit_or(i)", "min(s)", "max(d) FILTER (WHERE ok)", "count(*) FILTER (WHERE n > 3)",
    "sum(i * site)", "collect_set(i)", "sum(i)", "min(ts)",
]  # fmt: skip
FLOATING = [
    "sum(v)", "avg(v)", "avg(n)", "avg(i) FILTER (WHERE ok)", "var_pop(v)", "var_samp(n)", "stddev_pop(i)", "stddev(v)",
    "stddev_samp(v) FILTER (WHERE n > 2)", "covar_pop(v, n)", "covar_samp(n, i)", "variance(d)", "corr(v, n)",
]  # fmt: skip
HOLISTIC = ["median(n)", "percentile(v, 0.25) AS p25", "count(DISTINCT i)", "count(DISTINCT s, ok)"]


def seeds(numbers):
    """Give a test seeds, of which all but the first few take long together."""
    return [
        pytest.param(seed, marks=[pytest.mark.long] if place >= QUICK else []) for place, seed in enumerate(numbers)
    ]


def events_of(rng, spark):
    """Events with nulls, NaN, ties, gaps, equal and negative times; sometimes one or none."""
    size = rng.choice([0, 1, 2, 30, 120])
    start = rng.choice([0, -200, 1_700_000_000, 4_200_000_000]) * 1_000_000
    rows = []
    for _ in range(size):
        time = start + rng.choice([rng.randrange(0, 400), rng.randrange(0, 20), 5000]) * 500_000
        maybe = lambda value: None if rng.random() < 0.15 else value  # noqa: E731
        rows.append(
            (
                maybe(time),
                maybe(rng.choice("ab")),
                maybe(rng.randrange(3)),
                maybe(rng.choice([rng.uniform(-5, 5), 0.0, float("nan") if rng.random() < 0.1 else 1.5])),
                maybe(rng.randrange(-9, 9)),
                maybe(f"{rng.uniform(-1000, 1000):.3f}"),
                maybe(rng.randrange(-5, 5)),
                maybe(rng.random() < 0.5),
                maybe(rng.choice(["", "x", "ü"])),
            )
        )
    raw = "t bigint, k string, site int, v double, n bigint, d string, i int, ok boolean, s string"
    return spark.createDataFrame(rows, raw).selectExpr(
        "timestamp_micros(t) AS ts", "k", "site", "v", "n", "CAST(d AS decimal(12,3)) AS d", "i", "ok", "s"
    )


def windows_of(rng):
    """Tumbling, hopping and mixed sets, with offsets, and ranges that are no multiple of the slide."""
    count = rng.choice([1, 2, 3, 5])
    made = {}
    for _ in range(count):
        slide = rng.choice([1, 2, 3, 4, 5, 6, 10, 12]) * 1_000_000
        times = rng.choice([1, 1, 2, 3, 12])
        extra = rng.choice([0, 0, 0, 1_000_000, 500_000])
        made[Window(range=slide * times + extra, slide=slide, offset=rng.choice([0, 0, 0, 500_000, 1_000_000]))] = None
    return list(made)
