"""Cuts Markdown into chunks for retrieval: what stands under a heading, in pieces of a bounded
number of tokens. Pure.

    section   from a heading to the next one, of whatever level. Headings with nothing below them
              but a deeper heading stand before that one
    chunk     a section, or as many of its blocks (paragraphs, lists, tables, code) as fit. A block
              with more tokens than that is cut: a table between rows, with its head on each piece;
              code between lines, with its fences; text between lines, sentences or words
    overlap   the last sentences of a chunk, again at the beginning of the section's next one
    token     six letters of a word or less, three digits, a letter of Chinese, Japanese or Korean,
              two of other scripts, or up to four of the same sign. Tokenizers of language models
              differ

A chunk's id is a hash of its URL, its headings, its text, and of how many equal ones of its page
come before: an edit of a section changes the ids of its own chunks, and of no others.

Markdown is read as `lib_html` writes it: blocks with an empty line between them, tables with a bar
at the beginning of each line, code between fences.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain, pairwise
from typing import Final, NamedTuple
from urllib.parse import quote

from minutch.errors import UsageError

TOKENS: Final = 512
OVERLAP: Final = 64
LEAST: Final = 16
"""Tokens that a chunk must have room for: a fence, a line."""
_TOKEN: Final = re.compile(
    r"[A-Za-z]{1,6}|\d{1,3}|[\u2e80-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]|[^\W\d_]{1,2}"
    r"|([^\w\s])\1{0,3}|\S"
)
_HEADING: Final = re.compile(r"(#{1,6}) (.*)")
_FENCE: Final = re.compile(r"(?:[ >]|[-*] |\d{1,9}[.)] )*(`{3,})([^`]*)")
_LINES: Final = re.compile(r"\n")
_SENTENCES: Final = re.compile(r"\n|(?<=[.!?…])[ ]+|(?<=[。！？])")
_WORDS: Final = re.compile(r"[ \n]")
_MARKUP: Final = re.compile(
    r"\\([!-/:-@\[-`{-~])|(`+) ?(.*?) ?\2(?!`)|!?\[((?:[^][\\]|\\.)*)\]\((?:<[^>]*>|[^\s()<>]*)\)"
    r"|[*~]+"
)
_SAFE: Final = "!$&'()*+,;=:@/?-._~"


class Chunk(NamedTuple):
    """A piece of a page."""

    id: str
    """32 hexadecimal digits."""
    url: str
    """That of the page, with the fragment of the nearest heading that has one."""
    path: list[str]
    """The headings that it stands under, the page's first, as plain text."""
    text: str
    """Markdown, with the section's heading in its first chunk where it fits."""
    tokens: int

    def as_json(self) -> str:
        """Returns the chunk as an object of JSON in a line."""
        return json.dumps(self._asdict(), ensure_ascii=False)


def count_tokens(text: str) -> int:
    """Returns the number of tokens of a text."""
    return sum(1 for _ in _TOKEN.finditer(text))


def chunks(
    markdown: str,
    url: str,
    anchors: Mapping[int, str] | None = None,
    *,
    tokens: int = TOKENS,
    overlap: int = OVERLAP,
) -> list[Chunk]:
    """Returns the chunks of a page, in its order. `anchors` are fragments of headings by the
    numbers of their lines (Parser.markdown), `tokens` the most of a chunk, of which up to `overlap`
    are those of the one before. Raises UsageError.
    """
    if tokens < LEAST or not 0 <= overlap <= tokens // 2:
        raise UsageError(
            f"chunks: expected {LEAST} tokens or more, and an overlap of half of them at most;"
            f" found {tokens} and {overlap}"
        )
    found: list[Chunk] = []
    equal: Counter[str] = Counter()
    page = url.partition("#")[0]
    for section in _sections(markdown, anchors or {}):
        fragment = quote(section.fragment, safe=_SAFE)
        where = f"{page}#{fragment}" if fragment else page
        for text in section.texts(tokens, overlap):
            key = json.dumps([where, section.path, text])
            # By the number among equals, not by the place in the page: an edit above changes no id.
            digest = sha256(f"{key}{equal[key]}".encode("utf-8", "surrogatepass")).hexdigest()
            equal[key] += 1
            found.append(Chunk(digest[:32], where, section.path, text, count_tokens(text)))
    return found


class _Piece(NamedTuple):
    """A block, or a part of one."""

    before: str
    """What stands between it and the one before."""
    text: str
    tokens: int
    is_prose: bool


@dataclass(slots=True)
class _Section:
    path: list[str]
    fragment: str
    level: int = 0
    heads: list[str] = field(default_factory=list)
    blocks: list[list[str]] = field(default_factory=list)

    def texts(self, most: int, overlap: int) -> Iterator[str]:
        """Yields the texts of the section's chunks."""
        head = "\n\n".join(self.heads)
        # A heading with nothing below it.
        if not self.blocks:
            yield from (piece.text for piece in _cut(head, most) if piece.text.strip())
            return
        text, size = head, count_tokens(head)
        last: _Piece | None = None
        for piece in chain.from_iterable(_pieces(block, most, overlap) for block in self.blocks):
            if text and size + piece.tokens > most:
                # Nothing but the heading yet: it is left to `path`, being no chunk of its own.
                if last is not None:
                    yield text
                # A piece that fills its chunk leaves no room for an overlap.
                text, size = _tail(last, min(overlap, most - piece.tokens))
            text += (piece.before if text else "") + piece.text
            size += piece.tokens
            last = piece
        yield text


def _sections(markdown: str, anchors: Mapping[int, str]) -> Iterator[_Section]:
    """Yields sections that have something in them."""
    around: list[tuple[int, str, str]] = []
    section = _Section([], "")
    for at, block in _blocks(markdown):
        heading = _HEADING.fullmatch(block[0])
        if heading is None:
            section.blocks.append(block)
            continue
        level = len(heading[1])
        heads = [block[0]]
        if section.heads and not section.blocks and level > section.level:
            heads = [*section.heads, *heads]
        elif section.heads or section.blocks:
            yield section
        # What is left are the headings that this one stands under.
        while around and around[-1][0] >= level:
            around.pop()
        fragment = anchors.get(at) or (around[-1][2] if around else "")
        around.append((level, _plain(heading[2]), fragment))
        section = _Section([title for _, title, _ in around], fragment, level, heads)
    if section.heads or section.blocks:
        yield section


def _blocks(markdown: str) -> Iterator[tuple[int, list[str]]]:
    """Yields the blocks, with the numbers of their first lines: those of an item or quote that goes
    on after an empty line are one.
    """
    block: list[str] = []
    start, fence, is_apart = 0, "", False
    for number, line in enumerate(markdown.split("\n")):
        if fence:
            block.append(line)
            # A shorter fence, or one with a language, does not close this one.
            if line.strip(" >").startswith(fence) and not line.strip(" >`"):
                fence = ""
            continue
        if not line.strip():
            is_apart = True
            continue
        if block and (
            _HEADING.fullmatch(line)
            or _HEADING.fullmatch(block[0])
            # Indented after an empty line: the same item goes on.
            or (is_apart and line[0] != " ")
        ):
            yield start, block
            block = []
        if not block:
            start = number
        elif is_apart:
            block.append("")
        block.append(line)
        is_apart = False
        if opened := _FENCE.fullmatch(line):
            fence = opened[1]
    if block:
        yield start, block


def _pieces(block: Sequence[str], most: int, overlap: int) -> Iterator[_Piece]:
    """Yields a block whole if it fits, else its parts, which leave room for an overlap."""
    text = "\n".join(block)
    size = count_tokens(text)
    is_code, is_table = block[0].startswith("```"), block[0].startswith("|")
    if size <= most:
        yield _Piece("\n\n", text, size, is_prose=not (is_code or is_table))
        return
    first, rest, last = [], list(block), []
    if is_code and len(block) > 2:
        first, rest, last = [block[0]], list(block[1:-1]), [block[-1]]
    elif is_table and len(block) > 2:
        first, rest = list(block[:2]), list(block[2:])
    room = most - count_tokens("\n".join([*first, *last]))
    if not first or room < most // 2:  # nothing that could stand on each piece
        for piece in _cut(text, most - overlap, "\n\n"):
            yield piece._replace(is_prose=not (is_code or is_table))
        return
    for part in _cut("\n".join(rest), room):
        whole = "\n".join([*first, part.text, *last])
        yield _Piece("\n\n", whole, count_tokens(whole), is_prose=False)


_EDGES: Final = (_LINES, _SENTENCES, _WORDS)


def _cut(text: str, most: int, before: str = "") -> Iterator[_Piece]:
    """Yields a text in pieces that fit: of whole lines, else of sentences, words, tokens."""
    held: _Piece | None = None
    for gap, part, size in _fitting(before, text, most):
        if held is not None and held.tokens + size <= most:
            held = held._replace(text=held.text + gap + part, tokens=held.tokens + size)
            continue
        if held is not None:
            yield held
        held = _Piece(gap, part, size, is_prose=True) if part else None
    if held is not None:
        yield held


def _fitting(before: str, text: str, most: int, level: int = 0) -> Iterator[tuple[str, str, int]]:
    """Yields parts of a text that fit, each with what stands before it and its tokens."""
    size = count_tokens(text)
    if size <= most:
        yield before, text, size
    elif level == len(_EDGES):
        # A word longer than a chunk: cut between tokens, wherever that is.
        starts = [token.start() for token in _TOKEN.finditer(text)][::most]
        for start, end in pairwise([*starts, len(text)]):
            yield before, text[start:end], count_tokens(text[start:end])
            before = ""
    else:
        at = 0
        # Each part that is still too long is cut at finer edges.
        for edge in _EDGES[level].finditer(text):
            yield from _fitting(before, text[at : edge.start()], most, level + 1)
            before, at = edge[0], edge.end()
        yield from _fitting(before, text[at:], most, level + 1)


def _tail(piece: _Piece | None, most: int) -> tuple[str, int]:
    """Returns the last sentences of a text that fit, and their tokens."""
    if piece is None or not piece.is_prose:
        return "", 0
    at, size = len(piece.text), 0
    starts = [0, *(edge.end() for edge in _SENTENCES.finditer(piece.text))]
    for start in reversed(starts):
        more = count_tokens(piece.text[start:at])
        if size + more > most:
            break
        at, size = start, size + more
    return piece.text[at:], size


def _plain(heading: str) -> str:
    """Returns a heading without its markup."""

    def words(found: re.Match[str]) -> str:
        escaped, _, code, linked = found.groups()
        return escaped or code or (_plain(linked) if linked else "")

    return " ".join(_MARKUP.sub(words, heading).split())
