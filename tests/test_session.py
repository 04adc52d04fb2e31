"""Sessions, as values and in plans: laws of the algebra, and plans that give what the definition gives."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import factor_windows as fw
from factor_windows import OptionError, Query, QueryError, WindowError, physical
from factor_windows.algebra.calendar import parse_window
from factor_windows.algebra.graph import CoverageGraph, Node, can_make
from factor_windows.engines.python import evaluate, evaluate_plan, run
from factor_windows.functions.table import Kind
from factor_windows.physical import Target
from factor_windows.physical.layout import Distribution, Layout, layouts
from factor_windows.search import SEARCHES
from factor_windows.serialize import from_json

TIMES = st.lists(st.integers(-200, 200), min_size=1, max_size=30)
GAPS = st.integers(1, 40)


def sessions_by_hand(times, gap):
    """Merge the intervals [t, t + gap) of all events that overlap or touch, as Spark describes its sessions."""
    found = []
    for time in sorted(times):
        if found and time <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], time + gap))
        else:
            found.append((time, time + gap))
    return found


@given(TIMES, GAPS)
def test_sessions_are_intervals_that_overlap_or_touch(times, gap):
    assert list(fw.Session(gap).sessions(times)) == sessions_by_hand(times, gap)


@given(TIMES, GAPS, GAPS)
def test_sessions_of_a_longer_gap_are_unions_of_those_of_a_shorter_one(times, one, other):
    short, long = sorted((one, other))
    inner = [(start, end - short) for start, end in fw.Session(short).sessions(times)]
    for start, end in fw.Session(long).sessions(times):
        own = [(first, last) for first, last in inner if start <= first and last <= end - long]
        assert own[0][0] == start
        assert own[-1][1] == end - long
        assert all(later[0] - earlier[1] <= long for earlier, later in pairwise(own))
    assert sum(1 for _ in inner) >= sum(1 for _ in fw.Session(long).sessions(times))


@given(TIMES, GAPS, st.integers(1, 40), st.integers(0, 39))
def test_events_of_a_pane_no_longer_than_the_gap_are_in_one_session(times, gap, length, offset):
    pane = fw.Window(length, length, offset)
    assert can_make(pane, fw.Session(gap), Kind.MERGEABLE) == (length <= gap)
    if length <= gap:
        for start, end in fw.Session(gap).sessions(times):
            for time in times:
                inside = {other for other in times if pane.starts_of(other) == pane.starts_of(time)}
                assert all(start <= other < end for other in inside) or not start <= time < end


def test_a_gap_that_is_met_exactly_belongs_to_the_session():
    assert list(fw.session("10 microseconds").sessions([0, 10, 21])) == [(0, 20), (21, 31)]


def test_only_pieces_that_do_not_overlap_make_sessions_up():
    session = fw.session("10 minutes")
    assert can_make(fw.tumbling("10 minutes"), session, Kind.MERGEABLE)
    assert can_make(fw.tumbling("7 minutes"), session, Kind.OVERLAP_SAFE)
    assert not can_make(fw.tumbling("11 minutes"), session, Kind.MERGEABLE)
    assert not can_make(fw.hopping("5 minutes", "1 minute"), session, Kind.MERGEABLE)
    assert not can_make(session, fw.tumbling("1 hour"), Kind.MERGEABLE)
    assert can_make(session, fw.session("11 minutes"), Kind.MERGEABLE)
    assert not can_make(session, session, Kind.MERGEABLE)
    assert not can_make(fw.tumbling("10 minutes"), session, Kind.HOLISTIC)
    assert not can_make(fw.calendar("1 day", zone="Europe/Berlin"), fw.session("24 hours"), Kind.MERGEABLE)
    assert can_make(fw.calendar("1 day", zone="Europe/Berlin"), fw.session("2 days"), Kind.MERGEABLE)


def test_sessions_are_found_among_rows_of_their_own_keys_only():
    finer = Node(fw.tumbling("1 minute"), frozenset({"a", "b"}))
    assert not Node(fw.session("5 minutes"), frozenset({"a"})).can_read(finer, Kind.MERGEABLE)
    assert Node(fw.session("5 minutes"), finer.keys).can_read(finer, Kind.MERGEABLE)


def test_the_graph_has_sessions_of_longer_gaps_below_those_of_shorter_ones():
    nodes = [Node(fw.session(f"{minutes} minutes")) for minutes in (5, 10, 30)]
    graph = CoverageGraph.of_nodes(nodes, Kind.MERGEABLE)
    assert [len(graph.parents[node]) for node in nodes] == [0, 1, 2]


WINDOWS = st.lists(
    st.one_of(
        GAPS.map(fw.Session),
        st.builds(
            lambda slide, times, offset: fw.Window(slide * times, slide, offset),
            st.integers(1, 8),
            st.integers(1, 4),
            st.integers(0, 5),
        ),
    ),
    min_size=1,
    max_size=5,
    unique=True,
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "t": st.integers(-150, 150),
            "k": st.sampled_from(["a", "b", None]),
            "v": st.sampled_from([None, 1, 2, 3]),
        }
    ),
    min_size=1,
    max_size=25,
)


def listed(rows):
    return sorted(map(repr, rows))


@settings(max_examples=60)
@given(WINDOWS.filter(lambda each: any(isinstance(w, fw.Session) for w in each)), ROWS, st.data())
def test_every_search_and_layout_gives_what_the_definition_gives(windows, rows, data):
    aggregates = data.draw(st.sampled_from([["sum(v)", "count(*) AS n"], ["min(v)", "max(v)"], ["first(v)", "avg(v)"]]))
    keys = data.draw(st.sampled_from([["k"], []]))
    query = Query(time="t", keys=keys, windows=windows, aggregates=aggregates)
    expected = listed(evaluate(query, rows))
    search = data.draw(st.sampled_from(SEARCHES))
    cost = data.draw(st.sampled_from(["spark", "paper"]))
    plan = fw.optimize(query, search=search, cost=cost, rate=1, unit="2 microseconds")
    assert listed(evaluate_plan(plan, rows)) == expected
    target = Target.assumed(query, partitions=4)
    for layout in layouts(plan.passes[0], None):
        assert listed(run(physical.compile(plan.passes[0], target, layout), rows)) == expected
        by_key = Layout(layout.levels, Distribution.BY_KEY if len(layout.levels) > 1 else Distribution.EVENTS_BY_KEY)
        assert listed(run(physical.compile(plan.passes[0], target, by_key), rows)) == expected


def test_a_holistic_function_goes_by_sessions_of_the_events():
    query = Query(time="t", windows=[fw.Session(5), fw.Session(20)], aggregates=["count(DISTINCT v) AS n"])
    rows = [{"t": time, "v": time % 3} for time in (0, 4, 10, 30, 33, 34)]
    expected = {(start, end): n for start, end, n in ((0, 9, 2), (10, 15, 1), (30, 39, 2), (0, 54, 2))}
    assert {(row["window_start"], row["window_end"]): row["n"] for row in evaluate(query, rows)} == expected
    assert listed(evaluate_plan(fw.optimize(query), rows)) == listed(evaluate(query, rows))


def test_a_plan_with_sessions_shares_panes_and_says_so():
    windows = [fw.tumbling("5 minutes"), fw.session("10 minutes"), fw.session("30 minutes"), fw.tumbling("1 hour")]
    plan = fw.optimize(Query(time="ts", keys=["k"], windows=windows, aggregates=["count(*)"]))
    parents = {node.name: node.parent for node in plan.nodes}
    assert parents["session 10 minutes"] == "5 minutes"
    assert parents["session 30 minutes"] in ("5 minutes", "session 10 minutes")
    assert "session 10 minutes" in plan.explain(physical=True)
    assert "sessions are found in rows that are sorted by key and time" in plan.explain(physical=True)
    assert "session 10 minutes" in plan.explain(streaming=True)
    assert from_json(plan.to_json()) == plan
    assert "session 30 minutes" in plan.to_html()


def test_queries_with_sessions_have_a_pass_of_their_own():
    """Other conditions leave other events, which end sessions elsewhere."""
    session = Query(time="ts", windows=[fw.session("5 minutes")], aggregates=["count(*)"], where="ok", name="a")
    plain = Query(time="ts", windows=[fw.tumbling("5 minutes")], aggregates=["count(*)"], name="b")
    assert len(fw.optimize([session, plain, plain.__class__(**{**_parts(plain), "name": "c"})]).passes) == 2


def _parts(query):
    return {"time": query.time, "windows": query.windows, "aggregates": query.aggregates}


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: fw.session("0 seconds"), "gap 0 seconds is not positive"),
        (lambda: fw.session("-5 minutes"), "gap -5 minutes is not positive"),
        (lambda: fw.session("1 month"), "month"),
        (lambda: fw.session(5), "has no unit"),
        (lambda: fw.Session(1.5), "not a whole number of microseconds"),
        (lambda: fw.session("5 minutes", name=3), "is not text"),
        (lambda: parse_window("gap"), "cannot be read"),
    ],
)
def test_mistakes_get_one_sentence(make, says):
    with pytest.raises(WindowError, match=says):
        make()


def test_the_command_lines_short_form():
    assert parse_window("visits=gap30m") == fw.session("30 minutes")
    assert parse_window("visits=gap30m").name == "visits"
    assert parse_window("gap 1h 30m").name == "session 1 hour 30 minutes"


def test_flink_and_streams_that_update_are_refused_with_the_reason():
    plan = fw.optimize(Query(time="ts", windows=[fw.session("5 minutes")], aggregates=["count(*)"]))
    with pytest.raises(QueryError, match="cannot be written for Flink, whose sessions are made of events"):
        plan.sql(dialect="flink")
    with pytest.raises(OptionError, match="dialect"):
        plan.sql(dialect="oracle")


def test_sessions_are_found_in_the_rows_of_one_node():
    """A longer window beside the panes holds events of several sessions, and must not join them."""
    windows = [fw.Window(2, 2), fw.Window(15, 15), fw.Session(4)]
    query = Query(time="t", windows=windows, aggregates=["count(*) AS n"])
    rows = [{"t": time} for time in (0, 5, 11, 12, 29, 31)]
    plan = fw.optimize(query, search="coverage", cost="paper", rate=100, unit="1 microsecond").passes[0]
    target = Target.assumed(query, partitions=4)
    deep = [layout for layout in layouts(plan, None) if len(layout.levels) > 1 and len(layout.levels[0].nodes) > 1]
    assert deep
    for layout in deep:
        assert listed(run(physical.compile(plan, target, layout), rows)) == listed(evaluate(query, rows))
