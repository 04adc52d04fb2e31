"""A plan as an SVG picture: the tree from left to right or, if it is large, downwards; a bar for each cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from unicodedata import east_asian_width
from xml.sax.saxutils import escape, quoteattr

from factor_windows.cost.model import share
from factor_windows.explain.text import listed, number, rate, reads, summary
from factor_windows.tree import Pass

NAME, NOTE = 13, 11
"""Font sizes."""
LINE = 16
PADDING = 9
MARGIN = 16
GAP = 12
"""The vertical space between boxes."""
BEND = 34
"""The space in which lines bend, left of their labels."""
INDENT = 26
BAR = 110
"""The bar length of a node that costs as much as the naive plan; no box is narrower."""
TEXT_WIDTH = 230
"""Longer texts are broken into lines, in a picture from left to right."""
LONG_TEXT_WIDTH = 420
NAME_LINES, NOTE_LINES = 2, 3
MOST_WIDTH, MOST_ROWS = 920, 12
"""Larger trees are drawn downwards."""

# Text has the colour of its surroundings, so that a notebook may be dark whatever the system is. A picture that stands
# alone has its own background.
STYLE = """
.fw-plan text { font: 13px system-ui, sans-serif; fill: currentColor }
.fw-plan .small { font-size: 11px; fill-opacity: 0.8 }
.fw-plan .box { fill: #7b8794; fill-opacity: 0.08; stroke: #7b8794 }
.fw-plan .factor .box, .fw-plan .slices .box { stroke-dasharray: 5 4 }
.fw-plan .bar { fill: #3f83e8 }
.fw-plan path { fill: none; stroke: #7b8794 }
.fw-plan .possible { stroke-dasharray: 3 4; stroke-opacity: 0.6 }
.fw-plan:root { color: #1f2933; background: #fff }
@media (prefers-color-scheme: dark) { .fw-plan:root { color: #e6e9ed; background: #12181f } }
"""


@dataclass(frozen=True, slots=True)
class Box:
    """The text of a box, and its position."""

    name: str | None
    """The name of the node, or `None` for the raw events."""
    parent: str | None
    kind: str
    title: str
    lines: tuple[str, ...]
    notes: tuple[str, ...]
    reads: str
    """The label of the line from its parent."""
    part: float
    x: float = 0
    y: float = 0
    wide: float = 0
    """The width of all boxes in its column, if greater than its own."""

    @property
    def width(self) -> float:
        names = max(text_width(line, NAME) for line in self.lines)
        return max(self.wide, BAR + 2, 2 * PADDING + max([names, *(text_width(note, NOTE) for note in self.notes)]))

    @property
    def height(self) -> int:
        return LINE * (len(self.lines) + len(self.notes)) + 12

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


def picture(plan: Pass, *, across: bool | None = None, possible: Iterable[tuple[str, str]] = ()) -> str:
    """Draw a plan as an SVG document, `across` from left to right or downwards; `possible` are lines to add."""
    boxes = _across(plan) if across or (across is None and fits_across(plan)) else _down(plan)
    by_name = {box.name: box for box in boxes}
    arcs = [_arc(by_name[above], by_name[below]) for above, below in possible]
    width = max([MARGIN + box.x + box.width for box in boxes] + [MARGIN + right for _, right in arcs])
    height = max(MARGIN + box.y + box.height for box in boxes)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="fw-plan" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img">',
        f"<title>{escape(summary(plan)[1])}</title>",
        f"<style>{STYLE}</style>",
        *(arc for arc, _ in arcs),
    ]
    for box in boxes:
        if box.name is not None:
            parts += _link(by_name[box.parent], box)
    for box in boxes:
        parts += _drawn(box)
    return "\n".join([*parts, "</svg>", ""])


def figure(plan: Pass) -> str:
    """Return the picture with its description as text above it, for use in another page."""
    first, *others = summary(plan)
    lines = "".join(f"<br>{escape(line)}" for line in others)
    return f'<p><b>{escape(first)}</b>{lines}</p><div style="overflow-x:auto">{picture(plan)}</div>'


def fits_across(plan: Pass) -> bool:
    """Say whether a plan is small enough to be drawn from left to right."""
    leaves = len(plan.nodes) - len({node.parent for node in plan.nodes if node.parent is not None})
    return leaves <= MOST_ROWS and max(box.x + box.width for box in _across(plan)) <= MOST_WIDTH


def text_width(text: str, size: float) -> float:
    """Estimate the width of a text in a wide font; real ones are usually narrower.

    >>> text_width("10 minutes", 13) < text_width("10 MINUTES", 13) < 130
    True
    """
    return size * sum(map(_width, text))


def _width(char: str) -> float:
    if char in " .,:;'|!/()[]-ijlIft":
        return 0.4
    if char in "mwMW%@×+<>=" or east_asian_width(char) in "WF":
        return 1.05
    return 0.8 if char.isupper() or not char.isascii() else 0.65


def _broken(text: str, size: float, most: float, lines: int) -> tuple[str, ...]:
    """Break a text into lines between words, and cut what does not fit.

    >>> _broken("6 minutes 20 seconds / 3 minutes", 13, 170, 2)
    ('6 minutes 20 seconds /', '3 minutes')
    >>> _broken("a_name_without_any_space_in_it", 13, 100, 2)
    ('a_name_wit…',)
    """
    found = [""]
    for word in text.split():
        longer = f"{found[-1]} {word}".strip()
        if found[-1] and text_width(longer, size) > most:
            found.append(word)
        else:
            found[-1] = longer
    if len(found) > lines:
        found = [*found[: lines - 1], " ".join(found[lines - 1 :])]
    return tuple(line if text_width(line, size) <= most else _cut(line, size, most) for line in found)


def _cut(text: str, size: float, most: float) -> str:
    while text and text_width(text + "…", size) > most:
        text = text[:-1]
    return text + "…"


def _boxes(plan: Pass, *, is_across: bool) -> Iterator[Box]:
    """List the boxes, the raw events first."""
    most = TEXT_WIDTH if is_across else LONG_TEXT_WIDTH
    known = rate(plan)
    notes = _broken(known, NOTE, most, NOTE_LINES)
    yield Box(None, None, "raw", f"raw events: {known}", ("raw events",), notes, "", 0.0)
    naive_cost, readers = plan.naive_cost, plan.readers if len(plan.workload.members) > 1 else {}
    for node in plan.nodes:
        part = share(node.cost, naive_cost)
        what = reads(plan, node)
        cost = f"cost {number(node.cost)}" + (f", {part:.1%}" if part >= 0.0005 else "")
        title = f"{node.label}: {cost}{' of naive' if part >= 0.0005 else ''}, reads {what}"
        texts = [cost if is_across else f"{cost}; reads {what}"]
        texts += [f"for {listed(readers[node.name])}"] if readers else []
        notes = tuple(line for text in texts for line in _broken(text, NOTE, most, NOTE_LINES))
        lines = _broken(node.label, NAME, most, NAME_LINES) if is_across else (_cut_to(node.label, most),)
        yield Box(node.name, node.parent, node.kind, title, lines, notes, f"{number(plan.reads(node))} ×", part)


def _cut_to(text: str, most: float) -> str:
    return text if text_width(text, NAME) <= most else _cut(text, NAME, most)


def _across(plan: Pass) -> list[Box]:
    """Place each box in the column of its depth: leaves below each other, parents centred on their children."""
    boxes = list(_boxes(plan, is_across=True))
    depth: dict[str | None, int] = {None: 0}
    children: dict[str | None, list[str | None]] = {}
    for box in boxes[1:]:
        depth[box.name] = depth[box.parent] + 1
        children.setdefault(box.parent, []).append(box.name)
    leaves = [box.name for box in boxes if box.name not in children]
    row: dict[str | None, float] = {name: place for place, name in enumerate(leaves)}
    for box in reversed(boxes):
        if own := children.get(box.name):
            row[box.name] = (row[own[0]] + row[own[-1]]) / 2
    columns: list[list[Box]] = [[] for _ in range(1 + max(depth.values()))]
    for box in boxes:
        columns[depth[box.name]].append(box)
    pitch = GAP + max(box.height for box in boxes[1:])
    top = MARGIN - min(pitch * row[box.name] - box.height / 2 for box in boxes)
    x = float(MARGIN)
    placed: dict[str | None, Box] = {}
    for column in columns:
        x += BEND + 16 + max(text_width(box.reads, NOTE) for box in column) if placed else 0
        width = max(box.width for box in column)
        for box in column:
            placed[box.name] = replace(box, x=x, y=top + pitch * row[box.name] - box.height / 2, wide=width)
        x += width
    return [placed[box.name] for box in boxes]


def _down(plan: Pass) -> list[Box]:
    """Place each box below the previous one, indented by its depth."""
    placed: dict[str | None, Box] = {}
    y = float(MARGIN)
    for box in _boxes(plan, is_across=False):
        x = MARGIN if box.name is None else placed[box.parent].x + INDENT
        placed[box.name] = replace(box, x=x, y=y)
        y += box.height + GAP / 2
    return [*placed.values()]


def _link(above: Box, box: Box) -> list[str]:
    """Draw the line from a box's parent: bent left of its label, or down and to the right."""
    right = above.x + above.width
    if box.x < right:
        return [f'<path d="M{above.x + INDENT / 2:.1f},{above.y + above.height:.1f} V{box.middle:.1f} H{box.x:.1f}"/>']
    end = right + BEND
    half = (right + end) / 2
    return [
        f'<path d="M{right:.1f},{above.middle:.1f} C{half:.1f},{above.middle:.1f} {half:.1f},{box.middle:.1f} '
        f'{end:.1f},{box.middle:.1f} H{box.x:.1f}"/>',
        f'<text class="small" x="{box.x - 6:.1f}" y="{box.middle - 5:.1f}" text-anchor="end">'
        f"{escape(box.reads)}</text>",
    ]


def _arc(above: Box, below: Box) -> tuple[str, float]:
    """Draw an edge that was not chosen, and return how far to the right it extends."""
    start, end = above.x + above.width, below.x + below.width
    if below.x > start:
        half = (start + below.x) / 2
        bent, far = f"{half:.1f},{above.middle:.1f} {half:.1f},{below.middle:.1f} {below.x:.1f}", below.x
    else:
        far = max(start, end) + min(90, 20 + abs(below.middle - above.middle) / 8)
        bent = f"{far:.1f},{above.middle:.1f} {far:.1f},{below.middle:.1f} {end:.1f}"
    names = f"data-above={quoteattr(above.name or '')} data-below={quoteattr(below.name or '')}"
    return f'<path class="possible" {names} d="M{start:.1f},{above.middle:.1f} C{bent},{below.middle:.1f}"/>', far


def _drawn(box: Box) -> Iterator[str]:
    name = "" if box.name is None else f" data-node={quoteattr(box.name)}"
    yield f'<g class="node {box.kind}"{name}><title>{escape(box.title)}</title>'
    yield f'<rect class="box" x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height}" rx="6"/>'
    if box.part:
        width = max(1.0, min(1.0, box.part) * BAR)
        y = box.y + box.height - 4
        yield f'<rect class="bar" x="{box.x + 1:.1f}" y="{y:.1f}" width="{width:.1f}" height="3" rx="1.5"/>'
    yield from _texts(box.lines, "", box.x + PADDING, box.y + 18)
    yield from _texts(box.notes, ' class="small"', box.x + PADDING, box.y + 17 + LINE * len(box.lines))
    yield "</g>"


def _texts(lines: Sequence[str], kind: str, x: float, y: float) -> Iterator[str]:
    for place, line in enumerate(lines):
        yield f'<text{kind} x="{x:.1f}" y="{y + LINE * place:.1f}">{escape(line)}</text>'
