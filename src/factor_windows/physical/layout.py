"""A layout: the levels of a plan, one aggregation per depth, and where rows are shuffled to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from itertools import combinations

from factor_windows.algebra.pane_row import Packing, PaneRow, pane_rows
from factor_windows.algebra.session import Session
from factor_windows.algebra.slices import Slices
from factor_windows.algebra.window import Window
from factor_windows.functions.table import Kind
from factor_windows.physical.assigner import ALWAYS, RAW, Assigner, assign
from factor_windows.tree import Pass, PlanNode

FLAT_ENTRIES = 256
"""The most instances per row for which entries are written out one by one; beyond, steps are counted at run time."""
MOST_LEVELS = 6
"""The most depths of a tree that are tried as levels in all combinations; deeper trees are cut."""


class Distribution(Enum):
    """Where rows are shuffled to before the second level, so that nothing is shuffled again after it."""

    BY_LEVEL = "by level"
    """Nowhere: every level shuffles for itself."""
    BY_KEY = "by key"
    BY_KEY_AND_CHUNK = "by key and chunk"
    """By key and chunk of time, each with a halo of the rows that its windows extend into."""
    EVENTS_BY_KEY = "events by key"
    """The raw events, before the first level."""
    ONE_PARTITION = "one partition"
    """All rows into one partition, if they are so few that tasks would take longer than their work."""


@dataclass(frozen=True, slots=True)
class Level:
    """One aggregation: the nodes it computes or passes on, and how rows of the level above are assigned to them."""

    nodes: tuple[int, ...]
    assigners: tuple[Assigner, ...]
    scanned: int | None = None
    """The node made from prefixes and suffixes of blocks of rows, two for each instance, if any."""

    @property
    def is_flat(self) -> bool:
        """Say whether each entry is one step, rather than an assigner whose steps are counted at run time."""
        return self.scanned is None and sum(assigner.steps for assigner in self.assigners) <= FLAT_ENTRIES

    @property
    def entries(self) -> tuple[tuple[Assigner, int], ...]:
        """List what a row may be assigned to: an assigner and one of its steps."""
        is_flat = self.is_flat
        return tuple((each, step) for each in self.assigners for step in range(each.steps if is_flat else 1))


@dataclass(frozen=True, slots=True)
class Layout:
    """The decisions about how a plan runs: its levels, and how rows are shuffled before the second one."""

    levels: tuple[Level, ...]
    distribution: Distribution = Distribution.BY_LEVEL
    chunk: int = 0
    """The length of a chunk in microseconds."""
    partitions: int | None = None
    """The number of partitions to shuffle to; `None` leaves it to the engine."""
    notes: tuple[str, ...] = ()
    """Why the plan runs this way, a sentence for each choice."""
    pane_row: PaneRow | None = None
    """How the first level packs several panes into a row, if it does."""
    groups_text: bool = False
    """Whether the first level groups text as it is: its rows are so few that Spark's fast hash table holds them."""
    asides: bool = False
    """Whether each level shows what it computes, so that later levels need not pass it on."""
    appended: int | None = None
    """The node of the first level that also has separate rows, numbered after all nodes.

    They were appended to panes of several kinds, and the second level turns them into rows of all these kinds."""

    def shown(self, plan: Pass, level: Level) -> tuple[int, ...]:
        """List the nodes that are shown from a level."""
        if not self.asides and level is not self.levels[-1]:
            return ()
        return (*(place for place in level.nodes if plan.nodes[place].exposed), *self.same(level))

    def same(self, level: Level) -> dict[int, Assigner]:
        """Return the nodes of later levels whose instances, except early ones, are unchanged rows of a level."""
        each_of_all = (each for other in self.levels for each in other.assigners)
        return {each.target: each for each in each_of_all if each.before != ALWAYS and each.source in level.nodes}

    def unpacked(self, plan: Pass) -> tuple[int, ...]:
        """List the nodes that are taken out of pane rows: those that the second level reads, or that are shown."""
        if len(self.levels) == 1:
            return tuple(place for place in self.levels[0].nodes if plan.nodes[place].exposed)
        return tuple(dict.fromkeys(each.source for each in self.levels[1].assigners))


def finds_sessions(plan: Pass, assigner: Assigner) -> bool:
    """Say whether rows are assigned to sessions, and do not just pass through as sessions."""
    return isinstance(plan.nodes[assigner.target].window, Session) and not assigner.passes_through


def layouts(plan: Pass, packing: Packing | None, *, reuses: bool = False, scans: bool = False) -> Iterator[Layout]:
    """List the levels for each choice of depths, plain and with several panes of the first level packed in a row.

    Sessions are found in plain rows. If shuffled rows can be reused, levels may also show what they compute. In this
    case, all windows must need the same of the rows that they read, since they would otherwise be different rows. With
    `scans`, a long hopping window may be made of prefixes and suffixes of its panes.
    """
    everything = len(plan.query.parsed_aggregates)
    reuses = reuses and not plan.has_several_keys and all(len(each.aggregates) == everything for each in plan.outputs)
    for kept in depths_to_keep(plan):
        levels = flatten(plan, kept)
        yield Layout(levels)
        if plan.query.has_sessions:
            continue
        if scans and (scanned := with_scan(plan, levels)):
            yield Layout(scanned)
        if reuses and len(levels) > 1:
            aside = flatten(plan, kept, asides=True)
            if all(_stays_above(plan, level) for level in aside[1:]):
                yield Layout(aside, asides=True)
        if len(levels[0].nodes) == 1 and not plan.has_several_keys:
            for row in pane_rows([node.window for node in plan.nodes], levels[0].nodes[0], packing):
                yield Layout(flatten(plan, kept, frozenset(row.premerged)), pane_row=row)


def layouts_of_panes(plan: Pass, *, scans: bool = False) -> Iterator[Layout]:
    """List the levels for each choice of depths if the first one is stored: there is always a second one."""
    tops = {place for place, node in enumerate(plan.nodes) if node.parent is None}
    for kept in depths_to_keep(plan):
        levels = flatten(plan, kept)
        read = (each.source for level in levels[1:] for each in level.assigners)
        if set(levels[0].nodes) == tops and RAW not in read:
            again = Level(levels[0].nodes, tuple(Assigner(place, place) for place in levels[0].nodes))
            yield Layout(levels if len(levels) > 1 else (*levels, again))
            if scans and not plan.query.has_sessions and (scanned := with_scan(plan, levels)):
                yield Layout(scanned)


def with_scan(plan: Pass, levels: tuple[Level, ...]) -> tuple[Level, ...]:
    """Let the window that reads the most panes, if possible, read two scans of them; return no levels if none can."""
    ways = [
        (each.steps, number, each.target)
        for number, level in enumerate(levels)
        for each in level.assigners
        if _can_scan(plan, each)
    ]
    if not ways:
        return ()
    _, number, node = max(ways)
    return (*levels[:number], replace(levels[number], scanned=node), *levels[number + 1 :])


def _can_scan(plan: Pass, each: Assigner) -> bool:
    """Say whether rows are panes as long as the slide of a window whose instances consist of several whole panes."""
    if each.source in (RAW, each.target) or each.source >= len(plan.nodes) or each.before != ALWAYS:
        return False
    panes, window = (plan.nodes[place].window for place in (each.source, each.target))
    if not isinstance(panes, Window) or not isinstance(window, Window) or panes.clock or window.clock:
        return False
    return (
        panes.range == panes.slide == window.slide
        and window.range % window.slide == 0 < window.range - 2 * window.slide
    )


def with_appended(plan: Pass, layout: Layout, finest: int) -> Layout:
    """Let a second level make rows of all panes from the finest panes that are in no coarser ones yet."""
    number, panes, kind = len(plan.nodes), plan.nodes[finest].window, plan.query.kind
    first, *others = layout.levels
    made = [assign(number, place, panes, plan.nodes[place].window, kind) for place in first.nodes]
    merged = Level(first.nodes, (*(Assigner(place, place) for place in first.nodes), *made))
    # If a later level only merges rows of the same panes, this level replaces it.
    rest = others if any(not each.passes_through for level in others for each in level.assigners) else others[1:]
    return replace(layout, levels=(first, merged, *rest), appended=finest)


def depths_to_keep(plan: Pass) -> Iterator[frozenset[int]]:
    """List which depths of the tree may become levels: every choice or, for a very deep tree, some from the top on."""
    deepest = max(_depths(plan).values()) - 1
    if deepest <= MOST_LEVELS:
        for size in range(deepest + 1):
            yield from map(frozenset, combinations(range(1, deepest + 1), size))
    else:
        yield from (frozenset(range(1, size + 1)) for size in range(MOST_LEVELS))


def _stays_above(plan: Pass, level: Level) -> bool:
    """Say whether no condition on the rows that a level reads can be moved to before the shuffle.

    Otherwise the rows shown from there would be computed twice. Conditions that depend on an entry are not moved.
    """
    if len(level.entries) > 1:
        return True
    [each] = level.assigners
    window = plan.nodes[each.target].window
    is_plain = isinstance(window, Slices) or (isinstance(window, Window) and not window.skips)
    return is_plain and each.max_age == each.before == ALWAYS and each.grid == (1, 0)


def flatten(
    plan: Pass, kept: frozenset[int], premerged: frozenset[int] = frozenset(), *, asides: bool = False
) -> tuple[Level, ...]:
    """Lay out the levels of a plan that keeps only nodes of some depths; readers of other nodes read those above them.

    Nodes that are premerged in the pane rows of the first level exist too, and may be read, but nothing is assigned to
    them. With `asides`, shown nodes need not pass through the levels after their own.
    """
    reads = _reads(plan, kept, premerged)
    same = _same_as_what_they_read(plan, reads) if asides else {}
    # Such nodes are computed for early times only, so their readers read what they read.
    reads = {node: reads[above] if above in same else above for node, above in reads.items()}
    depth: dict[int, int] = {RAW: 0}
    for node, above in reads.items():
        depth[node] = 1 if node in premerged else depth[above] + 1

    def needed(node: int, step: int) -> bool:
        """Say whether a node from above must pass through a level: it is shown, or a deeper node reads it."""
        return (plan.nodes[node].exposed and not asides) or any(
            above == node and depth[reader] > step for reader, above in reads.items()
        )

    levels, kind = [], plan.query.kind
    for step in range(1, max(depth.values()) + 1):
        new = [node for node in reads if depth[node] == step and node not in premerged]
        passing = [node for node in reads if depth[node] < step and needed(node, step)]
        made = [node for node in reads if node in premerged] if step == 1 else []
        assigners = (
            *(Assigner(node, node) for node in passing),
            *(_assigner(plan, reads[node], node, kind, same.get(node, ALWAYS)) for node in new),
        )
        levels.append(Level(nodes=(*passing, *new, *made), assigners=assigners))
    return tuple(levels)


def _reads(plan: Pass, kept: frozenset[int], premerged: frozenset[int]) -> dict[int, int]:
    """Return the node that each computed node reads, if only nodes of some depths and premerged ones can be read."""
    depths = _depths(plan)
    number = plan.places
    nodes = {node.name: node for node in plan.nodes}
    parents = {node.name: node.parent for node in plan.nodes}

    def is_kept(name: str) -> bool:
        return depths[name] in kept or number[name] in premerged

    def can_read(node: PlanNode, name: str) -> bool:
        """Say whether an indirect parent in the tree can be read directly: sessions cannot read every such node."""
        return not isinstance(node.window, Session) or node.node.can_read(nodes[name].node, plan.query.kind)

    reads: dict[int, int] = {}
    for place, node in enumerate(plan.nodes):
        if node.exposed or is_kept(node.name):
            above = node.parent
            while above is not None and not (is_kept(above) and can_read(node, above)):
                above = parents[above]
            reads[place] = RAW if above is None else number[above]
    while unread := [place for place in reads if not plan.nodes[place].exposed and place not in reads.values()]:
        for place in unread:
            del reads[place]
    return reads


def _depths(plan: Pass) -> dict[str | None, int]:
    """Count each node's steps from the raw events."""
    depths: dict[str | None, int] = {None: 0}
    for node in plan.nodes:
        depths[node.name] = depths[node.parent] + 1
    return depths


def _assigner(plan: Pass, source: int, target: int, kind: Kind, before: int) -> Assigner:
    parent = None if source == RAW else plan.nodes[source].window
    made = assign(source, target, parent, plan.nodes[target].window, kind)
    return made if before == ALWAYS else replace(made, before=before)


def _same_as_what_they_read(plan: Pass, reads: Mapping[int, int]) -> dict[int, int]:
    """Return the nodes whose instances are, from some time on, the slices that they read, each with that time."""
    found = {}
    for node, above in reads.items():
        slices = plan.nodes[above].window if above != RAW else None
        if isinstance(slices, Slices) and plan.nodes[node].exposed:
            since = slices.same_since(plan.nodes[node].window)
            if since < ALWAYS:
                found[node] = int(max(since, -ALWAYS))
    return found
