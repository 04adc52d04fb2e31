"""Panes of partial results as rows that can be stored anywhere: made from events, and merged into results later."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from factor_windows.algebra.graph import Node
from factor_windows.algebra.slices import Segmentation
from factor_windows.cost.model import CostModel
from factor_windows.engines.spark_batch import compile_for, take
from factor_windows.engines.spark_columns import SparkColumns, with_columns
from factor_windows.engines.spark_queries import fit_to_events, split_results
from factor_windows.errors import OptionError, PlanError, QueryError
from factor_windows.functions.expression import columns_of, quoted
from factor_windows.functions.table import State
from factor_windows.physical import PhysicalPlan
from factor_windows.physical.layout import layouts_of_panes
from factor_windows.physical.steps import Group, Project
from factor_windows.physical.target import Values
from factor_windows.plan import Plan
from factor_windows.query import Query
from factor_windows.search.plan_panes import coarsest_panes, every_key, kept_panes, plan_panes
from factor_windows.serialize import read_segmentation, segmentation_document
from factor_windows.spark.messages import check_events
from factor_windows.spark.nullability import never_null
from factor_windows.spark.result import apply_post_aggregation
from factor_windows.tree import Pass

FORMAT = 1
"""The format of panes; it grows when an earlier version could not read them."""
NOTE = "factor_windows.panes"
"""The metadata key, on the start of panes, for the meaning of the rows."""
NODE, START, FIRST, LAST, VERSION = "pane_node", "pane_start", "pane_first", "pane_last", "pane_version"
APPENDED = -1
"""The kind of rows of the finest panes that were appended to panes of several kinds, and are in no others yet."""
ADOPTED = -2
"""The kind of rows of the first window that was taken over from a stream; other windows have lesser numbers."""
_EVENTS = "count(*) AS __fw_events"
"""Counted in every pane, whether the query asks for it or not."""
_PREFIX = "__fw_"
_PLAIN = re.compile(r"(?!pane_|key_|value_|state_|pass_)[a-z]\w*", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Kept:
    """The contents of rows of panes, for any panes: they decide which queries the rows can answer."""

    time: str
    where: str
    keys: tuple[str, ...]
    derived: Mapping[str, str]
    """Columns that several queries first compute from the events."""
    values: tuple[tuple[str, ...], ...]
    """The values that rows are counted by."""
    states: tuple[tuple[str, str], ...]
    """How events lift to each state, and how states combine."""
    events: T.StructType
    """The columns of events that are read, with their types."""

    def document(self) -> dict[str, Any]:
        """Describe the contents as plain values; `of_document` reads them."""
        own = {name: getattr(self, name) for name in ("time", "where", "keys", "derived", "values", "states")}
        return {**own, "events": self.events.jsonValue()}

    @classmethod
    def of_document(cls, found: Mapping[str, Any]) -> Kept:
        """Read what `document` returned."""
        return cls(
            found["time"],
            found["where"],
            tuple(found["keys"]),
            found["derived"],
            tuple(map(tuple, found["values"])),
            tuple((lift, combine) for lift, combine in found["states"]),
            T.StructType.fromJson(found["events"]),
        )

    def differences(self, each: Pass) -> Iterator[str]:
        """List how a pass differs in its events or keys."""
        query = each.query
        for name, own, asked in (
            ("time", self.time, query.parsed_time.sql),
            ("condition", self.where or "none", query.where or "none"),
            ("keys", ", ".join(self.keys) or "none", ", ".join(key.sql for key in query.parsed_keys) or "none"),
        ):
            if own != asked:
                yield f"their {name} {'are' if name == 'keys' else 'is'} {own}, not {asked}"
        if self.derived != each.workload.derived:
            yield "the conditions of their queries are others"


@dataclass(frozen=True, slots=True)
class PaneNames:
    """The public names of the columns of panes."""

    keys: tuple[str, ...]
    values: tuple[str, ...]
    states: tuple[str, ...]

    @classmethod
    def of(cls, query: Query, kept: Kept) -> PaneNames:
        """Name keys as the query does, where any format allows such a name."""
        keys: list[str] = []
        for place, key in enumerate(query.parsed_keys):
            taken = key.name.lower() in (name.lower() for name in keys)
            keys.append(key.name if _PLAIN.fullmatch(key.name) and not taken else f"key_{place}")
        values = sum(map(len, kept.values))
        return cls(
            tuple(keys),
            tuple(f"value_{place}" for place in range(values)),
            tuple(f"state_{place}" for place in range(len(kept.states))),
        )

    @property
    def listed(self) -> tuple[str, ...]:
        """List the columns of the query's own."""
        return *self.keys, *self.values, *self.states


class PaneWriter:
    """Makes rows of panes from events."""

    def __init__(self, each: Pass, events: DataFrame, panes: Segmentation) -> None:
        """Take the types of events; `lift` may be given other events of the same types."""
        counting = count_events(each)
        query = each.query
        self.on_spark = SparkColumns(counting.query, events, text_as_bytes=True, counts_values=True, keeps_panes=True)
        _check_shared(self.on_spark)
        self.compiled = _compile(plan_panes(counting, [panes]), self.on_spark, self.on_spark.types.values)
        self.kept = Kept(
            query.parsed_time.sql,
            query.where,
            tuple(key.sql for key in query.parsed_keys),
            each.workload.derived,
            tuple(key.parts for key in self.on_spark.types.value_keys),
            tuple(meanings(self.on_spark)),
            _columns_read(counting, events),
        )
        self.names = PaneNames.of(query, self.kept)

    def lift(self, events: DataFrame, node: int = 0, *others: str) -> DataFrame:
        """Group events by keys and pane, and also compute the columns `others`."""
        on_spark, names = self.on_spark, self.on_spark.names
        rows = on_spark.scan(self.compiled.scan, events)
        for step in self.compiled.steps[1 : self.compiled.first]:
            rows = take(step, rows, on_spark)
        return rows.selectExpr(f"{node} AS {NODE}", *_public(on_spark, self.names, names.start), *others)


class Panes:
    """Rows of panes, as a pass over panes reads them."""

    def __init__(self, plan: Pass, kept: Kept, empty: DataFrame, panes: Sequence[Segmentation]) -> None:
        """Take a pass over panes, numbered by position; `empty` has all columns of events, but no rows."""
        reasons = list(kept.differences(plan))
        if reasons:
            raise PlanError(f"these panes are not for this query: {', '.join(reasons)}")
        self.plan = plan
        try:
            self.on_spark = SparkColumns(plan.query, empty, text_as_bytes=True, counts_values=True, keeps_panes=True)
        except QueryError as mistake:
            raise PlanError(f"these panes cannot answer the query: {mistake}") from None
        _check_shared(self.on_spark)
        self.names = PaneNames.of(plan.query, kept)
        self.columns = dict(self._columns(kept))
        numbers = {node.node: place for place, node in enumerate(plan.nodes)}
        nodes = [Node(pane, every_key(plan)) for pane in panes]
        self.places = {place: numbers[node] for place, node in enumerate(nodes) if node in numbers}
        """The nodes that rows of panes belong to, by the position of the panes; other panes are not read."""
        self._compiled: dict[tuple[bool, bool, bool, str], PhysicalPlan] = {}

    def _columns(self, kept: Kept) -> Iterator[tuple[str, str]]:
        """Map internal columns to stored columns."""
        types, stored = self.on_spark.types, list(kept.states)
        parts = [part for key in kept.values for part in key]
        for state, meaning in zip(types.states, meanings(self.on_spark), strict=True):
            if meaning not in stored:
                raise PlanError(f"these panes keep no {meaning[0]}, which the query needs; make them anew for it")
            yield state.name, self.names.states[stored.index(meaning)]
        for key in types.value_keys:
            for column, part in zip(key.columns, key.parts, strict=True):
                if part not in parts:
                    raise PlanError(f"these panes are not by {part}, as the query needs them; make them anew for it")
                yield column, self.names.values[parts.index(part)]

    @property
    def version(self) -> str:
        """Name the column with the version in which a row was added."""
        return f"{self.on_spark.names.prefix}version"

    @property
    def appended(self) -> int:
        """Return the node of rows that were appended and are in no coarser panes yet."""
        return self.places[0]

    def given(self, rows: DataFrame, *, dated: bool = False, nodes: Mapping[int, int] | None = None) -> DataFrame:
        """Rename the columns of panes to internal names; `dated` ones include the version in which they were added.

        The rows belong to `nodes`, by the number of their kind, if these are not the nodes of the panes.
        """
        types, names = self.on_spark.types, self.on_spark.names
        if nodes is None:
            nodes = {**self.places, APPENDED: self.appended} if 0 in self.places else self.places
        if len(set(nodes.values())) > 1:
            cases = " ".join(f"WHEN {number} THEN {node}" for number, node in nodes.items())
            place = f"coalesce(CASE {NODE} {cases} END, -1)"
        else:
            place = str(next(iter(nodes.values())))
        keys = (
            f"{self.on_spark.as_grouped(never_null(quoted(key), field), field)} AS {name}"
            for name, key, field in zip(names.keys, self.names.keys, types.keys, strict=True)
        )
        own = (f"{stored} AS {name}" for name, stored in self.columns.items())
        times = (
            f"coalesce({column}, 0L) AS {name}"
            for name, column in ((names.start, START), (names.first, FIRST), (names.last, LAST))
        )
        others = [f"{VERSION} AS {self.version}"] if dated else []
        return rows.selectExpr(*keys, f"{place} AS {names.node}", *times, *own, *others)


class PaneReader(Panes):
    """Merges rows of panes into results of a query that they can answer."""

    @property
    def is_apart(self) -> bool:
        """Say whether appended rows are read separately from panes of several kinds.

        Sessions are found among all rows of one kind, so with sessions, appended rows must be converted first.
        """
        return len(self.places) > 1 and 0 in self.places and not self.plan.query.has_sessions

    @property
    def appended(self) -> int:
        """Return the node of rows that were appended and are in no coarser panes yet."""
        return len(self.plan.nodes) if self.is_apart else self.places[0]

    def compiled(
        self,
        *,
        dated: bool = False,
        are_few: bool = False,
        has_appended: bool = False,
        cost_model: CostModel | None = None,
    ) -> PhysicalPlan:
        """Return the plan from rows of panes to results, for `dated` rows, for few rows, or for other costs.

        With `has_appended`, some rows are in no coarser panes yet.
        """
        asked = dated, are_few, has_appended, repr(cost_model)
        if asked not in self._compiled:
            values = self.on_spark.types.values
            self._compiled[asked] = _compile(
                self.plan if cost_model is None else replace(self.plan, cost_model=cost_model),
                self.on_spark,
                with_version(values, self.version) if dated else values,
                appended=self.places[0] if self.is_apart and has_appended else None,
                are_few=are_few,
            )
        return self._compiled[asked]

    def merge(self, rows: DataFrame) -> DataFrame:
        """Merge rows of panes into the results of the aggregate calls."""
        return self.show(self.compiled(), self.merged(self.compiled(), self.given(rows)))

    def merged(self, compiled: PhysicalPlan, rows: DataFrame) -> DataFrame:
        """Apply all steps except the last one."""
        return reduce(lambda found, step: take(step, found, self.on_spark), compiled.steps[compiled.first : -1], rows)

    def merged_with(self, compiled: PhysicalPlan, rows: DataFrame, others: DataFrame) -> DataFrame:
        """Merge rows of instances, before the last step, with other rows of the same instances."""
        *_, last = (step for step in compiled.steps if isinstance(step, Group))
        by = (*self.on_spark.names.keys, self.on_spark.names.node, self.on_spark.names.start)
        columns = [*by, *(name for name, _ in last.aggregates)]
        both = rows.select(*columns).union(others.select(*columns))
        both = both.coalesce(1) if compiled.target.are_few else both
        return self.on_spark.group(replace(last, by=by, constants=()), both, by)

    def show(self, compiled: PhysicalPlan, rows: DataFrame) -> DataFrame:
        """Apply the last step."""
        return self.on_spark.noted(self.on_spark.show(compiled.show, rows))


class PaneMerger(Panes):
    """Makes coarser panes from the finest ones, and one row from several of the same pane. All rows are dated."""

    def __init__(self, plan: Pass, kept: Kept, empty: DataFrame, panes: Sequence[Segmentation]) -> None:
        super().__init__(kept_panes(count_events(plan), panes), kept, empty, panes)
        self.numbers = {node: place for place, node in self.places.items()}
        values = with_version(self.on_spark.types.values, self.version)
        # Nothing is shuffled before rows are grouped.
        *_, layout = layouts_of_panes(self.plan)
        compiled = _compile(self.plan, self.on_spark, values, layout=layout)
        steps = compiled.steps[compiled.first :]
        place = next(place for place, step in enumerate(steps) if isinstance(step, Group))
        group, after = steps[place], steps[place + 1]
        assert isinstance(group, Group)
        # The start times of rows that are grouped by ticks are computed only then.
        self._to_panes = (*steps[:place], *([after] if isinstance(after, Project) else []))
        self._group = replace(group, by=tuple(dict.fromkeys((*group.by, self.on_spark.names.node))), constants=())

    def coarsen(self, rows: DataFrame) -> DataFrame:
        """Assign each row of the finest panes to the panes of all kinds that contain it, and to its own."""
        given = self.given(rows, dated=True)
        return self._public(reduce(lambda found, step: take(step, found, self.on_spark), self._to_panes, given))

    def merge(self, rows: DataFrame) -> DataFrame:
        """Merge all rows of the same pane and keys into one."""
        return self._public(self.on_spark.group(self._group, self.given(rows, dated=True), self._group.by))

    def _public(self, rows: DataFrame) -> DataFrame:
        names = self.on_spark.names
        node = names.node
        if len(self.numbers) > 1:
            numbers = " ".join(f"WHEN {place} THEN {number}" for place, number in self.numbers.items())
            node = f"CASE {names.node} {numbers} END"
        else:
            node = "0"
        own = _public(self.on_spark, self.names, names.start)
        return rows.selectExpr(f"{node} AS {NODE}", *own, f"{self.version} AS {VERSION}")


def count_events(each: Pass) -> Pass:
    """Return a pass that ends with the aggregate calls, and always counts events."""
    query = each.query.bare
    return each.with_query(replace(query, aggregates=(*query.aggregates, _EVENTS)))


def with_version(values: Values, name: str) -> Values:
    """Let rows carry the version in which they were added; merged rows get the last one."""
    version = State(name, "", f"max({name})", fixed=True)
    results = tuple(replace(each, states=(*each.states, name)) for each in values.results)
    return replace(values, results=results, states=(*values.states, version))


def partials(plan: Plan, events: DataFrame) -> DataFrame:
    """Make the partial results of a plan, to be stored anywhere; `merge` turns any number of them into results."""
    check_events(events)
    if events.isStreaming:
        raise OptionError(
            "these events are a stream; call partials() in foreachBatch, or let fw.Store keep them with write_stream()"
        )
    plan = plan if plan.is_single else fit_to_events(plan, events)
    frames, notes = [], []
    for number, each in enumerate(plan.passes):
        own, panes = with_columns(events, each.workload.derived), coarsest_panes(each)
        writer = PaneWriter(each, own, panes)
        lifted = writer.lift(own, number)
        if len(plan.passes) > 1:
            lifted = lifted.selectExpr(NODE, START, FIRST, LAST, *_renamed(writer.names, number))
        frames.append(lifted)
        notes.append({"panes": segmentation_document(panes), **writer.kept.document()})
    rows = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)
    return rows.withMetadata(START, {NOTE: json.dumps({"format": FORMAT, "passes": notes})})


def merge(plan: Plan, rows: DataFrame, schema: T.StructType | DataFrame | None = None) -> Any:
    """Merge the results of any number of calls of `partials` into what `plan.run` returns for all their events."""
    check_events(rows)
    spark = rows.sparkSession
    notes = _notes(plan, rows, schema)
    empty = spark.createDataFrame([], schema=_all_columns([kept.events for _, kept in notes]))
    plan = plan if plan.is_single else fit_to_events(plan, empty)
    if len(notes) != len(plan.passes):
        raise PlanError(
            f"these panes are of {len(notes)} passes over the events, and the plan has {len(plan.passes)}; "
            "merge them by the plan that made them"
        )

    def compute(each: Pass, events: DataFrame) -> DataFrame:
        number = plan.passes.index(each)
        panes, kept = notes[number]
        reader = PaneReader(plan_panes(each.with_query(each.query.bare), [panes]), kept, events, [panes])
        own = rows
        if len(notes) > 1:
            named = zip(_renamed(reader.names, number, back=True), reader.names.listed, strict=True)
            own = rows.where(f"{NODE} = {number}").selectExpr(
                f"0 AS {NODE}", START, FIRST, LAST, *(f"{theirs} AS {quoted(name)}" for theirs, name in named)
            )
        return apply_post_aggregation(each.query, reader.merge(own))

    return compute(plan.passes[0], empty) if plan.is_single else split_results(plan, empty, compute)


def _renamed(names: PaneNames, number: int, *, back: bool = False) -> list[str]:
    """Rename columns so that those of several passes differ."""
    theirs = [quoted(f"pass_{number}_{name}") for name in names.listed]
    return theirs if back else [f"{quoted(name)} AS {other}" for name, other in zip(names.listed, theirs, strict=True)]


def _notes(plan: Plan, rows: DataFrame, schema: T.StructType | DataFrame | None) -> list[tuple[Segmentation, Kept]]:
    """Read the meaning of rows of panes from their metadata or, given the events' `schema`, from the plan."""
    fields = {field.name: field for field in rows.schema}
    if START not in fields:
        raise PlanError(f"these rows have no column {START}, so they are no panes; plan.partials(events) makes such")
    note = fields[START].metadata.get(NOTE)
    if note is not None:
        found = json.loads(note)
        if found["format"] > FORMAT:
            raise PlanError(
                f"these panes are of format {found['format']}; this version reads up to {FORMAT}; install a later one"
            )
        return [(read_segmentation(each["panes"]), Kept.of_document(each)) for each in found["passes"]]
    if schema is None:
        raise PlanError(
            "what these panes mean was noted on their columns, and is lost; give the events, or their schema: "
            "plan.merge(panes, schema=events.schema)"
        )
    columns = schema.schema if isinstance(schema, DataFrame) else schema
    empty = rows.sparkSession.createDataFrame([], schema=columns)
    plan = plan if plan.is_single else fit_to_events(plan, empty)
    panes = [coarsest_panes(each) for each in plan.passes]
    own = [with_columns(empty, each.workload.derived) for each in plan.passes]
    return [
        (pane, PaneWriter(each, frame, pane).kept) for each, frame, pane in zip(plan.passes, own, panes, strict=True)
    ]


def _compile(plan: Pass, on_spark: SparkColumns, values: Values, **more: Any) -> PhysicalPlan:
    return compile_for(plan, on_spark, values=values, keeps_panes=True, **more)


def _check_shared(on_spark: SparkColumns) -> None:
    if on_spark.types.shared:
        return
    pairs = zip(on_spark.query.parsed_aggregates, on_spark.types.results, strict=True)
    alone = next(each.sql for each, result in pairs if not result.lower)
    raise PlanError(f"{alone} needs all events at once, so a store cannot keep partial results of it; leave it out")


def meanings(on_spark: SparkColumns) -> Iterator[tuple[str, str]]:
    """Describe what each state means, whatever its column is called."""
    states, prefix = on_spark.types.states, on_spark.names.prefix
    for state in states:
        combine = state.combine
        for other in states:
            combine = combine.replace(quoted(other.name), f"<{other.lift}>")
        yield state.lift.replace(prefix, _PREFIX), combine.replace(prefix, _PREFIX)


def _public(on_spark: SparkColumns, named: PaneNames, start: str) -> Iterator[str]:
    """List the columns of panes under the names that they are stored under."""
    types, names = on_spark.types, on_spark.names
    yield from (f"{start} AS {START}", f"{names.first} AS {FIRST}", f"{names.last} AS {LAST}")
    for name, public, field in zip(names.keys, named.keys, types.keys, strict=True):
        yield f"{on_spark.as_shown(name, field)} AS {quoted(public)}"
    values = [column for key in types.value_keys for column in key.columns]
    yield from (f"{column} AS {public}" for column, public in zip(values, named.values, strict=True))
    yield from (f"{state.name} AS {public}" for state, public in zip(types.states, named.states, strict=True))


def _columns_read(each: Pass, events: DataFrame) -> T.StructType:
    """Return the columns that a query reads: other columns may come and go."""
    query = each.query
    texts = [query.parsed_time.sql, query.where, *each.workload.derived.values()]
    texts += [key.sql for key in query.parsed_keys] + [each.sql for each in query.parsed_aggregates]
    read = {name.lower() for text in texts if text for name in columns_of(text)}
    made = {name.lower() for name in each.workload.derived}
    fields = [field for field in events.schema if field.name.lower() in read and field.name.lower() not in made]
    return T.StructType([T.StructField(field.name, field.dataType, field.nullable) for field in fields])


def _all_columns(schemas: Sequence[T.StructType]) -> T.StructType:
    return T.StructType(list({field.name: field for schema in schemas for field in schema}.values()))
