"""The model of the dbt example is what `factor-windows rewrite` prints, and gives what its query gives."""

from pathlib import Path

import pytest
from jinja2 import Template as Jinja

import factor_windows as fw
from factor_windows.spark.compare import differing_rows
from factor_windows.spark.naive import naive
from factor_windows.sql.templates import Template

PROJECT = Path(__file__).parents[1] / "examples" / "dbt"


def compiled(path):
    """What dbt makes of a file, where the table of a model has the model's name."""
    given = {"ref": lambda name: f"`{name}`", "config": lambda **_: ""}
    return Jinja(path.read_text(encoding="utf-8")).render(given)


def test_the_model_is_what_rewrite_prints(command, golden):
    code, out, err = command("rewrite", PROJECT / "analyses" / "temperatures.sql", "--to", "spark")
    assert code == 0, err
    golden(PROJECT / "models" / "temperatures.sql", out.removesuffix("\n"))


def test_the_model_gives_what_spark_gives_window_by_window(spark):
    readings = spark.sql(compiled(PROJECT / "models" / "readings.sql"))
    readings.createOrReplaceTempView("readings")
    query = fw.parse(compiled(PROJECT / "analyses" / "temperatures.sql"))
    found = spark.sql(compiled(PROJECT / "models" / "temperatures.sql"))
    windows = [fw.tumbling("20m"), fw.tumbling("1h"), fw.hopping("6h", "1h")]
    aggregates = ["min(temperature) AS low", "avg(temperature) AS mean"]
    same = fw.Query(time="ts", keys=["device"], windows=windows, aggregates=aggregates, where="ok")
    assert query.windows == same.windows
    assert found.columns == ["device", "window_id", "window_start", "window_end", "low", "mean"]
    assert found.count() > 500
    assert differing_rows(found, naive(same, readings)) == 0


def test_jinja_names_tables_and_stands_in_quotes_and_before_the_query():
    text = (
        "{# a note #}\n-- it's\n{{ config(tags=['a']) }}\n{% set x = 1 %}\nSELECT max(v) AS m FROM {{ ref('a') }} AS a "
        "JOIN {{ source('s', 'b') }} AS b USING (k) WHERE d = '{{ ds }}' GROUP BY window(ts, '1 hour')"
    )
    template = Template.of(text)
    assert "fw_table0 AS a JOIN fw_table1 AS b" in template.query
    assert "d = '{{ ds }}'" in template.query
    filled = template.fill(fw.optimize(fw.parse(template.query)).sql())
    assert filled.startswith("{{ config(tags=['a']) }}\n{% set x = 1 %}\nWITH")
    assert "{{ ref('a') }} AS a" in filled
    assert "{{ source('s', 'b') }} AS b" in filled
    assert "fw_table" not in filled


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("SELECT max(v) FROM r\nWHERE ts > {{ var('start') }} GROUP BY window(ts, '1 hour')", "line 2, column 12"),
        ("SELECT max(v) FROM r {% if x %} WHERE ok {% endif %} GROUP BY window(ts, '1 hour')", "line 1, column 22"),
    ],
)
def test_other_jinja_is_refused_with_its_place(command, text, place):
    code, _, err = command("rewrite", "-", input=text)
    assert code == 2
    assert place in " ".join(err.split())
    assert "dbt compile" in " ".join(err.split())
