"""Quantiles of scores as `readdb -stats` shows them: from a merging t-digest, as Nutch keeps it.

A digest is a list of centroids (mean, weight) sorted by mean. Values are buffered; a merge sorts them in among the
centroids and joins neighbours as long as a centroid's weight stays below n * 4 q (1 - q) * …: coarse in the middle,
single values at both ends. Nutch builds one digest per map task, writes it in 32-bit floats, and merges these.

Given the scores in the order in which Hadoop hands them on, `digest_of` gives Nutch's result to the last digit. For
large CrawlDbs `quantiles` takes them from all scores themselves: exact where Nutch's are approximations.
Matched: com.tdunning.math.stats.MergingDigest 3.3 (scale function K_2, weight limit) as CrawlDbReader uses it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from minutch.formats.javahash import float32

COMPRESSION: Final = 100.0
_SIZE: Final = int(2 * COMPRESSION + 10)  # centroids, with room for the limit of weights
_BUFFER: Final = 5 * _SIZE
_INNER: Final = math.sqrt(_BUFFER // _SIZE - 1) * COMPRESSION  # while values come in, centroids stay smaller

Centroids = list[tuple[float, float]]


class MergingDigest:
    """A digest of 64-bit floats."""

    def __init__(self) -> None:
        self.centroids: Centroids = []  # sorted (mean, weight)
        self.least, self.most = math.inf, -math.inf
        self._waiting: Centroids = []
        self._merges = 0

    def add(self, value: float, weight: float = 1.0) -> None:
        """Take in a value."""
        if len(self._waiting) >= _BUFFER - len(self.centroids) - 1:
            self._merge(_INNER)
        self._waiting.append((value, weight))

    def compress(self) -> None:
        """Merge what waits, and the centroids as far as they may be."""
        self._merge(COMPRESSION)

    def to_32_bits(self) -> MergingDigest:
        """What is left of the digest after it was written with `asSmallBytes` and read again."""
        self.compress()
        self.compress()  # once for the size, once for the bytes
        result = MergingDigest()
        result.centroids = [(float32(mean), float32(weight)) for mean, weight in self.centroids]
        result.least, result.most = self.least, self.most
        return result

    def add_digest(self, other: MergingDigest) -> None:
        """Take in all centroids of another digest."""
        for mean, weight in other.centroids:
            self.add(mean, weight)

    def _merge(self, compression: float) -> None:
        incoming = sorted(self._waiting + self.centroids, key=lambda c: c[0])
        self._waiting = []
        if not incoming:
            return
        total = sum(weight for _, weight in incoming)
        backwards = self._merges % 2 == 1
        self._merges += 1
        if backwards:
            incoming.reverse()
        merged = _join(incoming, total, compression)
        self.centroids = merged[::-1] if backwards else merged
        self.least = min(self.least, self.centroids[0][0])
        self.most = max(self.most, self.centroids[-1][0])

    def quantile(self, q: float) -> float:
        """The value below which the fraction `q` (0 to 1) lies; NaN of an empty digest."""
        if self._waiting:
            self._merge(_INNER)
        if len(self.centroids) < 2:
            return self.centroids[0][0] if self.centroids else math.nan
        return _interpolate(self.centroids, q, self.least, self.most)


def _join(incoming: Centroids, total: float, compression: float) -> Centroids:
    """Join neighbours of `incoming` within the limit of weights; the outermost ones stay alone."""
    normalizer = compression / (4 * math.log(total / compression) + 24)
    result = [incoming[0]]
    so_far = 0.0
    for i, (mean, weight) in enumerate(incoming[1:], 1):
        last_mean, last_weight = result[-1]
        proposed = last_weight + weight
        limit = total * min(_limit(so_far / total, normalizer), _limit((so_far + proposed) / total, normalizer))
        if proposed <= limit and i not in (1, len(incoming) - 1):
            result[-1] = (last_mean + (mean - last_mean) * weight / proposed, proposed)
        else:
            so_far += last_weight
            result.append((mean, weight))
    return result


def _limit(q: float, normalizer: float) -> float:
    """The fraction of all weight that a centroid at `q` may have (K_2)."""
    return q * (1 - q) / normalizer


def _interpolate(centroids: Centroids, q: float, least: float, most: float) -> float:
    total = sum(weight for _, weight in centroids)
    index = q * total
    (first_mean, first), (last_mean, last) = centroids[0], centroids[-1]
    if index < 1:
        return least
    if first > 1 and index < first / 2:
        return least + (index - 1) / (first / 2 - 1) * (first_mean - least)
    if index > total - 1:
        return most
    if last > 1 and total - index <= last / 2:
        return most - (total - index - 1) / (last / 2 - 1) * (most - last_mean)
    so_far = first / 2
    for (left, left_weight), (right, right_weight) in pairwise(centroids):
        step = (left_weight + right_weight) / 2
        if so_far + step > index:
            return _between(left, left_weight, right, right_weight, index - so_far, so_far + step - index)
        so_far += step
    above = index - total - last / 2
    return _weighted(last_mean, last / 2 - above, most, above)


def _between(
    left: float, left_weight: float, right: float, right_weight: float, after_left: float, before_right: float
) -> float:
    """The value between two centroids; single values stand for themselves half a unit around."""
    if left_weight == 1:
        if after_left < 0.5:
            return left
        after_left -= 0.5
    if right_weight == 1:
        if before_right <= 0.5:
            return right
        before_right -= 0.5
    return _weighted(left, before_right, right, after_left)


def _weighted(first: float, first_weight: float, second: float, second_weight: float) -> float:
    if first > second:
        return _weighted(second, second_weight, first, first_weight)
    value = (first * first_weight + second * second_weight) / (first_weight + second_weight)
    return max(first, min(value, second))


def quantiles(values: np.ndarray[Any, Any], wanted: Sequence[float]) -> list[float]:
    """The quantiles `wanted` of the values themselves, between two of them in proportion."""
    return [float(value) for value in np.quantile(values.astype(np.float64), wanted)]


def digest_of(parts: Iterable[Iterable[float]]) -> MergingDigest:
    """The digest of values in the order of map tasks and, in each, of its sort."""
    total: MergingDigest | None = None
    for part in parts:
        digest = MergingDigest()
        for value in part:
            digest.add(value)
        digest = digest.to_32_bits()
        if total is None:
            total = digest
        else:
            total.add_digest(digest)
    return MergingDigest() if total is None else total.to_32_bits()
