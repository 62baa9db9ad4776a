"""The examples of docs/python.md run as they stand there, and the package says its types."""

import pathlib
import re

import pytest

import nicforge
from conftest import ROOT

PAGE = (ROOT / "docs" / "python.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_examples_run(number, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    exec(compile(EXAMPLES[number], f"docs/python.md, example {number + 1}", "exec"), {})
    for said in re.findall(r"print\(.*\)  # (.*)", EXAMPLES[number]):
        assert said in capsys.readouterr().out


def test_types_are_shipped_and_name_what_there_is():
    folder = pathlib.Path(nicforge.__file__).parent
    assert (folder / "py.typed").exists()
    stub = (folder / "_native.pyi").read_text()
    names = [name for name in dir(nicforge._native) if not name.startswith("_")]
    for of in (nicforge._native.Job, nicforge._native.Record):
        names += [name for name in vars(of) if not name.startswith("_")]
    missing = [name for name in names if not re.search(rf"\b{name}\b", stub)]
    assert not missing
