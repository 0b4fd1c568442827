"""Near-duplicates: who stays, compared with all pairs tried; dedup -near and readdb -duplicates."""

from pathlib import Path
from random import Random

import numpy as np
import polars as pl
import pytest

from minutch.commands.declared.cycle import MOST_BITS
from minutch.cycle.crawldb.duplicates import (
    NO_LEADER,
    SCHEMA,
    Tables,
    best_first,
    cheapest,
    leaders,
)
from minutch.cycle.segment.store import CONTENT, CRAWL_FETCH, Segment, part_writer
from minutch.errors import StoreError, UsageError
from minutch.records import crawldatum as codes
from minutch.records.crawldatum import CrawlDatum
from tests.support.commands import dedup, parse, readdb, updatedb
from tests.support.crawldbs import context, printed, read_db, write_db
from tests.support.examples import every, tabled
from tests.support.pages import content


def by_pairs(words: list[int], groups: list[int], ranks: list[int], bits: int) -> list[int]:
    """The leader of each row, by comparing it with every row that stays."""
    stay: list[int] = []
    found = []
    for row, word in enumerate(words):
        better = (i for i in stay if ranks[i] < ranks[row] and groups[i] == groups[row])
        found.append(next((i for i in better if (word ^ words[i]).bit_count() <= bits), NO_LEADER))
        if found[-1] == NO_LEADER:
            stay.append(row)
    return found


def flipped(random: Random, word: int, bits: int) -> int:
    for bit in random.sample(range(64), bits):
        word ^= 1 << bit
    return word


def some_words(random: Random, count: int, bits: int) -> list[int]:
    """Words around a few centres, at all distances about `bits`; some of them many times."""
    centres = [random.getrandbits(64) for _ in range(6)]
    words = [
        flipped(random, random.choice(centres), random.randrange(bits + 3)) for _ in range(count)
    ]
    return [random.choice(words) if random.random() < 0.2 else word for word in words]


def found(words: list[int], groups: list[int], ranks: list[int], bits: int) -> list[int]:
    return leaders(
        np.array(words, np.uint64), np.array(groups, np.uint64), np.array(ranks, np.int64), bits
    ).tolist()


@tabled("bits", range(MOST_BITS + 1))
def test_as_all_pairs_say(bits: int) -> None:
    random = Random(bits)
    for count in (0, 1, 2, 40, 300 // every(3)):
        words = some_words(random, count, bits)
        ranks = sorted(random.randrange(count) for _ in words)
        groups = [random.randrange(2) for _ in words]
        for some in (groups, []):
            expected = by_pairs(words, some or [0] * count, ranks, bits)
            result = found(words, some, ranks, bits)
            assert [best >= 0 and ranks[best] for best in result] == [
                best >= 0 and ranks[best] for best in expected
            ]
            assert all(
                (words[row] ^ words[best]).bit_count() <= bits
                for row, best in enumerate(result)
                if best >= 0
            )


def test_a_chain_of_small_steps_is_no_single_group() -> None:
    chain = [(1 << 3 * i) - 1 for i in range(6)]  # each three bits from the one before
    assert found(chain, [], [0, 1, 2, 3, 4, 5], 3) == [NO_LEADER, 0, NO_LEADER, 2, NO_LEADER, 4]
    assert found(chain, [], [0] * 6, 3) == [NO_LEADER] * 6, "equally good ones stay"


def test_the_best_of_those_in_reach_is_the_leader() -> None:
    assert found([0b111000, 0b1, 0b1000], [], [0, 1, 2], 2) == [NO_LEADER, NO_LEADER, 0]


def test_a_cluster_of_ten_thousand() -> None:
    random = Random(5)
    words = list(dict.fromkeys(flipped(random, 0, random.randrange(1, 4)) for _ in range(10_000)))
    assert found([0, *words], [], list(range(len(words) + 1)), 3) == [NO_LEADER] + [0] * len(words)


@pytest.mark.parametrize("cut", [Tables(blocks, blocks - 3) for blocks in range(4, 8)])
def test_near_words_meet_in_some_table_whatever_differs(cut: Tables) -> None:
    random = Random(1)
    for _ in range(300):
        word = random.getrandbits(64)
        pair = np.array([word, flipped(random, word, 3)], np.uint64)
        keys = [cut.key(pair, chosen) for chosen in cut.choices()]
        assert any(key[0] == key[1] for key in keys)


def test_more_rows_take_more_blocks() -> None:
    assert cheapest(1000, 3) == Tables(4, 1)
    assert cheapest(100_000_000, 3).blocks > 4
    assert cheapest(1000, 1) == Tables(2, 1)


def compared(*pages: tuple[float, int, str]) -> pl.DataFrame:
    """Pages by score, fetch time and URL."""
    rows = [
        (1, 0, score, time, len(url), hash(url.partition(":")[2]) % 2**60, url.startswith("https:"))
        for score, time, url in pages
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


@pytest.mark.parametrize(
    ("order", "rows", "ranks"),
    [
        (["score", "fetchTime", "urlLength"], [2, 3, 1, 0, 4], [0, 0, 1, 2, 2]),
        (["fetchTime", "urlLength", "score"], [1, 0, 4, 2, 3], [0, 1, 1, 2, 2]),
        (["httpsOverHttp", "score", "fetchTime", "urlLength"], [2, 1, 0, 4, 3], [0, 1, 2, 2, 3]),
    ],
)
def test_the_order_is_dedups(order: list[str], rows: list[int], ranks: list[int]) -> None:
    pages = compared(
        (1.0, 5, "http://a/1"),
        (1.0, 6, "http://a/2"),
        (2.0, 5, "https://a/3"),
        (2.0, 5, "http://a/3?"),
        (1.0, 5, "http://a/4"),
    )
    pages = pages.with_columns(
        address=pl.when(pl.col("length") == 11).then(7).otherwise(pl.col("address")).cast(pl.UInt64)
    )
    at, found_ranks = best_first(pages, order)
    assert (at.tolist(), found_ranks.tolist()) == (rows, ranks)


# -- the jobs --------------------------------------------------------------------------------------


def page(word: int, score: float, status: int = codes.STATUS_DB_FETCHED) -> CrawlDatum:
    return CrawlDatum(status, 60, score, 5, signature=word.to_bytes(8, "big"))


MD5 = b"0123456789abcdef"
ENTRIES = [
    ("http://a.org/1", page(0b0, 3.0)),
    ("http://a.org/2", page(0b111, 2.0)),
    ("http://b.org/3", page(0b1, 1.0, codes.STATUS_DB_NOTMODIFIED)),
    ("http://b.org/4", page(0b1111, 9.0, codes.STATUS_DB_GONE)),
    ("http://b.org/5", page(0b1111 << 40, 1.0)),
    ("http://b.org/6", page(0b1111 << 40, 0.5)),
    ("http://b.org/7", CrawlDatum(codes.STATUS_DB_FETCHED, 60, 2.0, 5, signature=MD5)),
    ("http://b.org/8", CrawlDatum(codes.STATUS_DB_FETCHED, 60, 1.0, 5, signature=MD5)),
]


def marked(path: Path) -> str:
    return "".join(
        url[-1]
        for url, datum in sorted(read_db(path).items())
        if datum.status == codes.STATUS_DB_DUPLICATE
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "68"),
        (["-near", "0"], "68"),
        (["-near", "2"], "368"),
        (["-near"], "2368"),
        (["-near", "4"], "235" + "68"),
        (["-near", "-group", "host"], "268"),
    ],
)
@pytest.mark.parametrize("parts", [1, 3])
def test_dedup(tmp_path: Path, words: list[str], expected: str, parts: int) -> None:
    write_db(tmp_path / "db", ENTRIES, parts=parts)
    assert (
        dedup.run([str(tmp_path / "db"), *words], context({"mapreduce.job.reduces": str(parts)}))
        == 0
    )
    assert marked(tmp_path / "db") == expected


def test_the_bits_may_be_missing_before_the_db(tmp_path: Path) -> None:
    write_db(tmp_path / "db", ENTRIES)
    assert dedup.run(["-near", str(tmp_path / "db")], context()) == 0
    assert marked(tmp_path / "db") == "2368"


def test_a_db_without_simhashes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_db(tmp_path / "db", ENTRIES[-2:])
    assert dedup.run([str(tmp_path / "db"), "-near"], context()) == 0
    assert marked(tmp_path / "db") == "8"
    assert "no page has a SimHash: see db.signature.class" in caplog.text


GROUPS = """\
3	http://a.org/1
	1	db_notmodified	http://b.org/3
	3	db_fetched	http://a.org/2
2	http://b.org/5
	0	db_fetched	http://b.org/6
2	http://b.org/7
	0	db_fetched	http://b.org/8
"""


def test_readdb_shows_the_groups_before_and_after_dedup(tmp_path: Path) -> None:
    write_db(tmp_path / "db", ENTRIES, parts=2)
    before = context()
    readdb.run([str(tmp_path / "db"), "-duplicates", "-near"], before)
    assert printed(before) == GROUPS
    dedup.run([str(tmp_path / "db"), "-near"], context())
    after = context()
    readdb.run([str(tmp_path / "db"), "-duplicates", "-near", "3"], after)
    assert printed(after) == GROUPS.replace("db_notmodified", "db_duplicate").replace(
        "db_fetched", "db_duplicate"
    )


def test_readdb_shows_groups_of_equal_signatures(tmp_path: Path) -> None:
    write_db(tmp_path / "db", [*ENTRIES, ("http://a.org/9", page(0b1, 9.0))])
    job = context()
    readdb.run([str(tmp_path / "db"), "-duplicates"], job)
    heads = [line for line in printed(job).splitlines() if line[0] != "\t"]
    assert heads == ["2\thttp://a.org/9", "2\thttp://b.org/5", "2\thttp://b.org/7"]
    by_host = context()
    readdb.run([str(tmp_path / "db"), "-duplicates", "-group", "host"], by_host)
    assert [line for line in printed(by_host).splitlines() if line[0] != "\t"] == heads[1:]


def test_a_db_without_signatures_has_no_groups(tmp_path: Path) -> None:
    write_db(tmp_path / "db", [("http://a.org/", CrawlDatum(codes.STATUS_DB_UNFETCHED, 60))])
    for words in ([], ["-near"]):
        job = context()
        assert readdb.run([str(tmp_path / "db"), "-duplicates", *words], job) == 0
        assert printed(job) == ""
    with pytest.raises(StoreError, match="does not exist"):
        readdb.run([str(tmp_path / "none"), "-duplicates"], context())


@pytest.mark.parametrize(
    "words", [["-near", "11"], ["-near", "-1"], ["-near", "x"], ["-compareOrder", "score"]]
)
def test_wrong_command_lines(words: list[str]) -> None:
    with pytest.raises(UsageError):
        dedup.run(["db", *words], context())
    with pytest.raises(UsageError):
        readdb.run(["db", "-duplicates", *words], context())


def test_from_the_parse_to_the_mark(tmp_path: Path) -> None:
    """Three pages, two of which differ in two words: parsed with SimHash, brought into a CrawlDb,
    deduplicated.
    """
    words = [f"word{number}" for number in range(400)]
    texts = {
        "a": " ".join(words),
        "b": " ".join([*words[:100], "other", *words[101:200], "other", *words[201:]]),
        "c": " ".join(f"another{number}" for number in range(400)),
    }
    urls = {name: f"http://{name}.org/" for name in texts}
    segment = Segment(tmp_path / "20260101000000")
    conf = {
        "plugin.includes": "parse-html",
        "db.signature.class": "minutch.cycle.parse.simhash:SimHashSignature",
    }
    job = context(conf)
    with part_writer(segment.path, CONTENT, 0) as append:
        for name, text in texts.items():
            append(urls[name], content(f"<title>t</title><p>{text}", url=urls[name]))
    with part_writer(segment.path, CRAWL_FETCH, 0) as append:
        for name, url in urls.items():
            append(url, CrawlDatum(codes.STATUS_FETCH_SUCCESS, 60, 1.0 + (name == "b"), 5))
    assert parse.run([str(segment.path)], job) == 0
    assert updatedb.run([str(tmp_path / "db"), str(segment.path)], job) == 0
    signatures = {
        url: int.from_bytes(datum.signature or b"")
        for url, datum in read_db(tmp_path / "db").items()
    }
    near, far = (
        signatures[urls["a"]] ^ signatures[urls["b"]],
        signatures[urls["a"]] ^ signatures[urls["c"]],
    )
    assert 0 < near.bit_count() <= MOST_BITS < far.bit_count()
    dedup.run([str(tmp_path / "db"), "-near", str(near.bit_count())], job)
    found = {
        url
        for url, datum in read_db(tmp_path / "db").items()
        if datum.status == codes.STATUS_DB_DUPLICATE
    }
    assert found == {urls["a"]}
