"""Writes WET files: the text of pages as Common Crawl publishes it, one conversion record a page.

    <out>/<prefix>-NNNNN.warc.wet.gz     WARC 1.0; its records refer to those of
                                         <prefix>-NNNNN.warc.gz (`export warc`)

Source: files of the Common Crawl of 2024, and org.archive.extract.WETExtractorOutput, by which they
were made.
"""

from __future__ import annotations

from minutch.archives.web.cdxjindex import field
from minutch.archives.web.companions import CompanionFiles
from minutch.warc.pagewriter import LANGUAGE
from minutch.warc.warcfile import WrittenRecord


class WetFiles(CompanionFiles):
    """A writer of WET files, which copies conversion records."""

    suffix = "wet"

    def record(self, record: WrittenRecord) -> None:
        if record.kind == "conversion":
            fields = [(name, field(record.header, name)) for name in ("WARC-Refers-To", LANGUAGE)]
            more = [(name, value) for name, value in fields if value]
            self.files.write(
                "conversion", record.time, record.target, record.body, "text/plain", more=more
            )
