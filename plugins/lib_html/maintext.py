"""Finds a page's main text: what it says itself, without menus, advertisements, footers and what
else its site puts around it (parser.html.text=main).

    tree → boxes, blocks, tokens        the kernel `blocks`, in one walk over the tree that is there
    tokens → what kind of page it is    KINDS, by the names that a page uses (`Model.kinds`)
    block → features → probability      a forest of small trees, the kernel `score`
    → text                              the blocks for which the expected F1 is highest

All numbers are in maintext.npz, which `python -m tests.benchmarks.maintext.train` makes of pages
whose main text is known; its entry `source` says of which. Time and memory grow with the page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from selectolax.lexbor import LexborHTMLParser

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.kernels import blocks as kernels
from minutch.plugin.points import TextExtractor
from minutch.records.metadata import Metadata
from minutch.records.textblocks import BLOCKS_KEY, marks_of

from .textblocks import TAG, TAGS, Blocks, Choice, Flattener, block_of_line, page_tokens, places
from .tree_reader import attribute_numbers

KINDS: Final = (
    "article",
    "collection",
    "documentation",
    "forum",
    "listing",
    "product",
    "service",
)
LEVELS: Final = 6
"""Boxes around a block that are looked at one by one."""
REACH: Final = 12
"""Those that are looked at together."""
_INSIDE: Final = ("nav", "aside", "footer", "main", "article", "ul ol menu", "figure", "li", "div")


def _bits(groups: Sequence[str]) -> np.ndarray:
    """Tag → the groups that it belongs to, a bit each."""
    found = np.zeros(len(TAGS) + 1, np.int64)
    for bit, names in enumerate(groups):
        found[[TAG[name] for name in names.split()]] |= 1 << bit
    return found


_INSIDE_BITS: Final = _bits(_INSIDE)
_ROOTS: Final = _bits(["html body"]) > 0
_HEADING: Final = np.zeros(len(TAGS) + 1)
_HEADING[[TAG[f"h{level}"] for level in range(1, 7)]] = range(1, 7)


def _summed(rows: np.ndarray) -> np.ndarray:
    """Sums of all columns before each, and of all."""
    sums = np.zeros((len(rows), rows.shape[1] + 1))
    np.cumsum(rows, axis=1, out=sums[:, 1:])
    return sums


def _shifted(row: np.ndarray, by: int) -> np.ndarray:
    """The same of the block so many places further on; 0 where there is none."""
    padded = np.pad(row, abs(by))
    return padded[abs(by) + by :][: len(row)]


def _by_owner(owners: np.ndarray, weights: np.ndarray, count: int) -> np.ndarray:
    """Sum, least and greatest weight of each owner (0 at least or at most); owners ascend."""
    found = np.zeros((3, count))
    if len(owners):
        starts = np.flatnonzero(np.diff(owners, prepend=-1))
        theirs = owners[starts]
        found[0] = np.bincount(owners, weights, count)
        found[1, theirs] = np.minimum(np.minimum.reduceat(weights, starts), 0)
        found[2, theirs] = np.maximum(np.maximum.reduceat(weights, starts), 0)
    return found


def _shares(values: np.ndarray, wholes: np.ndarray | float) -> np.ndarray:
    return values / np.maximum(wholes, 1)


@dataclass
class Features:
    """A page's blocks as rows of numbers. Those that no tree had asked for (marks, signs, more
    neighbours) were taken out: each costs 5 µs a page.
    """

    page: Blocks
    weights: np.ndarray
    """Of tokens."""
    kinds: np.ndarray
    """The probabilities of the page's kinds."""

    def __post_init__(self) -> None:
        blocks, boxes = self.page.blocks, self.page.boxes
        self.count = len(blocks)
        self.words = blocks[:, kernels.WORDS].astype(float)
        around = np.empty((REACH, self.count), np.int64)
        around[0] = blocks[:, kernels.BOX]
        outer = np.maximum(boxes[:, kernels.OUTER], 0)
        for level in range(1, REACH):
            around[level] = outer[around[level - 1]]
        self.around = around
        self.tags = boxes[:, kernels.TAG][around]
        self.headings = _HEADING[self.tags[0]]

    def rows(self) -> np.ndarray:
        """One row a feature, one column a block."""
        blocks, boxes, around = self.page.blocks, self.page.boxes, self.around
        words, index, total = self.words, np.arange(self.count), self.words.sum()
        characters = blocks[:, kernels.CHARACTERS].astype(float)
        linked = blocks[:, kernels.LINK_WORDS].astype(float)
        long, linkage = np.log1p(words), linked / words
        last = np.frombuffer(self.page.text, np.uint8)[blocks[:, kernels.TEXT_END] - 1]
        inside = np.bitwise_or.reduce(_INSIDE_BITS[self.tags], axis=0)
        rows: list[Any] = [
            long,
            np.log1p(characters),
            linkage,
            blocks[:, kernels.LINKS],
            blocks[:, kernels.STOPS] / words,
            _shares(blocks[:, kernels.CAPITALS], characters),
            characters / words,
            (last == 46) | (last == 33) | (last == 63),
            self.headings,
            boxes[around[0], kernels.DEPTH],
            *(inside >> np.arange(len(_INSIDE))[:, None] & 1),
        ]
        named = self._names(rows)
        # Where it stands.
        is_text = (words >= 10) & (linkage < 0.4)
        sums = _summed(np.array([words, linked, np.where(is_text, words, 0)]))
        before = sums[0, :-1]
        titles = np.flatnonzero(self.headings == 1)
        title = titles[0] if len(titles) else 0
        after = before - sums[0, title]
        heading = np.maximum.accumulate(np.where(self.headings > 0, index, -1))
        rows += [
            index / self.count,
            _shares(before, total),
            np.log1p(before),
            np.log1p(total - sums[0, 1:]),
            np.clip(index - title, -50, 50) if len(titles) else np.full(self.count, -99),
            np.sign(after) * np.log1p(np.abs(after)) * (len(titles) > 0),
            np.where(heading >= 0, np.minimum(index - heading, 60), -1),
            *np.where(heading >= 0, np.array([self.headings, *named])[:, heading], 0),
            _shifted(self.headings, -1),
            _shifted(named[0], -1),
            _shifted(long, 1),
        ]
        for reach in (3, 8):
            start = np.maximum(index - reach, 0)
            end = np.minimum(index + reach + 1, self.count)
            near, near_linked = sums[:2, end] - sums[:2, start]
            rows += [np.log1p(near), _shares(near_linked, near)]
        self._boxes(rows, sums)
        self._page(rows, sums, inside)
        return np.array(rows, np.float32)

    def _names(self, rows: list[Any]) -> np.ndarray:
        """Appends what the page's own names say; returns what those of text and boxes sum up to."""
        boxes, tokens, words = self.page.boxes, self.page.tokens, self.page.words
        weights, owners = self.weights[tokens[:, kernels.TOKEN]], tokens[:, kernels.OWNER]
        of_box = owners >= 0
        self.by_box = _by_owner(owners[of_box], weights[of_box], len(boxes))
        inline = -1 - owners[~of_box]
        within = _by_owner(inline, weights[~of_box], self.count + 1)[:, :-1]
        said = _by_owner(words[:, kernels.OWNER], self.weights[words[:, kernels.TOKEN]], self.count)
        path = np.where(_ROOTS[self.tags], 0, self.by_box[:, self.around])
        whole = path[0].sum(axis=0)
        rows += [
            *within[:2],
            *said,
            whole,
            path[0].max(axis=0),
            path[1].min(axis=0),
            path[1].argmin(axis=0),
            path[2].max(axis=0),
            path[2].argmax(axis=0),
            *path[0, :2],
            *path[1, :4],
            *path[2, 1:3],
        ]
        return np.array([said[0], said[1], whole])

    def _boxes(self, rows: list[Any], sums: np.ndarray) -> None:
        """Appends what is said of the boxes around, and of the cards that they are."""
        boxes, around, index = self.page.boxes, self.around, np.arange(self.count)
        total, long = sums[0, -1], sums[2, -1]
        start, end = boxes[:, kernels.BLOCKS_AT], boxes[:, kernels.BLOCKS_END]
        words, linked, texts = sums[:, end] - sums[:, start]
        sizes = end - start
        share, linkage = _shares(texts, long), _shares(linked, words)
        rows += [
            *share[around[:LEVELS]],
            *_shares(words, sizes)[around[[0, 3, 5]]],
            *linkage[around[2:4]],
            *np.log1p(words[around[[1, 3, 5]]]),
        ]
        for least in (0.4, 0.7):
            enough = share[around] >= least
            level = np.where(enough.any(axis=0), enough.argmax(axis=0), REACH - 1)
            box = around[level, index]
            rows += [
                level,
                _shares(words[box], total),
                linkage[box],
                boxes[box, kernels.DEPTH],
                self.by_box[0, box],
                _shares(sums[0, index] - sums[0, start[box]], words[box]),
            ]
        # Boxes of one shape in the same box are cards.
        shape = boxes[:, kernels.SHAPE]
        _, cards = np.unique(boxes[:, kernels.OUTER] << 31 | shape, return_inverse=True)
        siblings, in_cards, linked_in_cards = (
            np.bincount(cards, of)[cards] for of in (sizes > 0, words, linked)
        )
        most = np.where(_ROOTS[self.tags[:8]], 0, siblings[around[:8]])
        box = around[most.argmax(axis=0), index]
        rows += [
            np.log1p(siblings[around[0]]),
            np.log1p(most.max(axis=0)),
            np.log1p(in_cards[box]),
            _shares(linked_in_cards[box], in_cards[box]),
            _shares(in_cards[box], siblings[box]),
            _shares(in_cards[box], total),
            self.by_box[0, box],
        ]
        # Blocks of one path may be anywhere.
        path = (shape[around[0]] * 31 + shape[around[1]]) * 31 + shape[around[2]]
        _, paths = np.unique(path, return_inverse=True)
        alike, in_alike = np.bincount(paths)[paths], np.bincount(paths, self.words)[paths]
        rows += [np.log1p(alike), in_alike / alike, _shares(in_alike, total)]

    def _page(self, rows: list[Any], sums: np.ndarray, inside: np.ndarray) -> None:
        """Appends what is the same for all blocks."""
        total, linked, long = sums[:, -1]
        tags = self.page.boxes[:, kernels.TAG]
        of_page = [
            np.log1p(total),
            np.log1p(self.count),
            _shares(linked, total),
            _shares(long, total),
            self.by_box[0, _ROOTS[tags]].sum(),
            *(
                _shares(self.words[inside >> _INSIDE.index(name) & 1 > 0].sum(), total)
                for name in ("article", "main")
            ),
            np.log1p((tags == TAG["article"]).sum()),
            np.log1p((self.headings > 0).sum()),
            total / self.count,
            *self.kinds,
        ]
        rows += [np.full(self.count, value) for value in of_page]


class Forest(NamedTuple):
    """The fields of a forest, as the kernel `score` takes them."""

    roots: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    below: np.ndarray
    above: np.ndarray

    def chances(self, rows: np.ndarray) -> np.ndarray:
        """The probability of each column of `rows`."""
        count = rows.shape[1]
        scores = np.empty(count, np.float32)
        kernels.score(np.ascontiguousarray(rows.T).reshape(-1), count, *self, scores)
        return 1 / (1 + np.exp(-scores.astype(float)))  # type: ignore[no-any-return]


class NameWeights:
    """What the names that pages use are worth: a token's weight, a page's kind."""

    def __init__(self, data: Mapping[str, np.ndarray]) -> None:
        self.weights = np.zeros(1 << kernels.BITS, np.float32)
        self.weights[data["tokens"]] = data["token_weights"] / np.float32(127)
        self._slots = np.zeros(2 << kernels.BITS, np.int16)
        self._slots[data["kind_tokens"]] = np.arange(1, len(data["kind_tokens"]) + 1)
        self._kind_weights = np.vstack([np.zeros(len(KINDS)), data["kind_weights"]])
        self._kind_bias = data["kind_bias"]

    def kinds(self, page: Blocks, tokens: np.ndarray) -> np.ndarray:
        """How probable each of KINDS is, by the tokens that occur in the page."""
        all_tokens = (page.tokens[:, kernels.TOKEN], page.words[:, kernels.TOKEN], tokens)
        seen = np.zeros(len(self._kind_weights), bool)
        seen[self._slots[np.concatenate(all_tokens)]] = True
        scores = self._kind_weights[seen].sum(axis=0) + self._kind_bias
        chances = np.exp(scores - scores.max())
        return chances / chances.sum()  # type: ignore[no-any-return]


class Model:
    """The numbers of maintext.npz."""

    def __init__(self, data: Mapping[str, np.ndarray]) -> None:
        self._names = NameWeights(data)
        self._forest = Forest(*(data[field] for field in Forest._fields))

    def chances(self, page: Blocks, tokens: np.ndarray) -> np.ndarray:
        """How probable it is for each block that it is main text."""
        features = Features(page, self._names.weights, self._names.kinds(page, tokens))
        return self._forest.chances(features.rows())


def best_blocks(chances: np.ndarray, words: np.ndarray) -> np.ndarray:
    """The blocks to keep, as a mask: those for which the expected F1 over words is highest."""
    order = np.argsort(-chances, kind="stable")
    sizes = words[order]
    hoped = np.cumsum(chances[order] * sizes)
    value = 2 * hoped / (np.cumsum(sizes) + hoped[-1])
    kept = np.zeros(len(chances), bool)
    kept[order[: value.argmax() + 1]] = True
    return kept


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
        with np.load(Path(__file__).with_name("maintext.npz")) as data:
            return Model(dict(data))

    def extract(
        self, url: str, markup: bytes, document: LexborHTMLParser, metadata: Metadata
    ) -> str | None:
        """Returns the main text, a line a block; None where a page has no text, or
        too many blocks.
        """
        kept = self._kept(url, markup, document)
        if kept is None:
            return None
        page, mask = kept
        bounds = page.blocks[mask][:, [kernels.TEXT_AT, kernels.TEXT_END]].tolist()
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
        return page and (page, self._model.chances(page, page_tokens(url, markup)))

    def _kept(self, url: str, markup: bytes, document: LexborHTMLParser) -> Choice | None:
        judged = self.judge(url, markup, document)
        if judged is None:
            return None
        page, chances = judged
        return Choice(page, best_blocks(chances, page.blocks[:, kernels.WORDS].astype(float)))


class BlockText(LearnedText):
    """All of the page's text, a line a block, with marks (parser.html.text=blocks): what of it is
    the page's own is decided with the site's other pages (minutch.cycle.owntext).
    """

    def extract(
        self, url: str, markup: bytes, document: LexborHTMLParser, metadata: Metadata
    ) -> str | None:
        """Returns the text, and adds the marks of its lines."""
        judged = self.judge(url, markup, document)
        if judged is None:
            return None
        page, chances = judged
        lines = block_of_line(page)
        metadata.set(BLOCKS_KEY, marks_of(chances[lines], places(page)[lines]))
        return page.text[:-1].decode()


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
