"""A plan as a document of plain values, for JSON."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from factor_windows.algebra.growing import Growing
from factor_windows.algebra.session import Session
from factor_windows.algebra.slices import Segmentation, Slices
from factor_windows.cost.model import Cost
from factor_windows.explain.alternatives import alternatives
from factor_windows.explain.text import costs_alone
from factor_windows.plan import Plan
from factor_windows.tree import Pass


def document(plan: Plan) -> dict[str, Any]:
    """Describe a plan; for several queries, describe each pass over the events, and which query reads and pays what."""
    if plan.is_single:
        return _document_of_pass(plan.passes[0])
    alone, paid = costs_alone(plan), plan.shares()
    return {
        "naive_cost": plain(plan.naive_cost),
        "cost": plain(plan.cost),
        "search": plan.search,
        "status": plan.status,
        "queries": [
            {"name": name, "cost_alone": plain(alone[name]), "cost_shared": plain(paid[name])} for name in paid
        ],
        "passes": [_document_of_pass(each) | {"readers": each.readers} for each in plan.passes],
    }


def _document_of_pass(plan: Pass) -> dict[str, Any]:
    """Describe a tree; lengths of time are in the cost model's units."""
    unit = plan.cost_model.unit

    def in_units(length: int) -> int | float:
        return plain(Fraction(length, unit))

    return {
        "naive_cost": plain(plan.naive_cost),
        "cost": plain(plan.cost),
        "search": plan.search,
        "status": plan.status,
        "bound": plain(plan.bound),
        "unit_microseconds": unit,
        "rate": plain(plan.cost_model.rate),
        "nodes": [
            {
                "name": node.name,
                "kind": node.kind,
                "keys": sorted(node.node.keys),
                **_lengths(node.window, in_units),
                "parent": node.parent,
                "reads": plain(plan.reads(node)),
                "cost": plain(node.cost),
                "exposed": node.exposed,
                "shown_as": list(node.shown_as),
                "alternatives": [
                    {"parent": other.parent, "extra": plain(other.extra)} for other in alternatives(plan, node)
                ],
            }
            for node in plan.nodes
        ],
    }


def _lengths(segmentation: Segmentation, in_units: Callable[[int], int | float]) -> dict[str, Any]:
    """Describe a window by its three lengths, and slices, which have no such lengths, by their edges."""
    if isinstance(segmentation, Slices):
        edges = [{"step": in_units(step), "offset": in_units(offset)} for step, offset in segmentation.edges]
        calendars = [
            {"zone": clock.zone, "unit": clock.unit, "step": step, "offset": offset}
            for clock, (step, offset) in segmentation.calendars
        ]
        lengths = {"range": None, "slide": None, "offset": None, "edges": edges}
        return lengths | ({"calendars": calendars} if calendars else {})
    if isinstance(segmentation, Growing):
        return {**_lengths(segmentation.period, in_units), "step": _lengths(segmentation.step, in_units)}
    if isinstance(segmentation, Session):
        return {"range": None, "slide": None, "offset": None, "gap": in_units(segmentation.gap)}
    if segmentation.clock is not None:
        counted = {part: getattr(segmentation, part) for part in ("range", "slide", "offset")}
        return {**counted, "zone": segmentation.clock.zone, "unit": segmentation.clock.unit}
    return {part: in_units(getattr(segmentation, part)) for part in ("range", "slide", "offset")}


def plain(value: Cost) -> int | float:
    """Convert an exact number to one that JSON has: an integer if it is whole."""
    return int(value) if value == value // 1 else float(value)
