"""The core starts no JVM: pyspark is not even loaded."""

import subprocess
import sys


def test_planning_and_explaining_never_load_pyspark():
    program = """
import sys
import factor_windows as fw
query = fw.Query(time="ts", keys=["device"], windows=[fw.tumbling("20m"), fw.tumbling("30m")], aggregates=["min(t)"])
print(fw.optimize(query, unit="1m").explain())
print([name for name in ("pyspark", "py4j", "pandas") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"
