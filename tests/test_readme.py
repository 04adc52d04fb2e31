"""What the README shows is what happens."""

from pathlib import Path

ROOT = Path(__file__).parents[1]


def fenced(text):
    """List the fenced blocks as (language, content)."""
    parts = text.split("```")[1::2]
    return [(part.split("\n", 1)[0], part.split("\n", 1)[1]) for part in parts]


def test_the_readmes_code_prints_what_the_readme_says(spark, capsys):
    events = spark.range(1000).selectExpr(
        "timestamp_micros(id * 60000000) AS ts", "id % 3 AS device", "20.0 + id % 7 AS temperature", "id % 2 = 0 AS ok"
    )
    names = {"events": events}
    blocks = fenced((ROOT / "README.md").read_text(encoding="utf-8"))
    ran = 0
    for (language, code), (following, output) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if language == "python":
            exec(compile(code, "README.md", "exec"), names)
            if following == "text":
                assert capsys.readouterr().out == output
            ran += 1
    assert ran
    assert set(names["result"].columns) >= {"device", "window_id", "window_start", "window_end", "mean_t"}


def test_the_links_of_all_documents_lead_somewhere():
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        for target in document.read_text(encoding="utf-8").split("](")[1:]:
            path = target.split(")")[0].split("#")[0]
            if not path.startswith("http"):
                assert (document.parent / path).exists(), f"{document.name} links to {path}"


def test_the_picture_is_well_formed_and_escapes_names(tmp_path):
    from xml.etree import ElementTree

    import factor_windows as fw
    from factor_windows.explain.picture import picture

    windows = [fw.tumbling("20m", name="<script>alert(1)</script>"), fw.tumbling("30m"), fw.tumbling("40m")]
    plan = fw.optimize(fw.Query(time="ts", windows=windows, aggregates=["min(t)"]), unit="1m")
    drawn = ElementTree.fromstring(picture(plan))
    texts = [element.text for element in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert "(10 minutes)" in texts
    assert not list(drawn.iter("{http://www.w3.org/2000/svg}script"))


def test_the_code_about_streams_runs(spark, tmp_path):
    rate = spark.readStream.format("rate").load()
    stream = rate.selectExpr("timestamp AS ts", "value % 3 AS device", "1.5 * value AS temperature")
    provider = spark.conf.get("spark.sql.streaming.stateStore.providerClass")
    names = {"spark": spark, "stream": stream, "checkpoint": str(tmp_path / "checkpoint")}
    try:
        for language, code in fenced((ROOT / "docs" / "streaming.md").read_text(encoding="utf-8")):
            if language == "python":
                exec(compile(code, "streaming.md", "exec"), names)
        assert names["running"].isActive
        names["running"].stop()
    finally:
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
