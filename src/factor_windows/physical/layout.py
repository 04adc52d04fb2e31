"""A layout: the levels of a plan, one aggregation for each step of depth, and where rows are shuffled to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import combinations

from factor_windows.algebra.pane_row import Packing, PaneRow, pane_rows
from factor_windows.physical.assigner import RAW, Assigner, assign
from factor_windows.tree import Pass

FLAT_ENTRIES = 256
"""Up to how many instances a row's entries are written out one by one; beyond, steps are counted at run time."""
MOST_LEVELS = 6
"""How many depths of a tree are tried as levels in all combinations; deeper trees are cut."""


class Distribution(Enum):
    """Where rows are shuffled to before the second level, so that nothing moves again after it."""

    BY_LEVEL = "by level"
    """Nowhere: every level shuffles for itself."""
    BY_KEY = "by key"
    BY_KEY_AND_CHUNK = "by key and chunk"
    """By key and stretch of time, each with a halo of the rows that its windows reach into."""
    EVENTS_BY_KEY = "events by key"
    """The raw events, before the first level."""


@dataclass(frozen=True, slots=True)
class Level:
    """One aggregation: the nodes it computes or passes on, and how rows of the level above are assigned to them."""

    nodes: tuple[int, ...]
    assigners: tuple[Assigner, ...]

    @property
    def is_flat(self) -> bool:
        """Say whether the entries have a step each, or one for each assigner with its steps counted at run time."""
        return sum(assigner.steps for assigner in self.assigners) <= FLAT_ENTRIES

    @property
    def entries(self) -> tuple[tuple[Assigner, int], ...]:
        """List what a row may be given to: an assigner and a step of it."""
        is_flat = self.is_flat
        return tuple((each, step) for each in self.assigners for step in range(each.steps if is_flat else 1))


@dataclass(frozen=True, slots=True)
class Layout:
    """What is decided about how a plan runs: its levels, and how rows are shuffled before the second one."""

    levels: tuple[Level, ...]
    distribution: Distribution = Distribution.BY_LEVEL
    chunk: int = 0
    """The length of a chunk in microseconds."""
    partitions: int | None = None
    """Into how many partitions rows are moved; `None` leaves it to the engine."""
    notes: tuple[str, ...] = ()
    """Why it runs this way, a sentence for each choice."""
    pane_row: PaneRow | None = None
    """How many panes a row of the first level holds, if it holds several."""

    def unpacked(self, plan: Pass) -> tuple[int, ...]:
        """List the nodes that are taken out of pane rows: those that the second level reads, or that are shown."""
        if len(self.levels) == 1:
            return tuple(place for place in self.levels[0].nodes if plan.nodes[place].exposed)
        return tuple(dict.fromkeys(each.source for each in self.levels[1].assigners))


def layouts(plan: Pass, packing: Packing | None) -> Iterator[Layout]:
    """List the levels for each choice of depths, plain and with the panes of the first level in rows of several."""
    for kept in depths_to_keep(plan):
        levels = flatten(plan, kept)
        yield Layout(levels)
        if len(levels[0].nodes) == 1 and not plan.has_several_keys:
            for row in pane_rows([node.window for node in plan.nodes], levels[0].nodes[0], packing):
                yield Layout(flatten(plan, kept, frozenset(row.premerged)), pane_row=row)


def depths_to_keep(plan: Pass) -> Iterator[frozenset[int]]:
    """List which depths of the tree may become levels: every choice, or for a very deep tree some from the top on."""
    deepest = max(_depths(plan).values()) - 1
    if deepest <= MOST_LEVELS:
        for size in range(deepest + 1):
            yield from map(frozenset, combinations(range(1, deepest + 1), size))
    else:
        yield from (frozenset(range(1, size + 1)) for size in range(MOST_LEVELS))


def flatten(plan: Pass, kept: frozenset[int], premerged: frozenset[int] = frozenset()) -> tuple[Level, ...]:
    """Lay out the levels of a plan in which only nodes of some depths are read; the others' readers read above them.

    Nodes that are premerged in the pane rows of the first level are there too, and may be read, but nothing is assigned
    to them.
    """
    reads = _reads(plan, kept, premerged)
    depth: dict[int, int] = {RAW: 0}
    for node, above in reads.items():
        depth[node] = 1 if node in premerged else depth[above] + 1

    def needed(node: int, step: int) -> bool:
        """Say whether a node from above must pass through a level: it is shown, or a deeper node reads it."""
        return plan.nodes[node].exposed or any(
            above == node and depth[reader] > step for reader, above in reads.items()
        )

    levels = []
    for step in range(1, max(depth.values()) + 1):
        new = [node for node in reads if depth[node] == step and node not in premerged]
        passing = [node for node in reads if depth[node] < step and needed(node, step)]
        made = [node for node in reads if node in premerged] if step == 1 else []
        assigners = (*(Assigner(node, node) for node in passing), *(_assigner(plan, reads[node], node) for node in new))
        levels.append(Level(nodes=(*passing, *new, *made), assigners=assigners))
    return tuple(levels)


def _reads(plan: Pass, kept: frozenset[int], premerged: frozenset[int]) -> dict[int, int]:
    """Say which node each computed one reads, if only some depths, and what is premerged, can be read."""
    depths = _depths(plan)
    number = plan.places
    parents = {node.name: node.parent for node in plan.nodes}

    def is_kept(name: str) -> bool:
        return depths[name] in kept or number[name] in premerged

    reads: dict[int, int] = {}
    for place, node in enumerate(plan.nodes):
        if node.exposed or is_kept(node.name):
            above = node.parent
            while above is not None and not is_kept(above):
                above = parents[above]
            reads[place] = RAW if above is None else number[above]
    while unread := [place for place in reads if not plan.nodes[place].exposed and place not in reads.values()]:
        for place in unread:
            del reads[place]
    return reads


def _depths(plan: Pass) -> dict[str | None, int]:
    """Count for each node how many steps it is away from the raw events."""
    depths: dict[str | None, int] = {None: 0}
    for node in plan.nodes:
        depths[node.name] = depths[node.parent] + 1
    return depths


def _assigner(plan: Pass, source: int, target: int) -> Assigner:
    parent = None if source == RAW else plan.nodes[source].window
    return assign(source, target, parent, plan.nodes[target].window, plan.query.kind)
