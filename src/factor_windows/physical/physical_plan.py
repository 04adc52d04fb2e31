"""A physical plan: the decisions about how a plan runs, as a value that checks and prints itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

from factor_windows.errors import PlanError
from factor_windows.physical.assigner import ALWAYS, RAW
from factor_windows.physical.layout import Layout
from factor_windows.physical.steps import (
    Aside,
    Chunk,
    Explode,
    Filter,
    FindSessions,
    Group,
    OwnWindow,
    Project,
    Repartition,
    Scan,
    ScanBlocks,
    Show,
    Step,
    Unpack,
    prefix_column,
    suffix_column,
)
from factor_windows.physical.target import Target
from factor_windows.physical.terms import Column, Lookup, Term, parts_of
from factor_windows.tree import Pass


@dataclass(frozen=True, slots=True)
class PhysicalPlan:
    """The steps that compute a plan on a target. It is checked when it is made; engines only render it."""

    plan: Pass
    """The plan to compute: the requested one or, if states cannot be shared, the naive one."""
    target: Target
    layout: Layout
    steps: tuple[Step, ...]
    first: int
    """The number of steps from the events to the rows of the first level."""

    @property
    def scan(self) -> Scan:
        """Return the first step."""
        assert isinstance(self.steps[0], Scan)
        return self.steps[0]

    @property
    def show(self) -> Show:
        """Return the last step."""
        assert isinstance(self.steps[-1], Show)
        return self.steps[-1]

    def __post_init__(self) -> None:
        self._check_levels()
        self._check_columns()

    def _check_levels(self) -> None:
        """Check that every node is computed once, after what it reads, by a relation valid for its functions."""
        nodes = self.plan.nodes
        known: set[int] = set()
        passed: set[int] = set()
        for number, level in enumerate(self.layout.levels):
            above = set(known) if self.target.has_windows else passed
            passed = set(level.nodes)
            if number == 0 and self.layout.pane_row:
                known |= set(self.layout.pane_row.premerged) & set(level.nodes)
            for each in level.assigners:
                is_appended = number == 1 and each.source == len(nodes) and self.layout.appended is not None
                source = each.source if self.layout.appended is None or not is_appended else self.layout.appended
                if each.source != RAW and source not in above:
                    raise PlanError(
                        f"level {number + 1} reads {nodes[source].name!r}, which the one above does not have"
                    )
                if each.passes_through:
                    continue
                if each.target in known and not is_appended:
                    raise PlanError(f"{nodes[each.target].name!r} is computed twice")
                if each.source != RAW and source != each.target:
                    parent, child = nodes[source], nodes[each.target]
                    if not child.node.can_read(parent.node, self.plan.query.kind):
                        raise PlanError(f"{child.name!r} cannot be computed from {parent.name!r} for such functions")
                known.add(each.target)
        last = known if self.target.has_windows or self.layout.asides else passed
        missing = [node.name for place, node in enumerate(nodes) if node.exposed and place not in last]
        if missing:
            raise PlanError(f"{missing[0]!r} is shown, and the last level does not have it")

    def _check_columns(self) -> None:
        """Check that every column is defined before it is used, and every lookup has a value for each entry or node."""
        columns: set[str] = set()
        names, places = self.target.names, {self.target.names.node: len(self.plan.nodes)}
        for step in self.steps:
            if isinstance(step, Explode):
                places[step.entry] = len(step.sources)
            for lookup in (part for term in _terms_of(step) for part in parts_of(term) if isinstance(part, Lookup)):
                if len(lookup.values) != places.get(lookup.by, 0):
                    raise PlanError(
                        f"{lookup.name!r} has {len(lookup.values)} values for {places.get(lookup.by, 0)} places"
                    )
            unknown = [name for name in _reads(step) if name not in columns]
            if unknown:
                raise PlanError(f"{type(step).__name__} reads the column {unknown[0]!r}, which no step before it makes")
            if isinstance(step, Group):
                places.pop(names.entry, None)
            columns = self._columns_after(step, columns)

    def _columns_after(self, step: Step, before: set[str]) -> set[str]:
        match step:
            case Scan():
                return {*(name for name, _ in step.keys), step.column}
            case Explode():
                entry = {step.entry} if step.has_entries else set()
                return before | entry | ({step.step} if step.counts is not None else set())
            case FindSessions():
                return before | {name for name, _ in step.gaps}
            case ScanBlocks():
                made = {column(name) for name, _ in step.aggregates for column in (prefix_column, suffix_column)}
                return before | made | {step.previous, step.next}
            case Project():
                made = {name for name, _ in step.columns}
                return before | made if step.keeps_others else made
            case Group():
                return {*step.by, *(name for name, _ in step.aggregates), *(name for name, _ in step.constants)}
            case Chunk():
                return before | {step.column}
            case OwnWindow():
                names = self.target.names
                return before | {names.node, names.start, *(name for name, _ in step.aggregates)}
            case Unpack():
                return {*step.keeps, step.start, step.node, *(state.name for state in step.states)}
        return before

    def _source(self, place: int) -> str:
        nodes = self.plan.nodes
        return (
            nodes[place].name if place < len(nodes) else f"what was appended of {nodes[self.layout.appended or 0].name}"
        )

    def __str__(self) -> str:
        """Describe how the plan runs: why, and what each level computes from what."""
        nodes, layout = self.plan.nodes, self.layout
        lines = [f"  {note}" for note in layout.notes]
        for number, level in enumerate(layout.levels, start=1):
            lines.append(f"  level {number}")
            for each in level.assigners:
                source = "raw events" if each.source == RAW else self._source(each.source)
                target = nodes[each.target].name
                times = f", each row into {each.steps} instances" if each.steps > 1 else ""
                if each.target == level.scanned:
                    times = f", two reads by prefix and suffix scans instead of {each.steps}"
                early = "" if each.before == ALWAYS else f", before {_day(each.before)}; the same since then"
                how = "passes through" if each.passes_through else f"from {source}{times}{early}"
                lines.append(f"    {target} {how}")
            if layout.pane_row and number == 1:
                pane = nodes[level.nodes[0]].name
                lines += [f"    {nodes[place].name} from {pane}, inside rows" for place in level.nodes[1:]]
        return "\n".join(lines)


def _day(time: int) -> str:
    return (date(1970, 1, 1) + timedelta(microseconds=time)).isoformat()


def _terms_of(step: Step) -> Iterable[Term]:
    match step:
        case Explode(counts=counts):
            return [] if counts is None else [counts]
        case Filter(conditions=conditions):
            return conditions
        case Project(columns=columns):
            return [term for _, term in columns]
        case Group():
            return [*(term for _, term in step.constants), step.end]
        case Show():
            return [step.start, step.end, *step.values]
        case Aside():
            return [step.node, *_terms_of(step.show)]
    return []


def _reads(step: Step) -> Iterable[str]:
    """List the columns made by earlier steps that a step reads."""
    named = [part.name for term in _terms_of(step) for part in parts_of(term) if isinstance(part, Column)]
    match step:
        case Group():
            # The end is that of the group's own instance, whose node may be constant; a session's end depends on its
            # last event.
            own = {name for name, _ in (*step.constants, *step.aggregates)}
            merged = step.reads or ([name for name, _ in step.aggregates] if step.merges else [])
            return [*step.by, *merged, *(name for name in named if name not in own)]
        case FindSessions():
            return [*step.by, step.first, step.last]
        case ScanBlocks():
            return [*step.by, step.start, *(name for name, _ in step.aggregates)]
        case Chunk():
            return [step.start]
        case Repartition():
            return [*step.by, *step.sort]
        case Unpack():
            return [*step.keeps, step.filled, step.start]
        case OwnWindow() if step.source != RAW:
            return [name for name, _ in step.aggregates]
        case Show():
            return [*named, *step.keys, step.node]
        case Aside():
            return [*named, *_reads(step.show)]
    return named
