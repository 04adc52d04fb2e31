"""A plan for a terminal: the same tree as the text, in colour, with a bar for each cost and hidden nodes dimmed."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from factor_windows.explain.text import Line, summary, tree
from factor_windows.plan import Plan

BAR = 16
"""The length of the bar for the whole naive cost, in characters."""
EIGHTHS = " ▏▎▍▌▋▊▉█"


def show(plan: Plan, console: Console) -> None:
    """Print a plan's summary and tree; as plain text, if the output is not a terminal."""
    if not console.is_terminal or not plan.is_single:
        console.print(Text(plan.explain()))
        return
    first, gain, *quality = summary(plan.passes[0])
    console.print(Text(first, style="bold"))
    console.print(Text(gain, style="green" if plan.cost < plan.naive_cost else "yellow"))
    for sentence in quality:
        console.print(Text(sentence, style="dim"))
    console.print()
    table = Table.grid(padding=(0, 2))
    for justify in ("left", "right", "right", "left", "left"):
        table.add_column(justify=justify, no_wrap=True)
    for line in tree(plan.passes[0]):
        table.add_row(
            Text.assemble((line.branch, "dim"), (line.name, "dim italic" if line.hidden else "")),
            line.cost,
            line.percent,
            Text(bar(line), style="cyan"),
            Text(line.note, style="dim", overflow="ellipsis"),
        )
    console.print(table)


def bar(line: Line) -> str:
    """Draw a share as a bar of eighths of characters; any share above zero is visible.

    >>> [bar(Line("", "", "1", part, "")) for part in (0.0, 0.001, 0.5, 7.0)]
    ['', '▏', '████████', '████████████████']
    """
    eighths = min(8 * BAR, max(round(8 * BAR * line.part), 1 if line.part else 0))
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()
