"""scoring-similarity: scores pages and their links by the similarity of the page to a reference
text.

The similarity is the cosine of the angle between two vectors: the frequency of each term in the
page's text, keywords and description, and in the gold standard (cosine.goldstandard.file). 0:
nothing in common, 1: the same terms in the same proportions. scoring.similarity.ngrams compares
runs of words (`2,3`) and not single ones (`1,1`).

Source: SimilarityScoringFilter, CosineSimilarity and Model of scoring-similarity.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import regex
import Stemmer

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.hadoop.formats.javahash import float32, float_to_string
from minutch.plugin.points import Parse, ScoringFilter
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import SCORE_KEY
from minutch.records.parsedata import ParseData
from minutch.records.protocol import Content

# Counts the terms of a text, for the comparison of a page with the gold standard.
#
#   words     Unicode's word boundaries (UAX 29), in lower case, what has no letter or digit left
#             out
#   terms     the words without stop words, cut down to their stems (Porter 1980)
#   shingles  runs of stems with a blank between them, for scoring.similarity.ngrams from 2 on; stop
#             words count here
#
# Source: LuceneTokenizer of scoring-similarity and the filters of Lucene that it names. Porter's
# own later changes to his algorithm, which Lucene has (`possibly` to `possibl`), are not in the
# library here (`possibli`).

_ENGLISH: Final = """
a an and are as at be but by for if in into is it no not of on or such that the their then there
these they this to was will with
"""
ENGLISH: Final = frozenset(_ENGLISH.split())
"""Lucene's stop words for English, which never count."""
_WORD: Final = regex.compile(r"\b", regex.WORD | regex.V1)
_LETTER_OR_DIGIT: Final = regex.compile(r"[\p{L}\p{N}]")
_LONGEST: Final = 255
"""Characters; a longer word is several, as for Lucene."""
_SHORTEST_STEMMED: Final = 3
MODELS: Final = ("cosine",)
_MOST_WORDS: Final = 10
"""In a run; no known Nutch compares more, and each costs memory with every page."""
_META_TAGS: Final = ("metatag.description", "metatag.keywords", "metatag.keyword")


def words(text: str) -> list[str]:
    """Splits a text into words."""
    found = (word for word in _WORD.split(text.lower()) if _LETTER_OR_DIGIT.search(word))
    return [word[i : i + _LONGEST] for word in found for i in range(0, len(word), _LONGEST)]


def terms(text: str, stopwords: Iterable[str] = ()) -> Counter[str]:
    """Counts each stem in a text."""
    counts = Counter(words(text))
    for word in (*ENGLISH, *stopwords):
        counts.pop(word, None)
    found: Counter[str] = Counter()
    for stem, count in zip(_stems(list(counts)), counts.values(), strict=True):
        found[stem] += count
    return found


def shingles(text: str, shortest: int, longest: int) -> Counter[str]:
    """Counts each run of `shortest` to `longest` stems in a text."""
    stems = _stems(words(text))
    sizes = range(shortest, longest + 1)
    return Counter(
        " ".join(stems[i : i + size]) for size in sizes for i in range(len(stems) - size + 1)
    )


def _stems(found: list[str]) -> list[str]:
    stemmed = Stemmer.Stemmer("porter").stemWords(found)
    pairs = zip(found, stemmed, strict=True)
    return [word if len(word) < _SHORTEST_STEMMED else stem for word, stem in pairs]


class SimilarityScoringFilter(ScoringFilter):
    """The scoring filter; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        model = conf.get_trimmed("scoring.similarity.model") or "cosine"
        if model not in MODELS:
            raise ConfigError(
                f"scoring.similarity.model: expected {' or '.join(MODELS)}, found {model!r}"
            )
        self.sizes = _sizes(conf)
        name = conf.get_trimmed("scoring.similarity.stopword.file")
        self.stopwords = (
            _stopwords(conf.read_resource(name)) if name and self.sizes == (1, 1) else []
        )
        self.standard = self._standard(
            conf.get_trimmed("cosine.goldstandard.file") or "goldstandard.txt"
        )

    def _standard(self, name: str) -> Counter[str]:
        try:
            text = self.conf.read_resource(name)
        except ConfigError as exc:
            raise ConfigError(
                f"cosine.goldstandard.file: {exc}: the text that pages are compared with"
            ) from exc
        counts = self._terms(text)
        if not counts:
            raise ConfigError(
                f"cosine.goldstandard.file: no words to compare in {self.conf.resource(name)}"
            )
        return counts

    def _terms(self, text: str) -> Counter[str]:
        return terms(text, self.stopwords) if self.sizes == (1, 1) else shingles(text, *self.sizes)

    def score(self, text: str) -> float:
        """Returns the similarity of a text to the gold standard, from 0 to 1."""
        return cosine(self._terms(text), self.standard)

    def pass_score_after_parsing(self, url: str, content: Content, parse: Parse) -> None:
        meta = parse.data.parse_meta
        tags = [value for name in _META_TAGS if (value := meta.get(name)) is not None]
        parse.data.content_meta.set(
            SCORE_KEY, float_to_string(self.score("\n".join([parse.text, *tags])))
        )

    def distribute_score_to_outlinks(
        self,
        from_url: str,
        parse_data: ParseData,
        targets: list[tuple[str, CrawlDatum]],
        adjust: CrawlDatum | None,
        all_count: int,
    ) -> CrawlDatum | None:
        score = _score_of(parse_data)
        for _, datum in targets:
            datum.score = datum.score if score is None else score
        return adjust

    def outlink_score(
        self, parse_data: ParseData, kept: int, all_count: int, score: float
    ) -> float | None:
        own = _score_of(parse_data)
        return score if own is None else own


def cosine(one: Counter[str], other: Counter[str]) -> float:
    """Returns the cosine of the angle of two vectors in Java's 32-bit floats; 0 if one is empty."""
    small, large = sorted((one, other), key=len)
    product = sum(count * large[term] for term, count in small.items())
    return float32(product / (_norm(one) * _norm(other))) if product else 0.0


def _norm(counts: Counter[str]) -> float:
    return float32(math.sqrt(sum(count * count for count in counts.values())))


def _score_of(parse_data: ParseData) -> float | None:
    """Returns the page's score as `pass_score_after_parsing` left it; None if there is none."""
    text = parse_data.content_meta.get(SCORE_KEY)
    try:
        return None if text is None else float32(float(text))
    except ValueError:
        return None


def _sizes(conf: Configuration) -> tuple[int, int]:
    """Reads scoring.similarity.ngrams: shortest and longest run, or one number. ConfigError."""
    values = conf.get_trimmed_strings("scoring.similarity.ngrams")
    numbers = [int(text) if text.isdecimal() and len(text) < 3 else 0 for text in values]
    if not 1 <= len(numbers) <= 2 or not all(1 <= number <= _MOST_WORDS for number in numbers):
        expected = f"one or two numbers from 1 to {_MOST_WORDS}, as 1,1"
        raise ConfigError(
            f"scoring.similarity.ngrams: expected {expected}, found {','.join(values)!r}"
        )
    shortest, longest = numbers[0], numbers[-1]
    return (1, 1) if shortest == 1 else (shortest, max(shortest, longest))


def _stopwords(text: str) -> list[str]:
    """Reads words, one a line; lines that begin with # are comments."""
    lines = (line.strip() for line in text.splitlines())
    return [line.lower() for line in lines if line and not line.startswith("#")]
