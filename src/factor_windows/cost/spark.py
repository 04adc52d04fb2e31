"""A cost model for Spark, in updates per unit of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, expm1, inf
from typing import ClassVar

from factor_windows.algebra.coverage import fewest, multiplier
from factor_windows.algebra.graph import Node
from factor_windows.algebra.pane_row import Packing, ways_to_pack
from factor_windows.algebra.session import Session
from factor_windows.algebra.slices import Segmentation, Slices, clocks_to_ask, common_step, mean_length, pieces_of
from factor_windows.algebra.window import Duration, Window
from factor_windows.cost.model import Cost, CostModel, Rate, positive, unit_of
from factor_windows.cost.prices import Prices
from factor_windows.cost.statistics import Look
from factor_windows.errors import OptionError
from factor_windows.functions.table import Kind
from factor_windows.functions.value_columns import ValueColumns
from factor_windows.functions.weights import Weights
from factor_windows.query import Query

DENSE = 100
"""The default number of events of a key in the windows' greatest common divisor of time; but see `DENSEST`."""
DENSEST = 10_000
"""The shortest time, in microseconds, in which a key is assumed to have that many."""
FEWEST_SESSIONS = 1e-4
"""The least share of events that end a session: real events come in bursts, with silence between."""
MANY_PARENTS = 50
"""From this number of parents on, what they share is computed once."""
VALUES = 20.0
"""The default number of values that a key has, of those that a function counts."""


@dataclass(frozen=True, slots=True)
class SparkCost(CostModel):
    """The work that Spark does per unit of time: for all keys, and only for instances that contain an event.

    The unit is the update: adding one event to one instance. Spark's other work is priced in updates.

    >>> prices = Prices(scan=0, update=1, merge=1, shuffle=0, group=0)
    >>> cost = SparkCost(unit=1_000_000, rate=100.0, keys=20.0, prices=prices)
    >>> ten, twenty = (Window(range=seconds * 1_000_000, slide=seconds * 1_000_000) for seconds in (10, 20))
    >>> cost.of(ten, None), round(cost.of(twenty, ten), 3)
    (100.0, 2.0)
    """

    name: ClassVar[str] = "spark"
    unit: int
    rate: float
    """Events per unit, over all keys."""
    keys: float
    """The number of combinations of keys."""
    keyed: bool = False
    """Whether there are keys at all: they make Spark's hash tables slower, even if there is only one combination."""
    assumed: bool = False
    """Whether no rate was given, so that a dense stream is assumed."""
    sparse_covers: bool = False
    """Whether an instance reads the fewest of its parent's that make it up, or all inside it, as in the paper."""
    overlap_safe: bool = True
    """Whether it may read all inside: if not, it always reads the fewest of a hopping parent."""
    prices: Prices = field(default_factory=Prices)
    units: float = inf
    """The units of time that the events span, if known: each step has a price whatever its size."""
    combinations: Mapping[frozenset[str], float] = field(default_factory=dict)
    """The number of combinations of each set of keys, if nodes differ in their keys; otherwise `keys` is for all."""
    states: int = 0
    """The number of partial states in a slot where panes are packed into rows; 0 if they cannot be packed."""
    values: tuple[float, ...] = ()
    """The number of values of a key, for each value that rows are counted by; empty if no function counts values."""
    guessed: bool = False
    """Whether the number of values is unknown."""
    weights: Weights = field(default_factory=Weights)
    """The extra cost of partial states that are not plain numbers: sketches and lists."""
    _models: dict[frozenset[str], SparkCost] = field(default_factory=dict, init=False, repr=False, compare=False)
    _measures: dict[Segmentation, tuple[float, float]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """For each segmentation priced so far, the number of instances and the rows of each."""

    @classmethod
    def of_query(
        cls,
        query: Query,
        *,
        rate: Rate | None = None,
        unit: Duration | None = None,
        keys: int | None = None,
        sparse_covers: bool = False,
        prices: Prices | None = None,
        events: float = inf,
        combinations: Mapping[frozenset[str], float] | None = None,
        values: Rate | Sequence[Rate] | None = None,
    ) -> SparkCost:
        """Take the statistics as given, and assume a dense stream where they are missing."""
        counts = query.kind is Kind.COUNTED and not query.has_sessions
        counted = len(ValueColumns(query.parsed_aggregates, "").keys) if counts else 0
        length = unit_of(query, unit)
        number_of_keys = float(positive("keys", keys) or 1)
        given = positive("rate", rate)
        dense = DENSE * number_of_keys * length / max(common_step(query.names), DENSEST)
        each = float(given or dense)
        assumed = given is None
        units = max(1, events) / each
        packing = None if combinations else Packing.of(query)
        return cls(
            length,
            each,
            number_of_keys,
            bool(query.parsed_keys),
            assumed,
            sparse_covers,
            query.kind is Kind.OVERLAP_SAFE,
            prices or Prices(),
            units,
            combinations or {},
            packing.states if packing else 0,
            _numbers_of_values(values, counted),
            guessed=bool(counted) and values is None,
            weights=Weights.of(query.parsed_aggregates),
        )

    def by(self, keys: frozenset[str]) -> SparkCost:
        """Return the model for nodes with exactly these keys."""
        if keys not in self.combinations:
            return self
        if keys not in self._models:
            self._models[keys] = replace(self, keys=self.combinations[keys], keyed=bool(keys), combinations={})
        return self._models[keys]

    def seen(self, look: Look) -> SparkCost:
        """Return the model for the events that a look describes."""
        rate = self.rate if look.rate is None or self.combinations else look.rate * self.unit / 1_000_000
        keys = self.keys if look.keys is None or self.combinations else float(look.keys)
        assumed = self.assumed and rate == self.rate
        found = replace(self, rate=rate, keys=keys, assumed=assumed, units=max(1, look.events) / rate)
        return replace(found, values=look.values, guessed=False) if self.guessed and look.values else found

    @property
    def of_instances(self) -> SparkCost:
        """Return the model for rows that are not counted by values: those that are shown."""
        return replace(self, values=(), guessed=False) if self.values else self

    def of_values(self, number: float) -> SparkCost:
        """Return the model for rows by this number of values of each key."""
        return replace(self.of_instances, keys=self.keys * number)

    @property
    def grain(self) -> int:
        """Return one microsecond: raw events have no instances that a factor window would have to fit."""
        return 1

    def recurrence_count(self, segmentation: Segmentation) -> float:
        """Count the instances that end in a unit of time, over all keys.

        A session ends at an event that is followed by a gap without events, assuming that events are independent of
        each other.
        """
        return self._measure(segmentation)[0]

    def _measure(self, segmentation: Segmentation) -> tuple[float, float]:
        found = self._measures.get(segmentation)
        if found is None:
            found = self._measures[segmentation] = (self._count(segmentation), self._filled(segmentation))
        return found

    def _count(self, segmentation: Segmentation) -> float:
        if isinstance(segmentation, Session):
            return self.rate * max(exp(-self.rate / self.keys / self.unit * segmentation.gap), FEWEST_SESSIONS)
        distance = float(mean_length(segmentation)) if isinstance(segmentation, Slices) else segmentation.distance
        return self.keys * self.unit / distance

    def filled(self, segmentation: Segmentation) -> float:
        """Return the probability that an instance contains an event, if events are independent of each other.

        Where values are counted, return the number of rows of an instance: one for each value that occurs in it.
        """
        return self._measure(segmentation)[1]

    def _filled(self, segmentation: Segmentation) -> float:
        if self.values:
            return sum(number * self.of_values(number).filled(segmentation) for number in self.values)
        per_time = self.rate / self.keys / self.unit
        if isinstance(segmentation, Session):
            return 1.0
        if not isinstance(segmentation, Slices):
            return -expm1(-per_time * segmentation.length)
        pieces = pieces_of(segmentation.nominal)
        return sum(-expm1(-per_time * length) * count for length, count in pieces.lengths) / pieces.count

    def rows(self, segmentation: Segmentation) -> float:
        """Count the rows that a node emits per unit of time."""
        count, filled = self._measure(segmentation)
        return count * filled

    def instance_cost(self, segmentation: Segmentation, parent: Segmentation | None) -> float:
        """Count the rows that one instance reads."""
        if isinstance(segmentation, Session):
            return (self.rate if parent is None else self.rows(parent)) / self.recurrence_count(segmentation)
        if parent is None:
            return self.rate / self.keys * float(mean_length(segmentation)) / self.unit
        if not isinstance(segmentation, Window) or not isinstance(parent, Window) or segmentation.clock != parent.clock:
            reads = float(mean_length(segmentation) / mean_length(parent))
        else:
            reads = multiplier(parent, segmentation)
            if not self.overlap_safe:
                reads = fewest(parent, segmentation)
            elif self.sparse_covers:
                # Rows that no instance of the longer slide needs are examined, too.
                reads = min(reads, fewest(parent, segmentation) * segmentation.slide / parent.slide)
        return reads * self.filled(parent)

    def weight(self, parent: Segmentation | None) -> float:
        """Return the price of a read: one for an event without keys; keys and partial results slow hash tables down."""
        if parent is None:
            objects = self.prices.relative("object") * self.weights.objects
            return 1.0 + self.prices.relative("crowded") * self.keyed + objects
        return self._of_states("merge")

    def _of_states(self, price: str) -> float:
        """Return the price of some work on one row of partial results, by the weight of its states."""
        return self.prices.relative(price) * (1.0 + self.weights.states)

    def overhead(self, segmentation: Segmentation, parent: Segmentation | None) -> float:
        """Price the scan and the shuffle of rows made from events, or the emission of rows made from other rows."""
        if isinstance(segmentation, Session):
            # The input of sessions is shuffled by key and sorted.
            sorted_rows = 2 * self.rate if parent is None else self.rows(parent)
            scanned = self.rate if parent is None else 0.0
            made = self.rows(segmentation) * self._of_states("group")
            moving = self.prices.relative("shuffle") if parent is None else self._of_states("shuffle")
            return made + sorted_rows * moving + scanned * self.prices.relative("scan")
        if parent is None:
            return (
                self.rate * self.prices.relative("scan")
                + self._moving(segmentation)
                + self._finding(segmentation, self.rate)
            )
        made = self.rows(segmentation) * self._of_states("group") + self._finding(segmentation, self.rows(parent))
        return made + self._passing_by(segmentation, parent)

    def _moving(self, segmentation: Segmentation) -> float:
        """Price the shuffle of rows made from events, as single rows or as pane rows.

        Uneven slices are always read and never packed, so they are moved a second time, to their readers.
        """
        moves = 2 if isinstance(segmentation, Slices) and len(segmentation.nominal) > 1 else 1
        shuffle, group = self._of_states("shuffle") * moves, self._of_states("group")
        slot = self.prices.relative("slot")
        rows = self.rows(segmentation)
        packed = (
            self.rows(pack.window) * (shuffle + group) + self.rate * pack.columns * slot + rows * group
            for pack in ways_to_pack(segmentation, self.states)
        )
        return min([rows * (shuffle + group), *packed])

    def _finding(self, segmentation: Segmentation, read: float) -> float:
        """Price the search for the slice that each row belongs to."""
        clocks = clocks_to_ask(segmentation) * read * self.prices.relative("clock")
        if isinstance(segmentation, Slices):
            return clocks + (len(segmentation.edges) - 1) * read * self.prices.relative("edge")
        return clocks

    def _passing_by(self, segmentation: Segmentation, parent: Segmentation) -> float:
        """Price the positions at which a row of a hopping window is examined although no instance needs it."""
        if (
            self.overlap_safe
            or not isinstance(segmentation, Window)
            or not isinstance(parent, Window)
            or parent.is_tumbling
            or parent.clock != segmentation.clock
        ):
            return 0.0
        looked = fewest(parent, segmentation) * self.rows(parent)
        wanted = fewest(parent, segmentation) * self.recurrence_count(segmentation) * self.filled(parent)
        return max(0.0, looked - wanted) * self.prices.relative("edge")

    def rows_of(self, node: Node) -> float:
        """Count the rows that a node emits per unit of time, for its own keys."""
        return self.by(node.keys).rows(node.window)

    def price(self, node: Node, parent: Node | None) -> Cost:
        """Count the updates of an edge; one that drops keys reads as many rows as if it kept them, and emits fewer.

        >>> cost = SparkCost(1_000_000, 100.0, keys=20.0, combinations={frozenset(): 1.0})
        >>> ten, minute = (Window(range=seconds * 1_000_000, slide=seconds * 1_000_000) for seconds in (10, 60))
        >>> devices = Node(ten, frozenset({"device"}))
        >>> cost.price(Node(minute), devices) < cost.price(Node(minute, devices.keys), devices)
        True
        """
        own = self.by(node.keys)
        if parent is None:
            return own.of(node.window, None)
        above = self.by(parent.keys)
        if above is own:
            return own.of(node.window, parent.window)
        saved = above.rows(node.window) - own.rows(node.window)
        return above.of(node.window, parent.window) - saved * self._of_states("group")

    def price_each(self, node: Node, parents: Sequence[Node]) -> list[Cost]:
        """Price each parent, counting the node's own work once for all that are windows like it: perhaps a thousand."""
        own, window = self.by(node.keys), node.window
        is_few = len(parents) < MANY_PARENTS or not own.overlap_safe or own.values
        if is_few or not isinstance(window, Window) or window.clock is not None:
            return [self.price(node, parent) for parent in parents]
        count, weight, made = own.recurrence_count(window), own._of_states("merge"), None
        per_time = own.rate / own.keys / own.unit
        prices: list[Cost] = []
        for each in parents:
            parent = each.window
            if not isinstance(parent, Window) or parent.clock != window.clock or self.by(each.keys) is not own:
                prices.append(self.price(node, each))
                continue
            reads: float = multiplier(parent, window)
            if own.sparse_covers:
                reads = min(reads, fewest(parent, window) * window.slide / parent.slide)
            if made is None:
                made = own.overhead(window, parent)
            prices.append(count * (reads * -expm1(-per_time * parent.length)) * weight + made)
        return prices

    def naive(self, node: Node) -> Cost:
        """Count the updates of a node computed by Spark's own window(), which has no pane rows.

        Functions computed from value counts put each event into a map there, and shuffle as much data.
        """
        own = replace(self, states=0, weights=self.weights.of_own)
        if not self.values:
            return own.price(node, None)
        updates = self.recurrence_count(node.window) * self.instance_cost(node.window, None)
        return own.price(node, None) + updates * self.prices.relative("collect")


def _numbers_of_values(given: Rate | Sequence[Rate] | None, counted: int) -> tuple[float, ...]:
    """Return the number of values a key has of each counted value: given for each, or one number for all."""
    several = list(given) if isinstance(given, Sequence) else [given] * counted
    if len(several) != counted and given is not None and counted:
        raise OptionError(
            f"values {given!r} are {len(several)} numbers for {counted} counted values; give one for each"
        )
    return tuple(float(positive("values", each) or VALUES) for each in several[:counted])
