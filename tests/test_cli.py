"""The command line, run as a person runs it."""

import io
import json
import os
import re
import subprocess
import sys

import pytest

from factor_windows import __version__
from factor_windows.cost.timing import Timing
from factor_windows.spark.session import session, settings

PAPER = (
    "explain",
    "--window",
    "20m",
    "--window",
    "30m",
    "--window",
    "40m",
    "--function",
    "min",
    "--cost",
    "paper",
    "--unit",
    "1m",
)


def test_explain_prints_the_papers_plan_as_json(command):
    code, out, _ = command(*PAPER, "--search", "factor", "--json")
    assert code == 0
    printed = json.loads(out)
    assert (printed["naive_cost"], printed["cost"], printed["search"]) == (360, 150, "factor")
    assert [
        (node["name"], node["kind"], node["range"], node["slide"], node["offset"], node["parent"], node["cost"])
        for node in printed["nodes"]
    ] == [
        ("10 minutes", "factor", 10, 10, 0, None, 120),
        ("20 minutes", "window", 20, 20, 0, "10 minutes", 12),
        ("40 minutes", "window", 40, 40, 0, "20 minutes", 6),
        ("30 minutes", "window", 30, 30, 0, "10 minutes", 12),
    ]
    assert [node["exposed"] for node in printed["nodes"]] == [False, True, True, True]


@pytest.mark.parametrize(("search", "cost"), [("none", 360), ("coverage", 246), ("factor", 150)])
def test_each_search_gives_the_papers_cost(command, search, cost):
    assert json.loads(command(*PAPER, "--search", search, "--json")[1])["cost"] == cost


def test_explain_shows_candidates_and_operators(command):
    wanted = (*PAPER, "--search", "factor", "-f", "sum", "--candidates", "--operators")
    _, out, _ = command(*wanted)
    assert (
        "  between raw events and 20 minutes, 30 minutes: 10 minutes is best\n"
        "    10 minutes  cost 120, saves 96\n"
        "    5 minutes   cost 120, saves 72\n"
        "    2 minutes   cost 120, saves 0\n"
    ) in out
    assert "multicast of 10 minutes -> 30 minutes" in out
    as_json = json.loads(command(*wanted, "--json")[1])
    assert as_json["candidates"][0]["candidates"] == [
        {"name": "10 minutes", "cost": 120, "saves": 96},
        {"name": "5 minutes", "cost": 120, "saves": 72},
        {"name": "2 minutes", "cost": 120, "saves": 0},
    ]
    assert ["input", "10 minutes"] in as_json["operators"]["after"]


def test_of_hundreds_of_candidates_the_ten_best_are_shown(command):
    _, out, _ = command("explain", "-w", "20m", "-w", "30m", "-w", "gap30m", "--candidates")
    assert len(re.findall(r"cost .*, (?:saves|loses) ", out)) == 10
    assert "    and 349 more\n" in out
    [place, *_] = json.loads(command("explain", "-w", "20m", "-w", "30m", "--candidates", "--json")[1])["candidates"]
    assert (len(place["candidates"]), place["considered"], place["best"]) == (10, 359, "10 minutes")


def test_the_multiplier_of_the_papers_hopping_windows_is_two(command):
    _, out, _ = command("explain", "-w", "8m/2m", "-w", "10m/2m", "--search", "coverage", "--cost", "paper", "--json")
    assert [node["reads"] for node in json.loads(out)["nodes"]] == [4, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-w", "20m/30m"], "slide 30 minutes is longer than range 20 minutes"),
        (["-w", "0m"], "range 0 seconds is not positive"),
        (["-w", "-20m"], "range -20 minutes is not positive"),
        (["-w", "20parsecs"], "unknown unit 'parsecs'"),
        (["-w", "a=20m", "-w", "a=30m"], "the window name 'a' is used twice"),
        ([], "the query has no window"),
        (["-w", "20m", "-f", ""], "aggregate is empty"),
        (["-w", "20m", "-f", "frobnicate"], "unknown function 'frobnicate'"),
        (["-w", "20m", "-f", "min(sum(t))"], "aggregates do not nest"),
        (["-w", "20m", "-k", "ts"], "key 'ts' is also the time column"),
        (["-w", "20m", "--search", "magic"], "search 'magic' is unknown"),
        (["-w", "20m", "--cost", "free"], "cost 'free' is unknown"),
        (["-w", "20m", "--rate", "none"], "rate 'none' is not a number"),
        (["-w", "20m", "--rate", "-3"], "rate -3 is not a positive number"),
        (["-w", "20m", "--unit", "1 moon"], "unknown unit 'moon'"),
        (["-w", "20m", "--time-limit", "0"], "--time-limit 0.0 is not a positive number"),
        (["-w", "20m", "-f", "avrage(x)"], "unknown function 'avrage'; did you mean avg?"),
        (["-w", "20m", "--search", "factor", "--no-slices"], "--no-slices does nothing with --search factor"),
        (["-w", "20m", "--search", "factor", "--time-limit", "3"], "--time-limit does nothing with --search factor"),
        (["-w", "20m", "--cost", "paper", "--prices", "p.json"], "--prices does nothing with --cost paper"),
        (["-w", "20m", "--physical", "--json"], "--physical cannot be combined with --json"),
    ],
)
def test_a_mistake_gets_one_sentence_and_no_stack_trace(command, arguments, message):
    code, out, err = command("explain", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1


def test_the_same_window_twice_is_merged_and_keeps_both_names(command):
    _, out, _ = command("explain", "-w", "a=20m", "-w", "b=20m", "--json")
    assert [node["shown_as"] for node in json.loads(out)["nodes"]] == [["a", "b"]]


def test_a_process_of_its_own_prints_and_fails_as_the_others():
    def run(*arguments):
        whole = [sys.executable, "-m", "factor_windows", *arguments]
        return subprocess.run(whole, capture_output=True, text=True, check=False, timeout=60)

    assert run("--version").stdout == f"factor-windows {__version__}\n"
    mistaken = run("explain", "-w", "0m")
    assert (mistaken.returncode, mistaken.stdout, mistaken.stderr.count("\n")) == (2, "", 1)


def test_the_session_of_the_command_line_uses_all_cores(spark, one_partition):
    assert session() is spark
    assert spark.conf.get("spark.sql.shuffle.partitions") == str(4 * os.cpu_count())


def test_a_cluster_keeps_its_own_memory_and_partitions(monkeypatch):
    monkeypatch.setenv("FACTOR_WINDOWS_MEMORY", "3g")
    own = {"spark.driver.memory": "3g", "spark.driver.bindAddress": "127.0.0.1"}
    assert own.items() <= settings().items()
    named = settings(master="spark://somewhere:7077")
    assert named["spark.master"] == "spark://somewhere:7077"
    assert not named.keys() & {*own, "spark.sql.shuffle.partitions"}


@pytest.mark.long
def test_the_demo_runs_and_checks_its_own_results(inside, tmp_path, monkeypatch):
    from factor_windows.demo import batch

    times = iter([Timing((2.0,), (5.0,)), Timing((0.2,), (0.1,))])
    monkeypatch.setattr(batch, "QUERIES", {"the paper's": (20, 30, 40), "fewer": (20, 40)})
    monkeypatch.setattr(batch, "time_in_turns", lambda plan, naive: (plan(), naive(), next(times))[-1])
    code, out, err = inside("demo", "--events", "20000", "--output", tmp_path)
    assert code == 0, err
    first, second = re.findall("rows are equal; (.*)", out)
    assert first == "the plan takes 2.0 s, window by window 5.0 s, both warm: 2.5 times faster"
    assert second == "the data is too small to compare times"
    assert "The data is too small to compare times." in (tmp_path / "plan.html").read_text()
    assert (tmp_path / "result.parquet").exists()
    assert (
        out.splitlines()[-1] == "2 windows over 20,000 events in one shared pass: the same rows as 2 separate queries."
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--stream", "--events", "9"], "--events does nothing with --stream"),
        (["--stream", "--output", "here"], "--output does nothing with --stream"),
        (["--seconds", "9"], "--seconds does nothing without --stream"),
    ],
)
def test_options_that_do_nothing_in_the_demo_are_refused(command, arguments, message):
    code, out, err = command("demo", *arguments)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.long
def test_the_demo_of_a_stream_shows_windows_and_ends_well(inside, spark):
    names = ("spark.sql.shuffle.partitions", "spark.sql.codegen.wholeStage")
    before = [spark.conf.get(name) for name in names]
    try:
        code, out, err = inside("demo", "--stream", "--seconds", "8")
    finally:
        for name, value in zip(names, before, strict=True):
            spark.conf.set(name, value)
    assert code == 0, err
    assert "device-0" in out
    assert re.search(r"[1-9]\d* results in 8 seconds", out)


def test_only_verbose_asks_for_the_log_of_spark(command, monkeypatch):
    asked = []
    monkeypatch.setattr("factor_windows.spark.session.session", lambda **given: asked.append(given["verbose"]))
    monkeypatch.setattr("factor_windows.demo.batch.run", lambda *_, **__: None)
    for flags in ((), ("--verbose",)):
        assert command("demo", *flags)[0] == 0
    assert asked == [False, True]


@pytest.mark.long
def test_a_process_of_its_own_shows_no_log_of_spark(tmp_path):
    (tmp_path / "r.csv").write_text("ts,device\n01.02.2024 12:00,a\n")
    (tmp_path / "q.sql").write_text("SELECT count(*) AS n FROM r GROUP BY window(ts, '1 hour')")
    whole = [sys.executable, "-m", "factor_windows", "run", "q.sql", "--input", "r=r.csv", "--output", "o.csv"]
    ran = subprocess.run(whole, capture_output=True, text=True, check=False, timeout=120, cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == (
        "error: time 'ts' is of type string; it must be a timestamp, a timestamp_ntz or a date: "
        "write to_timestamp(ts), or with its format to_timestamp(ts, 'dd.MM.yyyy HH:mm'), in its place\n"
    )


def test_explain_says_how_a_plan_runs_on_spark(command):
    _, out, _ = command("explain", "-w", "20m", "-w", "30m", "--physical")
    assert "2 levels" in out
    assert "packed into a row, where 20 minutes, 30 minutes are merged" in out
    assert "20 minutes from 10 minutes" in out


def test_explain_writes_a_page(command, tmp_path):
    code, _, err = command(*PAPER, "--html", tmp_path / "plan.html")
    assert (code, err) == (0, f"wrote {tmp_path / 'plan.html'}\n")
    page = (tmp_path / "plan.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "http://" not in page.replace("http://www.w3.org/", "")
    code, _, err = command(*PAPER, "--html", tmp_path / "no" / "plan.html")
    assert (code, err.count("\n")) == (2, 1)


def test_a_terminal_gets_bars_and_a_program_plain_text():
    from rich.console import Console

    import factor_windows as fw
    from factor_windows.explain.terminal import show

    windows = [fw.tumbling("20m"), fw.tumbling("30m"), fw.tumbling("40m", name="[red]mine[/red]")]
    plan = fw.optimize(fw.Query(time="ts", windows=windows, aggregates=["min(t)"]), cost="paper", unit="1m")
    seen = {}
    for terminal in (True, False):
        console = Console(force_terminal=terminal, width=160, record=True, file=io.StringIO(), highlight=False)
        show(plan, console)
        seen[terminal] = console.export_text(styles=False)
    assert "█" in seen[True]
    assert "[red]mine[/red]" in seen[True]
    assert seen[False].strip() == plan.explain()
