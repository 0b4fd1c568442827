"""Finds hits in an open index, with snippets, their number, and their hosts.

`searcher` opens an index and decides which process asks these questions.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from math import log
from pathlib import Path
from typing import Any, Final

import tantivy

from minutch import strictjson
from minutch.inspect.search import query as queries
from minutch.inspect.search.fields import (
    FRAME,
    HAS,
    KEY,
    OTHER,
    STEMMERS,
    TEXTS,
    paired,
    stemmer_of,
    stop_words,
    twins,
    unpaired,
    words_of,
)
from minutch.inspect.search.localindex import opened
from minutch.inspect.search.query import LONGEST_NAME, MOST, likeness, names_of
from minutch.inspect.search.snippets import Marker, Piece, frame_of

COMPARED: Final = 10
"""Hits whose texts tell what is their hosts' frame."""
FIRST: Final = 50
"""Hits that are put into order by what they are called, too."""
BOOSTS: Final = {"title": 2.0, "anchor": 1.0, "url": 0.5, "content": 1.0, FRAME: 0.05}
"""Weights of the fields that words without a field are looked for in."""
NEAR: Final = 1.0
"""Weight of words that are near each other."""
NAMED: Final = 1.0
"""What a page gains that is called as the query is, as a share of its score."""
_SPOKEN: Final = 0.2
"""Power of a language's share of the documents by which its fields weigh: where pages in several
languages have a word, one in the language of most is wanted.
"""
_K1, _B = 1.2, 0.75
"""tantivy's parameters of BM25."""
_LEAST_SHARE: Final = 0.001
_USUAL: Final = {"title": 1, "anchor": 2, "url": 1, "content": 10, FRAME: 1}
"""How often a field of a good hit has a word. With 1 for the text, pages in the language of a
hundredth of all were first on questions in the language of most.
"""
LONGEST_TITLE: Final = 200
MOST_HOSTS: Final = 12
NEWEST: Final = "tstamp"
"""The time of a page's fetch."""
_LIKE: Final = 20
"""Pages that are looked through for a word much like another."""
_LONG: Final = 5
"""Characters of a word from which on two of them may differ."""
DEEPEST: Final = 10_000
"""Hits beyond this one can't be reached."""


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
        return found if isinstance(found, datetime) else None

    @property
    def fields(self) -> dict[str, list[Any]]:
        """The document: values by the names that the index writer was given."""
        return dict(_fields(self.stored))

    def as_json(self) -> str:
        """Returns the hit on one line; matched words are in <b> in the escaped snippet."""
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
    """What in the query is not as it looks, such as fields that no document has."""


class OpenIndex:
    """An index as a commit has left it, opened by this process. Raises what tantivy does
    (`LocalIndex.reading`).
    """

    def __init__(self, folder: Path) -> None:
        self._index = opened(folder)
        self._searcher = self._index.searcher()
        self.languages = self._by_language()
        self.names = {name for name, _ in self._searcher.terms_with_prefix(HAS, "")}
        other = max(1 - sum(self.languages.values()), _LEAST_SHARE)
        self._shares = {"": other, **self.languages}
        self._contents = twins(("content",), self.languages)
        self._analyzers: dict[str, tantivy.TextAnalyzer] = {}
        self._vocabulary = queries.Vocabulary(
            self.languages, self.names, self._weigh, lambda words: stop_words(words, self.languages)
        )

    def count(self) -> int:
        """Returns the number of documents."""
        return int(self._searcher.num_docs)

    def _by_language(self) -> dict[str, float]:
        """Returns the languages with a stemmer, and the share of all documents of each."""
        shares: dict[str, float] = {}
        for lang, count in self._searcher.terms_with_prefix("lang", ""):
            code = stemmer_of(lang)
            if code is not None:
                shares[code] = shares.get(code, 0.0) + count / max(self.count(), 1)
        return shares

    def search(self, text: str, options: SearchOptions) -> Results:
        """Returns the hits of a query, best first."""
        asked = queries.rewritten(text, self._vocabulary)
        wanted, notes = self._parsed(asked), self._notes(text)
        if wanted is None:
            return Results([], 0, self.count(), [], notes)
        chosen = wanted
        if options.host:
            only = tantivy.Query.term_query(self._index.schema, "host", options.host.lower())
            unscored = tantivy.Query.const_score_query(only, 0.0)
            chosen = tantivy.Query.boolean_query(
                [(tantivy.Occur.Must, wanted), (tantivy.Occur.Must, unscored)]
            )
        offset = min(max(options.offset, 0), DEEPEST)
        before = 0 if offset < FIRST else offset
        limit = max(options.limit, COMPARED) + offset - before
        found = self._searcher.search(chosen, max(limit, FIRST - before), offset=before)
        documents = self._documents(found)
        if not before:
            named = self._by_name(documents[:FIRST], asked.plain)
            documents = (named + documents[FIRST:])[offset:]
        marker = Marker(self._searcher, wanted, self._index.schema)
        hits = self._hits(documents, marker, options.limit)
        count = int(found.count)  # type: ignore[attr-defined]  # the stubs lack it
        hosts = self._hosts(wanted) if options.count_hosts else []
        return Results(hits, count, self.count(), hosts, notes)

    def newest_hits(self, limit: int) -> list[Hit]:
        """Returns the pages that were fetched last."""
        every = tantivy.Query.all_query()
        found = self._searcher.search(every, limit, count=False, order_by_field=NEWEST)
        marker = Marker(self._searcher, every, self._index.schema)
        return self._hits(self._documents(found), marker, limit)

    def hosts(self) -> list[tuple[str, int]]:
        """Returns the hosts with the most documents, and their numbers."""
        return self._hosts(tantivy.Query.all_query())

    def host_count(self) -> int:
        """Returns the number of hosts; of very many, nearly."""
        counted = {"hosts": {"cardinality": {"field": "host"}}}
        found = self._searcher.aggregate(tantivy.Query.all_query(), counted)
        return int(found["hosts"]["value"])

    def texts_like(self, word: str) -> list[str]:
        """Returns titles and contents of pages that have a word much like this one."""
        distance = 2 if len(word) >= _LONG else 1
        like = [
            (
                tantivy.Occur.Should,
                tantivy.Query.fuzzy_term_query(
                    self._index.schema, name, word.lower(), distance, True, False
                ),
            )
            for name in twins(TEXTS, self.languages)
        ]
        texts = []
        for _, address in self._searcher.search(tantivy.Query.boolean_query(like), _LIKE).hits:
            stored = self._searcher.doc(address).to_dict()
            for name in (*_those_of("title", stored), *_those_of("content", stored)):
                texts.append(unpaired(str(stored[name][0])))
        return texts

    def _notes(self, text: str) -> list[str]:
        return [
            f"no document has a field {name}; they have {', '.join(sorted(self.names))}"
            if self._vocabulary.has(name)
            else f"{name} is no field of these documents: {name}: was read as words"
            for name in queries.strange_fields(text, self._vocabulary)
        ]

    def _parsed(self, asked: queries.Rewritten) -> tantivy.Query | None:
        must, should = tantivy.Occur.Must, tantivy.Occur.Should
        parts = []
        words = [found for found in map(self._query, asked.words) if found is not None]
        if words:
            some = [(should, word) for word in words]
            parts.append((must, tantivy.Query.boolean_query(some, queries.least(len(some)))))
        needed = self._query(asked.needed)
        if needed is not None:
            parts.append((must, needed))
        near = self._query(asked.near)
        if near is not None:
            parts.append((should, tantivy.Query.boost_query(near, NEAR)))
        wanted = any(occur == must for occur, _ in parts)
        return tantivy.Query.boolean_query(parts) if wanted else None

    def _query(self, text: str) -> tantivy.Query | None:
        if not text.strip():
            return None
        try:
            return self._index.parse_query_lenient(
                text, list(TEXTS), conjunction_by_default=True, allow_regexes=True
            )[0]
        except ValueError:
            return None

    def _weigh(self, field: str, text: str) -> float:
        """Returns the weight of words in a field; 0 if no document has them there.

        A word is as rare as it is in the texts of all languages: BM25 takes for rare what is so in
        one field, be it for want of documents in its language. It also takes the mean length of a
        field over all documents, so that a field which few have looks long wherever it is found;
        `_USUAL` words on a page of usual length make up for that.
        """
        base, _, code = field.partition("_")
        own = self._counts(field, text)
        if not all(own):
            return 0.0
        share = self._shares[code] if base != FRAME else 1.0  # of documents in all languages
        boost: float = BOOSTS[base] * share**_SPOKEN
        if not own:
            return boost
        texts = zip(*(self._counts(name, text) for name in self._contents), strict=False)
        rare = sum(
            self._idf(max(sum(counts), count)) for counts, count in zip(texts, own, strict=False)
        )
        long = (_USUAL[base] + _K1 * (1 - _B + _B / share)) / (_USUAL[base] + _K1)
        return boost * long * rare / sum(map(self._idf, own))

    def _rarity(self, field: str, word: str) -> float:
        return self._idf(self._searcher.doc_freq(field, word))

    def _idf(self, count: int) -> float:
        """Returns BM25's weight of words; deleted documents are in `count`, until a merge."""
        count = min(count, self.count())
        return log(1 + (self.count() - count + 0.5) / (count + 0.5))

    def _counts(self, field: str, text: str) -> list[int]:
        """Returns how many documents have each word of a text in a field."""
        return [self._searcher.doc_freq(field, word) for word in self._analyzed(field, text)]

    def _analyzed(self, field: str, text: str) -> list[str]:
        if field not in self._analyzers:
            self._analyzers[field] = words_of(field)
        return self._analyzers[field].analyze(text)

    def _hosts(self, wanted: tantivy.Query) -> list[tuple[str, int]]:
        found = self._searcher.aggregate(
            wanted, {"hosts": {"terms": {"field": "host", "size": MOST_HOSTS}}}
        )
        return [
            (str(bucket["key"]), int(bucket["doc_count"])) for bucket in found["hosts"]["buckets"]
        ]

    def _documents(self, found: tantivy.SearchResult) -> list[_Scored]:
        return [
            (float(score or 0), _in_utc(self._searcher.doc(address).to_dict()))
            for score, address in found.hits
        ]

    def _by_name(self, documents: Sequence[_Scored], words: Sequence[str]) -> list[_Scored]:
        """Puts hits into order by their scores and by how much each is called as the query is."""
        asked = paired(" ".join(words))
        scored = []
        for score, stored in documents:
            field = _text(stored)[0]
            wanted = frozenset(self._analyzed(field, asked))
            begin = re.compile("|".join(re.escape(word[:2]) for word in wanted), re.IGNORECASE)
            names = (
                frozenset(self._analyzed(field, paired(name[:LONGEST_NAME])))
                for name in islice(names_of(stored), MOST)
                if begin.search(name) or not name.isascii()  # stems begin as their words do
            )
            rarity = partial(self._rarity, field)
            scored.append((score * (1 + NAMED * likeness(wanted, names, rarity) ** 2), stored))
        return sorted(scored, key=lambda pair: -pair[0])

    def _hits(self, documents: Sequence[_Scored], marker: Marker, limit: int) -> list[Hit]:
        texts: dict[str, list[str]] = {}
        for _, stored in documents[: max(limit, COMPARED)]:
            texts.setdefault(_host(stored), []).append(_text(stored)[1])
        frames = {host: frame_of(pages) for host, pages in texts.items()}
        hits = []
        for score, stored in documents[:limit]:
            titles = [unpaired(stored[name][0]) for name in _those_of("title", stored)]
            title = " ".join(" ".join(titles).split())[:LONGEST_TITLE]
            snippet = marker.snippet(*_text(stored), frames[_host(stored)])
            hits.append(Hit(str(stored[KEY][0]), score, title, snippet, stored))
        return hits


_Scored = tuple[float, dict[str, list[Any]]]
"""Score, document."""


def _in_utc(stored: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Returns a document whose dates say that they are in UTC, as they are."""
    return {
        name: [
            value.replace(tzinfo=UTC) if isinstance(value, datetime) else value for value in values
        ]
        for name, values in stored.items()
    }


def _host(stored: dict[str, list[Any]]) -> str:
    return str(stored.get("host", [""])[0])


def _text(stored: dict[str, list[Any]]) -> tuple[str, str]:
    """Returns the field that has a document's text, and the text."""
    return next(
        ((name, str(stored[name][0])) for name in _those_of("content", stored)), ("content", "")
    )


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
                (base if base in TEXTS and code in STEMMERS else name),
                [_plain(value) for value in values],
            )


def _plain(value: Any) -> Any:
    """Returns a stored value as it came; dates as RFC 3339."""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03d}Z"
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return unpaired(value) if isinstance(value, str) else value
