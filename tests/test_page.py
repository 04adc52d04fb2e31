"""The page that explains a plan, in a real browser: pointed at, read with a keyboard only, and checked with axe."""

import hashlib
import re
import shutil
from pathlib import Path

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
    page.locator("#before button[data-zoom=fit]").focus()
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
    graph = page.locator("#after svg.graph > g")
    first = graph.get_attribute("transform")
    page.locator("#after button[data-zoom=in]").click()
    assert graph.get_attribute("transform") != first
    page.locator("#after button[data-zoom=fit]").click()
    assert graph.get_attribute("transform") == first


def test_a_run_is_shown_beside_what_was_predicted(opened, paper):
    page = opened(paper, measured={"plan": 2.0, "naive": 5.0})
    rows = page.locator("section", has_text="Predicted and measured").locator("tbody tr").all_inner_texts()
    assert [row.split("\t")[1] for row in rows] == ["3.0 ×", "2.5 ×"]


def test_times_that_cannot_tell_are_shown_without_a_gain(opened, paper):
    page = opened(paper, measured=Timing((0.2,), (0.1,)))
    [section] = page.locator("section", has=page.get_by_role("heading", name="Measured")).all_inner_texts()
    assert section.split("\n")[-1] == "The data is too small to compare times."
    assert "Predicted and measured" not in page.content()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault_in_a_plan_of_twenty_windows(opened, width, scheme):
    plan = plan_of(*random_windows(20, tumbling=False, seed=1))
    page = opened(plan, width=width, scheme=scheme)
    assert len(page.content()) < 2_000_000
    found = Axe().run(page).response["violations"]
    assert [(each["id"], each["impact"]) for each in found if each["impact"] in ("serious", "critical")] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_name_is_only_a_name(opened):
    page = opened(plan_of(fw.tumbling("20m", name=EVIL), fw.tumbling("30m"), function=f"min(t) AS `{EVIL}`"))
    page.locator("#after .node").nth(1).hover()
    assert EVIL in page.locator("h1").inner_text()
    assert page.locator("#content img, #content script").count() == 0


def test_the_bundle_is_made_of_its_source():
    root = Path(__file__).parents[1]
    source = hashlib.sha256((root / "web/page.js").read_bytes()).hexdigest()[:16]
    bundle = (root / "src/factor_windows/explain/assets/page.min.js").read_text(encoding="utf-8")
    assert f"web/page.js {source}" in bundle.splitlines()[0], "web/page.js has changed; run make page"
