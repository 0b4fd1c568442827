"""parsefilter-naivebayes: drops the links of a page that is off the subject, except those with a
listed word.

    parsefilter.naivebayes.trainfile   examples, one a line: 1 (on the subject) or 0, a tab, the
                                       text
    parsefilter.naivebayes.wordlist    words, one a line; a URL that has one keeps its link

Of a text only the letters A to Z and blanks count. Training is cheap and repeated at each start;
Nutch keeps a file `naivebayes-model` in its working directory and never looks at the examples
again.

Source: NaiveBayesParseFilter, Train and Classify of parsefilter-naivebayes, whose sums stay as they
are: a word of either class weighs log(count) + 1 - log(words of the class + words known), one that
is not known as if it stood there once, and of equals the page is on the subject.
"""

from __future__ import annotations

import logging
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.plugin.points import HTMLMetaTags, HtmlParseFilter, ParseResult
from minutch.records.protocol import Content

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

log = logging.getLogger(__name__)

TRAIN_FILE: Final = "parsefilter.naivebayes.trainfile"
WORD_LIST: Final = "parsefilter.naivebayes.wordlist"
_OTHER: Final = re.compile(r"[^a-zA-Z ]")


def words_of(text: str) -> list[str]:
    """Returns the words that count; two blanks in a row have an empty one between them, as in
    Nutch, but none ends a text.
    """
    return _OTHER.sub("", text).lower().rstrip(" ").split(" ")


@dataclass(slots=True)
class ClassExamples:
    """The statistics of the examples of a class."""

    texts: int = 0
    words: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def learn(self, words: list[str]) -> None:
        self.texts += 1
        self.words += len(words)
        # Empty words are in the sum of words, as in Train, but none is known.
        self.counts.update(word for word in words if word)

    def weight(self, found: Mapping[str, int], known: int, texts: int) -> float:
        """Returns the log likelihood of words in this class; `texts` is the number of examples."""
        # log(0): a class without examples is never chosen.
        if not self.texts:
            return -math.inf
        base = 1 - math.log(self.words + known)
        # A word that is not known weighs log(1).
        own = sum(count * math.log(self.counts.get(word, 1)) for word, count in found.items())
        return own + base * sum(found.values()) + math.log(self.texts) - math.log(texts)


class Classifier:
    """Tells texts on a subject from others."""

    def __init__(self, examples: Iterable[tuple[bool, str]]) -> None:
        """`examples`: whether each is on the subject, and its text."""
        self.subjects = {True: ClassExamples(), False: ClassExamples()}
        known: set[str] = set()
        for relevant, text in examples:
            words = words_of(text)
            self.subjects[relevant].learn(words)
            known.update(words)
        self.known = len(known)
        self.texts = sum(subject.texts for subject in self.subjects.values())

    def is_relevant(self, text: str) -> bool:
        """Returns True if a text is on the subject."""
        found = Counter(words_of(text))
        weights = {
            kind: subject.weight(found, self.known, self.texts)
            for kind, subject in self.subjects.items()
        }
        return weights[True] >= weights[False]


class NaiveBayesParseFilter(HtmlParseFilter):
    """The filter; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        name, words = (conf.get_trimmed(key) for key in (TRAIN_FILE, WORD_LIST))
        for key, value in ((TRAIN_FILE, name), (WORD_LIST, words)):
            if not value:
                raise ConfigError(f"{key}: expected the name of a file, found nothing")
        self.classifier = Classifier(_examples(_read(conf, TRAIN_FILE, name or ""), name or ""))
        self.words = [line for line in _read(conf, WORD_LIST, words or "").splitlines() if line]

    def filter(
        self,
        content: Content,
        result: ParseResult,
        metatags: HTMLMetaTags,
        document: LexborHTMLParser,
    ) -> ParseResult:
        parse = result[content.url]
        if not self.classifier.is_relevant(parse.text):
            links = parse.data.outlinks
            parse.data.outlinks = [
                link for link in links if any(word in link.to_url for word in self.words)
            ]
            log.info(
                "%s is not on the subject: %d of %d links stay",
                content.url,
                len(parse.data.outlinks),
                len(links),
            )
        return result


def _read(conf: Configuration, key: str, name: str) -> str:
    try:
        return conf.read_resource(name)
    except ConfigError as exc:
        raise ConfigError(f"{key}: {exc}") from exc


def _examples(text: str, name: str) -> list[tuple[bool, str]]:
    """Returns a training file's examples; bad lines are reported. ConfigError without any."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        target, tab, example = line.partition("\t")
        if tab and target in ("0", "1"):
            found.append((target == "1", example))
        elif line.strip() and not line.startswith("#"):
            log.warning(
                "%s, line %d: expected 0 or 1, a tab and a text, found %s", name, number, line[:60]
            )
    if not found:
        raise ConfigError(
            f"{TRAIN_FILE}: no example in {name}: expected lines of 0 or 1, a tab and a text"
        )
    return found
