"""Marks of a text that has a line for each block of its page (parser.html.text=blocks): how
probable it is of each line that it is main text, and where in the page it stands.

    metadata `minutch.blocks`   := mark*, one for each line of the ParseText
    mark                      := chance place, digits of base 64: A-Z a-z 0-9 + /
    chance                    := 1 digit, the probability in 63rds
    place                     := 3 digits, a hash of the boxes (element and first class) around it

Marks that are not as many as the text has lines say nothing: somebody else has made the text.
"""

from __future__ import annotations

from typing import Final

import numpy as np

BLOCKS_KEY: Final = "minutch.blocks"
MOST: Final = 63
"""The probability 1."""
PLACES: Final = 1 << 18
"""Places are numbers below it."""
_DIGITS: Final = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8
)
_PAIRS: Final = np.stack([_DIGITS.repeat(64), np.tile(_DIGITS, 64)], axis=1).view(np.uint16)[:, 0]
"""Two digits for each number of 12 bits."""
_VALUES: Final = np.zeros(256, np.uint32)
_VALUES[_DIGITS] = np.arange(64)
SIZE: Final = 4
"""Bytes of a mark."""


def marks_of(chances: np.ndarray, places: np.ndarray) -> str:
    """Returns the marks of lines with these probabilities (0 to 1) and places."""
    marks = np.empty((len(chances), SIZE // 2), np.uint16)
    marks[:, 0] = _PAIRS.take(np.rint(chances * MOST).astype(np.int64) << 6 | places >> 12)
    marks[:, 1] = _PAIRS.take(places & 0xFFF)
    return marks.tobytes().decode("ascii")


def read_marks(marks: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Returns the chances in 63rds and the places of lines."""
    values = _VALUES[np.frombuffer(marks, np.uint8).reshape(-1, SIZE)]
    return values[:, 0], values[:, 1] << 12 | values[:, 2] << 6 | values[:, 3]
