"""Links in text, rules for links, signatures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.parse.outlinks import OutlinkRules
from minutch.parse.signature import MD5Signature, TextProfileSignature, from_conf
from minutch.parse.textlinks import text_outlinks
from minutch.records.content import Content
from tests.support.pages import configuration

CONF = configuration()


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("see http://e.org/a, or mailto:x@y.z!", ["http://e.org/a,", "mailto:x@y.z!"]),
        ("(https://e.org/q?a=b&c=d#frag)", ["https://e.org/q?a=b&c=d#frag"]),
        ("no:t a:x 9:z http:/", []),
        ("http://e.org/%41%zz", ["http://e.org/%41"]),
        ("1a2:bc", ["a2:bc"]),
        ("", []),
    ],
)
def test_urls_in_text(text: str, urls: list[str]) -> None:
    assert [link.to_url for link in text_outlinks(text)] == urls


def test_long_runs_take_no_time() -> None:
    assert text_outlinks("a" * 200_000 + ":" + "b" * 1000)[0].to_url.startswith("a" * 121 + ":b")
    assert text_outlinks("a.+-" * 100_000) == []


@given(st.text(alphabet="ab:/.#%20 é", max_size=60))
def test_any_text(text: str) -> None:
    assert all(":" in link.to_url for link in text_outlinks(text))


class TestRules:
    def test_links_to_the_page_itself_go(self) -> None:
        rules = OutlinkRules(CONF)
        assert rules.accept("http://e.org/", "http://e.org/", None) is None
        assert rules.accept("http://e.org/", "http://e.org/a/../b#f", None) == "http://e.org/b"

    def test_all_at_once_is_the_same_as_one_by_one(self) -> None:
        links = [f"http://h{i % 7}.org/d/{i}/../x{'?q=1' if i % 5 == 0 else ''}#f" for i in range(400)]
        links += ["no url", "http://e.org/a b", "http://[bad/", "ftp://x.org/", "http://E.org:80/"]
        at_once, one_by_one = OutlinkRules(CONF), OutlinkRules(CONF)
        at_once.prepare(links)
        assert [at_once.accept("f", link, None) for link in links] == [
            one_by_one.accept("f", link, None) for link in links
        ]

    def test_a_place_that_is_no_url(self) -> None:
        rules = OutlinkRules(configuration(**{"db.ignore.external.links": "true"}))
        assert rules.origin("http://E.org/x") == "e.org"
        assert rules.accept("http://e.org/x", "no url", "e.org") is None
        assert rules.accept("http://e.org/x", "http://E.ORG/y", "e.org") == "http://e.org/y"


class TestSignatures:
    def test_by_name(self) -> None:
        for name in ("minutch.parse.signature.MD5Signature", "minutch.parse.signature:MD5Signature", ""):
            assert isinstance(from_conf(Configuration().with_values({"db.signature.class": name})), MD5Signature)

    @pytest.mark.parametrize("name", ["org.example.None", "no.such.Module", "minutch.parse.signature:None", "x"])
    def test_unknown_names(self, name: str) -> None:
        with pytest.raises(ConfigError, match=r"db\.signature\.class"):
            from_conf(Configuration().with_values({"db.signature.class": name}))

    @pytest.mark.parametrize(
        ("text", "profile"),
        [
            ("one two two three three three", "three 2\ntwo 2"),
            ("abc ab abc", "abc 2"),
            ("İÇİ İÇİ", "içi 2"),
            ("a😀bcd bcd", "bcd 2"),
            ("\ua7c0\ua7c0\ua7c0abc abc", "abc 2"),
            ("x y z", ""),
        ],
    )
    def test_profiles(self, text: str, profile: str) -> None:
        assert TextProfileSignature(Configuration()).profile(text) == profile

    @given(st.text(max_size=80))
    def test_any_text(self, text: str) -> None:
        signature = TextProfileSignature(Configuration())
        assert len(signature.calculate(Content(url="http://e.org/"), text)) == 16
