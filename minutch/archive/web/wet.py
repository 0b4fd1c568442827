"""`export wet`: the text of pages, as the Common Crawl publishes it: one conversion record a page.

    <out>/<prefix>-NNNNN.warc.wet.gz     WARC 1.0; its records refer to those of <prefix>-NNNNN.warc.gz (`export warc`)

Source: files of the Common Crawl of 2024, and org.archive.extract.WETExtractorOutput, which made them.
"""

from __future__ import annotations

from typing import Final

from minutch.archive.pagerecords import LANGUAGE
from minutch.archive.warcfile import Record
from minutch.archive.web.cdxj import field
from minutch.archive.web.derived import Derived, export_derived
from minutch.archive.web.webarchive import FLAGS as COMMON
from minutch.archive.web.webarchive import OPTIONS
from minutch.job import JobContext

USAGE: Final = f"""export wet <segment>... [-dir <segments>] <out> [options]
{OPTIONS}
\t<out>\tthe new folder of the WET files"""
FLAGS: Final = COMMON


def run(args: list[str], context: JobContext) -> int:
    """The command: 0 if done."""
    return export_derived("export wet", args, FLAGS, USAGE, context, Wet)


class Wet(Derived):
    """Takes the conversion records over."""

    suffix = "wet"

    def record(self, record: Record) -> None:
        if record.kind == "conversion":
            fields = [(name, field(record.header, name)) for name in ("WARC-Refers-To", LANGUAGE)]
            more = [(name, value) for name, value in fields if value]
            self.files.write("conversion", record.time, record.target, record.body, "text/plain", more=more)
