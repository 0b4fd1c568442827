"""URLs taken apart and put together as java.net.URL does."""

from __future__ import annotations

import pytest
from hypothesis import given

from minutch.errors import UrlError
from minutch.urls import parts
from minutch.urls.parts import Url, compose, is_ipv4, is_ipv6, parse, remove_dot_segments
from tests.support.examples import tabled
from tests.urls.strategies import any_text, odd_text, plain_urls, urls

HOME = parse("http://example.org/")


@tabled(
    ("text", "expected"),
    [
        ("http://a.org/p?q#r", Url("http", None, "a.org", -1, "a.org", "/p", "q", "r")),
        ("HTTP://A.org", Url("http", None, "A.org", -1, "A.org", "", None, None)),
        ("http://u:p@a:80/", Url("http", "u:p", "a", 80, "u:p@a:80", "/", None, None)),
        ("http://a@b@c/", Url("http", None, "", -1, "a@b@c", "/", None, None)),
        ("http://[::1]:8/", Url("http", None, "[::1]", 8, "[::1]:8", "/", None, None)),
        ("http://a:/", Url("http", None, "a", -1, "a:", "/", None, None)),
        (
            f"http://a:{'0' * 5000}80/",
            Url("http", None, "a", 80, f"a:{'0' * 5000}80", "/", None, None),
        ),
        ("http://a:+8/", Url("http", None, "a", 8, "a:+8", "/", None, None)),
        ("http:a/b", Url("http", None, "", -1, None, "a/b", None, None)),
        ("http:///a", Url("http", None, "", -1, "", "/a", None, None)),
        ("http:////a", Url("http", None, "", -1, None, "////a", None, None)),
        ("  url:http://a/ \n", Url("http", None, "a", -1, "a", "/", None, None)),
        ("file:/etc/x", Url("file", None, "", -1, None, "/etc/x", None, None)),
        ("http:?q", Url("http", None, "", -1, None, "", "q", None)),
        (
            "jar:http://a/b.jar!/c?q#r",
            Url("jar", None, "", -1, None, "http://a/b.jar!/c", "q", "r"),
        ),
    ],
)
def test_parse(text: str, expected: Url) -> None:
    assert parse(text) == expected


@tabled(
    "text",
    [
        "",
        "a.org/x",
        "//a.org/",
        "mailto:a@b.org",
        "javascript:void(0)",
        "1http://a/",
        "http://a:b/",
        "http://a:-2/",
        "http://a:99999999999/",
        f"http://a:{'9' * 5000}/",
        f"http://[::1]:{'9' * 5000}/",
        "http://a: 80/",
        "http://[::1/",
        "http://[]/",
        "http://[1:2]/",
        "http://[fe80::1%eth0]/",
        "http://[::1%25lo]:9/",
        "http://[::1]x/",
        "http://a\tb/",
        "http://a\uff0fb/",
        "jar:nothing",
        "jar:foo!/x",
        " jar:http://a/b!/c",
    ],
)
def test_what_is_no_url_says_so(text: str) -> None:
    with pytest.raises(UrlError, match=r"\w"):
        parse(text)


@tabled(
    ("base", "target", "expected"),
    [
        ("http://a/b/c/d?q#f", "", "http://a/b/c/d?q#f"),
        ("http://a/b/c/d?q#f", "#g", "http://a/b/c/d?q#g"),
        ("http://a/b/c/d?q#f", "?y", "http://a/b/c/?y"),
        ("http://a/b/c/d", "g", "http://a/b/c/g"),
        ("http://a/b/c/d", "./g/.", "http://a/b/c/g/"),
        ("http://a/b/c/d", "../..", "http://a/"),
        ("http://a/b/c/d", "../../../g", "http://a/../g"),
        ("http://a", "../../../g", "http://a/../../../g"),
        ("http://a/", "../../../../g", "http://a/../../g"),
        ("http://a/b", "/x/../y", "http://a/x/../y"),
        ("http://a/b", "//h?q", "http://h?q"),
        ("http://a/b", "http:c", "http://a/c"),
        ("http://a", "x", "http://a/x"),
        ("http:a/b", "x", "http:a/x"),
        ("http:a/b", "http:c", "http:c"),
        ("ftp://u@h/a/", "b", "ftp://u@h/a/b"),
    ],
)
def test_relative_to_a_context(base: str, target: str, expected: str) -> None:
    assert str(parse(target, parse(base))) == expected


def test_a_context_does_not_help_another_scheme() -> None:
    with pytest.raises(UrlError, match="unknown protocol: foo"):
        parse("foo:bar", HOME)


@tabled(
    ("path", "expected"),
    [
        ("/a/b", "/a/b"),
        ("/a/./b/./c", "/a/b/c"),
        ("/a/../b", "/b"),
        ("/../b", "/../b"),
        ("/../../../b", "/../b"),
        ("/a/b/..", "/a/"),
        ("/..", "/.."),
        ("./a", "a"),
        ("/a/.", "/a/"),
        ("a/../b", "a/../b"),
        ("/.a/..b/c.", "/.a/..b/c."),
    ],
)
def test_remove_dot_segments(path: str, expected: str) -> None:
    assert remove_dot_segments(path) == expected


@tabled(
    "text",
    [
        "::",
        "::1",
        "1:2:3:4:5:6:7:8",
        "::ffff:1.2.3.4",
        "1::8",
        "fe80::1%eth0",
        "0001::",
        "00001::",
        "1:2:3:4:5:6:1.2.3.4",
    ],
)
def test_ipv6(text: str) -> None:
    assert is_ipv6(text)


@tabled(
    "text",
    [
        "",
        ":",
        "1",
        ":::",
        "1::2::3",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "::g",
        "::12345",
        "::1.2.3",
        "::1%",
        "1.2.3.4::",
        "1:2:3:4:5:6:7:8::",
    ],
)
def test_no_ipv6(text: str) -> None:
    assert not is_ipv6(text)


def test_ipv4() -> None:
    assert is_ipv4("1.2.3.255")
    assert not any(map(is_ipv4, ["1.2.3", "1.2.3.256", "1.2.3.a", "001.002.0003.004", "1.2.3."]))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("http", "a", -1, "/x"), "http://a/x"),
        (("HTTP", "a", 8080, "/x?y?z#r"), "http://a:8080/x?y?z#r"),
        (("http", "::1", -1, "/"), "http://[::1]/"),
        (("http", "", -1, "/x"), "http:/x"),
        (("ftp", "a b", -1, "x"), "ftp://a bx"),
    ],
)
def test_compose(given: tuple[str, str, int, str], expected: str) -> None:
    assert str(compose(*given)) == expected


def test_composed_queries_start_at_the_last_question_mark() -> None:
    url = compose("http", "a", -1, "/x?y?z")
    assert (url.path, url.query) == ("/x?y", "z")


@pytest.mark.parametrize(
    "given",
    [
        ("foo", "a", -1, "/"),
        ("http", "a\x00", -1, "/"),
        ("http", "a/b", -1, "/"),
        ("http", "a", -2, "/"),
    ],
)
def test_what_can_not_be_composed(given: tuple[str, str, int, str]) -> None:
    with pytest.raises(UrlError):
        compose(*given)


def test_a_registered_scheme_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PROTOCOLS", dict(parts.PROTOCOLS))
    parts.register_protocol("foo", 7)
    assert parse("foo://a/b").default_port == 7


def test_host_of() -> None:
    assert parts.host_of("http://A.Org/") == "a.org"
    assert parts.host_of("nothing") is None


@pytest.mark.parametrize(
    ("text", "expected"), [("", [""]), ("a", ["a"]), ("a..", ["a"]), (".", []), (".a", ["", "a"])]
)
def test_labels_are_split_as_java_splits(text: str, expected: list[str]) -> None:
    assert parts.split_labels(text) == expected


@given(plain_urls)
def test_the_short_way_is_the_long_way(url: str) -> None:
    assert parse(url) == parts._parse_any(url, None)
    assert str(parse(url)) == url


@given(urls | any_text, odd_text)
def test_only_our_error(text: str, target: str) -> None:
    try:
        url = parse(text)
        assert parse(str(url)).host == url.host or url.protocol == "jar"
        parse(target, url)
    except UrlError as exc:
        assert str(exc)
