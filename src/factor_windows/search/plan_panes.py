"""A pass over stored panes: every window is made of them, or of another window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf

from factor_windows.algebra.graph import Node
from factor_windows.algebra.slices import Segmentation, slices_of
from factor_windows.cost.model import Cost
from factor_windows.errors import WindowError
from factor_windows.search.cheapest_parents import longest_first
from factor_windows.tree import Pass, Tree
from factor_windows.workload import Output

Since = Mapping[Segmentation, float]
"""The time from which panes are kept, in microseconds; panes without a time are kept for all times."""


def coarsest_panes(each: Pass, *, finest: Iterable[Segmentation] = ()) -> Segmentation:
    """Return the coarsest panes that make up all windows of a pass, and the segmentations in `finest`."""
    return slices_of([*(output.node.window for output in each.outputs), *finest])


def every_key(each: Pass) -> frozenset[str]:
    """Return the keys of the panes: those of all windows of a pass together."""
    return frozenset[str]().union(*(output.node.keys for output in each.outputs))


def plan_panes(each: Pass, panes: Sequence[Segmentation], since: Since | None = None) -> Pass:
    """Make the windows of a pass from stored panes, or from each other, whichever is cheapest.

    Panes that are kept for longer are preferred. The factor windows of the pass may be used, too.

    >>> import factor_windows as fw
    >>> query = fw.Query(time="ts", windows=[fw.tumbling("1h"), fw.hopping("7d", "1d")], aggregates=["count(*)"])
    >>> planned = plan_panes(fw.optimize(query).passes[0], [fw.tumbling("5m"), fw.tumbling("1d")])
    >>> [(node.name, node.parent) for node in planned.nodes]
    [('5 minutes', None), ('1 hour', '5 minutes'), ('1 day', None), ('1 week / 1 day', '1 day')]
    """
    keys = every_key(each)
    sources = {Node(pane, keys): (since or {}).get(pane, -inf) for pane in panes}
    shown = [output.node for output in each.outputs]
    hidden = [node.node for node in each.nodes if not node.exposed and node.node not in sources]
    trees = [_tree(each, sources, [*shown, *others]) for others in ([], hidden)]

    def cost(tree: Tree) -> Cost:
        return sum(each.cost_model.price(node, above) for node, above in tree.items() if above is not None)

    tree = min(trees, key=cost)
    return Pass.of_tree(each.workload, tree, search=each.search, cost_model=each.cost_model, status="heuristic")


def kept_panes(each: Pass, panes: Sequence[Segmentation]) -> Pass:
    """Return the pass that makes the coarser panes from the first ones, the finest; all of them are shown."""
    keys = every_key(each)
    first, *others = (Node(pane, keys) for pane in panes)
    every = tuple(range(len(each.query.parsed_aggregates)))
    outputs = tuple(Output(node, (f"panes {place}",), every) for place, node in enumerate((first, *others)))
    tree: dict[Node, Node | None] = {first: None, **dict.fromkeys(others, first)}
    workload = replace(each.workload, outputs=outputs)
    return Pass.of_tree(workload, tree, search=each.search, cost_model=each.cost_model, status="heuristic")


def sources_of(each: Pass) -> dict[Segmentation, Segmentation]:
    """Return, for each shown window of a pass over panes, the panes that it is ultimately made of."""
    nodes = {node.name: node for node in each.nodes}
    found: dict[Segmentation, Segmentation] = {}
    for node in each.nodes:
        found[node.window] = node.window if node.parent is None else found[nodes[node.parent].window]
    return {output.node.window: found[output.node.window] for output in each.outputs}


def _tree(each: Pass, sources: Mapping[Node, float], others: Sequence[Node]) -> dict[Node, Node | None]:
    tree: dict[Node, Node | None] = dict.fromkeys(sources)
    kept = dict(sources)
    kind, shown = each.query.kind, {output.node for output in each.outputs}
    for node in sorted(set(others) - sources.keys(), key=lambda node: (node.topological_key, node.label)):
        parents = [parent for parent in tree if node.can_read(parent, kind)]
        if parents:
            best = min(
                parents, key=lambda above: (kept[above], each.cost_model.price(node, above), *longest_first(above))
            )
            tree[node], kept[node] = best, kept[best]
        elif node in shown:
            raise cannot_make(node.window, [source.window for source in sources])
    while unread := [node for node in tree if node not in shown and node not in tree.values()]:
        for node in unread:
            del tree[node]
    return tree


def cannot_make(window: Segmentation, panes: Iterable[Segmentation]) -> WindowError:
    """Return the error that says why a window cannot be made of panes."""
    kept = " or ".join(pane.label for pane in panes)
    return WindowError(
        f"the window {window.label} cannot be made of panes of {kept}: its starts and ends must be among theirs"
    )
