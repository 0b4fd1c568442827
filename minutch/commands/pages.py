"""The docs that ship with the package (`minutch/docs`): which pages there are, and a page as plain
text in 80 columns.

Pages are Markdown. Shown are headings, paragraphs, lists, tables and fenced blocks; fenced blocks
stay as they are.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from functools import cache
from itertools import groupby, zip_longest
from pathlib import Path

from minutch.commands import flow

FOLDER = Path(__file__).parent.parent / "docs"
TOPICS = (
    "crawling", "profile", "explain", "whatif", "audit", "learn", "visits", "report", "sql",
    "python", "indexing", "maintext", "assistants", "rights", "corpus", "archives", "plugins",
    "operating", "lasting", "recipes", "cluster", "compatibility", "formats", "speed", "versions",
    "changes",
)  # fmt: skip
"""The pages, in the order in which they are listed."""
PREFIX = "docs/"
"""Stands before a page whose name is a command's, too: `minutch help docs/sql`."""
WIDTH = 80
_DOCUMENTED = {
    "arc2segment": "archives", "changes": "visits", "export": "archives", "export corpus": "corpus",
    "export warc": "archives", "fsck": "operating", "indexchecker": "indexing", "text": "maintext",
}  # fmt: skip
"""Commands that are documented on another page than the first that uses them."""
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
_ITEM = re.compile(r"(- |\d+\. )(.*)")
_FENCED = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def find(name: str) -> str | None:
    """Returns the page that `minutch help NAME` shows; None, too, if a command is called so."""
    topic = name.removeprefix(PREFIX)
    if topic in TOPICS and (topic != name or flow.find(name) is None):
        return topic
    return None


def names() -> list[str]:
    """Every page by the name to ask for it."""
    return [topic if find(topic) else f"{PREFIX}{topic}" for topic in TOPICS]


@cache
def text(topic: str) -> str:
    """A page as it is stored."""
    return (FOLDER / f"{topic}.md").read_text(encoding="utf-8")


def purpose(topic: str) -> str:
    """Returns the sentence that a page begins with."""
    return _plain(" ".join(text(topic).split("\n\n")[1].split()))


def about(command: str) -> str | None:
    """Returns the page to read about a command, by the name to ask for it: the one of that name, or
    the first that uses it; of a few commands another one.
    """
    if command in _DOCUMENTED:
        return _DOCUMENTED[command]
    if command in TOPICS:
        return f"{PREFIX}{command}"
    use = re.compile(rf"\bminutch {re.escape(command)}(?![\w.])")
    uses = (
        name
        for name, topic in zip(names(), TOPICS, strict=True)
        if any(map(use.search, _FENCED.findall(text(topic))))
    )
    return next(uses, None)


def rendered(topic: str) -> str:
    """Returns a page as plain text."""
    lines = [line for block in _blocks(text(topic).splitlines()) for line in [*_shown(block), ""]]
    return "\n".join(lines).rstrip()


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    """Lines that belong together: a block with its fences, or what empty lines enclose."""
    block: list[str] = []
    fenced = False
    for line in lines:
        fence = line.startswith("```")
        if block and not fenced and (fence or not line or line.startswith("#")):
            yield block
            block = []
        if line or fenced:
            block.append(line)
        if fence and fenced:
            yield block
            block = []
        fenced ^= fence
    if block:
        yield block


def _shown(block: list[str]) -> list[str]:
    first = block[0]
    if first.startswith("```"):
        return [f"    {line}".rstrip() for line in block[1:-1]]
    if first.startswith("#"):
        level, title = len(first) - len(first.lstrip("#")), _plain(first.lstrip("# "))
        return [title, "=-"[level - 1] * len(title)] if level <= 2 else [title]
    if first.startswith("|"):
        return _table([_cells(line) for line in block])
    return [line for item in _items(block) for line in item]


def _items(block: list[str]) -> Iterator[list[str]]:
    """Yields a paragraph, or the items of a list."""
    starts = [bool(_ITEM.match(line)) for line in block]
    numbers = [sum(starts[: index + 1]) for index in range(len(block))]
    for _, group in groupby(zip(numbers, block, strict=True), key=lambda pair: pair[0]):
        whole = _plain(" ".join(line.strip() for _, line in group))
        match = _ITEM.match(whole)
        yield _wrap(whole, WIDTH, " " * len(match[1]) if match else "")


def _table(rows: list[list[str]]) -> list[str]:
    """Columns side by side, cells broken into lines where a row is too wide."""
    head, under, *body = rows
    # Markdown wants a head; one without words is there for that alone.
    rows = [head, *body] if any(head) else body
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    least = [
        max(len(word) for cell in column for word in cell.split() or [""]) for column in columns
    ]
    # The widest column gives way, column by column, down to its longest word.
    while sum(widths) + 2 * (len(widths) - 1) > WIDTH and widths != least:
        widest = max(
            range(len(widths)), key=lambda column: (widths[column] > least[column], widths[column])
        )
        widths[widest] -= 1
    signs = [">" if mark.endswith(":") else "<" for mark in under]
    shown = [_row(row, widths, signs) for row in rows]
    if any(head):
        shown.insert(1, ["  ".join("-" * width for width in widths)])
    return [line for row in shown for line in row]


def _row(cells: list[str], widths: list[int], signs: list[str]) -> list[str]:
    wrapped = [_wrap(cell, width, "") for cell, width in zip(cells, widths, strict=True)]
    lines = zip_longest(*wrapped, fillvalue="")
    forms = [f"{sign}{width}" for sign, width in zip(signs, widths, strict=True)]
    return ["  ".join(map(format, line, forms)).rstrip() for line in lines]


def _cells(line: str) -> list[str]:
    return [_plain(cell.strip().replace("\\|", "|")) for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def _wrap(whole: str, width: int, indent: str) -> list[str]:
    options = {"break_on_hyphens": False, "break_long_words": False}
    return textwrap.wrap(whole, width, subsequent_indent=indent, **options) or [""]  # type: ignore[arg-type]


def _plain(line: str) -> str:
    """Text without links and emphasis; what is in backticks stays so marked."""
    return _LINK.sub(r"\1", line).replace("**", "")
