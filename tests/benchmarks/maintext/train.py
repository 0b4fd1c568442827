"""Learns the numbers of maintext.npz from pages whose main text is known.

    pip install lightgbm scikit-learn rapidfuzz
    python -m tests.benchmarks.maintext.train --pages FOLDER [--out FILE]

1. A block is main text as far as its words are matched with those of the true text, in order (the
   longest common subsequence), or by runs of four of them.
2. A token's weight: how much more main text there is under it than on its page; mean over sites,
   drawn towards 0 where they are few.
3. The kind of page: logistic regression on which tokens occur.
4. A forest (gradient boosting), where a block counts by `block_weights`. What 2 and 3 say of a page
   comes from pages of other sites. (A second forest, which saw what the first one said of blocks
   around, brought 0.003 for 40 % more time. What JSON-LD and descriptions repeat of a block brought
   nothing, nor did a forest that chooses among the cuts: 0.002.)

The F1 printed is over five folds of sites of the pages that are not put aside.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any, Final

import numpy as np

from minutch.conf import Configuration
from minutch.cycle.parse.charset import CharsetDetector
from minutch.kernels import blocks as kernels
from plugins.lib_html import maintext
from plugins.lib_html.maintext import KINDS, Forest, best_blocks, features_of, said_once
from plugins.lib_html.pages import Extractor
from plugins.lib_html.textblocks import Blocks, Flattener, page_tokens
from plugins.lib_html.tree_reader import attribute_numbers

from . import TruePage, pages_in, part_of, word_f1, words_of

SOURCE: Final = (
    "Learned from the development pages of WCXB, the Web Content eXtraction Benchmark (Murrough"
    " Foley, CC BY 4.0), but for a fifth of their sites."
)
FOLDS: Final = 5
ENOUGH: Final = 5
"""Sites that a token has to occur on."""
TREES: Final = 160
PARAMETERS: Final[dict[str, Any]] = {
    "objective": "cross_entropy",
    "learning_rate": 0.08,
    "num_leaves": 31,
    "max_depth": 6,  # as good as without a bound, and half the way for each block
    "min_data_in_leaf": 80,
    "feature_fraction": 0.3,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "lambda_l2": 5,
    "max_bin": 63,
    "num_threads": 1,
    "verbosity": -1,
    "seed": 1,
}


@dataclass
class Example:
    """A page to learn from: its blocks, and how much of each is main text (0 to 1)."""

    page: TruePage
    blocks: Blocks
    tokens: np.ndarray
    share: np.ndarray
    sizes: np.ndarray

    @property
    def fold(self) -> int:
        return part_of("fold:" + self.page.site)

    def score(self, kinds: np.ndarray, chances: np.ndarray) -> float:
        """F1 of the text that is kept."""
        kept = best_blocks(chances, self.blocks.blocks[:, kernels.WORDS].astype(float))
        kept = said_once(self.blocks, kinds, chances, kept)
        return word_f1("\n".join(texts_of(self.blocks, kept)), self.page.text)


def texts_of(page: Blocks, kept: np.ndarray) -> list[str]:
    bounds = page.blocks[kept][:, [kernels.TEXT_AT, kernels.TEXT_END]].tolist()
    return [page.text[start:end].decode() for start, end in bounds]


def examples_of(pages: Iterable[TruePage]) -> Iterable[Example]:
    """Reads pages as the parser does."""
    conf, numbers = Configuration.load([]), attribute_numbers()
    assert numbers is not None
    extractor, charsets, flattener = Extractor(conf), CharsetDetector(conf), Flattener(numbers)
    for page in pages:
        markup = charsets.detect(page.raw, None, "text/html", "").to_utf8(page.raw)
        blocks = flattener.read(extractor.read(markup)[0])
        if blocks is not None:
            share, sizes = main_shares(blocks, words_of(page.text))
            yield Example(page, blocks, page_tokens(page.url, markup), share, sizes)


def main_shares(page: Blocks, truth: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """How much of each block is main text, and its words."""
    from rapidfuzz.distance import Indel

    texts = [words_of(text) for text in texts_of(page, np.ones(len(page.blocks), bool))]
    numbers: dict[str, int] = {}
    ours = [numbers.setdefault(word, len(numbers)) for text in texts for word in text]
    theirs = [numbers.setdefault(word, len(numbers)) for word in truth]
    matched, in_runs = np.zeros((2, len(ours)), bool)
    for step in Indel.opcodes(ours, theirs) if ours and theirs else ():
        if step.tag == "equal":
            matched[step.src_start : step.src_end] = True
    runs = {tuple(theirs[i : i + 4]) for i in range(len(theirs) - 3)}
    for i in range(len(ours) - 3):
        if tuple(ours[i : i + 4]) in runs:
            in_runs[i : i + 4] = True
    sizes = np.array([len(text) for text in texts])
    ends = np.cumsum(sizes)
    shares = [
        max(matched[end - size : end].mean(), in_runs[end - size : end].mean() * (size >= 4))
        if size
        else 0.0
        for size, end in zip(sizes, ends, strict=True)
    ]
    return np.array(shares), sizes


def token_weights(examples: Sequence[Example]) -> np.ndarray:
    """The weight of each token, between -1 and 1 in steps of 1/127."""
    total, sites = np.zeros((2, 1 << kernels.BITS))
    by_site: dict[str, list[Example]] = defaultdict(list)
    for example in examples:
        by_site[example.page.site].append(example)
    for pages in by_site.values():
        sums, counts = np.zeros((2, 1 << kernels.BITS))
        for one in pages:
            tokens, found = _differences(one)
            sums[tokens] += found
            counts[tokens] += 1
        seen = counts > 0
        total[seen] += sums[seen] / counts[seen]
        sites += seen
    weights = np.round(127 * total / (sites + 3))
    weights[(sites < ENOUGH) | (np.abs(weights) < 4)] = 0
    return weights.astype(np.int8)


def _differences(one: Example) -> tuple[np.ndarray, np.ndarray]:
    """The tokens of a page, and how much more of what they call is main text than of the page."""
    page, sizes = one.blocks, np.minimum(one.sizes, 60)  # a long block must not drown all others
    main = one.share * sizes
    base = main.sum() / max(sizes.sum(), 1)
    sums = np.array([np.pad(np.cumsum(row), (1, 0)) for row in (sizes, main)])
    boxes = page.boxes
    of_boxes = sums[:, boxes[:, kernels.BLOCKS_END]] - sums[:, boxes[:, kernels.BLOCKS_AT]]
    of_blocks = np.array([sizes, main])
    owners, tokens = page.tokens.T
    is_box, inline = owners >= 0, -1 - owners
    is_inline = ~is_box & (inline < len(sizes))
    said = page.words[page.blocks[page.words[:, kernels.OWNER], kernels.WORDS] <= 12]
    all_tokens = np.concatenate([tokens[is_box], tokens[is_inline], said[:, kernels.TOKEN]])
    values = np.concatenate(
        [
            of_boxes[:, owners[is_box]],
            of_blocks[:, inline[is_inline]],
            of_blocks[:, said[:, kernels.OWNER]],
        ],
        axis=1,
    )
    found, place = np.unique(all_tokens, return_inverse=True)
    whole, part = (np.bincount(place, row) for row in values)
    good = whole > 0
    return found[good], part[good] / whole[good] - base


def kind_model(examples: Sequence[Example], most: int = 1200) -> dict[str, np.ndarray]:
    """The tokens by which kinds of page are told apart, and their weights."""
    from sklearn.linear_model import LogisticRegression

    size = 2 << kernels.BITS
    seen = [_seen(one) for one in examples]
    kinds = np.array([KINDS.index(one.page.kind) for one in examples])
    sites: dict[str, list[np.ndarray]] = defaultdict(list)
    for one, tokens in zip(examples, seen, strict=True):
        sites[one.page.site].append(tokens)
    on_sites, pages = np.zeros((2, size))
    for lists in sites.values():
        on_sites[np.unique(np.concatenate(lists))] += 1
    by_kind = np.zeros((len(KINDS), size))
    for kind, tokens in zip(kinds, seen, strict=True):
        pages[tokens] += 1
        by_kind[kind, tokens] += 1
    prior = np.bincount(kinds, minlength=len(KINDS))
    expected = prior[:, None] * pages / len(examples)
    surprise = ((by_kind - expected) ** 2 / np.maximum(expected, 1)).max(axis=0)
    surprise[on_sites < 6] = 0
    chosen = np.sort(np.argsort(-surprise)[:most])
    chosen = chosen[surprise[chosen] > 0]
    rows = np.array([np.isin(chosen, tokens) for tokens in seen], np.float32)
    weights = np.array(
        [
            1 / np.sqrt(prior[kind] * len(sites[one.page.site]))
            for one, kind in zip(examples, kinds, strict=True)
        ]
    )
    model = LogisticRegression(C=0.03, max_iter=200)
    model.fit(rows, kinds, sample_weight=weights / weights.mean())
    return {
        "kind_tokens": chosen.astype(np.uint32),
        "kind_weights": model.coef_.T.astype(np.float16),
        "kind_bias": model.intercept_.astype(np.float32),
    }


def _seen(one: Example) -> np.ndarray:
    tokens = (one.blocks.tokens[:, kernels.TOKEN], one.blocks.words[:, kernels.TOKEN], one.tokens)
    return np.unique(np.concatenate(tokens))


def forest(rows: np.ndarray, share: np.ndarray, weights: np.ndarray) -> Forest:
    """Grows a forest; `rows` has a row a block."""
    import lightgbm

    model = lightgbm.train(PARAMETERS, lightgbm.Dataset(rows, share, weight=weights), TREES)
    roots: list[int] = []
    depths: list[int] = []
    nodes: list[tuple[int, float, int, float]] = []

    def put(node: dict[str, Any], at: int) -> int:
        """Fills a node's place; returns how deep its tree is from there on."""
        if "leaf_value" in node:
            nodes[at] = (0, np.inf, at, node["leaf_value"])
            return 0
        below = len(nodes)
        nodes[at] = (node["split_feature"], node["threshold"], below, 0)
        nodes.extend(2 * nodes[:1])
        return 1 + max(put(node["left_child"], below), put(node["right_child"], below + 1))

    for tree in model.dump_model()["tree_info"]:
        roots.append(len(nodes))
        nodes.append((0, 0, 0, 0))
        depths.append(put(tree["tree_structure"], roots[-1]))
    feature, threshold, below, value = zip(*nodes, strict=True)
    return Forest(
        np.array(roots, np.int32),
        np.array(depths, np.int32),
        np.array(feature, np.uint8),
        np.array(threshold, np.float32),
        np.array(below, np.int32),
        np.array(value, np.float32),
    )


def block_weights(one: Example) -> np.ndarray:
    """A block counts by its words, and a little for itself; those of a page by the mean (geometric)
    of its words and its true ones, as a wrong word costs more where there is little to find.
    """
    true = max((one.share * one.sizes).sum(), 20)
    return one.sizes * 100 / np.sqrt(true * max(one.sizes.sum(), 1)) + 0.05  # type: ignore[no-any-return]


def train(examples: Sequence[Example]) -> Iterator[dict[str, np.ndarray]]:
    """Yields the numbers of a model, then prints what such a one is worth over folds of sites."""
    began = process_time()

    def say(what: str) -> None:
        print(f"{process_time() - began:7.1f} s  {what}", flush=True)

    folds = np.array([one.fold for one in examples])
    rows: list[Any] = [None] * len(examples)
    all_kinds = np.empty((len(examples), len(KINDS)))

    def named(these: Sequence[Example]) -> dict[str, np.ndarray]:
        weights = token_weights(these)
        kept = np.flatnonzero(weights)
        return {
            "tokens": kept.astype(np.uint32),
            "token_weights": weights[kept],
            **kind_model(these),
        }

    for fold in range(FOLDS):
        model = maintext.NameWeights(named([one for one in examples if one.fold != fold]))
        for i in np.flatnonzero(folds == fold):
            one = examples[i]
            kinds = model.kinds(one.blocks, one.tokens)
            rows[i], all_kinds[i] = features_of(one.blocks, model.weights, kinds).T, kinds
    say(f"features: {rows[0].shape[1]}")
    sizes = [len(one.share) for one in examples]
    share = np.concatenate([one.share for one in examples])
    weights = np.concatenate([block_weights(one) for one in examples])
    of_fold, table = np.repeat(folds, sizes), np.concatenate(rows)
    data = named(examples) | forest(table, share, weights)._asdict()
    data["source"] = np.array(SOURCE)
    yield data
    chances = np.empty(len(table))
    for fold in range(FOLDS):
        own = of_fold == fold
        grown = forest(table[~own], share[~own], weights[~own])
        chances[own] = grown.chances(np.ascontiguousarray(table[own].T))
    say("F1: " + by_kind(examples, all_kinds, np.split(chances, np.cumsum(sizes)[:-1])))


def by_kind(examples: Sequence[Example], kinds: np.ndarray, chances: Sequence[np.ndarray]) -> str:
    scores: dict[str, list[float]] = defaultdict(list)
    for one, of_page, chance in zip(examples, kinds, chances, strict=True):
        found = one.score(of_page, chance)
        for name in ("all", one.page.kind):
            scores[name].append(found)
    return "  ".join(f"{name} {np.mean(found):.3f}" for name, found in sorted(scores.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=Path, required=True)
    parser.add_argument(
        "--out", type=Path, default=Path(maintext.__file__).with_name("maintext.npz")
    )
    options = parser.parse_args()
    examples = list(examples_of(one for one in pages_in(options.pages) if not one.is_aside))
    for data in train(examples):
        np.savez_compressed(options.out, **data)
        print(f"{options.out}: {options.out.stat().st_size:,} bytes", flush=True)


if __name__ == "__main__":
    main()
