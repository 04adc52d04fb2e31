"""Several queries over one stream as one: all their windows, keys and aggregates, and which of them are whose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from factor_windows.aggregates import Aggregate
from factor_windows.errors import QueryError
from factor_windows.expressions import conjuncts, depends_on, implied
from factor_windows.functions import Kind
from factor_windows.graph import Node, keys_of
from factor_windows.plan import Asked
from factor_windows.query import Query
from factor_windows.window import Window

FLAG = "__fw_flag_"
"""How the columns begin that say of each event which queries it is for."""


@dataclass(frozen=True, slots=True)
class Member:
    """One query of a workload, and where its results are in the common one's."""

    query: Query
    keys: tuple[str, ...]
    """The columns that hold its keys."""
    values: tuple[str, ...]
    """The columns that hold its aggregates."""
    present: str
    """The column that says whether a row has any event of the query's own; empty if every row has."""
    nodes: Mapping[Window, Node]
    """What computes each of its windows."""
    labels: Mapping[Window, str]
    """Under which name the common result shows each of its windows."""

    @property
    def name(self) -> str:
        """Return what the query is called."""
        return self.query.name


@dataclass(frozen=True, slots=True)
class Workload:
    """Queries over one stream, made one."""

    members: tuple[Member, ...]
    query: Query
    """The query that has all their windows, keys and aggregates, for events that at least one of them is about."""
    asked: tuple[Asked, ...]
    """Each window for each set of keys that somebody asks for, with the aggregates that are asked of it."""
    flags: Mapping[str, str]
    """Columns of events and the conditions that make them: what only some queries are about."""

    @property
    def states(self) -> int:
        """Count the partial states that an event is added to."""
        lifts = (state.lift for each in self.query.parsed_aggregates for state in each.states(time="t"))
        return len(set(lifts))


def named(queries: Sequence[Query]) -> tuple[Query, ...]:
    """Give each query a name of its own."""
    taken: set[str] = set()
    found = []
    for number, query in enumerate(queries, start=1):
        name = query.name or f"query_{number}"
        if name.lower() in taken:
            raise QueryError(f"two queries are named {name!r}; give each a name of its own with Query(..., name=...)")
        taken.add(name.lower())
        found.append(query if query.name else replace(query, name=name))
    return tuple(found)


def merged(queries: Sequence[Query], *, flag: str = FLAG, derive: bool = True) -> Workload:
    """Make one workload of queries that have names; `derive` lets keys be computed from other keys.

    >>> from factor_windows.window import tumbling
    >>> hours, minutes = ([tumbling(length)] for length in ("1 hour", "5 minutes"))
    >>> cold = Query(time="ts", keys=["device"], windows=hours, aggregates=["min(t)"], where="ok AND t < 0", name="a")
    >>> all_ok = Query(time="ts", windows=minutes, aggregates=["count(*)"], where="ok", name="b")
    >>> workload = merged([cold, all_ok])
    >>> workload.query.where, list(workload.flags.values())
    ('ok', ['t < 0'])
    >>> [each.names for each in workload.asked]
    [('1 hour by device',), ('5 minutes',)]
    """
    times = {query.parsed_time.sql for query in queries}
    if len(times) > 1:
        raise QueryError(
            f"the queries have different time columns, {' and '.join(sorted(times))}; "
            "queries that share a plan go by the same time"
        )
    keys = {
        key: f"key_{place}" for place, key in enumerate(dict.fromkeys(k.sql for q in queries for k in q.parsed_keys))
    }
    parts = [conjuncts(query.where) if query.where else () for query in queries]
    common = [part for part in parts[0] if all(part in other for other in parts)]
    rests = [_joined("AND", [part for part in own if part not in common]) for own in parts]
    conditions = dict.fromkeys(rest for rest in rests if rest)
    # Named by what it means: with another condition it is another query, which a checkpoint must notice.
    flags = {condition: f"{flag}{sha256(condition.encode()).hexdigest()[:16]}" for condition in conditions}
    kind = max(query.kind for query in queries)
    values: dict[str, str] = {}

    def label(node: Node) -> str:
        """Where no key decides another, all of them tell nodes apart."""
        return node.label if derive or not node.keys else f"{node.window.label} by {', '.join(sorted(node.keys))}"

    def value(text: str) -> str:
        return values.setdefault(text, f"value_{len(values)}")

    members = []
    asked: dict[Node, dict[str, None]] = {}
    for query, rest in zip(queries, rests, strict=True):
        own = keys_of(query)
        carried = own | implied(keys, by=own) if derive else own
        texts = [each.only(flags[rest]) if rest else each.sql for each in query.parsed_aggregates]
        columns = tuple(value(text) for text in texts)
        present = value(_present(flags[rest], kind)) if rest else ""
        nodes = {window: Node(_nameless(window), carried) for window in query.names}
        for node in nodes.values():
            asked.setdefault(node, {}).update(dict.fromkeys((*columns, *([present] if present else []))))
        labels = {window: label(node) for window, node in nodes.items()}
        own_keys = tuple(keys[key.sql] for key in query.parsed_keys)
        members.append(Member(query, own_keys, columns, present, nodes, labels))
    somebody = [_joined("OR", list(conditions))] if all(rests) else []
    query = Query(
        time=queries[0].time,
        keys=[f"{key} AS {name}" for key, name in keys.items()],
        windows=list(dict.fromkeys(node.window for node in asked if isinstance(node.window, Window))),
        aggregates=[f"{text} AS {name}" for text, name in values.items()],
        where=_joined("AND", [*common, *somebody]),
        absent=dict.fromkeys(name for query in queries for name in query.absent),
    )
    places = {name: place for place, name in enumerate(values.values())}
    wanted = (Asked(node, (label(node),), tuple(places[name] for name in names)) for node, names in asked.items())
    return Workload(tuple(members), query, tuple(wanted), {name: condition for condition, name in flags.items()})


def can_share(query: Query) -> bool:
    """Say whether a query can share its work: not if a function is holistic, or its condition goes by chance."""
    return query.kind is not Kind.HOLISTIC and (not query.where or depends_on(query.where) is not None)


def _joined(word: str, conditions: Sequence[str]) -> str:
    """Write conditions as one; none are nothing."""
    return conditions[0] if len(conditions) == 1 else f" {word} ".join(f"({condition})" for condition in conditions)


def _present(flag: str, kind: Kind) -> str:
    """Return what says that a row has events of a query: by counting, unless parts may overlap."""
    return Aggregate.read("count(*)").only(flag) if kind is Kind.MERGEABLE else f"bool_or({flag})"


def _nameless(window: Window) -> Window:
    return Window(window.range, window.slide, window.offset)
