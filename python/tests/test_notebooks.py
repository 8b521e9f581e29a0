"""The notebooks of docs/notebooks run from top to bottom, and show tables and figures."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) == 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_committed_with_its_outputs(path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(path, as_version=4)
    assert kinds(notebook) >= {"text/html", "image/png"}, "tables and figures are to be seen without running it"
    assert str(Path.home()) not in path.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path: Path, binary: str, tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient").NotebookClient
    import sys

    os.environ |= {"SUIRO_BINARY": binary, "SUIRO_PYTHON": sys.executable}
    os.environ.pop("MPLBACKEND", None)
    notebook = nbformat.read(path, as_version=4)
    before = kinds(notebook)
    client(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    # `SUIRO_REGENERATE=1` keeps what was executed as the committed notebook.
    if "SUIRO_REGENERATE" in os.environ:
        for cell in notebook.cells:
            cell.metadata = {}
        nbformat.write(notebook, path)
    else:
        assert kinds(notebook) == before


def kinds(notebook: object) -> set[str]:
    """The kinds of output that its cells have."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]  # type: ignore[attr-defined]
    return {kind for output in outputs for kind in output.get("data", {})}
