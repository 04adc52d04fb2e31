"""The examples print what the page about them says, and the code that it shows is theirs."""

import re
import runpy
from pathlib import Path
from textwrap import indent

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "examples.md"
# Kafka has no package for this Spark, and needs a broker: tests/integrations/test_kafka.py runs that one.
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if path.stem != "kafka")


def section(example):
    """Return the code and the output that the page shows for an example."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"\(\.\./examples/{example.name}\).*?```python\n(.*?)```.*?```text\n(.*?)```", text, re.DOTALL)
    assert found, f"the page has no section about {example.name}"
    return found


@pytest.mark.long
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_its_page_says(spark, capsys, golden, example):
    runpy.run_path(str(example))["main"](spark)
    shown, text = section(example), PAGE.read_text(encoding="utf-8")
    golden(PAGE, (text[: shown.start(2)] + capsys.readouterr().out.rstrip() + text[shown.end(2) - 1 :]).rstrip("\n"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_code_on_the_page_is_the_examples(example):
    assert indent(section(example)[1], "    ") in example.read_text(encoding="utf-8")
