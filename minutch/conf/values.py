"""Reads values as Java and Hadoop do: numbers, truth values, sizes. Pure: text in, None if it is no
such value.
"""

from __future__ import annotations

import re
import struct
from decimal import Decimal
from typing import Final

BOOLEANS: Final = {"true": True, "false": False}

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_HEX: Final = re.compile(r"(-?)0[xX]((?<!-0[xX])[+-]?[0-9a-fA-F]+|[0-9a-fA-F]+)")
_FLOAT: Final = re.compile(
    r"([+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[fFdD]?"
)
_HEX_FLOAT: Final = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?"
)
_SIZE: Final = re.compile(r"([+-]?[0-9]+(?:\.[0-9]+)?)\s*([kmgtpe]?)b?", re.IGNORECASE)
_FLOAT_NAMES: Final = {"Infinity": "inf", "+Infinity": "inf", "-Infinity": "-inf"}


def read_integer(text: str) -> int | None:
    """Reads a whole number, decimal or `0x…`."""
    if match := _HEX.fullmatch(text):
        return int(match[1] + match[2], 16)
    return int(text) if _INTEGER.fullmatch(text) else None


def read_double(text: str) -> float | None:
    """Reads a number as java.lang.Double.parseDouble does."""
    if match := _FLOAT.fullmatch(text):
        return float(_FLOAT_NAMES.get(match[1], match[1]))
    if match := _HEX_FLOAT.fullmatch(text):
        try:
            return float.fromhex(match[1])
        except OverflowError:
            return float("-inf") if text[0] == "-" else float("inf")
    return None


def read_size(text: str) -> int | None:
    """Reads a number of bytes with an optional binary prefix, `512m`, `1.5g`."""
    match = _SIZE.fullmatch(text)
    if not match:
        return None
    return int(Decimal(match[1]) * (1 << 10 * " kmgtpe".index(match[2].lower() or " ")))


def float32(value: float) -> float:
    """Returns a number, rounded to 32 bits."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
