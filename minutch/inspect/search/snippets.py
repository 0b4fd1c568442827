"""Makes snippets: the passage of a page's own text that matches best, its words marked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final

import tantivy

from minutch.inspect.search.fields import unpaired

SNIPPET: Final = 240
"""Characters of a snippet."""
_CUT: Final = "…"
_SENTENCE: Final = 60
"""Characters of a line that is no title or link, but a sentence; 20 Chinese ones, as those are
stored thrice (`fields.paired`).
"""
_SHARE: Final = 4
"""A page's own text is this part of all of it at least."""
_SEVERAL: Final = 3
"""Pages of a host that have a line of its frame."""

Piece = tuple[str, bool]
"""A piece of text, and whether it is what was searched for."""


class Marker:
    """A maker of the snippets of one search."""

    def __init__(
        self, searcher: tantivy.Searcher, query: tantivy.Query, schema: tantivy.Schema
    ) -> None:
        self._searcher, self._query, self._schema = searcher, query, schema
        self._generators: dict[str, tantivy.SnippetGenerator] = {}

    def snippet(self, name: str, text: str, frame: Collection[str] = ()) -> list[Piece]:
        """Returns the best passage of a text of a field, in pieces; the beginning if nothing in it
        matches. What is left out is marked, but for what is not the page's own (`own_text`).
        """
        if name not in self._generators:
            made = tantivy.SnippetGenerator.create(self._searcher, self._query, self._schema, name)
            made.set_max_num_chars(SNIPPET)
            self._generators[name] = made
        text = own_text(text, frame)
        found = self._generators[name].snippet_from_doc(tantivy.Document(**{name: [text]}))
        fragment = found.fragment()
        if not fragment:
            start = unpaired(text[: 3 * SNIPPET])
            shown = " ".join(start[:SNIPPET].split())
            is_cut = len(text) > 3 * SNIPPET or len(start) > SNIPPET
            return [(shown + _CUT * is_cut, False)] if shown else []
        pieces = marked(fragment, [(part.start, part.end) for part in found.highlighted()])
        before, _, after = text.partition(fragment)
        return [
            *([(_CUT, False)] if re.search(r"\w", before) else []),
            *pieces,
            *([(_CUT, False)] if re.search(r"\w", after) else []),
        ]


def frame_of(texts: Sequence[str]) -> set[str]:
    """Returns the lines that several of the texts of a host have: menus, notices, footers."""
    counts = Counter(line for text in texts for line in set(text.split("\n")))
    return {line for line, count in counts.items() if count >= _SEVERAL}


def own_text(text: str, frame: Collection[str] = ()) -> str:
    """Returns a page's text without the lines of its frame and without the short ones before its
    first sentence and behind its last: title, menus, path, table of contents. If sentences are not
    what the page consists of, short lines stay.
    """
    lines = [line for line in text.split("\n") if line not in frame]
    sentences = [n for n, line in enumerate(lines) if len(line) >= _SENTENCE]
    whole = "\n".join(lines)
    own = "\n".join(lines[sentences[0] : sentences[-1] + 1]) if sentences else ""
    return (own if _SHARE * len(own) >= len(whole) else whole) or text


def marked(fragment: str, ranges: Sequence[tuple[int, int]]) -> list[Piece]:
    """Returns a stored text as it was, in pieces; `ranges` count bytes. Of a character stored
    twice, one mark is enough.
    """
    data = fragment.encode()
    marks: list[bool] = []
    for number, piece in enumerate(_cut(data, ranges)):
        marks += [number % 2 == 1] * len(piece.decode(errors="replace"))
    characters: list[Piece] = []
    skip = 0
    for position, character in enumerate(fragment):
        if skip or character in "\u2060\u200b":
            if skip and marks[position] and characters:
                characters[-1] = (characters[-1][0], True)
            skip = 0 if skip else int(character == "\u2060")
            continue
        characters.append((character, marks[position]))
    return _joined(characters)


def _cut(data: bytes, ranges: Sequence[tuple[int, int]]) -> Iterator[bytes]:
    """Yields what lies between the ranges, and in them, by turns."""
    at = 0
    for start, end in sorted(ranges):
        yield data[at : max(start, at)]
        yield data[max(start, at) : max(end, at)]
        at = max(end, at)
    yield data[at:]


def _joined(characters: Sequence[Piece]) -> list[Piece]:
    """Joins characters into pieces of equal kind, white space into single blanks."""
    pieces: list[Piece] = []
    for character, found in characters:
        if pieces and pieces[-1][1] == found:
            pieces[-1] = (pieces[-1][0] + character, found)
        else:
            pieces.append((character, found))
    return [(re.sub(r"\s+", " ", text), found) for text, found in pieces]
