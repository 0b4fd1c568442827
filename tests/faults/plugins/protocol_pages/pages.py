"""http: URLs answered from the files below the folder `pages.folder`, as protocol-file reads
them.
"""

from __future__ import annotations

from collections.abc import Mapping

from minutch.conf import Configuration
from minutch.records.crawldatum import CrawlDatum
from minutch.urls.parts import Url, parse
from plugins.protocol_file.file import File, _Answer


class Pages(File):
    """protocol-pages."""

    schemes = ("http",)

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.folder = conf.get("pages.folder", "")

    def _read(self, url: Url, datum: CrawlDatum) -> _Answer:
        return super()._read(parse(f"file:{self.folder}{url.path}"), datum)
