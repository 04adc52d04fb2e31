"""Cases of the evaluation on Spark: small ones, checked as the large ones are."""

import json
from random import Random

import pytest
from pyspark.sql import functions as F

from benchmarks import batch, first, flink
from benchmarks.batch import Folders, fingerprint, measure, same
from benchmarks.experiments import ALONE, FIRST, PEERS, PHASES, TOLD, WITH_SLICING, Case
from benchmarks.workloads import stream
from factor_windows import OptionError, hopping, tumbling
from factor_windows.plan import Plan
from factor_windows.spark.naive import naive

WINDOWS = (tumbling("20s"), tumbling("30s"), hopping("40s", "10s"))


@pytest.fixture
def folders(spark, tmp_path):
    return Folders(spark, tmp_path, None)


@pytest.mark.long
def test_a_case_is_timed_and_checked_for_every_contender(spark, folders, monkeypatch):
    for name in ("ENOUGH", "ENOUGH_NAIVE"):
        monkeypatch.setattr(batch, name, float("inf"))
    case = Case("tables", "devices", 5_000, "some", WINDOWS, function="sum", contenders=WITH_SLICING)
    measured = measure(spark, case, folders, repeats=2, random=Random(7))
    assert measured.seconds.keys() == set(WITH_SLICING)
    assert all(len(times) == 2 for times in measured.seconds.values())
    assert measured.wrong == ()
    assert measured.counts.keys() == set(WITH_SLICING)
    assert measured.rows > 0


def test_plans_that_run_the_same_way_are_run_once_for_all(spark, folders):
    """Twenty seconds feed forty with any search, and 5,000 events are too few for a hidden window."""
    case = Case("tables", "devices", 5_000, "two", (tumbling("20s"), tumbling("40s")), contenders=WITH_SLICING)
    measured = measure(spark, case, folders, repeats=1, random=Random(7))
    plans = [measured.seconds[name] for name in WITH_SLICING if name != "naive"]
    assert plans == [plans[0]] * len(plans)
    assert plans[0] != measured.seconds["naive"]


@pytest.mark.long
def test_other_engines_give_the_same_rows(spark, folders):
    case = Case("peers", "devices", 5_000, "some", WINDOWS, contenders=(*PEERS, ALONE))
    measured = measure(spark, case, folders, repeats=1, random=Random(7))
    assert measured.wrong == ()
    assert measured.seconds.keys() == {*PEERS, ALONE}


def test_a_contender_with_wrong_rows_has_no_time(spark, folders, monkeypatch):
    right = Plan.run

    def wrong(self, events):
        return right(self, events).where("window_id <> '20 seconds' OR device <> 'device-3'")

    monkeypatch.setattr(Plan, "run", wrong)
    case = Case("tables", "devices", 5_000, "some", WINDOWS, contenders=("naive", "best"))
    measured = measure(spark, case, folders, repeats=1, random=Random(7))
    assert measured.wrong == ("best",)
    assert measured.seconds.keys() == {"naive"}


@pytest.mark.parametrize("exact", [True, False])
def test_a_fingerprint_tells_a_changed_value_a_moved_value_and_a_lost_row(spark, exact):
    def of(rows):
        return fingerprint(spark.createDataFrame(rows, "k int, window_end int, v double"), exact=exact)

    rows = [(1, 10, 0.5), (1, 20, 1.5), (2, 10, 2.5)]
    assert same(of(rows), of(rows[::-1]))
    assert not same(of(rows), of([(1, 10, 0.5001), *rows[1:]]))
    assert not same(of(rows), of([(1, 10, 1.5), (1, 20, 0.5), rows[2]]))
    assert not same(of(rows), of(rows[1:]))


def test_streams_have_names(spark):
    assert stream(spark, "dense", 100).count() == 100
    assert stream(spark, "thousands of keys", 50).columns == ["ts", "device", "v"]
    with pytest.raises(OptionError, match="stream 'none' is unknown; there are synthetic"):
        stream(spark, "none", 1)
    with pytest.raises(OptionError, match="are not there"):
        stream(spark, "plugs", 1)


def test_flinks_rows_are_compared_with_sparks(spark, tmp_path):
    """The interpreter is a script that says what Flink would: once the naive query's counts and sums, once not."""
    who = ("flink", "flink rewritten")
    case = Case("flink", "devices", 2000, "two", (tumbling("2s"), tumbling("3s")), contenders=who)
    rows = naive(case.query, stream(spark, "devices", 2000)).groupBy("window_id").agg(F.count("*"), F.sum("min(v)"))
    right = {name: [count, total] for name, count, total in rows.collect()}
    assert all(count != total for count, total in right.values())
    changed = right | {"2 seconds": [right["2 seconds"][0], right["2 seconds"][1] + 1]}
    said = {who[0]: {"seconds": [2.0], "found": right}, who[1]: {"seconds": [1.0], "found": changed}}
    (tmp_path / "said.json").write_text(json.dumps(said))
    interpreter = tmp_path / "python"
    interpreter.write_text(f"#!/bin/sh\ncat > /dev/null\ncat '{tmp_path}/said.json'\n")
    interpreter.chmod(0o755)
    result = flink.measure(spark, case, interpreter)
    assert (result.wrong, result.seconds) == (("flink rewritten",), {"flink": [2.0]})


@pytest.mark.long
def test_first_runs_give_the_same_rows_in_processes_of_their_own(folders):
    """Two contenders, as each needs a new JVM; every measurement compares the others too."""
    case = Case("first", "devices", 3_000, "some", WINDOWS, contenders=("naive", TOLD))
    measured = first.measure(case, folders, repeats=1, random=Random(7))
    assert measured.wrong == ()
    assert measured.rows > 0
    assert measured.seconds.keys() == measured.phases.keys() == {"naive", TOLD}
    for name, phases in measured.phases.items():
        own = set(PHASES) if name.startswith("best") else set(PHASES) - {"import", "plan"}
        assert phases.keys() == own | {"start"}
        assert all(took > 0 for took in phases.values())
        assert measured.seconds[name] == [pytest.approx(sum(phases[phase] for phase in own), abs=0.001)]


def answers(monkeypatch, rows):
    """Let processes answer so many rows; return the jobs that they were given."""
    jobs = []

    def run(job):
        jobs.append(job)
        took = {"start": 100.0, "read": float(len(jobs)), "execute": 0.5}
        found = {"rows": rows[job["contender"]], "hash": 1} if job["check"] else None
        return {"phases": took, "found": found}

    monkeypatch.setattr(first, "_run", run)
    return jobs


def test_a_first_run_is_checked_once_and_has_no_time_if_its_rows_are_wrong(folders, monkeypatch):
    jobs = answers(monkeypatch, {"naive": 5, "best": 5, TOLD: 4})
    case = Case("first", "devices", 100, "some", WINDOWS, contenders=FIRST)
    measured = first.measure(case, folders, repeats=3, random=Random(7))
    assert sorted(job["contender"] for job in jobs) == sorted(3 * FIRST)
    assert [job["contender"] for job in jobs[:4]] != [job["contender"] for job in jobs[4:8]]
    assert sorted(job["contender"] for job in jobs if job["check"]) == ["best", TOLD, "naive"]
    assert measured.wrong == (TOLD,)
    assert measured.seconds.keys() == measured.phases.keys() == {ALONE, "naive", "best"}
    at = [place for place, job in enumerate(jobs, start=1) if job["contender"] == "best"]
    assert measured.seconds["best"] == [place + 0.5 for place in at]
    assert measured.phases["best"] == {"start": 100.0, "read": at[1], "execute": 0.5}


def test_only_one_contender_is_given_statistics_and_only_one_a_single_window(folders, monkeypatch):
    jobs = answers(monkeypatch, dict.fromkeys(FIRST, 5))
    case = Case("first", "devices", 100, "some", WINDOWS, contenders=FIRST)
    first.measure(case, folders, repeats=1, random=Random(7))
    told = {job["contender"]: (len(job["windows"]), job["statistics"]) for job in jobs}
    assert told == {ALONE: (1, None), "naive": (3, None), "best": (3, None), TOLD: (3, [100, 20, 1.0])}


def test_a_first_run_that_fails_says_why(tmp_path):
    case = Case("first", "devices", 100, "some", WINDOWS, contenders=FIRST)
    job = first._job(case, tmp_path, "naive")
    del job["settings"]
    with pytest.raises(RuntimeError, match=r"(?s)a first run of 'naive' failed:.*KeyError: 'settings'"):
        first._run(job)
