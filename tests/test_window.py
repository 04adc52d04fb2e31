"""Durations, windows and their instances."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import windows

from factor_windows import Window, WindowError, hopping, tumbling
from factor_windows.algebra.calendar import parse_window
from factor_windows.algebra.window import duration, readable


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("20 minutes", 1_200_000_000),
        ("1 hour 30 minutes", 5_400_000_000),
        ("90s", 90_000_000),
        ("500 ms", 500_000),
        ("2 days", 172_800_000_000),
        ("1 week", 604_800_000_000),
        ("1h30m", 5_400_000_000),
        ("7 us", 7),
        ("7µs", 7),
        ("1.5 HOURS", 5_400_000_000),
        ("-5 minutes", -300_000_000),
    ],
)
def test_durations_are_read(text, microseconds):
    assert duration(text) == microseconds


def test_a_timedelta_is_a_duration():
    assert duration(timedelta(days=1, microseconds=3)) == 86_400_000_003


@given(st.integers(-(10**15), 10**15))
def test_what_is_written_reads_back(microseconds):
    assert duration(readable(microseconds)) == microseconds


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: hopping("30 minutes", "40 minutes"), "slide 40 minutes is longer than range 30 minutes"),
        (lambda: tumbling("0 seconds"), "range 0 seconds is not positive"),
        (lambda: tumbling("-1 hour"), "range -1 hour is not positive"),
        (lambda: hopping("1 hour", "0s"), "slide 0 seconds is not positive"),
        (lambda: tumbling("3 fortnights"), "unknown unit 'fortnights'; allowed are week, day, hour"),
        (lambda: tumbling("1 month"), "a month has no fixed length"),
        (lambda: tumbling("minutes"), "cannot be read"),
        (lambda: tumbling("20"), "cannot be read"),
        (lambda: tumbling(""), "cannot be read"),
        (lambda: tumbling("20 minutes or so"), "cannot be read"),
        (lambda: tumbling("0.0000001 seconds"), "is not a whole number of microseconds"),
        (lambda: tumbling("99999999 weeks"), "too long"),
        (lambda: tumbling(20), "has no unit"),
        (lambda: Window(range=2.5, slide=1), "not a whole number of microseconds"),
        (lambda: Window(range=2, slide=1, name=7), "name 7 is not text"),
        (lambda: parse_window("=20m"), "empty name"),
        (lambda: parse_window("20m/"), "cut short"),
        (lambda: parse_window("20m@"), "cut short"),
    ],
)
def test_a_mistake_gets_one_clear_sentence(make, message):
    with pytest.raises(WindowError) as error:
        make()
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("window", "name"),
    [
        (tumbling("20 minutes"), "20 minutes"),
        (hopping("1 hour", "10 minutes"), "1 hour / 10 minutes"),
        (hopping("1 hour", "10 minutes", offset="5 minutes"), "1 hour / 10 minutes @ 5 minutes"),
        (tumbling("1 day", offset="-1 hour"), "1 day @ 23 hours"),
        (tumbling("7 days", name="weekly"), "weekly"),
    ],
)
def test_a_window_has_a_readable_name(window, name):
    assert window.name == name


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("20m", tumbling("20 minutes")),
        ("1h/10m", hopping("1 hour", "10 minutes")),
        ("1h/10m@5m", hopping("1 hour", "10 minutes", offset="5 minutes")),
        ("20m@-5m", tumbling("20 minutes", offset="15 minutes")),
        ("my hour=1h", tumbling("1 hour")),
    ],
)
def test_the_short_form_is_read(text, window):
    assert parse_window(text) == window


def test_a_name_is_no_part_of_what_a_window_is():
    assert parse_window("my hour=1h").name == "my hour"
    assert len({tumbling("1 hour"), tumbling("60 minutes", name="hourly")}) == 1


@given(windows(), st.integers(-100, 100))
def test_the_instances_of_a_time_are_those_that_hold_it(window, time):
    by_definition = [
        start
        for m in range(-300, 300)
        for start in [window.offset + m * window.slide]
        if start <= time < start + window.range
    ]
    assert list(window.starts_of(time)) == by_definition
