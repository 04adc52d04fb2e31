"""A plan as levels: one aggregation for each step of depth, whatever the number of windows.

Which nodes a level computes, how a row of the level above feeds them, and where rows are brought together. Decides by
rows read and written, and says why; knows nothing of pyspark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from factor_windows.cost import CostModel, SparkCost
from factor_windows.plan import Plan
from factor_windows.window import Window, readable

FLAT_FEEDS = 256
"""Up to how many instances a row's fan-out is written out one by one; beyond, steps are counted at run time."""
ALWAYS = 2**62
"""A reach that no row exceeds."""
RAW = -1
"""The number of the raw events where nodes go by their place in the plan."""
EVENT = Window(range=1, slide=1)
"""A raw event seen as an instance one microsecond long: the fan-out from events then follows the same rule."""
CHUNK_RANGES = 64
"""How many times the longest range a chunk of time is long: 1/64 of the rows are then sent to two chunks."""
LONGEST_CHUNK = 10**18
"""So that no sum of times leaves 64 bits, in microseconds."""
KEYS_PER_PARTITION = 2
"""From how many keys for each partition on hashing them spreads the work well enough, so that no chunks are needed."""
PARTITIONS = 200
"""How many partitions Spark's shuffles have by default."""
FINER = 4
"""How many times as many partitions rows are brought together in: they grow there, which Spark does not foresee."""
MANY_PARTITIONS = 128
"""From how many partitions on Spark's own number, and its merging of small ones, is left alone."""
WORTH_A_LEVEL = 1.1
"""A deeper plan is taken only if a shallower one would do this many times its work: each level has its own overhead."""
WORTH_AN_OPERATOR = 2.0
"""The same for streams, where a level is a stateful operator that commits its state in every micro-batch."""
MOST_LEVELS = 6
"""How many levels are tried at most: shown rows pass through all of them, so more never paid."""
SPARSE = 0.5
"""From how many rows per event on a first level shrinks nothing, and events are brought together instead."""


@dataclass(frozen=True, slots=True)
class Feed:
    """The instances of one node that a row of another feeds.

    A row that starts at p feeds those at f, f - slide, f - 2 * slide, ..., in all `steps` of them, where
    f = p - pmod(p - offset, slide).
    """

    source: int
    target: int
    slide: int
    offset: int
    steps: int
    reach: int | None = None
    """The row must start at most this long after the instance does; `None` where that is always so."""


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
    """Bring nothing together (one level), or partial results by keys or by keys and chunk, or raw events by keys."""
    chunk: int
    """The length of a chunk in microseconds, for `chunks`."""
    partitions: int | None
    """Into how many partitions rows are brought together; `None` leaves it to Spark, which merges small ones."""
    notes: tuple[str, ...]
    """Why it runs this way, a sentence for each choice."""


def compile_levels(plan: Plan, *, partitions: int = PARTITIONS, streaming: bool = False) -> Physical:
    """Choose the depth, lay out the levels, and choose how rows are brought together."""
    worth = WORTH_AN_OPERATOR if streaming else WORTH_A_LEVEL
    depths = _depths(plan)
    deepest = min(MOST_LEVELS, max(depths.values()))
    options = [_flattened(plan, depths, deepest) for deepest in range(1, deepest + 1)]
    priced = [(_work(levels, plan), len(levels), levels) for levels in options]
    least = min(work for work, _, _ in priced)
    work, _, levels = next(option for option in priced if option[0] <= worth * least)
    depth = _depth_note(work, levels, priced)
    if streaming:
        return Physical(levels, "nothing", 0, None, (depth,))
    finer = max(partitions, min(FINER * partitions, MANY_PARTITIONS))
    together, chunk, note = _together(plan, levels, finer)
    own = finer if finer <= MANY_PARTITIONS or together == "events" else None
    return Physical(levels, together, chunk, own, (depth, note))


def _depths(plan: Plan) -> dict[str | None, int]:
    """Count for each node how many steps it is away from the raw events."""
    depths: dict[str | None, int] = {None: 0}
    for node in plan.nodes:
        depths[node.name] = depths[node.parent] + 1
    return depths


def _flattened(plan: Plan, depths: dict[str | None, int], deepest: int) -> tuple[Level, ...]:
    """Lay out the levels of a plan whose deeper nodes read their ancestor at the depth just above the deepest."""
    number = {node.name: position for position, node in enumerate(plan.nodes)}
    parents = {node.name: node.parent for node in plan.nodes}
    reads: dict[int, int] = {}
    for node in plan.nodes:
        if not node.exposed and depths[node.name] >= deepest:
            continue
        above = node.parent
        while above is not None and depths[above] >= deepest:
            above = parents[above]
        reads[number[node.name]] = RAW if above is None else number[above]
    depth: dict[int, int] = {RAW: 0}
    for position, above_position in reads.items():
        depth[position] = depth[above_position] + 1
    levels = []
    last = max(depth.values())
    for step in range(1, last + 1):
        new = [position for position in reads if depth[position] == step]
        kept = [
            position
            for position in reads
            if depth[position] < step and _still_needed(position, step, plan, reads, depth)
        ]
        feeds = [_feed(plan, reads[position], position) for position in new]
        passed = [Feed(position, position, slide=1, offset=0, steps=1) for position in kept]
        levels.append(Level(nodes=(*kept, *new), feeds=(*passed, *feeds)))
    return tuple(levels)


def _still_needed(position: int, step: int, plan: Plan, reads: dict[int, int], depth: dict[int, int]) -> bool:
    """Say whether a node from above must pass through a level: it is shown, or a deeper node reads it."""
    return plan.nodes[position].exposed or any(
        above == position and depth[reader] > step for reader, above in reads.items()
    )


def _feed(plan: Plan, source: int, target: int) -> Feed:
    """Say which instances of a node one row of its parent feeds: those that hold the whole of the row's instance."""
    child = plan.nodes[target].window
    parent = EVENT if source == RAW else plan.nodes[source].window
    spare = child.range - parent.range
    steps = spare // child.slide + 1
    latest = (steps - 1) * child.slide + child.slide - parent.slide
    return Feed(source, target, child.slide, child.offset, steps, None if latest <= spare else spare)


def _work(levels: tuple[Level, ...], plan: Plan) -> float:
    """Count the rows that all levels read and write per unit of time."""
    cost = plan.cost_model
    total = 0.0
    for level in levels:
        for feed in level.feeds:
            total += feed.steps * (
                float(cost.rate) if feed.source == RAW else _rows(plan.nodes[feed.source].window, cost)
            )
        total += sum(_rows(plan.nodes[position].window, cost) for position in level.nodes)
    return total


def _rows(window: Window, cost: CostModel) -> float:
    """Count the rows that a window emits per unit of time."""
    keys = cost.keys if isinstance(cost, SparkCost) else 1.0
    return keys * cost.unit / window.slide * float(cost.filled(window))


def _depth_note(work: float, levels: tuple[Level, ...], priced: list[tuple[float, int, tuple[Level, ...]]]) -> str:
    others = [
        f"{count} level{'s' * (count > 1)} would take {other / work:.2f} times"
        for other, count, _ in priced
        if count != len(levels)
    ]
    return f"{len(levels)} level{'s' * (len(levels) > 1)}" + (f": {' and '.join(others)} the work" if others else "")


def _together(
    plan: Plan, levels: tuple[Level, ...], partitions: int
) -> tuple[Literal["nothing", "keys", "chunks", "events"], int, str]:
    cost = plan.cost_model
    has_keys = bool(plan.query.parsed_keys)
    first = sum(_rows(plan.nodes[position].window, cost) for position in levels[0].nodes)
    known = isinstance(cost, SparkCost) and not cost.assumed
    if has_keys and known and first >= SPARSE * float(cost.rate) and len(plan.nodes) > 1:
        return (
            "events",
            0,
            f"raw events are brought together by key: panes would leave {first / float(cost.rate):.2f} rows of each",
        )
    if len(levels) == 1:
        return "nothing", 0, "nothing is brought together: one aggregation does it"
    if has_keys and isinstance(cost, SparkCost) and cost.keys >= KEYS_PER_PARTITION * partitions:
        spread = f"{cost.keys:,.0f} keys spread over {partitions} partitions"
        return "keys", 0, f"partial results are brought together by key: {spread}"
    longest = max(node.window.range for node in plan.nodes)
    chunk = max(longest, min(CHUNK_RANGES * longest, LONGEST_CHUNK))
    return (
        "chunks",
        chunk,
        f"partial results are brought together by {'key and ' if has_keys else ''}chunks of {readable(chunk)}",
    )
