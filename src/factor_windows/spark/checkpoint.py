"""A plan remembered beside a stream's checkpoint: another plan is refused, instead of misreading its state."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from factor_windows.errors import PlanError
from factor_windows.spark.chain import Chain

FOLDER = "factor-windows"


def remember(spark: SparkSession, place: str, chain: Chain, *, mode: str) -> None:
    """Write down what a checkpoint's state means, or compare it with what was written down."""
    now = json.loads(json.dumps(_meaning(chain, mode)))
    path = f"{place.rstrip('/')}/{FOLDER}"
    try:
        rows = spark.read.text(path).collect()
    except AnalysisException:
        rows = []
    if not rows:
        spark.createDataFrame([(json.dumps(now),)], "value string").coalesce(1).write.mode("overwrite").text(path)
        return
    before = json.loads(rows[0][0])
    changed = [part for part in now if before.get(part) != now[part]]
    if changed:
        raise PlanError(
            f"the checkpoint {place!r} belongs to another plan: {', '.join(changed)} changed"
            f"{_of_windows(before, now)}; start with a new checkpoint, or go back to the old query"
        )


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
