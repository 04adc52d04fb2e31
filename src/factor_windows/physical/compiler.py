"""Compile a plan: choose the layout once, and write it as steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import gcd

from sqlglot import exp

from factor_windows.algebra.clock import Clock
from factor_windows.algebra.graph import window_of
from factor_windows.algebra.growing import Growing
from factor_windows.algebra.session import Session
from factor_windows.algebra.slices import Segmentation, Slices, grid_of
from factor_windows.algebra.window import Window
from factor_windows.functions.expression import sql_of, tree_of
from factor_windows.physical.assigner import ALWAYS, EVERYWHERE, RAW, Assigner
from factor_windows.physical.choose import choose_layout
from factor_windows.physical.layout import Distribution, Layout, Level, finds_sessions, with_appended
from factor_windows.physical.own_windows import chain_windows, lay_out_windows, window_steps
from factor_windows.physical.physical_plan import PhysicalPlan
from factor_windows.physical.steps import (
    Aside,
    Chunk,
    Explode,
    Filter,
    FindSessions,
    Group,
    Named,
    Project,
    Repartition,
    Scan,
    ScanBlocks,
    Sessions,
    Show,
    Step,
    Unpack,
    prefix_column,
    slot_column,
    suffix_column,
)
from factor_windows.physical.target import Target
from factor_windows.physical.terms import (
    Call,
    Column,
    Instant,
    Number,
    Sql,
    Term,
    Tick,
    after_edge,
    after_slice_start,
    end_after,
    end_of,
    look_up,
    only_if,
    start_of,
    to_slice_end,
)
from factor_windows.physical.value_steps import ValueSteps
from factor_windows.physical.work import PARTITIONS
from factor_windows.tree import Pass


def compile(plan: Pass, target: Target, layout: Layout | None = None) -> PhysicalPlan:
    """Decide how a plan runs on a target, unless the layout is given, and write it as steps."""
    if not target.values.shared or target.is_one_operator:
        plan = plan.naive()
    if target.has_windows:
        plan = chain_windows(plan)
        layout = lay_out_windows(plan)
    elif target.levels is not None:
        layout = Layout(target.levels)
    elif layout is None and target.keeps_panes:
        partitions = 1 if target.are_few else target.partitions or PARTITIONS
        layout = choose_layout(plan, partitions=partitions, scans=target.can_scan, from_panes=True)
        if target.appended is not None:
            layout = with_appended(plan, layout, target.appended)
    elif layout is None and target.partitions is not None:
        reuses = target.reuses and not target.values.keys
        packing, scans = target.packing, target.can_scan
        layout = choose_layout(plan, partitions=target.partitions, packing=packing, reuses=reuses, scans=scans)
    elif layout is None:
        chosen = choose_layout(plan, streaming=target.streaming)
        layout = Layout(chosen.levels, notes=chosen.notes[:1])
    compiler = _Compiler(plan, target, layout)
    first = tuple(compiler.first_steps())
    return PhysicalPlan(plan, target, layout, (*first, *compiler.later_steps()), len(first))


class _Compiler:
    def __init__(self, plan: Pass, target: Target, layout: Layout) -> None:
        self.plan, self.target, self.layout = plan, target, layout
        self.names, self.values = target.names, target.values
        self.event_keys = tuple(f"{key}_" for key in self.names.keys) if plan.has_several_keys else self.names.keys
        self.needs = plan.needs([each.states for each in target.values.results])
        # Panes give sessions the times of their first and last events; stored panes may be read by sessions later.
        self.ends = (self.names.first, self.names.last) if plan.query.has_sessions or target.keeps_panes else ()
        self.counts = ValueSteps(plan, target.names, target.values)
        self.longest = plan.longest
        by_chunk = layout.distribution is Distribution.BY_KEY_AND_CHUNK and len(layout.levels) > 1
        self.chunk = (self.names.chunk,) if by_chunk else ()

    def first_steps(self) -> Iterator[Step]:
        """Write the steps from an event to the rows of the first level."""
        query = self.plan.query
        keys = tuple((name, key.sql) for name, key in zip(self.event_keys, query.parsed_keys, strict=True))
        yield Scan(query.where, query.parsed_time.sql, keys, self.names.time)
        if self.target.has_windows:
            return
        yield from self.counts.compute_values()
        if self.layout.distribution is Distribution.EVENTS_BY_KEY:
            yield Repartition(self.names.keys, self.layout.partitions)
        yield from self.counts.give_to_entries()
        yield from self._pack() if self.layout.pane_row else self._level(self.layout.levels[0], None)

    def later_steps(self) -> Iterator[Step]:
        """Write the steps from the first level to the result."""
        if self.target.has_windows:
            yield from window_steps(self.plan, self.layout, self.values)
            yield self._show(None)
            return
        if len(self.layout.levels) > 1:
            yield from self._shuffle()
        if self.layout.pane_row:
            yield self._unpack()
        for above, level in pairwise(self.layout.levels):
            yield from self._level(level, above)
        last = self.layout.levels[-1]
        if self.values.keys:
            yield self.counts.merge_values(last, self.chunk, self._end(last.nodes), tuple(self._ends(self.ends)))
        yield self._show(last)

    def _level(self, level: Level, above: Level | None) -> Iterator[Step]:
        """Assign each row of the level above, or each event, to its instances, and group by instance."""
        is_first, is_last = above is None, level is self.layout.levels[-1]
        begin: Term = Column(self.names.time if is_first else self.names.start)
        entries = level.entries
        if self.layout.asides and not is_first:
            # If a plain column is in a condition, Spark adds a not-null check before rows are shuffled: they would then
            # differ from the rows that are shown.
            begin = Call("greatest", (begin, Number(-ALWAYS)))
        sessions = self._sessions(level, above)
        if sessions and not self.target.streaming:
            yield sessions
        if level.scanned is not None and above:
            yield self._scan_blocks(level.scanned, above)
        ticks = self._tick_columns(level)
        if ticks:
            yield Project(tuple((name, Tick(clock, begin)) for clock, name in ticks.items()), keeps_others=True)
        sources = tuple(each.source for each, _ in entries)
        # Nothing may read nodes that were already shown.
        others = above is not None and self.layout.asides and not set(above.nodes) <= set(sources)
        if len(entries) > 1 or not level.is_flat or others:
            counts = None if level.is_flat else self._counts(level)
            nodes = len(self.plan.nodes) if others else 0
            yield Explode(sources, self.names.entry, counts, self.names.step, nodes)
        start = self._start(level, begin)
        conditions = [*self._instances(level, begin, start)]
        if self.chunk and not is_first:
            conditions.append(self._inside_chunk(start, is_last=is_last))
        if level.scanned is not None and self.target.keeps_panes:
            # Of several rows of one pane, only those at the ends hold the merged state of all.
            gap = Column(self.names.next) - Column(self.names.previous)
            conditions.append(self._or_scanned(level, Number(1), gap - self._passed(level.scanned)) >= 1)
        if conditions:
            yield Filter(tuple(conditions))
        by_node = len(level.nodes) > 1
        node = (
            self._by_entry("to", [each.target for each, _ in entries], "int")
            if by_node
            else Number(level.nodes[0], "int")
        )
        clocks = self._clocks_of_nodes(level)
        # Rows are grouped by their ticks. The times of ticks are computed after grouping, unless a stream has to know
        # them.
        told = self._counted_start(level, begin) if clocks else start
        instance: list[Named] = [(self.names.start, told), *([(self.names.node, node)] if by_node else [])]
        chunk = () if is_first else self.chunk
        columns = [*self._carried_keys(level, is_first), *([] if is_first else self._carried_states(level)), *instance]
        columns += self.counts.carried(level, self._where, is_first=is_first)
        if not is_first:
            columns = [*((name, Column(name)) for name in chunk), *columns]
        yield Project(tuple(columns), keeps_others=is_first)
        streams = self.target.streaming
        ends = [place for place in level.nodes if not (streams and isinstance(self.plan.nodes[place].window, Session))]
        end = self._end(ends)
        if self.target.streaming and not is_last:
            # A stream's first watermark is 1970. It must not close a part of a window that is still open then.
            end = Call("greatest", (end, Number(1)))
        yield Group(
            by=(
                *self.names.keys,
                *self.counts.columns,
                *([self.names.node] if by_node else []),
                self.names.start,
                *chunk,
            ),
            aggregates=tuple(self._lifts() if is_first else self._merges()),
            constants=() if by_node else ((self.names.node, node),),
            end=end,
            merges=not is_first,
            sessions=self._found_by_group(sessions, level) if sessions and self.target.streaming else None,
            grid=gcd(*(grid_of(self.plan.nodes[place].window) for place in level.nodes)),
        )
        if clocks:
            yield self._tell_starts(clocks, is_first=is_first)
        if not is_last and self.layout.shown(self.plan, level):
            yield self._aside(level)

    def _sessions(self, level: Level, above: Level | None) -> FindSessions | None:
        """Find the sessions that rows of the level above, or events, are assigned to."""
        names, found = self.names, [each.target for each in level.assigners if finds_sessions(self.plan, each)]
        if not found:
            return None
        ends = (names.time, names.time) if above is None else (names.first, names.last)
        gaps = tuple((names.session(place), _session(self.plan.nodes[place].window).gap) for place in found)
        return FindSessions(self._side_by_side(above), *ends, gaps, overlap=self.target.keeps_panes)

    def _scan_blocks(self, node: int, above: Level) -> ScanBlocks:
        """Merge the panes of a window up to each, and from each on, in blocks as long as its range."""
        names, window = self.names, window_of(self.plan.nodes[node].node)
        by = (*self._side_by_side(above), *self.counts.columns, *self.chunk)
        offset = window.offset % window.range
        return ScanBlocks(by, names.start, window.range, offset, tuple(self._merges()), names.previous, names.next)

    def _passed(self, node: int) -> Term:
        """Return how much of the time between the panes before and after has passed, at a step of a scan."""
        return Column(self.names.step) * window_of(self.plan.nodes[node].node).slide

    def _counts(self, level: Level) -> Term:
        """Count the instances that a row is assigned to.

        A prefix belongs to the instances that end with its pane, or with an empty pane after it, and a suffix to those
        that start with its pane, or with an empty pane before it. The start of a block has a prefix alone: the whole
        block.
        """
        usual = self._by_entry("steps", [each.steps for each, _ in level.entries], "int")
        if level.scanned is None:
            return usual
        gap = Column(self.names.next) - Column(self.names.previous)
        count: Term = Call("int", (gap // window_of(self.plan.nodes[level.scanned].node).slide,))
        if self.target.keeps_panes:
            count = Call("greatest", (count, Number(1, "int")))
        return self._or_scanned(level, usual, count)

    def _or_scanned(self, level: Level, usual: Term, own: Term) -> Term:
        """Return a separate term for the entry that receives prefixes and suffixes."""
        if len(level.entries) == 1:
            return own
        nodes = [each.target if each.target == level.scanned else -1 for each, _ in level.entries]
        return Call("case", (self._by_entry("scan", nodes, "int"), usual, Number(level.scanned or 0, "int"), own))

    def _is_prefix(self, node: int) -> Term:
        """Say whether a step of a scan is one of the first ones, which assign the prefix to an instance."""
        return self._passed(node) < Column(self.names.next) - Column(self.names.start)

    def _found_by_group(self, step: FindSessions, level: Level) -> Sessions:
        """Let a group find the sessions; a pane of a session arrives when the watermark has passed the pane."""
        found = [each for each in level.assigners if finds_sessions(self.plan, each)]
        gaps = tuple((each.target, _session(self.plan.nodes[each.target].window).gap) for each in found)
        delays = (self.plan.nodes[each.source].window.longest for each in found if each.source != RAW)
        return Sessions(gaps, step.first, step.last, max(delays, default=0))

    def _side_by_side(self, above: Level | None) -> tuple[str, ...]:
        """List the columns within which sessions are found: the keys, and the node if there are several."""
        keys = self.names.keys if above else self.event_keys
        return (*keys, *([self.names.node] if above and len(above.nodes) > 1 else []))

    def _aside(self, level: Level) -> Aside:
        """Show the nodes of a level, and the nodes whose rows are the same, so that no later level passes them on."""
        node, start = Column(self.names.node), Column(self.names.start)
        same = {
            # A node comes after what it reads, so it has the greater number of the two.
            each.source: Call("greatest", (only_if(start >= each.before, Number(place, "int")), node))
            for place, each in self.layout.same(level).items()
        }
        return Aside(self._by_place(node, same), self._show(level))

    def _clocks_of_nodes(self, level: Level) -> dict[int, Clock]:
        """Return the clocks of the nodes of a level whose rows are grouped by ticks."""
        if self.target.streaming or not self.target.has_columns or self.layout.appended is not None:
            # Appended rows are in ticks, while rows that pass through already have times.
            return {}
        return {each.target: clock for each in level.assigners if (clock := self._clock(each)) is not None}

    def _counted_start(self, level: Level, begin: Term) -> Term:
        plain = self._last_edge(level, begin, self._after_edge(level, begin))
        return self._or_session(level, self._on_clocks(level, plain, lambda clock: self._tick(level, clock, begin)))

    def _or_session(self, level: Level, start: Term) -> Term:
        """Return the start of a session for entries of sessions, and the usual start for the others."""
        entries = level.entries
        if level.scanned is not None:
            window, passed = window_of(self.plan.nodes[level.scanned].node), self._passed(level.scanned)
            first = Column(self.names.start) - (window.range - window.slide)
            starts = first + passed, Column(self.names.next) - passed
            start = self._or_scanned(level, start, Call("if", (self._is_prefix(level.scanned), *starts)))
        if self.target.streaming:
            # The group finds it.
            return start
        own = {
            each.target: Column(self.names.session(each.target))
            for each, _ in entries
            if finds_sessions(self.plan, each)
        }
        if not own:
            return start
        if len(entries) == 1:
            return next(iter(own.values()))
        pairs = [part for place, column in own.items() for part in (Number(place, "int"), column)]
        return Call("case", (self._sessions_of_entries(level), start, *pairs))

    def _sessions_of_entries(self, level: Level) -> Term:
        """Return an entry's node if it is assigned sessions; rows that pass through have none to find."""
        targets = [each.target if finds_sessions(self.plan, each) else -1 for each, _ in level.entries]
        return self._by_entry("session", targets, "int")

    def _tell_starts(self, clocks: Mapping[int, Clock], *, is_first: bool) -> Project:
        """Compute the start times of instances whose rows were grouped by ticks."""
        tick, names = Column(self.names.start), self.names
        starts = {place: Instant(clock, tick) for place, clock in clocks.items()}
        kept = [*names.keys, *self.counts.columns, names.node, *(() if is_first else self.chunk)]
        kept += self._computed_columns()
        start = self._by_place(tick, starts)
        return Project(((names.start, start), *((name, Column(name)) for name in kept)))

    def _computed_columns(self) -> list[str]:
        own = [self.names.value(place) for place in range(len(self.values.results))]
        return [*([state.name for state in self.values.states] if self.values.shared else own), *self.ends]

    def _by_entry(self, name: str, values: Sequence[int], type: str = "bigint") -> Term:
        return look_up(self.names.entry, name, values, type)

    def _where(self, answers: Sequence[bool], name: str, value: Term) -> Term:
        """Return a value in the entries that have it, and null in the others."""
        has = self._by_entry(name, [int(each) for each in answers], "int").equals(1)
        return value if all(answers) else only_if(has, value)

    def _start(self, level: Level, begin: Term) -> Term:
        """Return the start of the instance that a row is assigned to."""
        plain = self._last_edge(level, begin, self._after_edge(level, begin))
        return self._or_session(
            level, self._on_clocks(level, plain, lambda clock: Instant(clock, self._tick(level, clock, begin)))
        )

    def _tick(self, level: Level, clock: Clock, begin: Term) -> Term:
        """Return the start as a tick."""
        tick = self._ticking(level, clock, begin)
        edges = {each.edges[0] for each, _ in level.entries if self._clock(each) == clock}
        after = Number(0) if edges == {(1, 0)} else self._after_plain_edge(level, tick)
        return self._last_edge(level, tick, after)

    def _ticking(self, level: Level, clock: Clock, begin: Term) -> Term:
        """Return the tick of a row, from its column if there is one."""
        name = self._tick_columns(level).get(clock)
        return Column(name) if name else Tick(clock, begin)

    def _tick_columns(self, level: Level) -> dict[Clock, str]:
        """Name columns for ticks of clocks: computed once per row, not once for each instance it is assigned to."""
        if not self.target.has_columns:
            return {}
        clocks = dict.fromkeys(clock for each in level.assigners if (clock := self._clock(each)) is not None)
        return {clock: f"{self.names.prefix}tick{place}" for place, clock in enumerate(clocks)}

    def _last_edge(self, level: Level, begin: Term, after: Term) -> Term:
        """Return the start in the assigner's units, for rows that start some time after its last edge."""
        assigners = [each for each, _ in level.entries]
        start = begin - after
        if level.is_flat:
            return start - self._by_entry("lag", [each.lag(step) for each, step in level.entries])
        lag: Term = Column(self.names.step) * self._by_entry("stride", [each.stride for each in assigners])
        if any(each.max_lag != ALWAYS for each in assigners):
            lag = Call("least", (lag, self._by_entry("max_lag", [each.max_lag for each in assigners])))
        return start - lag

    def _on_clocks(self, level: Level, plain: Term, ticking: Callable[[Clock], Term]) -> Term:
        """Return one term for entries in microseconds, and one for those of each clock."""
        own = [self._clock(each) for each, _ in level.entries]
        clocks = [clock for clock in dict.fromkeys(own) if clock is not None]
        if not clocks:
            return plain
        if len(set(own)) == 1:
            return ticking(clocks[0])
        number = self._by_entry("clock", [clocks.index(clock) + 1 if clock else 0 for clock in own], "int")
        pairs = [part for place, clock in enumerate(clocks, 1) for part in (Number(place, "int"), ticking(clock))]
        return Call("case", (number, plain, *pairs))

    def _clock(self, assigner: Assigner) -> Clock | None:
        """Return the clock that an assigner uses; rows that pass through keep their start."""
        window = self.plan.nodes[assigner.target].window
        if assigner.passes_through or isinstance(window, Slices | Session):
            return None
        return (window.step if isinstance(window, Growing) else window).clock

    def _after_edge(self, level: Level, begin: Term) -> Term:
        """Return how long a row starts after the last edge of its assigner; the edges of slices are written out."""
        assigners = [each for each, _ in level.entries]
        slices = {each.target: found for each in assigners if (found := self._slices(each)) is not None}
        if len(assigners) == 1 and slices:
            return after_slice_start(slices[assigners[0].target], begin)
        after = self._after_plain_edge(level, begin)
        if not slices:
            return after
        pairs = [part for place, own in slices.items() for part in (Number(place), after_slice_start(own, begin))]
        return Call("case", (self._by_entry("to", [each.target for each in assigners], "int"), after, *pairs))

    def _after_plain_edge(self, level: Level, begin: Term) -> Term:
        plain = [EVERYWHERE[0] if self._slices(each) else each.edges[0] for each, _ in level.entries]
        if len(plain) == 1:
            return after_edge(plain, begin)
        offsets = self._by_entry("offset", [offset for _, offset in plain])
        return (begin - offsets) % self._by_entry("slide", [step for step, _ in plain])

    def _slices(self, assigner: Assigner) -> Slices | None:
        """Return the slices that rows are assigned to, if they are cut at more than one progression."""
        window = self.plan.nodes[assigner.target].window
        if assigner.passes_through or not isinstance(window, Slices):
            return None
        return window if len(window.edges) != 1 or window.calendars else None

    def _instances(self, level: Level, begin: Term, start: Term) -> Iterator[Term]:
        """List the conditions under which the instance at a start exists and contains the row."""
        assigners = [each for each, _ in level.entries]
        windows = [self.plan.nodes[each.target].window for each in assigners]

        def counted(clock: Clock) -> Term:
            return self._tick(level, clock, begin)

        plain = start
        if any(self._clock(each) for each in assigners):
            plain = self._last_edge(level, begin, self._after_edge(level, begin))
        if any(each.before != ALWAYS for each in assigners):
            yield begin < self._by_entry("before", [each.before for each in assigners])
        if any(each.max_age != ALWAYS for each in assigners):
            age = self._on_clocks(
                level, begin - plain, lambda clock: self._ticking(level, clock, begin) - counted(clock)
            )
            yield age <= self._by_entry("max_age", [each.max_age for each in assigners])
        if any(each.grid != (1, 0) for each in assigners):
            slide = self._by_entry("grid", [each.grid[0] for each in assigners])
            offset = self._by_entry("shift", [each.grid[1] for each in assigners])
            yield ((self._on_clocks(level, plain, counted) - offset) % slide).equals(0)
        skips = [
            () if isinstance(window, Slices | Session) or each.passes_through else window.skips
            for each, window in zip(assigners, windows, strict=True)
        ]
        for place in range(max(map(len, skips))):
            skipped = [own[place] if len(own) > place else ALWAYS for own in skips]
            yield self._on_clocks(level, plain, counted).differs(self._by_entry("skip", skipped))
        growing = {
            each.target: window.period
            for each, window in zip(assigners, windows, strict=True)
            if isinstance(window, Growing) and not each.passes_through
        }
        if growing:
            targets = self._by_entry("to", [each.target for each in assigners], "int")
            pairs = [part for place, own in growing.items() for part in (Number(place, "int"), end_of(own, begin))]
            yield start < Call("case", (targets, Number(ALWAYS), *pairs))

    def _inside_chunk(self, start: Term, *, is_last: bool) -> Term:
        """Keep the instances that a chunk can complete, and at the last level only those that start in it.

        For nearly all rows the position of the row itself decides, which is much cheaper than the position of each
        instance.
        """
        chunk = Column(self.names.chunk)
        after = Column(self.names.start) - chunk
        inside: Term = start >= chunk
        deep_inside: Term = after >= self.longest
        if is_last:
            inside = inside & (start < chunk + self.layout.chunk)
            deep_inside = deep_inside & (after < self.layout.chunk)
        return deep_inside | inside

    def _carried_keys(self, level: Level, is_first: bool) -> Iterator[Named]:
        """Return the keys of the instance that a row is assigned to: null for those that its node does not have."""
        above = self.event_keys if is_first else self.names.keys
        for name, own, key in zip(self.names.keys, above, self.plan.query.parsed_keys, strict=True):
            has = [key.sql in self.plan.nodes[each.target].node.keys for each, _ in level.entries]
            if own != name or not is_first or not all(has):
                yield name, self._where(has, f"has_{name}", Column(own))

    def _carried_states(self, level: Level) -> Iterator[Named]:
        """Return the states of the instance that a row is assigned to: null for those that are not needed there."""
        for state in self.values.states:
            needed = [state.name in self.needs[each.target] for each, _ in level.entries]
            yield state.name, self._where(needed, f"has_{state.name}", self._carried_state(level, state.name))
        yield from ((name, self._carried_state(level, name)) for name in self.ends)

    def _carried_state(self, level: Level, name: str) -> Term:
        if level.scanned is None:
            return Column(name)
        scans = Column(prefix_column(name)), Column(suffix_column(name))
        return self._or_scanned(level, Column(name), Call("if", (self._is_prefix(level.scanned), *scans)))

    def _lifts(self) -> Iterator[tuple[str, Sql]]:
        """Lift events to states or, if some aggregate cannot be shared, compute the user's own aggregates directly."""
        if self.values.shared:
            yield from ((state.name, Sql(state.lift)) for state in self.values.states)
        else:
            yield from ((self.names.value(place), Sql(each.direct)) for place, each in enumerate(self.values.results))
        yield from self._ends([self.names.time] * 2)

    def _merges(self) -> Iterator[tuple[str, Sql]]:
        yield from ((state.name, Sql(state.combine)) for state in self.values.states)
        yield from self._ends(self.ends)

    def _ends(self, columns: Sequence[str]) -> Iterator[tuple[str, Sql]]:
        """Keep the times of the first and last event, where there are sessions."""
        calls = zip(self.ends, ("min", "max"), columns, strict=False)
        return ((name, Sql(f"{function}({column})")) for name, function, column in calls)

    def _pack(self) -> Iterator[Step]:
        """Group events by keys and stretch of time, with each state once per slot.

        A bit mask says which slots contain an event: a state alone cannot, because the state of a null is null.
        """
        row, names = self.layout.pane_row, self.names
        assert row is not None
        after, stretch = Column(names.entry), (row.window.range, row.window.offset)
        yield Project(((names.entry, after_edge([stretch], Column(names.time))),), keeps_others=True)
        slot = Call("int", (after // row.pane.range,))
        yield Project(((names.start, Column(names.time) - after), (names.step, slot)), keeps_others=True)
        filled = names.entry, Sql(f"bit_or(shiftleft(1, {names.step}))")
        columns = [
            (slot_column(state.name, number), Sql(lift))
            for state in self.values.states
            for number, lift in enumerate(_in_slots(state.lift, names.step, row.slots))
        ]
        by = (*names.keys, names.start)
        end, grid = Column(names.start) + row.window.range, grid_of(row.window)
        yield Group(by, (filled, *columns), (), end, merges=False, grid=grid)

    def _unpack(self) -> Unpack:
        row, names = self.layout.pane_row, self.names
        assert row is not None
        entries = tuple(
            (place, slots)
            for place in self.layout.unpacked(self.plan)
            for slots in row.slots_of(window_of(self.plan.nodes[place].node))
        )
        keeps = (*names.keys, *self.chunk)
        states = tuple(self.values.states)
        return Unpack(row, entries, states, keeps, names.entry, names.step, names.start, names.node)

    def _shuffle(self) -> Iterator[Step]:
        """Bring all rows that later levels group into one partition, so that nothing is shuffled again."""
        names, layout = self.names, self.layout
        if layout.distribution is Distribution.ONE_PARTITION:
            yield Repartition((), 1)
        if layout.distribution not in (Distribution.BY_KEY, Distribution.BY_KEY_AND_CHUNK):
            return
        if self.chunk:
            offset = layout.pane_row.pane.offset if layout.pane_row else 0
            yield Chunk(names.chunk, names.start, layout.chunk, offset, self.longest)
        # Rows in order of time keep the hash table of the next level warm: a third less time for ten windows.
        ordered = tuple(key for key in names.keys if key not in self.target.unsorted)
        order = (*ordered, names.start) if layout.levels[1].scanned is None else ()
        if any(finds_sessions(self.plan, each) for each in layout.levels[1].assigners):
            order = (*self._side_by_side(layout.levels[0]), names.first)
        yield Repartition((*names.keys, *self.chunk), layout.partitions, sort=order)

    def _end(self, places: Sequence[int]) -> Term:
        """Return the end of a row's instance, which belongs to one of some nodes."""
        start, windows = Column(self.names.start), [node.window for node in self.plan.nodes]
        # A lookup covers the nodes whose instances all have the same length.
        lengths = [_fixed_length(window) for window in windows]
        ends = {
            place: self._own_end(window)
            for place, window in enumerate(windows)
            if place in places and lengths[place] is None
        }
        if len(places) == 1:
            return ends.get(places[0], start + (lengths[places[0]] or 0))
        known = [
            _some_length(window) if length is None else length for window, length in zip(windows, lengths, strict=True)
        ]
        usual = start + look_up(self.names.node, "range", known)
        return self._by_place(usual, ends)

    def _own_end(self, window: Segmentation) -> Term:
        start = Column(self.names.start)
        if isinstance(window, Slices):
            return start + to_slice_end(window, start)
        return Column(self.names.last) + window.gap if isinstance(window, Session) else end_after(_last(window), start)

    def _by_place(self, usual: Term, own: Mapping[int, Term]) -> Term:
        """Return the term of a row's node, if it has one of its own."""
        pairs = [part for place, term in own.items() for part in (Number(place), term)]
        return Call("case", (Column(self.names.node), usual, *pairs)) if own else usual

    def _show(self, level: Level | None) -> Show:
        """Show the nodes of a level, or all nodes if nothing passes from level to level."""
        nodes, start = self.plan.nodes, Column(self.names.start)
        shown = range(len(nodes)) if level is None else self.layout.shown(self.plan, level)
        values = tuple(self._value(place) for place in range(len(self.values.results)))
        names = tuple(node.shown_as if place in shown else () for place, node in enumerate(nodes))
        exposed = [place for place in shown if nodes[place].exposed]
        growing = {
            place: start_of(node.window.period, start)
            for place, node in enumerate(nodes)
            if isinstance(node.window, Growing) and place in shown
        }
        begin = growing[0] if len(nodes) == 1 and growing else self._by_place(start, growing)
        hides = level is not None and not set(level.nodes) <= set(shown)
        return Show(names, self.names.keys, begin, self._end(exposed), self.names.node, values, hides)

    def _value(self, place: int) -> Term:
        """Return the term of an aggregate's result, in rows of the nodes that it is requested for.

        Other nodes share its states, and may hold a sum that overflows.
        """
        result = self.values.results[place]
        if not self.values.shared:
            return Column(self.names.value(place))
        asked = {each.node for each in self.plan.outputs if place in each.aggregates}
        has = [int(not node.exposed or node.node in asked) for node in self.plan.nodes]
        is_asked, lower = look_up(self.names.node, f"has_{place}", has, "int").equals(1), Sql(result.lower)
        return lower if all(has) or not result.nullable else only_if(is_asked, lower)


def _last(window: Window | Growing) -> Window:
    """Return the window that an instance's start refers to: the window itself, or the step of a growing one."""
    return window.step if isinstance(window, Growing) else window


def _some_length(segmentation: Segmentation) -> int:
    """Return some length for a segmentation without a fixed one; it is never looked up."""
    return segmentation.gap if isinstance(segmentation, Session) else segmentation.longest


def _session(window: Segmentation) -> Session:
    assert isinstance(window, Session)
    return window


def _fixed_length(segmentation: Segmentation) -> int | None:
    """Return how long after its start an instance ends, if this is the same for all."""
    if isinstance(segmentation, Slices):
        is_even = len(segmentation.edges) == 1 and not segmentation.calendars
        return segmentation.range if is_even else None
    if isinstance(segmentation, Session):
        return None
    last = _last(segmentation)
    return last.range if last.clock is None else None


def _in_slots(lift: str, slot: str, number: int) -> list[str]:
    """Lift only the events of one slot, for each slot."""
    tree = tree_of(lift)
    call, also = tree, ""
    if isinstance(tree, exp.Filter):
        call, also = tree.this, f" AND ({sql_of(tree.expression.this)})"
    return [f"{sql_of(call)} FILTER (WHERE {slot} = {place}{also})" for place in range(number)]
