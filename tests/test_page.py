"""The page that explains a plan, in a real browser: pointed at, read with a keyboard only, and checked with axe."""

import re
import shutil

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

import factor_windows as fw
from benchmarks.window_sets import random_windows
from factor_windows.cost.timing import Timing

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&"


def plan_of(*windows, function="min(t)", **options):
    query = fw.Query(time="ts", keys=["device"], windows=windows, aggregates=[function])
    return fw.optimize(query, rate=100, unit="1 second", keys=20, **options)


@pytest.fixture(scope="module")
def browser():
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    assert program, "there is no Chromium; scripts/ensure-chromium installs it"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Open a plan's page, and see at the end that nothing went wrong in it and nothing was fetched."""
    pages, troubles = [], []

    def open_page(plan, *, width=1280, scheme="light", measured=None):
        path = tmp_path / "plan.html"
        path.write_text(plan.to_html(measured=measured), encoding="utf-8")
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
        page.on("dialog", lambda dialog: (troubles.append("a dialog"), dialog.dismiss()))
        page.on("request", lambda request: None if request.url == path.as_uri() else troubles.append(request.url))
        page.goto(path.as_uri())
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert troubles == []


@pytest.fixture
def paper():
    return plan_of(fw.tumbling("20m"), fw.tumbling("30m"), fw.tumbling("40m"))


def test_pointing_at_a_node_tells_about_it(opened, paper):
    page = opened(paper)
    page.locator("#after .node", has_text="40 minutes").hover()
    told = page.locator("#details").inner_text()
    assert "40 minutes" in told
    assert "2 × 20 minutes" in told
    assert re.search(r"[\d.,]+ instances × 2 reads", told)
    assert "raw events +" in told


def test_a_node_is_told_about_when_the_keyboard_reaches_it(opened, paper):
    page = opened(paper)
    page.locator("#before .canvas").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("20 minutes: cost")
    assert page.locator("#details h3").inner_text() == "20 minutes"


def test_the_whole_page_can_be_used_with_a_keyboard_only(opened, paper):
    page = opened(paper)
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        what = page.evaluate(
            "[document.activeElement.id, document.activeElement.className.baseVal ?? document.activeElement.className,"
            " document.activeElement.dataset.zoom ?? ''].join(' ')"
        )
        seen |= set(what.split())
        if "theme" in what and not page.evaluate("document.documentElement.dataset.theme"):
            page.keyboard.press("Enter")
    assert {"skip", "theme", "timeline", "row", "node", "in", "out", "fit", "copy"} <= seen
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_an_instance_shows_what_it_is_made_of(opened, paper):
    page = opened(paper)
    page.locator("#timeline .row").nth(2).focus()
    assert page.locator("#instance").inner_text().endswith("is made of 2 instances of 20 minutes.")
    assert page.locator("#timeline rect.read").count() == 2
    before = page.locator("#instance").inner_text()
    page.keyboard.press("ArrowLeft")
    assert page.locator("#instance").inner_text() != before


def test_slices_have_instances_too(opened):
    page = opened(plan_of(fw.tumbling("15s"), fw.tumbling("17s"), fw.tumbling("19s")))
    widths = page.eval_on_selector_all("#timeline rect.slices", "bars => bars.map(bar => bar.getAttribute('width'))")
    assert len({round(float(width)) for width in widths}) > 3


def test_dark_and_light_can_be_switched(opened, paper):
    page = opened(paper, scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.get_by_role("button", name="Switch to light colours").click()
    light = page.evaluate(background)
    assert (dark, light) == ("rgb(18, 24, 31)", "rgb(255, 255, 255)")
    page.get_by_role("button", name="Switch to dark colours").click()
    assert page.evaluate(background) == dark


def test_the_sql_is_copied_as_it_is(opened, paper):
    page = opened(paper)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("button.copy").first.click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()").strip() == paper.sql(dialect="spark").strip()
    assert page.locator("#said").inner_text() == "The SQL was copied."


def test_graphs_can_be_zoomed(opened, paper):
    page = opened(paper)
    before, after = (page.locator(f"#{name} svg.fw-plan") for name in ("before", "after"))
    first = after.bounding_box()["width"], before.bounding_box()["width"]
    page.locator("#after button[data-zoom=in]").click()
    assert after.bounding_box()["width"] == pytest.approx(1.3 * first[0], abs=1)
    assert before.bounding_box()["width"] == pytest.approx(1.3 * first[1], abs=1), "before and after have one scale"
    page.locator("#after button[data-zoom=fit]").click()
    assert (after.bounding_box()["width"], before.bounding_box()["width"]) == pytest.approx(first)


def test_a_run_is_shown_beside_what_was_predicted(opened, paper):
    page = opened(paper, measured={"plan": 2.0, "naive": 5.0})
    rows = page.locator("section", has_text="Predicted and measured").locator("tbody tr").all_inner_texts()
    assert [row.split("\t")[1] for row in rows] == ["3.0 ×", "2.5 ×"]


def test_times_that_cannot_tell_are_shown_without_a_gain(opened, paper):
    page = opened(paper, measured=Timing((0.2,), (0.1,)))
    [section] = page.locator("section", has=page.get_by_role("heading", name="Measured")).all_inner_texts()
    assert section.split("\n")[-1] == "The data is too small to compare times."
    assert "Predicted and measured" not in page.content()


def several_queries():
    minute, hour, day = fw.tumbling("1m"), fw.tumbling("1h"), fw.tumbling("1 day")
    return fw.optimize(
        [
            fw.Query(time="ts", keys=["device"], windows=[minute, hour], aggregates=["max(t)"], name="alerts"),
            fw.Query(time="ts", keys=["site"], windows=[fw.tumbling("15m"), hour], aggregates=["avg(t)"], name="sites"),
            fw.Query(time="ts", keys=[], windows=[day], aggregates=["count(*)"], name="overview of all plants"),
        ],
        rate=100,
        unit="1 second",
        keys=20,
    )


BERLIN = "Europe/Berlin"
KINDS = {
    "one window": lambda: plan_of(fw.tumbling("20m")),
    "three windows": lambda: plan_of(fw.tumbling("20m"), fw.tumbling("30m"), fw.tumbling("40m")),
    "twenty windows": lambda: plan_of(*random_windows(20, tumbling=False, seed=1)),
    "a rate that is assumed": lambda: fw.optimize(
        fw.Query(time="ts", windows=[fw.tumbling("20m"), fw.tumbling("30m")], aggregates=["min(t)"])
    ),
    "long names": lambda: plan_of(
        fw.tumbling("20m", name="W" * 60), fw.tumbling("30m", name="\u7a93" * 40), fw.tumbling("40m", name="a b " * 30)
    ),
    "slices": lambda: plan_of(fw.tumbling("15s"), fw.tumbling("17s"), fw.tumbling("19s")),
    "a long ladder": lambda: plan_of(fw.tumbling("1m"), fw.tumbling("1h"), fw.hopping("1 day", "1 minute")),
    "calendar windows": lambda: plan_of(
        fw.tumbling("1h"), fw.calendar("1 day", zone=BERLIN), fw.calendar("1 month", zone=BERLIN)
    ),
    "a year of quarter hours": lambda: plan_of(
        fw.tumbling("15m"), fw.cumulating("1 day", step="1 hour"), fw.calendar("1 year", zone=BERLIN), function="sum(t)"
    ),
    "windows that grow": lambda: plan_of(
        fw.cumulating("1 day", step="1 hour"), fw.calendar("1 month", zone=BERLIN, step="1 day", name="month to date")
    ),
    "sessions": lambda: plan_of(fw.session("30 minutes"), fw.tumbling("1 hour"), function="sum(t)"),
    "several queries": several_queries,
}
LAID_OUT = """() => {
  const faults = [];
  const page = document.documentElement;
  const box = (element) => element.getBoundingClientRect();
  const inside = (a, b) =>
    a.left >= b.left - 1 && a.right <= b.right + 1 && a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
  for (const svg of document.querySelectorAll("svg")) {
    const texts = [...svg.querySelectorAll("text")];
    for (const text of texts) {
      const around = text.closest(".node")?.querySelector(".box") ?? svg;
      if (!inside(box(text), box(around))) faults.push(`out of its box: ${text.textContent}`);
    }
    texts.forEach((a, i) => texts.slice(i + 1).forEach((b) => {
      const [p, q] = [box(a), box(b)];
      const across = Math.min(p.right, q.right) - Math.max(p.left, q.left);
      const down = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
      if (across > 1 && down > 4) faults.push(`over each other: ${a.textContent} | ${b.textContent}`);
    }));
    const boxes = [...svg.querySelectorAll(".box")].map(box);
    boxes.forEach((p, i) => boxes.slice(i + 1).forEach((q) => {
      if (p.left < q.right && q.left < p.right && p.top < q.bottom && q.top < p.bottom) faults.push("boxes overlap");
    }));
    // A label of a line is clear of all lines that were chosen.
    for (const text of texts.filter((each) => svg.matches(".fw-plan") && !each.closest(".node"))) {
      const place = text.getBBox();
      for (const path of svg.querySelectorAll("path:not(.possible)")) {
        for (let at = 0; at <= path.getTotalLength(); at += 2) {
          const { x, y } = path.getPointAtLength(at);
          if (x > place.x && x < place.x + place.width && y > place.y && y < place.y + place.height - 1) {
            faults.push(`a line through ${text.textContent}`);
            break;
          }
        }
      }
    }
  }
  for (const element of document.querySelectorAll("main *:not(svg *)")) {
    if (element.closest(".scroll, .canvas, pre, .off, details")) continue;
    if (box(element).right > page.clientWidth + 1) faults.push(`wider than the page: ${element.tagName}`);
  }
  if (page.scrollWidth > page.clientWidth) faults.push("the page scrolls sideways");
  return [...new Set(faults)];
}"""


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_text_is_in_its_box_and_clear_of_lines_and_axe_finds_nothing(opened, kind):
    plan = KINDS[kind]()
    for width, scheme in ((1280, "light"), (390, "dark")):
        page = opened(plan, width=width, scheme=scheme)
        assert page.evaluate(LAID_OUT) == [], (width, scheme)
        assert len(page.content()) < 2_000_000
        if width == 1280:
            wide = page.eval_on_selector_all(".canvas", "all => all.map(each => each.scrollWidth - each.clientWidth)")
            assert max(wide) <= 0, "a plan fits on a screen"
        found = Axe().run(page).response["violations"]
        assert [(each["id"], each["impact"]) for each in found if each["impact"] in ("serious", "critical")] == []


def test_no_row_of_costs_says_nothing(opened):
    page = opened(KINDS["twenty windows"]())
    costs = page.locator("section", has_text="Where the cost goes").inner_text()
    assert "\t0.0%" not in costs
    assert re.search(r"\d+ other nodes", costs)


def test_several_queries_are_shown_by_name_with_what_each_pays(opened):
    plan = several_queries()
    page = opened(plan)
    assert page.locator("h1").inner_text().startswith("3 queries over 5 windows: alerts, sites, overview of all plants")
    assert "value_0" not in " ".join(page.locator("h1, .lead, table, figure, #timeline").all_inner_texts())
    rows = page.locator("section", has_text="Who pays").locator("tbody tr").all_inner_texts()
    assert [row.split("\t")[0] for row in rows] == ["alerts", "sites", "overview of all plants", "together"]
    assert "for alerts" in page.locator("#after").inner_text()


def test_instances_too_short_to_draw_are_counted_between_breaks(opened):
    page = opened(KINDS["a long ladder"]())
    row = page.locator("#timeline .row").first
    assert "4,320 instances" in row.inner_html()
    assert row.locator("line.break").count() == 4
    row.focus()
    assert page.locator("#instance").inner_text().endswith("reads the raw events.")


def test_of_very_many_instances_of_a_calendar_the_page_says_about_how_many_there_are(opened):
    page = opened(KINDS["a year of quarter hours"]())
    assert re.search(r"about 10\d,\d{3} instances", page.locator("#timeline").inner_text())
    row = page.locator("#timeline .row", has_text="").last
    row.focus()
    page.keyboard.press("ArrowRight")
    told = page.locator("#instance").inner_text()
    assert told.startswith("1 year")
    assert " 0 instances" not in told


def test_a_name_is_only_a_name(opened):
    page = opened(plan_of(fw.tumbling("20m", name=EVIL), fw.tumbling("30m"), function=f"min(t) AS `{EVIL}`"))
    page.locator("#after .node").nth(1).hover()
    assert EVIL in page.locator("h1").inner_text()
    assert page.locator("#content img, #content script").count() == 0
