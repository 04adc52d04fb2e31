"""Plans over real smart-plug readings give what naive Spark gives: of some devices, or of all with all sets of windows.

The data is from the tracebase data set (github.com/areinhardt/tracebase), licence ODbL 1.0.
"""

import os

import pytest
from pyspark.sql import functions as F

from factor_windows import Query, analyze, hopping, optimize, session, tumbling
from factor_windows.spark.naive import naive

pytestmark = pytest.mark.long

SETS = {
    "tumbling": [tumbling(f"{n} minutes") for n in (1, 20, 30, 40)],
    "hopping": [hopping("10 minutes", "1 minute"), hopping("1 hour", "10 minutes")],
    "mixed, with an offset": [tumbling("1 day", offset="6 hours"), hopping("2 hours", "15 minutes"), tumbling("90s")],
    "nothing in common": [tumbling("15s"), tumbling("17s"), tumbling("19s")],
}
CASES = min(len(SETS), int(os.environ.get("FACTOR_WINDOWS_CASES", "2")))


@pytest.fixture(scope="module")
def readings(real_data, request):
    file = real_data / "tracebase-2012-01-20.parquet"
    if not file.exists():
        pytest.skip(f"no real data at {file}; FACTOR_WINDOWS_DATA says where it is")
    frame = request.getfixturevalue("spark").read.parquet(str(file))
    assert frame.count() == 3_034_526
    frame = (frame if len(SETS) == CASES else frame.where("pmod(hash(device), 4) = 0")).cache()
    yield frame
    frame.unpersist()


@pytest.mark.parametrize("name", list(SETS)[-CASES:])
def test_real_readings_give_what_naive_spark_gives(compiled, readings, name):
    exact = ["min(power_1s)", "max(power_8s)", "sum(power_1s)", "count(*) FILTER (WHERE power_1s > 0) AS on"]
    floating = ["avg(power_1s)", "stddev(power_8s)"]
    query = Query(time="ts", keys=["device"], windows=SETS[name], aggregates=exact + floating)
    statistics = analyze(readings, time="ts", keys=["device"]) if name == "hopping" else None
    found = optimize(query, statistics=statistics).run(readings)
    assert differences(query, found, naive(query, readings)) == (0, 0, 0)


def test_sessions_of_real_readings_are_sparks_own(compiled, readings):
    gaps = [session(gap) for gap in ("1 second", "2 seconds", "10 seconds", "5 minutes", "1 hour")]
    some = readings.where("pmod(hash(device), 8) = 0")
    windows = [*gaps, tumbling("1 minute"), hopping("10 minutes", "1 minute")]
    query = Query(
        time="ts", keys=["device"], windows=windows, aggregates=["sum(power_1s)", "avg(power_8s)", "count(*) AS n"]
    )
    plan = optimize(query, statistics=analyze(some, time="ts", keys=["device"]))
    assert differences(query, plan.run(some), naive(query, some)) == (0, 0, 0)
    assert some.count() > 100_000


def differences(query, found, expected):
    """Count the rows that only one side has, and those that differ."""
    keys = [*(key.name for key in query.parsed_keys), "window_id", "window_start", "window_end"]
    values = [aggregate.name for aggregate in query.parsed_aggregates]
    left, right = (
        frame.select(
            *keys, F.struct(*(F.col(f"`{value}`").alias(f"v{n}") for n, value in enumerate(values))).alias(side)
        )
        for frame, side in ((found, "left"), (expected, "right"))
    )
    joined = left.join(right, keys, "full_outer")

    def differs(number):
        a, b = F.col(f"left.v{number}"), F.col(f"right.v{number}")
        near = F.abs(a - b) <= F.lit(1e-9) * F.greatest(F.abs(b), F.lit(1.0))
        return ~(a.eqNullSafe(b) | F.coalesce(near, F.lit(False)))

    unequal = F.lit(False)
    for number in range(len(values)):
        unequal |= differs(number)
    counted = joined.agg(
        F.count_if(F.col("left").isNull()),
        F.count_if(F.col("right").isNull()),
        F.count_if(F.col("left").isNotNull() & F.col("right").isNotNull() & unequal),
    )
    return tuple(counted.first())
