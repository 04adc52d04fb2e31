"""`factor-windows demo`: the paper's query over generated readings, on local Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    output: Annotated[Path, typer.Option(help="Where the result and the page go.")] = Path("demo-output"),
    events: Annotated[int, typer.Option(min=1, help="How many readings to make.")] = 2_000_000,
    stream: Annotated[bool, typer.Option("--stream", help="Watch a stream instead: a live table of windows.")] = False,
    seconds: Annotated[int, typer.Option(min=1, help="How long to watch the stream.")] = 60,
) -> None:
    """Run the paper's query and one of ten windows on local Spark, naive and planned, and compare."""
    from factor_windows.demo import batch
    from factor_windows.demo import stream as live
    from factor_windows.spark.session import session

    if stream:
        live.run(session(), seconds=seconds)
    else:
        batch.run(session(), output, events=events)
