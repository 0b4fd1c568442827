"""Counts the terms of a text, for the comparison of a page with the gold standard.

    words     Unicode's word boundaries (UAX 29), in lower case, what has no letter or digit left
              out
    terms     the words without stop words, cut down to their stems (Porter 1980)
    shingles  runs of stems with a blank between them, for scoring.similarity.ngrams from 2 on; stop
              words count here

Source: LuceneTokenizer of scoring-similarity and the filters of Lucene that it names. Porter's own
later changes to his algorithm, which Lucene has (`possibly` to `possibl`), are not in the library
here (`possibli`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

import regex
import Stemmer

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
