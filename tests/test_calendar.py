"""Calendar windows and windows that grow: what they are called, what is refused, and what makes up what."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import factor_windows as fw
from factor_windows import WindowError
from factor_windows.algebra.calendar import parse_window
from factor_windows.algebra.clock import DAY, Clock
from factor_windows.algebra.graph import can_make
from factor_windows.algebra.growing import Growing
from factor_windows.algebra.slices import Slices, is_partition, refines, slices_of
from factor_windows.functions.table import Kind

ZONES = [
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "UTC",
    "Etc/GMT-5",
]
LENGTHS = ["1 day", "2 days", "1 week", "2 weeks", "1 month", "2 months", "1 quarter", "1 year", "18 months"]
HOPS = [
    ("7 days", "1 day"),
    ("3 days", "2 days"),
    ("3 months", "1 month"),
    ("1 year", "1 quarter"),
    ("5 months", "2 months"),
]
GROWTH = [("1 month", "1 day"), ("1 year", "1 month"), ("1 week", "1 day"), ("1 quarter", "1 month")]
FIXED = ["15 minutes", "1 hour", "6 hours", "1 day", "7 days", "17 seconds"]


def micros(*parts):
    return int((datetime(*parts, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * 1_000_000


SPANS = [(1860, 1), (1890, 12), (1893, 3), (1970, 1), (1971, 12), (2011, 12), (2023, 12), (2024, 2), (2024, 10)]
"""Months in which local days are of all kinds: local mean time, odd offsets, skipped days, clocks changed."""


@st.composite
def calendar_windows(draw):
    zone = draw(st.sampled_from(ZONES))
    kind = draw(st.sampled_from(["plain", "plain", "hopping", "growing", "fixed", "cumulating"]))
    match kind:
        case "plain":
            length = draw(st.sampled_from(LENGTHS))
            origin = draw(
                st.sampled_from([None, None, "2024-04-01", "2024-05-01" if "w" not in length else "2024-05-05"])
            )
            return fw.calendar(length, zone=zone, origin=origin)
        case "hopping":
            length, slide = draw(st.sampled_from(HOPS))
            return fw.calendar(length, slide=slide, zone=zone)
        case "growing":
            length, step = draw(st.sampled_from(GROWTH))
            return fw.calendar(length, step=step, zone=zone)
        case "cumulating":
            return fw.cumulating("1 day", step=draw(st.sampled_from(["1 hour", "6 hours"])))
    return fw.tumbling(draw(st.sampled_from(FIXED)))


def edges_in(segmentation, first, last):
    """List all starts and ends of instances within a span, by walking from one to the next."""
    found = set()
    for part in segmentation.parts if not isinstance(segmentation, Slices) else (segmentation,):
        step = min(part.longest, 86_400_000_000) // (4 if part.longest > 3_600_000_000 else 1)
        at = first
        while at <= last:
            for start in part.starts_of(at):
                found.update(part.bounds_of(start))
            at += step
    return {edge for edge in found if first <= edge <= last}


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(calendar_windows(), calendar_windows())
def test_pieces_make_up_a_window_exactly_if_all_its_edges_are_theirs(pieces, other):
    if not is_partition(pieces):
        return
    spans = [(micros(year, month, 1), micros(year, month, 1) + 45 * 86_400_000_000) for year, month in SPANS]
    holds = all(edges_in(other, *span) <= edges_in(pieces, *span) for span in spans if span[1] - span[0])
    is_rare = other.distance > 45 * 86_400_000_000 or pieces.distance > 45 * 86_400_000_000
    if refines(pieces, other):
        assert holds
    elif not is_rare:
        assert not holds


@settings(max_examples=200, deadline=None)
@given(calendar_windows(), st.integers(-2_500_000_000, 2_500_000_000))
def test_an_event_is_in_just_the_instances_that_hold_it(window, second):
    time = second * 1_000_000
    for start in window.starts_of(time):
        begin, end = window.bounds_of(start)
        assert begin <= time < end
    bounds = [window.bounds_of(start) for start in window.starts_of(time)]
    assert len(set(bounds)) == len(bounds)
    if is_partition(window):
        assert len(bounds) == 1


@settings(max_examples=100, deadline=None)
@given(st.lists(calendar_windows(), min_size=1, max_size=4), st.integers(-2_500_000_000, 2_500_000_000))
def test_slices_of_windows_refine_them_also_on_a_grid(windows, second):
    slices = slices_of(windows)
    for each in (slices, slices.on_a_grid) if isinstance(slices, Slices) else (slices,):
        assert all(refines(each, window) for window in windows)
        [start] = each.starts_of(second * 1_000_000)
        begin, end = each.bounds_of(start)
        assert begin == start <= second * 1_000_000 < end
        assert all(each.starts_of(at) == (start,) for at in (start, end - 1))
        assert each.starts_of(end) == (end,)


def test_a_week_makes_up_no_month_and_a_zone_no_other():
    berlin = {
        length: fw.calendar(length, zone="Europe/Berlin") for length in ("1 day", "1 week", "1 month", "1 quarter")
    }
    tokyo = fw.calendar("1 month", zone="Asia/Tokyo")
    makes = lambda parent, child: can_make(parent, child, Kind.MERGEABLE)  # noqa: E731
    assert makes(berlin["1 day"], berlin["1 week"])
    assert makes(berlin["1 day"], berlin["1 month"])
    assert makes(berlin["1 month"], berlin["1 quarter"])
    assert not makes(berlin["1 week"], berlin["1 month"])
    assert not makes(berlin["1 day"], tokyo)
    assert not makes(
        fw.tumbling("15 minutes"), berlin["1 day"]
    )  # Before 1893 Berlin was 53 minutes and 28 seconds ahead.
    assert makes(fw.tumbling("15 minutes"), fw.calendar("1 month"))
    assert makes(fw.tumbling("15 minutes"), fw.calendar("1 month", zone="Etc/GMT-5"))


def test_a_window_of_days_in_utc_is_one_of_a_fixed_length():
    assert fw.calendar("1 day") == fw.tumbling("1 day")
    assert fw.calendar("7 days", slide="1 day") == fw.hopping("7 days", "1 day")
    assert fw.calendar("1 week") == fw.tumbling("7 days", offset="4 days")
    assert fw.calendar("1 day").name == "1 day [UTC]"


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (lambda: fw.calendar("1 day", zone="Europe/Berlin"), "1 day [Europe/Berlin]"),
        (lambda: fw.calendar(timedelta(days=7), zone="Europe/Berlin"), "1 week [Europe/Berlin]"),
        (lambda: fw.calendar("1 week", zone="Europe/Berlin"), "1 week [Europe/Berlin]"),
        (
            lambda: fw.calendar("1 week", zone="Europe/Berlin", origin="2024-06-02"),
            "1 week [Europe/Berlin] @ 2000-01-02",
        ),
        (lambda: fw.calendar("1 year", origin=date(2024, 4, 1)), "1 year [UTC] @ 2000-04-01"),
        (lambda: fw.calendar("1 year 6 months"), "6 quarters [UTC]"),
        (lambda: fw.calendar("1 year", step="1 month", zone="Asia/Tokyo"), "1 year + 1 month [Asia/Tokyo]"),
        (lambda: fw.cumulating("1 day", step="1 hour", offset="30 minutes"), "1 day + 1 hour @ 30 minutes"),
        (lambda: parse_window("1month[Europe/Berlin]"), "1 month [Europe/Berlin]"),
        (lambda: parse_window("mtd=1month+1d[Europe/Berlin]"), "mtd"),
        (lambda: parse_window("1month"), "1 month [UTC]"),
        (lambda: parse_window("1 day"), "1 day"),
        (lambda: parse_window("2 days/1 day"), "2 days / 1 day"),
        (lambda: parse_window("90 m"), "1 hour 30 minutes"),
        (lambda: parse_window("2q"), "2 quarters [UTC]"),
        (lambda: parse_window("1y@2024-04-01"), "1 year [UTC] @ 2000-04-01"),
        (lambda: parse_window("1d[Asia/Tokyo]"), "1 day [Asia/Tokyo]"),
        (lambda: parse_window("1d+1h@30m"), "1 day + 1 hour @ 30 minutes"),
    ],
)
def test_windows_have_names_that_say_what_they_are(made, name):
    assert made().name == name


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (
            lambda: fw.calendar("1 day", zone="Europe/Berln"),
            "zone 'Europe/Berln' is unknown; did you mean 'Europe/Berlin'",
        ),
        (lambda: fw.tumbling("1 month"), r"calendar\('1 month'\)"),
        (lambda: fw.hopping("1 year", "1 day"), r"calendar\('1 year'\)"),
        (lambda: fw.calendar("1 month", origin="2024-04-15"), "origin 2024-04-15 is not the first day of a month"),
        (lambda: fw.calendar("1 month", origin="soon"), "origin 'soon' is not a date"),
        (lambda: fw.calendar("1 month", origin=datetime(2024, 1, 1)), "is not a date"),
        (lambda: fw.calendar("1 month", step="1 week"), "step '1 week' does not divide range '1 month'"),
        (lambda: fw.calendar("1 month", step="1 month"), "step '1 month' does not divide"),
        (lambda: fw.cumulating("1 day", step="7 hours"), "step '7 hours' does not divide range '1 day'"),
        (lambda: fw.calendar("1 month", slide="1 week"), "have no unit in common"),
        (lambda: fw.calendar("1 month", slide="2 months"), "slide 2 months is longer than range 1 month"),
        (lambda: fw.calendar("1 month", slide="1 month", step="1 day"), "has no slide of its own"),
        (
            lambda: fw.calendar("6 hours"),
            "calendars have day, week, month, quarter, year; shorter windows are of fixed",
        ),
        (lambda: fw.calendar("1 month 3 days"), "mixes months with days"),
        (lambda: fw.calendar("1 fortnight"), "has the unit 'fortnight'"),
        (lambda: fw.calendar("month"), "is not a calendar length"),
        (lambda: fw.calendar("0 days"), "is not between"),
        (lambda: parse_window("1d/1h+1h"), "has a slide and a step"),
        (lambda: parse_window("1d+"), "is cut short"),
        (lambda: parse_window("1d[]"), "zone '' is unknown"),
    ],
)
def test_mistakes_are_answered_with_one_sentence(wrong, words):
    with pytest.raises(WindowError, match=words) as found:
        wrong()
    assert "\n" not in str(found.value)


def test_month_to_date_has_an_instance_for_each_day_from_the_first():
    window = fw.calendar("1 month", step="1 day", zone="Europe/Berlin")
    assert isinstance(window, Growing)
    starts = window.starts_of(micros(2024, 2, 27, 12))
    bounds = [window.bounds_of(start) for start in starts]
    assert {begin for begin, _ in bounds} == {micros(2024, 1, 31, 23)}
    assert [end for _, end in bounds] == [micros(2024, 2, day, 23) for day in (27, 28, 29)]


def test_equal_calendars_are_equal_windows():
    assert fw.calendar("3 months", zone="Asia/Tokyo") == fw.calendar("1 quarter", zone="Asia/Tokyo", name="mine")
    assert fw.calendar("1 month", zone="Asia/Tokyo") != fw.calendar("1 month", zone="Asia/Seoul")
    assert Clock("Asia/Tokyo", "day") < Clock("Asia/Tokyo", "month")


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kathmandu", "Africa/Monrovia", "Australia/Lord_Howe", "UTC"])
def test_slices_are_a_window_since_the_clock_is_on_its_grid(zone):
    """What starts since then is shown as the window without being merged; what starts before is merged."""
    quarters, day = fw.tumbling("15 minutes"), fw.calendar("1 day", zone=zone)
    slices = Slices(((quarters.slide, 0),), ((Clock(zone, "day"), (1, 0)),))
    since = slices.same_since(quarters)
    assert since < 5_000 * DAY
    first = int(-(-max(since, 0) // quarters.slide)) * quarters.slide
    for start in range(first, first + 2 * DAY, quarters.slide):
        assert slices.bounds_of(start) == quarters.bounds_of(start)
        assert slices.starts_of(start + 7) == (start,)
    assert slices.same_since(day) == slices.same_since(fw.hopping("30m", "15m")) == float("inf")
    assert slices.same_since(fw.tumbling("15m", offset="5m")) == slices.same_since(fw.tumbling("1h")) == float("inf")
