"""An update gives each URL what a plain reading of the rules gives, one URL at a time."""

from collections.abc import Mapping
from itertools import groupby

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from minutch.conf import Configuration
from minutch.cycle.crawldb.schedule import (
    STATUS_MODIFIED,
    STATUS_NOTMODIFIED,
    STATUS_UNKNOWN,
    AbstractFetchSchedule,
)
from minutch.cycle.crawldb.transitions import NO_FETCH_NO_OLD, NOT_ADDED, UpdateSettings, update
from minutch.errors import FormatError
from minutch.hadoop.formats.javahash import float32
from minutch.hadoop.formats.writables import LongWritable, MapWritable, Text
from minutch.job import Counters
from minutch.records import crawldatum as codes
from minutch.records import crawldatum_columns
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import GENERATE_TIME_KEY
from minutch.work.tables.frame import sort_by_key
from minutch.work.tables.recordfiles import pack
from tests.support.crawldbs import metadata
from tests.support.examples import examples
from tests.support.tables import patched_frame

NOW = 1_800_000_000_000
SETTINGS = {"plugin.includes": "scoring-opic"}


def rules(**more: str) -> UpdateSettings:
    given_settings = {name.replace("__", "."): value for name, value in more.items()}
    return UpdateSettings.from_conf(
        Configuration.load([], overrides={**SETTINGS, **given_settings})
    )


USUAL = rules()
FEW_LINKS = rules(
    db__update__max__inlinks="2", db__fetch__retry__max="1", db__fetch__interval__max="2000000"
)
NO_ADDITIONS = rules(db__update__additions__allowed="false")
NEEDS_PARSE = rules(db__update__unparsed__keeps__interval="true")

# -- the rules, one URL at a time ------------------------------------------------------------------

SUCCESS = {
    codes.STATUS_FETCH_SUCCESS: codes.STATUS_DB_FETCHED,
    codes.STATUS_FETCH_REDIR_TEMP: codes.STATUS_DB_REDIR_TEMP,
    codes.STATUS_FETCH_REDIR_PERM: codes.STATUS_DB_REDIR_PERM,
    codes.STATUS_FETCH_NOTMODIFIED: codes.STATUS_DB_NOTMODIFIED,
}


def reference(url: str, values: list[CrawlDatum], given_rules: UpdateSettings) -> CrawlDatum | None:
    """The new entry of a URL, of all its entries and rows; None if it has none."""
    old = latest([value for value in values if value.status <= codes.STATUS_DB_MAX])
    fetch = latest([value for value in values if value.has_fetch_status()])
    links = kept(
        [value for value in values if value.status == codes.STATUS_LINKED], given_rules.max_inlinks
    )
    signatures = [value.signature for value in values if value.status == codes.STATUS_SIGNATURE]
    parsed = [value.metadata for value in values if value.status == codes.STATUS_PARSE_META]
    if old is None and not given_rules.additions:
        return None
    if fetch is None and not links:
        return old
    if fetch is None and old is not None:
        result = old.copy()
    elif fetch is None:
        result = links[0].copy()
        given_rules.schedule.initialize_schedule(url, result, NOW)
        result.status, result.score = codes.STATUS_DB_UNFETCHED, 0.0
    else:
        signature = (signatures[-1] if signatures else None) or fetch.signature
        tells = not given_rules.needs_parse or bool(signatures and signatures[-1] is not None)
        result = fetched(
            url, old, fetch, signature, tells, parsed[-1] if parsed else None, given_rules
        )
    gained = 0.0
    for link in links:
        gained = float32(gained + link.score)
    result.score = float32((result if old is None else old).score + gained)
    result.metadata.pop(Text(GENERATE_TIME_KEY), None)
    return result


def fetched(  # noqa: C901 - one step a case
    url: str,
    old: CrawlDatum | None,
    fetch: CrawlDatum,
    signature: bytes | None,
    tells: bool,
    parsed: MapWritable | None,
    given_rules: UpdateSettings,
) -> CrawlDatum:
    schedule: AbstractFetchSchedule = given_rules.schedule
    result = fetch.copy()
    if old is not None and old.metadata:
        result.metadata.update(old.metadata)
        result.metadata.update(fetch.metadata)
    if old is not None and old.modified_time > 0 and fetch.modified_time == 0:
        result.modified_time = old.modified_time
    before = (old.fetch_time, old.modified_time) if old else (0, 0)
    if fetch.status not in SUCCESS:
        if old is not None:
            result.signature = old.signature
        if fetch.status == codes.STATUS_FETCH_RETRY:
            schedule.set_page_retry_schedule(url, result, *before, fetch.fetch_time)
            result.status = codes.STATUS_DB_UNFETCHED
            if result.retries < given_rules.retry_max:
                return result
        failed = fetch.status == codes.STATUS_PARSE_FAILED
        result.status = codes.STATUS_DB_PARSE_FAILED if failed else codes.STATUS_DB_GONE
        schedule.set_page_gone_schedule(url, result, *before, fetch.fetch_time)
        return result
    result.metadata.update(parsed or {})
    state = STATUS_UNKNOWN
    if fetch.status == codes.STATUS_FETCH_NOTMODIFIED:
        state = STATUS_NOTMODIFIED
    elif (
        fetch.status == codes.STATUS_FETCH_SUCCESS and old and old.signature and signature and tells
    ):
        state = STATUS_NOTMODIFIED if old.signature == signature else STATUS_MODIFIED
    schedule.set_fetch_schedule(url, result, *before, fetch.fetch_time, fetch.modified_time, state)
    if state == STATUS_NOTMODIFIED:
        result.status, result.modified_time = codes.STATUS_DB_NOTMODIFIED, before[1]
        result.signature = old.signature if old else result.signature
    else:
        result.status, result.signature = SUCCESS[fetch.status], signature
    if given_rules.max_interval < result.fetch_interval:
        schedule.force_refetch(url, result, False, NOW)
    return result


def latest(values: list[CrawlDatum]) -> CrawlDatum | None:
    return max(values, key=lambda value: value.fetch_time) if values else None


def kept(links: list[CrawlDatum], limit: int) -> list[CrawlDatum]:
    links = sorted(links, key=lambda link: -link.score)
    return links[max(0, len(links) - limit) :]


# -- random tables ---------------------------------------------------------------------------------

urls = st.sampled_from(["http://a/", "http://a/b", "http://a/bc", "http://b/", "http://c/é"])
times = st.one_of(st.just(0), st.integers(1_700_000_000_000, 1_700_000_001_000))
keys = st.sampled_from(["_pst_", "x", "y", "Content-Type"])
maps = st.dictionaries(keys.map(Text), st.sampled_from("abc").map(Text), max_size=3).map(
    MapWritable
)
marked = maps.map(lambda m: MapWritable({**m, Text(GENERATE_TIME_KEY): LongWritable(7)}))
scores = st.floats(-4, 4, width=32)
signatures = st.one_of(st.none(), st.sampled_from([b"one", b"two"]))


def entries(statuses: list[int]) -> st.SearchStrategy[tuple[str, CrawlDatum]]:
    intervals = st.sampled_from([0, 60, 2592000, 9_999_999])
    datum = st.builds(
        CrawlDatum,
        st.sampled_from(statuses),
        intervals,
        scores,
        times,
        times,
        st.integers(0, 5),
        signatures,
        st.one_of(maps, marked),
    )
    return st.tuples(urls, datum)


DB = [1, 2, 3, 4, 5, 6, 7, 8, 9]
SEGMENT = [
    *SUCCESS,
    codes.STATUS_FETCH_RETRY,
    codes.STATUS_FETCH_GONE,
    codes.STATUS_PARSE_FAILED,
    *[codes.STATUS_LINKED] * 4,
    codes.STATUS_SIGNATURE,
    codes.STATUS_PARSE_META,
]
olds = st.lists(entries(DB), max_size=4, unique_by=lambda entry: entry[0])
segments = st.lists(entries(SEGMENT), max_size=12)


def check(
    old: list[tuple[str, CrawlDatum]],
    segment: list[tuple[str, CrawlDatum]],
    given_rules: UpdateSettings,
) -> None:
    table, counters = updated(
        sort_by_key(crawldatum_columns.to_frame(old)),
        sort_by_key(crawldatum_columns.to_frame(segment)),
        given_rules,
        NOW,
    )
    together = sorted([*old, *segment], key=lambda entry: entry[0].encode())
    expected = {}
    for url, group in groupby(together, key=lambda entry: entry[0]):
        result = reference(url, [datum.copy() for _, datum in group], given_rules)
        if result is not None:
            expected[url] = result.to_bytes().hex()
    assert {
        url: datum.to_bytes().hex() for url, datum in crawldatum_columns.records(table)
    } == expected
    assert table["key"].is_sorted()
    assert sum(counters.values()) == len({url for url, _ in together})


MANY_LINKS = [
    ("http://a/", CrawlDatum(codes.STATUS_LINKED, 5, s)) for s in (0.5, 0.25, 0.5, *[0.125] * 40)
]


@settings(max_examples=examples(150))
@given(olds, segments, st.sampled_from([USUAL, FEW_LINKS, NO_ADDITIONS, NEEDS_PARSE]))
@example([], MANY_LINKS, FEW_LINKS)
def test_as_one_url_at_a_time(
    old: list[tuple[str, CrawlDatum]],
    segment: list[tuple[str, CrawlDatum]],
    given_rules: UpdateSettings,
) -> None:
    check(old, segment, given_rules)


# -- single cases ----------------------------------------------------------------------------------


def updated(
    old: pl.DataFrame, segment: pl.DataFrame, given_rules: UpdateSettings, now: int
) -> tuple[pl.DataFrame, Counters]:
    """As `update`, all of it in tables of CRAWLDB_SCHEMA."""
    patched, counters = update(pack(old), pack(segment), given_rules, now)
    return patched_frame(patched), counters


def one(
    old: CrawlDatum | None, *segment: CrawlDatum, given_rules: UpdateSettings = USUAL
) -> CrawlDatum:
    """The new entry of the one URL there is."""
    known = [] if old is None else [("http://a/", old)]
    table, _ = updated(
        crawldatum_columns.to_frame(known),
        crawldatum_columns.to_frame([("http://a/", datum) for datum in segment]),
        given_rules,
        NOW,
    )
    ((_, datum),) = crawldatum_columns.records(table)
    return datum


def test_a_new_link_is_to_be_fetched_at_once() -> None:
    datum = one(None, CrawlDatum(codes.STATUS_LINKED, 5, 0.25, 99, metadata=metadata(x="1")))
    assert datum == CrawlDatum(
        codes.STATUS_DB_UNFETCHED, 2592000, 0.25, NOW, metadata=metadata(x="1")
    )


def test_the_link_with_the_highest_score_brings_the_metadata() -> None:
    links = [
        CrawlDatum(codes.STATUS_LINKED, 5, s, metadata=metadata(x=str(s)))
        for s in (0.25, 0.5, 0.125)
    ]
    assert one(None, *links).metadata == metadata(x="0.5")


def test_of_too_many_links_the_lowest_scores_count() -> None:
    links = [CrawlDatum(codes.STATUS_LINKED, 5, s) for s in (4.0, 0.25, 2.0, 0.5)]
    assert one(None, *links, given_rules=FEW_LINKS).score == 0.75


def test_the_latest_of_several_old_entries_counts() -> None:
    entries_before = [
        CrawlDatum(codes.STATUS_DB_FETCHED, i, 1.0, time) for i, time in enumerate((5, 9, 7))
    ]
    table, counters = updated(
        crawldatum_columns.to_frame([("http://a/", datum) for datum in entries_before]),
        crawldatum_columns.to_frame([]),
        USUAL,
        NOW,
    )
    assert table["fetch_interval"].to_list() == [1]
    assert counters == {"db_fetched": 1}


def test_a_lone_signature_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    segment = crawldatum_columns.to_frame(
        [("http://a/", CrawlDatum(codes.STATUS_SIGNATURE, signature=b"s"))]
    )
    table, counters = updated(crawldatum_columns.to_frame([]), segment, USUAL, NOW)
    assert (len(table), counters) == (0, {NO_FETCH_NO_OLD: 1})
    assert "http://a/" in caplog.text


def test_nothing_is_added_where_additions_are_not_allowed() -> None:
    segment = crawldatum_columns.to_frame(
        [
            ("http://a/", CrawlDatum(codes.STATUS_LINKED)),
            ("http://b/", CrawlDatum(codes.STATUS_SIGNATURE)),
        ]
    )
    table, counters = updated(crawldatum_columns.to_frame([]), segment, NO_ADDITIONS, NOW)
    assert (len(table), counters) == (0, {NOT_ADDED: 2})


def test_entries_count_by_their_status_not_by_their_file() -> None:
    stray_link = ("http://a/", CrawlDatum(codes.STATUS_LINKED, 5, 0.5))
    stray_entry = ("http://a/", CrawlDatum(codes.STATUS_DB_FETCHED, 60, 1.0, 9))
    table, _ = updated(
        crawldatum_columns.to_frame([stray_link]),
        crawldatum_columns.to_frame([stray_entry]),
        USUAL,
        NOW,
    )
    ((_, datum),) = crawldatum_columns.records(table)
    assert (datum.status, datum.score) == (codes.STATUS_DB_FETCHED, 1.5)


def test_an_unknown_status_of_a_fetch_is_an_error() -> None:
    with pytest.raises(FormatError, match=r"http://a/.*found 47"):
        one(None, CrawlDatum(47))


def test_an_unknown_status_of_another_kind_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    old = CrawlDatum(codes.STATUS_DB_FETCHED, 60, 1.0, 9)
    assert one(old, CrawlDatum(codes.STATUS_INJECTED)) == old
    assert "unknown status 66 in an entry for http://a/" in caplog.text


def test_an_update_of_nothing_by_nothing() -> None:
    table, counters = updated(
        crawldatum_columns.to_frame([]), crawldatum_columns.to_frame([]), USUAL, NOW
    )
    assert table.schema == crawldatum_columns.to_frame([]).schema
    assert not counters


def test_of_equally_late_fetches_the_first_counts() -> None:
    fetches = [
        CrawlDatum(codes.STATUS_FETCH_SUCCESS, 60, score, NOW, signature=b"s")
        for score in (3.0, 1.0, 2.0)
    ]
    assert one(None, *fetches).score == 3.0


def test_of_links_with_the_same_score_the_first_brings_the_metadata() -> None:
    links = [
        CrawlDatum(codes.STATUS_LINKED, 5, 0.5, metadata=metadata(x=name))
        for name in ("b", "a", "c")
    ]
    assert one(None, *links).metadata == metadata(x="b")


def test_the_last_signature_counts() -> None:
    signatures_found = [CrawlDatum(codes.STATUS_SIGNATURE, signature=s) for s in (b"one", b"two")]
    assert (
        one(None, CrawlDatum(codes.STATUS_FETCH_SUCCESS, 60, 1.0, NOW), *signatures_found).signature
        == b"two"
    )


def test_a_failing_scoring_filter_costs_only_its_records(caplog: pytest.LogCaptureFixture) -> None:
    class Picky:
        """Fails for one URL, in both shapes."""

        filters = USUAL.scoring.filters

        def __getattr__(self, name: str) -> object:
            return getattr(USUAL.scoring, name)

        def update_db_score_columns(self, frame: pl.DataFrame, *_: object) -> pl.DataFrame:
            from minutch.errors import PluginError

            raise PluginError(f"table of {len(frame)}")

        def update_db_score(self, url: str, *args: object) -> None:
            from minutch.errors import PluginError

            if url == "http://a/":
                raise PluginError("not this one")
            USUAL.scoring.update_db_score(url, *args)  # type: ignore[arg-type]

    picky = UpdateSettings(USUAL.schedule, Picky(), 3, 7776000, 100, True)  # type: ignore[arg-type]
    links: Mapping[str, float] = {"http://a/": 0.5, "http://b/": 0.25}
    segment = crawldatum_columns.to_frame(
        [(url, CrawlDatum(codes.STATUS_LINKED, 5, score)) for url, score in links.items()]
    )
    table, counters = updated(crawldatum_columns.to_frame([]), segment, picky, NOW)
    assert table["score"].to_list() == [0.0, 0.25]
    assert counters["errors of scoring filters"] == 1
    assert "http://a/" in caplog.text


ADAPTIVE = {"db__fetch__schedule__class": "org.apache.nutch.crawl.AdaptiveFetchSchedule"}
KEEPS = {"db__update__unparsed__keeps__interval": "true"}


@pytest.mark.parametrize(
    ("values", "parsed", "status", "interval"),
    [
        (
            {},
            None,
            codes.STATUS_DB_NOTMODIFIED,
            140_000,
        ),  # as in Nutch: the signature is the old one, carried along
        (KEEPS, None, codes.STATUS_DB_FETCHED, 100_000),
        (KEEPS, b"old", codes.STATUS_DB_NOTMODIFIED, 140_000),
        (KEEPS, b"new", codes.STATUS_DB_FETCHED, 80_000),
        (
            {**KEEPS, "fetcher__signature": "true"},
            None,
            codes.STATUS_DB_NOTMODIFIED,
            140_000,
        ),  # of the content itself
        ({**KEEPS, "fetcher__parse": "true"}, None, codes.STATUS_DB_NOTMODIFIED, 140_000),
    ],
)
def test_a_page_that_was_not_parsed(
    values: dict[str, str], parsed: bytes | None, status: int, interval: int
) -> None:
    old = CrawlDatum(codes.STATUS_DB_FETCHED, 100_000, fetch_time=NOW - 1, signature=b"old")
    fetch = CrawlDatum(codes.STATUS_FETCH_SUCCESS, 100_000, fetch_time=NOW, signature=b"old")
    rows_of_parse = [] if parsed is None else [CrawlDatum(codes.STATUS_SIGNATURE, signature=parsed)]
    datum = one(old, fetch, *rows_of_parse, given_rules=rules(**ADAPTIVE, **values))
    assert (datum.status, datum.fetch_interval) == (status, interval)
    assert datum.signature == (parsed or b"old")
