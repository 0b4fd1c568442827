"""Settings that all jobs of a WebGraph share: partitions, compression, memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from minutch.conf import Configuration
from minutch.work.tables.compression import PLAIN, Compression, output_compression
from minutch.work.tables.parallel import memory_budget, number_of_parts


@dataclass(frozen=True, slots=True)
class GraphSettings:
    """Settings for reading and writing the databases of a WebGraph."""

    parts: int = 1
    """Number of partitions that are written."""
    compression: Compression = PLAIN
    memory: int = 1 << 28
    """Bytes that the tables of a job may take before they are sorted on disk."""

    @classmethod
    def from_conf(cls, conf: Configuration) -> Self:
        """Reads the settings; half of the job's memory is for sorting. Raises ConfigError."""
        return cls(number_of_parts(conf), output_compression(conf), memory_budget(conf) // 2)
