"""check: asks for what pages refer to and the crawl has not fetched: images, styles, scripts,
fonts, files and links to other sites; and looks for the fragments that links name.

    <crawl>/checks/parses/      parses of the crawl's segments that keep all links, and ids
    <crawl>/checks/segments/    what was asked for, by HEAD, and by GET what HEAD says is broken
    <crawl>/checks/current/     the table `checks`

The fetcher asks, with all of its politeness. A check that was broken off goes on where it stopped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import polars as pl

from minutch.conf import Configuration
from minutch.cycle.fetch.fetcher import fetch
from minutch.cycle.fetch.settings import FetchOptions
from minutch.cycle.fetchlist.generate import freegen
from minutch.cycle.parse.parsesegment import parse
from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_FETCH,
    CRAWL_PARSE,
    PARSE_DATA,
    PARSE_TEXT,
    Segment,
)
from minutch.errors import StoreError
from minutch.hadoop.formats.batch import Batch, keys_of, own_column
from minutch.inspect.query.crawl import SEGMENTS, CrawlFolder, Segments
from minutch.inspect.query.links import CHECKS, Checks, newest_links
from minutch.inspect.query.pages import is_fetch, outcome
from minutch.inspect.query.reach import with_ends
from minutch.inspect.query.table import Request
from minutch.job import Counters, JobContext
from minutch.plugin.chains import SCOPE_OUTLINK
from minutch.plugin.urlrules import UrlRules
from minutch.records import parsedata_columns
from minutch.records.metadata import IDS_KEY
from minutch.records.parsedata import ParseData
from minutch.scratch import scratch
from minutch.urls.hostcolumns import domains_of, host_names
from minutch.work.tables.database import part_name
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.install import make_directory, remove
from minutch.work.tables.spans import scan_all

REST: Final = 24 * 3600 * 1000
"""Milliseconds for which an answer counts; nothing is asked for more often."""
PARSES: Final = "parses"
_ALL_LINKS: Final = {
    "db.ignore.external.links": "false",
    "db.ignore.internal.links": "false",
    "db.max.outlinks.per.page": "-1",
    "parse.filter.urls": "false",
    "parse.normalize.urls": "false",
    "parser.html.outlinks.browser": "true",
    # what no browser loads, or only where the user sends something
    "parser.html.outlinks.kinds": "-post,-form,-ping,-profile,-doctype,-comment,-base,-cite",
    "parser.html.outlinks.whatwg": "true",
    "parser.html.templates": "false",
    "parser.skip.truncated": "false",
}
"""What parses for a check have: each link that a browser follows or loads, with its fragment."""
_ASKING: Final = {
    # Nothing beside the links themselves is asked for, and nothing is kept of it but the answer.
    "fetcher.follow.outlinks.depth": "-1",
    "fetcher.parse": "false",
    "fetcher.store.robotstxt": "false",
    "fetcher.tail.share": "0",
    "fetcher.tdmrep": "false",
    "fetcher.warc": "false",
    "db.ignore.external.links": "false",
    "http.redirect.max": "5",
}
_NOT_FOR_CHECKS: Final = r"urlfilter-.*|parse-js|parsefilter-.*|scoring-.*|publish-.*"
"""Plugins: filters say which pages belong to the crawl; what scripts seem to name is a guess."""
_ENDING: Final = r"(?i)(^[^?#]*/[^?#/]*)\.(?:[a-z][a-z0-9]{1,4}|7z|mp[34]|bz2)((?:[?#].*)?)$"
_PAGE: Final = r"(?i)^[^?#]*\.(?:[sx]?html?|php[0-9]?|aspx?|jspx?|cgi|pl|do)(?:[?#].*)?$"
_ROUTES: Final = r"^(?:$|(?i:top)$|[!/])"
"""Fragments that need no element: the top of the page, and what scripts take for paths."""

CHECKED: Final = "links checked"
ASKED: Final = "URLs asked for"
HELD: Final = "URLs asked for within a day"
LEFT_OUT: Final = "URLs that the filters leave out"
EXTERNAL: Final = "URLs on other sites, not asked for"
BROKEN: Final = "URLs that are broken"
MISSING: Final = "fragments that are missing"


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """The options of a check."""

    external: bool = False
    """Whether links to other sites are asked for."""
    requisites: bool = False
    """Whether what is asked for is kept, with its content, for archives."""


def check(
    crawl: CrawlFolder, options: CheckOptions = CheckOptions(), *, context: JobContext
) -> Counters:
    """Checks a crawl's links. Raises StoreError (no content), and what `fetch` raises."""
    place, counters = crawl.path / CHECKS, Counters()
    conf = _conf_for_checks(context.conf)
    inner = replace(context, conf=conf.with_values(_ASKING).freeze())
    checks = Checks(place)
    with checks.lock(), scratch("check", place) as work:
        parsed = _parsed(crawl.segments, place / PARSES, conf, context)
        named = ("url", "outcome", "leads_to")
        site = pl.concat(crawl.tables["site"].frames(Request(named)))
        links = _links(parsed, site, context.conf, work)
        wanted = _wanted(links, options, context.conf, counters)
        for segment in Segments(place / SEGMENTS):
            # What a check before left unasked when it was broken off.
            if segment.waits_for() == "fetch":
                fetch(segment.path, context=inner)
        _ask(wanted, place, options, inner, counters)
        rows = _rows(links, parsed, site, _answers(place))
        bad = rows.filter(pl.col("outcome").is_in(["gone", "failed"]))
        counters.add(BROKEN, bad.select("url").n_unique())
        missing = rows.filter(~pl.col("has_fragment"))
        counters.add(MISSING, missing.select("url", "fragment").n_unique())
        counters.add(CHECKED, len(rows))
        with checks.replacement(keep_old=False) as fresh:
            rows.write_parquet(fresh / f"{part_name(0)}.parquet")
    return counters


def _conf_for_checks(conf: Configuration) -> Configuration:
    includes, excludes = (conf.get(f"plugin.{name}") or "" for name in ("includes", "excludes"))
    return conf.with_values(
        {
            **_ALL_LINKS,
            "plugin.includes": f"{includes}|parse-ids",
            "plugin.excludes": "|".join(filter(None, (excludes, _NOT_FOR_CHECKS))),
        }
    ).freeze()


def _parsed(
    segments: Segments, place: Path, conf: Configuration, context: JobContext
) -> list[Segment]:
    """Parses the segments that are not parsed for checks yet; returns all of these parses, oldest
    first. Those of segments that are gone, as after compaction, go too.
    """
    wanted = [one for one in segments if one.has(CONTENT) and one.has(CRAWL_FETCH)]
    if not wanted:
        raise StoreError(
            f"{segments.path}: no segment has the content of pages, in which links are looked for",
            hint="fetcher.store.content=true, and fetch again",
        )
    names = {segment.name for segment in wanted}
    for folder in place.iterdir() if place.is_dir() else ():
        if folder.name not in names:
            remove(folder)
    found = []
    for segment in wanted:
        here = Segment(place / segment.name)
        # A finished segment never changes: it is parsed for checks once.
        if not here.has(CRAWL_PARSE):
            make_directory(here.path)
            content = here.path / CONTENT
            content.unlink(missing_ok=True)
            # A segment of its own with the crawl's content: the crawl's parses stay as they are.
            content.symlink_to(os.path.relpath(segment.path / CONTENT, here.path))
            parse(here.path, context=replace(context, conf=conf))
            content.unlink()
            # Texts are most of a parse, and no check asks for them.
            remove(here.path / PARSE_TEXT)
        found.append(here)
    return found


def _links(
    parsed: Sequence[Segment], site: pl.DataFrame, conf: Configuration, work: Path
) -> pl.LazyFrame:
    """Returns the links to be checked: to what is no page of the crawl, or with a fragment."""
    good = site.filter(pl.col("outcome").is_in(["fetched", "unchanged"]))["url"]
    rules = UrlRules(conf, normalize=True, filtering=False, scope=SCOPE_OUTLINK, keep_on_error=True)
    by_domain = conf.get_text("db.ignore.external.links.mode").lower() == "bydomain"

    def site_of(urls: pl.Series) -> pl.Series:
        hosts = host_names(urls)
        return domains_of(hosts) if by_domain else hosts

    files = []
    for number, frame in enumerate(newest_links(parsed)):
        rows = frame.select(
            to=decode_keys(frame["key"]),
            from_url=decode_keys(frame["from_url"]),
            anchor=decode_keys(frame["anchor"]),
        )
        rows = rows.filter(
            pl.col("to").str.contains(r"^(?i:https?):"), pl.col("from_url").is_in(good.implode())
        )
        plain = rows["to"].str.replace(r"#.*", "")
        rows = rows.with_columns(
            url=rules.apply(plain, Counters()),
            # The fragment directive (WICG, Scroll to Text Fragment) names text, no element.
            fragment=rows["to"].str.extract(r"#(.*)").str.replace(r":~:.*", ""),
            external=site_of(plain).ne_missing(site_of(rows["from_url"])),
        ).drop_nulls("url")
        rows = rows.with_columns(known=pl.col("url").is_in(site["url"].implode()))
        names_one = pl.col("fragment").str.contains(_ROUTES).not_().fill_null(False)
        rows = rows.with_columns(fragment=pl.when(names_one).then("fragment"))
        path = work / f"{number}.parquet"
        rows.filter(~pl.col("known") | names_one).drop("to").write_parquet(path)
        files.append(path)
    return pl.scan_parquet(files)


def _wanted(
    links: pl.LazyFrame, options: CheckOptions, conf: Configuration, counters: Counters
) -> pl.Series:
    """Returns the URLs that may be asked for. Filters that leave out what is said to be no page by
    its name alone (images) are not meant.
    """
    found = links.filter(~pl.col("known")).group_by("url").agg(pl.col("external").min())
    urls = found.collect(engine="streaming").sort("url")
    if not options.external:
        counters.add(EXTERNAL, int(urls["external"].sum()))
        urls = urls.filter(~pl.col("external"))
    rules = UrlRules(
        conf, normalize=False, filtering=True, scope=SCOPE_OUTLINK, keep_on_error=False
    )
    renamed = pl.col("url").str.replace(_ENDING, "${1}.html${2}")
    as_page = pl.when(pl.col("url").str.contains(_PAGE)).then("url").otherwise(renamed)
    passed = rules.apply(urls.select(as_page).to_series(), Counters()).is_not_null()
    counters.add(LEFT_OUT, int((~passed).sum()))
    return urls["url"].filter(passed)


def _ask(
    wanted: pl.Series, place: Path, options: CheckOptions, context: JobContext, counters: Counters
) -> None:
    """Asks for what was not asked for within a day: by HEAD, and by GET what is broken by that."""
    recent = _answers(place).filter(pl.col("asked").dt.epoch("ms") > context.clock.now() - REST)
    if options.requisites:
        recent = recent.filter((pl.col("outcome") != "fetched") | (pl.col("size") > 0))
    due = wanted.filter(~wanted.is_in(recent["url"].implode()))
    counters.add(HELD, len(wanted) - len(due))
    counters.add(ASKED, len(due))
    # Servers that know no HEAD answer 405 or worse: these are asked once more, by GET.
    for head in (False,) if options.requisites else (True, False):
        if not len(due):
            return
        with scratch("list", place) as folder:
            urls = folder / "urls.txt"
            urls.write_text("\n".join(due), encoding="utf-8")
            segment, _ = freegen(urls, place / SEGMENTS, context=context)
        conf = context.conf.with_values({"http.head": str(head).lower()}).freeze()
        fetch(segment, FetchOptions(), context=replace(context, conf=conf))
        if head:
            refused = _answers(place).filter(pl.col("code") >= 400)
            due = due.filter(due.is_in(refused["url"].implode()))


def _answers(place: Path) -> pl.DataFrame:
    """Returns the newest answer of each URL, at the end of its redirects: `url`, `outcome`, `code`,
    `reason`, `asked`, `size`.
    """
    pages = Segments(place / SEGMENTS).pages.scan().filter(is_fetch())
    rows = pages.select(
        "url", outcome(), "code", "reason", "redirect_to", "size", asked="fetch_time"
    ).collect(engine="streaming")
    rows = rows.unique("url", keep="last", maintain_order=True)
    # Only as far as there is an answer: a redirect that led on at the limit has none.
    answered = pl.when(pl.col("redirect_to").is_in(rows["url"].implode())).then("redirect_to")
    ends = with_ends(rows.with_columns(answered.alias("redirect_to")))
    found = ends.select("url", "asked", end=pl.coalesce("leads_to", "url"))
    at_end = rows.select("outcome", "code", "reason", "size", end="url")
    return found.join(at_end, on="end").drop("end")


def _rows(
    links: pl.LazyFrame, parsed: Sequence[Segment], site: pl.DataFrame, answers: pl.DataFrame
) -> pl.DataFrame:
    """Returns the rows of the table `checks`."""
    named = links.filter(pl.col("fragment").is_not_null(), pl.col("known"))
    fragments = named.select("url", "fragment").unique().collect(engine="streaming")
    fragments = fragments.join(site.select("url", "leads_to"), on="url", how="left")
    fragments = fragments.select("url", "fragment", page=pl.coalesce("leads_to", "url"))
    ids = _ids(parsed, fragments["page"])
    fragments = fragments.join(ids, left_on="page", right_on="url", how="left")
    decoded = fragments["fragment"].map_elements(unquote, return_dtype=pl.String)
    # HTML Standard, 7.4.6.4: first as it stands, then percent-decoded.
    there = pl.col("ids").list.contains(pl.col("fragment")) | pl.col("ids").list.contains(decoded)
    fragments = fragments.select("url", "fragment", has_fragment=there)
    rows = links.collect(engine="streaming")
    rows = rows.join(fragments, on=["url", "fragment"], how="left")
    rows = rows.join(answers.drop("size"), on="url", how="left")
    unknown = ~pl.col("known")
    asked = [
        pl.when(unknown).then(name).alias(name) for name in ("outcome", "code", "reason", "asked")
    ]
    rows = rows.select("url", "fragment", "from_url", "anchor", "external", *asked, "has_fragment")
    return rows.unique(maintain_order=False).sort("url", "fragment", "from_url", "anchor")


def _ids(parsed: Sequence[Segment], pages: pl.Series) -> pl.DataFrame:
    """Returns the newest ids of pages: `url`, `ids`; none of those that are no HTML."""
    wanted = pages.unique().implode()

    def decode(batch: Batch) -> pl.DataFrame:
        table = parsedata_columns.decode(batch)
        found = pl.DataFrame(
            {
                "url": decode_keys(own_column(keys_of(batch))),
                "ids": decode_keys(own_column(table.first_values(IDS_KEY, "parse"))),
            }
        )
        return found.filter(table.is_success & found["url"].is_in(wanted))

    def frames() -> Iterator[pl.DataFrame]:
        for segment in parsed:
            yield from scan_all(segment.parts(PARSE_DATA), ParseData.class_name, decode)

    rows = pl.concat([*frames()]).unique("url", keep="last", maintain_order=True)
    return rows.with_columns(pl.col("ids").str.split(" "))
