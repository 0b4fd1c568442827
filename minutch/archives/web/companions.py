"""Writes companions of WARC files: one for each, with records that refer to those of the WARC file.

The WARC files themselves are not written; `export warc` with the same options writes them, record
by record the same.
"""

from __future__ import annotations

from email.utils import formatdate
from pathlib import Path

from minutch.archives.web.webarchive import ArchiveListener, ArchiveSpec
from minutch.version import __version__
from minutch.warc.warcfile import V1_0, Output, WarcFiles

_NEVER_FULL = 1 << 62


class CompanionFiles(ArchiveListener):
    """A writer of companion files. Subclasses write the records; `suffix` is part of file names."""

    suffix = ""

    def __init__(self, spec: ArchiveSpec, folder: Path) -> None:
        self.spec, self._folder = spec, folder
        self._name = ""
        self.files = WarcFiles(
            self._open,
            compress=True,
            limit=_NEVER_FULL,
            version=V1_0,
            info=lambda: (spec.time, self.info()),
            level=spec.level,
        )

    def _open(self, number: int) -> tuple[str, Output]:
        return self._name, (self._folder / self._name).open("wb", buffering=1 << 18)

    def begin(self, name: str) -> None:
        self._name = f"{name.removesuffix('.gz')}.{self.suffix}.gz"
        self.files.open_next()

    def info(self) -> dict[str, str]:
        """Returns the fields of the warcinfo record."""
        crawler = self.spec.crawler[V1_0]
        made = {
            "Software-Info": f"minutch/{__version__}",
            "Extracted-Date": formatdate(self.spec.time / 1000, usegmt=True),
            "isPartOf": self.spec.prefix,
        }
        return made | {
            name: value for name, value in crawler.items() if name not in ("software", "robots")
        }
