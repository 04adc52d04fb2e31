"""The cheapest tree over given nodes: dual ascent gives a lower bound, and branch and bound closes the gap.

Choosing hidden nodes and parents is a Steiner arborescence problem in an acyclic graph: the required nodes must be
reached from the raw events, and a node's price depends on its parent alone. Dual ascent (Wong 1984) gives a bound and a
tree; in most searches they meet, which proves the tree optimal in a few milliseconds and without a solver.
"""

from __future__ import annotations

from collections import Counter
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
"""The scaled cost of reading everything from the raw events: prices may be far too large for a float."""
CLOSE = 1e-9
"""A bound counts as equal to the cost if it is below it by at most this share of the cost."""
EFFORT = 50_000
"""The number of edges to examine, over all parts of the problem, before a solver is loaded instead."""
Options = Mapping[Node, Mapping[Node | None, Cost]]
"""For each node the parents it may read, `None` for the raw events, and the costs."""


@dataclass(frozen=True, slots=True)
class Solution:
    """The hidden nodes to build, with the bound and whether they are optimal."""

    built: frozenset[Node]
    bound: Cost
    optimal: bool
    loading: float = 0.0
    """The seconds it took to load a solver, which should not count against a time limit."""


def cheapest_tree(
    options: Options, required: Sequence[Node], *, seconds: float, known: Collection[Node] = ()
) -> Solution | None:
    """Choose hidden nodes that minimize the cost of all required ones; `None` if time ends before any are found.

    `known` are the hidden nodes of a tree that is good already: only cheaper trees are searched for.
    """
    deadline = monotonic() + seconds
    problem = _Problem(options, required)
    best = problem.improve(problem.numbered(known), ())
    order = count()
    waiting: list[tuple[float, int, _Part]] = []
    looked_at = 0
    new = [_Part(problem.prices, frozenset())]
    while True:
        for part in new:
            looked_at += part.edges
            bound, rest, best = problem.relax(part, best)
            if bound < best.cost:
                heappush(waiting, (bound, next(order), rest))
        least = waiting[0][0] if waiting else best.cost
        if best.cost - least <= CLOSE * best.cost:
            return problem.solution(best, best.cost, optimal=True)
        if monotonic() > deadline:
            return problem.solution(best, least, optimal=False)
        if looked_at > EFFORT:
            break
        _, _, part = heappop(waiting)
        new = part.branches(problem.required)
    begun = monotonic()
    from factor_windows.search.integer_program import solve

    loading = monotonic() - begun
    found = solve(options, required, seconds=max(0.0, deadline - begun))
    return None if found is None else replace(found, loading=loading)


@dataclass(frozen=True, slots=True)
class _Built:
    """Hidden nodes, and the cost of the tree built with them."""

    cost: float
    nodes: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the problem: the remaining edges, and hidden nodes that are certainly built."""

    prices: list[dict[int, float]]
    sure: frozenset[int]

    @property
    def edges(self) -> int:
        """Count the edges."""
        return sum(map(len, self.prices))

    def undecided(self, required: int) -> list[int]:
        """List the hidden nodes that are still undecided."""
        return [place for place in range(required, len(self.prices)) if self.prices[place] and place not in self.sure]

    def branches(self, required: int) -> list[_Part]:
        """Branch on the hidden node with the most possible readers: leave it out, or certainly build it."""
        readers = Counter(parent for parents in self.prices for parent in parents)
        node = max(self.undecided(required), key=lambda place: readers[place])
        without = [
            {} if place == node else {parent: price for parent, price in parents.items() if parent != node}
            for place, parents in enumerate(self.prices)
        ]
        return [_Part(without, self.sure), _Part(self.prices, self.sure | {node})]


class _Problem:
    """The nodes as numbers: the required ones, the hidden ones, and the raw events as the last one."""

    def __init__(self, options: Options, required: Sequence[Node]) -> None:
        always: set[Node | None] = {None, *required}
        self.nodes: list[Node | None] = [*required, *(node for node in options if node not in always), None]
        self.root, self.required = len(self.nodes) - 1, len(required)
        self.number = {node: place for place, node in enumerate(self.nodes)}
        self.naive = sum(options[node][None] for node in required)
        self.prices: list[dict[int, float]] = []
        for node in self.nodes[:-1]:
            assert node is not None
            scaled = {parent: SCALE * share(price, self.naive) for parent, price in options[node].items()}
            self.prices.append({self.number[parent]: scaled[parent] for parent in worthwhile(scaled, always)})
        self.order = _parents_first(self.prices, self.root)
        # Of the parents that always exist, each node may read only one.
        self.fallback = [next(iter(parents.values())) for parents in self.prices]
        """The cost of each node if no hidden node is built."""
        self.cheaper = [
            sorted((price, place) for place, price in parents.items() if self.required <= place < self.root)
            for parents in self.prices
        ]
        """The hidden nodes from which each node is cheaper, the cheapest first."""
        self.without_losers: dict[frozenset[int], _Built] = {}

    def numbered(self, nodes: Iterable[Node]) -> frozenset[int]:
        """Return the numbers of some nodes."""
        return frozenset(self.number[node] for node in nodes)

    def solution(self, best: _Built, bound: float, *, optimal: bool) -> Solution:
        """Return the result as a solution."""
        built = frozenset(node for place in best.nodes if (node := self.nodes[place]) is not None)
        return Solution(built, unscaled(bound, self.naive), optimal)

    def relax(self, part: _Part, best: _Built) -> tuple[float, _Part, _Built]:
        """Bound the trees of a part, look for a better one, and drop the edges that no better tree uses.

        The remaining edges are bounded again, until there is nothing more to drop.
        """
        terminals = [*range(self.required), *sorted(part.sure)]
        prices = part.prices
        while True:
            left = [parents.copy() for parents in prices]
            bound, used = _ascend(left, terminals, self.root)
            part = _Part(prices, part.sure)
            if best.cost - bound > CLOSE * best.cost:
                hidden = sorted(place for place in used if self.required <= place < self.root)
                best = min(best, self.improve(hidden, hidden), key=lambda each: each.cost)
            if best.cost - bound <= CLOSE * best.cost:
                return best.cost, part, best
            if not part.undecided(self.required):
                # Every node reads its cheapest parent.
                return sum(min(prices[terminal].values()) for terminal in terminals), part, best
            kept = self._useful(prices, left, terminals, best.cost - bound)
            if sum(map(len, kept)) == part.edges:
                return bound, part, best
            prices = kept

    def _useful(
        self,
        prices: Sequence[Mapping[int, float]],
        left: Sequence[Mapping[int, float]],
        terminals: Iterable[int],
        room: float,
    ) -> list[dict[int, float]]:
        """Drop the edges whose use would cost more above the bound than the best tree allows.

        A tree with an edge has a path to it and one on to a terminal, which cost at least what remains of their edges.
        """
        reached, onwards = [inf] * self.root + [0.0], [inf] * (self.root + 1)
        for terminal in terminals:
            onwards[terminal] = 0.0
        for place in self.order:
            reached[place] = min((reached[parent] + price for parent, price in left[place].items()), default=inf)
        for place in reversed(self.order):
            for parent, price in left[place].items():
                onwards[parent] = min(onwards[parent], onwards[place] + price)
        room = room * (1 + CLOSE) + CLOSE
        return [
            {
                parent: prices[place][parent]
                for parent, price in parents.items()
                if reached[parent] + price + onwards[place] <= room
            }
            for place, parents in enumerate(left)
        ]

    def improve(self, start: Iterable[int], others: Iterable[int]) -> _Built:
        """Remove hidden nodes that are not worth their price; then add each of some others if that pays.

        A node that is added may make several others superfluous.
        """
        best = self._without_losers(start)
        settled = False
        while not settled:
            settled = True
            for place in others:
                if place not in best.nodes:
                    found = self._without_losers(best.nodes | {place})
                    if found.cost < best.cost * (1 - CLOSE):
                        best, settled = found, False
        return best

    def _without_losers(self, built: Iterable[int]) -> _Built:
        """Remove the hidden nodes that are not worth their price, greatest loss first."""
        start = frozenset(built)
        if start not in self.without_losers:
            cost, gains = self._assess(start)
            while gains:
                worst = min(gains, key=gains.__getitem__)
                less, others = self._assess(gains.keys() - {worst}) if gains[worst] <= CLOSE else (inf, gains)
                if less > cost:
                    break
                cost, gains = less, others
            self.without_losers[start] = _Built(cost, frozenset(gains))
        return self.without_losers[start]

    def _assess(self, built: Collection[int]) -> tuple[float, dict[int, float]]:
        """Price the tree in which every node reads its cheapest parent.

        Also return, for each hidden node in it, how much more its readers would cost without it, minus its own cost.
        """
        waiting = list(range(self.required))
        gains: dict[int, float] = {}
        total = 0.0
        while waiting:
            node = waiting.pop()
            least = otherwise = self.fallback[node]
            parent = self.root
            for price, hidden in self.cheaper[node]:
                if hidden in built:
                    if parent != self.root:
                        otherwise = price
                        break
                    parent, least = hidden, price
            total += least
            if node in gains:
                gains[node] -= least
            if parent != self.root:
                if parent not in gains:
                    gains[parent] = 0.0
                    waiting.append(parent)
                gains[parent] += otherwise - least
        return total, gains


def _parents_first(prices: Sequence[Mapping[int, float]], root: int) -> list[int]:
    """Order the nodes so that each comes after all that it may read."""
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

    `left` is the part of each edge's price not yet accounted for. Among the terminals that the root does not reach by
    edges with nothing left, the next one is that with the fewest edges into the nodes that reach it: all these edges
    are charged what the cheapest of them has left.
    """
    reach = {terminal: {terminal} for terminal in terminals}
    bound = 0.0

    def grow(found: set[int], start: Iterable[int]) -> bool:
        """Add the nodes that reach a terminal by edges with nothing left; say whether the root is one."""
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
        if not cuts[terminal]:
            return inf, set()
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
    """Return a price in the cost model's units."""
    part = price / SCALE
    return part * naive if isinstance(naive, float) else Fraction(part) * Fraction(naive)


def worthwhile(parents: Mapping[Node | None, Cost], always: set[Node | None]) -> list[Node | None]:
    """Keep the cheapest parent that always exists, and hidden ones that are cheaper."""
    there = min(filter(always.__contains__, parents), key=parents.__getitem__)
    least = parents[there]
    return [there, *(parent for parent, price in parents.items() if price < least and parent not in always)]
