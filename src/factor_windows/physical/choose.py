"""The choice of a layout: how deep, in pane rows or not, and how rows are shuffled; by rows read and written."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, inf

from factor_windows.algebra.pane_row import PACKING_STAGES, Packing, PaneRow
from factor_windows.algebra.window import readable
from factor_windows.cost.spark import SparkCost
from factor_windows.physical.assigner import RAW
from factor_windows.physical.layout import Distribution, Layout, layouts
from factor_windows.tree import Pass

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
"""How many times as many partitions rows are shuffled into: they grow there, which Spark does not foresee."""
MERGES_PER_PARTITION = 100_000
"""How many rows must be merged in a partition to be worth a task of its own, where it is known how many there are."""
MANY_PARTITIONS = 128
"""From how many partitions on Spark's own number, and its merging of small ones, is left alone."""
WORTH_A_LEVEL = 1.05
"""How much less work a level more must leave: shallow plans are easier to read and surer to do well."""
WORTH_AN_OPERATOR = 1.7
"""The same for a third or later level on a stream, a stateful operator more that commits in every micro-batch."""
FAST_HASH_GROUPS = 65_536
"""How many groups Spark's fast hash table is taken to hold; updates of others take longer."""
SPARSE = 0.5
"""From how many rows per event on a first level shrinks nothing, and events are shuffled instead."""


def choose_layout(
    plan: Pass, *, partitions: int = PARTITIONS, streaming: bool = False, packing: Packing | None = None
) -> Layout:
    """Choose the depth, lay out the levels, and choose how rows are shuffled, in pane rows if these are allowed."""
    cost = spark_cost(plan)
    worth = WORTH_AN_OPERATOR if streaming else WORTH_A_LEVEL
    works: dict[int, float] = {}
    least: dict[int, Layout] = {}
    for layout in layouts(plan, packing):
        if not streaming:
            layout = _distribute(layout, plan, partitions, cost)
        if layout.pane_row and layout.distribution is Distribution.EVENTS_BY_KEY:
            continue
        counts = count_work(layout, plan, cost)
        work, depth = cost.prices.total(counts), len(layout.levels)
        if layout.partitions and cost.units < inf and _moves_panes(layout):
            few = ceil(counts["merge"] * cost.units / MERGES_PER_PARTITION)
            layout = replace(layout, partitions=max(1, min(layout.partitions, few)))
        if work < works.get(depth, inf):
            works[depth], least[depth] = work, layout
    depth = min(works, key=lambda each: works[each] * worth ** max(0, each - 2) * WORTH_A_LEVEL ** (each > 1))
    return replace(least[depth], notes=(_depth_note(depth, works), *least[depth].notes))


def spark_cost(plan: Pass) -> SparkCost:
    """Return the prices that a plan was made with, or, for one by the paper's costs, Spark's for the same stream."""
    cost = plan.cost_model
    if isinstance(cost, SparkCost):
        return cost
    return SparkCost(cost.unit, float(cost.rate), keys=1.0, keyed=bool(plan.query.parsed_keys))


def count_work(layout: Layout, plan: Pass, cost: SparkCost) -> dict[str, float]:
    """Count, per unit of time, what prices are for."""
    levels, row = layout.levels, layout.pane_row
    rows = [cost.rows_of(node.node) for node in plan.nodes]
    counts = dict.fromkeys(("update", "merge", "crowded", "edge"), 0.0)
    for each in (each for level in levels for each in level.assigners):
        read = cost.rate if each.source == RAW else rows[each.source]
        counts["update" if each.source == RAW else "merge"] += each.steps * read
        counts["edge"] += (len(each.edges) - 1) * read
    emitted = [_first_rows(layout, plan, cost), *(sum(rows[place] for place in level.nodes) for level in levels[1:])]
    if cost.keyed:
        counts["crowded"] = counts["update"]
    elif FAST_HASH_GROUPS < emitted[0] * cost.units < inf:
        counts["crowded"] = counts["update"] * (1 - FAST_HASH_GROUPS / (emitted[0] * cost.units))
    unpacked = sum(rows[place] for place in layout.unpacked(plan)) if row else 0.0
    match layout.distribution:
        case Distribution.EVENTS_BY_KEY:
            moves, moved, grouped = 1, cost.rate, sum(emitted)
        case Distribution.BY_LEVEL:
            moves, moved, grouped = len(levels), sum(emitted), sum(emitted[1:]) + unpacked
        case _:
            moves = min(len(levels), 2)
            moved, grouped = emitted[0] * moves, sum(emitted[1:]) + unpacked
    return counts | {
        "slot": cost.rate * row.columns if row else 0.0,
        "stage": (moves + 1 + PACKING_STAGES * bool(row)) / cost.units,
        "scan": cost.rate,
        "shuffle": moved,
        "group": grouped,
    }


def _first_rows(layout: Layout, plan: Pass, cost: SparkCost) -> float:
    """Count the rows that the first level emits per unit of time: those of its nodes, or pane rows."""
    nodes = [plan.nodes[place].node for place in layout.levels[0].nodes]
    if layout.pane_row is None:
        return sum(map(cost.rows_of, nodes))
    return cost.rows_of(replace(nodes[0], window=layout.pane_row.window))


def _moves_panes(layout: Layout) -> bool:
    return layout.distribution in (Distribution.BY_KEY, Distribution.BY_KEY_AND_CHUNK)


def _distribute(layout: Layout, plan: Pass, partitions: int, cost: SparkCost) -> Layout:
    """Choose how rows come to where they are needed."""
    finer = max(partitions, min(FINER * partitions, MANY_PARTITIONS))
    own = finer if finer <= MANY_PARTITIONS else None
    if plan.has_several_keys:
        note = "each level brings its rows together by itself: its nodes have different keys"
        return replace(layout, notes=(note,))
    has_keys = bool(plan.query.parsed_keys)
    first = _first_rows(layout, plan, cost)
    known = isinstance(plan.cost_model, SparkCost) and not cost.assumed
    if has_keys and known and first >= SPARSE * cost.rate and len(plan.nodes) > 1:
        note = f"raw events are brought together by key: panes would leave {first / cost.rate:.2f} rows of each"
        return replace(layout, distribution=Distribution.EVENTS_BY_KEY, partitions=finer, notes=(note,))
    notes = [_pane_row_note(layout.pane_row, plan)] if layout.pane_row else []
    if len(layout.levels) == 1:
        notes.append("nothing is brought together: one aggregation does it")
        return replace(layout, partitions=own, notes=tuple(notes))
    if has_keys and cost.keys >= KEYS_PER_PARTITION * partitions:
        number = max(partitions, min(finer, int(cost.keys / KEYS_PER_PARTITION)))
        notes.append(
            f"partial results are brought together by key: {cost.keys:,.0f} keys spread over {number} partitions"
        )
        return replace(layout, distribution=Distribution.BY_KEY, partitions=own and number, notes=tuple(notes))
    chunk = max(plan.longest, min(CHUNK_RANGES * plan.longest, LONGEST_CHUNK))
    if layout.pane_row:
        # No row lies in two chunks.
        chunk = -(-chunk // layout.pane_row.window.range) * layout.pane_row.window.range
    notes.append(f"partial results are brought together by {'key and ' if has_keys else ''}chunks of {readable(chunk)}")
    by_chunk = Distribution.BY_KEY_AND_CHUNK
    return replace(layout, distribution=by_chunk, chunk=chunk, partitions=own, notes=tuple(notes))


def _depth_note(depth: int, works: dict[int, float]) -> str:
    others = [
        f"{other} level{'s' * (other > 1)} would take {work / works[depth]:.2f} times"
        for other, work in sorted(works.items())
        if other != depth
    ]
    return f"{depth} level{'s' * (depth > 1)}" + (f": {' and '.join(others)} the work" if others else "")


def _pane_row_note(row: PaneRow, plan: Pass) -> str:
    premerged = [plan.nodes[place].name for place in row.premerged]
    merged = f", where {', '.join(premerged)} {'are' if len(premerged) > 1 else 'is'} merged" if premerged else ""
    return f"{row.slots} panes of {readable(row.pane.range)} are packed into a row{merged}"
