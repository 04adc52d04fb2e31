"""A plan remembered beside a stream's checkpoint: another plan is refused, instead of misreading its state."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from factor_windows.errors import PlanError
from factor_windows.plan import Plan
from factor_windows.serialize import from_json, to_json
from factor_windows.spark.chain import Chain

FOLDER = "factor-windows"


def begun_with(spark: SparkSession, place: str, plan: Plan) -> Plan:
    """Return the plan that a checkpoint was begun with, if it is one for the same query.

    A search that is cut by its time limit may find another plan when a stream is started again. What is kept goes on.
    """
    kept = _kept(spark, place).get("plan")
    before = from_json(kept) if kept else plan
    same = (before.query, before.asked) == (plan.query, plan.asked)
    return before if same else plan


def remember(spark: SparkSession, place: str, chain: Chain, *, mode: str) -> None:
    """Write down what a checkpoint's state means, or compare it with what was written down."""
    now = json.loads(json.dumps(_meaning(chain, mode)))
    before = _kept(spark, place)
    if not before:
        text = json.dumps(now | {"plan": to_json(chain.plan)})
        rows = spark.createDataFrame([(text,)], "value string").coalesce(1)
        rows.write.mode("overwrite").text(f"{place.rstrip('/')}/{FOLDER}")
        return
    changed = [part for part in now if before.get(part) != now[part]]
    if changed:
        raise PlanError(
            f"the checkpoint {place!r} belongs to another plan: {', '.join(changed)} changed"
            f"{_of_windows(before, now)}; start with a new checkpoint, or go back to the old query"
        )


def _kept(spark: SparkSession, place: str) -> dict[str, Any]:
    """Read what was written down beside a checkpoint; nothing if it is new."""
    try:
        rows = spark.read.text(f"{place.rstrip('/')}/{FOLDER}").collect()
    except AnalysisException:
        return {}
    found: dict[str, Any] = json.loads(rows[0][0]) if rows else {}
    return found


def _meaning(chain: Chain, mode: str) -> dict[str, Any]:
    query = chain.query
    return {
        "windows": {node.name: node.window.label for node in chain.plan.nodes},
        "levels": [[asdict(feed) for feed in level.feeds] for level in chain.physical.levels],
        "keys": [key.sql for key in query.parsed_keys],
        "time": query.parsed_time.sql,
        "condition": query.where,
        "states": [[state.lift, state.combine] for state in chain.types.states]
        or [result.direct for result in chain.types.results],
        "mode": mode,
    }


def _of_windows(before: dict[str, Any], now: dict[str, Any]) -> str:
    old, new = before.get("windows", {}), now["windows"]
    words = [f"{label} is new" for name, label in new.items() if old.get(name) != label]
    words += [f"{label} is gone" for name, label in old.items() if new.get(name) != label]
    return f" ({', '.join(words)})" if words else ""
