"""Why a node reads its parent: what else it could read, and how much more that would cost."""

from __future__ import annotations

from dataclasses import dataclass

from factor_windows.cost.model import Cost
from factor_windows.tree import Pass, PlanNode

MOST_NODES = 100
"""In larger plans, only the raw events are compared, so that explaining takes no longer than planning."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """A parent that was not chosen."""

    parent: str | None
    """The name of the node, or `None` for the raw events."""
    extra: Cost
    """The additional cost of reading it."""


def alternatives(plan: Pass, node: PlanNode) -> tuple[Alternative, ...]:
    """List the other parents that a node of a plan could read, closest in cost first."""
    found = []
    if node.parent is not None:
        found.append(Alternative(None, plan.cost_model.price(node.node, None) - node.cost))
    for other in plan.nodes if len(plan.nodes) <= MOST_NODES else ():
        is_finer = other.node.topological_key < node.node.topological_key
        if other.name != node.parent and is_finer and node.node.can_read(other.node, plan.query.kind):
            found.append(Alternative(other.name, plan.cost_model.price(node.node, other.node) - node.cost))
    return tuple(sorted(found, key=lambda alternative: (alternative.extra, alternative.parent or "")))


def saves(plan: Pass, node: PlanNode) -> Cost:
    """Return the additional cost of a plan without one of its hidden nodes."""
    readers = plan.children(node.name)
    instead = [min(other.extra for other in alternatives(plan, reader)) for reader in readers]
    return sum(instead) - node.cost
