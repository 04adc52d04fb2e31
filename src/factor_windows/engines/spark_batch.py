"""A physical plan on a batch DataFrame: each step is an operator."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import reduce
from math import inf
from typing import Any

from pyspark.sql import DataFrame

from factor_windows import physical
from factor_windows.algebra.session import Session
from factor_windows.algebra.window import Window
from factor_windows.cost.spark import SparkCost
from factor_windows.cost.statistics import Look
from factor_windows.engines.spark_columns import SparkColumns, with_columns
from factor_windows.errors import OptionError
from factor_windows.functions.guards import in_order
from factor_windows.functions.table import State
from factor_windows.functions.weights import Weights
from factor_windows.physical import PhysicalPlan, Target
from factor_windows.physical.choose import FEW_EVENTS, least_regret, spark_cost, work_of
from factor_windows.physical.counting_work import CountingWork
from factor_windows.physical.layout import Layout
from factor_windows.physical.steps import (
    Aside,
    Chunk,
    FindSessions,
    Group,
    Repartition,
    ScanBlocks,
    Step,
    Unpack,
    slot_column,
)
from factor_windows.physical.target import Values
from factor_windows.physical.terms import look_up
from factor_windows.physical.work import PARTITIONS
from factor_windows.plan import Plan
from factor_windows.query import Query
from factor_windows.search.plan_request import plan_request
from factor_windows.spark.absent import check_absent
from factor_windows.spark.look import look
from factor_windows.spark.messages import check_events, spark_says
from factor_windows.spark.naive import naive
from factor_windows.spark.result import apply_post_aggregation, note_windows
from factor_windows.spark.settings import setting, shuffle_partitions
from factor_windows.spark.typed import has_maps
from factor_windows.spark.types import check_time, microseconds, packing_of
from factor_windows.tree import Pass

HEAD_NANOSECONDS = 250_000_000
"""The price of a look at the head of events, in nanoseconds: 0.1 s, and about 0.5 s in a first run."""
VERY_FEW_EVENTS = 20_000
"""With fewer events than this, their density does not matter."""
OWN_QUERY = "one window has nothing to share: your query runs as it is"
COUNTS_VALUES = "values are counted: each row of partial results is for one value"
VALUES_DIFFER = "values repeat too little to be counted: every window is computed from the raw events"
VALUES_UNKNOWN = "nobody knows how often values repeat: every window is computed from the raw events"
STATES_TOO_HEAVY = "sketches and lists of so few events cost more than they save: every window is from the raw events"
OWN_QUERIES = "the windows have too little to share for these events: your query runs as it is"


def run(plan: Pass, events: DataFrame, *, looks: bool = True) -> DataFrame:
    """Compute a plan over a batch of events; with `looks`, look at them first unless their statistics are known."""
    if is_own_query(plan):
        return apply_post_aggregation(plan.query, _own_query(plan.query, events))
    on_spark = SparkColumns(plan.query, events, text_as_bytes=True, counts_values=True)
    if looks:
        plan, _ = _fit(plan, on_spark, events)
    return _computed(plan, on_spark, events, or_naive=looks)


def _computed(plan: Pass, on_spark: SparkColumns, events: DataFrame, *, or_naive: bool = True) -> DataFrame:
    compiled = compile_for(plan, on_spark)
    if or_naive and is_naive_cheaper(plan, compiled, on_spark):
        return apply_post_aggregation(plan.query, _own_query(plan.query, events))
    return apply_post_aggregation(plan.query, render(compiled, on_spark, events))


def explained(plan: Pass, events: DataFrame) -> PhysicalPlan:
    """Return the physical plan that `run` renders for these events."""
    check_events(events)
    if events.isStreaming:
        raise OptionError("these events are a stream; explain(streaming=True) says how a plan runs on one")
    events = with_columns(events, plan.workload.derived)
    on_spark = SparkColumns(plan.query, events, text_as_bytes=True, counts_values=True)
    note = OWN_QUERY
    if not is_own_query(plan):
        plan, seen = _fit(plan, on_spark, events)
        note = f"a look at the events: {seen}" if seen else ""
    compiled = compile_for(plan, on_spark)
    layout = compiled.layout
    if note != OWN_QUERY and is_naive_cheaper(plan, compiled, on_spark):
        layout = replace(layout, notes=(OWN_QUERIES, *layout.notes))
    return replace(compiled, layout=replace(layout, notes=(*filter(None, [note]), *layout.notes)))


def is_own_query(plan: Pass) -> bool:
    """Say whether Spark runs the query unchanged: a single window over the events has nothing to share.

    First and last values are an exception: Spark takes them in any order, a plan in order of time.
    """
    return len(plan.query.windows) == len(plan.nodes) == 1 and _can_be_naive(plan)


def is_naive_cheaper(plan: Pass, compiled: PhysicalPlan, on_spark: SparkColumns) -> bool:
    """Say whether the unchanged query costs less than any plan, for events that were looked at: few windows may."""
    cost, values = spark_cost(plan), compiled.target.values
    if cost.units == inf or not on_spark.types.shared or not _can_be_naive(plan):
        return False
    work = work_of(plan, cost, _partitions(on_spark))
    if values.shared:
        return work.is_naive_better(compiled.layout)
    return work.is_naive_better_than_a_scan


def _can_be_naive(plan: Pass) -> bool:
    """Say whether Spark's own query gives the plan's result: all aggregates of all windows, under their own names."""
    query = plan.query
    by_time = any(each.function.by_time for each in query.parsed_aggregates)
    is_whole = not query.asked and [each.names for each in plan.outputs] == list(query.names.values())
    is_whole = is_whole and len(set(query.window_names)) == len(query.windows)
    is_sparks = all(
        isinstance(window, Session) or (isinstance(window, Window) and window.clock is None) for window in query.windows
    )
    # Expressions over several calls use internal names for these.
    return is_whole and is_sparks and not plan.workload.derived and not by_time and not query.formulas


def _own_query(query: Query, events: DataFrame) -> DataFrame:
    check_absent(query, events)
    with spark_says("Spark cannot read the query"):
        check_time(query, events)
        return note_windows(query, naive(query, events))


def plan_and_run(plan: Plan, events: DataFrame) -> DataFrame:
    """Compute one query, planned again after a quick look at a batch, unless its statistics are already known."""
    options, first = plan.request.options, plan.passes[0]
    if events.isStreaming or options.events < inf or is_own_query(first):
        result: DataFrame = plan.run(events)
        return result
    on_spark = SparkColumns(first.query, events, text_as_bytes=True, counts_values=True)
    seen, model = look_at(first, on_spark, events)
    if (model.rate, model.keys, model.values) == tuple(
        getattr(spark_cost(first), name) for name in ("rate", "keys", "values")
    ):
        # A search depends on how dense events are, not on how many there are.
        return _computed(replace(first, cost_model=model), on_spark, events)
    known = replace(options, events=seen.events, values=seen.values or options.values)
    if options.rate is None and seen.rate is not None:
        known = replace(known, rate=seen.rate, unit="1 second", keys=seen.keys)
    elif options.rate is None:
        known = replace(known, rate=model.rate, unit=timedelta(microseconds=model.unit), keys=int(model.keys))
    fitting = plan_request(replace(plan.request, options=known)).passes[0]
    return _computed(fitting, on_spark, events)


def _fit(plan: Pass, on_spark: SparkColumns, events: DataFrame) -> tuple[Pass, Look | None]:
    """Price the ways to run a plan after a quick look at the events, unless their statistics are already known."""
    if spark_cost(plan).units < inf and not spark_cost(plan).guessed:
        return plan, None
    seen, model = look_at(plan, on_spark, events)
    return replace(plan, cost_model=model), seen


def look_at(plan: Pass, on_spark: SparkColumns, events: DataFrame) -> tuple[Look, SparkCost]:
    """Take a quick look at events, at their head only if it affects the choice; return the look and the cost model."""
    cost, query = spark_cost(plan), plan.query
    is_given = isinstance(plan.cost_model, SparkCost) and not cost.assumed
    model = cost
    values = [key.parts for key in on_spark.types.value_keys] if cost.guessed else []

    def is_worth_a_head(count: float) -> bool:
        nonlocal model
        if values:
            work = CountingWork(plan, cost.seen(Look(count)), _partitions(on_spark))
            return count == inf or work.fan_out_price * work.cost.units > 2 * HEAD_NANOSECONDS
        if is_given or count == inf:
            return not is_given
        if count < VERY_FEW_EVENTS:
            return False
        counted = replace(plan, cost_model=cost.seen(Look(count)))
        packing, partitions = packing_of(query, on_spark.types), _partitions(on_spark)
        reuses, or_naive, scans = _reuses(on_spark), _can_be_naive(plan), not _unsorted(on_spark)
        regret, model = least_regret(
            counted, partitions=partitions, packing=packing, reuses=reuses, scans=scans, or_naive=or_naive
        )
        is_heavy = Weights.of(query.parsed_aggregates).states > 0
        return (is_heavy or count >= FEW_EVENTS) and regret > HEAD_NANOSECONDS

    known = events.where(in_order(query.where)) if query.where else events
    fields = zip(query.parsed_keys, on_spark.types.keys, strict=True)
    keys = [key.sql for key, field in fields if not has_maps(field.dataType)]
    time = microseconds(query.parsed_time.sql, on_spark.types.time)
    seen = look(known, time, keys, is_worth_a_head=is_worth_a_head, values=values)
    if is_given and values:
        return seen, cost.seen(replace(seen, rate=None, keys=None))
    return seen, cost.seen(seen) if seen.rate is not None or model is cost else model


def compile_for(
    plan: Pass,
    on_spark: SparkColumns,
    *,
    values: Values | None = None,
    layout: Layout | None = None,
    **more: Any,
) -> PhysicalPlan:
    """Compile a plan for the types of some events and the settings of their session.

    The options are other `values`, a `layout`, and `more` properties of the target.
    """
    packing = packing_of(plan.query, on_spark.types)
    names, values = on_spark.names, values or on_spark.types.values
    target = Target(
        names, values, _partitions(on_spark), packing, _reuses(on_spark), unsorted=_unsorted(on_spark), **more
    )
    compiled = physical.compile(plan, target, layout)
    if target.keeps_panes or layout is not None:
        return compiled
    return _count_or_not(plan, compiled) if values.keys else _merge_or_not(plan, compiled)


def _count_or_not(plan: Pass, counting: PhysicalPlan) -> PhysicalPlan:
    """Count values as a plan says, unless Spark's own functions are cheaper, or it is unknown whether values repeat."""
    cost, partitions = spark_cost(plan), counting.target.partitions or PARTITIONS
    compiled, note = counting, COUNTS_VALUES
    if not CountingWork(plan, cost, partitions).pays(counting.layout):
        note = VALUES_UNKNOWN if cost.guessed else VALUES_DIFFER
        target = replace(counting.target, values=counting.target.values.from_events)
        compiled = physical.compile(replace(plan, cost_model=cost.of_instances), target)
    return replace(compiled, layout=replace(compiled.layout, notes=(note, *compiled.layout.notes)))


def _unsorted(on_spark: SparkColumns) -> tuple[str, ...]:
    """List the keys that Spark cannot sort."""
    types = on_spark.types.keys
    return tuple(name for name, key in zip(on_spark.names.keys, types, strict=True) if has_maps(key.dataType))


def _merge_or_not(plan: Pass, merging: PhysicalPlan) -> PhysicalPlan:
    """Merge states as a plan says, unless they are so heavy that Spark's own functions, from events, are cheaper."""
    cost = spark_cost(plan)
    work = work_of(plan, cost, merging.target.partitions or PARTITIONS)
    is_known = cost.units < inf and merging.target.values.shared
    if not is_known or not work.weights.states or work.price(merging.layout) <= work.fan_out_price:
        return merging
    compiled = physical.compile(plan, replace(merging.target, values=merging.target.values.from_events))
    return replace(compiled, layout=replace(compiled.layout, notes=(STATES_TOO_HEAVY, *compiled.layout.notes)))


def _partitions(on_spark: SparkColumns) -> int:
    return shuffle_partitions(on_spark.session) or PARTITIONS


def _reuses(on_spark: SparkColumns) -> bool:
    return setting(on_spark.session, "spark.sql.exchange.reuse", "true") == "true"


def render(compiled: PhysicalPlan, on_spark: SparkColumns, events: DataFrame) -> DataFrame:
    """Render each step as an operator."""
    keeps_text, shown = compiled.layout.groups_text, []
    rows = on_spark.scan(compiled.scan, events, keeps_text=keeps_text)
    is_last = len(compiled.layout.levels) == 1
    for step in compiled.steps[1:-1]:
        if isinstance(step, Aside):
            # Spark shuffles once for all that reads the same rows, and a union keeps each branch unchanged.
            shown.append(on_spark.show(step.show, on_spark.shown_as(step.node, rows)))
        else:
            rows = take(step, rows, on_spark, spread=True)
            if keeps_text and not is_last and isinstance(step, Group):
                rows, keeps_text = on_spark.with_grouped_keys(rows), False
    return on_spark.noted(reduce(DataFrame.union, [*shown, on_spark.show(compiled.show, rows)]))


def take(step: Step, rows: DataFrame, on_spark: SparkColumns, *, spread: bool = False) -> DataFrame:
    """Apply a step to rows; where groups are `spread`, a group may add a column that nothing reads."""
    match step:
        case Group():
            return on_spark.group(step, rows, step.by, spread=spread)
        case FindSessions():
            return on_spark.in_sessions(step, rows)
        case ScanBlocks():
            return on_spark.in_blocks(step, rows)
        case Chunk():
            after = f"pmod({step.start}{f' - {step.offset}L' if step.offset else ''}, {step.length})"
            own, near = f"{step.start} - {after}", f"{after} < {step.reach}"
            chunks = f"CASE WHEN {near} THEN array({own}, {own} - {step.length}) ELSE array({own}) END"
            return rows.selectExpr("*", f"explode({chunks}) AS {step.column}")
        case Repartition(by=by, partitions=partitions, sort=sort):
            if not by:
                return rows.coalesce(partitions or 1)
            # Without a number, Spark chooses one, and joins partitions that turn out small.
            moved = rows.repartition(partitions, *by) if partitions else rows.repartition(*by)
            return moved.sortWithinPartitions(*sort) if sort else moved
        case Unpack():
            return _unpacked(step, rows, on_spark)
    return on_spark.row(step, rows)


def _unpacked(step: Unpack, rows: DataFrame, on_spark: SparkColumns) -> DataFrame:
    """Explode the slots, and the instances that are merged from several of them."""
    words, pane = on_spark.words, step.pane_row.pane.range

    def constant(values: list[int], type: str) -> str:
        return words.term(look_up(step.slot, "slot", values, type))

    def array(state: State) -> str:
        merged = (_merged(state.fold, [slot_column(state.name, slot) for slot in slots]) for _, slots in step.entries)
        return f"array({', '.join(merged)})"

    first, *more = step.states
    kept = [*step.keeps, step.start, step.filled, *(f"{array(state)} AS {state.name}" for state in more)]
    exploded = rows.selectExpr(*kept, f"posexplode({array(first)}) AS ({step.slot}, {first.name})")
    masks = constant([sum(1 << slot for slot in slots) for _, slots in step.entries], "int")
    filled = exploded.where(f"{step.filled} & {masks} <> 0")
    lags = constant([slots.start * pane for _, slots in step.entries], "bigint")
    shown = [*step.keeps, f"{step.start} + {lags} AS {step.start}"]
    shown += [f"{constant([place for place, _ in step.entries], 'int')} AS {step.node}", first.name]
    shown += [f"element_at({state.name}, {step.slot} + 1) AS {state.name}" for state in more]
    return filled.selectExpr(*shown)


def _merged(fold: str, values: list[str]) -> str:
    """Merge the states of several slots, some of which may be null, as an aggregate would."""
    if len(values) == 1:
        return values[0]
    listed = ", ".join(values)
    if fold == "add":
        added = " + ".join(f"coalesce({value}, 0)" for value in values)
        return f"CASE WHEN coalesce({listed}) IS NOT NULL THEN {added} END"
    return f"{fold}({listed})"
