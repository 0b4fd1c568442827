"""The demo site crawled twice, for tests of archives: redirects, pages that did not change, one
that did, errors.
"""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from minutch import jobs
from minutch.conf import Configuration
from tests.support.segments import LOOPBACK
from tests.support.siteserver import SiteServer

PLUGINS = (
    "protocol-http|urlfilter-regex|parse-(html|text)|scoring-(opic|depth)"
    "|urlnormalizer-(pass|regex|basic)"
)
MODIFIED = "/books/knots.html"
"""The page that answers 304."""
CHANGED = "/about.html"
"""The page that is another one in the second crawl."""
SCHEDULE = {"db.fetch.schedule.class": "org.apache.nutch.crawl.AdaptiveFetchSchedule"}
"""With it conditional requests are made."""
KEPT = {"store.http.headers": "true", "store.http.request": "true", "store.ip.address": "true"}


@dataclass
class ArchivedCrawl:
    """A crawl's folder, the address of its site, and what the site answered at last."""

    folder: Path
    site: str
    answers: dict[str, bytes]

    @property
    def segments(self) -> list[Path]:
        """The segments, the oldest first."""
        return sorted((self.folder / "segments").iterdir())


def configuration(**values: str) -> Configuration:
    """Configures a crawl of the site, with heads and requests kept; `fetcher__warc="true"` sets
    fetcher.warc.
    """
    more = {name.replace("__", "."): value for name, value in values.items()}
    conf = Configuration.load([]).with_values(LOOPBACK)
    return conf.with_values(
        {"plugin.includes": PLUGINS, "store.response.time": "true", **SCHEDULE, **KEPT, **more}
    )


def crawl_twice(folder: Path, **values: str) -> ArchivedCrawl:
    """Two rounds for the pages, one more a month later for all of them."""
    conf = configuration(**values)
    crawl = folder / "crawl"
    seeds = folder / "seeds.txt"
    with SiteServer() as server:
        pages = [
            MODIFIED,
            CHANGED,
            "/",
            "/news",
            "/news.html",
            "/fr.html",
            "/closed.html",
            "/archive.bin",
        ]
        site = server.site.url("one").rstrip("/")
        seeds.write_text("".join(f"{site}{page}\n" for page in pages), encoding="utf-8")
        jobs.inject(crawl / "crawldb", seeds, conf=conf)
        a_round(crawl, conf, 0)
        server.site.routes["one"][CHANGED] = {"file": "one/hours.html"}
        a_round(crawl, conf, 31)
        answers = {
            f"{site}{page}": server.site.answer("127.0.0.1", page, None).body for page in pages
        }
    return ArchivedCrawl(crawl, site, answers)


def a_round(crawl: Path, conf: Configuration, days: int) -> None:
    """One round, with what is due in so many days."""
    known = set((crawl / "segments").iterdir()) if (crawl / "segments").exists() else set()
    jobs.generate(crawl / "crawldb", crawl / "segments", "-adddays", days, "-topN", 8, conf=conf)
    (segment,) = set((crawl / "segments").iterdir()) - known
    jobs.fetch(segment, conf=conf)
    if conf.get_boolean("fetcher.store.content", True):
        jobs.parse(segment, conf=conf)
    jobs.updatedb(crawl / "crawldb", segment, conf=conf)


@functools.cache
def archived_crawl() -> ArchivedCrawl:
    """The crawl of this test process, with WARC files beside what segments have otherwise. Not to
    be written to.
    """
    folder = Path(tempfile.mkdtemp(prefix="minutch-archived-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return crawl_twice(folder, fetcher__warc="true")


Record = tuple[str, str | None, str, dict[str, str], bytes]
"""Type, target, date, all fields, block."""


def checked(path: Path) -> list[Record]:
    """The records of a file; `warcio check` and fastwarc's digests have nothing against it."""
    assert Checker(SimpleNamespace(inputs=[str(path)], verbose=False)).process_all() == 0
    with path.open("rb") as file:
        fast = [
            (record.verify_block_digest(), record.record_id)
            for record in FastIterator(file, parse_http=False)
        ]
    assert all(whole for whole, _ in fast)
    records = read_records(path)
    assert [fields["WARC-Record-ID"] for _, _, _, fields, _ in records] == [
        record_id for _, record_id in fast
    ]
    assert len({record_id for _, record_id in fast}) == len(fast)
    return records


def read_records(path: Path) -> list[Record]:
    """The records of a file as warcio reads them."""
    records = []
    with path.open("rb") as file:
        for record in ArchiveIterator(file, no_record_parse=True):
            fields = dict(record.rec_headers.headers)
            block = record.raw_stream.read()
            records.append(
                (record.rec_type, fields.get("WARC-Target-URI"), fields["WARC-Date"], fields, block)
            )
    return records
