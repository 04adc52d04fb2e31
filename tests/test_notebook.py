"""The example notebook runs from top to bottom, in the interpreter that runs the tests."""

import sys
from pathlib import Path

import nbformat
import pytest
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[1] / "examples" / "factor_windows.ipynb"


@pytest.mark.long
def test_the_notebook_runs_and_shows_what_it_speaks_of(interpreting):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.outputs or cell.execution_count for cell in notebook.cells if cell.cell_type == "code")
    notebook.cells.append(nbformat.v4.new_code_cell("import sys; print(sys.executable)"))
    # With no folders to look in there is one kernel only: this interpreter's.
    manager = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
    NotebookClient(notebook, km=manager, timeout=300).execute(cleanup_kc=True)
    shown = [shown_by(cell) for cell in notebook.cells if cell.cell_type == "code"]
    assert shown[-1].strip() == sys.executable
    assert "coldest" in shown[0]
    assert "20 minutes" in shown[1]
    assert "raw events" in shown[2]
    assert "window_start" in shown[3]
    assert "readings_hourly" in shown[4]
    assert "readings over 20 minutes" in shown[5]


def shown_by(cell):
    """Return what a cell prints and what it evaluates to, as text."""
    return "".join(output.get("text", "") or output.get("data", {}).get("text/plain", "") for output in cell.outputs)
