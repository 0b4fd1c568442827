"""A crawl of the demo site in two acts, and what an index has to hold after each step.

index       three rounds: every page that was fetched and parsed, a duplicate among them
clean       without the duplicate
recrawl     one page has changed, one is gone: `index -deleteGone` of the new segments alone
"""

from __future__ import annotations

import io
import shutil
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from minutch import jobs
from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.segment.store import PARSE_DATA, PARSE_TEXT, Segment
from minutch.job import Counters
from minutch.records.crawldatum_columns import records
from minutch.records.parsedata import ParseData, ParseText
from tests.support.demo import PROPERTIES, write_seeds
from tests.support.siteserver import SITE, SiteServer

CHANGED = "/books/knots.html"
GONE = "/visit.html"
DUPLICATE = "/about-the-library.html"
ANCHORS = {"Her home", "The museum next door", "More about the cat"}
"""Of links between hosts, one to a page."""
NEW_WORDS = "Sheepshanks and carrick bends are new on our shelves."

MAPPING = '<copy/><rename/><remove><field source="segment"/></remove>'
"""As in Nutch's index-writers.xml."""
TAGGED = MAPPING.replace("<copy/>", '<copy><field source="anchor" dest="tags"/></copy>')
"""Pages that others link to get a field `tags`."""

Pages = dict[str, tuple[str, str]]
"""URL → title and text."""


@dataclass
class Story:
    """The crawl; `first`, `second` are its folders after each act."""

    first: Path
    second: Path
    changed: str
    gone: str
    duplicate: str

    def segments(self) -> list[Path]:
        """The segments of the second act alone."""
        known = {path.name for path in (self.first / "segments").iterdir()}
        return sorted(
            path for path in (self.second / "segments").iterdir() if path.name not in known
        )


def make(folder: Path) -> Story:
    """Crawl the site, change it, crawl all of it again."""
    site = folder / "site"
    shutil.copytree(SITE, site)
    crawl = folder / "crawl"
    conf = _conf()
    with SiteServer(site) as server:
        seeds = write_seeds(folder, server.site)
        jobs.run("crawl", seeds, crawl, 3, conf=conf)
        first = folder / "first"
        shutil.copytree(crawl, first)
        page = site / "one" / CHANGED[1:]
        page.write_text(page.read_text().replace("</body>", f"<p>{NEW_WORDS}</p></body>"))
        (site / "one" / GONE[1:]).unlink()
        server.site.routes["one"][CHANGED].pop("modified")
        jobs.run("generate", crawl / "crawldb", crawl / "segments", "-adddays", 40, conf=conf)
        segment = max((crawl / "segments").iterdir())
        jobs.run("fetch", segment, conf=conf)
        jobs.run("parse", segment, conf=conf)
        jobs.run("updatedb", crawl / "crawldb", segment, conf=conf)
        jobs.run("invertlinks", crawl / "linkdb", segment, conf=conf)
        jobs.run("dedup", crawl / "crawldb", conf=conf)
        urls = (
            server.site.url("one", CHANGED),
            server.site.url("one", GONE),
            server.site.url("two", DUPLICATE),
        )
    return Story(first, crawl, *urls)


def _conf() -> Configuration:
    return Configuration.load([], overrides={**PROPERTIES, "fetcher.server.delay": "0.0"})


def pages(crawl: Path, *, duplicates: bool = False) -> Pages:
    """Returns the pages that an index should hold: the newest parse of each that the CrawlDb has as
    fetched.
    """
    database = CrawlDb(crawl / "crawldb")
    frames = [database.read_part(index) for index in range(len(database.parts()))]
    wanted = {"db_fetched", "db_notmodified"} | ({"db_duplicate"} if duplicates else set())
    known = [
        url for frame in frames for url, datum in records(frame) if datum.status_name in wanted
    ]
    found: Pages = {}
    for path in sorted((crawl / "segments").iterdir()):
        segment = Segment(path)
        for url in known:
            for data, text in zip(
                segment.get(PARSE_DATA, url), segment.get(PARSE_TEXT, url), strict=True
            ):
                assert isinstance(data, ParseData)
                assert isinstance(text, ParseText)
                if data.status.is_success:
                    found[url] = data.title.strip(), text.text.strip()
    return found


# -- the jobs --------------------------------------------------------------------------------------


@dataclass
class Indexing:
    """The jobs with one writer: plugin, Java class and parameters."""

    folder: Path
    plugin: str
    name: str
    parameters: dict[str, object]
    mapping: str = MAPPING

    def conf(self, **properties: str) -> Configuration:
        values = "".join(
            f"<param name={quoteattr(k)} value={quoteattr(str(v))}/>"
            for k, v in self.parameters.items()
        )
        (self.folder / "index-writers.xml").write_text(
            '<writers><writer id="w"'
            f' class="org.apache.nutch.indexwriter.{self.name}"><parameters>{values}'
            f"</parameters><mapping>{self.mapping}</mapping></writer></writers>"
        )
        includes = {"plugin.includes": f"index-(basic|anchor)|{self.plugin}|scoring-opic"}
        given = {name.replace("__", "."): value for name, value in properties.items()}
        return Configuration.load([self.folder], overrides=includes | given)

    def index(self, crawl: Path, *words: object, **properties: str) -> Counters:
        """index, of all segments unless there are other words."""
        given = words or ("-dir", crawl / "segments")
        conf = self.conf(**properties)
        return jobs.run(
            "index",
            crawl / "crawldb",
            "-linkdb",
            crawl / "linkdb",
            *given,
            conf=conf,
            err=io.StringIO(),
        )

    def clean(self, crawl: Path) -> Counters:
        """clean."""
        return jobs.run("clean", crawl / "crawldb", conf=self.conf())
