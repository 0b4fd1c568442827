"""Hosts and domains of columns, and the parts that URLs are placed in."""

from __future__ import annotations

import logging

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.conf import Configuration
from minutch.cycle.fetchlist.partition import UrlPartitioner
from minutch.errors import ConfigError
from minutch.hadoop.formats.batch import Batch
from minutch.hadoop.formats.javahash import string_hash
from minutch.urls.hostcolumns import domains_of, hosts_at, hosts_of
from minutch.urls.parts import host_of

PLAIN = Configuration.load([], overrides={"plugin.includes": "nutch-extensionpoints"})


def test_hosts_as_they_are_spelled() -> None:
    urls = [
        "http://A.b:80/x",
        "https://a?q",
        "http://u@c/",
        "ftp://d/",
        "HTTP://E/",
        "http:///",
        "no",
        "http://a:x/",
        None,
    ]
    assert hosts_of(pl.Series(urls)).to_list() == ["A.b", "a", "c", "d", "E", "", None, None, None]


PIECES = st.sampled_from(
    [
        "http",
        "https",
        "ftp",
        "x",
        ":",
        "/",
        "//",
        "a.b",
        "C-d_",
        "[::1]",
        "80",
        "@",
        "?",
        "#",
        " ",
        "é",
    ]
)


@given(st.lists(st.lists(PIECES, max_size=8).map("".join), min_size=1, max_size=10))
def test_the_quick_way_agrees_with_urls_parts(urls: list[str]) -> None:
    repeated = [again for url in urls for again in (url, url, url + "/x")]
    hosts = [host_of(url) for url in repeated]
    assert hosts_of(pl.Series(repeated)).to_list() == hosts
    keys = Batch.of([url.encode() for url in repeated], [])
    assert hosts_at(keys.keys, keys.key_at, keys.key_len).to_list() == hosts


def test_domains() -> None:
    assert domains_of(pl.Series(["www.example.co.uk", "a.b.org", None])).to_list() == [
        "example.co.uk",
        "b.org",
        None,
    ]


def parts(
    mode: str, *urls: str, resolve: object = lambda host: None, count: int = 1 << 20
) -> list[int]:
    conf = PLAIN.with_values({"partition.url.mode": mode})
    return UrlPartitioner.from_conf(conf, resolve).parts_of(pl.Series(urls), count).to_list()  # type: ignore[arg-type]


def place(text: str, seed: int = 0) -> int:
    return ((string_hash(text) ^ seed) & 0x7FFFFFFF) % (1 << 20)


def test_by_host_and_domain() -> None:
    urls = ("http://www.a.co.uk/x", "http://b.a.co.uk/y", "no url")
    assert parts("byHost", *urls) == [place("www.a.co.uk"), place("b.a.co.uk"), place("no url")]
    assert parts("byDomain", *urls) == [place("a.co.uk"), place("a.co.uk"), place("no url")]


def test_by_address() -> None:
    addresses = {"a": "127.0.0.1", "b": "127.0.0.1"}
    found = parts("byIP", "http://a/", "http://b/x", "http://unknown/", resolve=addresses.get)
    assert found == [place("127.0.0.1"), place("127.0.0.1"), 0]


def test_unknown_mode() -> None:
    with pytest.raises(
        ConfigError, match=r"partition.url.mode \(program\): expected .*byIP, found 'byMoon'"
    ):
        parts("byMoon", "http://a/")


def test_seed_moves_hosts() -> None:
    partitioner = UrlPartitioner.from_conf(
        PLAIN.with_values({"partition.url.seed": "-77"}), lambda host: None
    )
    assert partitioner.parts_of(pl.Series(["http://a/"]), 1 << 20).to_list() == [place("a", -77)]
    given_seed = UrlPartitioner.from_conf(PLAIN, lambda host: None, seed=0xFFFFFFFF)
    assert given_seed.parts_of(pl.Series(["http://a/"]), 1 << 20).to_list() == [place("a", -1)]


def test_one_part_asks_for_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert parts("byIP", "no url", resolve=None, count=1) == [0]
    assert caplog.text == ""
