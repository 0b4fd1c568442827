"""Parse filters: parse-metatags, headings, language-identifier, microformats-reltag,
parsefilter-regex and -debug.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from py3langid.langid import LanguageIdentifier

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.parse import parsesegment
from minutch.cycle.segment.store import CONTENT, PARSE_DATA, Segment, part_writer
from minutch.job import JobContext
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import NutchDocument
from minutch.records.parsedata import ParseData
from plugins.headings.headings import HeadingsParseFilter
from plugins.language_identifier.language import (
    LanguageIndexingFilter,
    _identifier,
    primary_language,
)
from plugins.microformats_reltag.reltag import RelTagIndexingFilter
from tests.support.examples import examples
from tests.support.pages import URL, configuration, content, parse, parse_all


def meta(page: str, plugins: str, **properties: str) -> dict[str, list[str]]:
    """The parse metadata of a page."""
    return parse(page, configuration(f"parse-html|{plugins}", **properties)).data.parse_meta


class TestMetatags:
    PAGE = """<head><meta name=Description content="a page"><meta name=keywords content=k1>
    <meta name=keywords content=k2><meta http-equiv=Expires content=never></head>"""

    def test_named_ones(self) -> None:
        found = meta(self.PAGE, "parse-metatags")
        assert found["metatag.description"] == ["a page"]
        assert found["metatag.keywords"] == ["k1", "k2"]
        assert "metatag.expires" not in found

    def test_all(self) -> None:
        assert meta(self.PAGE, "parse-metatags", metatags_names="*")["metatag.expires"] == ["never"]


class TestHeadings:
    PAGE = "<body><h2>b <i>c</i>\n d</h2><h1> </h1><h1>a</h1><h2>e</h2></body>"

    def test_the_first_of_each(self) -> None:
        found = meta(self.PAGE, "headings")
        assert found["h2"] == ["b c d"]
        assert "h1" not in found  # the first one is empty

    def test_all_of_them(self) -> None:
        found = meta(self.PAGE, "headings", headings_multivalued="true", headings="h2,h1")
        assert (found["h2"], found["h1"]) == (["b c d", "e"], ["a"])

    @pytest.mark.parametrize("is_known", [True, False])
    def test_all_text_in_them_counts(self, monkeypatch: pytest.MonkeyPatch, is_known: bool) -> None:
        if not is_known:  # to the kernel
            monkeypatch.setattr(HeadingsParseFilter, "_numbers", {})
        page = """<h1>\x01 a\xa0<script>b</script>  <svg><text>c</text></svg>\x02</h1><h2>d<b><h2>e
            </h2>f</b></h2><h2></h2><svg><h1>g</svg><x-y>h"""
        found = meta(page, "headings", headings_multivalued="true", headings="H2,h1,x-y")
        expected = {"H2": ["de f", "e"], "h1": ["a\xa0b c", "gh"], "x-y": ["h"]}
        assert {name: found[name] for name in expected} == expected


_WORDS = (
    *("der", "Hund", "het", "huis", "og", "hund", "och", "the", "house", "quelle", "maison"),
    *("srpski", "jezik", "je", "kuća", "српски", "језик", "кућа", "дом", "語", "방", "0", "qzx"),
)


class TestLanguage:
    GERMAN = (
        "<body>Der schnelle braune Fuchs springt über den faulen Hund und läuft in den Wald"
        " zurück.</body>"
    )

    @pytest.mark.parametrize(
        ("page", "language"),
        [
            ('<html lang="de-AT"><meta name="dc.language" content="fr">', "fr"),
            ('<html lang="xx"><body lang="ita">', "it"),
            ('<meta http-equiv="Content-Language" content="en, de">', "en"),
            ("<svg xml:lang=de></svg><meta content=pt><i lang=it>", "it"),
            ("<meta name=x content=pt><meta http-equiv=Content-LANGUAGE content=es-MX lang>", "es"),
            (GERMAN, "de"),
            (f"<b content=pt name=dc.language></b><meta name=dc.language content>{GERMAN}", "de"),
        ],
    )
    @pytest.mark.parametrize("by_kernel", [True, False])
    def test_policy_detect_then_identify(
        self, monkeypatch: pytest.MonkeyPatch, page: str, language: str, by_kernel: bool
    ) -> None:
        if not by_kernel:
            monkeypatch.setattr("plugins.lib_html.tree_reader.attribute_numbers", lambda: None)
        assert meta(page, "language-identifier")["language"] == [language]

    def test_header_and_order(self) -> None:
        conf = configuration("parse-html|language-identifier", lang_extraction_policy="detect")
        page = content("<body>x", Content_Language="pt")
        assert parse_all(page, conf)[URL].data.parse_meta["language"] == ["pt"]
        conf = configuration(
            "parse-html|language-identifier", lang_extraction_policy="identify,detect"
        )
        assert parse(f'<html lang="en">{self.GERMAN}', conf).data.parse_meta["language"] == ["de"]

    @pytest.mark.parametrize(
        "text", [GERMAN, "quick brown fox", "Ü", "水は方円の器に随う", "0", ""]
    )
    def test_kernel_weighs_as_the_library_does(self, text: str) -> None:
        ours, data = _identifier(), text.encode()
        for _ in range(2):  # nothing of a text is left for the next one
            # BLAS adds in another order, on each machine in its own
            expected = LanguageIdentifier._raw_score(ours, data)
            np.testing.assert_allclose(ours._raw_score(data), expected, rtol=1e-5)
            assert ours._raw_score(data).argmax() == expected.argmax()

    @settings(max_examples=examples(200), deadline=None)
    @given(st.lists(st.sampled_from(_WORDS), max_size=30), st.text(max_size=3))
    def test_the_likeliest_language_is_found_without_probabilities(
        self, words: list[str], more: str
    ) -> None:
        text = f"{' '.join(words)}{more}"
        assert _identifier().likeliest(text) == _identifier().classify(text)[0]

    def test_only_certain(self) -> None:
        found = meta(
            "<body>xq zj", "language-identifier", **{"lang.identification.only.certain": "true"}
        )
        assert "language" not in found

    @pytest.mark.parametrize(
        ("value", "code"),
        [
            ("de-AT", "de"),
            ("EN_us", "en"),
            ("ger", "de"),
            ("xx, fr", "fr"),
            ("", None),
            ("q=1", None),
        ],
    )
    def test_codes(self, value: str, code: str | None) -> None:
        assert primary_language(value) == code

    def test_index_field(self) -> None:
        page = parse(self.GERMAN, configuration("parse-html|language-identifier"))
        doc = LanguageIndexingFilter(Configuration(), {}).filter(
            NutchDocument(), page, URL, CrawlDatum(), None
        )
        assert doc is not None
        assert doc.first("lang") == "de"
        picky = LanguageIndexingFilter(
            Configuration().with_values({"lang.index.languages": "en"}), {}
        )
        assert picky.filter(NutchDocument(), page, URL, CrawlDatum(), None) is None


def test_rel_tags() -> None:
    page = """<a rel=tag href="http://t.org/tags/web+crawling">w</a><a rel="Tag" href="http://t.org/a%20b">a</a>
    <a rel=tag href="relative">r</a><a rel="tag nofollow" href="http://t.org/no">n</a><a rel=tag href="http://t.org/">e</a>"""
    found = parse(page, configuration("parse-html|microformats-reltag"))
    assert found.data.parse_meta["Rel-Tag"] == ["a b", "web crawling"]
    doc = RelTagIndexingFilter(Configuration(), {}).filter(
        NutchDocument(), found, URL, CrawlDatum(), None
    )
    assert doc is not None
    assert doc.first("tag") == "a b"


class TestRules:
    def test_html_and_text(self) -> None:
        rules = (
            "price\ttext\t[0-9]+,[0-9]{2}\n bold html <b>\nbroken rule\n# comment text x\nalso "
            " html <b>\n"
        )
        found = meta("<body><b>10,</b>50 10,50", "parsefilter-regex", parsefilter_regex_rules=rules)
        assert (found["price"], found["bold"]) == (["true"], ["true"])
        assert {"broken", "#", "also"}.isdisjoint(found)

    def test_a_rule_for_something_else_holds_for_no_page(self) -> None:
        assert meta("<body>x", "parsefilter-regex", parsefilter_regex_rules="f title x")["f"] == [
            "false"
        ]

    def test_no_match_is_false(self) -> None:
        assert meta("<body>x", "parsefilter-regex", parsefilter_regex_rules="f text y")["f"] == [
            "false"
        ]

    def test_a_rule_that_takes_too_long_is_false(self) -> None:
        page = "<body>" + "a" * 30
        assert meta(page, "parsefilter-regex", parsefilter_regex_rules=r"f text ^(a+)+\1$b")[
            "f"
        ] == ["false"]

    def test_the_shipped_file_has_no_rules(self) -> None:
        assert set(meta("<body>x", "parsefilter-regex")) == {
            "OriginalCharEncoding",
            "CharEncodingForConversion",
        }


def test_the_tree_for_debugging() -> None:
    assert meta("<p>x", "parsefilter-debug")["DOM"] == [
        "<html><head></head><body><p>x</p></body></html>"
    ]


class TestInWorkers:
    """A parse worker may write no file, and the model of the languages comes as one that has to be
    unpacked.
    """

    def test_languages_are_identified(self, tmp_path: Path) -> None:
        for name in [name for name in sys.modules if name.endswith("language_identifier.language")]:
            sys.modules[name]._identifier.cache_clear()
        segment = Segment(tmp_path / "20260101000000")
        with part_writer(segment.path, CONTENT, 0) as append:
            append(URL, content(TestLanguage.GERMAN))
        conf = configuration("parse-html|language-identifier", **{"parser.workers": "1"})
        assert (
            parsesegment.parse(segment.path, context=JobContext(conf.freeze(), FakeClock(0)))[
                "success"
            ]
            == 1
        )
        ((_, data),) = segment.records(PARSE_DATA)
        assert isinstance(data, ParseData)
        assert data.parse_meta["language"] == ["de"]


def test_a_filter_that_fails_is_named_with_the_page(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "parsefilter_broken"
    folder.mkdir()
    (folder / "plugin.xml").write_text(
        '<plugin id="parsefilter-broken"><extension point="org.apache.nutch.parse.HtmlParseFilter">'
        '<implementation id="Broken" class="broken:Broken"/></extension></plugin>'
    )
    (folder / "broken.py").write_text(
        "from minutch.plugin.points import HtmlParseFilter\n\nclass Broken(HtmlParseFilter):\n   "
        " def filter(self, *args):\n        raise KeyError('x')\n"
    )
    conf = configuration("parse-html|parsefilter-broken", **{"plugin.folders": str(tmp_path)})
    assert not parse_all(content("<p>secret"), conf).is_any_success
    assert f"Broken.filter({URL}): KeyError: 'x'" in caplog.text
    assert "secret" not in caplog.text
