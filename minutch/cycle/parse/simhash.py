"""SimHash: 64 bits of which pages with nearly the same text have nearly all in common. The one home
of that number.

The text's words are its runs of letters and digits, in lower case; of scripts that put no spaces
between words, each character is one. Every three words that follow one another are a shingle, with
a 64-bit hash. A bit of the SimHash is what most of the different shingles have there. A text with
fewer than three words is one shingle; one without words has no SimHash. The text is looked at as
UTF-16, and words are hashed by FNV-1a over its units, each finished by the mixing step of
SplitMix64. What a letter is, and its lower case, is told by Python's tables of Unicode: letters
that Unicode gets later separate words until then.

Source: M. Charikar, Similarity Estimation Techniques from Rounding Algorithms (2002); G. Manku, A.
Jain, A. Das Sarma, Detecting Near-Duplicates for Web Crawling (2007).
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from minutch.cycle.parse.signature import MD5Signature
from minutch.kernels import simhash as kernels
from minutch.kernels.hash import SEED

if TYPE_CHECKING:
    from minutch.conf import Configuration
    from minutch.kernels.native import U32
    from minutch.records.protocol import Content

SIZE: Final = 8
"""Bytes of a signature that is a SimHash."""
_SHINGLE: Final = 3
# Bit above a UTF-16 unit: this one is a word by itself.
_ALONE: Final = 0x1_0000
_WORD_CATEGORIES: Final = frozenset(("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Nd", "Nl", "Cs"))
"""Surrogates count as letters: what lies above U+FFFF is mostly ideographs."""
_SPACELESS: Final = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x3400, 0x9FFF),
)  # fmt: skip
"""Thai and Lao, Myanmar, Khmer, Kana, ideographs."""


class SimHashSignature:
    """The SimHash of the parse text, 8 bytes, big-endian; of pages without words MD5Signature's 16
    bytes.
    """

    def __init__(self, conf: Configuration) -> None:
        self._fallback = MD5Signature(conf)

    def calculate(self, content: Content, text: str | None) -> bytes:
        """Returns 8 or 16 bytes."""
        number = simhash(text or "")
        return (
            self._fallback.calculate(content, text)
            if number is None
            else number.to_bytes(SIZE, "big")
        )


def simhash(text: str) -> int | None:
    """Returns the SimHash of a text, from 0 to 2**64 - 1; None if there are no words in it."""
    units = np.frombuffer(text.encode("utf-16-le", "surrogatepass"), np.uint8)
    words = np.empty(len(units) // 2, np.uint64)
    count = kernels.word_hashes(units, _table(), words)
    if not count:
        return None
    result = np.zeros(1, np.uint64)
    # The table of shingles is half full at most, and its slots are a power of two.
    kernels.simhash(
        words, count, _SHINGLE, SEED, np.zeros(1 << (2 * count - 1).bit_length(), np.uint64), result
    )
    return int(result[0])


@cache
def _table() -> U32:
    """Makes a table of UTF-16's units: each one's value in a word, 0 for those that separate
    words.
    """
    table = np.zeros(0x1_0000, np.uint32)
    for code in range(0x1_0000):
        if unicodedata.category(char := chr(code)) in _WORD_CATEGORIES:
            table[code] = ord(char.lower()[0])
    for first, last in _SPACELESS:
        spaceless = table[first : last + 1]
        # Letters only: signs between them separate words all the same.
        spaceless[spaceless > 0] |= _ALONE
    return table
