"""The evaluation without Spark: window sets, the cases, the arithmetic of tables, and taking up where a run stopped."""

import io
import json
from collections import Counter
from statistics import mean

import pytest
from rich.console import Console
from typer.testing import CliRunner

from benchmarks import paper, planning, tables
from benchmarks.commands import app
from benchmarks.experiments import ALONE, PLUGS, SIZES, STREAMS, TOLD, cases, first_cases, window_sets
from benchmarks.report import document, page
from benchmarks.results import Result, Store
from benchmarks.run import Evaluation, Job, Options, _measured
from benchmarks.window_sets import GENERATORS, random_windows, sequential_windows
from factor_windows import OptionError
from factor_windows.algebra.pane_row import Packing
from factor_windows.cost.prices import Prices
from factor_windows.spark import calibrate


@pytest.mark.parametrize("letter", GENERATORS)
@pytest.mark.parametrize("tumbling", [True, False])
def test_window_sets_are_as_the_paper_says(letter, tumbling):
    for seed in range(50):
        made = GENERATORS[letter](10, tumbling=tumbling, seed=seed, unit=1)
        assert len(set(made)) == 10
        seeds = (2, 5, 10) if tumbling else (5, 10, 20)
        for window in made:
            assert window.range == (window.slide if tumbling else 2 * window.slide)
            assert any(window.slide % start == 0 and 2 <= window.slide // start <= 50 for start in seeds)


def test_every_seed_range_is_drawn():
    drawn = {window.range for seed in range(300) for window in random_windows(5, tumbling=True, seed=seed, unit=1)}
    possible = {start * times for start in (2, 5, 10) for times in range(2, 51)}
    assert drawn == possible


def test_seeds_and_multiples_are_drawn_evenly():
    """A first window's length is a seed, one of three, times one of 49: compare counts with what that makes likely."""
    draws = 6000
    drawn = Counter(random_windows(1, tumbling=True, seed=seed, unit=1)[0].range for seed in range(draws))
    likely = Counter(start * times for start in (2, 5, 10) for times in range(2, 51))
    surprise = sum((drawn[n] - draws * c / 147) ** 2 / (draws * c / 147) for n, c in likely.items())
    assert surprise < len(likely) + 5 * (2 * len(likely)) ** 0.5
    starts = Counter(sequential_windows(2, tumbling=False, seed=seed, unit=1)[0].slide // 2 for seed in range(3000))
    assert starts.keys() == {5, 10, 20}
    assert all(900 < count < 1100 for count in starts.values())


def test_sequential_sets_count_up_from_twice_the_seed():
    made = sequential_windows(4, tumbling=True, seed=0, unit=1)
    start = made[0].range // 2
    assert [window.range for window in made] == [2 * start, 3 * start, 4 * start, 5 * start]


def test_the_same_seed_gives_the_same_set():
    assert random_windows(20, tumbling=False, seed=7) == random_windows(20, tumbling=False, seed=7)


def test_too_many_windows_are_refused():
    with pytest.raises(OptionError, match="too many"):
        random_windows(1000, tumbling=True, seed=1)
    with pytest.raises(OptionError, match="too many"):
        sequential_windows(50, tumbling=True, seed=1)


def test_all_of_the_papers_set_ups_are_measured_at_both_sizes():
    listed = list(cases())
    assert len({case.name for case in listed}) == len(listed)
    for stream, events, wanted in (
        ("synthetic", 1_000_000, paper.SYNTHETIC_1M | paper.SCALABILITY),
        ("factory", 1_000_000, paper.REAL_32M),
        ("plugs", 3_034_526, paper.REAL_32M),
        ("dense", 10_000_000, paper.SYNTHETIC_10M | paper.SCALABILITY),
        ("devices", 10_000_000, paper.SYNTHETIC_10M | paper.SCALABILITY),
    ):
        own = [c for c in listed if c.experiment == "tables" and (c.stream, c.events) == (stream, events)]
        assert {case.setup for case in own} == wanted.keys()
        assert all(len(case.windows) == int(case.setup.split("-")[1]) for case in own)


def test_sets_and_events_can_be_chosen():
    wanted = {f"{letter}-{size}-{kind}" for letter in "RS" for size in SIZES for kind in ("tumbling", "hopping")}
    listed = [
        case for case in cases(sets=10, events=5_000) if (case.experiment, case.stream) == ("tables", "synthetic")
    ]
    assert all(case.events == 5_000 for case in listed)
    counted = Counter(case.setup for case in listed)
    assert counted == {setup: 10 if setup.startswith("R") else 3 for setup in wanted}


def test_different_sets_are_different():
    for letter in GENERATORS:
        assert len(set(window_sets(letter, 5, False, 3))) == 3


@pytest.mark.parametrize("name", STREAMS)
def test_every_stream_has_a_query(name):
    case = next(case for case in cases(sets=1) if case.stream == name)
    assert case.query.windows == case.windows
    assert len(case.query.keys) == (STREAMS[name].keys > 1)


def result(setup="R-5-tumbling", number=0, *, stream="dense", events=10_000_000, experiment="tables", **seconds):
    name = f"{experiment}, {stream}, {events}, {setup}, {number}"
    counts = {name: {"scan": times[0] * 1e9 / Prices().scan} for name, times in seconds.items()}
    seconds = {name.replace("_", " "): times for name, times in seconds.items()}
    return Result(name, experiment, stream, events, setup, number, "min", 5, seconds, counts=counts)


def test_boosts_are_ratios_of_medians():
    one = result(naive=[9.0, 10.0, 30.0], best=[2.0, 3.0], coverage=[5.0])
    assert one.boost("best") == 4.0
    assert one.boost("best", "coverage") == 2.0
    assert one.spread("naive") == 2.1
    assert one.spread("coverage") == 0


def test_a_table_has_means_and_maxima_beside_the_papers():
    made = [
        result(number=0, naive=[10.0], coverage=[5.0], factor=[4.0], best=[2.0]),
        result(number=1, naive=[10.0], coverage=[10.0], factor=[5.0], best=[1.0]),
        result("S-20-tumbling", naive=[10.0], coverage=[10.0], factor=[1.0], best=[1.0]),
    ]
    table = tables.boost_table(made, paper.SYNTHETIC_10M | paper.SCALABILITY).splitlines()
    assert table[0] == "| set-up | sets | paper without | coverage | paper with | factor | best |"
    assert table[2] == "| R-5-tumbling | 2 | 1.2 (1.9) | 1.5 (2.0) | 1.9 (2.5) | 2.2 (2.5) | 7.5 (10.0) |"
    assert table[3] == "| S-20-tumbling | 1 | 2.4 (2.5) | 1.0 (1.0) | 14.3 (16.8) | 10.0 (10.0) | 10.0 (10.0) |"
    assert len(table) == 4
    [short] = tables.shortfalls(made, paper.SYNTHETIC_10M | paper.SCALABILITY)
    assert (short.setup, short.ours, short.papers) == ("S-20-tumbling", 10.0, 14.28)


def test_a_contender_with_wrong_rows_is_in_no_mean():
    made = [result(number=0, naive=[10.0], best=[2.0]), result(number=1, naive=[10.0])]
    assert tables.boosts(made, "best") == [5.0]


def test_the_papers_figures_are_in_the_paper():
    """The largest boost that the paper speaks of, and the orders that its tables must have."""
    assert max(each.max_with for each in (paper.SYNTHETIC_10M | paper.SCALABILITY).values()) == 16.82
    for table in (paper.SYNTHETIC_10M, paper.REAL_32M, paper.SCALABILITY, paper.SYNTHETIC_1M):
        assert len(table) == 8
        for each in table.values():
            assert each.mean_without <= each.max_without <= each.max_with
            assert each.mean_without <= each.mean_with <= each.max_with
    assert mean(each.mean_with for each in paper.SYNTHETIC_10M.values()) == pytest.approx(3.434, abs=0.001)


def test_charts_compare_with_the_plan_without_hidden_windows():
    made = [result("S-5-hopping", coverage=[4.0], factor=[2.0], best=[1.0], naive=[8.0])]
    assert tables.speedups(made, "coverage", "factor", "best")["S-hopping"] == [
        (pytest.approx(2.0), 2.0),
        (pytest.approx(4.0), 4.0),
    ]


def test_regret_is_measured_against_the_fastest_other():
    made = [
        result(number=0, naive=[9.0], factor=[2.0], best=[3.0]),
        result(number=1, naive=[9.0], best=[3.0]),
    ]
    assert [regret for regret, _ in tables.regrets(made)] == [1.5, pytest.approx(1 / 3)]


def test_results_survive_a_cut_line(tmp_path):
    store = Store(tmp_path / "results.jsonl")
    store.begin({"seed": 7})
    store.append(result(number=0, naive=[1.0], best=[0.5]))
    store.append(result(number=1, naive=[1.0], best=[0.5]))
    whole = store.path.read_text()
    store.path.write_text(whole[: len(whole) - 40])
    assert [each.number for each in store.results()] == [0]
    store.append(result(number=1, naive=[3.0], best=[0.5]))
    assert [each.seconds["naive"] for each in store.results()] == [[1.0], [3.0]]
    [run] = store.runs()
    assert run["options"] == {"seed": 7}
    assert {"cores", "memory_gb", "processor", "versions"} <= run.keys()
    assert not {"host", "hostname", "node", "user"} & run.keys()


def test_a_file_of_something_else_is_refused(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text("not json\n{}\n")
    with pytest.raises(OptionError, match=r"line 1 of .* is not JSON"):
        Store(path).results()


def test_an_interrupted_run_is_taken_up_again(tmp_path, monkeypatch):
    """The second call measures only what the first did not get to."""
    store = Store(tmp_path / "results.jsonl")
    ran = []

    def job(name):
        def measure():
            if name == "c" and len(ran) == 2:
                raise KeyboardInterrupt
            ran.append(name)
            return Result(name, "planning", "", 0, name, 0, "min", 1, {"factor": [0.1]})

        return Job(name, measure, 1.0)

    monkeypatch.setattr(Evaluation, "_all", lambda _: iter([job("a"), job("b"), job("c"), job("d")]))
    from benchmarks.run import run

    console = Console(quiet=True)
    with pytest.raises(KeyboardInterrupt):
        run(store, Options(), console)
    assert ran == ["a", "b"]
    ran.append("restart")
    assert run(store, Options(), console) == 0
    assert ran == ["a", "b", "restart", "c", "d"]
    assert [each.name for each in store.results()] == ["a", "b", "c", "d"]
    assert len(store.runs()) == 2
    assert run(store, Options(), console) == 0
    assert len(store.runs()) == 2


def test_a_case_whose_data_is_not_there_is_left_out_and_said(tmp_path):
    def missing():
        raise OptionError("the real readings are not there")

    console = Console(record=True, width=200, file=io.StringIO())
    assert list(_measured([Job("plugs", missing, 1.0)], Store(tmp_path / "r.jsonl"), console)) == []
    assert "plugs: left out, the real readings are not there" in console.export_text()


def test_only_chooses_by_name_and_some_run_only_when_asked_for():
    names = [job.name for job in Evaluation(Options(), None).jobs()]
    assert not any(name.startswith(("gaps", "choices")) for name in names)
    named = [job.name for job in Evaluation(Options(only=("gaps",)), None).jobs()]
    assert len(named) == 32
    assert all(name.startswith("gaps") for name in named)
    some = [job.name for job in Evaluation(Options(only=("S-20-tumbling", "streaming"), sets=1), None).jobs()]
    assert len(some) == 8
    assert all("S-20-tumbling" in name or "streaming" in name for name in some)


def test_the_tables_of_ten_million_events_have_ten_sets_as_in_the_paper():
    sets = Counter(case.setup for case in cases() if (case.experiment, case.stream) == ("tables", "devices"))
    assert len(sets) == 16
    assert {count for setup, count in sets.items() if setup.startswith("R-")} == {10}
    # A SequentialGen draws one of three first ranges, and nothing else.
    assert {count for setup, count in sets.items() if setup.startswith("S-")} == {3}
    assert {case.number for case in cases() if case.stream not in ("dense", "devices")} == {0}


def test_first_runs_are_chosen_by_their_name_and_come_before_the_warm_ones():
    names = [job.name for job in Evaluation(Options(only=("first",)), None).jobs()]
    assert names == [case.name for case in first_cases()]
    assert len(set(names)) == 8
    for options in (Options(), Options(quick=True)):
        every = [job.name.partition(",")[0] for job in Evaluation(options, None).jobs()]
        warm = {case.experiment for case in cases(quick=options.quick)} - {"choices"}
        assert warm < set(every)
        assert max(at for at, name in enumerate(every) if name == "first") < min(map(every.index, warm))


def test_first_runs_with_other_numbers_of_events():
    listed = list(first_cases(events=20_000))
    assert len({case.name for case in listed}) == len(listed) == 5
    assert {(case.stream, case.events) for case in listed} == {("devices", 20_000), ("plugs", PLUGS)}


def test_quick_first_runs_are_few():
    listed = list(first_cases(quick=True))
    runs = sum(len(case.contenders) * Options(quick=True).first_repeats(case.events) for case in listed)
    assert [(case.events, case.setup) for case in listed] == [
        (200_000, "1 and 5 minutes"),
        (1_000_000, "ten tumbling"),
        (1_000_000, "15, 17 and 19 seconds"),
    ]
    assert runs == 18


def test_repeats_are_as_asked_for_or_fewer_where_runs_are_long():
    assert [Options().first_repeats(events) for events in (200_000, 10_000_000)] == [5, 3]
    assert [Options().warm_repeats(number) for number in (0, 9)] == [3, 1]
    assert (Options(repeats=5).warm_repeats(9), Options(repeats=5).first_repeats(10_000_000)) == (5, 5)


def test_nothing_of_that_name(tmp_path):
    outcome = CliRunner().invoke(app, ["--only", "nonsense", "--results", str(tmp_path / "r.jsonl")])
    assert "no case has 'nonsense' in its name" in str(outcome.exception)


def test_planning_is_measured_for_every_set():
    measured = planning.measure(next(planning.cases()))
    assert {name: len(times) for name, times in measured.seconds.items()} == {"factor": 10, "best": 10}
    assert measured.setup == "R-5-tumbling"


def test_predicted_gains_are_in_order():
    gains = planning.predict(next(planning.gaps()), sets=2).gains
    assert 1 <= gains["coverage"] <= gains["factor"] <= gains["optimum without slices"] <= gains["best"]
    assert gains["slicing"] <= gains["best"]


def test_the_report_has_a_section_for_what_was_measured_and_no_other(tmp_path):
    made = [
        result(number=0, naive=[10.0], coverage=[5.0], factor=[4.0], best=[2.0], slicing=[2.0]),
        result("S-20-tumbling", naive=[10.0], coverage=[9.0], factor=[1.0], best=[1.0]),
        result("<b>&", experiment="peers", naive=[9.0], best=[2.0], duckdb=[4.0], duckdb_rewritten=[1.0]),
    ]
    text = document(made, [], {"growth": "unused"}, "Some notes.")
    assert "## Other engines" in text
    assert "makes DuckDB 4.0 to 4.0 times as fast" in text
    assert "at or above the paper's mean with factor windows in 1." in text
    assert "| dense, S-20-tumbling | 10.0 | 14.3 | 0.70 |" in text
    assert "Some notes." in text
    assert "## Streams" not in text
    assert "## Planning" not in text
    html = page(text, tmp_path)
    assert "<table>" in html
    assert "<b>&" not in html


def first(setup="ten tumbling", *, events=1_000_000, stream="devices", wrong=(), **seconds):
    seconds = {"one window": [1.0, 2.0, 6.0], "naive": [10.0], "best": [4.0], TOLD: [3.0]} | seconds
    ours = {"start": 3.25, "import": 0.5, "read": 0.75, "plan": 0.125, "build": 0.25, "compile": 0.625, "execute": 1.5}
    naive = {phase: took for phase, took in ours.items() if phase not in ("import", "plan")}
    phases = {name: ours if name.startswith("best") else naive for name in seconds if name not in wrong}
    right = {name: times for name, times in seconds.items() if name not in wrong}
    name = f"first, {stream}, {events}, {setup}"
    return Result(name, "first", stream, events, setup, 0, "min", 10, right, phases=phases, wrong=wrong)


def test_the_report_opens_with_charts_and_the_first_runs():
    made = [result(naive=[10.0], best=[2.0]), first(), first("1 minute to 1 hour", events=PLUGS, stream="plugs")]
    parts = document(made, [], {"growth": "More windows", "first": "The first run"}, "").split("\n\n")
    assert parts[:5] == [
        "# Benchmarks",
        "**The first run.**",
        "![The first run](benchmarks/first.svg)",
        "**More windows.**",
        "![More windows](benchmarks/growth.svg)",
    ]
    header, _, row, plugs = parts[6].splitlines()
    assert header == (
        "| windows | events | one window, s | naive, s | ours, s | ours, statistics given, s "
        "| ours / one window | ours / naive |"
    )
    assert row == "| ten tumbling | 1M | 2.0 | 10.0 | 4.0 | 3.0 | 2.00 | 0.40 |"
    assert plugs.startswith("| 1 minute to 1 hour | 3.03M plugs | 2.0 |")
    assert parts[7].startswith("Medians of 1 to 3 runs of each contender")
    where = parts.index("## Where the time of a first run goes")
    assert parts[where + 2].splitlines()[:5] == [
        "| windows, events, contender | import | read | plan | build | compile | execute | total | start of Spark |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
        "| ten tumbling, 1M: one window |  | 0.75 |  | 0.25 | 0.62 | 1.50 | 2.00 | 3.25 |",
        "| ten tumbling, 1M: naive |  | 0.75 |  | 0.25 | 0.62 | 1.50 | 10.00 | 3.25 |",
        "| ten tumbling, 1M: ours | 0.50 | 0.75 | 0.12 | 0.25 | 0.62 | 1.50 | 4.00 | 3.25 |",
    ]
    assert parts.index("## How it was measured") < parts.index(
        "## The paper's tables: throughput over the naive query's"
    )


def test_the_noise_of_warm_runs_is_not_that_of_first_runs():
    made = [result(naive=[10.0, 11.0], best=[2.0, 2.2]), *(first(str(n), naive=[1.0, 3.0]) for n in range(5))]
    assert "are 10% apart in the median" in document(made, [], {}, "")
    assert "apart in the median" not in document([first()], [], {}, "")


def test_a_first_run_with_wrong_rows_has_no_time_in_the_report():
    text = document([first(wrong=("best",))], [], {}, "")
    assert "WRONG ROWS: first, devices, 1000000, ten tumbling: best" in text
    assert "| ten tumbling | 1M | 2.0 | 10.0 | 3.0 |  |  |" in text
    assert ": ours |" not in text


@pytest.mark.parametrize(
    ("sizes", "panels"), [((200_000, 1_000_000), 1), ((1_000_000, PLUGS, 10_000_000), 2), ((10_000_000,), 1), ((), 0)]
)
def test_the_figure_of_first_runs_has_a_scale_for_few_events_and_one_for_many(tmp_path, sizes, panels):
    plots = pytest.importorskip("benchmarks.plots")
    made = [first(events=events, naive=[12.3]) for events in sizes]
    captions = plots.draw([*made, result("ten", experiment="peers", naive=[1.0], best=[1.0])], tmp_path)
    assert ("first" in captions) == bool(panels)
    if panels:
        svg = (tmp_path / "first.svg").read_text()
        assert svg.count(">seconds<") == panels
        assert svg.count(">12.3<") == len(sizes)
        assert all(svg.count(f">{label}<") == 1 for label in (ALONE, "naive", "ours"))


def test_results_from_before_first_runs_are_read(tmp_path):
    store = Store(tmp_path / "results.jsonl")
    store.append(result(naive=[1.0], best=[0.5]))
    line = json.loads(store.path.read_text())
    del line["phases"]
    store.path.write_text(json.dumps(line) + "\n")
    assert [each.phases for each in store.results()] == [{}]
    store.append(first())
    assert store.results()[1] == first()


def test_a_report_of_nothing_is_refused(tmp_path):
    outcome = CliRunner().invoke(app, ["report", "--results", str(tmp_path / "none.jsonl")])
    assert "there are no results in" in str(outcome.exception)


def test_lines_of_results_are_plain_json(tmp_path):
    store = Store(tmp_path / "results.jsonl")
    store.append(result(naive=[1.0], best=[0.5]))
    [line] = store.path.read_text().splitlines()
    assert json.loads(line)["seconds"] == {"naive": [1.0], "best": [0.5]}


def test_calibrate_finds_the_prices_that_plans_were_measured_by():
    prices = Prices(scan=70, update=30, merge=60, crowded=45, shuffle=900, group=40, edge=6, slot=2, state=1, stage=2e8)
    plans = {case: case.plan() for case in calibrate.CASES}
    counts = {
        case.name: calibrate.counted(plan.passes[0], case.events, packing=Packing.of(plan.query))
        for case, plan in plans.items()
    }
    measured = tuple(calibrate.Measured(name, did, prices.total(did) / 1e9) for name, did in counts.items())
    fitted = calibrate.fit(measured)
    assert fitted.error < 1e-6
    known = [name for name in counts["panes"] if any(each[name] for each in counts.values())]
    assert [getattr(fitted.prices, name) for name in known] == pytest.approx([getattr(prices, name) for name in known])
    assert fitted.prices.relative("state") == Prices().relative("state")
