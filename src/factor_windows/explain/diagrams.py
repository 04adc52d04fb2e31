"""A plan as a diagram in the languages of Mermaid and Graphviz."""

from __future__ import annotations

from collections.abc import Iterator

from factor_windows.explain.text import number
from factor_windows.plan import Plan


def mermaid(plan: Plan) -> str:
    """Draw a plan as a Mermaid flowchart; hidden nodes have round corners and dashed lines.

    >>> import factor_windows as fw
    >>> query = fw.Query(time="ts", windows=[fw.tumbling("10m"), fw.tumbling("20m")], aggregates=["min(t)"])
    >>> print(mermaid(fw.optimize(query, cost="paper", unit="1m")))
    flowchart LR
      raw["raw events"]
      n0["10 minutes<br/>cost 20"]
      n1["20 minutes<br/>cost 2"]
      raw -- "10 ×" --> n0
      n0 -- "2 ×" --> n1
    """
    lines = ["flowchart LR", '  raw["raw events"]']
    for place, node in enumerate(plan.nodes):
        text = f'"{_entities(node.label)}<br/>cost {number(node.cost)}"'
        lines.append(f"  n{place}" + (f"[{text}]" if node.exposed else f"({text}):::hidden"))
    lines += [f'  {parent} -- "{reads} ×" --> {name}' for parent, name, reads in _links(plan)]
    if any(not node.exposed for node in plan.nodes):
        lines.append("  classDef hidden stroke-dasharray: 5 4")
    return "\n".join(lines)


def dot(plan: Plan) -> str:
    r"""Draw a plan as a graph for Graphviz; hidden nodes have dashed lines.

    >>> import factor_windows as fw
    >>> query = fw.Query(time="ts", windows=[fw.tumbling("10m")], aggregates=["min(t)"])
    >>> print(dot(fw.optimize(query, cost="paper", unit="1m")))
    digraph plan {
      rankdir=LR
      node [shape=box]
      raw [label="raw events"]
      n0 [label="10 minutes\ncost 10"]
      raw -> n0 [label="10 ×"]
    }
    """
    lines = ["digraph plan {", "  rankdir=LR", "  node [shape=box]", '  raw [label="raw events"]']
    for place, node in enumerate(plan.nodes):
        dashed = "" if node.exposed else ", style=dashed"
        lines.append(f'  n{place} [label="{_escaped(node.label)}\\ncost {number(node.cost)}"{dashed}]')
    lines += [f'  {parent} -> {name} [label="{reads} ×"]' for parent, name, reads in _links(plan)]
    return "\n".join([*lines, "}"])


def _links(plan: Plan) -> Iterator[tuple[str, str, str]]:
    """List what each node reads, and how much; by number, because nodes of two passes may have the same name."""
    first = 0
    for each in plan.passes:
        ids = {None: "raw"} | {node.name: f"n{place}" for place, node in enumerate(each.nodes, start=first)}
        yield from ((ids[node.parent], ids[node.name], number(each.reads(node))) for node in each.nodes)
        first += len(each.nodes)


def _entities(text: str) -> str:
    """Replace characters that have a meaning in Mermaid by their numbers."""
    return "".join(char if char.isalnum() or char in " ,.:/()-_@" else f"#{ord(char)};" for char in text)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
