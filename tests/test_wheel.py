"""The wheel holds the package, its command, and nothing else."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[1]


def test_the_wheel_has_the_command_and_no_benchmark(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=120)
    [wheel] = tmp_path.glob("*.whl")
    with ZipFile(wheel) as archive:
        names = archive.namelist()
        [info] = {name.split("/")[0] for name in names} - {"factor_windows"}
        scripts = archive.read(f"{info}/entry_points.txt").decode()
        metadata = archive.read(f"{info}/METADATA").decode()
    assert "factor-windows = factor_windows.cli.main:main" in scripts
    assert {"factor_windows/cli/main.py", "factor_windows/demo/batch.py", "factor_windows/py.typed"} <= set(names)
    assert not any("bench" in name for name in names)
    assert "Provides-Extra" not in metadata
