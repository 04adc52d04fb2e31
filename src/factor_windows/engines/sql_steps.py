"""A plan as WITH steps: one for each level, then what is shown, and what the query does with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from factor_windows.algebra.slices import Progression
from factor_windows.engines.read_columns import ReadColumns
from factor_windows.engines.spelling import DuckdbSpelling, SparkSpelling, Spelling, read, write
from factor_windows.engines.untyped import is_shared, untyped
from factor_windows.functions.columns import StateColumns
from factor_windows.functions.expression import tree_of
from factor_windows.functions.table import State
from factor_windows.physical.levels import ALWAYS, EVERYWHERE, Feed, Level, compile_levels
from factor_windows.plan import Plan
from factor_windows.query import Query

SPELLINGS: dict[str, Spelling] = {"spark": SparkSpelling(), "duckdb": DuckdbSpelling()}


class Writer:
    """Writes one plan in the SQL of one engine."""

    def __init__(self, plan: Plan, dialect: str) -> None:
        self.spelling = SPELLINGS[dialect]
        self.query: Query = plan.query
        aggregates = self.query.parsed_aggregates
        shared = all(is_shared(aggregate, dialect) for aggregate in aggregates)
        self.plan = plan if shared else plan.naive()
        self.levels = compile_levels(self.plan).levels
        self.prefix = free(("level_", "computed", "result"), f"{self.query.source} {fill(self.query.outer, '')}")
        texts = (*self.query.keys, *self.query.aggregates, self.query.where, self.query.time)
        self.own = f"{free(('fw_',), ' '.join(texts))}fw_"
        self.node, self.start, self.time, self.epoch = (
            f"{self.own}{name}" for name in ("node", "start", "time", "epoch")
        )
        if shared:
            columns = StateColumns(f"{self.own}s")
            stated = [untyped(each) if dialect == "spark" else each for each in aggregates]
            self.values = [columns.add(each, each.states(time=self.time), each.function.lower) for each in stated]
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
            shown = self._read(fill(self.query.outer, f"{self.prefix}result"))
        written = [
            f"-- {one_line(comment)}\n{name} AS (\n{indented(write(tree, self.spelling))}\n)"
            for name, tree, comment in steps
        ]
        return with_steps(written, shown, self.spelling)

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
        return f"{', '.join(names)}: from {'events' if number == 1 else self._name(number - 1)}"

    def _read(self, text: str) -> exp.Expr:
        """Read Spark SQL of the user's, or of a function's states, for this engine."""
        return self.spelling.translate(tree_of(text))

    def _ours(self, text: str) -> exp.Expr:
        return read(text, self.spelling)

    def _after(self, begin: str, step: str, offset: str = "0") -> str:
        """Write how long a time is after the last of offset + k * step that is not after it."""
        return self.spelling.modulo(begin if offset == "0" else f"({begin} - {offset})", step)

    def _after_edges(self, begin: str, edges: Sequence[Progression]) -> str:
        terms = [self._after(begin, str(step), str(offset)) for step, offset in edges]
        return f"least({', '.join(terms)})" if len(terms) > 1 else terms[0]

    def _level(self, number: int) -> exp.Select:
        level = self.levels[number - 1]
        first = number == 1
        alone = level.flat and len(level.entries) == 1
        table = _feeds(level.entries, level.flat)
        node, start, kept = self._instance(level, table, self.time if first else self.start)
        columns = ReadColumns(self.own, ours=(self.time,))
        keys = [self._key(place, columns if first else None) for place in range(len(self.query.parsed_keys))]
        select = exp.Select(expressions=[*keys, self._named(node, self.node), self._named(start, self.start)])
        select.append("expressions", exp.column(self.epoch))
        for state in self.states:
            made = columns.take(self._read(state.lift)) if first else self._read(state.combine)
            select.append("expressions", exp.alias_(made, state.name))
        select.set("from_", exp.From(this=self._events(columns) if first else exp.to_table(self._name(number - 1))))
        for join in () if alone else self._joins(level, table):
            select.append("joins", join)
        for condition in kept:
            select = select.where(self._ours(condition), copy=False)
        nodes = [] if alone else [len(keys) + 1]
        groups = [*range(1, len(keys) + 1), *nodes, len(keys) + 2, len(keys) + 3]
        return select.group_by(*(exp.Literal.number(place) for place in groups), copy=False)

    def _instance(self, level: Level, table: Mapping[str, list[int]], begin: str) -> tuple[str, str, list[str]]:
        """Write the node and the start of the instance that a row feeds, and the conditions that it must meet."""
        if level.flat and len(level.entries) == 1:
            feed = level.entries[0][0]
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
        return node, start, kept

    def _after_feed(self, begin: str, level: Level, own: Mapping[str, str]) -> str:
        """Write how long a row starts after the last edge of the feed that it is joined with."""
        after = self._after(begin, own["slide"], own.get("offset", "0"))
        slices = {feed.target: feed.edges for feed in level.feeds if len(feed.edges) > 1}
        if not slices:
            return after
        whens = " ".join(f"WHEN {place} THEN {self._after_edges(begin, edges)}" for place, edges in slices.items())
        return f"CASE {own['to']} {whens} ELSE {after} END"

    def _joins(self, level: Level, table: Mapping[str, list[int]]) -> list[exp.Join]:
        """Join each row with the feeds of its node, and with the steps of each where they are counted."""
        values = _values(list(zip(*table.values(), strict=True)), "feeds", [f"{self.own}{name}" for name in table])
        on = self._ours(f"{self.node} = {self.own}from") if "from" in table else None
        joins = [exp.Join(this=values, on=on, kind=None if on else "CROSS")]
        if not level.flat:
            most = max(feed.steps for feed in level.feeds)
            counted = self._ours(f"SELECT 1 FROM range({most}) AS steps({self.own}step)").args["from_"].this
            joins.append(exp.Join(this=counted, on=self._ours(f"{self.own}step < {self.own}steps")))
        return joins

    def _key(self, place: int, columns: ReadColumns | None = None) -> exp.Expr:
        """Return a key: computed from the columns of events, or as the level above has it."""
        key = self.query.parsed_keys[place]
        name = exp.to_identifier(key.name, quoted=True)
        return exp.alias_(columns.take(self._read(key.sql)), name) if columns else exp.Column(this=name)

    def _named(self, text: str, name: str) -> exp.Expr:
        return exp.alias_(self._ours(text), name)

    def _events(self, columns: ReadColumns) -> exp.Expr:
        """Return the events that count: the columns that are read, and the time in microseconds."""
        spelled = write(self._read(self.query.parsed_time.sql), self.spelling)
        events = exp.Select(expressions=columns.selected)
        for text, name in (
            (self.spelling.microseconds(spelled), self.time),
            (self.spelling.epoch(spelled), self.epoch),
        ):
            events.append("expressions", self._named(text, name))
        source = self._read(f"SELECT * FROM {self.query.source or 'events'}").args["from_"].this
        if isinstance(source, exp.Subquery) and not source.alias:
            source = exp.alias_(source, "source", table=True)
        events.set("from_", exp.From(this=source))
        known = exp.not_(exp.Is(this=self._ours(spelled), expression=exp.Null()))
        if self.query.where:
            events = events.where(exp.paren(self._read(self.query.where)), copy=False)
        return events.where(known, copy=False).subquery("events")

    def _shown(self) -> exp.Select:
        rows = [
            (place, node.window.range, name) for place, node in enumerate(self.plan.nodes) for name in node.shown_as
        ]
        select = exp.Select(expressions=[self._key(place) for place in range(len(self.query.parsed_keys))])
        ends = {
            "window_start": self.spelling.moment(self.epoch, self.start),
            "window_end": self.spelling.moment(self.epoch, f"({self.start} + {self.own}range)"),
        }
        for name, text in {"window_id": f"{self.own}name", **ends}.items():
            select.append("expressions", self._named(text, name))
        for aggregate, value in zip(self.query.parsed_aggregates, self.values, strict=True):
            shown = exp.alias_(self._read(value), exp.to_identifier(aggregate.name, quoted=True))
            select.append("expressions", shown)
        select.set("from_", exp.From(this=exp.to_table(self._name(len(self.levels)))))
        names = _values(rows, "names", [f"{self.own}{name}" for name in ("shown", "range", "name")])
        select.append("joins", exp.Join(this=names, on=self._ours(f"{self.node} = {self.own}shown")))
        return select

    def _finished(self) -> exp.Select:
        columns = [
            exp.alias_(self._read(column.sql), exp.to_identifier(column.name, quoted=True))
            for column in self.query.parsed_output
        ]
        select = exp.Select(expressions=columns or [exp.Star()])
        select.set("from_", exp.From(this=exp.to_table(f"{self.prefix}computed")))
        return select.where(self._read(self.query.kept), copy=False) if self.query.having else select


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


def _values(rows: Sequence[Sequence[int | str]], name: str, columns: Sequence[str]) -> exp.Expr:
    listed = [
        exp.Tuple(expressions=[exp.Literal.string(v) if isinstance(v, str) else exp.convert(v) for v in row])
        for row in rows
    ]
    alias = exp.TableAlias(this=exp.to_identifier(name), columns=[exp.to_identifier(column) for column in columns])
    return exp.Values(expressions=listed, alias=alias)


def with_steps(steps: list[str], final: exp.Expr, spelling: Spelling) -> str:
    """Put steps before a query, and before those that it has itself."""
    with_ = final.args.get("with_")
    if with_ is not None:
        with_.pop()
        steps = [*steps, *(write(cte, spelling) for cte in with_.expressions)]
    listed = ",\n".join(steps)
    return f"WITH\n{listed}\n{write(final, spelling)}"


def fill(outer: str, name: str, count: int = 0) -> str:
    """Put the names of steps in the place of results; braces of the user's own are doubled there.

    >>> fill("SELECT '{{result}}' FROM {result}", "fw_result")
    "SELECT '{result}' FROM fw_result"
    """
    return outer.format(result=name, **{f"result{number}": f"{name}{number}" for number in range(count)})


def free(names: Sequence[str], text: str) -> str:
    """Return what keeps names of ours apart from those in a text."""
    prefix = ""
    while any(f"{prefix}{name}" in text.lower() for name in names):
        prefix += "fw_"
    return prefix


def indented(text: str) -> str:
    """Move text to the right."""
    return "\n".join(f"  {line}" for line in text.splitlines())


def one_line(text: str) -> str:
    """Keep a comment on its line, whatever names are in it."""
    return " ".join(text.split())
