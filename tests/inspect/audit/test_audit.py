"""Audits: a site with each defect once, and a healthy twin beside it, crawled by the commands with
the configuration of `minutch init`.

What a finding is stands in the rules; here each is found at the page that was made so, and nowhere
else.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import minutch
from minutch import jobs
from minutch.clock import SystemClock
from minutch.commands.init import SITE
from minutch.conf import Configuration
from minutch.errors import ConfigError, QueryError, UsageError
from minutch.inspect.audit.findings import csv_of, rules_of
from minutch.job import JobContext
from tests.inspect.report.conftest import gathered
from tests.support.commands import audit
from tests.support.pdffiles import pdf

LETTERS = str.maketrans("0123456789", "abcdefghij")
"""Numbers are all the same to near-duplicates."""
WORDS = " ".join(f"word{chr(97 + number)}" for number in range(26))


def page(
    name: str,
    *links: str,
    head: str = "",
    title: str | None = None,
    body: str = "",
    h1: str | None = None,
) -> bytes:
    """A healthy page, but for what is said."""
    title = f"<title>{name.title()} page</title>" if title is None else title
    heading = f"<h1>About {name}</h1>" if h1 is None else h1
    if "description" not in head:
        head += f"<meta name=description content='All about {name}'>"
    anchors = "".join(f"<a href='{link}'>to {link}</a> " for link in links)
    words = [name.translate(LETTERS) + chr(97 + n) for n in range(25)]
    said = "" if name == "thin" else f"<p>{' '.join(words)}."
    start = f"<html><head>{title}{head}</head><body>{heading}{said}"
    return f"{start}<p>{name} {body}{anchors}".encode()


@dataclass
class Answer:
    """What a path is answered with."""

    body: bytes = b""
    status: int = 200
    location: str = ""
    content_type: str = "text/html; charset=utf-8"
    headers: dict[str, str] = field(default_factory=dict)
    wait: float = 0.0


LINKED = (
    *("gone", "error", "moved", "circle", "chain", "slow", "untitled", "twin1", "twin2", "long"),
    *("plain", "nodescription", "noh1", "twoh1", "canonical", "canonicalbroken", "canonicalchain"),
    *("noindex", "preview", "private/page", "level1", "equal1", "equal2", "near1", "near2"),
    *("wrongtype.html", "garbled", "header", "described1", "described2", "refresh"),
    *("typeless", "far", "%C3%A9", "spelled1", "spelled2", "sign", "paper", "report.pdf"),
    *("blob", "halved", "thin"),
)
LONG_TITLE = "A title of more than sixty characters, which search engines cut off somewhere"


def answers(root: str) -> dict[str, Answer]:
    """The site."""
    host = root.removeprefix("http://127.0.0.1")  # spelled otherwise, it is the same
    pages = {
        "": page("home", *(f"/{name}" for name in LINKED)),
        "slow": page("slow"),
        "thin": page("thin"),
        "untitled": page("untitled", title=""),
        "twin1": page("twin1", title="<title>Twins</title>"),
        "twin2": page("twin2", title="<title>Twins</title>"),
        "long": page("long", title=f"<title>{LONG_TITLE}</title>"),
        "plain": page(
            "plain",
            *("/", "#nowhere", "http://127.0.0.2:1/lost"),
            body="<img src=/lost.png><b id=here><a href=#here>here</a></b>",
        ),
        "nodescription": page("nodescription", head="<meta name=author content='description'>"),
        "described1": page("described1", head="<meta name=description content='Same'>"),
        "described2": page("described2", head="<meta name=description content='Same'>"),
        "noh1": page("noh1", h1="<h2>Small</h2>"),
        "twoh1": page("twoh1", h1="<h1>One</h1><h1>Two</h1>"),
        "canonical": page("canonical", head="<link rel=canonical href=/plain>"),
        "canonicalbroken": page("canonicalbroken", head="<link rel=canonical href=/gone>"),
        "canonicalchain": page("canonicalchain", head="<link rel='canonical' href=/canonical>"),
        "noindex": page("noindex", head="<meta name=robots content='noindex'>"),
        "preview": page("preview", head="<meta name=robots content='max-image-preview:none'>"),
        **{f"level{n}": page(f"level{n}", f"/level{n + 1}") for n in range(1, 6)},
        "level6": page("level6"),
        "equal1": page("equal", "/"),
        "equal2": page("equal", "/"),
        "near1": page("near", body=f"{WORDS} first"),
        "near2": page("near", body=f"{WORDS} other"),
        "refresh": page("refresh", head="<meta http-equiv=refresh content='0;url=/refreshed'>"),
        "refreshed": page("refreshed"),
        "orphan": page("orphan"),
        "%C3%A9": page(
            "accent", head=f"<link rel=canonical href=HTTP://127.1{host}a/../%c3%a9#top>"
        ),
        "spelled1": page(
            "spelled1",
            title="<title>Spelled</title>",
            head=f"<link rel=canonical href=http://0x7f.1{host}spelled1>",
        ),
        "spelled2": page("spelled2", title="<title>Spelled</title>"),
        "end%C3%A9": page("end"),
        "listed": page("listed"),
        "private/page": page("private"),
        "moved-here": page("moved"),
    }
    found = {name: Answer(body) for name, body in pages.items()}
    found["slow"].wait = 2.2
    found["header"] = Answer(page("header"), headers={"Link": f'<{root}plain>; rel="canonical"'})
    found["wrongtype.html"] = Answer(
        b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj", content_type="text/html"
    )
    found["garbled"] = Answer(
        page("garbled", body="Gr\u00fc\u00dfe").replace("ü".encode(), b"\xfc")
    )
    signs = "<p>A \ufffd of its own, and another: &#xfffd;".encode()
    found["sign"] = Answer(page("sign").replace(b"<p>", signs))
    found["typeless"] = Answer(page("typeless", title=""), content_type="")
    found["paper"] = Answer(pdf("A paper"), content_type="application/octet-stream")
    found["report.pdf"] = Answer(pdf("A report"), content_type="application/x-pdf")
    found["halved"] = Answer(pdf("Two", "pages")[:-400], content_type="application/pdf")
    found["blob"] = Answer(bytes(range(256)), content_type="application/x-own")
    found["bare"] = Answer(b"<title>Bare</title><h2>Without all</h2>")
    found["error"] = Answer(b"no", 503)
    moves = {"moved": "moved-here#part", "circle": "circle2", "circle2": "./circle#top"}
    for name, to in moves.items():
        found[name] = Answer(status=301, location=f"/{to}")
    found["chain"] = Answer(status=302, location="/ch%c3%a4in#x")
    found["far"] = Answer(status=301, location="/far2/../end%c3%a9#top")
    found["ch%C3%A4in"] = Answer(status=302, location="/moved-here")
    urls = [*pages, "header", "garbled", "sign", "typeless", "gone"]
    urls.remove("plain")
    items = "".join(f"<url><loc>{root}{name}</loc><priority>0.8</priority></url>" for name in urls)
    found["sitemap.xml"] = Answer(f"<urlset>{items}</urlset>".encode(), content_type="text/xml")
    robots = f"User-agent: *\nDisallow: /private/\nSitemap: {root}sitemap.xml\n"
    found["robots.txt"] = Answer(robots.encode(), content_type="text/plain")
    return found


@pytest.fixture(scope="module")
def root() -> Iterator[str]:
    """The site, served."""
    known: dict[str, Answer] = {}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            answer = known.get(self.path.removeprefix("/"), Answer(b"none", 404))
            threading.Event().wait(answer.wait)
            self.send_response(answer.status)
            headers = {"Content-Type": answer.content_type, **answer.headers}
            if not answer.content_type:
                del headers["Content-Type"]
            for name, value in headers.items():
                self.send_header(name, value)
            if answer.location:
                self.send_header("Location", answer.location)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/"
    known.update(answers(address))
    yield address
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Configuration:
    """The configuration of `minutch init`, for loopback."""
    folder = tmp_path_factory.mktemp("conf")
    (folder / "nutch-site.xml").write_text(SITE, encoding="utf-8")
    return Configuration.load(
        [folder],
        overrides={
            "http.agent.name": "auditor",
            "http.filter.ipaddress.include": "loopback",
            "fetcher.server.delay": "0",
            "fetcher.min.crawl.delay": "0",
            "parser.sandbox": "false",
            "lang.extraction.policy": "detect",  # the other way's model is loaded by each process
        },
    )


@pytest.fixture(scope="module")
def crawl(root: str, conf: Configuration, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site after eight rounds, the sitemap read before the second one."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "seeds.txt").write_text(root)
    (folder / "sitemaps.txt").write_text(f"{root}sitemap.xml\n")
    crawl = folder / "crawl"
    jobs.run("crawl", "-s", folder / "seeds.txt", crawl, 1, conf=conf)
    jobs.run("sitemap", crawl / "crawldb", "-sitemapUrls", folder / "sitemaps.txt", conf=conf)
    jobs.run("crawl", crawl, 7, conf=conf)
    jobs.run("check", crawl, "--external", conf=conf, out=(out := io.StringIO()))
    assert out.getvalue() == f"2 URLs broken, 1 fragment missing; see  minutch audit {crawl}\n"
    return crawl


def asked(crawl: Path, conf: Configuration, *words: str) -> tuple[int, str]:
    """The exit code of an audit, and what it printed."""
    context = JobContext(conf.freeze(), out=io.StringIO(), err=io.StringIO())
    code = audit.run([str(crawl), *words], context)
    assert isinstance(context.out, io.StringIO)
    return code, context.out.getvalue()


FOUND: dict[str, set[str]] = {
    "broken-links": {"gone", "error"},
    "broken-resources": {"lost.png"},
    "broken-external": {"http://127.0.0.2:1/lost"},
    "missing-fragment": {"plain"},
    "server-errors": {"error"},
    "no-answer": set(),
    "redirect-circles": {"circle", "circle2"},
    "redirect-chains": {"chain"},
    "links-to-redirects": {"moved", "circle", "chain", "far"},
    "slow": {"slow"},
    "no-title": {"untitled", "typeless"},
    "same-title": {
        *("twin1", "twin2", "equal1", "equal2", "near1", "near2", "spelled1", "spelled2"),
    },
    "long-title": {"long"},
    "no-description": {"nodescription"},
    "same-description": {"described1", "described2", "equal1", "equal2", "near1", "near2"},
    "no-h1": {"noh1"},
    "several-h1": {"twoh1"},
    "canonical-elsewhere": {"canonical", "canonicalbroken", "canonicalchain", "header"},
    "canonical-broken": {"canonicalbroken"},
    "canonical-chains": {"canonicalchain"},
    "noindex-linked": {"noindex"},
    "forbidden-linked": {"private/page"},
    "orphans": {"orphan", "listed"},
    "sitemap-not-200": {"gone", "private/page"},
    "not-in-sitemap": {"plain"},
    "deep": {"level6"},
    "equal-pages": {"equal1", "equal2"},
    "nearly-equal-pages": {"near1", "near2"},
    "thin-pages": {"thin"},
    "wrong-type": {"wrongtype.html", "paper"},
    "wrong-charset": {"garbled"},
}
"""Rule -> the pages that it finds."""


@pytest.fixture(scope="module")
def told(
    crawl: Path, conf: Configuration, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], Path]:
    """What an audit says of each rule, and the folder with its files."""
    folder = tmp_path_factory.mktemp("told")
    _, text = asked(crawl, conf, "--json", "--csv", str(folder))
    return {said["id"]: said for said in json.loads(text)}, folder


@pytest.mark.parametrize("name", FOUND)
def test_a_defect_is_found_and_only_there(
    told: tuple[dict[str, Any], Path], root: str, name: str
) -> None:
    with (told[1] / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["url"].removeprefix(root) for row in rows} == FOUND[name]
    said = told[0][name]
    assert said["count"] == len(rows)
    assert set(said["urls"]) == {row["url"] for row in rows}


def test_every_rule_has_a_page(conf: Configuration) -> None:
    assert rules_of(conf).keys() == FOUND.keys()


def test_what_people_read(crawl: Path, conf: Configuration, root: str, tmp_path: Path) -> None:
    code, text = asked(crawl, conf)
    assert code == 0
    lines = text.splitlines()
    at = lines.index("warning: slow, 1 finding")
    assert lines[at + 2] == f"    {root}slow"
    assert lines[-1] == "1 rule found nothing."
    assert [line.split(":")[0] for line in lines if not line.startswith(" ")][:-1] == sorted(
        (line.split(":")[0] for line in lines[:-1] if not line.startswith(" ")),
        key=("error", "warning", "notice").index,
    )


def test_the_report_finds_the_same_chains(crawl: Path, root: str) -> None:
    facts = gathered(crawl, SystemClock().now())
    found = [
        ({url.removeprefix(root) for url in row["addresses"]}, row["end"], row["hops"])
        for row in facts["chains"].to_dicts()
    ]
    assert sorted(found, key=lambda row: len(row[1])) == [
        ({"chain", "ch%C3%A4in", "moved-here"}, "fetched", 2),
        ({"circle", "circle2"}, "a circle", 2),
    ]


def test_a_page_without_a_type_has_a_reason(crawl: Path, root: str) -> None:
    """Also where a page was parsed in part, or not at all, or never asked for."""
    rows = minutch.open(crawl).sql("select url, outcome, content_type, reason, garbled from site")
    found = {row["url"].removeprefix(root): row for row in rows.to_dicts()}
    for row in found.values():
        assert row["content_type"] or row["reason"], row
    assert found["typeless"]["content_type"] == "text/html"
    assert found["halved"]["reason"] == "not all of it was read: page 2 can't be read"
    assert found["blob"]["reason"] and found["error"]["reason"]
    assert (found["slow"]["reason"], found["chain"]["reason"]) == (None, "leads elsewhere")
    assert (found["sign"]["garbled"], found["garbled"]["garbled"]) == (0, 1)


def test_a_site_without_any_description_is_told_so(
    conf: Configuration, tmp_path: Path, root: str
) -> None:
    """And one without h1, if the configuration keeps them; else that it cannot be told."""
    seeds = tmp_path / "seeds.txt"
    seeds.write_text(f"{root}nodescription\n{root}bare\n")
    alone = conf.with_values({"crawl.sitemaps": "false"})
    jobs.run("crawl", "-s", seeds, tmp_path / "crawl", 1, conf=alone)
    asked_for = ("--only", "no-description,no-h1,several-h1,canonical-broken", "--json")
    _, text = asked(tmp_path / "crawl", conf, *asked_for)
    assert {said["id"]: said["count"] for said in json.loads(text)} == {
        "no-description": 2,
        "no-h1": 1,
        "several-h1": 0,
        "canonical-broken": 0,
    }
    _, text = asked(tmp_path / "crawl", Configuration.load([]), *asked_for)
    counts = {said["id"]: said["count"] for said in json.loads(text)}
    assert counts["no-description"] is None and counts["no-h1"] == 1


@pytest.mark.parametrize(
    ("only", "threshold", "code"),
    [("slow", "error", 0), ("slow", "warning", 1), ("no-answer", "notice", 0)],
)
def test_exit_codes_for_ci(
    crawl: Path, conf: Configuration, only: str, threshold: str, code: int
) -> None:
    assert asked(crawl, conf, "--only", only, "--fail-on", threshold)[0] == code


def test_wrong_words(crawl: Path, conf: Configuration) -> None:
    with pytest.raises(UsageError, match="there is no rule gone: the rules are broken-links"):
        asked(crawl, conf, "--only", "gone")
    with pytest.raises(UsageError, match="expected error, warning or notice, found 'bad'"):
        asked(crawl, conf, "--fail-on", "bad")


def test_the_statement_of_a_rule_is_one_for_sql(crawl: Path, conf: Configuration) -> None:
    out = io.StringIO()
    context = JobContext(conf.freeze(), out=out)
    assert audit.run(["--explain", "slow"], context) == 0
    assert len(minutch.open(crawl).sql(out.getvalue())) == 1


def test_what_a_crawl_cannot_tell_is_said(crawl: Path, conf: Configuration, tmp_path: Path) -> None:
    """As of a segment of Nutch's, which has no h1, description, canonical link or sitemap."""
    shutil.copytree(crawl, tmp_path / "crawl", ignore=shutil.ignore_patterns("sitemaps"))
    _, text = asked(tmp_path / "crawl", conf, "--only", "sitemap-not-200", "--json")
    [said] = json.loads(text)
    assert said["count"] is None and "minutch sitemap" in said["set"]
    _, text = asked(tmp_path / "crawl", conf, "--only", "not-in-sitemap,slow")
    assert "not to be told: not-in-sitemap" in text


OWN = """
[[rule]]
id = "many-links"
severity = "notice"
says = "Pages with many links."
sql = "select url, outlinks from site where outlinks > 20"

[[rule]]
id = "slow"
severity = "error"
says = "Slower than ever."
sql = "select url from site where response_ms > 100000"
"""


def own(conf: Configuration, folder: Path, text: str) -> Configuration:
    (folder / "audit-rules.toml").write_text(text)
    return Configuration.load([folder], overrides=dict(conf.items()))


def test_own_rules(crawl: Path, conf: Configuration, root: str, tmp_path: Path) -> None:
    mine = own(conf, tmp_path, OWN)
    _, text = asked(crawl, mine, "--only", "many-links,slow", "--json")
    many, slow = json.loads(text)
    assert many["urls"] == [root]
    assert (slow["severity"], slow["count"]) == ("error", 0)
    assert list(rules_of(mine)).index("slow") < list(rules_of(mine)).index("no-title")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("[[rule]", "audit-rules.toml: Expected"),
        ("[[rule]]\nid = 'a'", "rule 1: no severity and no says and no sql"),
        ("[[rule]]\nid = 1", "expected texts"),
        ("[[rule]]\nid = 'a'\nseverity = 'bad'\nsays = 'x'\nsql = 'y'", "severity: expected error"),
        ("[[rule]]\nid = 'a'\nwhat = 'x'", "what is none of id, severity"),
    ],
)
def test_rules_that_are_none(conf: Configuration, tmp_path: Path, text: str, wrong: str) -> None:
    with pytest.raises(ConfigError, match=wrong):
        rules_of(own(conf, tmp_path, text))


def test_a_statement_that_is_none_names_its_rule(
    crawl: Path, conf: Configuration, tmp_path: Path
) -> None:
    text = OWN.replace("outlinks > 20", "outlink > 20")
    with pytest.raises(QueryError, match="rule many-links: there is no column outlink"):
        asked(crawl, own(conf, tmp_path, text), "--only", "many-links")


def test_cells_are_no_formulas() -> None:
    """OWASP, CSV Injection: spreadsheets compute what begins so."""
    cells = ["=1+1", "+1", "-1", "@sum", "\tx", "plain", "http://a/=1", None]
    text = "".join(csv_of(pl.DataFrame({"url": cells, "n": range(8)})))
    rows = list(csv.reader(io.StringIO(text)))[1:]
    assert [row[0] for row in rows] == [
        *("'=1+1", "'+1", "'-1", "'@sum", "'\tx", "plain", "http://a/=1", ""),
    ]
