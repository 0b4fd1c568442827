"""zstd frames (RFC 8878): by Python's own module from 3.14 on, by its backport before."""

from __future__ import annotations

import sys
from typing import Any

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ZstdError = zstd.ZstdError


def compress(data: bytes) -> bytes:
    """One frame, at the library's usual level (3)."""
    return bytes(zstd.compress(data))


def decompressor(window_log: int) -> Any:
    """A decompressor of one frame, as bz2's; windows up to 2 ** `window_log` bytes. It raises ZstdError."""
    return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: window_log})
