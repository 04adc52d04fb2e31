"""A plan: how to compute one query or several, in one or a few passes over the events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from factor_windows.cost.model import Cost, CostModel
from factor_windows.cost.spark import SparkCost
from factor_windows.errors import PlanError
from factor_windows.query import Query
from factor_windows.request import Dialect, Mode, Options, Request, Search
from factor_windows.tree import Pass, PlanNode
from factor_windows.workload import Output

if TYPE_CHECKING:
    from datetime import datetime
    from os import PathLike

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

    from factor_windows.cost.timing import Timing

STATUSES = ("time_limit", "heuristic", "optimal")
"""How good a search's answer can be, weakest first."""


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """How to compute one query, or several that share work; `queries` lists them.

    >>> import factor_windows as fw
    >>> devices = fw.Query(time="ts", keys=["device"], windows=[fw.tumbling("5m")], aggregates=["avg(t)"], name="a")
    >>> hours = fw.Query(time="ts", windows=[fw.tumbling("1h")], aggregates=["max(t)"], name="b")
    >>> plan = fw.optimize([devices, hours])
    >>> [(node.name, node.parent) for node in plan.nodes]
    [('5 minutes by device', None), ('1 hour', '5 minutes by device')]
    """

    passes: tuple[Pass, ...]
    """What each pass over the events computes."""
    request: Request = field(compare=False)
    """The queries and options the plan was made for; `replace` them and plan again to change them."""

    @classmethod
    def of_pass(cls, each: Pass) -> Plan:
        """Make a plan of one query from its pass, which also knows the options."""
        model = each.cost_model
        spark = model if isinstance(model, SparkCost) else None
        options = Options(
            search=each.search,
            cost="spark" if spark else "paper",
            rate=None if spark and spark.assumed else model.rate,
            unit=timedelta(microseconds=model.unit),
            keys=int(spark.keys) if spark else None,
            prices=spark.prices if spark else None,
            values=spark.values if spark and spark.values and not spark.guessed else None,
        )
        return cls((each,), Request((each.query,), options, is_single=True))

    def __repr__(self) -> str:
        from factor_windows.explain.text import headline

        return f"<Plan: {headline(self)}>"

    @property
    def queries(self) -> tuple[Query, ...]:
        """List the queries; each has a name if there are several."""
        return self.request.queries

    @property
    def is_single(self) -> bool:
        """Say whether the plan is for a single query, so that its result is one DataFrame."""
        return self.request.is_single

    @property
    def query(self) -> Query:
        """Return the only query."""
        if not self.is_single:
            raise PlanError("the plan is for several queries; use plan.queries instead of plan.query")
        return self.queries[0]

    @property
    def nodes(self) -> tuple[PlanNode, ...]:
        """List all nodes, each after the one it reads."""
        return tuple(node for each in self.passes for node in each.nodes)

    @property
    def cost(self) -> Cost:
        """Return the cost of the whole plan."""
        return sum(each.cost for each in self.passes)

    @property
    def naive_cost(self) -> Cost:
        """Return the cost of computing every window of every query from the raw events."""
        return sum(
            each.cost_model.naive(node)
            for each in self.passes
            for member in each.workload.members
            for node in member.nodes.values()
        )

    @property
    def bound(self) -> Cost:
        """Return a lower bound: no plan in the search space costs less."""
        return sum(each.bound for each in self.passes)

    @property
    def search(self) -> Search:
        """Return the name of the search that found the plan."""
        return self.passes[0].search

    @property
    def status(self) -> str:
        """Say how good the plan is: `optimal`, `heuristic` or `time_limit`; the weakest of all passes."""
        return min((each.status for each in self.passes), key=STATUSES.index)

    @property
    def cost_model(self) -> CostModel:
        """Return the cost model, for a plan of one pass."""
        return self._only_pass.cost_model

    @property
    def outputs(self) -> tuple[Output, ...]:
        """List the windows in the result, for a plan of one pass."""
        return self._only_pass.outputs

    @property
    def has_several_keys(self) -> bool:
        """Say whether nodes group by different keys; several queries may."""
        return any(each.has_several_keys for each in self.passes)

    @property
    def _only_pass(self) -> Pass:
        if len(self.passes) > 1:
            raise PlanError(f"the plan takes {len(self.passes)} passes over the events; look at each of plan.passes")
        return self.passes[0]

    @property
    def plans(self) -> dict[str, Plan]:
        """Return the part of the plan that each query needs, by the query's name."""
        if self.is_single:
            return {self.query.name: self}
        found = {
            member.name: Plan.of_pass(each.for_member(member))
            for each in self.passes
            for member in each.workload.members
        }
        return {query.name: found[query.name] for query in self.queries}

    def shares(self) -> dict[str, Cost]:
        """Divide the cost among the queries; those that share a node pay equal parts of it."""
        paid: dict[str, Cost] = {query.name: 0 for query in self.queries}
        for each in self.passes:
            readers = each.readers
            for node in each.nodes:
                for name in readers[node.name]:
                    paid[name] += node.cost / len(readers[node.name])
        return paid

    def children(self, name: str | None) -> tuple[PlanNode, ...]:
        """List the nodes that read the named node, or the raw events, in a plan of one pass."""
        return self._only_pass.children(name)

    def reads(self, node: PlanNode) -> Cost:
        """Count what one instance of a node reads (events or instances of its parent), in a plan of one pass."""
        return self._only_pass.reads(node)

    def naive(self) -> Plan:
        """Return the plan that computes every window from the raw events."""
        options = replace(self.request.options, search="none")
        return Plan(tuple(each.naive() for each in self.passes), replace(self.request, options=options))

    def explain(
        self,
        *,
        physical: bool = False,
        streaming: bool = False,
        since: Plan | None = None,
        events: DataFrame | None = None,
    ) -> str:
        """Draw the tree as text: names, costs, reads, the predicted gain, and how it runs on Spark or on a stream.

        For several queries, it also shows which queries use each node and what each query pays. `since` takes an
        earlier plan and lists what changed. Given `events`, it shows what `run` would do with them, which also depends
        on their types and on the session's number of shuffle partitions.
        """
        from factor_windows.explain.text import changes, explain

        if since is not None:
            return changes(since, self)
        return explain(self, physical=physical or events is not None, streaming=streaming, events=events)

    def to_html(self, *, measured: Timing | Mapping[str, float] | None = None) -> str:
        """Return a self-contained HTML page that explains the plan; `measured` adds the run times in seconds."""
        from factor_windows.explain.page import page

        return page(self, measured=measured)

    def to_mermaid(self) -> str:
        """Draw the plan as a Mermaid flowchart."""
        from factor_windows.explain.diagrams import mermaid

        return mermaid(self)

    def to_dot(self) -> str:
        """Draw the plan as a graph for Graphviz."""
        from factor_windows.explain.diagrams import dot

        return dot(self)

    def _repr_html_(self) -> str:
        """Show the plan in a notebook: its predicted gain, and its trees as pictures."""
        from factor_windows.explain.picture import figure

        return "".join(map(figure, self.passes))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": self.explain(), "text/html": self._repr_html_()}

    def to_json(self) -> str:
        """Write the plan as JSON, with its queries and costs; `from_json` reads it."""
        from factor_windows.serialize import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Read a plan that `to_json` wrote, with this version or an earlier one."""
        from factor_windows.serialize import from_json

        return from_json(text)

    def sql(self, *, dialect: Dialect = "spark") -> str:
        """Write the plan as SQL that runs without this library, in the Spark, DuckDB or Flink dialect.

        Several queries give one statement each, with the steps of the plan that it needs.
        """
        from factor_windows.engines.sql import emit, emit_shared

        return emit(self.passes[0], dialect=dialect) if self.is_single else emit_shared(self, dialect=dialect)

    def run(
        self,
        events: DataFrame,
        *,
        mode: Mode = "append",
        checkpoint: str | PathLike[str] | None = None,
        statistics: Literal["auto"] | None = "auto",
    ) -> Any:
        """Compute the plan over a PySpark DataFrame of events, a batch or a stream.

        One query gives a DataFrame. Several queries over a batch give a mapping from names to results: they share one
        pass, which Spark caches until `unpersist()` is called on the mapping. Over a stream they give one DataFrame
        with a `query_id`; `factor_windows.split_by_query` separates them in each micro-batch.

        A plan made without statistics first takes a quick look at a batch (how many events there are and, if there are
        many, the first few thousand) to choose how to run. `statistics=None` skips the look.

        For streams, `mode` is the output mode of the writer: append, update or complete. Pass the `checkpoint` that the
        stream will use to have a plan refused if it does not fit the state stored there.
        """
        from factor_windows.engines import spark_batch, spark_queries, spark_stream
        from factor_windows.spark.messages import check_events

        check_events(events)
        if events.isStreaming:
            if self.is_single:
                return spark_stream.run(self.passes[0], events, mode=mode, checkpoint=checkpoint)
            return spark_queries.stream(self, events, mode=mode, checkpoint=checkpoint)
        looks = statistics == "auto"
        if self.is_single:
            return spark_batch.run(self.passes[0], events, looks=looks)
        return spark_queries.batch(self, events, looks=looks)

    def partials(self, events: DataFrame) -> DataFrame:
        """Compute partial results of a batch of events, to store anywhere; `merge` turns them into results.

        Each row holds one combination of keys and one pane of time: `pane_start`, the times of its first and last
        event, and mergeable states. Batches of partial results can be appended to each other.
        """
        from factor_windows.engines import spark_panes

        return spark_panes.partials(self, events)

    def merge(self, panes: DataFrame, *, schema: StructType | DataFrame | None = None) -> Any:
        """Merge partial results into the result that `run` would return for all their events.

        The partial results may come from another plan, if it has the same keys and functions and its panes add up to
        the windows of this one. If the metadata of the columns is lost, pass the `schema` of the events.
        """
        from factor_windows.engines import spark_panes

        return spark_panes.merge(self, panes, schema)

    def at(self, labels: DataFrame, events: DataFrame | None = None, *, time: str = "at") -> Any:
        """Compute trailing windows: for each row of labels, aggregate the events of its keys before its time.

        `labels` is a batch with the query's keys and a time. Each label is returned once for every window, with its own
        columns, `window_id`, `window_start` and `window_end`, and the aggregates over the events of its keys in
        [time - range, time). If there are none, the aggregates are what Spark returns for no rows. The windows' slides
        and offsets are ignored.

        Without `events`, the table in the query's FROM is read, or else the session's table `events`. For several
        queries, return a mapping from names to results.
        """
        from factor_windows.engines import spark_trailing

        if self.is_single:
            return spark_trailing.at(self, labels, events, time=time)
        return {name: spark_trailing.at(each, labels, events, time=time) for name, each in self.plans.items()}

    def flush(
        self,
        events: DataFrame,
        stopped: StreamingQuery | datetime | None = None,
        *,
        checkpoint: str | PathLike[str] | None = None,
    ) -> Any:
        """Compute the windows that a stream had not closed when it stopped, from all its events read as a batch.

        `stopped` is the streaming query, or the time up to which it closed windows. A restarted query that had nothing
        to do does not know that time; pass its `checkpoint` instead. The result looks like that of `run`.
        """
        from factor_windows.engines import spark_queries, spark_stream

        if self.is_single:
            return spark_stream.flush(self.passes[0], events, stopped, checkpoint=checkpoint)
        return spark_queries.flush(self, events, stopped, checkpoint=checkpoint)


SharedPlan = Plan
"""An earlier name of plans for several queries."""
