"""A plan as levels: one aggregation for each step of depth, whatever the number of windows.

Which nodes a level computes, how a row of the level above feeds them, and where rows are brought together. Decides by
rows read and written, and says why; knows nothing of pyspark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil, inf
from typing import Literal

from factor_windows.algebra.coverage import fewest, stride
from factor_windows.algebra.packs import STEPS, Pack, Packing, packs
from factor_windows.algebra.slices import Progression, Slices, is_partition
from factor_windows.algebra.window import Window, readable
from factor_windows.cost.spark import SparkCost
from factor_windows.functions.table import Kind
from factor_windows.tree import Pass as Plan

FLAT_FEEDS = 256
"""Up to how many instances a row's fan-out is written out one by one; beyond, steps are counted at run time."""
ALWAYS = 2**62
"""A reach that no row exceeds."""
RAW = -1
"""The number of the raw events where nodes go by their place in the plan."""
EVERYWHERE = ((1, 0),)
"""Edges at every microsecond: the last one that is not after a time is the time itself."""
CHUNK_RANGES = 64
"""How many times the longest range a chunk of time is long: 1/64 of the rows are then sent to two chunks."""
LONGEST_CHUNK = 10**18
"""So that no sum of times leaves 64 bits, in microseconds."""
KEYS_PER_PARTITION = 2
"""From how many keys for each partition on hashing them spreads the work well enough, so that no chunks are needed:
ten windows of twenty keys then take an eighth less."""
PARTITIONS = 200
"""How many partitions Spark's shuffles have by default."""
FINER = 4
"""How many times as many partitions rows are brought together in: they grow there, which Spark does not foresee."""
MERGES_PER_PARTITION = 100_000
"""How many rows must be merged in a partition to be worth a task of its own, where it is known how many there are."""
MANY_PARTITIONS = 128
"""From how many partitions on Spark's own number, and its merging of small ones, is left alone."""
WORTH_A_LEVEL = 1.05
"""How much less work a level more must leave: shallow plans are easier to read and surer to do well."""
WORTH_AN_OPERATOR = 1.7
"""The same for a third or later level on a stream, a stateful operator more that commits in every micro-batch."""
MOST_LEVELS = 6
"""How many depths of a tree are tried as levels in all combinations; deeper trees are cut."""
FAST_HASH_GROUPS = 65_536
"""How many groups Spark's quick hash table is taken to hold; updates of others take longer."""
SPARSE = 0.5
"""From how many rows per event on a first level shrinks nothing, and events are brought together instead."""


@dataclass(frozen=True, slots=True)
class Feed:
    """The instances of one node that a row of another feeds.

    A row that starts at p feeds those at f, f - stride, f - 2 * stride, ..., in all `steps` of them, where f is the
    last of `edges` that is not after p.
    """

    source: int
    target: int
    edges: tuple[Progression, ...] = EVERYWHERE
    steps: int = 1
    stride: int = 0
    most: int = ALWAYS
    """No instance starts longer before f than this: where the last stride would be too long, it is cut."""
    reach: int = ALWAYS
    """The row must start at most this long after the instance does."""
    grid: Progression = (1, 0)
    """Where instances start; what is not there is no instance."""

    def back(self, step: int) -> int:
        """Return how long before f the instance of a step starts."""
        return min(step * self.stride, self.most)


@dataclass(frozen=True, slots=True)
class Level:
    """One aggregation: the nodes it computes or passes on, and the feeds from the level above."""

    nodes: tuple[int, ...]
    feeds: tuple[Feed, ...]

    @property
    def flat(self) -> bool:
        """Say whether the entries have a step each, or one for each feed with its steps counted at run time."""
        return sum(feed.steps for feed in self.feeds) <= FLAT_FEEDS

    @property
    def entries(self) -> tuple[tuple[Feed, int], ...]:
        """List what a row may feed: a feed and a step of it."""
        return tuple((feed, step) for feed in self.feeds for step in range(feed.steps if self.flat else 1))


@dataclass(frozen=True, slots=True)
class Physical:
    """How a plan runs: its levels, and how rows are brought together before the second one."""

    levels: tuple[Level, ...]
    together: Literal["nothing", "keys", "chunks", "events"]
    """Bring nothing together (each level does it), or partial results by keys or keys and chunk, or raw events."""
    chunk: int
    """The length of a chunk in microseconds, for `chunks`."""
    partitions: int | None
    """Into how many partitions rows are brought together; `None` leaves it to Spark, which merges small ones."""
    notes: tuple[str, ...]
    """Why it runs this way, a sentence for each choice."""
    pack: Pack | None = None
    """How many panes a row of the first level holds, if it holds several."""

    def unpacked(self, plan: Plan) -> tuple[int, ...]:
        """List the nodes of the first level that are taken out of packs: those that the second reads, or are shown."""
        if len(self.levels) == 1:
            return tuple(place for place in self.levels[0].nodes if plan.nodes[place].exposed)
        return tuple(dict.fromkeys(feed.source for feed in self.levels[1].feeds))


def compile_levels(
    plan: Plan, *, partitions: int = PARTITIONS, streaming: bool = False, packing: Packing | None = None
) -> Physical:
    """Choose the depth, lay out the levels, and choose how rows are brought together, in packs if these are allowed."""
    cost = spark_cost(plan)
    worth = WORTH_AN_OPERATOR if streaming else WORTH_A_LEVEL
    works: dict[int, float] = {}
    least: dict[int, Physical] = {}
    for levels, pack in _layouts(plan, packing):
        physical = Physical(levels, "nothing", 0, None, (), pack)
        if not streaming:
            physical = _brought_together(physical, plan, partitions, cost)
        if pack and physical.together == "events":
            continue
        counts = counts_of(physical, plan, cost)
        work = cost.prices.total(counts)
        if physical.partitions and cost.units < inf and physical.together in ("keys", "chunks"):
            few = ceil(counts["merge"] * cost.units / MERGES_PER_PARTITION)
            physical = replace(physical, partitions=max(1, min(physical.partitions, few)))
        if work < works.get(len(levels), inf):
            works[len(levels)], least[len(levels)] = work, physical
    count = min(works, key=lambda count: works[count] * worth ** max(0, count - 2) * WORTH_A_LEVEL ** (count > 1))
    return replace(least[count], notes=(_depth_note(count, works), *least[count].notes))


def spark_cost(plan: Plan) -> SparkCost:
    """Return the prices that a plan was made with, or, for one by the paper's costs, Spark's for the same stream."""
    cost = plan.cost_model
    if isinstance(cost, SparkCost):
        return cost
    return SparkCost(cost.unit, float(cost.rate), keys=1.0, keyed=bool(plan.query.parsed_keys))


def _layouts(plan: Plan, packing: Packing | None) -> Iterator[tuple[tuple[Level, ...], Pack | None]]:
    """List the levels for each choice of depths, plain and with the panes of the first level in packs."""
    for kept in _depths_to_keep(plan):
        levels = _flattened(plan, kept)
        yield levels, None
        if len(levels[0].nodes) == 1 and not plan.has_several_keys:
            for pack in packs([node.window for node in plan.nodes], levels[0].nodes[0], packing):
                yield _flattened(plan, kept, frozenset(pack.inside)), pack


def _depths_to_keep(plan: Plan) -> Iterator[frozenset[int]]:
    """List which depths of the tree may become levels: every choice, or for a very deep tree some from the top on."""
    deepest = max(_depths(plan).values()) - 1
    if deepest <= MOST_LEVELS:
        for size in range(deepest + 1):
            yield from map(frozenset, combinations(range(1, deepest + 1), size))
    else:
        yield from (frozenset(range(1, size + 1)) for size in range(MOST_LEVELS))


def _depths(plan: Plan) -> dict[str | None, int]:
    """Count for each node how many steps it is away from the raw events."""
    depths: dict[str | None, int] = {None: 0}
    for node in plan.nodes:
        depths[node.name] = depths[node.parent] + 1
    return depths


def _flattened(plan: Plan, kept: frozenset[int], inside: frozenset[int] = frozenset()) -> tuple[Level, ...]:
    """Lay out the levels of a plan in which only nodes of some depths are read; the others' readers read above them.

    Nodes that are made inside the packs of the first level are there too, and may be read, but nothing feeds them.
    """
    depths = _depths(plan)
    number = {node.name: position for position, node in enumerate(plan.nodes)}
    parents = {node.name: node.parent for node in plan.nodes}
    reads: dict[int, int] = {}
    for node in plan.nodes:
        if not node.exposed and depths[node.name] not in kept and number[node.name] not in inside:
            continue
        above = node.parent
        while above is not None and depths[above] not in kept and number[above] not in inside:
            above = parents[above]
        reads[number[node.name]] = RAW if above is None else number[above]
    read = set(reads.values())
    while unread := [place for place in reads if place not in read and not plan.nodes[place].exposed]:
        for place in unread:
            del reads[place]
        read = set(reads.values())
    depth: dict[int, int] = {RAW: 0}
    for position, above_position in reads.items():
        depth[position] = 1 if position in inside else depth[above_position] + 1
    levels = []
    last = max(depth.values())
    for step in range(1, last + 1):
        new = [position for position in reads if depth[position] == step and position not in inside]
        passing = [
            position
            for position in reads
            if depth[position] < step and _still_needed(position, step, plan, reads, depth)
        ]
        feeds = [_feed(plan, reads[position], position) for position in new]
        passed = [Feed(position, position) for position in passing]
        made = [position for position in reads if position in inside] if step == 1 else []
        levels.append(Level(nodes=(*passing, *new, *made), feeds=(*passed, *feeds)))
    return tuple(levels)


def _still_needed(position: int, step: int, plan: Plan, reads: dict[int, int], depth: dict[int, int]) -> bool:
    """Say whether a node from above must pass through a level: it is shown, or a deeper node reads it."""
    return plan.nodes[position].exposed or any(
        above == position and depth[reader] > step for reader, above in reads.items()
    )


def _feed(plan: Plan, source: int, target: int) -> Feed:
    """Say which instances of a node one row of its parent feeds."""
    child = plan.nodes[target].window
    parent = None if source == RAW else plan.nodes[source].window
    if isinstance(child, Slices):
        return Feed(source, target, child.edges)
    if parent is None or is_partition(parent):
        return _from_pieces(source, target, child, parent.range if isinstance(parent, Window) else 1)
    assert isinstance(parent, Window)
    every = _from_all_inside(source, target, child, parent)
    some = _from_fewest(source, target, child, parent)
    return some if plan.query.kind is not Kind.OVERLAP_SAFE or some.steps < every.steps else every


def _from_pieces(source: int, target: int, child: Window, piece: int) -> Feed:
    """Feed the instances that hold the piece: those that start at or before it, and end after its start."""
    steps = -(-child.range // child.slide)
    always = child.range % child.slide == 0
    grid = ((child.slide, child.offset),)
    return Feed(source, target, grid, steps, child.slide, reach=ALWAYS if always else child.range - piece)


def _from_all_inside(source: int, target: int, child: Window, parent: Window) -> Feed:
    """Feed the instances that hold the whole of the row's, as the paper has it."""
    spare = child.range - parent.range
    steps = spare // child.slide + 1
    latest = steps * child.slide - parent.slide
    grid = ((child.slide, child.offset),)
    return Feed(source, target, grid, steps, child.slide, reach=ALWAYS if latest <= spare else spare)


def _from_fewest(source: int, target: int, child: Window, parent: Window) -> Feed:
    """Feed the instances that have the row among the fewest that make them up."""
    grid = (1, 0) if child.slide == parent.slide else (child.slide, child.offset)
    last = child.range - parent.range
    steps = fewest(parent, child)
    cut = ALWAYS if last == (steps - 1) * stride(parent) else last
    return Feed(source, target, EVERYWHERE, steps, stride(parent), most=cut, grid=grid)


def counts_of(physical: Physical, plan: Plan, cost: SparkCost) -> dict[str, float]:
    """Count, per unit of time, what prices are for."""
    levels, together, pack = physical.levels, physical.together, physical.pack
    rows = [cost.rows_of(node.node) for node in plan.nodes]
    counts = dict.fromkeys(("update", "merge", "crowded", "edge"), 0.0)
    for level in levels:
        for feed in level.feeds:
            read = cost.rate if feed.source == RAW else rows[feed.source]
            counts["update" if feed.source == RAW else "merge"] += feed.steps * read
            counts["edge"] += (len(feed.edges) - 1) * read
    emitted = [_first_rows(physical, plan, cost), *(sum(rows[place] for place in level.nodes) for level in levels[1:])]
    if cost.keyed:
        counts["crowded"] = counts["update"]
    elif FAST_HASH_GROUPS < emitted[0] * cost.units < inf:
        counts["crowded"] = counts["update"] * (1 - FAST_HASH_GROUPS / (emitted[0] * cost.units))
    unpacked = sum(rows[place] for place in physical.unpacked(plan)) if pack else 0.0
    moves = {"events": 1, "nothing": len(levels)}.get(together, min(len(levels), 2))
    moved = {"events": cost.rate, "nothing": sum(emitted)}.get(together, emitted[0] * moves)
    return counts | {
        "slot": cost.rate * pack.lanes if pack else 0.0,
        "stage": (moves + 1 + STEPS * bool(pack)) / cost.units,
        "scan": cost.rate,
        "shuffle": moved,
        "group": sum(emitted) if together == "events" else sum(emitted[1:]) + unpacked,
    }


def _first_rows(physical: Physical, plan: Plan, cost: SparkCost) -> float:
    """Count the rows that the first level emits per unit of time: those of its nodes, or packs."""
    nodes = [plan.nodes[place].node for place in physical.levels[0].nodes]
    if physical.pack is None:
        return sum(map(cost.rows_of, nodes))
    return cost.rows_of(replace(nodes[0], window=physical.pack.window))


def _depth_note(count: int, works: dict[int, float]) -> str:
    others = [
        f"{other} level{'s' * (other > 1)} would take {work / works[count]:.2f} times"
        for other, work in sorted(works.items())
        if other != count
    ]
    return f"{count} level{'s' * (count > 1)}" + (f": {' and '.join(others)} the work" if others else "")


def _brought_together(physical: Physical, plan: Plan, partitions: int, cost: SparkCost) -> Physical:
    """Choose how rows come to where they are needed."""
    finer = max(partitions, min(FINER * partitions, MANY_PARTITIONS))
    own = finer if finer <= MANY_PARTITIONS else None
    levels, pack = physical.levels, physical.pack
    if plan.has_several_keys:
        note = "each level brings its rows together by itself: its nodes have different keys"
        return replace(physical, notes=(note,))
    has_keys = bool(plan.query.parsed_keys)
    first = _first_rows(physical, plan, cost)
    known = isinstance(plan.cost_model, SparkCost) and not cost.assumed
    if has_keys and known and first >= SPARSE * cost.rate and len(plan.nodes) > 1:
        note = f"raw events are brought together by key: panes would leave {first / cost.rate:.2f} rows of each"
        return replace(physical, together="events", partitions=finer, notes=(note,))
    notes = [_pack_note(pack, plan)] if pack else []
    if len(levels) == 1:
        notes.append("nothing is brought together: one aggregation does it")
        return replace(physical, partitions=own, notes=tuple(notes))
    if has_keys and cost.keys >= KEYS_PER_PARTITION * partitions:
        number = max(partitions, min(finer, int(cost.keys / KEYS_PER_PARTITION)))
        notes.append(
            f"partial results are brought together by key: {cost.keys:,.0f} keys spread over {number} partitions"
        )
        return replace(physical, together="keys", partitions=own and number, notes=tuple(notes))
    longest = max(node.window.range for node in plan.nodes)
    chunk = max(longest, min(CHUNK_RANGES * longest, LONGEST_CHUNK))
    if pack:
        # No row lies in two chunks.
        chunk = -(-chunk // pack.window.range) * pack.window.range
    notes.append(f"partial results are brought together by {'key and ' if has_keys else ''}chunks of {readable(chunk)}")
    return replace(physical, together="chunks", chunk=chunk, partitions=own, notes=tuple(notes))


def _pack_note(pack: Pack, plan: Plan) -> str:
    inside = [plan.nodes[place].name for place in pack.inside]
    merged = f", where {', '.join(inside)} {'are' if len(inside) > 1 else 'is'} merged" if inside else ""
    return f"{pack.slots} panes of {readable(pack.pane.range)} are packed into a row{merged}"
