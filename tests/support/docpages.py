"""Reads the fenced blocks of README and minutch/docs/*.md, and splits them into the lines that a
shell runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.support.golden import PROJECT

DOCS = PROJECT / "minutch" / "docs"
PAGES = {"README": PROJECT / "README.md"} | {path.stem: path for path in sorted(DOCS.glob("*.md"))}
_FENCE = re.compile(
    r"(?:^`(?P<file>[\w./@-]+)`\n\n)?^```(?P<language>\w*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


@dataclass(frozen=True)
class Block:
    """A fenced block. `file` is the name that stands before it, if it is the text of a file."""

    language: str
    body: str
    file: str | None

    @property
    def lines(self) -> list[str]:
        """The commands of a shell block, continued lines joined."""
        return [line for line in re.sub(r"\\\n\s*", "", self.body).splitlines() if line.strip()]


def text(page: str) -> str:
    """A page."""
    return PAGES[page].read_text(encoding="utf-8")


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [
        Block(match["language"], match["body"], match["file"])
        for match in _FENCE.finditer(text(page))
    ]


def spans(page: str) -> list[str]:
    """Returns the texts in backticks within the prose of a page."""
    return _SPAN.findall(_FENCE.sub("", text(page)))


def write_files(page: str, folder: Path) -> None:
    """Write the files that a page shows."""
    for block in blocks(page):
        if block.file is not None:
            path = folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.body, encoding="utf-8")
