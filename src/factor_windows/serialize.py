"""Plans as JSON: to store with a job, send to another machine, and read with the same version or a later one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import timedelta
from fractions import Fraction
from math import inf
from typing import Any, TypeVar

from factor_windows.algebra.calendar import AnyWindow
from factor_windows.algebra.clock import Clock, checked_zone
from factor_windows.algebra.graph import Node
from factor_windows.algebra.growing import Growing
from factor_windows.algebra.session import Session
from factor_windows.algebra.slices import Progression, Segmentation, Slices
from factor_windows.algebra.window import Window, duration
from factor_windows.cost.model import Cost, CostModel, Rate
from factor_windows.cost.paper import PaperCost
from factor_windows.cost.prices import Prices
from factor_windows.cost.spark import SparkCost
from factor_windows.errors import FactorWindowsError, PlanError
from factor_windows.functions.weights import Weights
from factor_windows.plan import Plan
from factor_windows.query import Query
from factor_windows.request import Options, Request
from factor_windows.tree import Pass, Tree
from factor_windows.workload import Output, Workload, merge_queries

ONE, SEVERAL = 1, 2
"""The formats of plans for one query and for several: a reader that knows only the first says that it is too old."""
FORMAT = SEVERAL
"""The newest format; it grows when older readers could not read what is written."""
_QUERY = ("time", "aggregates", "keys", "where", "having", "output", "source", "outer", "name")
_WINDOW = ("range", "slide", "offset", "name")
_OPTIONAL = ("absent", "asked")
"""Fields that plans of earlier versions lack."""
_SAME = ("search", "cost", "keys", "slices", "time_limit")
"""Options that are written unchanged."""
_SPARK = ("unit", "rate", "keys", "keyed", "assumed", "overlap_safe", "states")
"""Fields of a cost model for Spark, written unchanged; plans of earlier versions lack some of them."""
_LATER = ("clock", "collect", "explode", "object", "window")
"""Prices that plans of earlier versions lack."""
T = TypeVar("T")


def to_json(plan: Plan) -> str:
    """Write a plan with everything it depends on: the queries, the trees, and the costs that decided them."""
    return pass_to_json(plan.passes[0]) if plan.is_single else _dumped(_plan_of_several(plan))


def from_json(text: str) -> Plan:
    """Read a plan; a plan that was edited into an incorrect one is refused, because plans check themselves."""
    return _load(text, lambda found: _read_several(found) if "passes" in found else Plan.of_pass(_read_pass(found)))


def pass_to_json(each: Pass) -> str:
    """Write one pass over the events as a plan for one query, the merged query."""
    asked = [
        {**_node(output.node), "names": list(output.names), "aggregates": list(output.aggregates)}
        for output in each.outputs
    ]
    tree = _tree(each)
    nodes = {"nodes": tree.pop("nodes"), "asked": asked}
    return _dumped({"format": ONE, "query": query_document(each.query), **nodes, **tree})


def pass_from_json(text: str) -> Pass:
    """Read a pass that `pass_to_json` wrote."""
    return _load(text, _read_pass)


def query_document(query: Query) -> dict[str, Any]:
    """Describe a query completely, as plain values."""
    return (
        {name: _plain(getattr(query, name)) for name in _QUERY}
        | {"windows": [segmentation_document(window) for window in query.windows]}
        | {name: _plain(getattr(query, name)) for name in _OPTIONAL if getattr(query, name)}
    )


def _dumped(described: dict[str, Any]) -> str:
    return json.dumps(described, ensure_ascii=False, indent=1)


def _load(text: str, read: Callable[[dict[str, Any]], T]) -> T:
    try:
        found = json.loads(text)
        if not isinstance(found, dict) or not isinstance(found.get("format"), int):
            raise PlanError("this is no plan; Plan.to_json() writes one")
        if found["format"] > FORMAT:
            raise PlanError(
                f"the plan is of format {found['format']}, and this version reads up to {FORMAT}; install a later one"
            )
        return read(found)
    except FactorWindowsError:
        raise
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as trouble:
        raise PlanError(f"this is no plan, or one that was damaged: {type(trouble).__name__} {trouble}") from None


def _plan_of_several(plan: Plan) -> dict[str, Any]:
    request, options = plan.request, plan.request.options
    return {
        "format": SEVERAL,
        "queries": [query_document(query) for query in plan.queries],
        "passes": [
            {"queries": [member.name for member in each.workload.members], **_tree(each)} for each in plan.passes
        ],
        "request": {
            **{name: getattr(options, name) for name in _SAME},
            "rate": None if options.rate is None else _number(options.rate),
            "unit": None if options.unit is None else duration(options.unit),
            "prices": None if options.prices is None else asdict(options.prices),
            "events": _number(options.events),
            **({} if options.values is None else {"values": _written_values(options.values)}),
            "selectivity": dict(request.selectivity),
            "combinations": _counted(request.combinations),
            "in_one_pass": request.in_one_pass,
            "flag": request.flag,
            "derive": request.derive,
        },
    }


def _read_several(found: Mapping[str, Any]) -> Plan:
    asked = found["request"]
    options = Options(
        **{name: asked[name] for name in _SAME},
        rate=None if asked["rate"] is None else _read_number(asked["rate"]),
        unit=None if asked["unit"] is None else timedelta(microseconds=asked["unit"]),
        prices=None if asked["prices"] is None else _read_prices(asked["prices"]),
        events=float(_read_number(asked["events"])),
        values=asked.get("values"),
    )
    request = Request(
        tuple(read_query(query) for query in found["queries"]),
        options,
        selectivity=asked["selectivity"],
        combinations=_read_counted(asked["combinations"]),
        **{name: asked[name] for name in ("in_one_pass", "flag", "derive")},
    )
    queries = {query.name: query for query in request.queries}
    passes = []
    for each in found["passes"]:
        own = [queries.pop(name) for name in each["queries"]]
        passes.append(_read_tree(each, merge_queries(own, flag=request.flag, derive=request.derive)))
    if queries:
        raise PlanError(f"no pass of the plan computes the query {min(queries)!r}")
    return Plan(tuple(passes), request)


def _tree(each: Pass) -> dict[str, Any]:
    """Describe the nodes of a pass, what each reads, and how they were chosen."""
    places = {node.name: place for place, node in enumerate(each.nodes)}
    return {
        "nodes": [
            {**_node(node.node), "parent": None if node.parent is None else places[node.parent]} for node in each.nodes
        ],
        "search": each.search,
        "status": each.status,
        "bound": _number(each.bound),
        "cost_model": _model(each.cost_model),
    }


def _read_tree(found: Mapping[str, Any], workload: Workload) -> Pass:
    nodes = [_read_node(node) for node in found["nodes"]]
    above = [node["parent"] for node in found["nodes"]]
    tree: Tree = {node: None if place is None else nodes[place] for node, place in zip(nodes, above, strict=True)}
    return Pass.of_tree(
        workload,
        tree,
        search=found["search"],
        cost_model=_read_model(found["cost_model"]),
        status=found["status"],
        bound=_read_number(found["bound"]),
    )


def _read_pass(found: Mapping[str, Any]) -> Pass:
    outputs = tuple(
        Output(_read_node(each), tuple(each["names"]), tuple(each["aggregates"])) for each in found["asked"]
    )
    return _read_tree(found, replace(Workload.of_query(read_query(found["query"])), outputs=outputs))


def read_query(found: Mapping[str, Any]) -> Query:
    """Read a query that `query_document` described."""
    return Query(
        windows=[_read_window(window) for window in found["windows"]],
        **{name: found[name] for name in _QUERY},
        **{name: found[name] for name in _OPTIONAL if name in found},
    )


def _node(node: Node) -> dict[str, Any]:
    return {"tiling": segmentation_document(node.window), "keys": sorted(node.keys)}


def _read_node(found: Mapping[str, Any]) -> Node:
    return Node(read_segmentation(found["tiling"]), frozenset(found["keys"]))


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def segmentation_document(segmentation: Segmentation) -> dict[str, Any]:
    """Describe a window or slices as plain values."""
    if isinstance(segmentation, Slices):
        calendars = [{**_clock(clock), "edge": list(edge)} for clock, edge in segmentation.calendars]
        return {"edges": [list(edge) for edge in segmentation.edges]} | ({"calendars": calendars} if calendars else {})
    if isinstance(segmentation, Growing):
        parts = {"period": segmentation_document(segmentation.period), "step": segmentation_document(segmentation.step)}
        return {**parts, "name": segmentation.name}
    if isinstance(segmentation, Session):
        return {"gap": segmentation.gap, "name": segmentation.name}
    own: dict[str, Any] = _clock(segmentation.clock) if segmentation.clock else {}
    own |= {"is_local": True} if segmentation.is_local else {}
    return {name: getattr(segmentation, name) for name in _WINDOW} | own


def read_segmentation(found: Mapping[str, Any]) -> Segmentation:
    """Read a window or slices that `segmentation_document` described."""
    if "edges" in found:
        calendars = tuple((_read_clock(each), _edge(each["edge"])) for each in found.get("calendars", ()))
        return Slices(tuple(map(_edge, found["edges"])), calendars)
    return _read_window(found)


def _edge(found: Sequence[int]) -> Progression:
    step, offset = map(int, found)
    return step, offset


def _read_window(found: Mapping[str, Any]) -> AnyWindow:
    if "gap" in found:
        return Session(found["gap"], found["name"])
    if "period" in found:
        return Growing(_read_plain(found["period"]), _read_plain(found["step"]), found["name"])
    return _read_plain(found)


def _read_plain(found: Mapping[str, Any]) -> Window:
    clock = _read_clock(found) if "zone" in found else None
    return Window(**{name: found[name] for name in _WINDOW}, clock=clock, is_local=found.get("is_local", False))


def _clock(clock: Clock) -> dict[str, str]:
    return {"zone": clock.zone, "unit": clock.unit}


def _read_clock(found: Mapping[str, Any]) -> Clock:
    if found["unit"] not in ("day", "month"):
        raise PlanError(f"a calendar counts days or months, not {found['unit']!r}")
    return Clock(checked_zone(found["zone"]), found["unit"])


def _number(value: Cost) -> int | float | str | None:
    """Write a cost so that it can be read back exactly."""
    return None if value == inf else str(value) if isinstance(value, Fraction) else value


def _read_number(found: int | float | str | None) -> Cost:
    return inf if found is None else Fraction(found) if isinstance(found, str) else found


def _counted(combinations: Mapping[frozenset[str], float]) -> list[dict[str, Any]]:
    return [{"keys": sorted(keys), "number": number} for keys, number in combinations.items()]


def _read_counted(found: Sequence[Mapping[str, Any]]) -> dict[frozenset[str], float]:
    return {frozenset(each["keys"]): each["number"] for each in found}


def _read_prices(found: Mapping[str, float]) -> Prices:
    known = {field.name for field in fields(Prices)}
    return Prices(**{name: price for name, price in found.items() if name in known})


def _written_values(values: Rate | Sequence[Rate]) -> float | list[float]:
    return list(map(float, values)) if isinstance(values, Sequence) else float(values)


def _written_prices(prices: Prices) -> dict[str, float]:
    usual = asdict(Prices())
    return {name: price for name, price in asdict(prices).items() if name not in _LATER or price != usual[name]}


def _model(model: CostModel) -> dict[str, Any]:
    if isinstance(model, PaperCost):
        own = {"unit": model.unit, "rate": _number(model.rate), "period": model.period}
        return {"name": model.name, **own, "thrifty": model.sparse_covers}
    assert isinstance(model, SparkCost)
    return {
        "name": model.name,
        **{name: getattr(model, name) for name in _SPARK},
        "thrifty": model.sparse_covers,
        "units": _number(model.units),
        "prices": _written_prices(model.prices),
        "combinations": _counted(model.combinations),
        **({"values": list(model.values), "guessed": model.guessed} if model.values else {}),
        **({"weights": asdict(model.weights)} if model.weights != Weights() else {}),
    }


def _read_model(found: Mapping[str, Any]) -> CostModel:
    if found["name"] == "paper":
        return PaperCost(found["unit"], Fraction(found["rate"]), found["period"], found["thrifty"])
    return SparkCost(
        **{name: found[name] for name in _SPARK if name in found},
        sparse_covers=found["thrifty"],
        prices=_read_prices(found["prices"]),
        units=float(_read_number(found["units"])),
        combinations=_read_counted(found["combinations"]),
        values=tuple(map(float, found.get("values", ()))),
        guessed=bool(found.get("guessed", False)),
        weights=Weights(**found.get("weights", {})),
    )
