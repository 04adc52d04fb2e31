"""The picture of docs/architecture.md: which part of the package imports which, read from the code itself.

`python docs/import_graph.py` writes docs/architecture.svg; a test says when it is out of date.
"""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "factor_windows"
LEFT_OUT = ("__init__", "__main__", "errors")
"""What only opens doors, and what everything imports."""
WIDTH, HEIGHT, ACROSS, DOWN = 104, 30, 122, 64
STYLE = """
text { font: 13px system-ui, sans-serif; text-anchor: middle; fill: #1b2733 }
rect { fill: #eef3f8; stroke: #5b7083; rx: 6 }
path { fill: none; stroke: #8a99a8 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } rect { fill: #1f2a35; stroke: #8ba0b3 } path { stroke: #6b7c8c }
}
"""


def imports() -> dict[str, set[str]]:
    """Say for each part of the package what it imports when it is loaded, without what follows from the rest."""
    found: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if part not in LEFT_OUT:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            names = [node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)]
            others = {name.split(".")[1] for name in names if name.startswith("factor_windows.")}
            found.setdefault(part, set()).update(others - {part, *LEFT_OUT})
    return {name: others - _implied(others, found) for name, others in found.items()}


def _implied(others: set[str], found: dict[str, set[str]]) -> set[str]:
    """List what is imported by something else that is imported."""
    reached: set[str] = set()
    waiting = [below for other in others for below in found[other]]
    while waiting:
        part = waiting.pop()
        if part not in reached:
            reached.add(part)
            waiting += found[part]
    return reached


def picture() -> str:
    """Draw each part above all that it imports."""
    edges = imports()
    height: dict[str, int] = {}
    for part in TopologicalSorter(edges).static_order():
        height[part] = 1 + max((height[other] for other in edges[part]), default=-1)
    rows = [sorted(part for part in edges if height[part] == row) for row in range(max(height.values()), -1, -1)]
    widest = max(map(len, rows))
    place = {
        part: (ACROSS * (number + (widest - len(row)) / 2) + ACROSS / 2, DOWN * line + HEIGHT)
        for line, row in enumerate(rows)
        for number, part in enumerate(row)
    }
    drawn = []
    for part, others in sorted(edges.items()):
        for other in sorted(others):
            (x, y), (to_x, to_y) = place[part], place[other]
            top, middle, bottom = y + HEIGHT / 2, (y + to_y) / 2, to_y - HEIGHT / 2
            drawn.append(f'<path d="M{x:g} {top:g} C{x:g} {middle:g} {to_x:g} {middle:g} {to_x:g} {bottom:g}"/>')
    for part, (x, y) in sorted(place.items()):
        corner = f'x="{x - WIDTH / 2:g}" y="{y - HEIGHT / 2:g}"'
        drawn.append(f'<rect {corner} width="{WIDTH}" height="{HEIGHT}"/><text x="{x:g}" y="{y + 4:g}">{part}</text>')
    size = f"{ACROSS * widest} {DOWN * len(rows)}"
    title = "<title>Each part of the package above what it imports</title>"
    body = "\n".join(drawn)
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}">{title}<style>{STYLE}</style>\n{body}\n</svg>'


if __name__ == "__main__":
    (Path(__file__).parent / "architecture.svg").write_text(picture() + "\n", encoding="utf-8")
