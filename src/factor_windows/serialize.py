"""Plans as JSON: kept beside a job, sent to another machine, and read back by the same or a later version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from fractions import Fraction
from math import inf
from typing import Any

from factor_windows.algebra.graph import Node
from factor_windows.algebra.slices import Segmentation, Slices
from factor_windows.algebra.window import Window
from factor_windows.cost.model import Cost, CostModel, PaperCost, SparkCost
from factor_windows.cost.prices import Prices
from factor_windows.errors import FactorWindowsError, PlanError
from factor_windows.plan import Output, Plan, Tree
from factor_windows.query import Query

FORMAT = 1
"""What a reader must know; it grows when an older one could not read what is written."""
_QUERY = ("time", "aggregates", "keys", "where", "having", "output", "source", "outer", "name")
_OPTIONAL = ("absent", "asked")
"""What plans of earlier versions do not have."""


def to_json(plan: Plan) -> str:
    """Write a plan with all that it depends on: the query, the tree, and the costs that it was chosen by."""
    places = {node.name: place for place, node in enumerate(plan.nodes)}
    described = {
        "format": FORMAT,
        "query": {name: _plain(getattr(plan.query, name)) for name in _QUERY}
        | {"windows": [_segmentation(window) for window in plan.query.windows]}
        | {name: _plain(getattr(plan.query, name)) for name in _OPTIONAL if getattr(plan.query, name)},
        "nodes": [
            {
                "tiling": _segmentation(node.window),
                "keys": sorted(node.node.keys),
                "parent": None if node.parent is None else places[node.parent],
            }
            for node in plan.nodes
        ],
        "asked": [
            {
                "tiling": _segmentation(each.node.window),
                "keys": sorted(each.node.keys),
                "names": list(each.names),
                "aggregates": list(each.aggregates),
            }
            for each in plan.asked
        ],
        "search": plan.search,
        "status": plan.status,
        "bound": _number(plan.bound),
        "cost_model": _model(plan.cost_model),
    }
    return json.dumps(described, ensure_ascii=False, indent=1)


def from_json(text: str) -> Plan:
    """Read a plan back; one that was tampered with into something wrong is refused, as plans check themselves."""
    try:
        found = json.loads(text)
        if not isinstance(found, dict) or not isinstance(found.get("format"), int):
            raise PlanError("this is no plan; Plan.to_json() writes one")
        if found["format"] > FORMAT:
            raise PlanError(
                f"the plan is of format {found['format']}, and this version reads up to {FORMAT}; install a later one"
            )
        query = found["query"]
        windows = [_read_window(window) for window in query["windows"]]
        nodes = [Node(_read_segmentation(node["tiling"]), frozenset(node["keys"])) for node in found["nodes"]]
        above = [node["parent"] for node in found["nodes"]]
        tree: Tree = {node: None if place is None else nodes[place] for node, place in zip(nodes, above, strict=True)}
        asked = tuple(
            Output(
                Node(_read_segmentation(each["tiling"]), frozenset(each["keys"])),
                tuple(each["names"]),
                tuple(each["aggregates"]),
            )
            for each in found["asked"]
        )
        return Plan.of_tree(
            Query(
                windows=windows,
                **{name: query[name] for name in _QUERY},
                **{name: query[name] for name in _OPTIONAL if name in query},
            ),
            tree,
            search=found["search"],
            cost_model=_read_model(found["cost_model"]),
            status=found["status"],
            bound=_read_number(found["bound"]),
            asked=asked,
        )
    except FactorWindowsError:
        raise
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as trouble:
        raise PlanError(f"this is no plan, or one that was damaged: {type(trouble).__name__} {trouble}") from None


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _segmentation(segmentation: Segmentation) -> dict[str, Any]:
    if isinstance(segmentation, Slices):
        return {"edges": [list(edge) for edge in segmentation.edges]}
    return {
        "range": segmentation.range,
        "slide": segmentation.slide,
        "offset": segmentation.offset,
        "name": segmentation.name,
    }


def _read_segmentation(found: Mapping[str, Any]) -> Segmentation:
    if "edges" in found:
        return Slices(tuple((int(step), int(offset)) for step, offset in found["edges"]))
    return _read_window(found)


def _read_window(found: Mapping[str, Any]) -> Window:
    return Window(range=found["range"], slide=found["slide"], offset=found["offset"], name=found["name"])


def _number(value: Cost) -> int | float | str | None:
    """Write a cost so that it can be read back exactly."""
    return None if value == inf else str(value) if isinstance(value, Fraction) else value


def _read_number(found: int | float | str | None) -> Cost:
    return inf if found is None else Fraction(found) if isinstance(found, str) else found


def _model(model: CostModel) -> dict[str, Any]:
    if isinstance(model, PaperCost):
        numbers = {
            "unit": model.unit,
            "rate": _number(model.rate),
            "period": model.period,
            "thrifty": model.sparse_covers,
        }
        return {"name": model.name, **numbers}
    assert isinstance(model, SparkCost)
    counted = [{"keys": sorted(keys), "number": number} for keys, number in model.combinations.items()]
    names = ("unit", "rate", "keys", "keyed", "assumed", "overlap_safe", "states")
    own = {name: getattr(model, name) for name in names} | {"thrifty": model.sparse_covers}
    return {
        "name": model.name,
        **own,
        "units": _number(model.units),
        "prices": asdict(model.prices),
        "combinations": counted,
    }


def _read_model(found: Mapping[str, Any]) -> CostModel:
    if found["name"] == "paper":
        return PaperCost(found["unit"], Fraction(found["rate"]), found["period"], found["thrifty"])
    known = {field.name for field in fields(Prices)}
    return SparkCost(
        unit=found["unit"],
        rate=found["rate"],
        keys=found["keys"],
        keyed=found.get("keyed", False),
        states=found.get("states", 0),
        assumed=found["assumed"],
        sparse_covers=found["thrifty"],
        overlap_safe=found.get("overlap_safe", True),
        prices=Prices(**{name: price for name, price in found["prices"].items() if name in known}),
        units=float(_read_number(found["units"])),
        combinations={frozenset(each["keys"]): each["number"] for each in found["combinations"]},
    )
