"""Best pages first, and how the places are dealt out."""

from __future__ import annotations

import math
import random
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.conf import Configuration
from minutch.cycle.fetchlist import select
from minutch.cycle.fetchlist.partition import UrlPartitioner
from minutch.cycle.fetchlist.select import (
    ListSelection,
    Quota,
    SelectionSettings,
    best_first,
    descending,
    mixed,
    ranks_in,
    ranks_of,
    url_hashes,
)
from minutch.cycle.fetchlist.turns import HostTurns
from minutch.errors import PluginError
from minutch.hadoop.formats.javaio import DataOutput
from minutch.job import Counters
from minutch.work.engine.selection import LAST, RankWindow
from minutch.work.tables.parallel import for_each

CONF = Configuration.load([], overrides={"plugin.includes": "nutch-extensionpoints"})


def java_hash(url: bytes) -> int:
    """Generator.HashComparator.hash over a serialized Text, step by step."""
    out = DataOutput()
    out.write_text_bytes(url)
    value = 1
    for byte in reversed(bytes(out.getvalue())):
        value = (31 * value + (byte - 256 if byte > 127 else byte)) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def mix(value: int) -> int:
    """fmix32 of MurmurHash3."""
    value = ((value ^ value >> 16) * 0x85EBCA6B) & 0xFFFFFFFF
    value = ((value ^ value >> 13) * 0xC2B2AE35) & 0xFFFFFFFF
    return value ^ value >> 16


def place(url: str) -> tuple[int, str]:
    """What decides between pages with the same score."""
    return mix(java_hash(url.encode()) + (1 << 31)), url


def hashes(urls: list[bytes]) -> list[int]:
    return [int(value) - (1 << 31) for value in url_hashes(pl.Series(urls, dtype=pl.Binary))]


@settings(deadline=None)
@given(
    st.lists(
        st.binary(max_size=200)
        | st.binary(min_size=250, max_size=270)
        | st.text("ab/", max_size=40).map(str.encode)
    )
)
def test_hash_codes_of_urls(urls: list[bytes]) -> None:
    assert hashes(urls) == [java_hash(url) for url in urls]


def test_hash_codes_of_urls_of_all_lengths() -> None:
    rng = np.random.default_rng(3)
    urls = [
        rng.integers(0, top, length, np.uint8).tobytes()
        for length in (
            0,
            1,
            7,
            8,
            9,
            11,
            12,
            13,
            70,
            127,
            128,
            255,
            256,
            257,
            65_535,
            65_536,
            70_000,
        )
        for top in (128, 256)
    ]
    assert hashes(urls) == [java_hash(url) for url in urls]


@given(st.lists(st.integers(0, 2**32 - 1)))
def test_mixing_gives_each_hash_another_number(values: list[int]) -> None:
    assert mixed(np.array(values, dtype=np.uint32)).tolist() == [mix(value) for value in values]


def test_scores_descend_as_float_compare_does() -> None:
    values = [math.nan, math.inf, 3.5, 1e-40, 0.0, -0.0, -2.0, -math.inf]
    order = descending(pl.Series(values, dtype=pl.Float32))
    assert order.dtype == np.uint32
    assert (np.diff(order.astype(np.int64)) > 0).all()


ROWS = st.lists(
    st.tuples(
        st.integers(0, 3), st.sampled_from([b"Aa", b"BB", b"AaAa", b"BBBB", b"AaBB", b"c", b"d"])
    )
)


@given(ROWS, st.integers(1, 5))
def test_stretches_cover_all_rows_in_order(rows: list[tuple[int, bytes]], first: int) -> None:
    # in reverse, "Aa" and "BB" have the same hash as Java strings have: aA, BB
    keys = pl.Series([key[::-1] for _, key in rows], dtype=pl.Binary)
    ranks = ranks_of(np.array([score for score, _ in rows], dtype=np.uint32), url_hashes(keys))
    found = [row for stretch in best_first(ranks, keys, first) for row in stretch.tolist()]
    expected = sorted(
        range(len(rows)), key=lambda row: (rows[row][0], java_hash(keys[row]), keys[row], row)
    )
    assert found == expected


def test_the_greatest_rank() -> None:
    keys = pl.Series([b"b", b"a", b"c"], dtype=pl.Binary)
    ranks = np.array([2**64 - 1, 2**64 - 1, 5], dtype=np.uint64)
    assert [rows.tolist() for rows in best_first(ranks, keys, 2)] == [[2, 1, 0], []]


def choose(
    tables: list[list[tuple[str, float]]],
    *,
    reducers: int = 1,
    top_n: int = 10,
    listed: list[str] | None = None,
    room: int | None = None,
    counted: Counters | None = None,
    **properties: str,
) -> dict[str, int]:
    """URL -> segment of what is chosen of (URL, score); with `room` in two readings."""
    conf = CONF.with_values(
        {name.replace("_", "."): value for name, value in properties.items()}
        | {"mapreduce.job.reduces": str(reducers)}
    )
    schema = pl.Schema({"key": pl.Binary(), "sort": pl.Float32()})
    found = [
        pl.DataFrame([(url.encode(), score) for url, score in rows], schema=schema, orient="row")
        for rows in tables
    ]
    settings = SelectionSettings.from_conf(
        conf,
        top_n=top_n,
        segments=2,
        normalizers=None,
        partitioner=UrlPartitioner.from_conf(conf, lambda host: None),
        listed=None if listed is None else pl.Series("key", [url.encode() for url in listed]),
    )
    selection = ListSelection(settings)
    counters = Counters() if counted is None else counted
    if room is None:
        chosen = selection.choose(found, counters)
    else:
        chosen = by_turns(HostTurns(selection, room), found, counters)
    total = sum(map(len, tables))
    left_out = sum(
        counters.get(name, 0) for name in (select.NOT_IN_TOP, select.MALFORMED, select.OVER_LIMIT)
    )
    assert counters[select.SELECTED] == len(chosen) == total - left_out
    return {key.decode(): segment for key, segment in chosen.select("key", "segment").iter_rows()}


def limited(most: int) -> ListSelection:
    """A selection with a limit of hosts alone."""
    conf = CONF.with_values({"generate.max.count": str(most)})
    partitioner = UrlPartitioner.from_conf(conf, lambda host: None)
    return ListSelection(
        SelectionSettings.from_conf(
            conf, top_n=select.NO_LIMIT, segments=1, normalizers=None, partitioner=partitioner
        )
    )


def by_turns(turns: HostTurns, found: list[pl.DataFrame], counters: Counters) -> pl.DataFrame:
    """What gets a place in two readings, or more."""
    chosen, is_first = list[pl.DataFrame](), True
    while is_first or turns.go_on(counters):
        is_first = False
        for number, table in reversed(list(enumerate(found))):
            turns.add((0, number), table)
        turns.close(counters)
        chosen += [turns.choose((0, number), table) for number, table in enumerate(found)]
        chosen += [rest] if (rest := turns.rest()) is not None else []
    return pl.concat(chosen)


PAGES = st.dictionaries(
    st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 99)).map(
        lambda pair: f"http://{pair[0]}/{pair[1]}"
    )
    | st.sampled_from(["nonsense", "http", "x"]),
    st.sampled_from([0.0, 0.5, 1.0]),
    max_size=40,
)


@settings(deadline=None)
@given(PAGES, st.integers(1, 12))
def test_the_best_ones_are_chosen(pages: dict[str, float], top_n: int) -> None:
    urls = sorted((url for url in pages if "/" in url), key=lambda url: (-pages[url], *place(url)))
    expected = {url: number // top_n + 1 for number, url in enumerate(urls[: 2 * top_n])}
    assert choose([list(pages.items())], top_n=top_n) == expected


@settings(deadline=None)
@given(
    PAGES,
    st.integers(1, 3),
    st.integers(1, 20),
    st.integers(-1, 3),
    st.randoms(use_true_random=False),
)
def test_neither_tables_nor_blocks_nor_threads_change_the_choice(
    pages: dict[str, float], reducers: int, top_n: int, most: int, rng: random.Random
) -> None:
    settings: dict[str, str] = {"generate_max_count": str(most)}
    whole = choose([list(pages.items())], reducers=reducers, top_n=top_n, **settings)
    rows = list(pages.items())
    rng.shuffle(rows)
    cuts = sorted(rng.randrange(len(rows) + 1) for _ in range(3))
    tables = [rows[low:high] for low, high in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(select, "_BLOCK", rng.randrange(1, 9))
        patch.setattr(
            select, "for_each", lambda work, items: for_each(work, items, rng.randrange(1, 4))
        )
        assert choose(tables, reducers=reducers, top_n=top_n, **settings) == whole


def test_a_cut_through_equal_scores_takes_pages_of_all_hosts() -> None:
    pages = [
        (f"http://www.host{letter}.example/page/{number}.html", 1.0)
        for letter in "abcdefgh"
        for number in range(200)
    ]
    chosen = choose([pages], top_n=100)
    per_host = [sum(f"host{letter}" in url for url in chosen) for letter in "abcdefgh"]
    assert sum(per_host) == 200
    assert min(per_host) > 10


def deal(quota: Quota, *owners: str | None) -> list[int]:
    return [int(segment) for segment in quota.deal(pl.Series(owners, dtype=pl.String))]


def test_places_up_to_the_limit() -> None:
    quota = Quota(2, 1, -1)
    assert deal(quota, "a", None, "b", "c") == [1, select.IS_MALFORMED, 1, select.NO_PLACE]
    assert quota.is_full


def test_one_segment_after_the_other() -> None:
    quota = Quota(2, 2, -1)
    assert deal(quota, "a", "b", "c") == [1, 1, 2]
    assert not quota.is_full
    assert deal(quota, "d", "e") == [2, 0]


def test_no_limit() -> None:
    quota = Quota((1 << 63) - 1, 1, -1)
    assert deal(quota, *"abc", None) == [1, 1, 1, select.IS_MALFORMED]
    assert not quota.is_full
    assert deal(Quota(-3, 2, 0), "a", "b") == [1, 1]


def test_no_places_at_all() -> None:
    assert deal(Quota(0, 1, -1), "a", "b") == [0, 0]
    assert Quota(0, 1, -1).is_full


def test_so_many_of_a_host() -> None:
    quota = Quota(100, 1, 2)
    over = select.IS_OVER_LIMIT
    assert deal(quota, "a", "a", "b", "a", "a") == [1, 1, 1, over, over]
    assert quota.counters[select.HOSTS_OVER_LIMIT] == 1


def test_a_host_goes_on_in_the_next_segment() -> None:
    quota = Quota(100, 3, 2)
    assert deal(quota, *"aaaaaaaa") == [
        1,
        1,
        2,
        2,
        3,
        3,
        select.IS_OVER_LIMIT,
        select.IS_OVER_LIMIT,
    ]


def test_a_full_segment_moves_hosts_on() -> None:
    assert deal(Quota(2, 2, 5), *"abcab") == [1, 1, 2, 2, 0]


@given(
    st.lists(st.sampled_from(["a", "b", "c", None]), max_size=40),
    st.integers(1, 12),
    st.integers(1, 3),
    st.lists(st.integers(1, 10), max_size=6),
)
def test_without_a_host_limit_both_ways_agree(
    owners: list[str | None], limit: int, segments: int, blocks: list[int]
) -> None:
    quick, slow = Quota(limit, segments, -1), Quota(limit, segments, 10**9)
    at = 0
    for size in [*blocks, len(owners)]:
        block = pl.Series(owners[at : at + size], dtype=pl.String)
        assert quick.deal(block).tolist() == slow.deal(block).tolist()
        at += size
    assert quick.is_full == slow.is_full


@settings(deadline=None)
@given(
    PAGES,
    st.integers(1, 3),
    st.integers(1, 3),
    st.lists(st.sampled_from("abcdefgh"), max_size=5),
    st.sampled_from(["host", "domain"]),
    st.integers(0, 40),
)
def test_without_top_n_hosts_have_the_same_places(
    pages: dict[str, float], reducers: int, most: int, hosts: list[str], mode: str, room: int
) -> None:
    """By turns, in two readings or more, and by dealing with more places than there are pages."""
    settings: dict[str, Any] = {"generate_max_count": str(most), "generate_count_mode": mode}
    settings |= {"reducers": reducers}
    settings |= {"listed": [f"http://{host}/listed/{n}" for n, host in enumerate(hosts)]}
    counted, rows = [Counters() for _ in range(3)], list(pages.items())
    tables = [rows[:7], rows[7:]]
    found = choose(tables, **settings, top_n=select.NO_LIMIT, counted=counted[0])
    assert found == choose(tables, **settings, top_n=10_000, counted=counted[1])
    assert found == choose(tables, **settings, top_n=select.NO_LIMIT, room=room, counted=counted[2])
    assert counted[0] == counted[1] == counted[2]


EQUAL = [
    "".join(pair)[::-1]
    for pair in ("AaAaAa", "AaAaBB", "AaBBAa", "AaBBBB", "BBAaAa", "BBAaBB", "BBBBAa", "BBBBBB")
]
"""Ends of URLs whose hashes are equal."""


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(EQUAL)), unique=True),
    st.integers(1, 4),
    st.integers(0, 20),
    st.randoms(),
)
def test_bytes_decide_where_hashes_are_equal(
    urls: list[tuple[str, str]], most: int, room: int, order: random.Random
) -> None:
    rows = [(f"http://{host}/{end}", 1.0) for host, end in urls]
    assert len({java_hash(url.encode()) for url, _ in rows}) <= 2
    order.shuffle(rows)
    tables = [rows[:3], rows[3:5], rows[5:]]
    settings: dict[str, Any] = {"generate_max_count": str(most), "top_n": select.NO_LIMIT}
    found = choose(tables, **settings, room=room)
    assert found == choose(tables, **settings)
    for host in "ab":
        own = sorted(url for url, _ in rows if url.startswith(f"http://{host}/"))
        places = {url: number // most + 1 for number, url in enumerate(own[: 2 * most])}
        assert {url: place for url, place in found.items() if url in own} == places


def test_no_more_entries_are_held_than_there_is_room_for() -> None:
    """Where hosts have too many, and where there are too many hosts."""
    schema = pl.Schema({"key": pl.Binary(), "sort": pl.Float32()})
    for hosts, limit in ((2, 3), (100, 50)):
        turns, sizes = HostTurns(limited(limit), 30), list[int]()
        for number in range(40):
            rows = [
                (b"http://h%d/%d" % (n % hosts, n), float(n))
                for n in range(number * 10, number * 10 + 10)
            ]
            turns.add((0, number), pl.DataFrame(rows, schema=schema, orient="row"))
            sizes.append(sum(map(len, turns._held)))
        assert max(sizes) <= 30
        assert turns.room == 30


def test_pages_that_are_not_due_any_more_end_the_job() -> None:
    """Plugins decide twice what is due."""
    table = pl.DataFrame({"key": [b"http://h/1", b"http://h/2"], "sort": [1.0, 1.0]})
    table = table.cast({"sort": pl.Float32})
    turns = HostTurns(limited(1), 10)
    turns.add((0, 0), table)
    turns.close(Counters())
    with pytest.raises(PluginError, match="does not always answer the same"):
        turns.choose((0, 0), table[:1])


@settings(deadline=None)
@given(st.lists(ROWS, max_size=6), st.integers(1, 9), st.integers(0, 20), st.randoms())
def test_windows_have_all_entries_by_rank(
    tables: list[list[tuple[int, bytes]]], most: int, room: int, order: random.Random
) -> None:
    schema = pl.Schema({"key": pl.Binary(), "sort": pl.Float32(), "metadata": pl.Binary()})
    rows = [
        [(key, float(score), order.choice((None, b"", b"m" * 20))) for score, key in table]
        for table in tables
    ]
    frames = [pl.DataFrame(table, schema=schema, orient="row") for table in rows]
    found: list[list[tuple[bytes, float, bytes | None]]] = []
    first = 0
    while first <= LAST:
        window = RankWindow(first, most, room, ranks_in)
        places = list(enumerate(frames))
        order.shuffle(places)
        for number, frame in places:
            window.add((0, number), frame)
        taken = pl.concat([pl.DataFrame(schema=schema), *window.tables()])
        assert len(taken) >= most or window.last == LAST
        found.append(taken.rows())
        first = window.last + 1
    ranked = [ranks_in(pl.DataFrame(part, schema=schema, orient="row")) for part in found]
    assert all(
        one.max() < other.min() for one, other in pairwise(ranked) if len(one) and len(other)
    )
    everything = sorted((row for table in rows for row in table), key=repr)
    assert sorted((row for part in found for row in part), key=repr) == everything
