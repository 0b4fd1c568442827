"""Searches the local index: hits with snippets, their number, and their hosts."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import tantivy

from minutch import strictjson
from minutch.inspect.search import query as queries
from minutch.inspect.search.fields import KEY, OTHER, STEMMED, STEMMERS, stemmer_of, unpaired
from minutch.inspect.search.localindex import LocalIndex

SNIPPET: Final = 240
"""Characters of a snippet."""
LONGEST_TITLE: Final = 200
MOST_HOSTS: Final = 12
NEWEST: Final = "tstamp"
"""The time of a page's fetch."""
_CUT: Final = "…"
_LIKE: Final = 20
"""Pages that are looked through for a word much like another."""
_LONG: Final = 5
"""Characters of a word from which on two of them may differ."""
DEEPEST: Final = 10_000
"""Hits beyond this one can't be reached."""

Piece = tuple[str, bool]
"""A piece of text, and whether it is what was searched for."""


@dataclass(frozen=True)
class Hit:
    """A document that was found."""

    url: str
    score: float
    title: str
    snippet: list[Piece]
    stored: dict[str, list[Any]] = field(repr=False)
    """The document as the index has it."""

    @property
    def kind(self) -> str:
        """The media type; empty if the index does not have it."""
        return next((kind for kind in map(str, self.stored.get("type", ())) if "/" in kind), "")

    def time(self, name: str) -> datetime | None:
        """Returns a point in time that the document has."""
        found = self.stored.get(name, [None])[0]
        return found.replace(tzinfo=UTC) if isinstance(found, datetime) else None

    @property
    def fields(self) -> dict[str, list[Any]]:
        """The document: values by the names that the index writer was given."""
        return dict(_fields(self.stored))

    def as_json(self) -> str:
        """Returns the hit on one line; matched words stand in <b> in the snippet, whose text is
        escaped.
        """
        marked = "".join(
            f"<b>{html.escape(text)}</b>" if found else html.escape(text)
            for text, found in self.snippet
        )
        known = {
            "url": self.url,
            "title": self.title,
            "score": round(self.score, 4),
            "snippet": marked,
        }
        return strictjson.dumps({**known, "document": self.fields}, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Options of a search."""

    limit: int = 10
    """Number of hits, at most."""
    offset: int = 0
    """Number of hits that are passed over, at most DEEPEST."""
    host: str = ""
    """Finds pages of this host alone."""
    count_hosts: bool = False
    """Counts the hits of each host."""


_DEFAULTS: Final = SearchOptions()


@dataclass(frozen=True)
class Results:
    """The results of a search."""

    hits: list[Hit]
    count: int
    documents: int
    """Number of documents in the index."""
    hosts: list[tuple[str, int]]
    """Hosts with their numbers of hits, most first."""
    notes: list[str]
    """Errors in the query."""


def search(index: Path, query: str, options: SearchOptions = _DEFAULTS) -> Results:
    """Searches an index, or that of the crawl in a folder. Raises StoreError, FormatError."""
    inside = index / "index"
    is_crawl = inside.is_dir() and not (index / "current").exists()
    return Searcher(inside if is_crawl else index).search(query, options)


class Searcher:
    """A searcher of an index as a commit has left it; any number of threads may use it. Raises
    StoreError, FormatError.
    """

    def __init__(self, path: Path) -> None:
        self.place = LocalIndex(path)
        self._state = self.place.state()
        self._index = self.place.open()
        with self.place.reading():
            self._searcher = self._index.searcher()
            self.languages = self._shares()

    def _shares(self) -> dict[str, float]:
        """Returns the languages with a stemmer, and the share of all documents of each."""
        shares: dict[str, float] = {}
        for lang, count in self._searcher.terms_with_prefix("lang", ""):
            code = stemmer_of(lang)
            if code is not None:
                shares[code] = shares.get(code, 0.0) + count / max(self.count, 1)
        return shares

    def newest(self) -> Searcher:
        """Returns this one, or one for a later commit."""
        return self if self.place.state() == self._state else Searcher(self.place.path)

    @property
    def count(self) -> int:
        """Number of documents."""
        return int(self._searcher.num_docs)

    def search(self, text: str, options: SearchOptions = _DEFAULTS) -> Results:
        """Returns the hits of a query, best first."""
        with self.place.reading():
            wanted, errors = self._parsed(queries.rewritten(text, self.languages))
            if wanted is None:
                return Results([], 0, self.count, [], errors)
            chosen = wanted
            if options.host:
                only = tantivy.Query.term_query(self._index.schema, "host", options.host.lower())
                chosen = tantivy.Query.boolean_query(
                    [(tantivy.Occur.Must, wanted), (tantivy.Occur.Must, _unscored(only))]
                )
            offset = min(max(options.offset, 0), DEEPEST)
            found = self._searcher.search(chosen, max(options.limit, 1), offset=offset)
            marker = _Marker(self._searcher, wanted, self._index.schema)
            hits = [self._hit(score, address, marker) for score, address in found.hits]
            count = int(found.count)  # type: ignore[attr-defined]  # the stubs lack it
            hosts = self._hosts(wanted) if options.count_hosts else []
            return Results(hits[: options.limit], count, self.count, hosts, errors)

    def newest_hits(self, limit: int) -> list[Hit]:
        """Returns the pages that were fetched last."""
        every = tantivy.Query.all_query()
        with self.place.reading():
            found = self._searcher.search(every, limit, count=False, order_by_field=NEWEST)
            marker = _Marker(self._searcher, every, self._index.schema)
            return [self._hit(0, address, marker) for _, address in found.hits]

    def hosts(self) -> list[tuple[str, int]]:
        """Returns the hosts with the most documents, and their numbers."""
        with self.place.reading():
            return self._hosts(tantivy.Query.all_query())

    def host_count(self) -> int:
        """Returns the number of hosts; of very many, nearly."""
        counted = {"hosts": {"cardinality": {"field": "host"}}}
        with self.place.reading():
            found = self._searcher.aggregate(tantivy.Query.all_query(), counted)
            return int(found["hosts"]["value"])

    def texts_like(self, word: str) -> Iterator[str]:
        """Yields titles and contents of pages that have a word much like this one."""
        distance = 2 if len(word) >= _LONG else 1
        like = [
            (
                tantivy.Occur.Should,
                tantivy.Query.fuzzy_term_query(
                    self._index.schema, name, word.lower(), distance, True, False
                ),
            )
            for name in queries.default_fields(self.languages)
        ]
        with self.place.reading():
            for _, address in self._searcher.search(tantivy.Query.boolean_query(like), _LIKE).hits:
                stored = self._searcher.doc(address).to_dict()
                for name in (*_those_of("title", stored), *_those_of("content", stored)):
                    yield unpaired(str(stored[name][0]))

    def _parsed(self, text: str) -> tuple[tantivy.Query | None, list[str]]:
        if not text.strip():
            return None, []
        try:
            parsed, errors = self._index.parse_query_lenient(
                text,
                queries.default_fields(self.languages),
                field_boosts=queries.boosts(self.languages),
                conjunction_by_default=True,
                allow_regexes=True,
            )
        except ValueError as exc:
            return None, [str(exc)]
        return parsed, [str(error) for error in errors]

    def _hosts(self, wanted: tantivy.Query) -> list[tuple[str, int]]:
        found = self._searcher.aggregate(
            wanted, {"hosts": {"terms": {"field": "host", "size": MOST_HOSTS}}}
        )
        return [
            (str(bucket["key"]), int(bucket["doc_count"])) for bucket in found["hosts"]["buckets"]
        ]

    def _hit(self, score: float, address: tantivy.DocAddress, marker: _Marker) -> Hit:
        document = self._searcher.doc(address)
        stored = document.to_dict()
        url = str(stored[KEY][0])
        titles = [unpaired(stored[name][0]) for name in _those_of("title", stored)]
        title = " ".join(" ".join(titles).split())[:LONGEST_TITLE]
        snippet = next(
            (marker.snippet(name, document) for name in _those_of("content", stored)), []
        )
        return Hit(url, float(score), title, snippet, stored)


def _unscored(query: tantivy.Query) -> tantivy.Query:
    return tantivy.Query.const_score_query(query, 0.0)


def _those_of(base: str, stored: dict[str, list[Any]]) -> list[str]:
    """Returns the fields of a document that are `base` in some language."""
    return [name for name in stored if name == base or name.startswith(f"{base}_")]


def _fields(stored: dict[str, list[Any]]) -> Iterator[tuple[str, list[Any]]]:
    """Yields a document's fields under the names that they came with."""
    for name, values in stored.items():
        base, _, code = name.partition("_")
        if name == OTHER:
            yield from (
                (key, value if isinstance(value, list) else [value])
                for key, value in values[0].items()
            )
        elif name != KEY:
            yield (
                (base if base in STEMMED and code in STEMMERS else name),
                [_plain(value) for value in values],
            )


def _plain(value: Any) -> Any:
    """Returns a stored value as it came; dates as RFC 3339."""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03d}Z"
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return unpaired(value) if isinstance(value, str) else value


class _Marker:
    """A maker of the snippets of one search."""

    def __init__(
        self, searcher: tantivy.Searcher, query: tantivy.Query, schema: tantivy.Schema
    ) -> None:
        self._searcher, self._query, self._schema = searcher, query, schema
        self._generators: dict[str, tantivy.SnippetGenerator] = {}

    def snippet(self, name: str, document: tantivy.Document) -> list[Piece]:
        """Returns the best passage of a field, in pieces; its beginning if nothing in it
        matches. What is left out is marked.
        """
        if name not in self._generators:
            made = tantivy.SnippetGenerator.create(self._searcher, self._query, self._schema, name)
            made.set_max_num_chars(SNIPPET)
            self._generators[name] = made
        text = str(document.get_first(name))
        found = self._generators[name].snippet_from_doc(document)
        fragment = found.fragment()
        if not fragment:
            start = unpaired(text[: 3 * SNIPPET])
            shown = " ".join(start[:SNIPPET].split())
            is_cut = len(text) > 3 * SNIPPET or len(start) > SNIPPET
            return [(shown + _CUT * is_cut, False)] if shown else []
        pieces = marked(fragment, [(part.start, part.end) for part in found.highlighted()])
        before, _, after = text.partition(fragment)
        return [
            *([(_CUT, False)] if before.strip() else []),
            *pieces,
            *([(_CUT, False)] if after.strip() else []),
        ]


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
