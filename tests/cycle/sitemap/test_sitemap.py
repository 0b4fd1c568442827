"""sitemap: Nutch's runs replayed against the same site, and what strangers may do."""

from __future__ import annotations

import gzip
import json
import shutil
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from minutch.clock import SystemClock
from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.fetch.frontier.hostmemory import RestLog, read_rests
from minutch.cycle.segment.storedrecords import text_key
from minutch.cycle.sitemap import processor as sitemap
from minutch.cycle.sitemap import sitemapfetch
from minutch.cycle.sitemap.sitemapentries import KNOWN, NEW, REPEATED
from minutch.errors import ConfigError, FormatError, LockedError, StoreError, UsageError
from minutch.hadoop.formats.mapfile import MapFileWriter
from minutch.job import Counters, JobContext
from minutch.plugin.urlrules import FILTERED, MALFORMED
from minutch.records.crawldatum import STATUS_DB_FETCHED, STATUS_DB_UNFETCHED, CrawlDatum
from minutch.records.hostdatum import HostDatum
from minutch.work.tables.database import part_name
from tests.cycle.sitemap.sitemapsite import Page, SitemapSite
from tests.support.commands import sitemap as sitemap_command
from tests.support.crawldbs import read_db, write_db
from tests.support.golden import GOLDEN, PROJECT, needs_golden
from tests.support.nutchruns import COMMANDS, NutchRun, context_for, nutch_runs
from tests.support.segments import LOOPBACK

SITE = COMMANDS / "sitemap/site"
NUTCHS_PORT = b":8831"
RUNS = nutch_runs("sitemap", "site")

Entry = tuple[int, int, int, int, float]


@pytest.fixture
def site() -> Iterator[SitemapSite]:
    with SitemapSite() as server:
        yield server


# Nutch's runs


def nutchs_site(site: SitemapSite) -> None:
    """The site of the golden runs, at this server's port."""
    port = f":{site.port}".encode()
    for host, pages in json.loads((SITE / "routes.json").read_text()).items():
        for path, page in pages.items():
            body = (SITE / page["body"]).read_bytes() if page.get("body") else b""
            if path.endswith(".gz"):
                body = gzip.compress(gzip.decompress(body).replace(NUTCHS_PORT, port))
            headers = {
                name: value.replace(NUTCHS_PORT.decode(), port.decode())
                for name, value in page["headers"]
            }
            site.pages[f"{host} {path}"] = Page(
                body.replace(NUTCHS_PORT, port), headers, page["status"]
            )


def entries(path: Path, port: str) -> dict[str, Entry]:
    """Returns the entries that sitemaps name, by URL, Nutch's port in place of `port`; times to the
    day.
    """
    return {
        url.replace(port, NUTCHS_PORT.decode()): (
            datum.status,
            datum.modified_time,
            datum.retries,
            datum.fetch_interval,
            datum.score,
        )
        for url, datum in read_db(path).items()
    }


def write_hostdb(path: Path, *hosts: str) -> Path:
    with MapFileWriter(
        path / "current" / part_name(0), "org.apache.hadoop.io.Text", HostDatum.class_name
    ) as writer:
        for host in sorted(hosts):
            writer.append_raw(text_key(host.encode()), HostDatum().to_bytes())
    return path


@needs_golden("commands/sitemap")
@pytest.mark.parametrize("run", RUNS, ids=str)
def test_runs_of_nutch(run: NutchRun, site: SitemapSite, tmp_path: Path) -> None:
    """The HostDb of Nutch's run has hosts on port 80: here they have the server's. Nutch refuses
    damaged sitemaps, as we do without `sitemap.allow.partial`, and takes an image for a page.
    """
    nutchs_site(site)
    name = run.words[0]
    if name == "crawldb":
        shutil.copytree(GOLDEN / "crawl-small/run-rich-r2/crawl/crawldb", tmp_path / name)
    (tmp_path / "urls").mkdir()
    for path in (run.folder / "urls").iterdir():
        text = path.read_bytes().replace(NUTCHS_PORT, f":{site.port}".encode())
        (tmp_path / "urls" / path.name).write_bytes(text)
    hosts = [f"{host}:{site.port}" for host in ("127.0.0.1", "localhost")] + [
        "127.0.0.2:9",
        "nohost.invalid",
    ]
    words = [str(tmp_path / word) if word in ("urls", name) else word for word in run.words]
    words = [
        str(write_hostdb(tmp_path / "hostdb", *hosts)) if "updatehostdb" in word else word
        for word in words
    ]
    context, _ = context_for(
        run.conf(http__filter__ipaddress__include="loopback", sitemap__allow__partial="false")
    )

    assert sitemap_command.run(words, context) == run.exit

    ours, theirs = entries(tmp_path / name, f":{site.port}"), entries(run.folder / name, ":0")
    twice = "http://127.0.0.1:8831/twice.html"
    if (
        twice in theirs
    ):  # two entries of one sitemap, between which Nutch leaves the choice to chance
        assert ours[twice][-1] == pytest.approx(0.9)
        assert theirs.pop(twice)[-1] in (pytest.approx(0.1), pytest.approx(0.9))
        del ours[twice]
    images = theirs.pop("http://img.example.org/x.png", None) is not None
    assert ours == theirs
    counters = context.reports["SitemapProcessor"]
    said = {
        message.rpartition(": ")[0].removeprefix("SitemapProcessor: Total "): int(
            message.rpartition(": ")[2]
        )
        for message in run.logged("SitemapProcessor")
        if "Total" in message
    }
    assert counters.get(sitemapfetch.FROM_SEEDS, 0) == said["sitemaps from seed urls"]
    assert counters[NEW] == said["new sitemap entries added"] - images
    if "-hostdb" not in words:
        assert counters.get(sitemapfetch.FROM_HOSTS, 0) == said["sitemaps from host name"]
        assert counters.get(sitemapfetch.FAILED, 0) == said["failed sitemap fetches"]


# One thing at a time


def configuration(**more: str) -> Configuration:
    return Configuration.load([]).with_values(
        LOOPBACK
        | {"fetcher.server.delay": "0"}
        | {name.replace("__", "."): value for name, value in more.items()}
    )


def run(
    tmp_path: Path, *starts: str, conf: Configuration | None = None, **options: bool
) -> Counters:
    """Take sitemaps into `tmp_path/crawldb`; every URL and every sitemap leaves through one
    counter.
    """
    (tmp_path / "urls").mkdir(exist_ok=True)
    (tmp_path / "urls/seeds.txt").write_text("\n".join(starts))
    context, _ = context_for(conf or configuration())
    counters = sitemap.sitemap(
        tmp_path / "crawldb",
        sitemap.SitemapOptions(
            urls=tmp_path / "urls",
            filtering=options.get("filtering", False),
            normalize=options.get("normalize", False),
            strict=options.get("strict", True),
            force=options.get("force", False),
        ),
        context=context,
    )
    ends = (sitemap.LEFT_OUT, FILTERED, MALFORMED, REPEATED, KNOWN, NEW)
    assert counters[sitemap.LISTED] == sum(counters.get(name, 0) for name in ends)
    fetch = sitemapfetch
    begun = sum(
        counters.get(name, 0) for name in (fetch.FROM_SEEDS, fetch.FROM_HOSTS, fetch.FROM_INDEXES)
    )
    over = (
        fetch.READ,
        fetch.INDEXES,
        fetch.FAILED,
        fetch.UNREADABLE,
        fetch.FORBIDDEN,
        fetch.FILTERED,
        fetch.SEEN,
    )
    assert begun == sum(counters.get(name, 0) for name in (*over, fetch.TOO_DEEP))
    return counters


def urlset(*urls: str) -> str:
    return "<urlset>" + "".join(f"<url><loc>{url}</loc></url>" for url in urls) + "</urlset>"


def index(*urls: str) -> str:
    return (
        "<sitemapindex>"
        + "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls)
        + "</sitemapindex>"
    )


def test_an_entry_that_is_known_stays_unless_told_otherwise(
    site: SitemapSite, tmp_path: Path
) -> None:
    known = CrawlDatum(STATUS_DB_FETCHED, 1000, 2.0, fetch_time=5)
    write_db(tmp_path / "crawldb", [(site.url("/a"), known)])
    text = (
        f"<urlset><url><loc>{site.url('/a')}</loc><changefreq>daily</changefreq>"
        "<priority>0.7</priority></url></urlset>"
    )
    url = site.add("/map.xml", text)
    run(tmp_path, url)
    assert read_db(tmp_path / "crawldb") == {site.url("/a"): known}
    run(tmp_path, url, conf=configuration(sitemap__url__overwrite__existing="true"))
    datum = read_db(tmp_path / "crawldb")[site.url("/a")]
    assert (datum.status, datum.fetch_time, datum.fetch_interval) == (STATUS_DB_FETCHED, 5, 86400)
    assert datum.score == pytest.approx(0.7)
    assert CrawlDb(tmp_path / "crawldb").path.joinpath("old").is_dir()


def test_intervals_have_limits(site: SitemapSite, tmp_path: Path) -> None:
    said = "".join(
        f"<url><loc>{{site}}/{name}</loc><changefreq>{name}</changefreq></url>"
        for name in ("always", "daily", "never")
    )
    url = site.add("/map.xml", f"<urlset>{said}</urlset>")
    limits = {
        "db__fetch__schedule__adaptive__min_interval": "100",
        "db__fetch__schedule__adaptive__max_interval": "5000.5",
    }
    run(tmp_path, url, conf=configuration(**limits))
    found = {
        name.rpartition("/")[2]: datum.fetch_interval
        for name, datum in read_db(tmp_path / "crawldb").items()
    }
    assert found == {"always": 100, "daily": 5000, "never": 5000}


@pytest.mark.parametrize(("most", "read"), [("3", 1), ("2", 0), ("0", 0)])
def test_redirects_have_a_limit(site: SitemapSite, tmp_path: Path, most: str, read: int) -> None:
    for number in range(3):
        site.pages[f"/{number}"] = Page(status=301, headers={"Location": f"/{number + 1}"})
    site.add("/3", urlset("{site}/page"))
    counters = run(tmp_path, site.url("/0"), conf=configuration(sitemap__redir__max=most))
    assert counters.get(sitemapfetch.READ, 0) == read
    assert len(site.paths) == int(most) + 1


def test_sizes_have_a_limit(site: SitemapSite, tmp_path: Path) -> None:
    """Of a sitemap that is too large what came of it counts, gzipped or not; if that is not wanted,
    nothing does.
    """
    large = urlset(*(f"{site.url('/')}{number}" for number in range(200)))
    urls = (
        site.add("/large.xml", large),
        site.add("/bomb.gz", gzip.compress(large.encode()), "application/gzip"),
    )
    conf = configuration(sitemap__size__max="3000")
    refused = run(tmp_path, *urls, conf=conf.with_values({"sitemap.allow.partial": "false"}))
    assert (refused[sitemapfetch.UNREADABLE], refused[sitemap.LISTED]) == (2, 0)
    counters = run(tmp_path, *urls, conf=conf)
    assert counters[sitemapfetch.DAMAGED] == 2
    assert counters[NEW] == counters[REPEATED] == large[:3000].count("</loc>")
    assert run(tmp_path, *urls)[KNOWN] == counters[NEW]
    assert len(read_db(tmp_path / "crawldb")) == 200


def test_filters_and_normalizers_see_every_url(site: SitemapSite, tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/regex-urlfilter.txt").write_text("-secret\n+.\n")
    values = LOOPBACK | {
        "fetcher.server.delay": "0",
        "plugin.includes": "protocol-http|urlfilter-regex|urlnormalizer-basic|scoring-opic",
    }
    conf = Configuration.load([tmp_path / "conf"]).with_values(values)
    url = site.add("/map.xml", urlset("{site}/x/../a", "{site}/secret"))
    site.add("/index.xml", index("{site}/secret.xml", "{site}/map.xml"))
    starts = (url, site.url("/secret.xml"), site.url("/index.xml"))
    counters = run(tmp_path, *starts, conf=conf, filtering=True, normalize=True)
    assert set(read_db(tmp_path / "crawldb")) == {site.url("/a")}
    assert (
        counters[sitemapfetch.FILTERED_STARTS],
        counters[sitemapfetch.FILTERED],
        counters[FILTERED],
    ) == (1, 1, 2)
    for name in ("sitemap.url.filter", "sitemap.url.normalize"):
        other = tmp_path / name
        other.mkdir()
        run(other, url, conf=conf.with_values({name: "false"}), filtering=True, normalize=True)
        found = {found.removeprefix(site.url("")) for found in read_db(other / "crawldb")}
        assert found == ({"/a", "/secret"} if name == "sitemap.url.filter" else {"/x/../a"})


def test_strictness(site: SitemapSite, tmp_path: Path) -> None:
    url = site.add("/in/map.xml", urlset("{site}/in/a", "{site}/out", "http://other.example/"))
    assert run(tmp_path, url)[sitemap.LEFT_OUT] == 2
    assert set(read_db(tmp_path / "crawldb")) == {site.url("/in/a")}
    assert run(tmp_path, url, strict=False)[NEW] == 2
    (tmp_path / "other").mkdir()
    assert (
        run(tmp_path / "other", url, conf=configuration(sitemap__strict__parsing="false"))[NEW] == 3
    )


def test_hosts_of_a_hostdb_and_of_a_list(site: SitemapSite, tmp_path: Path) -> None:
    """robots.txt names sitemaps, else it is /sitemap.xml."""
    site.add("/sitemap.xml", urlset("{site}/usual"))
    assert run(tmp_path, f"127.0.0.1:{site.port}")[sitemapfetch.FROM_HOSTS] == 1
    assert set(read_db(tmp_path / "crawldb")) == {site.url("/usual")}
    context, _ = context_for(configuration(sitemap__url__default__sitemap__xml="false"))
    hostdb = write_hostdb(tmp_path / "hostdb", f"127.0.0.1:{site.port}")
    assert sitemapfetch.FROM_HOSTS not in sitemap.sitemap(
        tmp_path / "crawldb", sitemap.SitemapOptions(hostdb=hostdb), context=context
    )

    site.add(
        "/robots.txt",
        f"User-agent: *\nDisallow: /\nSitemap: {site.url('/named.xml')}",
        "text/plain",
    )
    site.add("/named.xml", urlset("{site}/named"))
    context, _ = context_for(configuration())
    sitemap.sitemap(tmp_path / "crawldb", sitemap.SitemapOptions(hostdb=hostdb), context=context)
    assert set(read_db(tmp_path / "crawldb")) == {site.url("/usual"), site.url("/named")}


def test_robots_txt_is_obeyed(site: SitemapSite, tmp_path: Path) -> None:
    site.add("/robots.txt", "User-agent: *\nDisallow: /no", "text/plain")
    urls = site.add("/no.xml", urlset("{site}/a")), site.add("/yes.xml", urlset("{site}/b"))
    counters = run(tmp_path, *urls)
    assert counters[sitemapfetch.FORBIDDEN] == 1
    assert site.paths == ["/yes.xml"]


def test_a_host_gets_its_pauses(site: SitemapSite, tmp_path: Path) -> None:
    urls = [site.add(f"/{number}.xml", urlset(f"{{site}}/page{number}")) for number in range(3)]
    run(tmp_path, *urls, conf=configuration(fetcher__server__delay="0.1"))
    times = [time for time, path in site.asked if path != "/robots.txt"]
    assert all(later - earlier >= 0.09 for earlier, later in pairwise(times))


def test_a_fetch_and_sitemaps_keep_pauses_for_each_other(site: SitemapSite, tmp_path: Path) -> None:
    """By the state folder of the crawl: a fetch has just asked the host, or asks it next."""
    folder, clock = tmp_path / ".fetchstate", SystemClock()
    log = RestLog(folder, "0", clock.now)
    log.add([("127.0.0.1", clock.now() + 300)])
    log.close()
    site.add("/robots.txt", "User-agent: *\nCrawl-delay: 7", "text/plain")
    began = time.monotonic()
    run(tmp_path, site.add("/map.xml", urlset("{site}/a")))
    assert [path for _, path in site.asked] == ["/robots.txt", "/map.xml"]
    assert site.asked[0][0] - began > 0.29
    assert 5000 < read_rests(folder, clock.now())["127.0.0.1"] - clock.now() <= 7000


def test_a_host_that_rests_for_long_is_not_waited_for(site: SitemapSite, tmp_path: Path) -> None:
    """As hosts do that fail: the step would hold up a crawl for all others."""
    clock = SystemClock()
    log = RestLog(tmp_path / ".fetchstate", "0", clock.now)
    log.add([("127.0.0.1", clock.now() + 60_000)])
    log.close()
    assert run(tmp_path, site.add("/map.xml", urlset("{site}/a")))[sitemapfetch.FAILED] == 1
    assert not site.asked


def test_addresses_are_guarded(site: SitemapSite, tmp_path: Path) -> None:
    url = site.add("/map.xml", urlset("{site}/a"))
    conf = Configuration.load([]).with_values({**LOOPBACK, "http.filter.ipaddress.include": ""})
    assert run(tmp_path, url, conf=conf)[sitemapfetch.FAILED] == 1
    assert site.asked == []


# What strangers may do


def test_indexes_that_go_in_circles_and_deep(site: SitemapSite, tmp_path: Path) -> None:
    site.add("/circle.xml", index("{site}/circle.xml", "{site}/map.xml", "{site}/map.xml"))
    site.add("/map.xml", urlset("{site}/a"))
    for number in range(9):
        site.add(f"/deep{number}.xml", index(f"{{site}}/deep{number + 1}.xml"))
    counters = run(tmp_path, site.url("/circle.xml"), site.url("/deep0.xml"))
    assert (counters[sitemapfetch.SEEN], counters[sitemapfetch.TOO_DEEP], counters[NEW]) == (
        2,
        1,
        1,
    )
    assert len(site.paths) == 2 + 1 + sitemapfetch.MOST_NESTED


@pytest.mark.parametrize(
    "text",
    [
        (
            '<!DOCTYPE u [<!ENTITY a "aaaa"><!ENTITY b'
            ' "&a;&a;&a;">]><urlset><url><loc>{site}/&b;</loc></url></urlset>'
        ),
        (
            "<!DOCTYPE u [<!ENTITY x SYSTEM"
            ' "file:///etc/passwd">]><urlset><url><loc>{site}/&x;</loc></url></urlset>'
        ),
        "<urlset><url><loc>{site}/a",
        "<html><body>no</body></html>",
        "<urlset>" + "<a>" * 2000 + "</a>" * 2000 + "</urlset>",
        "",
    ],
)
def test_hostile_xml_is_refused(site: SitemapSite, tmp_path: Path, text: str) -> None:
    counters = run(
        tmp_path, site.add("/map.xml", text), site.add("/good.xml", urlset("{site}/good"))
    )
    assert (counters[sitemapfetch.UNREADABLE], counters[NEW]) == (1, 1)
    assert sorted(site.paths) == ["/good.xml", "/map.xml"]


def test_no_dtd_is_asked_for(site: SitemapSite, tmp_path: Path) -> None:
    """As in crawler-commons, whose parser resolves every external entity to nothing."""
    doctype = '<!DOCTYPE urlset SYSTEM "{site}/evil.dtd">'
    assert run(tmp_path, site.add("/map.xml", doctype + urlset("{site}/a")))[NEW] == 1
    assert site.paths == ["/map.xml"]


def test_the_web_leads_to_no_file_of_this_machine(site: SitemapSite, tmp_path: Path) -> None:
    """By a redirect, an index, robots.txt or an entry, where protocol-file is on."""
    mine = tmp_path / "mine.xml"
    mine.write_text(urlset("http://secret.example/"))
    site.pages["/moved.xml"] = Page(status=301, headers={"Location": mine.as_uri()})
    site.pages["/robots.txt"] = Page(f"Sitemap: {mine.as_uri()}\n".encode(), {}, 200)
    starts = [
        site.url("/moved.xml"),
        site.add("/index.xml", index(mine.as_uri())),
        site.add("/map.xml", urlset(mine.as_uri(), "{site}/a")),
        f"127.0.0.1:{site.port}",
    ]
    conf = configuration(
        plugin__includes="protocol-(http|file)|scoring-opic", **{"sitemap.strict.parsing": "false"}
    )
    run(tmp_path, *starts, conf=conf)
    assert set(read_db(tmp_path / "crawldb")) == {site.url("/a")}
    folder = tmp_path / "own"
    folder.mkdir()
    run(folder, mine.as_uri(), conf=conf)
    assert set(read_db(folder / "crawldb")) == {"http://secret.example/"}


def test_a_sitemap_that_breaks_off_in_transit(site: SitemapSite, tmp_path: Path) -> None:
    """RFC 9112, 8: a body shorter than its Content-Length is incomplete; whole lines count."""
    text = "{site}/a\n{site}/b\n{site}/half-a-li".replace("{site}", site.url(""))
    url = site.add("/list.txt", text, "text/plain", **{"Content-Encoding": "x-unknown"})
    conf = configuration(sitemap__size__max=str(len(text) - 1))
    run(tmp_path, url, conf=conf)
    assert set(read_db(tmp_path / "crawldb")) == {site.url("/a"), site.url("/b")}


def test_gzipped_seeds_pass_the_default_filters(site: SitemapSite, tmp_path: Path) -> None:
    """conf/regex-urlfilter.txt keeps archives out, which hold no pages; a sitemap's own name goes
    through the filters without its `.gz`, a page's as it is.
    """
    packed = gzip.compress(urlset(site.url("/a"), site.url("/b.gz")).encode())
    starts = [site.add(f"/{name}", packed, "application/gzip") for name in ("m.xml.gz", "m.zip.gz")]
    site.add("/index.xml", index("{site}/n.XML.GZ"))
    site.add("/n.XML.GZ", gzip.compress(urlset(site.url("/c")).encode()), "application/gzip")
    site.pages["/moved.xml"] = Page(status=301, headers={"Location": "/m.xml.gz"})
    for filters in ("urlfilter-regex", "urlfilter-suffix"):
        conf = Configuration.load([PROJECT / "conf"]).with_values(
            LOOPBACK
            | {
                "fetcher.server.delay": "0",
                "plugin.includes": f"protocol-http|{filters}|scoring-opic",
            }
        )
        folder = tmp_path / filters
        folder.mkdir()
        moved = site.url("/moved.xml")
        counters = run(folder, *starts, site.url("/index.xml"), moved, conf=conf, filtering=True)
        assert set(read_db(folder / "crawldb")) == {site.url("/a"), site.url("/c")}
        assert counters[sitemapfetch.FILTERED_STARTS] == 1


def test_hosts_of_a_list_may_have_a_scheme(site: SitemapSite, tmp_path: Path) -> None:
    """A URL without a path names a server (RFC 9110, 4.2), no file."""
    site.add("/sitemap.xml", urlset("{site}/usual"))
    host = f"127.0.0.1:{site.port}"
    for start in (host, f"http://{host}", f"http://{host}/", f"HTTP://{host}", f" {host}/"):
        folder = tmp_path / start.replace("/", "_")
        folder.mkdir()
        assert run(folder, start)[sitemapfetch.FROM_HOSTS] == 1
        assert set(read_db(folder / "crawldb")) == {site.url("/usual")}


def test_the_last_of_several_entries_counts_whoever_comes_first(
    site: SitemapSite, tmp_path: Path
) -> None:
    text = "<urlset><url><loc>{site}/a</loc><priority>%s</priority></url></urlset>"
    urls = [site.add(f"/{number}.xml", text % (number / 10)) for number in range(1, 9)]
    counters = run(tmp_path, *urls)
    assert counters[REPEATED] == 7
    assert read_db(tmp_path / "crawldb")[site.url("/a")].score == pytest.approx(0.8)
    assert read_db(tmp_path / "crawldb")[site.url("/a")].status == STATUS_DB_UNFETCHED


# What can go wrong


def test_wrong_command_lines(tmp_path: Path) -> None:
    context, _ = context_for(configuration())
    for words in (
        "",
        "{db}",
        "{db} -sitemapUrls",
        "{db} -sitemapUrls x -threads 0",
        "{db} -sitemapUrls x -nosuch",
    ):
        with pytest.raises(UsageError):
            sitemap_command.run(words.format(db=tmp_path / "crawldb").split(), context)
    for options in ("-hostdb {no}", "-sitemapUrls {no}"):
        with pytest.raises(StoreError, match="no"):
            sitemap_command.run(
                [str(tmp_path / "crawldb"), *options.format(no=tmp_path / "no").split()], context
            )
    assert not list(tmp_path.iterdir())


def test_hosts_whose_robots_txt_is_not_read_are_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hostdb = write_hostdb(tmp_path / "hostdb", "127.0.0.1:9")
    for hosts in ("", "127.0.0.1"):
        context, _ = context_for(configuration(http__robot__rules__allowlist=hosts))
        sitemap.sitemap(
            tmp_path / "crawldb", sitemap.SitemapOptions(hostdb=hostdb), context=context
        )
        assert ("http.robot.rules.allowlist is set" in caplog.text) == bool(hosts)


def test_a_hostdb_that_is_none_or_damaged(site: SitemapSite, tmp_path: Path) -> None:
    crawldb = write_db(tmp_path / "crawldb", [(site.url("/a"), CrawlDatum(STATUS_DB_FETCHED))])
    context, _ = context_for(configuration())
    with pytest.raises(FormatError, match="unexpected classes"):
        sitemap.sitemap(
            tmp_path / "other", sitemap.SitemapOptions(hostdb=crawldb.path), context=context
        )
    hostdb = write_hostdb(tmp_path / "hostdb", "127.0.0.1:9")
    [data] = hostdb.glob("current/*/data")
    data.write_bytes(data.read_bytes()[:-3])
    with pytest.raises(FormatError, match=str(data)):
        sitemap.sitemap(crawldb.path, sitemap.SitemapOptions(hostdb=hostdb), context=context)
    assert read_db(crawldb.path) == {site.url("/a"): CrawlDatum(STATUS_DB_FETCHED)}
    assert not crawldb.path.joinpath("old").exists()


def test_a_crawldb_that_is_locked(site: SitemapSite, tmp_path: Path) -> None:
    url = site.add("/map.xml", urlset("{site}/a"))
    with CrawlDb(tmp_path / "crawldb").lock():
        with pytest.raises(LockedError):
            run(tmp_path, url)
        assert site.asked == []
        assert run(tmp_path, url, force=True)[NEW] == 1


def test_without_an_agent_nothing_is_asked_for(tmp_path: Path, site: SitemapSite) -> None:
    """It was counted as a failed fetch of each sitemap, and the exit code was 0."""
    (tmp_path / "urls").write_text(site.url("/sitemap.xml"))
    with pytest.raises(ConfigError, match=r"http\.agent\.name is not set") as caught:
        sitemap.sitemap(
            tmp_path / "crawldb",
            sitemap.SitemapOptions(urls=tmp_path / "urls"),
            context=JobContext(Configuration.load([]).freeze()),
        )
    assert "-D http.agent.name=my-crawler" in caught.value.hint
    assert not (tmp_path / "crawldb").exists()
