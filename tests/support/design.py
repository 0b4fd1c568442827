"""The tree in minutch/DESIGN.md and the one on disk. `python -m tests.support.design` brings the first up to date.

A line that is there stays as it was written; a new module gets the first line of its docstring, for editing.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.support.golden import PROJECT

MINUTCH = PROJECT / "minutch"
DESIGN = MINUTCH / "DESIGN.md"
TOP = "minutch/"

_FOLDER = re.compile(r"^### `(?P<folder>[\w/]+/)`\n\n(?P<says>.*?)\n```\n(?P<lines>.*?)```\n", re.MULTILINE | re.DOTALL)

Tree = dict[str, dict[str, str]]
"""Folder → module → what it says of it."""


def listed(text: str) -> Tree:
    """The tree that a DESIGN.md shows."""
    found: Tree = {}
    for match in _FOLDER.finditer(text):
        lines = (line.split(maxsplit=1) for line in match["lines"].splitlines())
        found[match["folder"]] = {words[0]: words[1] if len(words) > 1 else "" for words in lines}
    return found


def on_disk() -> dict[str, dict[str, Path]]:
    """Folder → module → its file. `__init__` is what the folder's heading is about, but for the package itself."""
    found: dict[str, dict[str, Path]] = {}
    for path in sorted(MINUTCH.rglob("*.py")):
        folder = path.parent.relative_to(MINUTCH).as_posix()
        if folder == "." or path.stem != "__init__":
            found.setdefault(TOP if folder == "." else f"{folder}/", {})[path.stem] = path
    return found


def first_line(path: Path) -> str:
    """The first line of a module's docstring, without its stop."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0].rstrip(".")


def updated(text: str) -> str:
    """The text with a line for each module that is there, and none for others."""
    known, modules = listed(text), on_disk()
    sections = []
    for folder in [name for name in known if name in modules] + sorted(modules.keys() - known.keys()):
        match = next((found for found in _FOLDER.finditer(text) if found["folder"] == folder), None)
        says = match["says"] if match else first_line(MINUTCH / folder / "__init__.py") + ".\n"
        lines = {name: known.get(folder, {}).get(name) or first_line(path) for name, path in modules[folder].items()}
        width = max(map(len, lines)) + 2
        body = "".join(f"{name:{width}}{line}\n" for name, line in lines.items())
        sections.append(f"### `{folder}`\n\n{says}\n```\n{body}```\n")
    head, _, rest = text.partition("## The tree\n")
    intro, tail = rest.partition("\n### `")[0], rest[rest.index("\n## ") :]
    return f"{head}## The tree\n{intro}\n" + "\n".join(sections) + tail


if __name__ == "__main__":
    DESIGN.write_text(updated(DESIGN.read_text(encoding="utf-8")), encoding="utf-8")
