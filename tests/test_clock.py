"""Clocks of zones: local days and months as instants, held against Python's zone database, second by second."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factor_windows.algebra import clock as clocks
from factor_windows.algebra.clock import DAY, Clock, checked_zone, empty_days, skipped_starts
from factor_windows.errors import WindowError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONES = sorted(zone for zone in available_timezones() if zone not in ("Factory", "localtime"))
ODD = ["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Africa/Monrovia", "Pacific/Apia", "America/Toronto"]
ODD += ["America/Havana", "Africa/Cairo", "Asia/Kathmandu", "America/New_York", "Europe/Lisbon", "Pacific/Kwajalein"]


def local(zone, second):
    """Return the local time of a second, as seconds since 1970 on a clock on the wall there."""
    wall = (EPOCH + timedelta(seconds=second)).astimezone(ZoneInfo(zone)).replace(tzinfo=UTC)
    return int((wall - EPOCH).total_seconds())


def start_by_hand(zone, day):
    """Find the first second with a day's first local time, or, if there is none, the first after the gap."""
    midnight = day * 86_400
    around = range(midnight - 30 * 3_600, midnight + 30 * 3_600, 900)
    exact = {
        at
        for near in around
        for at in [near + midnight - local(zone, near)]
        if abs(at - near) <= 26 * 3_600 and local(zone, at) == midnight
    }
    if exact:
        return min(exact)
    low, high = max(at for at in around if local(zone, at) < midnight), 0
    high = min(at for at in around if at > low and local(zone, at) > midnight)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if local(zone, middle) < midnight else (low, middle)
    return high


def changes(zone):
    return [start for start, _, _ in clocks._stretches(zone) if start is not None]


def start_by_fold(zone, day):
    """Find the same by what Python makes of a local time that is there twice or not at all."""
    place, midnight = ZoneInfo(zone), datetime(1970, 1, 1) + timedelta(days=day)
    instants = [midnight.replace(tzinfo=place, fold=fold).astimezone(UTC) for fold in (0, 1)]
    exact = [at for at in instants if at.astimezone(place).replace(tzinfo=None) == midnight]
    return int((min(exact) - EPOCH).total_seconds()) if exact else start_by_hand(zone, day)


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_days_and_months_begin_when_they_begin_in_every_zone_around_every_change(part):
    """From 1900 to 2100; zones that are another name for one that was seen are not looked at again."""
    tables = {tuple(clocks._stretches(zone)): zone for zone in ZONES}
    for zone in sorted(tables.values())[part::4]:
        days, months = Clock(zone, "day"), Clock(zone, "month")
        for change in changes(zone):
            if not -2_208_988_800 <= change <= 4_102_444_800:
                continue
            for day in range(local(zone, change - 1) // 86_400, local(zone, change) // 86_400 + 2):
                start = start_by_fold(zone, day) * 1_000_000
                assert days.instant(day) == start, (zone, day)
                assert day in empty_days(zone) or days.tick(start) == day, (zone, day)
                assert days.tick(start - 1) < day, (zone, day)
                on = date(1970, 1, 1) + timedelta(days=day)
                month = (on.year - 1970) * 12 + on.month - 1
                assert day in empty_days(zone) or months.tick(start) == month, (zone, day)
                assert on.day > 1 or months.instant(month) == start, (zone, day)


@pytest.mark.parametrize("zone", ODD)
def test_days_begin_when_they_begin_around_all_changes_of_odd_zones(zone):
    for change in changes(zone):
        for day in (local(zone, change) // 86_400, local(zone, change - 1) // 86_400 + 1):
            assert Clock(zone, "day").instant(day) == start_by_hand(zone, day) * 1_000_000
            assert start_by_fold(zone, day) == start_by_hand(zone, day)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(ZONES), st.integers(-2_208_988_800, 4_102_444_800), st.sampled_from(["day", "month"]))
def test_the_last_tick_is_the_last_one_that_is_not_after_a_time(zone, second, unit):
    clock = Clock(zone, unit)
    tick = clock.tick(second * 1_000_000)
    assert clock.instant(tick) <= second * 1_000_000 < clock.instant(tick + 1) <= clock.instant(tick + 2)
    assert clock.instant(tick + 1) - clock.instant(tick) <= clock.longest


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(ZONES), st.integers(-2_208_988_800, 4_102_444_800))
def test_the_table_of_a_zone_has_every_change(zone, second):
    [offset] = {
        shift
        for start, end, shift in clocks._stretches(zone)
        if (start is None or start <= second) and (end is None or second < end)
    }
    assert offset == local(zone, second) - second


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", "2024-03-31", 23),
        ("Europe/Berlin", "2024-10-27", 25),
        ("Australia/Lord_Howe", "2024-04-07", 24.5),
        ("Australia/Lord_Howe", "2024-10-06", 23.5),
        ("Africa/Cairo", "2024-04-26", 23),  # Its first hour does not exist.
        ("America/Havana", "2024-11-03", 25),  # Its first hour exists twice.
        ("America/St_Johns", "2010-11-07", 25),  # 0:01 is followed by 23:01 of the day before.
        ("America/Toronto", "1919-03-31", 23.5),  # 23:30 is followed by 0:30.
        ("Pacific/Apia", "2011-12-30", 0),
        ("Pacific/Kwajalein", "1969-09-30", 47),
        ("Africa/Monrovia", "1972-01-07", 24 - 44.5 / 60),
    ],
)
def test_days_are_as_long_as_they_were(zone, day, hours):
    tick = (date.fromisoformat(day) - date(1970, 1, 1)).days
    clock = Clock(zone, "day")
    assert (clock.instant(tick + 1) - clock.instant(tick)) / 3_600_000_000 == pytest.approx(hours, abs=0.001)


@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "Asia/Kolkata", "Africa/Monrovia", "Australia/Lord_Howe", "Etc/GMT-5"]
)
@pytest.mark.parametrize("minutes", [15, 30, 60, 1440])
def test_a_clock_settles_on_a_grid_from_when_all_its_ticks_are_on_it(zone, minutes):
    clock, step = Clock(zone, "day"), minutes * 60_000_000
    since = clock.settles(step, 0)
    off = [tick for tick in range(-30_000, 25_000) if clock.instant(tick) % step]
    if since == float("inf"):
        assert off[-1] > 20_000
    elif since == float("-inf"):
        assert not off
    else:
        assert clock.instant(off[-1]) < since <= clock.instant(off[-1] + 1)


def test_a_grid_has_all_ticks_of_our_time():
    for zone in ODD:
        clock = Clock(zone, "day")
        assert all(clock.instant(tick) % clock.grid == 0 for tick in range(800, 25_000, 7)), zone


def test_few_days_are_counted_otherwise_than_engines_do():
    assert [zone for zone in ODD if skipped_starts(zone)] == ["America/Toronto"]
    assert {zone: len(empty_days(zone)) for zone in ZONES if empty_days(zone)} == {
        zone: 1 for zone in ZONES if empty_days(zone)
    }
    assert Clock("UTC", "day").instant(1) == DAY


@pytest.mark.parametrize(
    "zone", ["Mars/Base", "", "localtime", "right/UTC", "posix/Europe/Berlin", "Factory", None, "../UTC"]
)
def test_what_is_no_zone_is_refused(zone):
    with pytest.raises(WindowError, match=r"is unknown; .*(such as|did you mean)"):
        checked_zone(zone)


def test_a_near_miss_is_named():
    with pytest.raises(WindowError, match="did you mean 'Europe/Berlin'"):
        checked_zone("Europe/Berln")
