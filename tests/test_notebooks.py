"""How plans, queries and windows show themselves in notebooks and diagrams."""

from xml.etree import ElementTree

import factor_windows as fw

EVIL = '<b>"bold" & more'


def plan_of(*windows):
    query = fw.Query(time="ts", keys=["device"], windows=windows, aggregates=["min(t)"], where="t > 0")
    return fw.optimize(query, cost="paper", unit="1m")


def test_a_plan_is_text_and_a_picture():
    plan = plan_of(fw.tumbling("20m", name=EVIL), fw.tumbling("30m"), fw.tumbling("40m"))
    bundle = plan._repr_mimebundle_()
    assert bundle["text/plain"] == plan.explain()
    drawn = ElementTree.fromstring(f"<div>{bundle['text/html'].replace('<br>', '<br/>')}</div>")
    assert drawn.find(".//{http://www.w3.org/2000/svg}svg") is not None
    assert len(list(drawn.iter("b"))) == 1


def test_the_pictures_style_stays_in_the_picture():
    [style] = plan_of(fw.tumbling("20m"), fw.tumbling("30m"))._repr_html_().split("<style>")[1:]
    rules = style.split("</style>")[0].replace("@media (prefers-color-scheme: dark) {", "").replace("}", "}\n")
    selectors = [line.split("{")[0].strip() for line in rules.splitlines() if "{" in line]
    assert len(selectors) == 9
    assert all(each.strip().startswith(".fw-plan") for selector in selectors for each in selector.split(","))


def test_a_picture_in_a_notebook_has_the_notebooks_colours():
    [style] = plan_of(fw.tumbling("20m"), fw.tumbling("30m"))._repr_html_().split("<style>")[1:]
    coloured = [line for line in style.split("</style>")[0].splitlines() if "#fff" in line or "color: #" in line]
    assert all(":root" in line for line in coloured), "only a picture that stands alone has a paper of its own"
    assert "fill: currentColor" in style


def test_a_query_is_a_table():
    html = plan_of(fw.hopping("1h", "10m", name=EVIL)).query._repr_mimebundle_()["text/html"]
    cells = [cell.text for cell in ElementTree.fromstring(html.replace("<br>", " ")).iter("td")]
    assert cells == ["ts", "device", f"{EVIL}: 1 hour / 10 minutes", "min(t)", "t > 0"]


def test_a_window_says_how_long_and_how_often():
    assert fw.hopping("1h", "10m", offset="5m", name="h")._repr_mimebundle_()["text/html"] == (
        "<b>h</b>: instances of 1 hour, a new one every 10 minutes, shifted by 5 minutes"
    )
    assert fw.tumbling("20m")._repr_html_() == "<b>20 minutes</b>: instances of 20 minutes"


def test_diagrams_have_every_node_and_edge_and_escape_names():
    plan = plan_of(fw.tumbling("20m", name=EVIL), fw.tumbling("30m"), fw.tumbling("40m"))
    mermaid, dot = plan.to_mermaid(), plan.to_dot()
    assert mermaid.count("-->") == dot.count("->") == len(plan.nodes)
    assert "#60;b#62;#34;bold#34; #38; more" in mermaid
    assert '<b>\\"bold\\" & more' in dot
    hidden = sum(not node.exposed for node in plan.nodes)
    assert mermaid.count(":::hidden") == dot.count("style=dashed") == hidden > 0
