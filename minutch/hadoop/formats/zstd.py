"""zstd frames (RFC 8878): by Python's own module from 3.14 on, by its backport before."""

from __future__ import annotations

import sys
from typing import Any, Final

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ZstdError = zstd.ZstdError
_DICTIONARY: Final = b"\x37\xa4\x30\xec"


def compress(data: bytes) -> bytes:
    """One frame, at the library's usual level (3)."""
    return bytes(zstd.compress(data))


def compressor() -> Any:
    """Returns a compressor of one frame, as bz2's."""
    return zstd.ZstdCompressor()


def decompressor(window_log: int, shared: Any = None) -> Any:
    """Returns a decompressor of one frame, as bz2's; windows up to 2 ** `window_log` bytes. It
    raises ZstdError.

    `shared` is a `dictionary`, if the frame may have been made with one.
    """
    return zstd.ZstdDecompressor(shared, {zstd.DecompressionParameter.window_log_max: window_log})


def dictionary(data: bytes) -> Any:
    """Returns a dictionary: zstd's, or any data that frames refer to. ZstdError or ValueError."""
    made = zstd.ZstdDict(data, is_raw=not data.startswith(_DICTIONARY))
    # Tried at once: what is no dictionary raises here, not at the first frame.
    zstd.ZstdDecompressor(made)
    return made


def frame_size(data: memoryview) -> int:
    """Returns the size of the frame that `data` begins with. Raises ZstdError if it is cut off."""
    return int(zstd.get_frame_size(data))
