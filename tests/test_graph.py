"""The coverage graph has every true edge, and no other."""

from hypothesis import given
from hypothesis import strategies as st
from strategies import window_sets

from factor_windows import Query, tumbling
from factor_windows.algebra.graph import RELATIONS, CoverageGraph, Node
from factor_windows.functions.table import Kind


@given(window_sets(most=10), st.sampled_from(Kind))
def test_the_index_finds_the_edges_that_asking_every_pair_finds(windows, kind):
    nodes = [Node(window) for window in windows]
    graph = CoverageGraph.of(nodes, kind)
    for child in nodes:
        holds = RELATIONS.get(kind)
        asked = {p for p in nodes if holds is not None and p != child and holds(p.window, child.window)}
        assert all(child.can_read(parent, kind) for parent in asked)
        assert set(graph.parents[child]) == asked
        for parent in asked or {None}:
            assert child in graph.children[parent]
    assert sum(map(len, graph.children.values())) == sum(max(1, len(parents)) for parents in graph.parents.values())


def test_a_node_reads_only_nodes_with_at_least_its_keys():
    by_device = Node(tumbling("10m"), frozenset({"site", "device"}))
    by_site = Node(tumbling("20m"), frozenset({"site"}))
    assert by_site.can_read(by_device, Kind.MERGEABLE)
    assert not Node(tumbling("20m"), frozenset({"city"})).can_read(by_device, Kind.MERGEABLE)


def test_holistic_functions_read_raw_events_only():
    windows = [tumbling("10m"), tumbling("20m")]
    graph = CoverageGraph.of_query(Query(time="ts", windows=windows, aggregates=["median(t)"]))
    assert graph.children[None] == graph.nodes
