"""The work of a layout: how often Spark does each thing that has a price."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from math import inf

from factor_windows.algebra.graph import stands_for
from factor_windows.algebra.session import Session
from factor_windows.algebra.slices import clocks_to_ask
from factor_windows.cost.spark import SparkCost
from factor_windows.functions.weights import Weights
from factor_windows.physical.assigner import ALWAYS, RAW
from factor_windows.physical.layout import Distribution, Layout, finds_sessions, flatten
from factor_windows.tree import Pass

PARTITIONS = 200
"""The default number of partitions of Spark's shuffles."""
ROWS_PER_PARTITION = 15_000
"""The least number of rows in a partition where Spark may merge small ones: they take a megabyte."""
FAST_HASH_GROUPS = 65_536
"""The number of groups that Spark's fast hash table is assumed to hold; updates of others take longer."""
FEW_GROUPS = 2 * FAST_HASH_GROUPS
"""The most groups of a first level that are few: tasks share them, and a fast table that overflows costs little."""
CROWDED_BY_FEW = 0.5
"""The share of the surcharge for keys that remains where groups are few."""
STAGES = {Distribution.BY_KEY: 1.0, Distribution.BY_KEY_AND_CHUNK: 3.0}
"""The price of planning a shuffle of partial results and generating its code, in stages: mostly in a first run."""
STAGES_TO_PACK = 1.5
"""The same for pane rows."""
MOVES_TO_SCAN = 2.4
"""The price of sorting a row of partial results by time in both directions and scanning it each way, in moves."""
MOVES_TO_BLOCKS = 8.0
"""The extra price if rows are shuffled for this by block, and again for the group after it."""
EXPLODED_OBJECTS = 2.0
"""How many times longer adding an event to an object, such as a list, takes after an explode to several instances.

With many groups, Spark sorts all these rows together."""
WORTH_MERGING = 1.5
"""How many times cheaper than the unchanged query a plan with sketches or lists as states must look.

Their cost depends on the number of groups in a task, and on the memory available."""
MOVES_TO_SORT = 2.4
"""The price of moving a row of partial results once more and sorting it there, in addition to a plain move."""


class Work:
    """The work of one plan's layouts per unit of time, for a stream and the partitions of a session."""

    def __init__(
        self, plan: Pass, cost: SparkCost, partitions: int = PARTITIONS, *, weights: Weights | None = None
    ) -> None:
        self.plan, self.cost, self.partitions = plan, cost, partitions
        self.rows = [cost.rows_of(node.node) for node in plan.nodes]
        self.clocks = [clocks_to_ask(node.window) for node in plan.nodes]
        self.states = max(1, plan.workload.states + bool(cost.values))
        self.entries = max(1, len(cost.values))
        self.weights = weights or Weights.of(plan.query.parsed_aggregates)

    def price(self, layout: Layout) -> float:
        """Return the price of a layout in nanoseconds per unit of time."""
        return self.cost.prices.total(self.count(layout))

    @cached_property
    def naive_price(self) -> float:
        """Return the price of the unchanged query."""
        return self.cost.prices.total(self.count_naive())

    def is_naive_better(self, layout: Layout) -> bool:
        """Say whether the unchanged query costs less than a layout, or too little more to be sure."""
        return self.naive_price < self.price(layout) * (WORTH_MERGING if self.weights.states else 1.0)

    @property
    def is_naive_better_than_a_scan(self) -> bool:
        """Say whether, if no states are merged, the unchanged query beats one scan for all windows."""
        return self.naive_price < self.fan_out_price

    @property
    def fan_out_price(self) -> float:
        """Return the price of one scan that assigns each event to all its instances, with Spark's own functions."""
        return self.cost.prices.total(self.count_fan_out())

    def count_fan_out(self) -> dict[str, float]:
        """Count the work of such a scan by the names of prices."""
        naive = self.plan.naive()
        work = Work(naive, self.cost.of_instances, self.partitions, weights=self.weights.of_own)
        return work.count(Layout(flatten(naive, frozenset())))

    def count(self, layout: Layout) -> dict[str, float]:
        """Count the work of a layout by the names of prices."""
        cost, rows = self.cost, self.rows
        reads, edges, clocks = [], 0.0, 0.0
        if layout.asides:
            # Of these nodes, only early instances are computed.
            early = {each.target for level in layout.levels for each in level.assigners if each.before != ALWAYS}
            rows = [0.0 if place in early else many for place, many in enumerate(rows)]
        for level in layout.levels:
            total = 0.0
            for each in level.assigners:
                if each.before != ALWAYS:
                    continue
                read = cost.rate * self.entries if each.source == RAW else rows[each.source]
                # An instance made from scans reads two rows, even where panes are empty.
                total += 2 * rows[each.target] if each.target == level.scanned else each.steps * read
                if each.source != each.target:
                    edges += (len(each.edges) - 1) * read
                    clocks += self.clocks[each.target] * read * each.steps
            reads.append(total)
        emitted = [self.first_rows(layout), *(sum(rows[place] for place in level.nodes) for level in layout.levels[1:])]
        crowded = 0.0
        if cost.keyed:
            crowded = reads[0] * (CROWDED_BY_FEW if self.groups_few(layout) else 1.0)
        elif FAST_HASH_GROUPS < emitted[0] * cost.units < inf:
            crowded = reads[0] * (1 - FAST_HASH_GROUPS / (emitted[0] * cost.units))
        moves, moved = self._moves(layout, reads, emitted)
        windowed, sorted_rows, searched = self._sessions(layout)
        scans, scanned = self._scans(layout)
        moves, moved = moves + windowed + scans, moved + sorted_rows + scanned
        row = layout.pane_row
        unpacked = sum(rows[place] for place in layout.unpacked(self.plan)) if row else 0.0
        # What a level shows is also finished there, in addition to the next level's work.
        levels = layout.levels[:-1] if layout.asides else ()
        twice = [made for level, made in zip(levels, emitted, strict=False) if layout.shown(self.plan, level)]
        explodes = self.entries * sum(each.steps for each in layout.levels[0].assigners) > 1
        grouped = sum(emitted) + sum(twice) + unpacked
        merged = sum(reads[1:]) + searched
        # Raw events have no states yet.
        heavy = self.weights.states * (0.0 if layout.distribution is Distribution.EVENTS_BY_KEY else moved)
        fixed = moves + 1 + len(twice) + STAGES.get(layout.distribution, 0.0) + STAGES_TO_PACK * bool(row)
        return {
            "update": reads[0],
            "merge": merged * (1.0 + self.weights.states),
            "crowded": crowded,
            "edge": edges,
            "clock": clocks,
            "state": (self.states - 1) * reads[0],
            "object": self.weights.objects * reads[0] * (EXPLODED_OBJECTS if explodes else 1.0),
            "explode": cost.rate * self.entries if explodes else 0.0,
            "slot": cost.rate * row.columns if row else 0.0,
            "stage": fixed / cost.units,
            "scan": cost.rate,
            "shuffle": moved + heavy,
            "group": grouped * (1.0 + self.weights.states),
        }

    def count_naive(self) -> dict[str, float]:
        """Count the work of the unchanged query: each window from the events, in its own branch of a union."""
        cost, outputs = self.cost, self.plan.outputs
        windows = [stands_for(output.node) for output in outputs]
        rows = sum(cost.rows_of(output.node) for output in outputs)
        instances = [-(-window.range // window.slide) for window in windows]
        updates = cost.rate * sum(instances)
        # Spark shuffles the events of a session to one place and sorts them.
        sessions = sum(isinstance(output.node.window, Session) for output in outputs)
        return {
            "scan": cost.rate * len(windows),
            "update": updates,
            "explode": cost.rate * sum(each > 1 for each in instances),
            "window": updates,
            # Nothing is exploded before, which makes hash tables of keys cheaper to access.
            "crowded": updates / 2 if cost.keyed else 0.0,
            "state": (self.states - 1) * updates,
            "object": self.weights.own_objects * updates,
            "shuffle": rows * (1.0 + self.weights.own) + sessions * cost.rate * (1 + MOVES_TO_SORT),
            "group": rows * (1.0 + self.weights.own),
            "stage": len(windows) / cost.units,
        }

    def _sessions(self, layout: Layout) -> tuple[int, float, float]:
        """Count the shuffles for sessions, the rows shuffled and sorted for them, and those examined for each gap."""
        moves, moved, searched = 0, 0.0, 0.0
        for number, level in enumerate(layout.levels):
            found = [each.source for each in level.assigners if finds_sessions(self.plan, each)]
            read = sum(self.cost.rate if source == RAW else self.rows[source] for source in set(found))
            is_moved = layout.distribution is not Distribution.BY_LEVEL
            is_sorted = is_moved and number == 1 and layout.distribution is Distribution.BY_KEY
            moves += bool(found) and not is_moved
            moved += 0.0 if is_sorted else read * (MOVES_TO_SORT + (not is_moved))
            searched += len(found) * read
        return moves, moved, searched

    def _scans(self, layout: Layout) -> tuple[int, float]:
        """Count the shuffles for scans of blocks, and the rows shuffled and sorted for them: all of the level above."""
        is_moved = layout.distribution is not Distribution.BY_LEVEL
        read = sum(
            self.rows[place]
            for above, level in pairwise(layout.levels)
            if level.scanned is not None
            for place in above.nodes
        )
        return bool(read) and not is_moved, read * (MOVES_TO_SCAN + MOVES_TO_BLOCKS * (not is_moved))

    def first_rows(self, layout: Layout) -> float:
        """Count the rows that the first level emits: those of its nodes, or pane rows."""
        nodes = layout.levels[0].nodes
        if layout.pane_row is None:
            return sum(self.rows[place] for place in nodes)
        return self.cost.rows_of(replace(self.plan.nodes[nodes[0]].node, window=layout.pane_row.window))

    def groups_few(self, layout: Layout) -> bool:
        """Say whether the first level is known to make few groups, of events that were not shuffled before."""
        is_moved = layout.distribution is Distribution.EVENTS_BY_KEY or self.plan.query.has_sessions
        is_known = not self.cost.assumed and not is_moved
        return is_known and self.first_rows(layout) * self.cost.units <= FEW_GROUPS

    def _moves(self, layout: Layout, reads: list[float], emitted: list[float]) -> tuple[int, float]:
        """Count how often rows are shuffled, and how many rows."""
        match layout.distribution:
            case Distribution.EVENTS_BY_KEY:
                return 1, self.cost.rate
            case Distribution.ONE_PARTITION:
                return 0, 0.0
            case Distribution.BY_LEVEL:
                # Each partition has partial results of most instances, and sends them all.
                spread = max(2.0, min(self.partitions, emitted[0] * self.cost.units / ROWS_PER_PARTITION))
                partial = (min(read, spread * made) for read, made in zip(reads[1:], emitted[1:], strict=True))
                return len(layout.levels), emitted[0] + sum(partial)
        is_sorted = layout.levels[1].scanned is None
        return 2, emitted[0] * (2 + MOVES_TO_SORT * is_sorted)
