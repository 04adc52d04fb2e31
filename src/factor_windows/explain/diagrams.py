"""A plan as a diagram in the languages of Mermaid and Graphviz."""

from __future__ import annotations

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
    ids = _ids(plan)
    lines = ["flowchart LR", '  raw["raw events"]']
    for node in plan.nodes:
        text = f'"{_entities(node.label)}<br/>cost {number(node.cost)}"'
        lines.append(f"  {ids[node.name]}" + (f"[{text}]" if node.exposed else f"({text}):::hidden"))
    for node in plan.nodes:
        lines.append(f'  {ids[node.parent]} -- "{number(plan.reads(node))} ×" --> {ids[node.name]}')
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
    ids = _ids(plan)
    lines = ["digraph plan {", "  rankdir=LR", "  node [shape=box]", '  raw [label="raw events"]']
    for node in plan.nodes:
        dashed = "" if node.exposed else ", style=dashed"
        lines.append(f'  {ids[node.name]} [label="{_escaped(node.label)}\\ncost {number(node.cost)}"{dashed}]')
    for node in plan.nodes:
        lines.append(f'  {ids[node.parent]} -> {ids[node.name]} [label="{number(plan.reads(node))} ×"]')
    return "\n".join([*lines, "}"])


def _ids(plan: Plan) -> dict[str | None, str]:
    return {None: "raw"} | {node.name: f"n{place}" for place, node in enumerate(plan.nodes)}


def _entities(text: str) -> str:
    """Write characters that Mermaid would take for its own by their numbers."""
    return "".join(char if char.isalnum() or char in " ,.:/()-_@" else f"#{ord(char)};" for char in text)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
