"""What the README and the pages show is what happens, and the site builds."""

import os
import re
import runpy
import subprocess
import sys
from dataclasses import fields
from importlib import import_module
from itertools import chain, pairwise
from operator import attrgetter
from pathlib import Path
from textwrap import dedent
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt
from typer.main import get_command

import factor_windows as fw
from factor_windows.cli.main import app
from factor_windows.cost.prices import Prices
from factor_windows.explain.picture import picture
from factor_windows.functions.table import FUNCTIONS
from factor_windows.search import SEARCHES

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TESTED_ELSEWHERE = {"examples.md"}
RUN = ("explain", "rewrite")
"""The commands that are run; others start Spark, and are only read."""
GIVEN = {"spark", "events", "stream"}
"""What a page may use without making it."""
QUERY = "SELECT device, window.end AS till, min(t) AS low FROM readings GROUP BY device, window(ts, '20 minutes')"
commands = runpy.run_path(str(ROOT / "docs" / "pictures.py"))["commands"]


def blocks(page):
    """List the fenced blocks, each with the block of text that follows it at once, if one does."""
    tokens = MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8"))
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type == "fence":
            output = following if following and following.type == "fence" and following.info == "text" else None
            yield token.info, token.content, output


def shown_commands():
    """List the arguments of every call of the command line in a block."""
    for page in PAGES:
        for language, code, _ in blocks(page):
            if language in ("sh", "console"):
                yield from commands(code)


def rows(page, *header):
    """List the rows of the tables in a page that have this header."""
    found = []
    inside = False
    for line in (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        inside = bool(cells) and (inside or cells == list(header))
        if inside:
            found.append(cells)
    assert found[:1] == [list(header)]
    return [cells for cells in found if cells != list(header) and set(cells[0]) != {"-"}]


def quoted(cell):
    return re.findall(r"`([^`]+)`", cell)


@pytest.fixture
def events(spark):
    return spark.range(1000).selectExpr(
        "timestamp_micros(id * 60000000) AS ts", "id % 3 AS device", "20.0 + id % 7 AS temperature", "id % 2 = 0 AS ok"
    )


@pytest.fixture
def stream(spark):
    provider = spark.conf.get("spark.sql.streaming.stateStore.providerClass")
    rate = spark.readStream.format("rate").load()
    yield rate.selectExpr("timestamp AS ts", "value % 3 AS device", "1.5 * value AS temperature")
    for query in spark.streams.active:
        query.stop()
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)


@pytest.fixture
def run(request, tmp_path, monkeypatch, capsys):
    """Run all blocks of a page in one namespace; compare what they print, or write it there with --update-golden."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pictures").mkdir()
    (tmp_path / "query.sql").write_text(QUERY, encoding="utf-8")
    (tmp_path / "dashboards.sql").write_text(f"{QUERY}; {QUERY}".replace("'20", "'50", 1), encoding="utf-8")

    def run_page(page):
        names = {"checkpoint": str(tmp_path / "checkpoint"), "folder": str(tmp_path / "results")}
        printed = []
        for language, code, output in blocks(page):
            if language == "python":
                compiled = compile(code, page.name, "exec")
                names |= {name: request.getfixturevalue(name) for name in GIVEN & {*compiled.co_names} - names.keys()}
                exec(compiled, names)
            elif language == "sh":
                for arguments in commands(code):
                    if arguments[0] in RUN:
                        app(arguments, standalone_mode=False)
            elif language == "sql":
                parsed = fw.parse(code)
                assert {type(query) for query in (parsed if isinstance(parsed, list) else [parsed])} == {fw.Query}
            shown = capsys.readouterr().out
            if output is not None:
                printed.append((output, shown))
        if request.config.getoption("--update-golden"):
            write_down(page, printed)
        else:
            for output, shown in printed:
                assert shown == output.content
        return names

    return run_page


def write_down(page, printed):
    """Put what was printed into the page, the last block first, so that the places of the others stay what they are."""
    lines = page.read_text(encoding="utf-8").splitlines(keepends=True)
    for output, shown in reversed(printed):
        first, end = output.map
        lines[first + 1 : end - 1] = [shown]
    page.write_text("".join(lines), encoding="utf-8")


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in TESTED_ELSEWHERE], ids=lambda page: page.name
)
def test_a_pages_code_prints_what_the_page_says(run, page):
    names = run(page)
    if page.name == "README.md":
        assert set(names["result"].columns) >= {"device", "window_id", "window_start", "window_end", "mean_t"}
    if page.name == "streaming.md":
        assert names["running"].isActive


def test_the_readmes_code_has_the_types_that_strict_mypy_wants(tmp_path):
    """With the project's own settings, so that the cache of `make check` serves here too."""
    code = [content for language, content, _ in blocks(ROOT / "README.md") if language == "python"]
    given = "from pyspark.sql import DataFrame\n\nevents: DataFrame\n"
    (tmp_path / "readme.py").write_text(given + "\n".join(code), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", str(tmp_path / "readme.py")]
    environment = os.environ | {"MYPYPATH": "src"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout.count("error:")) == (0, 0), done.stdout


def test_every_command_that_a_page_shows_can_be_given():
    seen = set()
    for name, *arguments in shown_commands():
        command = get_command(app).commands[name]
        if arguments and arguments[0] in getattr(command, "commands", {}):
            command = command.commands[arguments.pop(0)]
        assert command.make_context(name, arguments).info_name == name
        seen.add(name)
    assert seen >= {"explain", "rewrite", "run", "demo", "calibrate"}


def test_code_that_needs_what_is_not_here_compiles():
    shown = [code for page in PAGES for language, code, _ in blocks(page) if language == "py"]
    assert any("airflow" in code for code in shown)
    for code in shown:
        compile(dedent(code), "a page", "exec")


def test_what_the_page_of_integrations_shows_is_in_the_example_that_it_names():
    text = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")
    shown = re.findall(r"From \[[^]]*\]\(\.\./(examples/[^)]*)\):\n\n```\w+\n(.*?)```", text, re.DOTALL)
    assert len(shown) == text.count("From [")
    for example, code in shown:
        assert code in (ROOT / example).read_text(encoding="utf-8")


def test_every_target_that_a_page_names_is_in_the_makefile():
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for page in PAGES:
        for _, code, _ in blocks(page):
            assert set(re.findall(r"^make (\w+)", code, re.MULTILINE)) <= set(targets)


def anchors(document):
    """List the anchors of a page's headings, as GitHub and the site name them."""
    tokens = MarkdownIt("commonmark").parse(document.read_text(encoding="utf-8"))
    titles = [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles}


def links(document):
    """List where the links and pictures of a page lead within the project, each as a path and an anchor."""
    tokens = MarkdownIt("commonmark").enable("table").parse(document.read_text(encoding="utf-8"))
    for part in chain.from_iterable(token.children or () for token in tokens):
        target = part.attrs.get("href") or part.attrs.get("src") or ""
        if target and not target.startswith("http"):
            path, _, anchor = target.partition("#")
            yield document.parent / path if path else document, anchor


def test_the_links_of_all_documents_lead_somewhere():
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        text = document.read_text(encoding="utf-8")
        for path, anchor in links(document):
            drawn_by_the_page = f"--svg {path.parent.name}/{path.name}\n" in text
            assert drawn_by_the_page or path.exists(), f"{document.name} links to {path}"
            assert not anchor or anchor in anchors(path), f"{document.name} links to {path.name}#{anchor}"


def test_the_ten_tasks_of_a_newcomer_are_one_click_from_the_readme():
    tasks = dict(rows("../README.md", "I want to ...", "where"))
    words = ["install", "result", "SQL", "Kafka", "month", "why", "right", "change", "cluster", "help"]
    assert [[word for word in words if word in task] for task in tasks] == [[word] for word in words]
    assert all("](" in where for where in tasks.values())


def test_the_picture_is_well_formed_and_escapes_names():
    windows = [fw.tumbling("20m", name="<script>alert(1)</script>"), fw.tumbling("30m"), fw.tumbling("40m")]
    query = fw.Query(time="ts", windows=windows, aggregates=["min(t)"])
    plan = fw.optimize(query, search="factor", cost="paper", unit="1m")
    drawn = ElementTree.fromstring(picture(plan.passes[0]))
    texts = [element.text for element in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert "(10 minutes)" in texts
    assert not list(drawn.iter("{http://www.w3.org/2000/svg}script"))


def test_the_table_of_functions_has_every_function_in_its_class():
    shown = {}
    for names, kind, synonyms, _ in rows("windows-and-functions.md", "function", "class", "also called", "result"):
        assert {FUNCTIONS[name].name for name in quoted(synonyms)} <= {*quoted(names)}
        shown |= dict.fromkeys([*quoted(names), *quoted(synonyms)], kind)
    assert shown == {name: function.kind.name.lower().replace("_", "-") for name, function in FUNCTIONS.items()}


def test_the_tables_of_prices_and_searches_are_complete():
    prices = [quoted(name) for name, _ in rows("cost.md", "price", "for")]
    assert prices == [[field.name] for field in fields(Prices)]
    assert [quoted(name) for name, _ in rows("cost.md", "`search`", "what it does")] == [[name] for name in SEARCHES]


def test_what_the_map_of_the_paper_points_at_is_there():
    table = rows("paper-map.md", "paper", "what", "code", "held by") + rows("paper-map.md", "what", "code", "held by")
    for *_, code, tests in table:
        path, *names = quoted(code)
        package = "" if path.startswith("benchmarks/") else "factor_windows."
        module = import_module(package + path.removesuffix(".py").replace("/", "."))
        assert [name for name in names if attrgetter(name)(module) is None] == []
        assert [test for test in quoted(tests) if not (ROOT / test).exists()] == []


def test_the_reference_has_an_example_of_every_public_name():
    code = "".join(content for language, content, _ in blocks(ROOT / "docs" / "api.md") if language in ("python", "py"))
    assert [name for name in fw.__all__ if not re.search(rf"\bfw\.{name}\b", code)] == []


def test_the_site_builds_without_warnings_and_needs_no_network(tmp_path):
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "docs", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    reference = (tmp_path / "api.html").read_text(encoding="utf-8")
    assert all(f'id="factor_windows.{name}"' in reference for name in fw.__all__)
    for page in tmp_path.glob("*.html"):
        assert not re.search(r'<(script|link|img)[^>]*(src|href)="(https?:)?//', page.read_text(encoding="utf-8"))


def test_the_picture_of_the_architecture_is_that_of_the_imports(golden):
    golden(ROOT / "docs" / "architecture.svg", runpy.run_path(str(ROOT / "docs" / "import_graph.py"))["picture"]())
