"""The cheapest tree over given nodes: dual ascent bounds it from below, and branch and bound closes what is open.

Choosing hidden nodes and parents is a Steiner arborescence in a graph without cycles: what is asked for must be reached
from the raw events, and a node's price depends on its parent alone. Dual ascent (Wong 1984) gives a bound and a tree;
in most searches they meet, so that the tree is proved optimal in a few milliseconds and without a solver.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from heapq import heappop, heappush
from itertools import count
from math import inf
from time import monotonic

from factor_windows.algebra.graph import Node
from factor_windows.cost.model import Cost, share

SCALE = 1e4
"""What reading everything from the raw events costs here: prices may be far too large for a float."""
CLOSE = 1e-9
"""By what share of the cost a bound may be below it, and count as equal."""
EFFORT = 6_000
"""How many edges are looked at, over all parts of the problem, before a solver is loaded instead."""
Options = Mapping[Node, Mapping[Node | None, Cost]]
"""For each node the parents it may read, `None` for the raw events, and what that costs."""


@dataclass(frozen=True, slots=True)
class Solution:
    """The hidden nodes to build, and what is known about how good that is."""

    built: frozenset[Node]
    bound: Cost
    optimal: bool
    loading: float = 0.0
    """How many seconds it took to load a solver, which no time limit should pay for."""


def cheapest_tree(
    options: Options, required: Sequence[Node], *, seconds: float, known: Collection[Node] = ()
) -> Solution | None:
    """Choose hidden nodes so that all required ones together cost least; `None` if time ends before any is found.

    `known` are hidden nodes of a tree that is good already: what cannot be cheaper need not be looked at.
    """
    deadline = monotonic() + seconds
    problem = _Problem(options, required)
    best = problem.tree_of(known)
    first = problem.relax(frozenset(), frozenset(), best.cost)
    best = min(best, first, key=lambda each: each.cost)
    order = count()
    waiting = [(first.bound, next(order), first)] if first.bound < best.cost else []
    for _ in range(1 + EFFORT // problem.edges):
        least = waiting[0][0] if waiting else best.cost
        if best.cost - least <= CLOSE * best.cost:
            return problem.solution(best, least, optimal=True)
        if monotonic() > deadline:
            return problem.solution(best, least, optimal=False)
        _, _, part = heappop(waiting)
        node = part.branch_on()
        for without, sure in (
            (part.without | {node}, part.built_for_sure),
            (part.without, part.built_for_sure | {node}),
        ):
            relaxed = problem.relax(without, sure, best.cost)
            best = min(best, relaxed, key=lambda each: each.cost)
            if relaxed.bound < best.cost:
                heappush(waiting, (relaxed.bound, next(order), relaxed))
    begun = monotonic()
    from factor_windows.search.integer_program import solve

    loading = monotonic() - begun
    found = solve(options, required, seconds=max(0.0, deadline - begun))
    return None if found is None else replace(found, loading=loading)


@dataclass(frozen=True, slots=True)
class _Relaxed:
    """A part of the problem: some hidden nodes left out, some built for sure; its bound, and a tree."""

    without: frozenset[int]
    built_for_sure: frozenset[int]
    bound: float
    cost: float
    built: frozenset[int]
    open: frozenset[int]
    """Hidden nodes about which nothing is decided, those that the bound would like to use if there are any."""

    def branch_on(self) -> int:
        """Return the node to decide about next."""
        return min(self.open)


class _Problem:
    """Nodes as numbers, the raw events as the last one."""

    def __init__(self, options: Options, required: Sequence[Node]) -> None:
        always: set[Node | None] = {None, *required}
        self.nodes: list[Node | None] = [*required, *(node for node in options if node not in always), None]
        self.root, self.required = len(self.nodes) - 1, len(required)
        number = {node: place for place, node in enumerate(self.nodes)}
        self.naive = sum(options[node][None] for node in required)
        self.prices: list[dict[int, float]] = [
            {
                number[parent]: SCALE * share(options[node][parent], self.naive)
                for parent in worthwhile(options[node], always)
            }
            for node in self.nodes[:-1]
            if node is not None
        ]
        self.order = _parents_first(self.prices, self.root)
        self.cheapest_first = [sorted(parents.items(), key=lambda each: each[1]) for parents in self.prices]

    @property
    def edges(self) -> int:
        """Count the edges."""
        return sum(map(len, self.prices))

    def tree_of(self, known: Collection[Node]) -> _Relaxed:
        """Return the tree of some hidden nodes, about which nothing else is known."""
        nothing = frozenset[int]()
        cost, built = self._tree([place for place, node in enumerate(self.nodes) if node in known], nothing)
        return _Relaxed(nothing, nothing, 0.0, cost, frozenset(built), nothing)

    def solution(self, best: _Relaxed, bound: float, *, optimal: bool) -> Solution:
        """Return what was found."""
        built = frozenset(node for place in best.built if (node := self.nodes[place]) is not None)
        return Solution(built, unscaled(best.cost if optimal else bound, self.naive), optimal)

    def relax(self, without: frozenset[int], sure: frozenset[int], limit: float = inf) -> _Relaxed:
        """Bound the trees without some hidden nodes and with some others, and make one of them.

        Nodes that are in no tree which costs less than the `limit` are left out, and the rest is bounded again.
        """
        terminals = [*range(self.required), *sorted(sure)]
        best: tuple[float, set[int]] = (inf, set())
        while True:
            left = [
                {parent: price for parent, price in parents.items() if parent not in without} for parents in self.prices
            ]
            bound, used = _ascend(left, terminals, self.root)
            hidden = {place for place in used if self.required <= place < self.root} - without
            best = min(best, self._tree(hidden | sure, sure), key=lambda each: each[0])
            limit = min(limit, best[0])
            undecided = frozenset(range(self.required, self.root)) - without - sure
            useless = self._useless(left, undecided, terminals, limit - bound) if bound < limit else frozenset()
            if not useless:
                break
            without |= useless
        cost, built = best
        # Where all is decided, every node reads its cheapest parent, and the tree is what the part costs.
        bound = min(bound, limit) if undecided else cost
        return _Relaxed(without, sure, bound, cost, frozenset(built), undecided & hidden or undecided)

    def _useless(
        self, left: Sequence[Mapping[int, float]], undecided: frozenset[int], terminals: Iterable[int], room: float
    ) -> frozenset[int]:
        """Find hidden nodes whose use costs more above the bound than there is room for.

        A tree with a node has a path to it and one on to a terminal, which cost at least what is left of their edges.
        """
        reached, onwards = {self.root: 0.0}, dict.fromkeys(terminals, 0.0)
        for place in self.order:
            reached[place] = min((reached[parent] + price for parent, price in left[place].items()), default=inf)
        for place in reversed(self.order):
            for parent, price in left[place].items():
                onwards[parent] = min(onwards.get(parent, inf), onwards.get(place, inf) + price)
        room = room * (1 + CLOSE) + CLOSE
        return frozenset(place for place in undecided if reached[place] + onwards.get(place, inf) > room)

    def _tree(self, allowed: Collection[int], sure: frozenset[int]) -> tuple[float, set[int]]:
        """Make a tree of some hidden nodes, and drop those that are not worth their price, the dearest first."""
        built = set(allowed)
        cost, read = self._cost(built, sure)
        built &= read | sure
        settled = False
        while not settled:
            settled = True
            for place in sorted(built - sure, reverse=True):
                less, read = self._cost(built - {place}, sure)
                if less <= cost:
                    cost, built, settled = less, (built - {place}) & (read | sure), False
        return cost, built

    def _cost(self, built: Collection[int], sure: Iterable[int]) -> tuple[float, set[int]]:
        """Price the tree in which every node reads its cheapest parent, and say which nodes are read."""
        waiting = [*range(self.required), *sure]
        seen = set(waiting)
        total = 0.0
        while waiting:
            for parent, price in self.cheapest_first[waiting.pop()]:  # noqa: B007
                if parent < self.required or parent == self.root or parent in built:
                    break
            total += price
            if parent not in seen and parent != self.root:
                seen.add(parent)
                waiting.append(parent)
        return total, seen


def _parents_first(prices: Sequence[Mapping[int, float]], root: int) -> list[int]:
    """Put the nodes in an order in which each comes after all that it may read."""
    found = {root: None}

    def visit(place: int) -> None:
        if place not in found:
            for parent in prices[place]:
                visit(parent)
            found[place] = None

    for place in range(root):
        visit(place)
    return list(found)[1:]


def _ascend(left: list[dict[int, float]], terminals: Sequence[int], root: int) -> tuple[float, set[int]]:
    """Raise the price of reaching each terminal until all are reached; return the bound, and the nodes on the way.

    `left` is what of each edge's price is not yet accounted for. Of the terminals that the root does not reach by edges
    of which nothing is left, the one with the fewest edges into what reaches it goes next: all these edges are charged
    what the cheapest of them has left.
    """
    reach = {terminal: {terminal} for terminal in terminals}
    bound = 0.0

    def grow(found: set[int], start: Iterable[int]) -> bool:
        """Add what reaches a terminal by edges of which nothing is left; say whether the root does."""
        waiting = list(start)
        while waiting:
            for parent, price in left[waiting.pop()].items():
                if price <= 0.0 and parent not in found:
                    found.add(parent)
                    if parent == root:
                        return True
                    waiting.append(parent)
        return False

    def cut(terminal: int) -> list[tuple[int, int]]:
        found = reach[terminal]
        return [(child, parent) for child in found for parent in left[child] if parent not in found]

    cuts = {terminal: cut(terminal) for terminal in terminals if not grow(reach[terminal], [terminal])}
    while cuts:
        terminal = min(cuts, key=lambda each: (len(cuts[each]), each))
        step = min(left[child][parent] for child, parent in cuts[terminal])
        bound += step
        spent = set()
        for child, parent in cuts[terminal]:
            rest = left[child][parent] - step
            left[child][parent] = rest if rest > CLOSE else 0.0
            if rest <= CLOSE:
                spent.add(child)
        for each in [each for each in cuts if spent & reach[each]]:
            if grow(reach[each], spent & reach[each]):
                del cuts[each]
            else:
                cuts[each] = cut(each)
    return bound, set().union(*reach.values())


def unscaled(price: float, naive: Cost) -> Cost:
    """Return a price as the cost model counts it."""
    part = price / SCALE
    return part * naive if isinstance(naive, float) else Fraction(part) * Fraction(naive)


def worthwhile(parents: Mapping[Node | None, Cost], always: set[Node | None]) -> list[Node | None]:
    """Leave the cheapest parent that is there anyway, and hidden ones that are cheaper."""
    there = min((parent for parent in parents if parent in always), key=lambda parent: parents[parent])
    return [there, *(parent for parent in parents if parent not in always and parents[parent] < parents[there])]
