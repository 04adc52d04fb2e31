"""A physical plan as WITH steps: one for each level, then the shown rows, and what the query does with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from factor_windows import physical
from factor_windows.algebra.clock import Clock, constant_offset
from factor_windows.engines.read_columns import ReadColumns
from factor_windows.engines.spelling import DuckdbSpelling, SparkSpelling, Spelling, read, write
from factor_windows.engines.untyped import is_shared, untyped
from factor_windows.engines.written_terms import write_term
from factor_windows.functions.expression import tree_of
from factor_windows.physical import Target
from factor_windows.physical.steps import Explode, Filter, FindSessions, Group, Project, Scan, Show, Step
from factor_windows.physical.target import Names, Values
from factor_windows.physical.terms import Column, Lookup, Number, Sql, Term, parts_of
from factor_windows.query import Query
from factor_windows.spark.local_time import write_instant, write_tick
from factor_windows.tree import Pass

SPELLINGS: dict[str, Spelling] = {"spark": SparkSpelling(), "duckdb": DuckdbSpelling()}


@dataclass(frozen=True, slots=True)
class SqlWords:
    """Writes terms over the columns of WITH steps, in which lookups are columns of joined tables."""

    spelling: Spelling
    prefix: str

    def number(self, number: Number) -> str:
        """Write a number without a type."""
        return str(number.value)

    def lookup(self, lookup: Lookup) -> str:
        """Name the column of the joined table."""
        return f"{self.prefix}{lookup.name}"

    def modulo(self, number: str, divisor: str) -> str:
        """Write a remainder as the engine does."""
        return self.spelling.modulo(number, divisor)

    def tick(self, clock: Clock, time: str) -> str:
        """Write the number of a local day or month."""
        return write_tick(clock, time, self.spelling.local_time)

    def instant(self, clock: Clock, tick: str) -> str:
        """Write the time at which a local day or month starts."""
        return write_instant(clock, tick, self.spelling.local_time)

    def sql(self, text: str) -> str:
        """Translate Spark SQL."""
        return write(self.spelling.translate(tree_of(text)), self.spelling)


class Writer:
    """Writes one plan in the SQL of one engine."""

    def __init__(self, plan: Pass, dialect: str) -> None:
        self.spelling = SPELLINGS[dialect]
        query = self.query = plan.query
        shared = all(is_shared(aggregate, dialect) for aggregate in query.parsed_aggregates)
        self.prefix = free(("level_", "computed", "result"), f"{query.source} {fill(query.outer, '')}")
        own = own_prefix(query)
        self.names = Names(own, tuple(key.name for key in query.parsed_keys), f"{own}time")
        self.epoch = f"{own}epoch"
        zones = [part.clock.zone for window in query.windows for part in window.parts if part.clock]
        is_local = zones or any(part.is_local for window in query.windows for part in window.parts)
        self.calendar = next((zone for zone in zones if constant_offset(zone) != 0), "") if is_local else None
        self.words = SqlWords(self.spelling, own)
        stated = [untyped(each) if dialect == "spark" else each for each in query.parsed_aggregates]
        values = Values.of(stated, self.names, shared=shared)
        self.compiled = physical.compile(plan, Target(self.names, values))

    def text(self) -> str:
        """Write the whole plan, with a comment for each step."""
        selects: list[tuple[str, exp.Expr, str]] = []
        level: list[Step] = []
        for step in self.compiled.steps[:-1]:
            level.append(step)
            if isinstance(step, Group):
                above = len(selects)
                selects.append((self._name(above + 1), self._level(level, above), self._describe(above)))
                level = []
        shown: exp.Expr = self._shown(self.compiled.show)
        if self.query.having or self.query.parsed_output:
            selects.append((f"{self.prefix}computed", shown, "every window under its name"))
            shown = self._finished()
        if self.query.outer:
            selects.append((f"{self.prefix}result", shown, "what the window aggregates of the query show"))
            shown = self._read(fill(self.query.outer, f"{self.prefix}result"))
        written = [
            f"-- {one_line(comment)}\n{name} AS (\n{indented(write(tree, self.spelling))}\n)"
            for name, tree, comment in selects
        ]
        return with_steps(written, shown, self.spelling)

    def _name(self, number: int) -> str:
        return f"{self.prefix}level_{number}"

    def _describe(self, place: int) -> str:
        assigners = self.compiled.layout.levels[place].assigners
        computed = {each.target for each in assigners if not each.passes_through}
        names = [
            " = ".join(node.shown_as) if node.exposed else f"{node.name} (hidden)"
            for number, node in enumerate(self.compiled.plan.nodes)
            if number in computed
        ]
        return f"{', '.join(names)}: from {self._name(place) if place else 'events'}"

    def _read(self, text: str) -> exp.Expr:
        """Read Spark SQL, the user's or of a function's states, for this engine."""
        return self.spelling.translate(tree_of(text))

    def _ours(self, text: str) -> exp.Expr:
        return read(text, self.spelling)

    def _term(self, term: Term) -> exp.Expr:
        if isinstance(term, Sql):
            return self._read(term.text)
        if isinstance(term, Column) and term.name in self.names.keys:
            return exp.Column(this=exp.to_identifier(term.name, quoted=True))
        return self._ours(write_term(term, self.words))

    def _level(self, steps: Sequence[Step], above: int) -> exp.Select:
        """Write the steps of a level as one select: explode, filter, project, group."""
        select = exp.Select()
        columns = ReadColumns(self.names.prefix, ours=(self.names.time,))
        scan = next((step for step in steps if isinstance(step, Scan)), None)
        computed: dict[str, exp.Expr] = {}
        if scan is not None:
            computed = {name: columns.take(self._read(sql)) for name, sql in scan.keys}
        for step in steps:
            match step:
                case Explode():
                    select.set("joins", self._joins(step, steps))
                case Filter(conditions=conditions):
                    select = select.where(*map(self._term, conditions), copy=False)
                case Project():
                    computed |= {name: self._term(term) for name, term in step.columns}
                case Group():
                    self._group(select, step, computed, columns if scan else None)
                case other if other is not scan and not isinstance(other, FindSessions):
                    raise TypeError(f"{other!r} is not written in SQL")
        events = self._events(scan, columns) if scan else exp.to_table(self._name(above))
        for step in steps:
            if isinstance(step, FindSessions):
                events = self._in_sessions(
                    step, events, [computed.get(key, self._term(Column(key))) for key in step.by]
                )
        select.set("from_", exp.From(this=events))
        return select

    def _in_sessions(self, step: FindSessions, rows: exp.Expr, by: Sequence[exp.Expr]) -> exp.Expr:
        """Add the start of each row's sessions: one starts where the previous row ended more than a gap ago."""
        before, first = f"{self.names.prefix}before", step.first

        def over(call: str, *, running: bool) -> exp.Expr:
            order = self._ours(f"SELECT {call} OVER (ORDER BY {first}{' ROWS UNBOUNDED PRECEDING' if running else ''})")
            [window] = order.find_all(exp.Window)
            window.set("partition_by", [each.copy() for each in by])
            return window

        found = exp.Select(expressions=[exp.Star(), exp.alias_(over(f"lag({step.last})", running=False), before)])
        found.set("from_", exp.From(this=rows))
        starts = []
        for name, gap in step.gaps:
            begins = f"max(CASE WHEN {before} IS NULL OR {first} - {before} > {gap} THEN {first} END)"
            starts.append(exp.alias_(over(begins, running=True), name))
        told = exp.Select(expressions=[exp.Star(), *starts])
        told.set("from_", exp.From(this=found.subquery("ordered")))
        return told.subquery(rows.alias_or_name)

    def _group(
        self, select: exp.Select, group: Group, computed: dict[str, exp.Expr], columns: ReadColumns | None
    ) -> None:
        """Select keys, node, start, the type of times, and states; group by their positions."""
        node, start = self.names.node, self.names.start
        computed = computed | {name: self._term(term) for name, term in group.constants}
        for key in self.names.keys:
            made = computed[key]
            name = exp.to_identifier(key, quoted=True)
            is_named = columns is None and made == exp.Column(this=name)
            select.append("expressions", made if is_named else exp.alias_(made, name))
        for column in (node, start):
            select.append("expressions", exp.alias_(computed[column], column))
        select.append("expressions", exp.column(self.epoch))
        for state, sql in group.aggregates:
            made = self._read(sql.text)
            select.append("expressions", exp.alias_(columns.take(made) if columns else made, state))
        count = len(self.names.keys)
        places = [*range(1, count + 1), *([count + 1] if node in group.by else []), count + 2, count + 3]
        select.group_by(*map(exp.Literal.number, places), copy=False)

    def _joins(self, explode: Explode, steps: Iterable[Step]) -> list[exp.Join]:
        """Join each row with the entries of its node and, where steps are counted, with each entry's steps."""
        own = self.names.prefix
        terms = [
            *(term for step in steps if isinstance(step, Filter) for term in step.conditions),
            *(term for step in steps if isinstance(step, Project) for _, term in step.columns),
        ]
        lookups = {part.name: part.values for term in terms for part in parts_of(term) if isinstance(part, Lookup)}
        sources = {"from": explode.sources} if len(set(explode.sources)) > 1 else {}
        counted = explode.counts
        counts = {counted.name: counted.values} if isinstance(counted, Lookup) else {}
        joins = []
        if len(explode.sources) > 1:
            table = {**sources, **counts, **dict(sorted(lookups.items(), key=lambda each: each[0] != "to"))}
            entries = list(zip(*table.values(), strict=True))
            on = self._ours(f"{self.names.node} = {own}from") if sources else None
            values = _values(entries, "entries", [f"{own}{name}" for name in table])
            joins.append(exp.Join(this=values, on=on, kind=None if on else "CROSS"))
        if counted is not None:
            most = max(counted.values) if isinstance(counted, Lookup) else write_term(counted, self.words)
            steps_ = self._ours(f"SELECT 1 FROM range({most}) AS steps({self.names.step})").args["from_"].this
            limit = self._ours(f"{self.names.step} < {write_term(counted, self.words)}")
            joins.append(exp.Join(this=steps_, on=limit))
        return joins

    def _named(self, text: str, name: str) -> exp.Expr:
        return exp.alias_(self._ours(text), name)

    def _events(self, scan: Scan, columns: ReadColumns) -> exp.Expr:
        """Return the events that meet the condition: the columns that are read, and the time in microseconds."""
        spelled = write(self._read(scan.time), self.spelling)
        events = exp.Select(expressions=columns.selected)
        events.append("expressions", self._named(self.spelling.microseconds(spelled, self.calendar), scan.column))
        events.append("expressions", self._named(self.spelling.epoch(spelled, self.calendar), self.epoch))
        source = self._read(f"SELECT * FROM {self.query.source or 'events'}").args["from_"].this
        if isinstance(source, exp.Subquery) and not source.alias:
            source = exp.alias_(source, "source", table=True)
        events.set("from_", exp.From(this=source))
        known = exp.not_(exp.Is(this=self._ours(spelled), expression=exp.Null()))
        if scan.where:
            events = events.where(exp.paren(self._read(scan.where)), copy=False)
        return events.where(known, copy=False).subquery("events")

    def _shown(self, show: Show) -> exp.Select:
        """Select every window under its names, which are in a table with everything else that depends on the node."""
        terms = (show.start, show.end, *show.values)
        by_node = {part.name: part.values for term in terms for part in parts_of(term) if isinstance(part, Lookup)}
        rows: list[tuple[int | str, ...]] = [
            (place, *(values[place] for values in by_node.values()), name)
            for place, names in enumerate(show.names)
            for name in names
        ]
        select = exp.Select(expressions=[self._term(Column(key)) for key in show.keys])
        ends = {
            f"window_{name}": self.spelling.moment(self.epoch, text if text.isidentifier() else f"({text})")
            for name, text in (("start", write_term(show.start, self.words)), ("end", write_term(show.end, self.words)))
        }
        for name, text in {"window_id": f"{self.names.prefix}name", **ends}.items():
            select.append("expressions", self._named(text, name))
        for aggregate, value in zip(self.query.parsed_aggregates, show.values, strict=True):
            shown = exp.alias_(self._term(value), exp.to_identifier(aggregate.name, quoted=True))
            select.append("expressions", shown)
        select.set("from_", exp.From(this=exp.to_table(self._name(len(self.compiled.layout.levels)))))
        table = _values(rows, "names", [f"{self.names.prefix}{name}" for name in ("shown", *by_node, "name")])
        on = self._ours(f"{self.names.node} = {self.names.prefix}shown")
        select.append("joins", exp.Join(this=table, on=on))
        return select

    def _finished(self) -> exp.Select:
        columns = [
            exp.alias_(self._read(column.sql), exp.to_identifier(column.name, quoted=True))
            for column in self.query.parsed_output
        ]
        select = exp.Select(expressions=columns or [exp.Star()])
        select.set("from_", exp.From(this=exp.to_table(f"{self.prefix}computed")))
        return select.where(self._read(self.query.kept), copy=False) if self.query.having else select


def own_prefix(query: Query) -> str:
    """Return a prefix for internal column names that the query's names do not have."""
    texts = (*query.keys, *query.aggregates, query.where, query.time)
    return f"{free(('fw_',), ' '.join(texts))}fw_"


def _values(rows: Sequence[Sequence[int | str]], name: str, columns: Sequence[str]) -> exp.Expr:
    listed = [
        exp.Tuple(expressions=[exp.Literal.string(v) if isinstance(v, str) else exp.convert(v) for v in row])
        for row in rows
    ]
    alias = exp.TableAlias(this=exp.to_identifier(name), columns=[exp.to_identifier(column) for column in columns])
    return exp.Values(expressions=listed, alias=alias)


def with_steps(steps: list[str], final: exp.Expr, spelling: Spelling) -> str:
    """Put steps before a query, and before the steps that it already has."""
    with_ = final.args.get("with_")
    if with_ is not None:
        with_.pop()
        steps = [*steps, *(write(cte, spelling) for cte in with_.expressions)]
    listed = ",\n".join(steps)
    return f"WITH\n{listed}\n{write(final, spelling)}"


def fill(outer: str, name: str, count: int = 0) -> str:
    """Replace the placeholders of results by the names of steps; braces of the user's own are doubled there.

    >>> fill("SELECT '{{result}}' FROM {result}", "fw_result")
    "SELECT '{result}' FROM fw_result"
    """
    return outer.format(result=name, **{f"result{number}": f"{name}{number}" for number in range(count)})


def free(names: Sequence[str], text: str) -> str:
    """Return a prefix that keeps internal names distinct from those in a text."""
    prefix = ""
    while any(f"{prefix}{name}" in text.lower() for name in names):
        prefix += "fw_"
    return prefix


def indented(text: str) -> str:
    """Indent text."""
    return "\n".join(f"  {line}" for line in text.splitlines())


def one_line(text: str) -> str:
    """Keep a comment on one line, whatever names are in it."""
    return " ".join(text.split())
