"""A physical plan: what was decided about how a plan runs, as a value that checks and prints itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from factor_windows.errors import PlanError
from factor_windows.physical.assigner import RAW
from factor_windows.physical.layout import Layout
from factor_windows.physical.steps import (
    Chunk,
    Explode,
    Filter,
    Group,
    OwnWindow,
    Project,
    Repartition,
    Scan,
    Show,
    Step,
    Unpack,
)
from factor_windows.physical.target import Target
from factor_windows.physical.terms import Column, Lookup, OfNode, Term, parts_of
from factor_windows.tree import Pass


@dataclass(frozen=True, slots=True)
class PhysicalPlan:
    """The steps that compute a plan on a target. It is checked when it is made; engines write it down as it is."""

    plan: Pass
    """The plan that is computed: the one that was asked for, or, if states cannot be shared, the naive one."""
    target: Target
    layout: Layout
    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        self._check_levels()
        self._check_columns()

    def _check_levels(self) -> None:
        """Check that every node is computed once, after what it reads, by a relation that is true for its functions."""
        nodes = self.plan.nodes
        known: set[int] = set()
        for number, level in enumerate(self.layout.levels):
            above = set(known)
            if number == 0 and self.layout.pane_row:
                known |= set(self.layout.pane_row.premerged) & set(level.nodes)
            for each in level.assigners:
                if each.source != RAW and each.source not in above:
                    raise PlanError(f"level {number + 1} reads {nodes[each.source].name!r} before it is computed")
                if each.passes:
                    continue
                if each.target in known:
                    raise PlanError(f"{nodes[each.target].name!r} is computed twice")
                if each.source != RAW:
                    parent, child = nodes[each.source], nodes[each.target]
                    if not child.node.can_read(parent.node, self.plan.query.kind):
                        raise PlanError(f"{child.name!r} cannot be computed from {parent.name!r} for such functions")
                known.add(each.target)
        missing = [node.name for place, node in enumerate(nodes) if node.exposed and place not in known]
        if missing:
            raise PlanError(f"{missing[0]!r} is shown, and never computed")

    def _check_columns(self) -> None:
        """Check that every column is defined before it is used, and every lookup has a value for each entry or node."""
        columns: set[str] = set()
        entries = 1
        for step in self.steps:
            for term in _terms_of(step):
                for part in parts_of(term):
                    if isinstance(part, Lookup) and len(part.values) != entries:
                        raise PlanError(f"{part.name!r} has {len(part.values)} values for {entries} entries")
                    if isinstance(part, OfNode) and len(part.values) != len(self.plan.nodes):
                        raise PlanError(f"there are {len(part.values)} values for {len(self.plan.nodes)} nodes")
            unknown = [name for name in _reads(step) if name not in columns]
            if unknown:
                raise PlanError(f"{type(step).__name__} reads the column {unknown[0]!r}, which no step before it makes")
            if isinstance(step, Explode):
                entries = len(step.sources)
            elif isinstance(step, Group):
                entries = 1
            columns = self._columns_after(step, columns)

    def _columns_after(self, step: Step, before: set[str]) -> set[str]:
        match step:
            case Scan():
                return {*(name for name, _ in step.keys), step.column}
            case Explode():
                return before | {step.entry, step.step}
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

    def __str__(self) -> str:
        """Say how the plan runs: why so, and what each level computes from what."""
        nodes, layout = self.plan.nodes, self.layout
        lines = [f"  {note}" for note in layout.notes]
        for number, level in enumerate(layout.levels, start=1):
            lines.append(f"  level {number}")
            for each in level.assigners:
                source = "raw events" if each.source == RAW else nodes[each.source].name
                target = nodes[each.target].name
                times = f", each row into {each.steps} instances" if each.steps > 1 else ""
                lines.append(f"    {target} passes through" if each.passes else f"    {target} from {source}{times}")
            if layout.pane_row and number == 1:
                pane = nodes[level.nodes[0]].name
                lines += [f"    {nodes[place].name} from {pane}, inside rows" for place in level.nodes[1:]]
        return "\n".join(lines)


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
    return []


def _reads(step: Step) -> Iterable[str]:
    """List the columns of ours that a step reads."""
    named = [part.name for term in _terms_of(step) for part in parts_of(term) if isinstance(part, Column)]
    match step:
        case Group():
            # The end is that of the group's own instance, whose node may be constant.
            own = {name for name, _ in step.constants}
            merged = [name for name, _ in step.aggregates] if step.merges else []
            return [*step.by, *merged, *(name for name in named if name not in own)]
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
    return named
