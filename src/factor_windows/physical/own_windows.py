"""Plans for engines with their own windows, such as Flink's TUMBLE and HOP: a step for each node, no levels.

Such windows have no edges but their own, and a row of a hopping window does not say which instance it belongs to. So
there are no slices and no hidden hopping windows here, and a node that would read a hopping window reads its parent
instead.
"""

from __future__ import annotations

from collections.abc import Iterator

from factor_windows.algebra.graph import CoverageGraph, Node, shown_window, window_of
from factor_windows.algebra.window import Window
from factor_windows.physical.assigner import RAW, assign
from factor_windows.physical.layout import Layout, Level
from factor_windows.physical.steps import OwnWindow
from factor_windows.physical.target import Values
from factor_windows.physical.terms import Sql
from factor_windows.search.factor import with_factor_windows
from factor_windows.tree import Pass


def chain_windows(plan: Pass) -> Pass:
    """Return a plan in which every node reads the raw events or a tumbling window."""
    if any(not (node.exposed or (isinstance(node.window, Window) and node.window.is_tumbling)) for node in plan.nodes):
        tree = with_factor_windows(CoverageGraph.of_query(plan.query), plan.cost_model)
        plan = Pass.of_tree(plan.workload, tree, search="factor", cost_model=plan.cost_model, status="heuristic")
    nodes = {node.name: node for node in plan.nodes}
    parents: dict[Node, Node | None] = {}
    waiting = [node for node in plan.nodes if node.exposed]
    for node in waiting:
        above = nodes.get(node.parent or "")
        while above is not None and not window_of(above.node).is_tumbling:
            above = nodes.get(above.parent or "")
        parents[node.node] = above.node if above else None
        if above is not None and above.node not in parents:
            waiting.append(above)
    return Pass.of_tree(
        plan.workload, parents, search=plan.search, cost_model=plan.cost_model, status=plan.status, bound=plan.bound
    )


def lay_out_windows(plan: Pass) -> Layout:
    """Lay out such a plan, with a level for each node."""
    number = plan.places
    levels = []
    for place, node in enumerate(plan.nodes):
        source = RAW if node.parent is None else number[node.parent]
        parent = None if node.parent is None else plan.nodes[source].window
        levels.append(Level((place,), (assign(source, place, parent, node.window, plan.query.kind),)))
    return Layout(tuple(levels))


def window_steps(plan: Pass, layout: Layout, values: Values) -> Iterator[OwnWindow]:
    """Write the steps of such a plan, one for each node."""
    for level in layout.levels:
        [assigner] = level.assigners
        first = assigner.source == RAW
        made = tuple((state.name, Sql(state.lift if first else state.combine)) for state in values.states)
        yield OwnWindow(assigner.target, shown_window(plan.nodes[assigner.target].node), assigner.source, made)
