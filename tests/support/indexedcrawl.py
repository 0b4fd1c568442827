"""A made-up crawl with stored pages, links between them and a local index."""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import md5
from pathlib import Path

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.segment.store import Segment, part_writer
from minutch.job import Counters, JobContext
from minutch.records import crawldatum as status
from minutch.records.crawldatum import CrawlDatum
from minutch.records.crawldatum_columns import to_frame
from minutch.records.links import Outlink
from minutch.records.metadata import Metadata
from minutch.records.parsedata import ParseData, ParseStatus, ParseText
from minutch.records.protocol import Content
from minutch.work.tables.recordfiles import CrawlDataWriter
from tests.support.commands import clean, index, invertlinks

PLUGINS = "index-(basic|anchor|more)|language-identifier|indexer-local|scoring-opic"
FOLDERS = ("content", "crawl_fetch", "crawl_parse", "parse_data", "parse_text")
FETCHED_AT = 1_700_000_000_000


@dataclass(frozen=True)
class Page:
    """A fetched page; `lang` is what language-identifier has found."""

    url: str
    title: str = ""
    text: str = ""
    content: bytes = b"<p>stored"
    media_type: str = "text/html"
    charset: str = "utf-8"
    lang: str = ""
    links: Sequence[tuple[str, str]] = ()
    status: int = status.STATUS_FETCH_SUCCESS
    meta: dict[str, str] = field(default_factory=dict)


class IndexedCrawl:
    """A crawl in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.index_folder = folder / "index"

    def context(self, **properties: str) -> JobContext:
        """Makes the context of a job from properties, with `__` for a dot."""
        values = {name.replace("__", "."): value for name, value in properties.items()}
        conf = Configuration.load([], overrides={"plugin.includes": PLUGINS} | values)
        return JobContext(conf.freeze(), FakeClock(FETCHED_AT), io.StringIO(), io.StringIO())

    def segment(self, name: str, pages: Iterable[Page]) -> Path:
        """A fetched and parsed segment."""
        segment = Segment(self.folder / "segments" / name)
        segment.path.mkdir(parents=True)
        found = sorted(pages, key=lambda page: page.url.encode())
        with (
            segment.writing(FOLDERS) as directory,
            part_writer(directory, "crawl_fetch", 0) as fetched,
            part_writer(directory, "content", 0) as content,
            part_writer(directory, "parse_data", 0) as data,
            part_writer(directory, "parse_text", 0) as texts,
            part_writer(directory, "crawl_parse", 0),
        ):
            for page in found:
                fetched(page.url, CrawlDatum(page.status, fetch_time=FETCHED_AT))
                if page.status == status.STATUS_FETCH_SUCCESS:
                    content(page.url, Content(page.url, page.url, page.content, page.media_type))
                    data(page.url, _parsed(page, name))
                    texts(page.url, ParseText(page.text))
        return segment.path

    def crawldb(self, entries: dict[str, int]) -> Path:
        """A CrawlDb with these statuses."""
        frame = to_frame(
            (url, CrawlDatum(code, score=1.5, fetch_time=FETCHED_AT))
            for url, code in sorted(entries.items())
        )
        place = self.folder / "crawldb/current/part-r-00000"
        place.mkdir(parents=True, exist_ok=True)
        with CrawlDataWriter(place, mapfile=True) as writer:
            writer.write(frame)
        return self.folder / "crawldb"

    def invert(self) -> None:
        """The LinkDb of all segments."""
        words = [
            str(self.folder / "linkdb"),
            "-dir",
            str(self.folder / "segments"),
            "-nofilter",
            "-noNormalize",
        ]
        assert invertlinks.run(words, self.context(linkdb__ignore__internal__links="false")) == 0

    def index(self, *words: str, **properties: str) -> Counters:
        """Index all segments, or as `words` say."""
        context = self.context(**properties)
        assert index.run(list(words) or ["-nocrawldb", *self.all_segments], context) == 0
        return context.reports["Indexer"]

    def clean(self) -> Counters:
        """Delete what the CrawlDb knows to be gone or a duplicate."""
        context = self.context()
        assert clean.run([str(self.folder / "crawldb")], context) == 0
        return context.reports["CleaningJob"]

    @property
    def all_segments(self) -> list[str]:
        """The words for all segments and the LinkDb, if there is one."""
        linkdb = self.folder / "linkdb"
        return [
            "-dir",
            str(self.folder / "segments"),
            *(["-linkdb", str(linkdb)] if linkdb.is_dir() else []),
        ]


def _parsed(page: Page, segment: str) -> ParseData:
    kept = {
        "Content-Type": page.media_type,
        "nutch.segment.name": segment,
        "nutch.content.digest": md5(page.content).hexdigest(),
    }
    tags = (
        {"CharEncodingForConversion": page.charset}
        | ({"language": page.lang} if page.lang else {})
        | page.meta
    )
    outlinks = [Outlink(url, anchor) for url, anchor in page.links]
    return ParseData(
        ParseStatus(1, 0, []), page.title, outlinks, Metadata.of(kept), Metadata.of(tags)
    )


def with_sum(body: bytes, footer: bytes) -> bytes:
    """A file of an index: the body, and the footer of another with the checksum of this body."""
    found = json.loads(footer[:-8])
    text = json.dumps(found | {"crc": zlib.crc32(body)}).encode()
    return body + text + len(text).to_bytes(4, "little") + footer[-4:]


def parted(data: bytes) -> tuple[bytes, bytes]:
    """The body and the footer of a file of an index."""
    at = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    return data[:at], data[at:]
