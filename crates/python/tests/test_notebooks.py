"""The notebooks run from their first cell to their last."""

import pytest

from conftest import ROOT

NOTEBOOKS = sorted((ROOT / "crates" / "python" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(notebook):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    book = nbformat.read(notebook, as_version=4)
    nbclient.NotebookClient(book, timeout=120, resources={"metadata": {"path": notebook.parent}}).execute()


def test_there_are_three():
    assert [path.stem for path in NOTEBOOKS] == ["adding-an-application", "design-study", "first-look"]
