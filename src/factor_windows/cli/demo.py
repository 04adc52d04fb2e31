"""`factor-windows demo`: the paper's query over generated readings, on local Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from factor_windows.cli.options import SparkOptions, Verbose
from factor_windows.errors import OptionError


def demo(
    output: Annotated[
        Path | None, typer.Option(help="The folder for the result and the page; default: demo-output.")
    ] = None,
    events: Annotated[int | None, typer.Option(min=1, help="The number of readings; default: 2000000.")] = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="Show a live table of windows over a stream instead.")
    ] = False,
    seconds: Annotated[int | None, typer.Option(min=1, help="How long to run the stream; default: 60.")] = None,
    verbose: Verbose = False,
) -> None:
    """Run the paper's query and one with ten windows on local Spark, planned and window by window, and compare."""
    given = {"--output": output, "--events": events} if stream else {"--seconds": seconds}
    for option, value in given.items():
        if value is not None:
            raise OptionError(f"{option} does nothing {'with' if stream else 'without'} --stream; leave it out")
    from factor_windows.demo import batch
    from factor_windows.demo import stream as live

    with SparkOptions(verbose=verbose).session() as spark:
        if stream:
            live.run(spark, seconds=seconds or 60)
        else:
            batch.run(spark, output or Path("demo-output"), events=events or 2_000_000)
