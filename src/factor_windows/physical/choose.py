"""The choice of a layout: how many levels, with or without pane rows, and how rows are shuffled, by rows processed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import ceil, inf

from factor_windows.algebra.growing import Growing
from factor_windows.algebra.pane_row import Packing, PaneRow
from factor_windows.algebra.session import Session
from factor_windows.algebra.slices import mean_length
from factor_windows.algebra.window import readable
from factor_windows.cost.spark import SparkCost
from factor_windows.physical.counting_work import CountingWork
from factor_windows.physical.layout import Distribution, Layout, layouts, layouts_of_panes
from factor_windows.physical.work import PARTITIONS, Work
from factor_windows.tree import Pass

CHUNK_RANGES = 64
"""The length of a chunk of time in longest ranges: 1/64 of the rows are then sent to two chunks."""
LONGEST_CHUNK = 10**18
"""The longest chunk in microseconds, so that no sum of times exceeds 64 bits."""
KEYS_PER_PARTITION = 2
"""From this many keys per partition on, hashing them spreads the work well enough, so no chunks are needed."""
KEYS_TO_SCAN = 16
"""From this many keys on, rows that are scanned go by key alone: they do not grow before, so few tasks are enough."""
MERGES_PER_PARTITION = 300_000
"""The most rows to merge in a partition, if more partitions help; other partition counts are left to Spark.

Rows grow there, which Spark does not foresee: it joins small partitions by their size before that."""
FINER = 4
"""The number of partitions is then at most this many times that of a session's shuffles."""
MANY_PARTITIONS = 128
"""And at most this many."""
WORTH_A_LEVEL = 1.05
"""The factor by which one more level must reduce work: shallow plans are easier to read and more predictable."""
MICRO_BATCH = 250_000
"""The least number of events assumed in a micro-batch of a stream; a fast stream has more."""
TRIGGER = 10_000_000
"""The time that a micro-batch of a fast stream is assumed to span, in microseconds."""
OPERATOR = 250e6
"""The price of a stateful operator in every micro-batch, whatever its rows, in nanoseconds: it commits its state."""
FEW_EVENTS = 200_000
"""Batches of fewer events are not looked at, and may be shuffled by key even if the number of keys is unknown."""
ASSUMED_EVENTS = 1e7
"""The number of events assumed in a batch, if unknown."""
DENSITIES = (3.0, 0.1)
"""Events of a key per instance of the shortest node to consider, if unknown, besides the assumed number."""


def choose_layout(
    plan: Pass,
    *,
    partitions: int = PARTITIONS,
    streaming: bool = False,
    packing: Packing | None = None,
    reuses: bool = False,
    scans: bool = False,
    from_panes: bool = False,
) -> Layout:
    """Choose the levels, lay them out, and choose how rows are shuffled, with pane rows if allowed.

    If shuffled rows can be reused, levels may show what they compute; if they can be scanned in order of time, long
    hopping windows may be made that way. With `from_panes`, the nodes that read the raw events are stored, and
    everything else is made from them.
    """
    cost = spark_cost(plan)
    if streaming:
        units = max(MICRO_BATCH / cost.rate, TRIGGER / cost.unit)
        cost = replace(cost, units=units, prices=replace(cost.prices, stage=OPERATOR))
    elif cost.units == inf:
        cost = replace(cost, units=ASSUMED_EVENTS / cost.rate)
    work = work_of(plan, cost, partitions)
    works: dict[int, float] = {}
    least: dict[int, Layout] = {}
    of_panes = layouts_of_panes(plan, scans=scans)
    for plain in of_panes if from_panes else layouts(plan, packing, reuses=reuses, scans=scans):
        if streaming and not _chains(plan, plain):
            continue
        if streaming:
            ways: Iterable[Layout] = [plain]
        elif from_panes and partitions == 1:
            ways = [replace(plain, distribution=Distribution.ONE_PARTITION)]
        else:
            ways = _distributions(plain, plan, partitions, cost)
        for layout in ways:
            if from_panes and layout.distribution is Distribution.EVENTS_BY_KEY:
                continue
            price, depth = work.price(layout), len(layout.levels)
            if price < works.get(depth, inf):
                works[depth], least[depth] = price, layout
    depth = min(works, key=lambda each: works[each] * WORTH_A_LEVEL ** (each - 1))
    chosen = least[depth]
    if streaming:
        return replace(chosen, notes=(_depth_note(depth, works),))
    notes = (_depth_note(depth, works), *_notes(chosen, work))
    return replace(chosen, partitions=_partitions(chosen, work), groups_text=work.groups_few(chosen), notes=notes)


def _chains(plan: Pass, layout: Layout) -> bool:
    """Say whether a stream's operators can follow each other: nothing can follow sessions, which are output late."""
    early = (place for level in layout.levels[:-1] for place in level.nodes)
    return not any(isinstance(plan.nodes[place].window, Session) for place in early)


def least_regret(
    plan: Pass,
    *,
    partitions: int,
    packing: Packing | None,
    reuses: bool = False,
    scans: bool = False,
    or_naive: bool = False,
) -> tuple[float, SparkCost]:
    """Return the nanoseconds that not knowing the density of events may cost, and the model with the density to assume.

    Each density has its best layout. The one chosen loses least to the others in its worst case. The unchanged query
    may be one of them.
    """
    cost = spark_cost(plan)
    shortest = min(float(mean_length(node.window)) for node in plan.nodes)
    events = cost.rate * cost.units
    rates = [cost.rate, *(each * cost.keys * cost.unit / shortest for each in DENSITIES)]
    models = [replace(cost, rate=rate, units=events / rate) for rate in rates]
    plains = layouts(plan, packing, reuses=reuses, scans=scans)
    options = [each for plain in plains for each in _distributions(plain, plan, partitions, cost)]
    works = [work_of(plan, model, partitions) for model in models]
    taken = [[work.price(each) * work.cost.units for work in works] for each in options]
    taken += [[work.naive_price * work.cost.units for work in works]] if or_naive else []
    taken += [[work.fan_out_price * work.cost.units for work in works]] if works[0].weights.states else []
    best = [min(taken, key=lambda times: times[place]) for place in range(len(models))]
    least = [times[place] for place, times in enumerate(best)]
    losses = [max(time - lowest for time, lowest in zip(times, least, strict=True)) for times in best]
    return min(losses), models[losses.index(min(losses))]


def spark_cost(plan: Pass) -> SparkCost:
    """Return the prices that a plan was made with or, if it used the paper's costs, Spark's for the same stream."""
    cost = plan.cost_model
    if isinstance(cost, SparkCost):
        return cost
    return SparkCost(cost.unit, float(cost.rate), keys=1.0, keyed=bool(plan.query.parsed_keys))


def work_of(plan: Pass, cost: SparkCost, partitions: int) -> Work:
    """Return the work of a plan's layouts."""
    return CountingWork(plan, cost, partitions) if cost.values else Work(plan, cost, partitions)


def _distributions(layout: Layout, plan: Pass, partitions: int, cost: SparkCost) -> Iterator[Layout]:
    """List the possible distributions of a layout's rows."""
    yield layout
    if plan.has_several_keys or layout.asides:
        return
    is_safe = not cost.assumed or cost.rate * cost.units < FEW_EVENTS
    if cost.keyed and is_safe and layout.pane_row is None and len(plan.nodes) > 1:
        yield replace(layout, distribution=Distribution.EVENTS_BY_KEY)
    if len(layout.levels) == 1:
        return
    is_scanned = any(level.scanned is not None for level in layout.levels)
    enough = KEYS_TO_SCAN if is_scanned else KEYS_PER_PARTITION * partitions
    if cost.keyed and (plan.query.has_sessions or cost.keys >= min(enough, KEYS_PER_PARTITION * partitions)):
        yield replace(layout, distribution=Distribution.BY_KEY)
        return
    if any(isinstance(node.window, Growing | Session) for node in plan.nodes):
        # Rows are assigned to instances that end later, in any chunk.
        return
    chunk = max(plan.longest, min(CHUNK_RANGES * plan.longest, LONGEST_CHUNK))
    if layout.pane_row:
        # No row is in two chunks.
        chunk = -(-chunk // layout.pane_row.window.range) * layout.pane_row.window.range
    yield replace(layout, distribution=Distribution.BY_KEY_AND_CHUNK, chunk=chunk)


def _partitions(layout: Layout, work: Work) -> int | None:
    """Return the number of partitions to shuffle to, if there is too much work for Spark's own number."""
    if layout.distribution in (Distribution.BY_LEVEL, Distribution.ONE_PARTITION):
        return None
    counts, partitions = work.count(layout), work.partitions
    done = counts["merge"] + (counts["update"] if layout.distribution is Distribution.EVENTS_BY_KEY else 0.0)
    needed = ceil(done * work.cost.units / MERGES_PER_PARTITION)
    most = max(partitions, min(FINER * partitions, MANY_PARTITIONS))
    return min(needed, most) if needed > partitions else None


def _notes(layout: Layout, work: Work) -> Iterator[str]:
    """Explain how rows are packed and shuffled, and why."""
    plan, cost = work.plan, work.cost
    if layout.pane_row:
        yield _pane_row_note(layout.pane_row, plan)
    match layout.distribution:
        case Distribution.EVENTS_BY_KEY:
            share = work.first_rows(layout) / cost.rate
            yield f"raw events are brought together by key: panes would leave {share:.2f} rows of each"
        case Distribution.BY_KEY:
            yield f"partial results are brought together by key: there are {cost.keys:,.0f} keys"
        case Distribution.BY_KEY_AND_CHUNK:
            keys = "key and " if plan.query.parsed_keys else ""
            yield f"partial results are brought together by {keys}chunks of {readable(layout.chunk)}"
        case Distribution.ONE_PARTITION:
            yield "partial results are so few that one task merges them"
        case Distribution.BY_LEVEL if len(layout.levels) > 1:
            yield "each level brings its rows together by itself"
            if layout.asides:
                yield "each level shows what it computes, and passes on only what later ones read"
        case _ if not plan.query.has_sessions:
            yield "nothing is brought together: one aggregation does it"
    if plan.query.has_sessions:
        yield f"sessions are found in rows that are sorted by {'key and ' if cost.keyed else ''}time"


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
