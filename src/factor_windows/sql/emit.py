"""A plan as SQL text: one step of WITH for each level, and nothing of this library needed to run it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import sqlglot
from sqlglot import exp

from factor_windows.aggregates import Aggregate
from factor_windows.errors import OptionError
from factor_windows.expressions import VerbatimSpark
from factor_windows.functions import Kind, State
from factor_windows.levels import ALWAYS, EVERYWHERE, Feed, Level, compile_levels
from factor_windows.plan import Plan
from factor_windows.slices import Progression
from factor_windows.sql.flink import emit_flink
from factor_windows.sql.statement import Statement
from factor_windows.states import StateColumns

DIALECTS = ("spark", "duckdb", "flink")
_SKETCHES = {"approx_percentile", "approx_count_distinct"}


def emit(plan: Plan, *, dialect: str) -> str:
    """Write a plan in the SQL of an engine."""
    if dialect not in DIALECTS:
        raise OptionError(f"dialect {dialect!r} is not written; allowed are {', '.join(DIALECTS)}")
    return emit_flink(plan) if dialect == "flink" else _Writer(plan, dialect).text()


def emit_statement(statement: Statement, plans: Sequence[Plan], *, dialect: str) -> str:
    """Write a whole statement: its queries, and what goes on around them."""
    if len(plans) == 1:
        return emit(replace(plans[0], query=replace(plans[0].query, outer=statement.outer_of_one)), dialect=dialect)
    if dialect == "flink":
        raise OptionError("several queries in one statement cannot be written for Flink; give them one at a time")
    prefix = _free(("result",), f"{_unbraced(statement.outer, '')} {' '.join(plan.query.source for plan in plans)}")
    steps = [f"{prefix}result{n} AS (\n{_indented(emit(plan, dialect=dialect))}\n)" for n, plan in enumerate(plans)]
    final = sqlglot.parse_one(_unbraced(statement.outer, f"{prefix}result"), read=_reads(dialect))
    return _with(steps, final, dialect)


def _reads(dialect: str) -> type[VerbatimSpark] | str:
    """Return how fragments are read: word for word for Spark, with their meaning where they are to be translated."""
    return VerbatimSpark if dialect == "spark" else "spark"


def _sql(tree: exp.Expr, dialect: str) -> str:
    writes = VerbatimSpark if dialect == "spark" else dialect
    return tree.sql(dialect=writes, pretty=True, normalize_functions=False, comments=False)


def _with(steps: list[str], final: exp.Expr, dialect: str) -> str:
    """Put steps before a query, and before those that it has itself."""
    with_ = final.args.get("with_")
    if with_ is not None:
        with_.pop()
        steps = [*steps, *(_sql(cte, dialect) for cte in with_.expressions)]
    listed = ",\n".join(steps)
    return f"WITH\n{listed}\n{_sql(final, dialect)}"


def _unbraced(outer: str, name: str) -> str:
    """Put the names of steps in the place of results."""
    outer = outer.replace("{result}", name)
    for number in range(outer.count("{result"), -1, -1):
        outer = outer.replace(f"{{result{number}}}", f"{name}{number}")
    return outer.replace("{{", "{").replace("}}", "}")


class _Writer:
    def __init__(self, plan: Plan, dialect: str) -> None:
        self.dialect = dialect
        aggregates = plan.query.parsed_aggregates
        self.shared = not any(_unshared(aggregate, dialect) for aggregate in aggregates)
        self.plan = plan if self.shared else plan.naive()
        self.query = plan.query
        self.levels = compile_levels(self.plan).levels
        self.prefix = _free(("level_", "computed", "result"), f"{self.query.source} {_unbraced(self.query.outer, '')}")
        own = _free(("fw_",), " ".join((*self.query.keys, *self.query.aggregates, self.query.where, self.query.time)))
        self.own = f"{own}fw_"
        self.node, self.start, self.time = (f"{self.own}{name}" for name in ("node", "start", "time"))
        columns = StateColumns(f"{self.own}s")
        if self.shared:
            self.values = [columns.add(each, _untyped(each, self.time), each.function.lower) for each in aggregates]
            self.states = columns.states
        else:
            direct = [aggregate.direct(time=self.time) for aggregate in aggregates]
            self.states = tuple(State(f"{self.own}v{number}", text, "") for number, text in enumerate(direct))
            self.values = [f"`{state.name}`" for state in self.states]

    def text(self) -> str:
        """Write it all, with a comment for each step."""
        steps: list[tuple[str, exp.Expr, str]] = [
            (self._name(number), self._level(number), self._describe(number))
            for number in range(1, len(self.levels) + 1)
        ]
        shown: exp.Expr = self._shown()
        if self.query.having or self.query.parsed_output:
            steps.append((f"{self.prefix}computed", shown, "every window under its name"))
            shown = self._finished()
        if self.query.outer:
            steps.append((f"{self.prefix}result", shown, "what the window aggregates of the query show"))
            outer = _unbraced(self.query.outer, f"{self.prefix}result")
            shown = sqlglot.parse_one(outer, read=_reads(self.dialect))
        written = [
            f"-- {comment}\n{name} AS (\n{_indented(_sql(tree, self.dialect))}\n)" for name, tree, comment in steps
        ]
        return _with(written, shown, self.dialect)

    def _name(self, number: int) -> str:
        return f"{self.prefix}level_{number}"

    def _describe(self, number: int) -> str:
        level = self.levels[number - 1]
        nodes = {feed.target for feed in level.feeds if feed.source != feed.target}
        names = [
            " = ".join(node.shown_as) if node.exposed else f"{node.name} (hidden)"
            for place, node in enumerate(self.plan.nodes)
            if place in nodes
        ]
        source = "events" if number == 1 else self._name(number - 1)
        return _one_line(f"{', '.join(names)}: from {source}")

    def _read(self, text: str) -> exp.Expr:
        tree = sqlglot.parse_one(text, read=_reads(self.dialect))
        return tree.transform(_with_nulls) if self.dialect == "duckdb" else tree

    def _after(self, begin: str, step: str, offset: str = "0") -> str:
        """Write how long a time is after the last of offset + k * step that is not after it."""
        after = begin if offset == "0" else f"({begin} - {offset})"
        return f"(({after} % {step}) + {step}) % {step}" if self.dialect == "duckdb" else f"pmod({after}, {step})"

    def _after_edges(self, begin: str, edges: Sequence[Progression]) -> str:
        terms = [self._after(begin, str(step), str(offset)) for step, offset in edges]
        return f"least({', '.join(terms)})" if len(terms) > 1 else terms[0]

    def _level(self, number: int) -> exp.Select:
        level = self.levels[number - 1]
        first = number == 1
        keys = [self._key(place, first) for place in range(len(self.query.parsed_keys))]
        begin = self.time if first else self.start
        flat, entries = level.flat, level.entries
        alone = flat and len(entries) == 1
        table = _feeds(entries, flat)
        if alone:
            feed = entries[0][0]
            own = {name: str(column[0]) for name, column in table.items()}
            start, node = f"{begin} - {self._after_edges(begin, feed.edges)}", str(feed.target)
        else:
            own = {name: f"{self.own}{name}" for name in table}
            start, node = f"{begin} - {self._after_feed(begin, level, own)}", own["to"]
        if "back" in table:
            start += f" - {own['back']}"
        if "stride" in table:
            back = f"{self.own}step * {own['stride']}"
            start += f" - least({back}, {own['most']})" if "most" in table else f" - {back}"
        kept = [f"{begin} - ({start}) <= {own['reach']}"] if "reach" in table else []
        if "grid" in table:
            kept.append(f"{self._after(f'({start})', own['grid'], own.get('shift', '0'))} = 0")
        select = exp.Select(expressions=[*keys, self._named(node, self.node), self._named(start, self.start)])
        for state in self.states:
            select.append("expressions", self._named(state.lift if first else state.combine, state.name))
        select.set("from_", exp.From(this=self._events() if first else exp.to_table(self._name(number - 1))))
        if not alone:
            values = _values(list(zip(*table.values(), strict=True)), "feeds", [f"{self.own}{name}" for name in table])
            on = self._read(f"{self.node} = {self.own}from") if "from" in table else None
            select.append("joins", exp.Join(this=values, on=on, kind=None if on else "CROSS"))
        if not flat:
            most = max(feed.steps for feed in level.feeds)
            steps = self._read(f"SELECT 1 FROM range({most}) AS steps({self.own}step)").args["from_"].this
            select.append("joins", exp.Join(this=steps, on=self._read(f"{self.own}step < {self.own}steps")))
        for condition in kept:
            select = select.where(self._read(condition), copy=False)
        groups = [place + 1 for place in range(len(keys))] + [len(keys) + (2 if alone else 1)]
        groups += [] if alone else [len(keys) + 2]
        return select.group_by(*(exp.Literal.number(place) for place in groups), copy=False)

    def _after_feed(self, begin: str, level: Level, own: Mapping[str, str]) -> str:
        """Write how long a row starts after the last edge of the feed that it is joined with."""
        after = self._after(begin, own["slide"], own.get("offset", "0"))
        slices = {feed.target: feed.edges for feed in level.feeds if len(feed.edges) > 1}
        if not slices:
            return after
        whens = " ".join(f"WHEN {place} THEN {self._after_edges(begin, edges)}" for place, edges in slices.items())
        return f"CASE {own['to']} {whens} ELSE {after} END"

    def _key(self, place: int, first: bool) -> exp.Expr:
        key = self.query.parsed_keys[place]
        name = exp.to_identifier(key.name, quoted=True)
        return exp.alias_(self._read(key.sql), name) if first else exp.Column(this=name)

    def _named(self, text: str, name: str) -> exp.Expr:
        return exp.alias_(self._read(text), name)

    def _events(self) -> exp.Expr:
        """Return the events that count, with their time in microseconds."""
        time = self.query.parsed_time.sql
        micros = f"epoch_us({time})" if self.dialect == "duckdb" else f"unix_micros(CAST({time} AS TIMESTAMP))"
        events = exp.select("*").select(self._named(micros, self.time))
        source = self._read(f"SELECT * FROM {self.query.source or 'events'}").args["from_"].this
        if isinstance(source, exp.Subquery) and not source.alias:
            source = exp.alias_(source, "source", table=True)
        events.set("from_", exp.From(this=source))
        events = events.where(exp.not_(exp.Is(this=self._read(time), expression=exp.Null())), copy=False)
        if self.query.where:
            events = events.where(exp.paren(self._read(self.query.where)), copy=False)
        return events.subquery("events")

    def _shown(self) -> exp.Select:
        stamp = "make_timestamp" if self.dialect == "duckdb" else "timestamp_micros"
        rows = [
            (place, node.window.range, name) for place, node in enumerate(self.plan.nodes) for name in node.shown_as
        ]
        select = exp.Select(expressions=[self._key(place, first=False) for place in range(len(self.query.parsed_keys))])
        for text, name in ((f"{self.own}name", "window_id"), (f"{stamp}({self.start})", "window_start")):
            select.append("expressions", self._named(text, name))
        select.append("expressions", self._named(f"{stamp}({self.start} + {self.own}range)", "window_end"))
        for aggregate, value in zip(self.query.parsed_aggregates, self.values, strict=True):
            shown = exp.alias_(self._read(value), exp.to_identifier(aggregate.name, quoted=True))
            select.append("expressions", shown)
        select.set("from_", exp.From(this=exp.to_table(self._name(len(self.levels)))))
        names = _values(rows, "names", [f"{self.own}{name}" for name in ("shown", "range", "name")])
        select.append("joins", exp.Join(this=names, on=self._read(f"{self.node} = {self.own}shown")))
        return select

    def _finished(self) -> exp.Select:
        columns = [
            exp.alias_(self._read(column.sql), exp.to_identifier(column.name, quoted=True))
            for column in self.query.parsed_output
        ]
        select = exp.Select(expressions=columns or [exp.Star()])
        select.set("from_", exp.From(this=exp.to_table(f"{self.prefix}computed")))
        return select.where(self._read(self.query.kept), copy=False) if self.query.having else select


def _with_nulls(node: exp.Expr) -> exp.Expr:
    """Call min_by and max_by so that DuckDB, which passes over null values, takes them as Spark does."""
    if isinstance(node, exp.ArgMin | exp.ArgMax):
        name = "arg_min_null" if isinstance(node, exp.ArgMin) else "arg_max_null"
        return exp.Anonymous(this=name, expressions=[node.this, node.expression])
    return node


def _feeds(entries: Sequence[tuple[Feed, int]], flat: bool) -> dict[str, list[int]]:
    """Return the table of feeds by columns; those that say nothing are left out."""
    feeds = [feed for feed, _ in entries]
    edges = [feed.edges[0] if len(feed.edges) == 1 else EVERYWHERE[0] for feed in feeds]
    table = {
        "from": ([feed.source for feed in feeds], len({feed.source for feed in feeds}) > 1),
        "to": ([feed.target for feed in feeds], True),
        "slide": ([step for step, _ in edges], True),
        "offset": ([offset for _, offset in edges], any(offset for _, offset in edges)),
        "back": ([feed.back(step) for feed, step in entries], flat and any(step for _, step in entries)),
        "steps": ([feed.steps for feed in feeds], not flat),
        "stride": ([feed.stride for feed in feeds], not flat),
        "most": ([feed.most for feed in feeds], not flat and any(feed.most != ALWAYS for feed in feeds)),
        "reach": ([feed.reach for feed in feeds], any(feed.reach != ALWAYS for feed in feeds)),
        "grid": ([feed.grid[0] for feed in feeds], any(feed.grid != (1, 0) for feed in feeds)),
        "shift": ([feed.grid[1] for feed in feeds], any(feed.grid[1] for feed in feeds)),
    }
    return {name: column for name, (column, needed) in table.items() if needed}


def _free(names: Sequence[str], text: str) -> str:
    """Return what keeps names of ours apart from those in a text."""
    prefix = ""
    while any(f"{prefix}{name}" in text.lower() for name in names):
        prefix += "fw_"
    return prefix


def _unshared(aggregate: Aggregate, dialect: str) -> bool:
    """Say whether an aggregate has no partial states that this engine can merge without knowing types."""
    if aggregate.kind is Kind.HOLISTIC or aggregate.function.name == "approx_percentile":
        return True
    return dialect != "spark" and aggregate.function.name in _SKETCHES


def _untyped(aggregate: Aggregate, time: str) -> Iterable[State]:
    """Return an aggregate's states in a form that suits every type."""
    for state in aggregate.states(time=time):
        if aggregate.function.name == "approx_count_distinct":
            call = f"CAST({aggregate.arguments[0]} AS STRING)"
            condition = f" FILTER (WHERE {aggregate.filter})" if aggregate.filter else ""
            yield replace(state, lift=f"hll_sketch_agg({call}){condition}")
        else:
            yield state


def _values(rows: Sequence[Sequence[int | str]], name: str, columns: Sequence[str]) -> exp.Expr:
    listed = [
        exp.Tuple(expressions=[exp.Literal.string(v) if isinstance(v, str) else exp.convert(v) for v in row])
        for row in rows
    ]
    alias = exp.TableAlias(this=exp.to_identifier(name), columns=[exp.to_identifier(column) for column in columns])
    return exp.Values(expressions=listed, alias=alias)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _one_line(text: str) -> str:
    """Keep a comment on its line, whatever names are in it."""
    return " ".join(text.split())
