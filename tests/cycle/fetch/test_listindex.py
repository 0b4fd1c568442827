"""The index of a fetch list: hosts by size, their URLs in the list's order, whatever the files."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from minutch.cycle.fetch.frontier.listindex import Change, ListIndex, generate_files, listed_urls
from minutch.cycle.fetch.frontier.queueitems import QueueNames
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.settings import BY_DOMAIN, BY_HOST
from minutch.errors import FormatError, StoreError, UrlError
from minutch.hadoop.formats.sequencewriter import BLOCK, NONE, RECORD
from minutch.hadoop.formats.writables import Text
from minutch.records.crawldatum import CrawlDatum
from tests.support.examples import examples
from tests.support.fetchlists import index_of, write_list
from tests.support.segments import make_segment


def hosts(index: ListIndex) -> list[tuple[str, str, list[str]]]:
    """Takes all: host, queue, URLs."""
    found = []
    while index.most():
        supply = index.begin()
        items = [supply.next() for _ in range(supply.left)]
        assert {(item.host, item.queue_id) for item in items} == {(supply.host, supply.queue_id)}
        found.append((supply.host, supply.queue_id, [item.url for item in items]))
    assert index.left == 0
    return found


def refused(index: ListIndex) -> list[tuple[str, Outcome]]:
    """Takes the URLs that can't be fetched."""
    return [(found.item.url, found.outcome) for found in index.refused(1000)]


def test_the_files_of_a_segment(tmp_path: Path) -> None:
    files = generate_files(make_segment(tmp_path, ["http://b/", "http://a/"], ["http://c/"]).path)
    assert list(listed_urls(files)) == ["http://b/", "http://a/", "http://c/"]
    assert ListIndex(files, tmp_path / "list", QueueNames(BY_HOST).of_host).records == 3
    with pytest.raises(StoreError, match="no fetch list"):
        generate_files(tmp_path)


def test_hosts_with_most_urls_come_first_and_equal_ones_in_order(tmp_path: Path) -> None:
    urls = ["http://a/", "http://c/1", "http://b/1", "http://b/2", "http://c/2", "http://d/"]
    index = index_of(tmp_path, urls)
    assert (index.left, index.most()) == (6, 2)
    assert hosts(index) == [
        ("c", "c", ["http://c/1", "http://c/2"]),
        ("b", "b", ["http://b/1", "http://b/2"]),
        ("a", "a", ["http://a/"]),
        ("d", "d", ["http://d/"]),
    ]


def test_spellings_of_a_host_are_one(tmp_path: Path) -> None:
    urls = ["http://A.example/", "https://a.example:8443/x", "http://a.example./", "http://127.1/"]
    assert hosts(index_of(tmp_path, urls)) == [
        ("a.example", "a.example", urls[:3]),
        ("127.0.0.1", "127.0.0.1", urls[3:]),
    ]


def test_hosts_of_a_domain_share_its_queue(tmp_path: Path) -> None:
    index = index_of(tmp_path, ["http://x.a.co.uk/", "http://y.a.co.uk/"], mode=BY_DOMAIN)
    assert [(host, queue) for host, queue, _ in hosts(index)] == [
        ("x.a.co.uk", "a.co.uk"),
        ("y.a.co.uk", "a.co.uk"),
    ]


def test_normalizers_and_filters(tmp_path: Path) -> None:
    def change(url: str) -> str | None:
        if "bad" in url:
            raise UrlError("bad")
        return None if "no" in url and "nosuch" not in url else url.lower()

    urls = ["http://A/Q", "http://x/bad", "http://x/no", "nosuch:x", "http://b/"]
    index = index_of(tmp_path, urls, change=Change(change))
    assert hosts(index) == [("a", "a", ["http://a/q"]), ("b", "b", ["http://b/"])]
    assert index.has_refused
    assert refused(index) == [
        ("http://x/bad", Outcome.SKIPPED_FILTERED),
        ("http://x/no", Outcome.SKIPPED_FILTERED),
        ("nosuch:x", Outcome.SKIPPED_INVALID),
    ]
    assert not index.has_refused


def test_what_is_settled_is_left_out_as_often_as_it_is(tmp_path: Path) -> None:
    urls = ["http://a/", "http://a/", "http://b/", "nosuch:x", "nosuch:x"]
    index = index_of(tmp_path, urls, settled=Counter({"http://a/": 1, "nosuch:x": 1}))
    assert [urls for _, _, urls in hosts(index)] == [["http://a/"], ["http://b/"]]
    assert refused(index) == [("nosuch:x", Outcome.SKIPPED_INVALID)]


def _ends(name: str, found: str) -> bool:
    return found.rstrip("/").endswith(name)


def test_each_url_is_one_process_s(tmp_path: Path) -> None:
    urls = ["http://a/", "http://b/", "nosuch:a", "nosuch:b"]
    shares = [index_of(tmp_path / name, urls, mine=partial(_ends, name)) for name in "ab"]
    found = [[*(h[2][0] for h in hosts(one)), *(url for url, _ in refused(one))] for one in shares]
    assert found == [["http://a/", "nosuch:a"], ["http://b/", "nosuch:b"]]


@pytest.mark.parametrize("compression", [NONE, RECORD, BLOCK])
def test_every_form_of_a_part_is_read(tmp_path: Path, compression: str) -> None:
    """Several parts, lengths of keys in one to four bytes, records larger than is read at first."""
    urls = [f"http://h{n % 7}/{'x' * (n * 37 % 70_000)}" for n in range(0, 4000, 13)]
    data = []
    for n, url in enumerate(urls):
        datum = CrawlDatum(1, n, 0.5)
        datum.metadata[Text("note")] = Text("n" * (n * 11 % 3000))
        data.append((url, datum))
    files = [
        write_list(tmp_path / f"part-r-0000{n}", data[n::2], compression=compression)
        for n in range(2)
    ]
    index = ListIndex(files, tmp_path / "list", QueueNames(BY_HOST).of_host)
    found = {}
    while index.most():
        supply = index.begin()
        for _ in range(supply.left):
            item = supply.next()
            found[item.url] = item.datum
    assert found == dict(data)
    index.close()


def test_urls_that_are_no_utf8(tmp_path: Path) -> None:
    urls = ["http://a/\udcff", "http://a/é", "http://\udcfe/"]
    index = index_of(tmp_path, urls, settled=Counter({"http://a/é": 1}))
    assert sorted(url for _, _, urls in hosts(index) for url in urls) + [
        url for url, _ in refused(index)
    ] == ["http://a/\udcff", "http://\udcfe/"]


def test_damage_is_named(tmp_path: Path) -> None:
    path = write_list(tmp_path / "part-r-00000", [f"http://h{n}/" for n in range(100)])
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(FormatError, match="part-r-00000"):
        ListIndex([path], tmp_path / "list", QueueNames(BY_HOST).of_host)


def test_a_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    index = index_of(tmp_path, ["http://a/"])
    (tmp_path / "crawl_generate" / "part-r-00000").write_bytes(b"short")
    with pytest.raises(FormatError, match=r"part-r-00000.*offset"):
        index.begin().next()


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=60), st.integers(0, 40))
@hypothesis_settings(
    deadline=None,
    max_examples=examples(30),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_no_url_is_lost(tmp_path: Path, pages: list[tuple[int, int]], done: int) -> None:
    """Whatever is listed, once or more often, and whatever was settled before."""
    urls = [f"http://h{host}/{page}" if host else f"nosuch:{page}" for host, page in pages]
    settled = Counter(urls[:done])
    index = index_of(tmp_path, urls, settled=settled)
    found = [url for _, _, urls in hosts(index) for url in urls]
    assert Counter(found) + Counter(url for url, _ in refused(index)) + settled == Counter(urls)
