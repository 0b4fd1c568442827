"""Properties that no test of a module sets: each to two values, with two outcomes."""

from __future__ import annotations

from pathlib import Path

import pytest

from minutch.conf import Configuration
from minutch.cycle.crawldb.partitions import EntryFilter
from minutch.cycle.hostdb.update import HostDbSettings, UpdateHostDbOptions
from minutch.cycle.index.writers import Encoders
from minutch.cycle.parse.mime import MimeUtil
from minutch.plugin.chains import IndexingFilters
from minutch.plugin.points import NutchPublisher
from minutch.plugin.repository import PluginRepository
from tests.cycle.crawldb.test_inject import seeds
from tests.cycle.index.test_writers import DEFAULT, EXCHANGE, Setup, documents
from tests.plugins.test_parse_filters import meta
from tests.plugins.urlplugins import normalized, passed, url_filter, url_normalizer
from tests.support.commands import command
from tests.support.crawldbs import context, read_db

inject = command("inject").run

URL = "http://a.example/x"


def test_score_of_seeds(tmp_path: Path) -> None:
    db = tmp_path / "db"
    assert (
        inject([str(db), str(seeds(tmp_path, f"{URL}\n"))], context({"db.score.injected": "2.5"}))
        == 0
    )
    assert read_db(db)[URL].score == 2.5


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("urlfilter.domain.file", "b.example\n"),
        ("urlfilter.automaton.file", "+http://b[.]example/.*\n"),
        ("urlfilter.prefix.file", "http://b.example/\n"),
    ],
)
def test_rule_files_of_url_filters(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text(text)
    chosen = url_filter(
        name.removesuffix(".file").replace(".", "-"), tmp_path, **{name: "mine.txt"}
    )
    assert passed(chosen, [URL, "http://b.example/x"]) == ["http://b.example/x"]


def test_rule_file_of_protocols(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("a.example\thttps\n")
    chosen = url_normalizer(
        "urlnormalizer-protocol", tmp_path, urlnormalizer__protocols__file="mine.txt"
    )
    assert normalized(chosen, [URL, "http://b.example/"]) == [
        "https://a.example/x",
        "http://b.example/",
    ]


def test_entries_are_normalized_as_wished() -> None:
    for value in ("true", "false"):
        found = EntryFilter.from_conf(context({"crawldb.url.normalizers": value}).conf)
        assert str(found.normalizes).lower() == value


def test_types_of_a_file_of_tikas(tmp_path: Path) -> None:
    rules = (
        '<mime-info><mime-type type="application/x-own"><glob'
        ' pattern="*.own"/></mime-type></mime-info>'
    )
    (tmp_path / "own.xml").write_text(rules)
    found = [
        MimeUtil(Configuration.load([tmp_path], overrides=given)).resolve(
            None, "http://a/b.own", b"\0"
        )
        for given in ({}, {"mime.types.file": "own.xml"})
    ]
    assert found == ["application/octet-stream", "application/x-own"]


def test_hosts_are_looked_up_where_somebody_says_so() -> None:
    """Nutch's file says true, which counts for nothing; a value of one's own does."""
    for kind in ("new", "known", "failed"):
        conf = Configuration.load([], overrides={f"hostdb.check.{kind}": "true"})
        chosen = HostDbSettings.of(conf, UpdateHostDbOptions()).checks
        assert {name for name in ("new", "known", "failed") if getattr(chosen, name)} == {kind}


def test_the_order_of_indexing_filters() -> None:
    names = [
        "org.apache.nutch.indexer.more.MoreIndexingFilter",
        "org.apache.nutch.indexer.basic.BasicIndexingFilter",
    ]
    for order in (names, names[::-1], names[:1]):
        conf = Configuration.load(
            [],
            overrides={
                "plugin.includes": "index-(basic|more)",
                "indexingfilter.order": " ".join(order),
            },
        )
        found = [type(chosen).__name__ for chosen in IndexingFilters(conf).filters]
        assert found == [name.rpartition(".")[2] for name in order]


PUBLISHERS = """<plugin id="publish-two" name="two">
<requires><import plugin="nutch-extensionpoints"/></requires>
<extension point="org.apache.nutch.publisher.NutchPublisher">
<implementation id="one" class="two:One"/><implementation id="two" class="two:Two"/></extension>\
</plugin>"""
MODULE = """
from minutch.plugin.points import NutchPublisher
class One(NutchPublisher):
    def publish(self, event): pass
class Two(NutchPublisher):
    def publish(self, event): pass
"""


def test_the_order_of_publishers(tmp_path: Path) -> None:
    folder = tmp_path / "publish_two"
    folder.mkdir()
    (folder / "plugin.xml").write_text(PUBLISHERS)
    (folder / "two.py").write_text(MODULE)
    shipped = Configuration.load([]).get("plugin.folders")
    base = {"plugin.includes": "publish-two", "plugin.folders": f"{tmp_path},{shipped}"}
    for order in ("one two", "two one", "two"):
        conf = Configuration.load([], overrides={**base, "publisher.order": order})
        found = PluginRepository.of(conf).ordered(NutchPublisher, "publisher.order")
        assert [type(publisher).__name__.lower() for publisher in found] == order.split()


def test_how_much_of_a_text_is_looked_at() -> None:
    german, english = "Dies ist ein deutscher Satz. ", "The weather was fine when they went there. "
    page = f"<p>{german * 5}{english * 99}"
    for length, language in (("140", "de"), ("-1", "en")):
        chosen = {"lang.extraction.policy": "identify", "lang.analyze.max.length": length}
        assert meta(page, "language-identifier", **chosen)["language"] == [language]


def test_the_file_of_exchanges(tmp_path: Path) -> None:
    setup = Setup(tmp_path)
    for name in ("a", "rest"):
        setup.add(name)
    (tmp_path / "mine.xml").write_text(f"<exchanges>{EXCHANGE.format('a', '1 == 1')}</exchanges>")
    for given, writer in (({}, "rest"), ({"exchanges.exchanges.file": "mine.xml"}, "a")):
        encoded, _ = Encoders.from_conf(setup.conf(DEFAULT, **given)).encode(documents(), [])
        assert [name for name, frame in encoded.items() if len(frame)] == [writer]
