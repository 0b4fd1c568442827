"""The patterns of URLs: by examples, and as regular expressions say the same."""

from __future__ import annotations

import re
from itertools import pairwise

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from minutch.urls.patterns import (
    LEVELS,
    form_hashes,
    level_hashes,
    levels_of,
    pattern_of,
    patterns,
)

_RUN = re.compile(r"(?:[A-Za-z0-9\x80-\xff]|%.{0,2})+", re.DOTALL)
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?![A-Za-z0-9%\x80-\xff])")


def _run(run: str) -> str:
    if re.fullmatch("[0-9]+", run):
        return "{n}"
    digits = len(re.findall("[0-9]", run))
    is_hex = re.fullmatch("[0-9A-Fa-f]+", run) is not None
    turns = len(re.findall("[a-z](?=[A-Z])", run))
    is_long = len(run) >= 16 and (digits > 1 or is_hex or 4 * turns >= len(run))
    if re.fullmatch("[A-Za-z0-9]+", run) and ((len(run) >= 7 and is_hex and digits) or is_long):
        return "{x}"
    return re.sub(r"(%.{0,2})|[0-9]+", lambda m: m[1] or "{n}", run, flags=re.DOTALL)


def _text(text: str) -> str:
    found, at = "", 0
    while at < len(text):
        if uuid := _UUID.match(text, at):
            found, at = found + "{x}", uuid.end()
        elif run := _RUN.match(text, at):
            found, at = found + _run(run[0]), run.end()
        else:
            found, at = found + text[at], at + 1
    return found


def _shape(part: str) -> str:
    if not part:
        return ""
    return "*" if re.sub(r"\{[\x00-\x7f]\}", "", part) else "#"


def _levels(url: str) -> list[str]:
    """Returns the levels of a URL with a scheme, from the host to the pattern."""
    rest = url.encode().decode("latin-1").partition("#")[0].partition("://")[2]
    rest, mark, query = rest.partition("?")
    host, _, path = rest.partition("/")
    host = re.sub("[A-Z]", lambda m: m[0].lower(), host.rpartition("@")[2])
    put, seen, folded = [], list[str](), False
    for segment in path.split("/") if path else [""]:
        first, *others = segment.split(";")
        text = ";".join([_text(first), *(_text(one.partition("=")[0]) for one in others)])
        if len(seen) == 24 or seen.count(text) >= (3 if text.startswith("{") else 1):
            put.append(None if folded else "{+}")
            folded = True
        else:
            seen.append(text)
            put.append(text)
    if path.endswith("/"):
        put[-1] = ""  # nothing follows the last slash
    kept = [one for one in put[:-1] if one is not None]
    directories = "".join(f"{one}/" for one in kept)
    last = put[-1] or ""
    found = [_text(one.partition("=")[0]) for one in re.split("[&;]", query) if one]
    different = [*dict.fromkeys(found)]
    names, more = sorted(different[:24], key=str.encode), "{+}" if len(different) > 24 else ""
    levels = [host + "/" + (f"{kept[0]}/" if kept else ""), f"{host}/{directories}"]
    levels.append(levels[-1] + last)
    segments = [
        segment.partition(";")[0].split(".") for segment in f"{directories}{last}".split("/")
    ]
    shape = "/".join(".".join(_shape(part) for part in parts) for parts in segments)
    end = f"?{'&'.join(names)}{more}" if mark else ""
    first, directory, path = levels
    levels = [host, f"{host}/{shape}", first, directory, directory + end, path, path + end]
    return [level.encode("latin-1").decode() for level in levels]


def test_examples() -> None:
    same = {
        "shop.example/Item/{n}-red;s?id&sort": [
            "https://Shop.example/Item/4711-red;s=9f3ac01?sort=up&id=7",
            "http://u:p@shop.EXAMPLE/Item/1-red;s?id&sort=&id=2#top",
        ],
        "h:8080/": ["http://h:8080", "https://h:8080/#x"],
        "h/{n}/{n}/{n}/{+}/": ["http://h/2024/01/05/06/", "http://h/1/2/3/4/5/6"],
        "h/a/b/{+}/x": ["http://h/a/b/a/x", "http://h/a/b/a/b/b/a/x"],
        "h//{+}/": ["http://h///", "http://h/////"],
        "h/{x}/z": ["http://h/3f2504e0-4f89-11d3-9a0c-0305e82c3301/z", "http://h/9f3ac01/z"],
        "h/(S({x}))/FrequentlyAskedQuestions": [
            "http://h/(S(XkQzLmPqRtWvYzAb))/FrequentlyAskedQuestions"
        ],
        "h/%C3%A4b{n}/page{n}b": ["http://h/%C3%A4b2/page12b"],
        "h/l?a[{n}]": ["http://h/l?a[1]=2&a[0]=1;a[3]"],
        "h/?{x}": ["http://h/?9f3ac01b22"],
        "h/?a": ["http://h/?" + "&".join(["a=1"] * 30)],
        f"h/?{'&'.join('abcdefghijklmnopqrstuvwx')}{{+}}": [
            "http://h/?" + "&".join([*"abcdefghijklmnopqrstuvwxaayz"])
        ],
    }
    for pattern, urls in same.items():
        assert [pattern_of(url) for url in urls] == [pattern] * len(urls)
    shapes = {
        "h/": ["http://h"],
        "h/*/#.*": ["http://h/a/2.html", "http://h/other-words/9f3ac01.htm?x"],
        "h/#/*.*.#": ["http://h/12;s=1/b7.c.9"],
        "h//*/": ["http://h//e/"],
    }
    for shape, urls in shapes.items():
        assert [levels_of(url)[1] for url in urls] == [shape] * len(urls)
    names = levels_of("http://h/2026/a-word?print=1"), levels_of("http://h/2027/others?print=2")
    assert names[0][4] == names[1][4] == "h/{n}/?print"
    assert levels_of("http://h/2026/a-word")[4] == "h/{n}/"
    found = patterns(pl.Series(["http://h/1", None, "http://h/long/path/2"]))
    assert found.to_list() == ["h/{n}", None, "h/long/path/{n}"]


_PARTS = st.sampled_from(
    ["a", "b", "7", "2024", "page12b", "9f3ac01", "deadbeefdeadbeef", "aBcDeFgHiJkLmNoP", "é",
     "%C3", "%", "-", ".", "_", ";", ";s=1", "A", "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "x" * 30]
)  # fmt: skip
_SEED = 0x1F83_D9AB_FB41_BD6B
"""No number of bytes: by a seed of 5 all texts of five bytes have one hash."""
_TEXTS = st.lists(_PARTS | st.text("ab01-.%;=Zé", max_size=8), max_size=3).map("".join)


@given(
    st.lists(_TEXTS, max_size=30),
    st.none() | st.lists(st.tuples(_TEXTS, _TEXTS), max_size=12),
    st.sampled_from(["h", "H.example:80", "u@h"]),
)
def test_the_kernel_does_what_regular_expressions_say(
    segments: list[str], query: list[tuple[str, str]] | None, host: str
) -> None:
    url = f"http://{host}/" + "/".join(segments)
    if query is not None:
        url += "?" + "&".join(f"{name}={value}" for name, value in query)
    levels = _levels(url)
    assert list(levels_of(url)) == levels and pattern_of(url) == levels[-1]
    assert all(
        long.startswith(short) for short, long in pairwise([levels[0], *levels[2:4], *levels[5:]])
    )
    # equal texts have equal hashes, whatever level they are, but for a directory and its index page
    if levels[3] == levels[5]:
        levels[5:] = [one + " index" * (one == levels[3]) for one in levels[5:]]
    hashes = level_hashes(pl.Series([url]), _SEED)[0]
    for one, code in zip(levels, hashes, strict=True):
        for other, another in zip(levels, hashes, strict=True):
            assert (one == other) == (code == another)
    assert len(LEVELS) == len(hashes)


def _form(url: str) -> str:
    """Returns a URL with a scheme, but for its codes."""
    rest, found, at = url.encode().decode("latin-1").partition("#")[0].partition("://")[2], "", 0
    while at < len(rest):
        if uuid := _UUID.match(rest, at):
            found, at = found + "{x}", uuid.end()
        elif run := _RUN.match(rest, at):
            found, at = found + ("{x}" if _run(run[0]) == "{x}" else run[0]), run.end()
        else:
            found, at = found + rest[at], at + 1
    return found


@given(st.lists(_TEXTS, min_size=2, max_size=6))
def test_forms_are_the_same_but_for_codes(texts: list[str]) -> None:
    urls = [f"http://h/{text}?a={other}#b" for text in texts for other in texts]
    forms, hashes = [_form(url) for url in urls], form_hashes(pl.Series(urls), 3)
    for form, code in zip(forms, hashes, strict=True):
        assert ("{x}" in form) == (code != 0)
        same = [other == form for other in forms]
        assert not code or same == [another == code for another in hashes]


def test_a_page_has_one_form_in_all_sessions() -> None:
    one, other, *pages = form_hashes(
        pl.Series(
            [
                "http://h/a;s=9f3ac01?page=12",
                "https://h/a;s=0b3ac02?page=12#top",
                "http://h/a;s=9f3ac01?page=13",
                "http://h/b;s=9f3ac01?page=12",
            ]
        ),
        3,
    )
    assert one == other != 0
    assert len({one, *pages}) == 3
    assert form_hashes(pl.Series(["http://h/1?a=2", None]), 3).tolist() == [0, 0]


@given(st.lists(st.text(max_size=40) | st.none(), max_size=8))
def test_any_text_has_a_pattern(texts: list[str | None]) -> None:
    found = patterns(pl.Series(texts, dtype=pl.String))
    assert [one is None for one in found] == [text is None for text in texts]
    assert level_hashes(pl.Series(texts, dtype=pl.String), 1).shape == (len(texts), len(LEVELS))
