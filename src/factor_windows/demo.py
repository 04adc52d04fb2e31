"""The demo: the paper's examples, planned, and checked on generated readings."""

from __future__ import annotations

from random import Random

from factor_windows.plan import Plan
from factor_windows.query import Query
from factor_windows.reference import evaluate, evaluate_plan
from factor_windows.search import optimize
from factor_windows.window import Window, duration, tumbling

DEVICES = 4
HOURS = 12


def run() -> None:
    """Explain two plans, and show that each gives what its query means."""
    events = _readings()
    for title, minutes in (("The paper's query", (20, 30, 40)), ("Ten windows", tuple(range(20, 120, 10)))):
        windows: list[Window] = [tumbling(f"{length} minutes") for length in minutes]
        query = Query(time="ts", keys=["device"], windows=windows, aggregates=["min(temperature)", "avg(temperature)"])
        plan = optimize(query, cost="paper", unit="1 minute")
        print(f"{title}: every {', '.join(str(length) for length in minutes)} minutes\n")
        print(plan.explain())
        print(f"\n{_check(plan, events)}\n")


def _readings() -> list[dict[str, object]]:
    random = Random(2022)
    minutes = HOURS * 60
    return [
        {"ts": minute * duration("1 minute"), "device": f"device {device}", "temperature": random.randrange(150, 300)}
        for minute in range(minutes)
        for device in range(DEVICES)
    ]


def _check(plan: Plan, events: list[dict[str, object]]) -> str:
    expected = sorted(map(repr, evaluate(plan.query, events)))
    found = sorted(map(repr, evaluate_plan(plan, events)))
    if found != expected:
        raise AssertionError("the plan's result differs from the query's definition")
    return f"checked: {len(found):,} rows from {len(events):,} readings are what the query's definition gives"
