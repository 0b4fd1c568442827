"""`minutch learn`: what it prints and writes; a crawl of a site with traps, before and after."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from minutch import jobs
from minutch.clock import FakeClock
from minutch.commands.init import SITE
from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.inspect.explain.explainer import explain
from minutch.inspect.learn.rules import FILTER, NORMALIZE
from minutch.job import JobContext
from minutch.plugin.chains import URLFilters, URLNormalizers
from minutch.records.crawldatum import STATUS_DB_UNFETCHED, CrawlDatum
from tests.inspect.learn.trapsite import ARTICLES, PRODUCTS, THREADS, TrapSite, served
from tests.inspect.learn.webs import PLUGINS, H, words, write_crawl
from tests.support.commands import learn
from tests.support.crawldbs import NOW, read_db, write_db

WEB = {
    **{f"{H}/p?id={i}&x=--{more}": words(i) for i in range(8) for more in ("", f"&track={i}")},
    **{f"{H}/calendar?month={i}": "There is nothing in this month at all" for i in range(30)},
}


def run(crawl: Path, conf: Configuration, *words: str) -> str:
    """What the command prints."""
    context = JobContext(conf.freeze(), FakeClock(NOW), io.StringIO(), io.StringIO())
    assert learn.run([str(crawl), *words], context) == 0
    assert isinstance(context.out, io.StringIO)
    return context.out.getvalue()


def configured(*folders: Path, **more: str) -> Configuration:
    """A configuration in some folders."""
    named = {name.replace("__", "."): value for name, value in more.items()}
    return Configuration.load(folders, overrides={"plugin.includes": PLUGINS} | named)


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl of WEB."""
    return write_crawl(tmp_path_factory.mktemp("web") / "crawl", WEB)


def test_what_people_and_programs_read(crawl: Path) -> None:
    conf = configured(plugin__includes=PLUGINS, urlfilter__regex__rules="+.")
    text = run(crawl, conf)
    assert "  track does not change a page\n" in text
    assert "touches 8 URLs, loses 0 pages" in text
    assert f"    {H}/p?id=0&x=--&track=0\n      {H}/p?id=0&x=--\n" in text
    assert "learn" in text.splitlines()[-1]
    assert "--apply" in text.splitlines()[-1]
    found = json.loads(run(crawl, conf, "--json"))
    assert {rule["kind"] for rule in found["rules"]} >= {"parameter", "pattern"}
    assert all(rule["lost"] == 0 for rule in found["rules"] if rule["offered"])
    assert all(rule["written"] is None for rule in found["rules"])


def test_rules_are_written_once_and_do_as_was_said(crawl: Path, tmp_path: Path) -> None:
    (tmp_path / FILTER).write_text("# mine\n\n# no news\n-/news/\n+.\n")
    conf = configured(tmp_path)
    found = json.loads(run(crawl, conf, "--json", "--apply"))
    texts = {name: (tmp_path / name).read_text("utf-8") for name in (FILTER, NORMALIZE)}
    assert texts[FILTER].startswith("# mine\n\n# learned 2027-01-15: ")
    assert texts[FILTER].endswith("\n\n# no news\n-/news/\n+.\n")
    assert texts[NORMALIZE].count("<regex>") > 5  # those that were there, too
    after = configured(tmp_path)
    normalizers, filters = URLNormalizers(after), URLFilters(after)
    for rule in found["rules"]:
        assert rule["written"] == str(tmp_path / rule["file"])
        for example in rule["examples"]:
            assert filters.filter(normalizers.normalize(example["url"])) == example["becomes"]
    explained = explain(crawl, f"{H}/p?id=5&x=--&track=5", context=JobContext(after.freeze()))
    (form,) = explained.forms
    line = next(n for n, line in enumerate(texts[NORMALIZE].splitlines()) if "track" in line)
    assert f"{tmp_path / NORMALIZE}:{line + 2}" in form.changed_by[0]
    assert json.loads(run(crawl, after, "--json", "--apply"))["rules"] == []
    assert texts == {name: (tmp_path / name).read_text("utf-8") for name in texts}


def test_a_file_in_latin_1_and_one_with_an_editors_mark(crawl: Path, tmp_path: Path) -> None:
    rest = b"-/caf\xe9/\n+.\n"
    (tmp_path / FILTER).write_bytes(b"\xef\xbb\xbf" + rest)
    run(crawl, configured(tmp_path), "--apply")
    written = (tmp_path / FILTER).read_bytes()
    assert written.startswith(b"# learned ")
    assert written.endswith(b"\n\n" + rest)


def test_urls_that_wait_become_what_the_rules_say(tmp_path: Path) -> None:
    waiting = [f"{H}/p?id={i}&x=--&track=9" for i in (5, 88, 89)] + [f"{H}/calendar?month=77"]
    crawl = write_crawl(tmp_path / "crawl", WEB)
    entries = {url: CrawlDatum(STATUS_DB_UNFETCHED, 1, 1.0) for url in waiting}
    entries |= read_db(crawl / "crawldb")
    write_db(crawl / "crawldb", entries.items())
    (conf := tmp_path / "conf").mkdir()
    (conf / FILTER).write_text("+.\n")
    text = run(crawl, configured(conf), "--apply")
    assert "left out, or known by another name: 2 URLs that waited" in text
    after = read_db(crawl / "crawldb")
    assert {url for url, datum in after.items() if datum.status == STATUS_DB_UNFETCHED} == {
        f"{H}/p?id={i}&x=--" for i in (88, 89)
    }
    assert after.keys() - set(waiting) >= WEB.keys()  # nothing that was fetched is touched


def test_hosts_and_schemes_go_into_the_files_of_plugins_that_are_active(tmp_path: Path) -> None:
    web = {f"http://{host}/p{i}": words(i) for i in range(8) for host in ("h.org", "m.h.org")}
    web |= {
        f"{scheme}://s.org/p{i}": words("s", i) for i in range(8) for scheme in ("http", "https")
    }
    crawl = write_crawl(tmp_path / "crawl", web)
    (conf := tmp_path / "conf").mkdir()
    active = {"plugin__includes": PLUGINS + "|urlnormalizer-(host|protocol)"}
    run(crawl, configured(conf, **active), "--apply")
    lines = {path.name: path.read_text("utf-8").splitlines()[-1] for path in conf.iterdir()}
    assert lines == {"host-urlnormalizer.txt": "m.h.org h.org", "protocols.txt": "s.org https"}
    assert json.loads(run(crawl, configured(conf, **active), "--json"))["rules"] == []


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, "the installation's own"),
        ({"plugin__includes": "urlfilter-regex"}, "urlnormalizer-regex is not active"),
        ({"urlfilter__regex__rules": "+."}, "has all rules"),
    ],
)
def test_what_is_refused(
    crawl: Path, tmp_path: Path, more: Mapping[str, str], expected: str
) -> None:
    (tmp_path / FILTER).write_text("+.\n")
    given = {"urlfilter__regex__file": str(tmp_path / FILTER)} | more
    conf = configured(*([tmp_path] if more else []), **given)
    with pytest.raises(ConfigError, match=expected):
        run(crawl, conf, "--apply")


@pytest.fixture
def site() -> Iterator[tuple[str, TrapSite]]:
    """The site with traps."""
    with served() as one:
        yield one


@pytest.mark.slow
def test_a_site_with_traps_is_crawled_with_what_was_learned(
    site: tuple[str, TrapSite], tmp_path: Path
) -> None:
    address, served_site = site
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/nutch-site.xml").write_text(SITE, encoding="utf-8")
    (tmp_path / "seeds.txt").write_text(f"{address}/\n")

    def crawled(name: str, rounds: int) -> Path:
        served_site.asked.clear()
        jobs.run("crawl", "-s", tmp_path / "seeds.txt", tmp_path / name, rounds, conf=loaded())
        return tmp_path / name

    def loaded() -> Configuration:
        overrides = {
            "http.agent.name": "learner",
            "http.filter.ipaddress.include": "loopback",
            "fetcher.server.delay": "0",
            "fetcher.min.crawl.delay": "0",
            "generate.pattern.budget": "-1",  # the traps are to be fallen into
        }
        return Configuration.load([tmp_path / "conf"], overrides=overrides).freeze()

    first = crawled("first", 8)
    found = json.loads(run(first, loaded(), "--json", "--apply"))
    kinds = {rule["kind"] for rule in found["rules"]}
    assert kinds >= {"parameter", "segment", "soft-404", "loop", "pattern"}
    crawled("second", 12)
    asked = served_site.asked
    honest = ARTICLES - 1 + PRODUCTS + PRODUCTS // 6 + 2 * THREADS + 3 + 5
    assert honest < len(asked) < 1.1 * honest + 10
    for page in (f"/news/article{ARTICLES - 1}", "/shop?page=5", "/forum?t=11&start=40"):
        assert page in asked
    products = {url.partition("&")[0] for url in asked if url.startswith("/product")}
    assert len(products) == PRODUCTS
