"""Rows of kernels over texts: signals of their quality, near-duplicates, media types."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import polars as pl

from minutch.cycle.owntext import near
from minutch.cycle.parse.mime import MimeUtil
from minutch.cycle.parse.mimerules import TypeRegistry
from minutch.inspect.corpus import rows, signals
from minutch.kernels import minhash
from tests.benchmarks.kernels.made import Made
from tests.benchmarks.kernels.rows import Row, Ways, rows_of
from tests.support import plainscan

ROWS: list[Row] = []
row = rows_of(ROWS)

_LINES = 20
_LIMIT = (1 << 64) - 1
_COMPARED = ("repeated_lines", "short_lines", "ended_lines", "bullet_lines")


def _texts(made: Made) -> pl.Series:
    """Texts of URLs, of which some are on several lines."""
    urls = made.urls.to_list()
    groups = [urls[at : at + _LINES] for at in range(0, len(urls), _LINES)]
    return pl.Series(["\n".join([*some, some[0], "- end."]) for some in groups])


@row("quality.measure", "quality.hash_words", by="Python: line by line")
def measure_quality_of_texts(made: Made) -> Ways:
    texts = _texts(made)

    def by_kernel() -> pl.DataFrame:
        signals._stops.cache_clear()
        return signals.measures(texts)[0].select(_COMPARED)

    def by_python() -> pl.DataFrame:
        return pl.DataFrame([_shares(text.split("\n")) for text in texts], _COMPARED, orient="row")

    return Ways(by_kernel, by_python)


def _shares(lines: list[str]) -> tuple[float, ...]:
    count = len(lines)
    return (
        (count - len(set(lines))) / count,
        sum(len(line) <= 30 for line in lines) / count,
        sum(line[-1] in ".!?" for line in lines) / count,
        sum(line[0] in "-•" for line in lines) / count,
    )


@row("minhash.band_keys", by="NumPy: all hashes of a text's runs at once")
def hash_runs_of_words(made: Made) -> Ways:
    texts = _texts(made)[:50]
    return Ways(
        lambda: near.band_keys(texts).to_numpy(),
        lambda: np.array([list(_bands(text)) for text in texts], np.uint64),
    )


def _bands(text: str) -> Iterator[int]:
    by, each = near._functions(), near.HASHES
    words = [_word(word) for word in _words(text)]
    runs = np.array([_run(words[at : at + 5]) for at in range(len(words) - 4)], np.uint64)
    numbers = np.array([minhash._GOLDEN, *(word for word in words if word & 1)], np.uint64)
    ends = near.BANDS * each
    of_runs, of_numbers = (
        (some[:, None] * by.factors[of] + by.summands[of]).min(axis=0).tolist()
        for some, of in ((runs, slice(ends)), (numbers, slice(ends, None)))
    )
    for band in range(near.BANDS):
        key = band
        for value in [*of_runs[band * each : (band + 1) * each], of_numbers[band]]:
            key = _mixed((key * minhash._PRIME + value + minhash._GOLDEN) & _LIMIT)
        yield key


def _words(text: str) -> list[str]:
    """Words of ASCII."""
    words = re.sub(r"(?<!\d)[.,]|[.,](?!\d)", " ", text.lower()).replace(",", ".")
    return re.findall("[a-z0-9.]+", words)


def _word(word: str) -> int:
    value = minhash._OFFSET
    for byte in word.encode():
        value = (value ^ byte) * minhash._PRIME & _LIMIT
    return _mixed(value) & ~1 | any(char.isdecimal() for char in word)


def _run(words: list[int]) -> int:
    run = 0
    for word in words:
        run = _mixed((run * minhash._PRIME + word + minhash._GOLDEN) & _LIMIT)
    return run


def _mixed(value: int) -> int:
    value = (value ^ value >> 30) * 0xBF58_476D_1CE4_E5B9 & _LIMIT
    value = (value ^ value >> 27) * 0x94D0_49BB_1331_11EB & _LIMIT
    return value ^ value >> 31


@row("minhash.join_equal", "minhash.find_roots", by="Python: a dictionary of sets")
def find_clusters(made: Made) -> Ways:
    rng = np.random.default_rng(1)
    count = made.count // 10
    bands = {name: rng.integers(1, 8 * count, count, np.uint64) for name in near.KEYS}
    every = np.ones(count, np.bool_)

    def by_python() -> list[int]:
        of = {number: {number} for number in range(count)}
        for keys in bands.values():
            firsts: dict[int, int] = {}
            for number, key in enumerate(keys.tolist()):
                mine, other = of[number], of[firsts.setdefault(key, number)]
                if mine is not other:
                    mine |= other
                    of |= dict.fromkeys(other, mine)
        return [min(of[number]) for number in range(count)]

    return Ways(lambda: rows.clusters(bands.__getitem__, every, 1 << 30).tolist(), by_python)


@row("languages.rules_that_may_hold", by="Python: rule by rule")
def find_media_types_of_pages(made: Made) -> Ways:
    registry = MimeUtil(made.conf).registry

    def by_python() -> list[list[str]]:
        return [_by_magic(registry, page) for page in made.html]

    return Ways(lambda: [registry.by_magic(page) for page in made.html], by_python)


def _by_magic(registry: TypeRegistry, page: bytes) -> list[str]:
    found: dict[str, int] = {}
    for magic in registry.magics:
        if magic.priority < min(found.values(), default=magic.priority):
            break
        if magic.name not in found and plainscan.holds(magic, page):
            found[magic.name] = magic.priority
    return list(found)
