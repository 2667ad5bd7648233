"""Executes the notebooks of `examples/notebooks` and writes each as a page of the book, with its pictures.

    python docs/render_notebooks.py

Needs the package and `crates/ramp-py/requirements-test.txt`.
"""

from __future__ import annotations

import base64
import os
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "examples" / "notebooks"
PAGES = ROOT / "docs" / "src" / "notebooks"


def execute(path: Path) -> Any:
    """The notebook with its outputs, from clean."""
    import nbformat
    from nbclient import NotebookClient

    # Pictures belong into the notebook, whatever the shell says.
    os.environ.pop("MPLBACKEND", None)
    book = nbformat.read(path, as_version=4)
    client = NotebookClient(book, timeout=600, resources={"metadata": {"path": str(path.parent)}})
    client.execute()
    return book


def text_of(output: Any) -> str:
    """What an output says in plain text."""
    if output.output_type == "stream":
        return "" if output.name == "stderr" else output.text
    return output.get("data", {}).get("text/plain", "")


def page(name: str, book: Any) -> tuple[str, dict[str, bytes]]:
    """A page of the book, and its pictures by name."""
    parts, pictures = [], {}
    for cell in book.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/png" in data:
                file = f"{name}-{len(pictures) + 1}.png"
                pictures[file] = base64.b64decode(data["image/png"])
                parts.append(f"![]({file})")
            elif "<svg" in data.get("text/html", ""):
                file = f"{name}-{len(pictures) + 1}.svg"
                svg = re.search(r"<svg.*?</svg>", data["text/html"], re.S)
                pictures[file] = svg.group(0).replace("currentColor", "black").encode() if svg else b""
                parts.append(f"![]({file})")
            else:
                text = text_of(output).rstrip()
                if text and not text.startswith("<IPython"):
                    parts.append(f"```text\n{text}\n```")
    parts.append(f"This page is `examples/notebooks/{name}.ipynb`, executed.")
    return "\n\n".join(parts) + "\n", pictures


def main() -> None:
    PAGES.mkdir(parents=True, exist_ok=True)
    wanted = sys.argv[1:]
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if wanted and path.stem not in wanted:
            continue
        text, pictures = page(path.stem, execute(path))
        for old in PAGES.glob(f"{path.stem}-*"):
            old.unlink()
        (PAGES / f"{path.stem}.md").write_text(text, encoding="utf-8")
        for name, content in pictures.items():
            (PAGES / name).write_bytes(content)
        print(f"{path.stem}: {len(pictures)} pictures")


if __name__ == "__main__":
    main()
