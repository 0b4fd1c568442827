"""Crawls the corpus once in each way of reading links, by the commands that people use."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minutch.conf import Configuration
from minutch.cycle.segment.store import Segment
from minutch.job import JobContext
from minutch.records.crawldatum import CrawlDatum
from minutch.records.parsedata import ParseData
from tests.corpus.cases import cases
from tests.corpus.site import serving
from tests.support.commands import fetch, generate, inject, parse, sitemap, updatedb
from tests.support.crawldbs import read_db

SETTINGS: Final = {
    "http.agent.name": "corpusbot",
    "http.proxy.host": "127.0.0.1",
    "plugin.includes": "protocol-http|parse-(html|text|tika)|urlnormalizer-pass|scoring-opic",
    "db.max.outlinks.per.page": "-1",
    "fetcher.server.delay": "0",
    "fetcher.server.min.delay": "0",
    "fetcher.min.crawl.delay": "0",
    "fetcher.threads.per.queue": "8",
    "fetcher.threads.start.delay": "0",
    "parser.workers": "0",
}


BROWSERS, DEFAULT, LOADS = "browsers", "default", "loads"
WAYS: Final = {
    BROWSERS: {"parser.html.outlinks.whatwg": "true", "parser.html.templates": "false"},
    DEFAULT: {"parser.html.outlinks.whatwg": "false"},
    LOADS: {"parser.html.outlinks.whatwg": "true", "parser.html.outlinks.browser": "true"},
}


@dataclass
class Crawled:
    """What came out."""

    parses: dict[str, ParseData]
    texts: dict[str, str]
    fetched: dict[str, CrawlDatum]
    entries: dict[str, CrawlDatum]
    """Of the CrawlDb after the update."""
    listed: dict[str, CrawlDatum]
    """Of the CrawlDb that the sitemaps have filled."""


def crawl(folder: Path, way: str) -> Crawled:
    """Crawls the corpus."""
    kinds = {kind: cases(kind) for kind in ("page", "robots", "sitemap")}
    answers = {
        k: v for found in kinds.values() for case in found for k, v in case.answers().items()
    }
    seeds = [case.url for case in kinds["page"]]
    for case in kinds["robots"]:
        paths = [*case.table.get("allowed", ()), *case.table.get("refused", ())]
        seeds += [case.host + path for path in paths]
    for name, urls in {"seeds": seeds, "sitemaps": [s.url for s in kinds["sitemap"]]}.items():
        (folder / name).mkdir()
        (folder / name / "urls.txt").write_text("\n".join(urls), encoding="utf-8")
    db, segments, listed = (str(folder / name) for name in ("crawldb", "segments", "listed"))
    with serving(answers) as port:
        conf = Configuration.load([]).with_values(
            {**SETTINGS, **WAYS[way], "http.proxy.port": str(port)}
        )

        def do(command: object, *words: str) -> None:
            job = JobContext(conf, out=io.StringIO(), err=io.StringIO(), stdin=io.StringIO())
            assert command.run(list(words), job) == 0  # type: ignore[attr-defined]

        do(inject, db, str(folder / "seeds"), "-noFilter", "-noNormalize")
        do(generate, db, segments, "-noFilter", "-noNorm")
        [path] = Path(segments).iterdir()
        do(fetch, str(path), "-threads", "16")
        do(parse, str(path), "-noFilter", "-noNormalize")
        do(updatedb, db, str(path))
        do(sitemap, listed, "-sitemapUrls", str(folder / "sitemaps"), "-noFilter", "-noNormalize")
    segment = Segment(path)
    parses, texts, fetched = (
        dict(segment.records(part)) for part in ("parse_data", "parse_text", "crawl_fetch")
    )
    return Crawled(
        parses,  # type: ignore[arg-type]
        {url: str(text) for url, text in texts.items()},
        {
            url: d
            for url, d in fetched.items()
            if isinstance(d, CrawlDatum) and d.has_fetch_status()
        },
        read_db(Path(db)),
        read_db(Path(listed)),
    )
