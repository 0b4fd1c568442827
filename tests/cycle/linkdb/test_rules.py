"""Links count, or not, under the names that the rules give them."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.conf import Configuration
from minutch.cycle.linkdb import rules
from minutch.cycle.linkdb.rules import LinkRules, UrlChain
from minutch.job import Counters
from minutch.kernels.inlinks import DIFFERENT, SAME, UNKNOWN
from minutch.records.links_columns import OUTLINKS_SCHEMA

CONF = Configuration.load(
    [], overrides={"plugin.includes": "urlfilter-regex|urlnormalizer-(pass|regex|basic)"}
)


def outlinks(*rows: tuple[str, str, str]) -> pl.DataFrame:
    """A table of (page, target, anchor)."""
    return pl.DataFrame(
        [tuple(text.encode() for text in row) for row in rows], schema=OUTLINKS_SCHEMA, orient="row"
    )


def apply(
    table: pl.DataFrame, chain: bool = False, **properties: str
) -> tuple[list[tuple[str, ...]], Counters]:
    conf = CONF.with_values({name.replace("_", "."): value for name, value in properties.items()})
    counters = Counters()
    links = LinkRules.from_conf(
        conf, chain=UrlChain.from_conf(conf, normalize=chain, filtering=chain)
    ).apply(table, counters)
    rows = links.select("key", "from_url", "anchor").iter_rows()
    return [tuple(value.decode() for value in row) for row in rows], counters


LINKS = outlinks(
    ("http://a/1", "http://a/2", "in"),
    ("http://a/1", "HTTPS://A:8080/", "in too"),
    ("http://a/1", "http://b/", "out"),
    ("http://a/1", "nonsense", "?"),
)


def test_internal_links_are_ignored() -> None:
    links, counters = apply(LINKS)
    assert links == [("http://b/", "http://a/1", "out")]
    assert counters == {
        rules.READ: 4,
        rules.INTERNAL: 2,
        rules.MALFORMED: 1,
    }


def test_external_links_are_ignored() -> None:
    links, counters = apply(
        LINKS, linkdb_ignore_internal_links="false", linkdb_ignore_external_links="true"
    )
    assert [url for url, _, _ in links] == ["http://a/2", "HTTPS://A:8080/"]
    assert (counters[rules.EXTERNAL], counters[rules.MALFORMED]) == (1, 1)


def test_all_links_count_without_a_look_at_hosts() -> None:
    links, counters = apply(LINKS, linkdb_ignore_internal_links="false")
    assert len(links) == 4
    assert counters == {rules.READ: 4}


def test_a_page_that_is_no_url_has_only_external_links() -> None:
    links, _ = apply(outlinks(("nonsense", "http://b/", "x")))
    assert len(links) == 1


URLS = st.sampled_from(
    (
        *(
            "http://a.b/x",
            "http://A.B",
            "https://a.b:80/",
            "http://a.b:x/",
            "ftp://a.b/",
            "http://u@a.b/",
            "HTTP://a.b/",
        ),
        *(
            "",
            "http:",
            "http://",
            "http:///",
            "http://a.b?q",
            "http://a.b#f",
            "http://a.b.c/",
            "httpsx://a.b/",
        ),
        "http://[::1]/",
    )
)


@settings(deadline=None)
@given(st.lists(st.tuples(URLS, URLS), min_size=1, max_size=20))
def test_the_kernel_and_the_parser_compare_hosts_alike(pairs: list[tuple[str, str]]) -> None:
    pages, targets = (
        pl.Series([pair[i].encode() for pair in pairs], dtype=pl.Binary) for i in (0, 1)
    )
    meaning: dict[int, bool | str] = {SAME: True, DIFFERENT: False, UNKNOWN: "ask the parser"}
    found = [meaning[code] for code in rules._compared(pages, targets).tolist()]
    parsed = rules._same_host_parsed(pages, targets).to_list()
    assert [
        other if one == meaning[UNKNOWN] else one for one, other in zip(found, parsed, strict=True)
    ] == parsed
    plain = [
        all(url in ("http://a.b/x", "http://A.B", "http://a.b?q") for url in pair) for pair in pairs
    ]
    assert all(one is True for one, is_plain in zip(found, plain, strict=True) if is_plain)


@pytest.mark.parametrize(
    ("anchor", "cut"),
    [
        ("12345678", "12345678"),
        ("123456789", "12345678"),
        ("äöüäöüäöü", "äöüäöüäö"),
        ("1234567\U0001f600", "1234567?"),  # the cut goes through a pair of surrogates
        ("123456\U0001f6009", "123456\U0001f600"),
    ],
)
def test_anchors_are_cut(anchor: str, cut: str) -> None:
    links, _ = apply(outlinks(("http://a/", "http://b/", anchor)), linkdb_max_anchor_length="8")
    assert links[0][2] == cut


def test_both_ends_pass_normalizers_and_filters() -> None:
    table = outlinks(
        ("http://a/./1", "http://B:80/x", "ok"),
        ("http://a/./1", "http://b/x.gif", "filtered target"),
        ("http://a/y.gif", "http://b/", "filtered page"),
    )
    links, counters = apply(table, chain=True)
    assert links == [("http://b/x", "http://a/1", "ok")]
    assert counters[rules.REJECTED] == 2
