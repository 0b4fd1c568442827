"""The chains: order, what ends them, columns as rows."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from selectolax.lexbor import LexborHTMLParser

from minutch.conf import Configuration
from minutch.errors import PluginError, UrlError
from minutch.plugin.chains import (
    HtmlParseFilters,
    IndexingFilters,
    ScoringFilters,
    URLExemptionFilters,
    URLFilters,
    URLNormalizers,
)
from minutch.plugin.points import HTMLMetaTags, IndexingFilter, Parse, ParseResult
from minutch.records.crawldatum import CrawlDatum
from minutch.records.crawldatum_columns import to_frame
from minutch.records.document import NutchDocument
from minutch.records.parsedata import ParseData, ParseStatus
from minutch.records.protocol import Content
from minutch.work.tables.recordfiles import pack
from tests.plugin.places import configuration, write_plugin

FILTERS = """
from minutch.plugin.points import URLFilter
class First(URLFilter):
    calls = []
    def filter(self, url):
        self.calls.append(url)
        return None if "x" in url else url + "1"
class Second(URLFilter):
    def filter(self, url):
        return None if "y" in url else url + "2"
class Broken(URLFilter):
    def filter(self, url):
        return url[99]
"""


def filters(folder: Path, order: str = "First Second") -> Configuration:
    classes = {name: f"code:{name}" for name in ("First", "Second", "Broken")}
    write_plugin(folder, "filters", FILTERS, classes=classes)
    return configuration(folder, "filters", urlfilter__order=order)


def test_filters_in_order_until_one_rejects(tmp_path: Path) -> None:
    chain = URLFilters(filters(tmp_path))
    assert [chain.filter(url) for url in ("a", "x", "y", None)] == ["a12", None, None, None]


def test_filters_over_a_column_see_each_url_once(tmp_path: Path) -> None:
    chain = URLFilters(filters(tmp_path))
    urls = pl.Series("u", ["a", "x", "y", None, "a", "b"])
    result = chain.filter_column(urls)
    assert result.to_list() == [chain.filter(url) for url in urls]
    assert result.name == "u"
    calls = type(chain.filters[0]).calls  # type: ignore[attr-defined]
    assert sorted(calls[:4]) == ["a", "b", "x", "y"]


def test_no_filters_let_all_pass(tmp_path: Path) -> None:
    chain = URLFilters(configuration(tmp_path, "nutch-extensionpoints"))
    assert chain.filter("a") == "a"
    urls = pl.Series(["a", None])
    assert chain.filter_column(urls).to_list() == ["a", None]
    assert chain.filter_column(pl.Series([], dtype=pl.String)).to_list() == []


def test_a_bug_in_a_plugin_is_named(tmp_path: Path) -> None:
    chain = URLFilters(filters(tmp_path, "Broken"))
    with pytest.raises(PluginError, match=r"Broken\.filter\(abc\): IndexError"):
        chain.filter("abc")
    with pytest.raises(PluginError, match="IndexError"):
        chain.filter_column(pl.Series(["abc"]))


def test_an_error_names_the_page_and_shows_no_document(tmp_path: Path) -> None:
    code = """
from minutch.plugin.points import IndexingFilter

class Broken(IndexingFilter):
    def filter(self, doc, parse, url, datum, inlinks):
        raise ValueError("odd")
"""
    write_plugin(tmp_path, "x", code, classes={"X": "code:Broken"}, point=IndexingFilter.point_id)
    document, parse = NutchDocument(), Parse("the whole text", ParseData())
    document.add("content", "the whole text")
    with pytest.raises(PluginError, match=r"^Broken\.filter\(http://a/\): ValueError: odd$"):
        IndexingFilters(configuration(tmp_path, "x")).filter(
            document, parse, "http://a/", CrawlDatum(), None
        )


NORMALIZERS = """
from minutch.errors import UrlError
from minutch.plugin.points import URLNormalizer
class Letter(URLNormalizer):
    def normalize(self, url, scope):
        if url.startswith("!"):
            raise UrlError(url)
        return None if url == "drop" else url + self.letter
class A(Letter): letter = "a"
class B(Letter): letter = "b"
class C(Letter): letter = "c"
class Short(URLNormalizer):
    def normalize(self, url, scope):
        return url.replace("//", "/")
class Scope(URLNormalizer):
    def normalize(self, url, scope):
        return f"{url}@{scope}"
"""
NAMES = ("A", "B", "C", "Short", "Scope")


def normalizers(folder: Path, **more: str) -> Configuration:
    write_plugin(
        folder,
        "normalizers",
        NORMALIZERS,
        point="org.apache.nutch.net.URLNormalizer",
        classes={f"org.example.{name}": f"code:{name}" for name in NAMES},
    )
    return configuration(folder, "normalizers", **more)


def order(conf: Configuration, scope: str = "default") -> str:
    return "".join(type(n).__name__[0] for n in URLNormalizers(conf, scope).normalizers)


def test_ordered_normalizers_come_first_then_the_others(tmp_path: Path) -> None:
    conf = normalizers(
        tmp_path, urlnormalizer__order="org.example.C none org.example.A org.example.C"
    )
    assert order(conf)[:2] == "CA"
    assert sorted(order(conf)) == sorted("ABCSS")


def test_an_order_and_a_choice_per_scope(tmp_path: Path) -> None:
    conf = normalizers(
        tmp_path,
        urlnormalizer__order="org.example.A org.example.B",
        urlnormalizer__order__inject="org.example.B org.example.A",
        urlnormalizer__scope__inject="org.example.A org.example.B",
        urlnormalizer__scope__fetcher="org.example.Scope",
        urlnormalizer__scope__linkdb="none",
    )
    assert order(conf, "inject") == "BA"
    assert order(conf, "default")[:2] == "AB"
    assert URLNormalizers(conf, "fetcher").normalize("u") == "u@fetcher"
    assert URLNormalizers(conf, "fetcher").normalize("u", "other") == "u@other"
    assert URLNormalizers(conf, "linkdb").normalize("u") == "u"


def test_others_come_in_the_order_of_javas_hash_map(tmp_path: Path) -> None:
    names = [type(n).__name__ for n in URLNormalizers(normalizers(tmp_path)).normalizers]
    assert names == ["Scope", "Short", "A", "B", "C"]  # what HashMap.keySet() of JDK 17 prints


def test_normalizers_loop_until_nothing_changes(tmp_path: Path) -> None:
    conf = normalizers(tmp_path, urlnormalizer__scope__default="org.example.Short")
    assert URLNormalizers(conf).normalize("a////b") == "a//b"
    assert (
        URLNormalizers(conf.with_values({"urlnormalizer.loop.count": "9"})).normalize("a////b")
        == "a/b"
    )
    letters = conf.with_values(
        {"urlnormalizer.loop.count": "3", "urlnormalizer.scope.default": "org.example.A"}
    )
    assert URLNormalizers(letters).normalize("u") == "uaaa"
    assert URLNormalizers(letters).normalize_column(
        pl.Series(["u", None, "drop", "!"])
    ).to_list() == [
        "uaaa",
        None,
        None,
        None,
    ]


def test_dropped_and_malformed(tmp_path: Path) -> None:
    chain = URLNormalizers(
        normalizers(tmp_path, urlnormalizer__scope__default="org.example.A org.example.B")
    )
    assert chain.normalize("drop") is None
    assert chain.normalize(None) is None
    with pytest.raises(UrlError):
        chain.normalize("!")


EXEMPTIONS = """
from minutch.plugin.points import URLExemptionFilter
class Even(URLExemptionFilter):
    def filter(self, from_url, to_url): return len(to_url) % 2 == 0
class Long(URLExemptionFilter):
    def filter(self, from_url, to_url): return len(to_url) > 3
"""


def test_exemptions_have_to_agree(tmp_path: Path) -> None:
    write_plugin(
        tmp_path,
        "exemptions",
        EXEMPTIONS,
        point="org.apache.nutch.net.URLExemptionFilter",
        classes={"Even": "code:Even", "Long": "code:Long"},
    )
    chain = URLExemptionFilters(configuration(tmp_path, "exemptions"))
    assert [chain.is_exempted("a", url) for url in ("abcd", "ab", "abcde", None)] == [
        True,
        False,
        False,
        False,
    ]
    assert not chain.is_exempted(None, "abcd")
    assert not URLExemptionFilters(configuration(tmp_path, "nutch-extensionpoints")).is_exempted(
        "a", "abcd"
    )


PARSE_FILTERS = """
from minutch.plugin.points import HtmlParseFilter
from minutch.records.parsedata import ParseStatus
class Title(HtmlParseFilter):
    def filter(self, content, result, metatags, document):
        result[content.url].data.title += self.parameters.get("word", "t")
        return result
class Fails(HtmlParseFilter):
    def filter(self, content, result, metatags, document):
        result[content.url].data.status = ParseStatus(2)
        return result
"""


def test_parse_filters_stop_at_a_failure(tmp_path: Path) -> None:
    write_plugin(
        tmp_path,
        "filters",
        PARSE_FILTERS,
        point="org.apache.nutch.parse.HtmlParseFilter",
        classes={"Title": "code:Title", "Fails": "code:Fails"},
    )

    def run(order: str) -> ParseResult:
        result = ParseResult.of("u", Parse("text", ParseData(ParseStatus(1))))
        conf = configuration(tmp_path, "filters", htmlparsefilter__order=order)
        return HtmlParseFilters(conf).filter(
            Content(url="u"), result, HTMLMetaTags(), LexborHTMLParser("<p>")
        )

    assert run("Title")["u"].data.title == "t"
    assert dict(run("Fails Title")) == {}


SCORING = """
from minutch.plugin.points import ScoringFilter
class Plus(ScoringFilter):
    def inject_score(self, url, datum): datum.score += 1
    def initial_score(self, url, datum): datum.score += 2
    def orphaned_score(self, url, datum): datum.score += 3
    def generator_sort_value(self, url, datum, init_sort): return init_sort + datum.score
    def update_db_score(self, url, old, datum, inlinked):
        datum.score += sum(i.score for i in inlinked)
    def distribute_score_to_outlinks(self, from_url, parse_data, targets, adjust, all_count):
        for _, target in targets: target.score = 1 / all_count
        return adjust
    def pass_score_before_parsing(self, url, datum, content):
        content.metadata["score"] = [str(datum.score)]
    def pass_score_after_parsing(self, url, content, parse):
        parse.data.parse_meta["score"] = content.metadata["score"]
    def indexer_score(self, url, doc, db_datum, fetch_datum, parse, inlinks, init_score):
        return init_score * 2
class Times(ScoringFilter):
    def inject_score(self, url, datum): datum.score *= 10
    def generator_sort_value(self, url, datum, init_sort): return init_sort * 10
    def indexer_score(self, url, doc, db_datum, fetch_datum, parse, inlinks, init_score):
        return init_score + 1
"""


def scoring(folder: Path) -> ScoringFilters:
    write_plugin(
        folder,
        "scoring",
        SCORING,
        point="org.apache.nutch.scoring.ScoringFilter",
        classes={"Plus": "code:Plus", "Times": "code:Times"},
    )
    return ScoringFilters(configuration(folder, "scoring", scoring__filter__order="Plus Times"))


def test_scores_go_from_filter_to_filter(tmp_path: Path) -> None:
    chain = scoring(tmp_path)
    datum = CrawlDatum(1, score=1.0)
    chain.inject_score("u", datum)
    assert datum.score == 20.0
    chain.initial_score("u", datum)
    chain.orphaned_score("u", datum)
    assert datum.score == 25.0
    assert chain.generator_sort_value("u", datum, 1.0) == 260.0
    chain.update_db_score("u", None, datum, [CrawlDatum(score=1.5), CrawlDatum(score=2.0)])
    assert datum.score == 28.5
    targets = [("a", CrawlDatum()), ("b", CrawlDatum())]
    assert chain.distribute_score_to_outlinks("u", ParseData(), targets, None, 4) is None
    assert [target.score for _, target in targets] == [0.25, 0.25]


def test_scores_through_parsing_and_into_the_index(tmp_path: Path) -> None:
    from minutch.records.document import NutchDocument

    chain = scoring(tmp_path)
    content, parse = Content(url="u"), Parse("", ParseData())
    chain.pass_score_before_parsing("u", CrawlDatum(score=0.5), content)
    chain.pass_score_after_parsing("u", content, parse)
    assert parse.data.parse_meta["score"] == ["0.5"]
    assert (
        chain.indexer_score("u", NutchDocument(), CrawlDatum(), CrawlDatum(), parse, None, 1.0)
        == 3.0
    )


def test_scores_over_columns_are_those_over_rows(tmp_path: Path) -> None:
    chain = scoring(tmp_path)
    records = [("a", CrawlDatum(1, score=0.5)), ("b", CrawlDatum(2, score=0.1))]
    frame = to_frame(records)
    columns = chain.inject_score_columns(frame)
    values = chain.generator_sort_value_columns(columns, pl.Series([1.0, 1.0], dtype=pl.Float32))
    links = pack(to_frame([("l", CrawlDatum(score=4.0))])).with_columns(
        row=pl.Series([1], dtype=pl.UInt32)
    )
    updated = chain.update_db_score_columns(columns, frame, links)
    assert (
        chain.linked_score_columns(frame["score"], links) is None
    )  # nobody knows whether Plus changes scores alone
    late = chain.orphaned_score_columns(chain.initial_score_columns(updated))
    for row, (url, datum) in enumerate(records):
        chain.inject_score(url, datum)
        assert columns["score"][row] == pytest.approx(datum.score)
        assert values[row] == pytest.approx(chain.generator_sort_value(url, datum, 1.0))
        chain.update_db_score(url, None, datum, [CrawlDatum(score=4.0)] if row == 1 else [])
        assert updated["score"][row] == pytest.approx(datum.score)
        assert late["score"][row] == pytest.approx(datum.score + 5)
