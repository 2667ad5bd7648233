"""Notebooks run from clean, and the book shows them as they are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
sys.path.insert(0, str(ROOT / "docs"))
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run_and_the_book_shows_them(path):
    import nbformat
    from render_notebooks import PAGES, execute, page

    stored = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in stored.cells), "notebooks are stored without outputs"
    text, pictures = page(path.stem, execute(path))
    shown = (PAGES / f"{path.stem}.md").read_text(encoding="utf-8")
    # Numbers may differ in their last digits from machine to machine; what was asked may not.
    for cell in stored.cells:
        assert cell.source in shown, f"docs/render_notebooks.py {path.stem} writes the page again"
    assert {picture.name for picture in PAGES.glob(f"{path.stem}-*")} == set(pictures)


def test_there_are_notebooks():
    assert {path.stem for path in NOTEBOOKS} == {"questionnaire", "diary", "videos", "gaps"}
