"""Two ways timed in turns, by a clock that only the runs move."""

from itertools import chain, repeat

import pytest

from factor_windows.cost.timing import Timing, time_in_turns


def timed(plan, naive):
    """Time runs of these lengths, the last one over and over; return the timing and the order of the runs."""
    now, order = [0.0], []

    def runs(name, lengths):
        lengths = chain(lengths, repeat(lengths[-1]))

        def run():
            order.append(name)
            now[0] += next(lengths)

        return run

    return time_in_turns(runs("plan", plan), runs("naive", naive), clock=lambda: now[0]), order


def test_the_first_round_warms_up_and_each_goes_first_in_turn():
    timing, order = timed([3.0, 0.5], [2.0, 1.0])
    assert timing == Timing((0.5,) * 4, (1.0,) * 4)
    assert order == ["plan", "naive", "naive", "plan"] * 2 + ["plan", "naive"]
    assert timing.gain == 2.0


def test_no_more_than_five_rounds_count():
    timing, _ = timed([0.25], [1.0])
    assert (len(timing.plan), len(timing.naive)) == (5, 5)


def test_a_long_query_runs_once():
    timing, order = timed([60.0], [300.0])
    assert order == ["plan", "naive"]
    assert timing == Timing((60.0,), (300.0,))


def test_small_data_is_not_timed_again_and_has_no_gain():
    timing, order = timed([0.9], [0.3])
    assert order == ["plan", "naive"]
    assert timing.gain is None
    assert str(timing) == "the data is too small to compare times"
    timing, order = timed([4.0, 0.5], [2.0, 0.2])
    assert len(order) == 4
    assert (timing.gain, timing.is_small) == (None, True)


@pytest.mark.parametrize(
    ("timing", "said"),
    [
        (Timing((2.0, 2.1, 9.0), (5.0, 5.2, 5.1)), "2.1 s, window by window 5.1 s, both warm: 2.4 times faster"),
        (Timing((0.5,), (1.5,)), "0.5 s, window by window 1.5 s, both warm: 3.0 times faster"),
        (Timing((1.5,), (0.5,)), "1.5 s, window by window 0.5 s, both warm: 3.0 times slower"),
        (Timing((2.0,), (2.3,)), "2.0 s, window by window 2.3 s, both warm: too close to tell which is faster"),
        (Timing((2, 3, 1), (3, 4, 2)), "2.0 s, window by window 3.0 s, both warm: too close to tell which is faster"),
    ],
)
def test_a_gain_is_told_only_where_times_differ_by_more_than_noise(timing, said):
    assert str(timing) == f"the plan takes {said}"
    assert (timing.gain is None) == ("times" not in said)


def test_a_plan_that_ran_alone_has_no_gain():
    timing = Timing((1.5,))
    assert (str(timing), timing.gain) == ("the plan took 1.5 s", None)
