"""What the kernels `features` make of a page, by NumPy: a feature at a time, for all blocks; trees
of a forest level by level; the weights of all tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from minutch.kernels import blocks as kernels
from minutch.kernels.features import CARD_LEVELS, GROUPS, LEVELS, REACH, TREES_AT_ONCE
from plugins.lib_html.maintext import GROUPS_OF_TAGS, Forest
from plugins.lib_html.textblocks import TAG, Blocks

_ROOTS = np.isin(np.arange(len(GROUPS_OF_TAGS)), [TAG["html"], TAG["body"]])
_HEADING = np.zeros(len(GROUPS_OF_TAGS))
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


def plain_features(page: Blocks, weights: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """A page's blocks as numbers, one row a feature and one column a block."""
    return _Features(page, weights.astype(int), kinds).rows()


@dataclass
class _Features:
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
        long, linkage = words, linked / words
        last = np.frombuffer(self.page.text, np.uint8)[blocks[:, kernels.TEXT_END] - 1]
        inside = np.bitwise_or.reduce(GROUPS_OF_TAGS[self.tags], axis=0)
        rows: list[Any] = [
            long,
            characters,
            linkage,
            blocks[:, kernels.LINKS],
            blocks[:, kernels.STOPS] / words,
            _shares(blocks[:, kernels.CAPITALS], characters),
            characters / words,
            (last == 46) | (last == 33) | (last == 63),
            self.headings,
            boxes[around[0], kernels.DEPTH],
            *(inside >> np.arange(GROUPS)[:, None] & 1),
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
            before,
            total - sums[0, 1:],
            np.clip(index - title, -50, 50) if len(titles) else np.full(self.count, -99),
            after * (len(titles) > 0),
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
            rows += [near, _shares(near_linked, near)]
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
            *words[around[[1, 3, 5]]],
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
        most = np.where(_ROOTS[self.tags[:CARD_LEVELS]], 0, siblings[around[:CARD_LEVELS]])
        box = around[most.argmax(axis=0), index]
        rows += [
            siblings[around[0]],
            most.max(axis=0),
            in_cards[box],
            _shares(linked_in_cards[box], in_cards[box]),
            _shares(in_cards[box], siblings[box]),
            _shares(in_cards[box], total),
            self.by_box[0, box],
        ]
        # Blocks of one path may be anywhere.
        path = (shape[around[0]] * 31 + shape[around[1]]) * 31 + shape[around[2]]
        _, paths = np.unique(path, return_inverse=True)
        alike, in_alike = np.bincount(paths)[paths], np.bincount(paths, self.words)[paths]
        rows += [alike, in_alike / alike, _shares(in_alike, total)]

    def _page(self, rows: list[Any], sums: np.ndarray, inside: np.ndarray) -> None:
        """Appends what is the same for all blocks."""
        total, linked, long = sums[:, -1]
        tags = self.page.boxes[:, kernels.TAG]
        of_page = [
            total,
            self.count,
            _shares(linked, total),
            _shares(long, total),
            self.by_box[0, _ROOTS[tags]].sum(),
            *(_shares(self.words[inside >> group & 1 > 0].sum(), total) for group in (4, 3)),
            (tags == TAG["article"]).sum(),
            (self.headings > 0).sum(),
            total / self.count,
            *self.kinds,
        ]
        rows += [np.full(self.count, value) for value in of_page]


def random_forest(seed: int, trees: int, depth: int, features: int) -> Forest:
    """A forest of whole trees."""
    rng = np.random.default_rng(seed)
    inner = (1 << depth) - 1
    size = 2 * inner + 1
    nodes = np.arange(trees * size)
    is_leaf = nodes % size >= inner
    values = rng.normal(size=len(nodes)).astype(np.float32)
    return Forest(
        np.arange(0, len(nodes), size, np.int32),
        np.full(trees, depth, np.int32),
        rng.integers(0, features, len(nodes)).astype(np.uint8),
        np.where(is_leaf, np.inf, values.round(1)).astype(np.float32),
        np.where(is_leaf, nodes, nodes + nodes % size + 1).astype(np.int32),
        np.where(is_leaf, values, 0).astype(np.float32),
    )


def plain_scores(forest: Forest, rows: np.ndarray) -> np.ndarray:
    """The sums of a forest's trees for each column, some trees at a time."""
    columns = np.arange(rows.shape[1])
    scores = np.zeros(rows.shape[1], np.float32)
    for first in range(0, len(forest.roots), TREES_AT_ONCE):
        found = []
        for tree in range(first, first + TREES_AT_ONCE):
            at = np.full(rows.shape[1], forest.roots[tree], np.int64)
            for _ in range(forest.depths[tree]):
                at = forest.below[at] + (rows[forest.feature[at], columns] > forest.threshold[at])
            found.append(forest.value[at])
        scores += found[0] + found[1] + found[2] + found[3]
    return scores


def plain_kinds(data: Any, page: Blocks, tokens: np.ndarray) -> np.ndarray:
    """How probable the kinds of a page are, by the numbers of maintext.npz."""
    seen = {*page.tokens[:, kernels.TOKEN], *page.words[:, kernels.TOKEN], *tokens}
    is_seen = np.isin(data["kind_tokens"], [*seen])
    scores = data["kind_weights"][is_seen].astype(float).sum(axis=0) + data["kind_bias"]
    chances = np.exp(scores - scores.max())
    return (chances / chances.sum()).astype(np.float32)  # type: ignore[no-any-return]
