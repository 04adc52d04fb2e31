"""The choice of a layout: how deep, in pane rows or not, and how rows are shuffled; by rows read and written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil, inf

from factor_windows.algebra.graph import window_of
from factor_windows.algebra.growing import Growing
from factor_windows.algebra.pane_row import Packing, PaneRow
from factor_windows.algebra.slices import clocks_to_ask, mean_length
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
"""From how many keys for each partition on hashing them spreads the work well enough, so that no chunks are needed."""
PARTITIONS = 200
"""How many partitions Spark's shuffles have by default."""
ROWS_PER_PARTITION = 15_000
"""How many rows Spark leaves in a partition, at least, where it may merge small ones: they take a megabyte."""
MERGES_PER_PARTITION = 300_000
"""How many rows are merged in a partition at most, if more partitions help: rows grow there, which Spark, judging
partitions by their size before that and joining small ones, does not foresee. Others are left to Spark."""
FINER = 4
"""How many times as many partitions as a session's shuffles have there are at most then."""
MANY_PARTITIONS = 128
"""And how many at most."""
WORTH_A_LEVEL = 1.05
"""How much less work a level more must leave: shallow plans are easier to read and surer to do well."""
WORTH_AN_OPERATOR = 1.7
"""The same for a third or later level on a stream, a stateful operator more that commits in every micro-batch."""
FAST_HASH_GROUPS = 65_536
"""How many groups Spark's fast hash table is taken to hold; updates of others take longer."""
ASSUMED_EVENTS = 1e7
"""How many events a batch is taken to have, if nobody knows."""
STAGES = {Distribution.BY_KEY: 1.0, Distribution.BY_KEY_AND_CHUNK: 3.0}
"""What it takes to plan a move of partial results, and to generate its code, in stages: most of it in a first run."""
STAGES_TO_PACK = 1.5
"""The same for pane rows."""
DENSITIES = (3.0, 0.1)
"""How many events of a key an instance of the shortest node may have, if nobody knows, beside as many as assumed."""
MOVES_TO_SORT = 2.4
"""What it takes to move a row of partial results once more, and to sort it there, beyond a plain move."""


def choose_layout(
    plan: Pass, *, partitions: int = PARTITIONS, streaming: bool = False, packing: Packing | None = None
) -> Layout:
    """Choose the depth, lay out the levels, and choose how rows are shuffled, in pane rows if these are allowed."""
    cost = spark_cost(plan)
    if not streaming and cost.units == inf:
        cost = replace(cost, units=ASSUMED_EVENTS / cost.rate)
    worth = WORTH_AN_OPERATOR if streaming else WORTH_A_LEVEL
    works: dict[int, float] = {}
    least: dict[int, Layout] = {}
    for plain in layouts(plan, packing):
        for layout in [plain] if streaming else _distributions(plain, plan, partitions, cost):
            work, depth = cost.prices.total(count_work(layout, plan, cost, partitions)), len(layout.levels)
            if work < works.get(depth, inf):
                works[depth], least[depth] = work, layout
    depth = min(works, key=lambda each: works[each] * worth ** max(0, each - 2) * WORTH_A_LEVEL ** (each > 1))
    chosen = least[depth]
    if streaming:
        return replace(chosen, notes=(_depth_note(depth, works),))
    notes = (_depth_note(depth, works), *_notes(chosen, plan, cost))
    return replace(chosen, partitions=_partitions(chosen, plan, cost, partitions), notes=notes)


def least_regret(
    plan: Pass, *, partitions: int, packing: Packing | None, or_naive: bool = False
) -> tuple[float, SparkCost]:
    """Return how many nanoseconds not knowing how dense events are may cost, and the density to take them for.

    Each density has its best layout. That one is taken which loses least, against the best, where it loses most. The
    query as it is may be one of them.
    """
    cost = spark_cost(plan)
    shortest = min(float(mean_length(node.window)) for node in plan.nodes)
    events = cost.rate * cost.units
    rates = [cost.rate, *(each * cost.keys * cost.unit / shortest for each in DENSITIES)]
    models = [replace(cost, rate=rate, units=events / rate) for rate in rates]
    options = [each for plain in layouts(plan, packing) for each in _distributions(plain, plan, partitions, cost)]
    counts = [[count_work(each, plan, model, partitions) for model in models] for each in options]
    counts += [[count_naive_work(plan, model) for model in models]] if or_naive else []
    taken = [
        [model.prices.total(each) * model.units for each, model in zip(row, models, strict=True)] for row in counts
    ]
    best = [min(each) for each in zip(*taken, strict=True)]
    losses = [[time - least for time, least in zip(each, best, strict=True)] for each in taken]
    least = min(losses, key=max)
    return max(least), models[least.index(min(least))]


def spark_cost(plan: Pass) -> SparkCost:
    """Return the prices that a plan was made with, or, for one by the paper's costs, Spark's for the same stream."""
    cost = plan.cost_model
    if isinstance(cost, SparkCost):
        return cost
    return SparkCost(cost.unit, float(cost.rate), keys=1.0, keyed=bool(plan.query.parsed_keys))


def count_work(layout: Layout, plan: Pass, cost: SparkCost, partitions: int = PARTITIONS) -> dict[str, float]:
    """Count, per unit of time, what prices are for."""
    levels, row = layout.levels, layout.pane_row
    rows = [cost.rows_of(node.node) for node in plan.nodes]
    counts = dict.fromkeys(("update", "merge", "crowded", "edge", "clock"), 0.0)
    reads = []
    for level in levels:
        read = [(each, cost.rate if each.source == RAW else rows[each.source]) for each in level.assigners]
        reads.append(sum(each.steps * many for each, many in read))
        counts["edge"] += sum(max(0, len(each.edges) - 1) * many for each, many in read)
        asking = ((each, many * each.steps) for each, many in read if not each.passes_through)
        counts["clock"] += sum(clocks_to_ask(plan.nodes[each.target].window) * many for each, many in asking)
    counts["update"], counts["merge"] = reads[0], sum(reads[1:])
    counts["state"] = (plan.workload.states - 1) * reads[0]
    counts["explode"] = cost.rate if sum(each.steps for each in levels[0].assigners) > 1 else 0.0
    emitted = [_first_rows(layout, plan, cost), *(sum(rows[place] for place in level.nodes) for level in levels[1:])]
    if cost.keyed:
        counts["crowded"] = counts["update"]
    elif FAST_HASH_GROUPS < emitted[0] * cost.units < inf:
        counts["crowded"] = counts["update"] * (1 - FAST_HASH_GROUPS / (emitted[0] * cost.units))
    match layout.distribution:
        case Distribution.EVENTS_BY_KEY:
            moves, moved = 1, cost.rate
        case Distribution.BY_LEVEL:
            # Each partition has partial results of most instances, and sends them all.
            spread = max(2.0, min(partitions, emitted[0] * cost.units / ROWS_PER_PARTITION))
            partial = (min(read, spread * made) for read, made in zip(reads[1:], emitted[1:], strict=True))
            moves, moved = len(levels), emitted[0] + sum(partial)
        case _:
            moves, moved = 2, emitted[0] * (2 + MOVES_TO_SORT)
    unpacked = sum(rows[place] for place in layout.unpacked(plan)) if row else 0.0
    fixed = moves + 1 + STAGES.get(layout.distribution, 0.0) + STAGES_TO_PACK * bool(row)
    return counts | {
        "slot": cost.rate * row.columns if row else 0.0,
        "stage": fixed / cost.units,
        "scan": cost.rate,
        "shuffle": moved,
        "group": sum(emitted) + unpacked,
    }


def count_naive_work(plan: Pass, cost: SparkCost) -> dict[str, float]:
    """Count the same for the query as it is: each window from the events, in a branch of a union of its own."""
    windows = [window_of(output.node) for output in plan.outputs]
    rows = sum(cost.rows_of(output.node) for output in plan.outputs)
    instances = [-(-window.range // window.slide) for window in windows]
    updates = cost.rate * sum(instances)
    return {
        "scan": cost.rate * len(windows),
        "update": updates,
        "explode": cost.rate * sum(each > 1 for each in instances),
        "window": updates,
        # Nothing is exploded on the way, which makes hash tables of keys cheaper to reach.
        "crowded": updates / 2 if cost.keyed else 0.0,
        "state": (plan.workload.states - 1) * updates,
        "shuffle": rows,
        "group": rows,
        "stage": len(windows) / cost.units,
    }


def _first_rows(layout: Layout, plan: Pass, cost: SparkCost) -> float:
    """Count the rows that the first level emits per unit of time: those of its nodes, or pane rows."""
    nodes = [plan.nodes[place].node for place in layout.levels[0].nodes]
    if layout.pane_row is None:
        return sum(map(cost.rows_of, nodes))
    return cost.rows_of(replace(nodes[0], window=layout.pane_row.window))


def _distributions(layout: Layout, plan: Pass, partitions: int, cost: SparkCost) -> Iterator[Layout]:
    """List the ways in which rows may come to where they are needed."""
    yield layout
    if plan.has_several_keys:
        return
    if cost.keyed and not cost.assumed and layout.pane_row is None and len(plan.nodes) > 1:
        yield replace(layout, distribution=Distribution.EVENTS_BY_KEY)
    if len(layout.levels) == 1:
        return
    if cost.keyed and cost.keys >= KEYS_PER_PARTITION * partitions:
        yield replace(layout, distribution=Distribution.BY_KEY)
        return
    if any(isinstance(node.window, Growing) for node in plan.nodes):
        # Rows are given to instances that end later, in any chunk.
        return
    chunk = max(plan.longest, min(CHUNK_RANGES * plan.longest, LONGEST_CHUNK))
    if layout.pane_row:
        # No row lies in two chunks.
        chunk = -(-chunk // layout.pane_row.window.range) * layout.pane_row.window.range
    yield replace(layout, distribution=Distribution.BY_KEY_AND_CHUNK, chunk=chunk)


def _partitions(layout: Layout, plan: Pass, cost: SparkCost, partitions: int) -> int | None:
    """Say into how many partitions rows are moved, where so much is done with them that Spark's number is too few."""
    if layout.distribution is Distribution.BY_LEVEL:
        return None
    counts = count_work(layout, plan, cost, partitions)
    done = counts["merge"] + (counts["update"] if layout.distribution is Distribution.EVENTS_BY_KEY else 0.0)
    needed = ceil(done * cost.units / MERGES_PER_PARTITION)
    most = max(partitions, min(FINER * partitions, MANY_PARTITIONS))
    return min(needed, most) if needed > partitions else None


def _notes(layout: Layout, plan: Pass, cost: SparkCost) -> Iterator[str]:
    """Say how rows are packed and shuffled, and why."""
    if layout.pane_row:
        yield _pane_row_note(layout.pane_row, plan)
    match layout.distribution:
        case Distribution.EVENTS_BY_KEY:
            share = _first_rows(layout, plan, cost) / cost.rate
            yield f"raw events are brought together by key: panes would leave {share:.2f} rows of each"
        case Distribution.BY_KEY:
            yield f"partial results are brought together by key: there are {cost.keys:,.0f} keys"
        case Distribution.BY_KEY_AND_CHUNK:
            keys = "key and " if plan.query.parsed_keys else ""
            yield f"partial results are brought together by {keys}chunks of {readable(layout.chunk)}"
        case Distribution.BY_LEVEL if len(layout.levels) > 1:
            yield "each level brings its rows together by itself"
        case _:
            yield "nothing is brought together: one aggregation does it"


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
