"""A plan as a picture: the tree from left to right in SVG, hidden windows dashed, a bar for each cost."""

from __future__ import annotations

from xml.sax.saxutils import escape

from factor_windows.cost.model import share
from factor_windows.explain.text import number, rate, summary
from factor_windows.tree import Pass, PlanNode

BOX_WIDTH, BOX_HEIGHT = 200, 46
COLUMN, ROW = 280, 62
MARGIN = 16

STYLE = """
.fw-plan text { font: 13px system-ui, sans-serif; fill: #1f2933 }
.fw-plan .small { font-size: 11px; fill: #5b6875 }
.fw-plan .box { fill: #fff; stroke: #7b8794 }
.fw-plan .hidden { stroke-dasharray: 5 4 }
.fw-plan .bar { fill: #2f6fd0 }
.fw-plan path { fill: none; stroke: #9aa5b1 }
@media (prefers-color-scheme: dark) {
  .fw-plan text { fill: #e6e9ed } .fw-plan .small { fill: #a3adb8 }
  .fw-plan .box { fill: #1c2430; stroke: #7b8794 } .fw-plan .bar { fill: #6ea8ff } .fw-plan path { stroke: #5b6875 }
}
"""


def picture(plan: Pass) -> str:
    """Draw a plan as an SVG document."""
    places = _places(plan)
    width = MARGIN * 2 + max(column for column, _ in places.values()) * COLUMN + BOX_WIDTH
    height = MARGIN * 2 + max(row for _, row in places.values()) * ROW + BOX_HEIGHT
    naive_cost = plan.naive_cost
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="fw-plan" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img">',
        f"<title>{escape(summary(plan)[1])}</title>",
        f"<style>{STYLE}</style>",
        *_box(places[None], "raw events", rate(plan), 0.0, hidden=False),
    ]
    for node in plan.nodes:
        part = share(node.cost, naive_cost)
        parts += _link(places[node.parent], places[node.name], f"{number(plan.reads(node))} ×")
        parts += _box(
            places[node.name], node.label, f"cost {number(node.cost)}, {part:.1%} of naive", part, not node.exposed
        )
    return "\n".join([*parts, "</svg>", ""])


def figure(plan: Pass) -> str:
    """Return the picture with what it shows as text above it, to be put into another page."""
    first, *others = summary(plan)
    lines = "".join(f"<br>{escape(line)}" for line in others)
    return f'<p><b>{escape(first)}</b>{lines}</p><div style="overflow-x:auto">{picture(plan)}</div>'


def _places(plan: Pass) -> dict[str | None, tuple[int, float]]:
    """Give each node a column, its depth, and a row: leaves one below the other, parents amid their children."""
    children: dict[str | None, list[PlanNode]] = {}
    depth: dict[str | None, int] = {None: 0}
    for node in plan.nodes:
        children.setdefault(node.parent, []).append(node)
        depth[node.name] = depth[node.parent] + 1
    row: dict[str | None, float] = {}
    for leaf, node in enumerate(node for node in plan.nodes if node.name not in children):
        row[node.name] = leaf
    inner = [node.name for node in plan.nodes if node.name in children]
    for name in (*reversed(inner), None):
        row[name] = sum(row[child.name] for child in (children[name][0], children[name][-1])) / 2
    return {name: (depth[name], row[name]) for name in depth}


def _box(place: tuple[int, float], name: str, note: str, part: float, hidden: bool) -> list[str]:
    x, y = MARGIN + place[0] * COLUMN, MARGIN + place[1] * ROW
    shown = name if len(name) <= 28 else name[:27] + "…"
    kind = "box hidden" if hidden else "box"
    box = [
        f'<rect class="{kind}" x="{x}" y="{y:.1f}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6"/>',
        f'<text x="{x + 10}" y="{y + 19:.1f}">{escape(shown)}</text>',
        f'<text class="small" x="{x + 10}" y="{y + 34:.1f}">{escape(note)}</text>',
    ]
    if part:
        bar = max(1.0, min(1.0, part) * (BOX_WIDTH - 2))
        box.append(
            f'<rect class="bar" x="{x + 1}" y="{y + BOX_HEIGHT - 4:.1f}" width="{bar:.1f}" height="3" rx="1.5"/>'
        )
    return box


def _link(start: tuple[int, float], end: tuple[int, float], note: str) -> list[str]:
    x1, y1 = MARGIN + start[0] * COLUMN + BOX_WIDTH, MARGIN + start[1] * ROW + BOX_HEIGHT / 2
    x2, y2 = MARGIN + end[0] * COLUMN, MARGIN + end[1] * ROW + BOX_HEIGHT / 2
    middle = (x1 + x2) / 2
    above_or_below = y2 - 5 if y2 <= y1 else y2 + 14
    return [
        f'<path d="M{x1},{y1:.1f} C{middle},{y1:.1f} {middle},{y2:.1f} {x2},{y2:.1f}"/>',
        f'<text class="small" x="{x2 - 6}" y="{above_or_below:.1f}" text-anchor="end">{escape(note)}</text>',
    ]
