"""Adds to Python's clock what a file says, so that it can be set while programs run.

Python imports this module at its start where its folder is in PYTHONPATH, in each process of a
program. MACHINE_CLOCK names the file: nanoseconds, 8 bytes, little-endian; it is mapped, so a look
at the clock costs no call. The monotonic clock stays as it is, as that of a machine does.
"""

from __future__ import annotations

import mmap
import os
import struct
import time


def _set(path: str) -> None:
    with open(path, "rb") as file:  # noqa: PTH123, pathlib would be loaded by each process
        added = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)
    unpack = struct.Struct("<q").unpack_from
    seconds, nanoseconds = time.time, time.time_ns
    time.time = lambda: seconds() + unpack(added)[0] / 1e9
    time.time_ns = lambda: nanoseconds() + int(unpack(added)[0])


if "MACHINE_CLOCK" in os.environ:
    _set(os.environ["MACHINE_CLOCK"])
