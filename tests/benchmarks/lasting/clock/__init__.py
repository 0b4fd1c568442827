"""A clock of the machine's programs that can be set: see `sitecustomize`."""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path
from typing import Final

from tests.benchmarks.broad.server import PROJECT

_SECOND: Final = 1_000_000_000


class MachineClock:
    """The clock of all programs that are started with its `environment`."""

    def __init__(self, file: Path) -> None:
        file.write_bytes(bytes(8))
        self._file = file
        self.environment = {
            "PYTHONPATH": f"{Path(__file__).parent}{os.pathsep}{PROJECT}",
            "MACHINE_CLOCK": str(file),
        }

    @property
    def ahead(self) -> float:
        """Seconds by which it is ahead of the true one; may be set at any time."""
        (found,) = struct.unpack("<q", self._file.read_bytes())
        return float(found / _SECOND)

    @ahead.setter
    def ahead(self, seconds: float) -> None:
        with self._file.open("r+b") as file, mmap.mmap(file.fileno(), 8) as clock:
            struct.pack_into("<q", clock, 0, round(seconds * _SECOND))
