"""The paper's window sets, and the measuring of planning."""

import pytest

from factor_windows import OptionError
from factor_windows.bench.planning import cases, measure
from factor_windows.bench.window_sets import GENERATORS, random_windows, sequential_windows


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


def test_a_case_is_measured():
    measured = measure(next(cases()))
    assert len(measured.seconds) == 10
    assert "R-5-tumbling" in str(measured)
