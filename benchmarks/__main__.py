"""Let `python -m benchmarks` measure, and `python -m benchmarks report` write the report."""

from benchmarks.commands import app
from factor_windows.cli.main import call

if __name__ == "__main__":
    call(app)
