"""A plan as a document of plain values, for JSON."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from factor_windows.cost import Cost
from factor_windows.plan import Plan


def document(plan: Plan) -> dict[str, Any]:
    """Describe a plan; lengths of time are in the cost model's units."""
    unit = plan.cost_model.unit

    def in_units(length: int) -> int | float:
        return plain(Fraction(length, unit))

    return {
        "naive_cost": plain(plan.naive_cost),
        "cost": plain(plan.cost),
        "search": plan.search,
        "status": plan.status,
        "unit_microseconds": unit,
        "rate": plain(plan.cost_model.rate),
        "nodes": [
            {
                "name": node.name,
                "kind": node.kind,
                "range": in_units(node.window.range),
                "slide": in_units(node.window.slide),
                "offset": in_units(node.window.offset),
                "parent": node.parent,
                "reads": plain(plan.reads(node)),
                "cost": plain(node.cost),
                "exposed": node.exposed,
                "shown_as": list(node.shown_as),
            }
            for node in plan.nodes
        ],
    }


def plain(value: Cost) -> int | float:
    """Turn an exact number into one that JSON has: whole if it is whole."""
    return int(value) if value == value // 1 else float(value)
