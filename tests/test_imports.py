"""The core and the command line's help start no JVM: pyspark is not even loaded, nor a solver that is not needed."""

import subprocess
import sys


def test_planning_and_explaining_load_neither_pyspark_nor_a_solver():
    program = """
import sys
import factor_windows as fw
query = fw.Query(time="ts", keys=["device"], windows=[fw.tumbling("20m"), fw.tumbling("30m")], aggregates=["min(t)"])
print(fw.optimize(query, unit="1m").explain())
print([name for name in ("pyspark", "py4j", "pandas", "scipy", "numpy") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_command_lines_help_never_loads_pyspark():
    program = """
import sys
from typer.testing import CliRunner
from factor_windows.cli.main import app
names = ("explain", "rewrite", "run", "demo", "calibrate", "store", "store read")
for command in ([], *(name.split() for name in names)):
    assert CliRunner().invoke(app, [*command, "--help"]).exit_code == 0
print([name for name in ("pyspark", "py4j", "scipy") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"
