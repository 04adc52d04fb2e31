"""The command line: `factor-windows demo | explain | rewrite | run | store | calibrate`."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from factor_windows import __version__
from factor_windows.cli import store
from factor_windows.cli.calibrate import calibrate
from factor_windows.cli.demo import demo
from factor_windows.cli.explain import explain
from factor_windows.cli.options import in_options
from factor_windows.cli.rewrite import rewrite
from factor_windows.cli.run import run
from factor_windows.errors import FactorWindowsError

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)
for command in (explain, rewrite, run, demo, calibrate):
    app.command()(command)
app.add_typer(store.app, name="store")


def main() -> None:
    """Run the command line."""
    call(app)


def call(app: typer.Typer) -> None:
    """Run an app; report invalid input in one sentence with exit code 2, a failure of Spark with 3."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    try:
        app()
    except FactorWindowsError as mistake:
        print(f"error: {in_options(str(mistake))}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    except Exception as trouble:
        if "pyspark" not in sys.modules:
            raise
        from factor_windows.spark.messages import is_of_spark, sentence

        if not is_of_spark(trouble):
            raise
        print(f"error: Spark failed: {sentence(trouble)}", file=sys.stderr)
        raise SystemExit(3) from None


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"factor-windows {__version__}")
        raise typer.Exit


@app.callback()
def show_version(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Aggregates over many windows of one stream for about the price of one.

    Exit codes: 0: success. 1: wrong result (run --verify). 2: invalid input. 3: failure while running (data, disk,
    cluster). 130: interrupted.
    """
