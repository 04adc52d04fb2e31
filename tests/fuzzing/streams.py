"""Streams: one query, or several, over files that arrive one by one, compared with what batch says is closed."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from factor_windows import Query, Window, calendar, fan_out, optimize
from factor_windows.algebra.calendar import AnyWindow
from fuzzing.data import draw_edges, quoted
from fuzzing.functions import known
from fuzzing.naive import by_hand
from fuzzing.queries import SEARCHES
from fuzzing.results import collected, differing, unlike, values_of
from fuzzing.settings import draw_settings
from fuzzing.trouble import first_line, is_arithmetic
from fuzzing.zones import ZONES

SCHEMA = "ts bigint, k string, site int, v double, n bigint, big decimal(38,0), kind string, txt string, `__FW_t` int"
AGGREGATES = (
    "count(*)", "sum(n)", "min(v)", "max(v)", "avg(v)", "stddev_pop(v)", "sum(v)", "sum(`__FW_t`)", "max(big)",
    "avg(big)", "max(n) - min(n) AS spread", "bit_xor(n)", "try_sum(big)", "skewness(n)", "count(v, n)",
)  # fmt: skip
STEPS = 400
"""Events lie on so many places, half a second from each other."""
KEYS = ([], ["k"], ["site"], ["k", "site"], ["`__FW_t` AS odd", "k"], ["struct(k, site) AS pair"])


def check_stream(spark: SparkSession, seed: int) -> list[str]:
    """Run one query, or several, over a stream of files, and return what differs from batch."""
    rng = random.Random(seed)
    settings = draw_settings(rng)
    session = settings.session(spark)
    session.conf.set("spark.sql.shuffle.partitions", rng.choice(["1", "1", "1", "2"]))
    several = rng.random() < 0.4
    zone, start = _place(rng)
    queries = [_query(rng, zone) for _ in range(rng.choice([2, 4]) if several else 1)]
    mode = "append" if several else rng.choice(["append", "append", "append", "update", "complete"])
    search = rng.choice(SEARCHES)
    # The plan of a stream that is taken to be fast is a chain of operators.
    pace = rng.choice([{}, {"rate": 1_000_000, "unit": "1 second"}])
    plan = optimize(queries if several else queries[0], search=search, time_limit=0.2, **pace)
    with TemporaryDirectory() as folder:
        times = _write(Path(folder) / "in", rng, start)
        stream = _events(session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(f"{folder}/in"))
        events = _events(session.read.schema(SCHEMA).json(f"{folder}/in"))
        name = f"fuzz_{seed}"
        result = plan.run(stream.withWatermark("ts", "20 seconds"), mode=mode)
        writer = result.writeStream.format("memory").queryName(name).outputMode(mode)
        running = writer.option("checkpointLocation", f"{folder}/state").trigger(availableNow=True).start()
        try:
            running.awaitTermination()
        except StreamingQueryException as trouble:
            # A number that does not fit is an error of Spark's own query too, or a finding.
            is_known = any(_overflows(query, events, times) for query in queries)
            return [] if is_known else [f"seed {seed}: {first_line(trouble)}"]
        found = fan_out(session.table(name)) if several else {"": session.table(name)}
        named = {query.name: query for query in plan.queries} if several else {"": queries[0]}
        closed = (running.lastProgress or {}).get("eventTime", {}).get("watermark")
        problems = []
        for query_name, query in named.items():
            texts = _problems(query, found[query_name], by_hand(query, events, times), mode, closed)
            if not several:
                texts += unlike(result.schema, by_hand(query, stream.withWatermark("ts", "20 seconds")).schema)
            problems += [f"seed {seed}, {settings}, {mode}, {query}: {text}" for text in texts]
        session.catalog.dropTempView(name)
    return problems


def _place(rng: random.Random) -> tuple[str, int]:
    """Draw a zone for calendars, or none, and when events begin: shortly before clocks are set or a day starts."""
    if rng.random() < 0.65:
        return "", rng.choice([0, 0, 1_730_610_000_000_000])
    zone = rng.choice(ZONES)
    # Before 1970 all is late to a stream that begins.
    return zone, max(0, rng.choice(draw_edges(rng, (zone,))) - 100) * 1_000_000


def _overflows(query: Query, events: DataFrame, times: list[int]) -> bool:
    try:
        by_hand(query, events, times).collect()
    except Exception as trouble:
        return is_arithmetic(first_line(trouble))
    return False


def _problems(query: Query, ours: DataFrame, expected: DataFrame, mode: str, closed: str | None) -> list[str]:
    if mode == "append":
        instant = F.expr(f"TIMESTAMP'{closed or '1970-01-01T00:00:00Z'}'")
        expected = expected.where(F.col("window_end") <= instant)
    elif mode == "update":
        # Rows come out as they change, so only which instances there are is compared.
        by = [quoted(column) for column in expected.columns[: len(query.keys) + 3]]
        both = collected({"ours": ours.select(*by).distinct(), "naive": expected.select(*by)})
        here, there = Counter(both["ours"]), Counter(both["naive"])
        return [f"rows {here - there} and not {there - here}"] if here != there else []
    both = collected({"ours": ours, "naive": expected})
    text = differing(both["ours"], both["naive"], values_of(query.aggregates, expected.schema), 9.0)
    return [text] if text else []


def _query(rng: random.Random, zone: str) -> Query:
    guarded = rng.random() < 0.1
    keys = rng.choice(KEYS)
    return Query(
        time="ts",
        keys=["CAST(txt AS INT) AS num"] if guarded else keys,
        windows=_windows(rng, zone),
        aggregates=rng.sample(known(*AGGREGATES), 2),
        where="kind = 'r'" if guarded else rng.choice(["", "", "n > 0"]),
    )


def _windows(rng: random.Random, zone: str) -> list[AnyWindow]:
    made = dict.fromkeys(rng.sample(_calendars(zone), rng.randrange(3)) if zone else [])
    for _ in range(rng.choice([1, 2, 4])):
        slide = rng.choice([2, 5, 10, 15, 20, 30]) * 1_000_000
        length = slide * rng.choice([1, 1, 2, 3]) + rng.choice([0, 0, 1_000_000])
        made[Window(length, slide, rng.choice([0, 0, 500_000]))] = None
    return list(made)


def _calendars(zone: str) -> list[AnyWindow]:
    return [
        *(calendar("1 day", zone=zone), calendar("3 days", slide="1 day", zone=zone)),
        *(calendar("1 week", step="1 day", zone=zone), calendar("1 month", zone=zone)),
    ]


def _write(folder: Path, rng: random.Random, start: int) -> list[int]:
    """Write events into at most three files, which are read in the order of their times; return what times may be."""
    folder.mkdir()
    size = rng.choice([3, 40, 120])
    rows = sorted((_row(rng, start) for _ in range(size)), key=lambda row: row["ts"] + rng.randrange(12_000_000))
    cuts = sorted(rng.randrange(size + 1) for _ in range(2))
    for number, part in enumerate((rows[: cuts[0]], rows[cuts[0] : cuts[1]], rows[cuts[1] :])):
        if part:
            path = folder / f"{number}.json"
            path.write_text("\n".join(map(json.dumps, part)), encoding="utf-8")
            # The times must not be the same.
            os.utime(path, (number + 1, number + 1))
    return [start + place * 500_000 for place in range(STEPS)]


def _row(rng: random.Random, start: int) -> dict[str, object]:
    kind = rng.choice(["r", "other"])
    return {
        "ts": start + rng.choice([rng.randrange(STEPS), rng.randrange(200, 260)]) * 500_000,
        "k": rng.choice(["a", "b", None]),
        "site": rng.randrange(3),
        "v": rng.choice([None, rng.uniform(-9, 9)]),
        "n": rng.randrange(-9, 9),
        "big": rng.choice([1, 3 * 10**35, None]),
        "kind": kind,
        "txt": str(rng.randrange(3)) if kind == "r" else "n/a",
        "__FW_t": rng.randrange(4),
    }


def _events(frame: DataFrame) -> DataFrame:
    return frame.withColumn("ts", F.timestamp_micros("ts"))
