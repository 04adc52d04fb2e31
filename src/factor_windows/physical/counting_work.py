"""The work for functions of all values, from value counts or from raw events, and which of the two is cheaper."""

from __future__ import annotations

from collections.abc import Mapping

from factor_windows.functions.aggregate import Aggregate
from factor_windows.functions.counted import follow_from_counts
from factor_windows.physical.layout import Distribution, Layout
from factor_windows.physical.work import Work

WORTH_COUNTING = 1.3
"""How many times cheaper counting values must look: the number of values was estimated from few of the events."""

FEWER = 0.5
"""The largest share of rows that may remain after counting values. Hash tables of nearly all rows may not fit."""

ONE_SCAN = 1.6
"""How many times cheaper one scan must look than the unchanged query, for maps of values known to repeat little.

It may have one task where the branches of a union have one each."""


class CountingWork(Work):
    """The work for functions computed from how often each value occurs."""

    @property
    def functions(self) -> int:
        """Count the functions that keep a map of all values: percentiles and the mode."""
        return sum(not each.distinct for each in self._counted)

    @property
    def distinct(self) -> int:
        """Count the values that DISTINCT compares."""
        return len({each.arguments for each in self._counted if each.distinct})

    def count(self, layout: Layout) -> dict[str, float]:
        """Count the work of a layout that counts values; at the end, all rows of an instance become one."""
        shown = [place for place, node in enumerate(self.plan.nodes) if node.exposed]
        read = sum(self.rows[place] for place in shown)
        made = sum(self.cost.of_instances.rows_of(self.plan.nodes[place].node) for place in shown)
        kept = read * self.functions
        last = {"merge": read, "collect": kept, "group": made + kept}
        if layout.distribution is Distribution.BY_LEVEL:
            last |= {"shuffle": read + kept, "stage": 1 / self.cost.units}
        return _add(super().count(layout), last)

    def count_naive(self) -> dict[str, float]:
        """Count the work of the unchanged query."""
        instances = Work(self.plan, self.cost.of_instances, self.partitions).count_naive()
        # Its rows are sorted by the window's struct, and by keys as they are, which takes as long again.
        more = {"collect": instances["update"] * max(self.functions, self.distinct)}
        return _add(_add(instances, self._from_events(instances["update"])), more)

    def count_fan_out(self) -> dict[str, float]:
        """Count the work of one scan that assigns each event to all its instances."""
        counts = super().count_fan_out()
        return _add(counts, self._from_events(counts["update"]))

    def pays(self, layout: Layout) -> bool:
        """Say whether counting values is cheaper, by a safe margin, than giving Spark's own functions all events."""
        updates = self.cost.rate * self.entries * sum(each.steps for each in layout.levels[0].assigners)
        if self.cost.guessed or self.first_rows(layout) > FEWER * updates:
            return False
        return self.price(layout) * WORTH_COUNTING < min(self.fan_out_price, self.naive_price)

    @property
    def is_naive_better_than_a_scan(self) -> bool:
        """Say whether, if values are not counted, the unchanged query beats one scan for all windows."""
        margin = ONE_SCAN if self.functions and not self.cost.guessed else 1.0
        return self.naive_price < margin * self.fan_out_price

    def _from_events(self, updates: float) -> dict[str, float]:
        """Count the work of functions of all values on top of an update for each event and instance.

        Each event is put into a map, or compared with others by its value. The distinct ones are shuffled: all, if no
        value is known to repeat. Alongside DISTINCT, Spark makes a map for each value.
        """
        rows = updates if self.cost.guessed else sum(self.cost.rows_of(each.node) for each in self.plan.outputs)
        left = min(updates, rows / max(1, len(self.cost.values)))
        maps = self.functions * (2 if self.distinct else 1)
        counts = {"collect": updates * maps, "shuffle": left * maps, "group": left * maps}
        again = {"update": updates, "crowded": updates, "shuffle": left, "group": 2 * left}
        return _add(counts, {name: number * self.distinct for name, number in again.items()})

    @property
    def _counted(self) -> list[Aggregate]:
        return [each for each in self.plan.query.parsed_aggregates if follow_from_counts(each) is not None]


def _add(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    return {name: one.get(name, 0.0) + other.get(name, 0.0) for name in {**one, **other}}
