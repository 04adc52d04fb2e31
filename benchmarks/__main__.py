"""Run `python -m benchmarks` to measure, and `python -m benchmarks report` to write the report."""

from benchmarks.commands import app
from factor_windows.cli.main import call

if __name__ == "__main__":
    call(app)
