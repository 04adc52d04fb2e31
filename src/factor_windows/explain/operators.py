"""The rewriting of a query: operators and the links between them (Paper: appendix, query rewriting)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from factor_windows.plan import Plan


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator; those of a window or its multicast have the name of the plan's node."""

    kind: Literal["input", "multicast", "window", "union"]
    node: str = ""

    def __str__(self) -> str:
        return self.node if self.kind == "window" else f"{self.kind} of {self.node}" if self.node else self.kind


@dataclass(frozen=True, slots=True)
class OperatorGraph:
    """Links from the operator that emits rows to the one that reads them.

    >>> import factor_windows as fw
    >>> query = fw.Query(time="ts", windows=[fw.tumbling("10m"), fw.tumbling("20m")], aggregates=["min(t)"])
    >>> print(OperatorGraph.of(fw.optimize(query)))
    input -> 10 minutes
    10 minutes -> multicast of 10 minutes
    multicast of 10 minutes -> 20 minutes
    multicast of 10 minutes -> union
    20 minutes -> union
    """

    links: tuple[tuple[Operator, Operator], ...]

    @classmethod
    def of(cls, plan: Plan) -> OperatorGraph:
        """Rewrite a plan's tree; a multicast is added only where rows go to several places."""
        links: list[tuple[Operator, Operator]] = []

        def send(source: Operator, targets: list[Operator]) -> None:
            if len(targets) > 1:
                multicast = Operator("multicast", source.node)
                links.append((source, multicast))
                source = multicast
            links.extend((source, target) for target in targets)

        send(Operator("input"), [Operator("window", node.name) for each in plan.passes for node in each.children(None)])
        for each in plan.passes:
            for node in each.nodes:
                readers = [Operator("window", child.name) for child in each.children(node.name)]
                send(Operator("window", node.name), readers + [Operator("union")] * node.exposed)
        return cls(tuple(links))

    @property
    def operators(self) -> tuple[Operator, ...]:
        """List the distinct operators, in the order in which rows reach them."""
        return tuple(dict.fromkeys(operator for link in self.links for operator in link))

    def __str__(self) -> str:
        return "\n".join(f"{source} -> {target}" for source, target in self.links)
