"""Which canonical links are believed: each reason not to, chains, loops; as a plain walk says."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.cycle.crawldb import canonical
from minutch.cycle.crawldb.canonical import decide
from tests.support.examples import examples

TEXTS = dict[str, str]
A, B, C, D = (f"http://sea.org/{name}" for name in "abcd")
_CLAIMS = {"url": pl.Binary, "says": pl.Binary, "versions": pl.String}
_ENTRIES = {"key": pl.Binary, "is_page": pl.Boolean, "signature": pl.Binary, "own": pl.String}


def verdicts(
    links: Mapping[str, str | None],
    texts: TEXTS,
    *,
    mode: str = "domain",
    own: TEXTS | None = None,
    versions: TEXTS | None = None,
    gone: str = "",
) -> dict[str, tuple[str | None, str]]:
    """The original of each page that names one, and why not. Texts with the same first letter are
    near each other.
    """
    claims = [
        (url.encode(), said and said.encode(), (versions or {}).get(url))
        for url, said in links.items()
    ]
    entries = [
        (url.encode(), url != gone, text.encode(), (own or {}).get(url))
        for url, text in texts.items()
    ]

    def near(some: pl.Series, others: pl.Series) -> pl.Series:
        pairs = zip(some, others, strict=True)
        return pl.Series(
            [texts[a.decode()][0] == texts[b.decode()][0] for a, b in pairs], dtype=pl.Boolean
        )

    table = decide(
        pl.DataFrame(claims, schema=_CLAIMS, orient="row"),
        pl.DataFrame(entries, schema=_ENTRIES, orient="row"),
        mode,
        near,
    )
    assert table["url"].is_sorted()
    return {
        url.decode(): (original and original.decode(), why)
        for url, original, why in table.select("url", "original", "why").iter_rows()
    }


def test_an_equal_page_and_a_near_one_are_twins() -> None:
    texts = {A: "x1", B: "x1", C: "x2", D: "y"}
    found = verdicts({A: B, C: B, B: B, D: B}, texts)
    assert found == {A: (B, ""), C: (B, ""), D: (None, canonical.UNLIKE)}


@pytest.mark.parametrize(
    ("target", "mode", "why"),
    [
        (None, "domain", canonical.REJECTED),
        ("http://other.org/a", "domain", "it names a page of another domain"),
        ("http://www.sea.org/a", "domain", ""),
        ("http://www.sea.org/a", "host", "it names a page of another host"),
        ("https://sea.org/a", "host", ""),
        ("http://sea.org/none", "domain", canonical.UNKNOWN),
        (C, "domain", canonical.UNFETCHED),
    ],
)
def test_what_a_link_may_name(target: str | None, mode: str, why: str) -> None:
    hosts = ("http://other.org", "http://www.sea.org", "https://sea.org")
    texts = {A: "x", C: "x", **{f"{host}/a": "x" for host in hosts}}
    found = verdicts({A: target, B: A}, texts, mode=mode, gone=C)
    assert found == {A: (None if why else target, why)}, "B is not known itself"


def test_versions_in_other_languages_are_no_twins() -> None:
    texts = {A: "x", B: "x", C: "x"}
    links = {A: B, C: B}
    said = verdicts(links, texts, own={A: "de", C: "en"}, versions={A: "en en-gb", C: "en"})
    assert said == {A: (None, canonical.VERSIONS), C: (B, "")}
    by_the_other = verdicts(links, texts, own={A: "de", B: "en"})
    assert by_the_other == {A: (None, canonical.VERSIONS), C: (B, "")}
    assert verdicts(links, texts, versions={A: "en"})[A] == (B, ""), "of A nothing is said"


def test_a_home_page_that_all_pages_name_is_the_original_of_none() -> None:
    home = "http://sea.org/"
    pages = {f"{home}{number}": f"{number}" for number in range(1, 4)}
    index = f"{home}index.html"
    texts = {home: "x", index: "x", **pages}
    found = verdicts(dict.fromkeys([index, *pages], home), texts)
    assert found[index] == (None, canonical.MISUSED)
    assert {why for url, (_, why) in found.items() if url != index} == {canonical.UNLIKE}
    few = verdicts({index: home, f"{home}1": home}, texts)
    assert few[index] == (home, "")


def test_chains_end_at_the_original_and_loops_have_none() -> None:
    texts = dict.fromkeys([A, B, C, D], "x")
    assert verdicts({A: B, B: C, C: D}, texts) == dict.fromkeys([A, B, C], (D, ""))
    loop = (None, canonical.LOOP)
    assert verdicts({A: B, B: C, C: B}, texts) == {A: (B, ""), B: loop, C: loop}


def test_the_original_at_the_end_is_like_the_first_page() -> None:
    near = {(A, B), (B, C), (C, D), (B, D)}
    texts = {A: "1", B: "2", C: "3", D: "4"}

    def pairs(some: pl.Series, others: pl.Series) -> pl.Series:
        return pl.Series(
            [(a.decode(), b.decode()) in near for a, b in zip(some, others, strict=True)]
        )

    table = decide(
        pl.DataFrame(
            [
                (A.encode(), B.encode(), None),
                (B.encode(), C.encode(), None),
                (C.encode(), D.encode(), None),
            ],
            schema=_CLAIMS,
            orient="row",
        ),
        pl.DataFrame(
            [(url.encode(), True, text.encode(), None) for url, text in texts.items()],
            schema=_ENTRIES,
            orient="row",
        ),
        "host",
        pairs,
    )
    assert table["why"].to_list() == [canonical.CHAIN, "", ""]
    assert table["original"].to_list() == [None, D.encode(), D.encode()]


def walked(links: dict[str, str], texts: TEXTS) -> dict[str, str | None]:
    """The same, page by page."""

    def alike(a: str, b: str) -> bool:
        return texts[a][:9] == texts[b][:9]

    votes: dict[str, int] = {}
    links = {url: said for url, said in links.items() if said in texts}
    for url, said in links.items():
        if url != said:
            votes[said] = votes.get(said, 0) + (1 if alike(url, said) else -1)
    good = {a: b for a, b in links.items() if a != b and alike(a, b) and votes[b] >= 0}
    in_loop = set()
    for url in good:
        at, seen = url, 0
        while at in good and seen <= len(good):
            at, seen = good[at], seen + 1
            if at == url:
                in_loop.add(url)
                break
    found: dict[str, str | None] = {}
    for url, said in links.items():
        if url == said:
            continue
        at = url
        while at in good and at not in in_loop:
            at = good[at]
        found[url] = at if url in good and url not in in_loop else None
    return found


@settings(max_examples=examples(60), deadline=None)
@given(
    st.dictionaries(st.integers(0, 8), st.integers(0, 8)),
    st.lists(st.sampled_from(["x" * 9 + "1", "x" * 9 + "2", "y"]), min_size=9, max_size=9),
)
def test_as_a_walk_from_page_to_page_says(links: dict[int, int], texts: list[str]) -> None:
    of = [f"http://sea.org/{number}" for number in range(9)]
    said, text = {of[a]: of[b] for a, b in links.items()}, dict(zip(of, texts, strict=True))
    found = verdicts(said, text)
    assert {url: original for url, (original, _) in found.items()} == walked(said, text)
    originals = {original for original, _ in found.values() if original}
    assert not originals & {url for url, (original, _) in found.items() if original}
