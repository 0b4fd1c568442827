"""What the first `crawl URL` was told stands in the crawl's folder, and every later command uses
it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import minutch
from minutch.commands import cli
from minutch.conf.sources import SITE
from minutch.errors import ConfigError
from tests.support.siteserver import SiteServer

ADDRESSES = "http.filter.ipaddress.include=loopback"
GIVEN = ["-D", ADDRESSES, "-D", "http.proxy.password=swordfish", "-D", "plugin.folders=plugins"]


@pytest.fixture(scope="module")
def server() -> Iterator[SiteServer]:
    with SiteServer() as server:
        yield server


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_crawl_remembers(
    here: Path, server: SiteServer, capsys: pytest.CaptureFixture[str]
) -> None:
    url = server.site.url("one")
    wishes = ["--agent", "me", "--delay", "0", "--depth", "3", "--exclude", "[?]x=&y<"]
    assert cli.main(["crawl", *GIVEN, *wishes, url, "mine", "1"]) == 0
    text = (here / "mine/conf" / SITE).read_text()
    for name in ("http.agent.name", "scoring.depth.max", "db.ignore.external.links.mode"):
        assert f"<name>{name}</name>" in text
    assert "swordfish" not in text and "http.proxy.password is secret" in text
    assert "<name>plugin.folders" not in text and "plugin.folders names code" in text

    out = capsys.readouterr().out
    go_on = out.partition("Go on: ")[2].partition("\n  Look:")[0].replace("\\\n", "")
    program, *words = shlex.split(go_on)
    assert program == "minutch" and ADDRESSES not in words
    assert "http.proxy.password=$HTTP_PROXY_PASSWORD" in words and "[" not in program
    assert cli.main([word.replace("$HTTP_PROXY_PASSWORD", "swordfish") for word in words]) == 0

    assert cli.main(["explain", "mine"]) == 0
    said = capsys.readouterr().out
    assert "http.agent.name = me" in said and "mine/conf/nutch-site.xml" in said
    assert cli.main(["explain", url, "mine"]) == 0
    assert "http.agent.name" not in capsys.readouterr().out  # that it is not set
    assert cli.main(["showproperties", "mine/crawldb"]) == 0
    out = capsys.readouterr().out
    lines = {line.split()[0]: line for line in out.splitlines()[2:] if line.strip()}
    assert lines["scoring.depth.max"].endswith("# from mine/conf/nutch-site.xml")
    assert lines["db.max.outlinks.per.page"].endswith("conf/profiles/web.xml")
    assert "#" not in lines["db.fetch.retry.max"]

    assert cli.main(["generate", "mine/crawldb", "mine/segments", "-topN", "2"]) == 0
    segment = max((here / "mine/segments").iterdir())
    assert cli.main(["fetch", str(segment), "-threads", "2"]) == 0  # agent, addresses
    assert (segment / "content").is_dir()


def test_it_is_edited_and_belongs_to_its_owner(here: Path, server: SiteServer) -> None:
    words = ["-D", ADDRESSES, "--delay", "0", server.site.url("one"), "mine", "0"]
    assert cli.main(["crawl", "--agent", "me", *words]) == 0
    path = here / "mine/conf" / SITE
    path.write_text(path.read_text().replace("<value>me</value>", "<value>you</value>"))
    conf = cli.load_configuration(cli.Invocation(["mine/crawldb"]), {})
    assert conf.get("http.agent.name") == "you"
    assert cli.main(["crawl", *words]) == 0
    assert "you" in path.read_text()
    path.chmod(0o666)
    with pytest.raises(ConfigError, match=r"mine/conf/nutch-site\.xml may be written by others"):
        cli.load_configuration(cli.Invocation(["mine/crawldb"]), {})
    assert cli.main(["readdb", "mine/crawldb", "-stats"]) == 255


def test_a_crawl_in_nutchs_way_has_nutchs_defaults(here: Path, server: SiteServer) -> None:
    Path("seeds").write_text(server.site.url("one"))
    assert cli.main(["crawl", "-D", ADDRESSES, "-D", "http.agent.name=me", "seeds", "c", "0"]) == 0
    assert not (here / "c/conf").exists()


def test_a_crawl_of_python_remembers(here: Path) -> None:
    conf = {"http.agent.name": "me", "http.proxy.password": "swordfish"}
    crawl = minutch.open("mine", create=True, conf=conf, quiet=True)
    assert crawl.conf.get("db.ignore.external.links") == "true"
    assert crawl.conf.get("http.proxy.password") == "swordfish"
    crawl.inject(["http://a.example/"])
    again = minutch.open("mine", conf={"http.agent.url": "x"}).conf
    assert (again.get("http.agent.name"), again.get("http.agent.url")) == ("me", "x")
    assert again.get("minutch.profile") == "web" and "http.proxy.password" not in again
    nutchs = minutch.open("mine", conf=minutch.Configuration.load([])).conf
    assert nutchs.get("db.ignore.external.links") == "false"
