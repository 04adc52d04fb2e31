"""A plan as one self-contained page: time line, graphs, costs and SQL. Its behaviour is in `assets/page.js`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from html import escape
from importlib.resources import files
from itertools import islice
from string import Template
from typing import Any

from factor_windows.algebra.coverage import stride
from factor_windows.algebra.growing import Growing
from factor_windows.algebra.session import Session
from factor_windows.algebra.slices import Segmentation, Slices, mean_length
from factor_windows.algebra.window import Window, readable
from factor_windows.cost.model import Cost, share
from factor_windows.cost.spark import SparkCost
from factor_windows.cost.timing import Timing
from factor_windows.errors import FactorWindowsError, OptionError
from factor_windows.explain.alternatives import alternatives, saves
from factor_windows.explain.picture import fits_across, picture
from factor_windows.explain.text import bill, number, rate, reads, rows_saved, signed, summary
from factor_windows.plan import Plan
from factor_windows.tree import Pass, PlanNode

DIALECTS = {"spark": "Spark", "duckdb": "DuckDB", "flink": "Flink"}
SPAN_RANGES = 3
"""The length of the time line, in longest ranges."""
SHOWN_FROM = 1_703_980_800_000_000
"""The last day of 2023, from which calendars are drawn: January has not started anywhere yet."""
MOST_INSTANCES = 2_500
"""The most instances of a calendar that are listed; if there are more, the page says about how many."""
LEAST_SHOWN = 0.0005
"""Nodes with a smaller share of the naive cost are combined in one row."""
ZOOM = (
    '<div class="zoom" hidden><button type="button" data-zoom="in" aria-label="Zoom in">+</button>'
    '<button type="button" data-zoom="out" aria-label="Zoom out">−</button>'
    '<button type="button" data-zoom="fit">Fit</button></div>'
)


def page(plan: Plan, *, measured: Timing | Mapping[str, float] | None = None) -> str:
    """Write a plan as a page; `measured` gives the times of runs, or the seconds of one: `plan`, perhaps `naive`."""
    if len(plan.passes) > 1:
        raise OptionError(f"a page explains one pass over the events; these queries need {len(plan.passes)}")
    [tree] = plan.passes
    assets = files("factor_windows.explain") / "assets"
    what, gain, *quality = summary(tree)
    gain = gain[0].upper() + gain[1:]
    across = fits_across(tree)
    return Template((assets / "page.html").read_text(encoding="utf-8")).substitute(
        title=escape(what),
        summary=escape(" ".join([gain + ".", *(line[0].upper() + line[1:] + "." for line in quality)])),
        css=(assets / "page.css").read_text(encoding="utf-8"),
        figures="\n".join(f"<li><b>{escape(value)}</b> {escape(label)}</li>" for label, value in _figures(tree)),
        measured=_measured(tree, measured if isinstance(measured, Timing) else Timing.of(measured)) if measured else "",
        zoom=ZOOM,
        queries=_queries(plan) if not plan.is_single else "",
        before=picture(tree.naive(), across=across),
        after=picture(tree, across=across),
        coverage=picture(tree, across=across, possible=_possible(tree)),
        unit=escape(_unit(tree)),
        rows="\n".join(_rows(tree)),
        sql="\n".join(_sql(plan.sql)),
        data=_in_script(json.dumps(_data(tree), ensure_ascii=False)),
        script=(assets / "page.js").read_text(encoding="utf-8").replace("</script", "<\\/script"),
    )


def _in_script(text: str) -> str:
    """Escape JSON so that nothing in it can end the script that contains it."""
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _figures(plan: Pass) -> Iterator[tuple[str, str]]:
    yield "cheaper, predicted", f"{share(plan.naive_cost, plan.cost):.1f} ×"
    windows = sum(len(member.query.names) for member in plan.workload.members)
    for noun, count in (("window", windows), ("hidden node", sum(not node.exposed for node in plan.nodes))):
        yield f"{noun}{'s' * (count != 1)}", str(count)
    yield "quality of the search", plan.status.replace("_", " ")


def _possible(plan: Pass) -> Iterator[tuple[str, str]]:
    """List the edges between nodes that were not chosen."""
    for node in plan.nodes:
        yield from ((other.parent, node.name) for other in alternatives(plan, node) if other.parent is not None)


def _queries(plan: Plan) -> str:
    """List the queries, and what each pays for."""
    windows = {query.name: ", ".join(window.name for window in query.windows) for query in plan.queries}
    *rows, (together, alone, paid) = bill(plan)
    cells = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(windows[name])}</td><td>{own}</td><td>{part}</td></tr>"
        for name, own, part in rows
    )
    return (
        '<section><h2>Who pays</h2><div class="scroll" tabindex="0" role="region" aria-label="Queries"><table><caption>'
        "What each query costs alone, and what it pays in this plan: queries that need a node share its cost equally."
        '</caption><thead><tr><th scope="col">query</th><th scope="col">windows</th><th scope="col">alone</th>'
        f'<th scope="col">pays</th></tr></thead><tbody>{cells}<tr class="sum"><td>{together}</td><td></td>'
        f"<td>{alone}</td><td>{paid}</td></tr></tbody></table></div></section>"
    )


def _measured(plan: Pass, measured: Timing) -> str:
    """Show measured times next to the predicted ones."""
    said = str(measured)
    said = f"<p>{said[0].upper()}{said[1:]}.</p>"
    if measured.gain is None:
        return f"<section><h2>Measured</h2>{said}</section>"
    gains = (share(plan.naive_cost, plan.cost), measured.gain)
    most = max(gains)
    rows = "".join(
        f'<tr><td>{label}</td><td>{gain:.1f} ×</td><td><meter min="0" max="{most:.3f}" value="{gain:.3f}" '
        f'aria-label="{label}: {gain:.1f} times"></meter></td></tr>'
        for label, gain in zip(("predicted", "measured"), gains, strict=True)
    )
    return (
        f"<section><h2>Predicted and measured</h2>{said}"
        f'<table><thead><tr><th scope="col">gain</th><th scope="col">times</th><th scope="col">'
        f'<span class="off">bar</span></th></tr></thead><tbody>{rows}</tbody></table></section>'
    )


def _unit(plan: Pass) -> str:
    if isinstance(plan.cost_model, SparkCost):
        return f"Costs are updates of one event for one instance, for every {readable(plan.cost_model.unit)} of time."
    return "Costs are what all instances within one period read."


def _rows(plan: Pass) -> Iterator[str]:
    small = []
    for node in plan.nodes:
        part = share(node.cost, plan.naive_cost)
        if part < LEAST_SHOWN:
            small.append(node)
            continue
        css = "" if node.exposed else ' class="hidden"'
        meter = f'<meter min="0" max="1" value="{min(1.0, part):.4f}" aria-label="{part:.1%} of naive"></meter>'
        yield (
            f"<tr><td{css}>{escape(node.label)}</td><td>{escape(reads(plan, node))}</td>"
            f"<td>{number(node.cost)}</td><td>{part:.1%}</td><td>{meter}</td></tr>"
        )
    if small:
        count = f"{len(small)} other node{'s' * (len(small) > 1)}"
        cost = number(sum(node.cost for node in small))
        yield f"<tr><td>{count}</td><td></td><td>{cost}</td><td>under 0.1% each</td><td></td></tr>"
    total = share(plan.cost, plan.naive_cost)
    yield f'<tr class="sum"><td>all</td><td></td><td>{number(plan.cost)}</td><td>{total:.1%}</td><td></td></tr>'
    yield f"<tr><td>naive</td><td></td><td>{number(plan.naive_cost)}</td><td>100.0%</td><td></td></tr>"


def _sql(write: Callable[..., str]) -> Iterator[str]:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import SqlLexer

    opened = " open"
    for dialect, name in DIALECTS.items():
        try:
            text = write(dialect=dialect)
        except FactorWindowsError as problem:
            yield f"<p>Not as SQL for {name}: {escape(str(problem))}.</p>"
            continue
        coloured = highlight(text, SqlLexer(), HtmlFormatter(nowrap=True))
        yield (
            f"<details{opened}><summary>{name}</summary>"
            f'<button class="copy" type="button" data-of="sql-{dialect}" hidden>Copy</button>'
            f'<pre tabindex="0" role="region" aria-label="SQL for {name}"><code id="sql-{dialect}">{coloured}</code>'
            "</pre></details>"
        )
        opened = ""


def _data(plan: Pass) -> dict[str, Any]:
    """Return the data that the page draws."""
    base = SHOWN_FROM if any(_clocks(node.window) for node in plan.nodes) else 0
    longest = max(node.window.range if isinstance(node.window, Slices) else node.window.length for node in plan.nodes)
    span = SPAN_RANGES * longest
    readers = plan.readers if len(plan.workload.members) > 1 else {}
    return {
        "rate": rate(plan),
        "base": base,
        "span": span,
        "nodes": [
            {
                "id": node.name,
                "label": node.label,
                "kind": node.kind,
                "parent": node.parent,
                "reads": float(plan.reads(node)) if plan.reads(node) < 10**15 else 0,
                "facts": [*facts(plan, node), *([("for", ", ".join(readers[node.name]))] if readers else [])],
                **_lengths(node.window, base, span),
            }
            for node in plan.nodes
        ],
    }


def _clocks(segmentation: Segmentation) -> bool:
    """Say whether the length of instances depends on a clock."""
    if isinstance(segmentation, Slices):
        return bool(segmentation.calendars)
    return any(part.clock for part in segmentation.parts)


def _lengths(segmentation: Segmentation, base: int, span: int) -> dict[str, Any]:
    """Return what the time line draws: lengths or, if instances differ in length, all instances themselves."""
    if isinstance(segmentation, Session):
        # Their positions depend on the events.
        return {"instances": []}
    if _clocks(segmentation) or isinstance(segmentation, Growing):
        instances = _instances(segmentation, base, base + span)
        found = [[start - base, end - base] for start, end in islice(instances, MOST_INSTANCES)]
        if next(instances, None) is None:
            return {"instances": found}
        distance = mean_length(segmentation) if isinstance(segmentation, Slices) else segmentation.distance
        return {"instances": found, "about": round(span / distance)}
    if isinstance(segmentation, Slices):
        return {"edges": [{"step": step, "offset": (offset - base) % step} for step, offset in segmentation.edges]}
    return {
        "range": segmentation.range,
        "slide": segmentation.slide,
        "offset": (segmentation.offset - base) % segmentation.slide,
        "stride": stride(segmentation),
    }


def _instances(segmentation: Window | Growing | Slices, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """List the instances within a span of time, by their starts."""
    # An instance starts at a start of `pace`; for a growing window, that is the start of a step.
    pace: Window | Growing | Slices = segmentation
    if not isinstance(segmentation, Slices):
        last = segmentation.parts[-1]
        pace = replace(last, range=last.slide)
    _, at = pace.bounds_of(pace.starts_of(begin - 1)[0])
    while at < end:
        bounds = segmentation.bounds_of(at)
        if begin <= bounds[0] and bounds[1] <= end:
            yield bounds
        _, at = pace.bounds_of(at)


def facts(plan: Pass, node: PlanNode) -> Iterator[tuple[str, str]]:
    """List the facts about a node, as terms and descriptions."""
    yield (
        "shown as" if node.exposed else "hidden",
        ", ".join(node.shown_as) or "added because it saves more than it costs",
    )
    if isinstance(node.window, Window) and node.window.clock is None:
        yield "instances", f"{readable(node.window.range)} long, every {readable(node.window.slide)}"
    elif node.exposed and node.window.label not in node.shown_as:
        yield "instances", node.window.label
    yield "reads", reads(plan, node)
    yield "cost", f"{number(node.cost)}, {share(node.cost, plan.naive_cost):.1%} of naive"
    yield "formula", _formula(plan, node)
    model = plan.cost_model
    if isinstance(model, SparkCost):
        yield "rows it gives", f"{number(model.rows(node.window) * 1_000_000 / model.unit)} a second"
    if (saved := rows_saved(plan, node)) is not None:
        yield "rows it saves", f"{number(saved)} a second, against reading the raw events"
    if not node.exposed:
        yield "without it", f"the plan would cost {signed(saves(plan, node))}"
    others = [f"{other.parent or 'raw events'} {signed(other.extra)}" for other in alternatives(plan, node)[:3]]
    if others:
        yield "instead it could read", "; ".join(others)


def _formula(plan: Pass, node: PlanNode) -> str:
    """Write a node's cost as a product."""
    model = plan.cost_model
    above: Segmentation | None = next((other.window for other in plan.nodes if other.name == node.parent), None)
    factors: list[tuple[Cost, str]] = [(model.recurrence_count(node.window), "instances"), (plan.reads(node), "reads")]
    if model.weight(above) != 1:
        factors.append((model.weight(above), "for each"))
    product = " × ".join(f"{number(value)} {unit}" for value, unit in factors)
    extra = model.overhead(node.window, above)
    return f"{product}{f' + {number(extra)} for moving rows' if extra else ''} = {number(node.cost)}"
