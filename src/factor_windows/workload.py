"""One query, or several over one stream merged into one: which windows, keys and aggregates, and for which query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import takewhile

from factor_windows.algebra.calendar import AnyWindow
from factor_windows.algebra.graph import Node, keys_of, shown_window
from factor_windows.errors import QueryError
from factor_windows.functions.aggregate import Aggregate
from factor_windows.functions.expression import Expression, conjuncts, dependent_keys, depends_on, quoted
from factor_windows.functions.guards import either, in_order, only_where
from factor_windows.functions.table import Kind
from factor_windows.query import Query

FLAG = "__fw_flag_"
"""The prefix of the columns that say, for each event, which queries it is for."""


@dataclass(frozen=True, slots=True)
class Output:
    """A node whose results are shown: under which names, and with which of the query's aggregates."""

    node: Node
    names: tuple[str, ...]
    aggregates: tuple[int, ...]
    """The positions of the aggregates in the query."""

    @classmethod
    def of_query(cls, query: Query) -> tuple[Output, ...]:
        """Return a query's windows, each for all the query's keys and with the aggregates requested for it."""
        every = range(len(query.parsed_aggregates))
        asked = query.asked or [every] * len(query.windows)
        places: dict[AnyWindow, set[int]] = {}
        for window, own in zip(query.windows, asked, strict=True):
            places.setdefault(window, set()).update(own)
        return tuple(
            cls(Node(window, keys_of(query)), names, tuple(sorted(places[window])))
            for window, names in query.names.items()
        )


@dataclass(frozen=True, slots=True)
class Member:
    """One query of a workload, and where to find its results in the merged query's result."""

    query: Query
    keys: tuple[str, ...]
    """The columns that hold its keys."""
    values: tuple[str, ...]
    """The columns that hold its aggregates."""
    present: str
    """The column that says whether a row has any events of this query; empty if every row has."""
    nodes: Mapping[AnyWindow, Node]
    """The node that computes each of its windows."""
    labels: Mapping[AnyWindow, str]
    """The name of each of its windows in the merged query's result."""

    @property
    def name(self) -> str:
        """Return the query's name."""
        return self.query.name


@dataclass(frozen=True, slots=True)
class Workload:
    """Queries over one stream, merged into one."""

    members: tuple[Member, ...]
    query: Query
    """The query with all their windows, keys and aggregates, over the events that at least one of them selects."""
    outputs: tuple[Output, ...]
    """Each requested combination of a window and a set of keys, with the aggregates requested for it."""
    flags: Mapping[str, str]
    """Columns added to the events, with their conditions: the events that only some queries select."""
    guarded: Mapping[str, str]
    """Columns added to the events, with their keys: keys computed only for the events of the queries that use them."""

    @classmethod
    def of_query(cls, query: Query) -> Workload:
        """Make a workload of one query, which keeps its own names."""
        outputs = Output.of_query(query)
        member = Member(
            query,
            tuple(key.name for key in query.parsed_keys),
            tuple(aggregate.name for aggregate in query.parsed_aggregates),
            present="",
            nodes={shown_window(each.node): each.node for each in outputs},
            labels={shown_window(each.node): each.names[0] for each in outputs},
        )
        return cls((member,), query, outputs, {}, {})

    @property
    def derived(self) -> dict[str, str]:
        """Return all columns computed from events before aggregation, each with its expression."""
        flags = {name: f"coalesce({in_order(condition)}, FALSE)" for name, condition in self.flags.items()}
        return {**flags, **self.guarded}

    @property
    def states(self) -> int:
        """Count the partial states that each event updates."""
        lifts = (state.lift for each in self.query.parsed_aggregates for state in each.states(time="t"))
        return len(set(lifts))


def name_queries(queries: Sequence[Query]) -> tuple[Query, ...]:
    """Give each query a unique name."""
    taken: set[str] = set()
    found = []
    for number, query in enumerate(queries, start=1):
        name = query.name or f"query_{number}"
        if name.lower() in taken:
            raise QueryError(f"two queries are named {name!r}; give each a name of its own with Query(..., name=...)")
        taken.add(name.lower())
        found.append(query if query.name else replace(query, name=name))
    return tuple(found)


def merge_queries(queries: Sequence[Query], *, flag: str = FLAG, derive: bool = True) -> Workload:
    """Merge named queries into one workload; `derive` allows keys to be computed from other keys.

    >>> from factor_windows.algebra.window import tumbling
    >>> hours, minutes = ([tumbling(length)] for length in ("1 hour", "5 minutes"))
    >>> cold = Query(time="ts", keys=["device"], windows=hours, aggregates=["min(t)"], where="ok AND t < 0", name="a")
    >>> all_ok = Query(time="ts", windows=minutes, aggregates=["count(*)"], where="ok", name="b")
    >>> workload = merge_queries([cold, all_ok])
    >>> workload.query.where, list(workload.flags.values())
    ('ok', ['ok AND t < 0'])
    >>> [each.names for each in workload.outputs]
    [('1 hour by device',), ('5 minutes',)]
    """
    guards = _guards(queries)
    own_keys = [tuple(_key(key, guards) for key in query.parsed_keys) for query in queries]
    keys = {key: f"key_{place}" for place, key in enumerate(dict.fromkeys(key for own in own_keys for key in own))}
    common, rests = _split_conditions(queries)
    conditions = dict.fromkeys(rest for rest in rests if rest)
    # The name is a hash of the condition: another condition makes another query, which a checkpoint must notice.
    flags = {condition: f"{flag}{sha256(condition.encode()).hexdigest()[:16]}" for condition in conditions}
    kind = max(query.kind for query in queries)
    values: dict[str, str] = {}

    def value(text: str) -> str:
        return values.setdefault(text, f"value_{len(values)}")

    members = []
    asked: dict[Node, dict[str, None]] = {}
    for query, rest, its_keys in zip(queries, rests, own_keys, strict=True):
        own = frozenset(its_keys)
        carried = own | dependent_keys(keys, by=own) if derive else own
        columns = tuple(value(each.only(flags[rest]) if rest else each.sql) for each in query.parsed_aggregates)
        present = value(_present(flags[rest], kind)) if rest else ""
        nodes = {window: Node(_nameless(window), carried) for window in query.names}
        for each in Output.of_query(query):
            shown = [columns[place] for place in each.aggregates] + ([present] if present else [])
            asked.setdefault(nodes[shown_window(each.node)], {}).update(dict.fromkeys(shown))
        labels = {window: _label(node, derive) for window, node in nodes.items()}
        members.append(Member(query, tuple(keys[key] for key in its_keys), columns, present, nodes, labels))
    query = Query(
        time=queries[0].time,
        keys=[f"{key} AS {name}" for key, name in keys.items()],
        windows=list(dict.fromkeys(shown_window(node) for node in asked)),
        aggregates=[f"{text} AS {name}" for text, name in values.items()],
        where=_all_of([*common, *([either(list(conditions))] if all(rests) else [])]),
        absent=dict.fromkeys(name for query in queries for name in query.absent),
    )
    places = {name: place for place, name in enumerate(values.values())}
    outputs = (
        Output(node, (_label(node, derive),), tuple(places[name] for name in names)) for node, names in asked.items()
    )
    # A flag holds the whole condition of its queries: the common part may come first for a reason.
    wheres = {rest: query.where for query, rest in zip(queries, rests, strict=True)}
    whole = {name: wheres[rest] for rest, name in flags.items()}
    return Workload(tuple(members), query, tuple(outputs), whole, dict(guards.values()))


def _split_conditions(queries: Sequence[Query]) -> tuple[tuple[str, ...], list[str]]:
    """Split the queries' conditions into their common prefix and the rest of each."""
    parts = [conjuncts(query.where) if query.where else () for query in queries]
    # A condition may rely on those before it, so only a common prefix is taken out.
    common = _common_prefix(parts)
    return common, [_all_of(own[len(common) :]) for own in parts]


def _label(node: Node, derive: bool) -> str:
    """Name a node of several queries; if no key is derived from another, the name lists all keys."""
    return node.label if derive or not node.keys else f"{node.window.label} by {', '.join(sorted(node.keys))}"


def can_share(query: Query) -> bool:
    """Say whether a query can share its work: not with a holistic function or a nondeterministic condition.

    Nor with sessions: with other events, they begin and end elsewhere.
    """
    is_mergeable = query.kind < Kind.COUNTED and not query.has_sessions
    return is_mergeable and (not query.where or depends_on(query.where) is not None)


def _guards(queries: Sequence[Query]) -> dict[str, tuple[str, str]]:
    """Map keys that may fail for events outside their queries to a name and a safe expression.

    >>> from factor_windows.algebra.window import tumbling
    >>> hour = [tumbling("1 hour")]
    >>> numbers = Query(time="ts", keys=["CAST(n AS INT)"], windows=hour, aggregates=["count(*)"], where="kind = 'n'")
    >>> _guards([numbers])
    {'CAST(n AS INT)': ("CAST(n AS INT) WHERE kind = 'n'", "CASE WHEN kind = 'n' THEN CAST(n AS INT) END")}
    """
    wheres: dict[str, dict[str, None]] = {}
    for query in queries:
        for key in query.parsed_keys:
            wheres.setdefault(key.sql, {})[query.where] = None
    found = {}
    for sql, conditions in wheres.items():
        if (safe := only_where(sql, list(conditions))) != sql:
            found[sql] = f"{sql} WHERE {either(list(conditions))}", safe
    return found


def _key(key: Expression, guards: Mapping[str, tuple[str, str]]) -> str:
    return quoted(guards[key.sql][0]) if key.sql in guards else key.sql


def _common_prefix(lists: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the common prefix of all lists.

    >>> _common_prefix([("a", "b", "c"), ("a", "b"), ("a", "b", "d")])
    ('a', 'b')
    """
    alike = takewhile(lambda parts: len(set(parts)) == 1, zip(*lists, strict=False))
    return tuple(parts[0] for parts in alike)


def _all_of(conditions: Sequence[str]) -> str:
    """Join conditions with AND; no conditions give an empty text."""
    return conditions[0] if len(conditions) == 1 else " AND ".join(f"({condition})" for condition in conditions)


def _present(flag: str, kind: Kind) -> str:
    """Return an aggregate that says whether a row has events of a query: a count, unless parts may overlap."""
    return Aggregate.read("count(*)").only(flag) if kind is Kind.MERGEABLE else f"bool_or({flag})"


def _nameless(window: AnyWindow) -> AnyWindow:
    return replace(window, name="")
