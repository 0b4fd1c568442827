"""The files that a configuration is made of, the profile among them, and what a crawl remembers."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from minutch.conf import NEW_CRAWLS, Configuration
from minutch.conf.sources import PROFILE, conf_of
from minutch.errors import ConfigError
from tests.support.golden import PROJECT

WEB = PROJECT / "conf/profiles/web.xml"


def write(folder: Path, **values: str) -> Path:
    """Writes folder/nutch-site.xml; `a__b` is the property a.b."""
    folder.mkdir(parents=True, exist_ok=True)
    found = "".join(
        f"<property><name>{name.replace('__', '.')}</name><value>{value}</value></property>"
        for name, value in values.items()
    )
    (folder / "nutch-site.xml").write_text(f"<configuration>{found}</configuration>")
    return folder


def test_each_setting_of_the_profile_differs_from_nutchs_and_has_its_reason() -> None:
    conf = Configuration.load([])
    names = []
    for item in ElementTree.parse(WEB).getroot().iter("property"):
        name, value = item.findtext("name", ""), item.findtext("value", "")
        names.append(name)
        assert conf.default(name) not in (None, value), name
        assert len(item.findtext("description", "").split()) > 2, name
    assert len(names) == len(set(names))


def test_a_profile_is_between_the_defaults_and_nutch_site(tmp_path: Path) -> None:
    name = "db.max.outlinks.per.page"
    site = write(tmp_path / "conf", db__max__outlinks__per__page="7")
    assert Configuration.load([]).get(name) == "100"
    for conf in (
        Configuration.load([], profile=NEW_CRAWLS),
        Configuration.load([], overrides={PROFILE: "web"}),
        Configuration.load([write(tmp_path / "naming", minutch__profile="web")]),
    ):
        assert (conf.get(name), conf.source(name), conf.is_set(name)) == ("-1", str(WEB), False)
        assert conf.get(PROFILE) == "web" and conf.default(name) == "100"
        rules = conf.resource("regex-urlfilter.txt")
        assert rules == WEB.with_suffix("") / "regex-urlfilter.txt"
    over = Configuration.load([site], profile=NEW_CRAWLS)
    assert (over.get(name), over.is_set(name)) == ("7", True)
    line = Configuration.load([site], profile=NEW_CRAWLS, overrides={name: "9"})
    assert (line.get(name), line.source(name)) == ("9", "command line")
    (site / "regex-urlfilter.txt").write_text("+.")
    assert over.resource("regex-urlfilter.txt") == site / "regex-urlfilter.txt"
    nutchs = Configuration.load([], profile=NEW_CRAWLS, overrides={PROFILE: "nutch"})
    assert nutchs.get(name) == "100"


def test_a_profile_of_ones_own_and_one_that_there_is_not(tmp_path: Path) -> None:
    (tmp_path / "profiles").mkdir()
    text = "<configuration><property><name>a.b</name><value>1</value></property></configuration>"
    (tmp_path / "profiles/mine.xml").write_text(text)
    assert Configuration.load([tmp_path], overrides={PROFILE: "mine"}).get("a.b") == "1"
    for name in ("wbe", "../nutch-default", "profiles/web"):
        with pytest.raises(ConfigError, match="expected one of nutch, mine, web, found"):
            Configuration.load([tmp_path], overrides={PROFILE: name})


def crawl_in(folder: Path, **values: str) -> Path:
    (folder / "crawldb").mkdir(parents=True)
    write(folder / "conf", **values)
    return folder


def test_what_a_crawl_remembers_is_found_from_whatever_is_in_it(tmp_path: Path) -> None:
    one, other = crawl_in(tmp_path / "one"), crawl_in(tmp_path / "other")
    (one / "segments/20260101000000/content").mkdir(parents=True)
    for name in ("", "crawldb", "crawldb/", "segments/20260101000000/content", "index"):
        assert conf_of(["-x", "http://a.example/", f"{one}/{name}"]) == one / "conf"
    assert conf_of([str(one), str(one / "linkdb")]) == one / "conf"
    assert conf_of([str(one), str(other)]) is None
    assert conf_of(["", "x" * 5000, "-", str(tmp_path), "http://a.example/"]) is None
    write(tmp_path / "mine/conf")  # as `init` makes it: the crawl is a folder further down
    assert conf_of([str(tmp_path / "mine/crawl/crawldb")]) is None


def test_a_crawls_folder_wins_over_nutch_site_and_is_a_file_among_files(tmp_path: Path) -> None:
    site = write(tmp_path / "conf", a="site", b="site")
    crawl = crawl_in(tmp_path / "crawl", a="crawl", minutch__profile="web")
    own = Configuration.load([site], crawl=crawl / "conf", overrides={"c": "line"})
    later = Configuration.load([site], overrides={"c": "line"}).of_crawl(crawl)
    for conf in (own, later):
        assert [conf.get(name) for name in "abc"] == ["crawl", "site", "line"]
        assert conf.source("a") == str(crawl / "conf/nutch-site.xml")
        assert conf.get("db.max.outlinks.per.page") == "-1"
    plain = Configuration.load([site]).with_values({"d": "program"}).of_crawl(tmp_path / "none")
    assert (plain.get("a"), plain.get("d"), plain.get(PROFILE)) == ("site", "program", "nutch")


@pytest.mark.parametrize("name", ["plugin.folders", "index.arbitrary.function.0", "spark.jars"])
def test_a_crawls_folder_names_no_code(tmp_path: Path, name: str) -> None:
    crawl = crawl_in(tmp_path / "crawl", **{name: "x"})
    with pytest.raises(ConfigError, match=f"{name} names code") as error:
        Configuration.load([], crawl=crawl / "conf")
    assert "-D" in error.value.hint


def test_a_crawls_folder_that_others_may_write_is_refused(tmp_path: Path) -> None:
    crawl = crawl_in(tmp_path / "crawl", a="1")
    (crawl / "conf/nutch-site.xml").chmod(0o666)
    with pytest.raises(ConfigError, match="may be written by others") as error:
        Configuration.load([]).of_crawl(crawl)
    assert f"NUTCH_CONF_DIR={crawl / 'conf'}" in error.value.hint
    assert Configuration.load([crawl / "conf"], crawl=crawl / "conf").get("a") == "1"
