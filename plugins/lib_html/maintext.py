"""Finds a page's main text: what it says itself, without menus, advertisements, footers and what
else its site puts around it (parser.html.text=main).

    tree → boxes, blocks, tokens        the kernel `blocks`, in one walk over the tree that is there
    tokens → what kind of page it is    KINDS, by the names that a page uses (`Model.kinds`)
    block → features → probability      the kernel `features`: a forest of small trees
    → text                              the blocks for which the expected F1 is highest, each once

All numbers are in maintext.npz, which `python -m tests.benchmarks.maintext.train` makes of pages
whose main text is known; its entry `source` says of which. Time and memory grow with the page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import accumulate, pairwise
from math import exp
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

import numpy as np
from selectolax.lexbor import LexborHTMLParser

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.kernels import features as kernels
from minutch.kernels.blocks import BITS, BOX, TEXT_AT, TEXT_END, WORDS
from minutch.kernels.blocks import TAG as TAG_OF
from minutch.plugin.points import TextExtractor
from minutch.records.metadata import MadeLater, Metadata
from minutch.records.textblocks import BLOCKS_KEY, SIZE, marks_of

from .textblocks import TAG, TAGS, Blocks, Choice, Flattener, block_of_line, page_tokens, places
from .tree_reader import attribute_numbers

MODEL: Final = Path(__file__).with_name("maintext.npz")
KINDS: Final = ("article", "collection", "documentation", "forum", "listing", "product", "service")
_INSIDE: Final = ("nav", "aside", "footer", "main", "article", "ul ol menu", "figure", "li", "div")
GROUPS_OF_TAGS: Final = np.zeros(len(TAGS) + 1, np.int64)
for _bit, _names in enumerate((*_INSIDE, "html body")):
    GROUPS_OF_TAGS[[TAG[name] for name in _names.split()]] |= 1 << _bit
for _level in range(1, 7):
    GROUPS_OF_TAGS[TAG[f"h{_level}"]] |= _level << kernels.HEADING

_REPEATED, _LONG, _FEW = 4, 12, 3
"""Words of a text that is said once, and of one that is even if it is there more often than that.
"""
_REPEATING: Final = [TAG[name] for name in ("pre", "td", "th")]
_HALF_STEPS: Final = float(1 << 24)
"""Steps of a half-precision float in 1: sums of such weights are exact."""
_CHANCE_LEVELS: Final = (np.arange(24) + 0.5) / 24


def features_of(page: Blocks, weights: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """A page's blocks as numbers, a row a feature and a column a block: `weights` are those of
    tokens in 127ths, `kinds` the probabilities of the page's kinds.

    Those that no tree had asked for (marks, signs, more neighbours) were taken out.
    """
    boxes, blocks = len(page.boxes), len(page.blocks)
    sums = kernels.Sums(
        np.empty((boxes, kernels.BOX_SUMS), np.int64),
        np.empty((blocks + 1, kernels.BLOCK_SUMS), np.int64),
        np.empty(2 << max(boxes, blocks).bit_length(), np.int64),
    )
    rows = np.empty((kernels.FEATURES, blocks), np.float32)
    tables = kernels.PageTables(np.frombuffer(page.text, np.uint8), *page[1:])
    kernels.describe(tables, GROUPS_OF_TAGS, weights, kinds, sums, rows)
    return rows


class Forest(NamedTuple):
    """A forest that says how probable something is.

    A node leads to `below` where its feature is at most its threshold, else to the node after that;
    a leaf, whose threshold is infinite, to itself. The number of trees is a multiple of
    TREES_AT_ONCE.
    """

    roots: np.ndarray
    depths: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    below: np.ndarray
    value: np.ndarray

    def chances(self, rows: np.ndarray) -> np.ndarray:
        """The probability for each column of `rows`."""
        return Scorer(self).chances(rows)


def in_order(bits: np.ndarray) -> np.ndarray:
    """The bits of floats as bits of integers without a sign, in the floats' order."""
    return bits ^ (bits >> 31 | np.int32(kernels.MINUS))  # type: ignore[no-any-return]


class Scorer:
    """A forest as the kernel takes it."""

    def __init__(self, forest: Forest) -> None:
        if len(forest.value) > kernels.MOST_NODES:
            raise ValueError(f"a forest of more than {kernels.MOST_NODES} nodes")
        bits = (forest.threshold + np.float32(0)).view(np.int32)
        words = in_order(bits).view(np.uint32).astype(np.uint64) << np.uint64(kernels.THRESHOLD_AT)
        for values, place in (
            (forest.below, kernels.NEXT_AT),
            (forest.feature, kernels.FEATURE_AT),
        ):
            words |= values.astype(np.uint64) << np.uint64(place)
        self._trees = kernels.Trees(forest.roots, forest.depths, words, forest.value)

    def chances(self, *pages: np.ndarray) -> np.ndarray:
        """The probability for each column of the rows of pages."""
        scores = np.empty(sum([rows.shape[1] for rows in pages]), np.float32)
        keys, at = np.empty(len(pages[0]) * kernels.AT_ONCE, np.int32), 0
        for rows in pages:
            count = rows.shape[1]
            own = scores[at : at + count]
            kernels.score(rows.reshape(-1).view(np.int32), count, self._trees, keys, own)
            at += count
        return 1 / (1 + np.exp(-scores.astype(float)))  # type: ignore[no-any-return]


class NameWeights:
    """What the names that pages use are worth: a token's weight, a page's kind."""

    def __init__(self, data: Mapping[str, np.ndarray]) -> None:
        self.weights = np.zeros(1 << BITS, np.int8)
        """Of tokens, in 127ths."""
        self.weights[data["tokens"]] = data["token_weights"]
        self._slots = np.zeros(2 << BITS, np.int32)
        self._slots[data["kind_tokens"]] = np.arange(1, len(data["kind_tokens"]) + 1)
        self._known = np.packbits(self._slots > 0, bitorder="little")
        weights = np.vstack([np.zeros(len(KINDS)), data["kind_weights"]])
        self._kind_weights = np.rint(weights * _HALF_STEPS).astype(np.int64)
        self._met = np.empty(len(weights), np.int64)
        self._lock = Lock()
        self._kind_bias = data["kind_bias"].tolist()

    def kinds(self, page: Blocks, tokens: np.ndarray) -> np.ndarray:
        """How probable each of KINDS is, by the tokens that occur in the page."""
        sums = np.zeros(len(KINDS), np.int64)
        with self._lock:
            kernels.sum_kinds(
                *(page.tokens, page.words, tokens, self._known, self._slots),
                *(self._kind_weights, sums, self._met),
            )
        # Python's numbers: for seven, NumPy takes four times as long.
        found = zip(sums.tolist(), self._kind_bias, strict=True)
        scores = [weight / _HALF_STEPS + bias for weight, bias in found]
        most = max(scores)
        chances = [exp(score - most) for score in scores]
        whole = sum(chances)
        return np.array([chance / whole for chance in chances], np.float32)


class Model:
    """The numbers of maintext.npz."""

    def __init__(self, data: Mapping[str, np.ndarray]) -> None:
        self._names = NameWeights(data)
        self._forest = Scorer(Forest(*(data[field] for field in Forest._fields)))

    def features(self, page: Blocks, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What is known of each block, and how probable each of KINDS is."""
        kinds = self._names.kinds(page, tokens)
        return features_of(page, self._names.weights, kinds), kinds

    def chances(self, *pages: np.ndarray) -> np.ndarray:
        """How probable it is for each block of pages of which this is known that it is main
        text.
        """
        return self._forest.chances(*pages)

    def judge(self, page: Blocks, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How probable it is for each block that it is main text, and of each of KINDS."""
        rows, kinds = self.features(page, tokens)
        return self.chances(rows), kinds


def best_blocks(chances: np.ndarray, words: np.ndarray) -> np.ndarray:
    """The blocks to keep, as a mask: those for which the expected F1 over words is highest, or none
    if that it is all for nothing is expected more.

    Blocks are right or wrong each for itself in one half of what is expected; in the other half
    together, so that all are main text whose chance is above some level, which may be any: related
    links are, or are not. (The first half alone: F1 is less by 0.006, of
    which 0.004 are pages that have no main text; the second alone: by 0.006.)
    """
    order = np.argsort(-chances, kind="stable")
    sizes, falling = words[order], chances[order]
    hoped, kept_words = np.cumsum(falling * sizes), np.cumsum(sizes)
    alone = 2 * hoped / (kept_words + hoped[-1])
    counts = np.searchsorted(-falling, -_CHANCE_LEVELS, side="right")
    true = np.pad(kept_words, (1, 0))[counts]
    both = kept_words[:, None] + true
    together = (2 * np.minimum(kept_words[:, None], true) / both).mean(axis=1)
    value = (alone + together) / 2
    kept = np.zeros(len(chances), bool)
    if value.max() >= (1 - falling[0]) / 2:
        kept[order[: value.argmax() + 1]] = True
    return kept


def said_once(page: Blocks, kinds: np.ndarray, chances: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """What is left of the blocks `kept` if each says something that no other one does, as a mask.

    Pages repeat themselves: for small screens, in quotes, in a table of contents. Of equal texts
    the heading stays, else the likeliest. Of shorter ones all do if there are many, as cards share
    them ("Ships in two days"), and so do code, the cells of a table, and all of a documentation's
    ("Added in version 3.5.").
    """
    found = kept.copy()
    if kinds[KINDS.index("documentation")] > 0.5:
        return found
    tags, sizes = page.boxes[page.blocks[:, BOX], TAG_OF], page.blocks[:, WORDS]
    is_heading = GROUPS_OF_TAGS[tags] >> kernels.HEADING > 0
    candidates = np.flatnonzero(kept & (sizes >= _REPEATED) & ~np.isin(tags, _REPEATING))
    order = candidates[np.lexsort((-chances[candidates], ~is_heading[candidates]))]
    bounds = page.blocks[order][:, [TEXT_AT, TEXT_END]].tolist()
    alike: dict[bytes, list[int]] = {}
    for number, (start, end) in zip(order.tolist(), bounds, strict=True):
        alike.setdefault(page.text[start:end].lower(), []).append(number)
    for numbers in alike.values():
        if len(numbers) <= _FEW or sizes[numbers[0]] >= _LONG:
            found[numbers[1:]] = False
    return found


class LearnedText(TextExtractor):
    """The extractor that is meant by parser.html.text=main."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        numbers = attribute_numbers()
        if numbers is None:
            raise ConfigError(
                "parser.html.text: main reads trees by kernels, and this selectolax lays them out"
                " otherwise; use page, or the version of selectolax that minutch was tested with"
            )
        self._flattener = Flattener(numbers)

    @cached_property
    def _model(self) -> Model:
        with np.load(MODEL) as data:
            return Model(dict(data))

    def extract(
        self, url: str, markup: bytes, document: LexborHTMLParser, metadata: Metadata
    ) -> str | bytes | None:
        """Returns the main text, a line a block; None where a page has none, or too many blocks."""
        kept = self._kept(url, markup, document)
        if kept is None:
            return None
        page, mask = kept
        bounds = page.blocks[mask][:, [TEXT_AT, TEXT_END]].tolist()
        return b"\n".join(page.text[start:end] for start, end in bounds).decode()

    def markdown(
        self, url: str, markup: bytes, document: LexborHTMLParser, write: Callable[[Choice], str]
    ) -> str | None:
        """Returns the Markdown of the same blocks."""
        kept = self._kept(url, markup, document)
        return None if kept is None else write(kept)

    def judge(
        self, url: str, markup: bytes, document: LexborHTMLParser
    ) -> tuple[Blocks, np.ndarray] | None:
        """Returns a page's blocks and the probability of each that it is main text; None where a
        page has no text, or too many blocks.
        """
        page = self._flattener.read(document)
        return page and (page, self._model.judge(page, page_tokens(url, markup))[0])

    def _kept(self, url: str, markup: bytes, document: LexborHTMLParser) -> Choice | None:
        page = self._flattener.read(document)
        if page is None:
            return None
        chances, kinds = self._model.judge(page, page_tokens(url, markup))
        mask = best_blocks(chances, page.blocks[:, WORDS].astype(float))
        return Choice(page, said_once(page, kinds, chances, mask)) if mask.any() else None


_Judged = tuple[np.ndarray, np.ndarray, np.ndarray | None]
"""Features of blocks, where they stand, and the block of each line if that is another number."""
_MOST_LATER: Final = 1024
"""Blocks of a page that wait for those of others: features of one take some 400 bytes."""


class BlockText(LearnedText):
    """All of the page's text, a line a block, with marks (parser.html.text=blocks): what of it is
    the page's own is decided with the site's other pages (minutch.cycle.owntext).
    """

    def extract(
        self, url: str, markup: bytes, document: LexborHTMLParser, metadata: Metadata
    ) -> bytes | None:
        """Returns the text, and adds the marks of its lines."""
        tokens = page_tokens(url, markup)

        def read(page: Blocks) -> bytes:
            rows, stands = self._model.features(page, tokens)[0], places(page)
            has_breaks = page.text.count(b"\n") != len(page.blocks)  # br elements
            lines = block_of_line(page) if has_breaks else None
            marks = metadata[BLOCKS_KEY] = MadeLater(self._marks, (rows, stands, lines))
            if len(stands) > _MOST_LATER:
                marks.make_all([marks])
            return page.text

        text = self._flattener.use(document, read)
        return None if text is None else text[:-1]

    def _marks(self, pages: list[_Judged]) -> list[str]:
        """Returns the marks of pages."""
        chances = self._model.chances(*[rows for rows, *_ in pages])
        order, at = [], 0
        for _, stands, lines in pages:
            end = at + len(stands)
            order.append(np.arange(at, end) if lines is None else at + lines)
            at = end
        of_line = np.concatenate(order)
        places = np.concatenate([stands for _, stands, _ in pages])
        marks = marks_of(chances[of_line], places[of_line])
        ends = accumulate([SIZE * len(lines) for lines in order], initial=0)
        return [marks[start:end] for start, end in pairwise(ends)]


class Trafilatura(TextExtractor):
    """trafilatura's text (parser.html.text=trafilatura)."""

    def extract(
        self, url: str, markup: bytes, document: LexborHTMLParser, metadata: Metadata
    ) -> str | None:
        """Parses the page a second time, as trafilatura has a parser of its own."""
        from trafilatura import extract

        text: str | None = extract(markup.decode(), url=url, include_comments=True)
        return text


class Resiliparse(TextExtractor):
    """Resiliparse's text (parser.html.text=resiliparse)."""

    def extract(
        self, url: str, markup: bytes, document: LexborHTMLParser, metadata: Metadata
    ) -> str | None:
        """Parses the page a second time, as Resiliparse has a parser of its own."""
        from resiliparse.extract.html2text import extract_plain_text

        text: str = extract_plain_text(markup.decode(), main_content=True)
        return text
