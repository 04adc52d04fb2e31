"""Why a node reads what it reads: what else it could read, and what that would cost more."""

from __future__ import annotations

from dataclasses import dataclass

from factor_windows.cost.model import Cost
from factor_windows.tree import Pass, PlanNode

MOST_NODES = 100
"""In larger plans only the raw events are compared, so that explaining takes no longer than planning."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """A parent that lost."""

    parent: str | None
    """The name of the node, or `None` for the raw events."""
    extra: Cost
    """What reading it would cost more."""


def alternatives(plan: Pass, node: PlanNode) -> tuple[Alternative, ...]:
    """List what else of a plan a node could read, the closest first."""
    found = []
    if node.parent is not None:
        found.append(Alternative(None, plan.cost_model.price(node.node, None) - node.cost))
    for other in plan.nodes if len(plan.nodes) <= MOST_NODES else ():
        is_finer = other.node.topological_key < node.node.topological_key
        if other.name != node.parent and is_finer and node.node.can_read(other.node, plan.query.kind):
            found.append(Alternative(other.name, plan.cost_model.price(node.node, other.node) - node.cost))
    return tuple(sorted(found, key=lambda alternative: (alternative.extra, alternative.parent or "")))


def saves(plan: Pass, node: PlanNode) -> Cost:
    """Return what a plan would cost more without a node that nobody asked for."""
    readers = plan.children(node.name)
    instead = [min(other.extra for other in alternatives(plan, reader)) for reader in readers]
    return sum(instead) - node.cost
