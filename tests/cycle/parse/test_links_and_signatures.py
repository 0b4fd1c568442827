"""Links in text, rules for links, signatures."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.conf import Configuration
from minutch.cycle.parse import linkverdicts
from minutch.cycle.parse.linkverdicts import LinkVerdicts
from minutch.cycle.parse.outlinks import OutlinkRules, text_outlinks
from minutch.cycle.parse.pagerecords import DocumentPacker
from minutch.cycle.parse.partwriters import PartSettings
from minutch.cycle.parse.signature import MD5Signature, TextProfileSignature, make_signature
from minutch.cycle.segment.storedrecords import text_key
from minutch.errors import ConfigError, PluginError
from minutch.hadoop.formats.javaio import encode_text
from minutch.hadoop.formats.sequencewriter import record_places
from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.kernels import arrow as columns_arrow
from minutch.kernels.arrow import Bytes, Views
from minutch.plugin.chains import ScoringFilters, URLFilters
from minutch.records.crawldatum import STATUS_LINKED, CrawlDatum
from minutch.records.links import Outlink, OutlinkRun
from minutch.records.protocol import Content
from minutch.urls.plainautomaton import PlainUrlAutomaton
from tests.support.examples import examples
from tests.support.pages import configuration
from tests.urls.strategies import urls

CONF = configuration()
COMMON = [
    "http://e.org/",
    "http://e.org/a.gif",
    "http://E.org/b/../c#d",
    "https://e.org:443",
    "mailto:x",
    "http://h/%7e",
]


@pytest.fixture(scope="module", autouse=True)
def _of_many() -> Iterator[None]:
    """A few links are judged as many are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linkverdicts, "_ALONE", 0)
        yield


def run_of(links: list[Outlink]) -> OutlinkRun:
    run = OutlinkRun.of(links)
    assert run is not None
    return run


AT_ONCE, ONE_BY_ONE = OutlinkRules(CONF), OutlinkRules(CONF)
"""They remember what they have told."""
WITHIN = configuration(
    **{"db.ignore.external.links": "true", "db.ignore.external.links.mode": "byDomain"}
)
WITHIN_AT_ONCE, WITHIN_ONE_BY_ONE = OutlinkRules(WITHIN), OutlinkRules(WITHIN)
SITES = [
    "http://www.e.org/a",
    "https://WWW.E.ORG:8443/b#c",
    "http://e.org",
    "http://f.org/",
    "HTTP://f.org/",
    "http://u:p@e.org/",
    "http://e.org:123456/",
    "http://e.org:/",
    "http:///x",
    "http:/x",
    "http://",
    "http://[::1]/",
    "http://10.0.0.1/",
    "http://d\xe4.org/",
    "ftp://e.org/x",
    "file:/x",
    "javascript:x",
    "e.org",
    "http://e.org\udcff/",
    "",
]
"""URLs of some hosts and domains, of none, and what is no URL."""


def check(
    pages: list[tuple[str, list[Outlink]]],
    most: int,
    longest: int,
    at_once: OutlinkRules = AT_ONCE,
    one_by_one: OutlinkRules = ONE_BY_ONE,
) -> None:
    """The links of pages are kept alike, all at once and one by one."""
    found = at_once.keep([(url, run_of(links)) for url, links in pages], most, longest)
    assert [kept._replace(links=list(kept.links)) for kept in found] == [
        one_by_one.keep_each(url, links, most, longest) for url, links in pages
    ]


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

    @pytest.mark.parametrize("few", [1, 2048])
    def test_all_at_once_is_the_same_as_one_by_one(
        self, few: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(linkverdicts, "_FEW", few)
        fresh = OutlinkRules(CONF)
        urls = [
            f"http://h{i % 7}.org/d/{i}/../x{'?q=1' if i % 5 == 0 else ''}#f" for i in range(400)
        ]
        urls += [
            "no url",
            "http://e.org/a b",
            "http://[bad/",
            "ftp://x.org/",
            "http://E.org:80/",
            "x" * 90,
            "",
            "e",
        ]
        links = [Outlink(url, f"to {url}") for url in urls]
        pages = [
            ("http://e.org/a%20b", links),
            ("e", links[:7]),
            ("f", []),
            ("http://E.org:80/", links[::-1]),
        ]
        check(pages, 200, 80, fresh)
        check(pages, 7, 80, fresh)

    @given(
        st.lists(
            st.tuples(
                urls,
                st.lists(
                    st.builds(Outlink, urls | st.sampled_from(COMMON), st.text("aé ", max_size=140))
                ),
            ),
            max_size=5,
        ),
        st.integers(0, 4),
        st.integers(0, 60),
    )
    @settings(max_examples=examples(60))
    def test_any_links_at_once(
        self, pages: list[tuple[str, list[Outlink]]], most: int, longest: int
    ) -> None:
        check(pages, most, longest)

    @pytest.mark.parametrize("few", [0, 2048])
    @pytest.mark.parametrize("mode", ["byHost", "byDomain"])
    @pytest.mark.parametrize(
        ("external", "internal"), [("true", "false"), ("false", "true"), ("true", "true")]
    )
    def test_links_by_their_sites_at_once(
        self, external: str, internal: str, mode: str, few: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """ParseOutputFormat.filterNormalize drops a link by its host or domain before it asks
        normalizers and filters, and a link without one.
        """
        monkeypatch.setattr(linkverdicts, "_FEW", few)
        conf = configuration(
            **{
                "db.ignore.external.links": external,
                "db.ignore.internal.links": internal,
                "db.ignore.external.links.mode": mode,
            }
        )
        at_once, one_by_one = OutlinkRules(conf), OutlinkRules(conf)
        links = [Outlink(f"{url}{end}", end) for end in ("", "/d/../x?y", ".gif") for url in SITES]
        pages = [(url, links) for url in SITES]
        for most, longest in ((100, 99), (5, 99), (0, 99), (100, 12)):
            check(pages, most, longest, at_once, one_by_one)
            check(pages[::-1], most, longest, OutlinkRules(conf), one_by_one)
        if external != internal:
            assert any(kept.links for kept in at_once.keep([(SITES[0], run_of(links))], 99, 99))
        pairs = [(page, link) for page in SITES for link in SITES if "\udcff" not in page + link]
        columns = (pl.Series([pair[end] for pair in pairs]) for end in (0, 1))
        assert at_once.in_scope(*columns).to_list() == [
            one_by_one._is_wanted(page, link, one_by_one.origin(page) or "") for page, link in pairs
        ]

    @given(
        st.lists(
            st.tuples(
                urls | st.sampled_from(SITES),
                st.lists(st.builds(Outlink, urls | st.sampled_from(SITES))),
            ),
            max_size=5,
        ),
        st.integers(0, 4),
    )
    @settings(max_examples=examples(60))
    def test_any_links_within_a_domain_at_once(
        self, pages: list[tuple[str, list[Outlink]]], most: int
    ) -> None:
        check(pages, most, 60, WITHIN_AT_ONCE, WITHIN_ONE_BY_ONE)

    def test_a_column_holds_the_new_links_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        columns: list[pl.Series] = []
        sizes: list[int] = []

        def to_series(name: str, views: Views, buffers: Sequence[Bytes]) -> pl.Series:
            sizes.append(sum(map(len, buffers)))
            return original(name, views, buffers)

        original = columns_arrow.to_series
        monkeypatch.setattr(columns_arrow, "to_series", to_series)

        def judge(urls: pl.Series) -> pl.Series:
            columns.append(urls)
            return urls

        monkeypatch.setattr(linkverdicts, "_FEW", 1)
        table = LinkVerdicts(judge, lambda url: url)
        batches = [
            [Outlink(f"http://h{batch}.org/d/{i}") for i in range(200)] for batch in range(20)
        ]
        for links in batches:
            assert list(table.keep([("u", run_of(links))], 500, 80)[0][0]) == links
        assert [column.to_list() for column in columns] == [
            [link.to_url for link in links] for links in batches
        ]
        assert sizes == [sum(len(link.to_url) for link in links) for links in batches]

    def test_urls_that_are_not_utf_8(self) -> None:
        odd = [
            Outlink("http://e.org/\udcff"),
            Outlink("http://e.org/\udc80.gif"),
            Outlink("http://e.org/b"),
        ]
        check([("http://e.org/", odd), ("http://e.org/\udcff", odd)], 9, 60)
        many = [Outlink(f"http://e.org/{number}") for number in range(200)]
        check([("http://e.org/", [*odd, *many])], 210, 60)

    @given(
        st.lists(st.tuples(st.text(max_size=8), st.integers(0, 9)), max_size=5),
        st.sampled_from(["RECORD", "NONE"]),
    )
    def test_records_packed_and_unpacked(
        self, records: list[tuple[str, int]], compression: str
    ) -> None:
        packer = DocumentPacker(CONF, ScoringFilters(CONF), PartSettings(compression=compression))
        (crawl,) = packer.crawl_records(
            [[(url, CrawlDatum(STATUS_LINKED, number)) for url, number in records]]
        )
        inflate = zlib.decompress if compression == "RECORD" else bytes
        assert [
            (crawl[start + 8 : key_end], CrawlDatum.from_bytes(inflate(crawl[key_end:end])))
            for start, end, key_end in record_places(crawl)
        ] == [
            (text_key(encode_text(url)), CrawlDatum(STATUS_LINKED, number))
            for url, number in records
        ]

    def test_links_in_a_list_are_judged_like_a_run(self) -> None:
        packer = DocumentPacker(CONF, ScoringFilters(CONF), PartSettings(), filtered=False)
        links = [Outlink("http://e.org/a/../b#f", "x"), Outlink("http://e.org/c.gif")]
        named = [Outlink("http://e.org/b", "x", MapWritable({Text("k"): Text("v")}))]
        alone, listed, kept = packer.keep(
            [("http://p/", run_of(links)), ("http://p/", links), ("http://p/", named)]
        )
        assert alone == listed
        assert isinstance(listed.links, OutlinkRun)
        assert list(listed.links) == [Outlink("http://e.org/b", "x")]
        assert kept.links == named

    def test_what_grows_and_what_is_forgotten(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(linkverdicts, "_REMEMBERED", 16)
        monkeypatch.setattr(linkverdicts, "_ROOM", 16)
        links = [Outlink("http://e.org/" + "\u65e5 " * 40 + str(number)) for number in range(50)]
        for _ in range(3):
            check([("http://e.org/", links)] * 3, 100, 4096)

    def test_an_automaton_is_built_for_many_links_alone(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(linkverdicts, "_ALONE", 30)
        alone: list[str] = []
        automata = [PlainUrlAutomaton.of([], [])]

        def judge(url: str) -> str:
            alone.append(url)
            return url

        table = LinkVerdicts(lambda urls: urls, judge, automata.pop)
        few, more, last = ([Outlink(f"http://h/{n}/{i}") for i in range(20)] for n in "abc")
        for links in (few, more, last):
            assert list(table.keep([("u", run_of(links))], 99, 80)[0][0]) == links
        assert alone == [link.to_url for link in few]

    def test_one_page_after_the_other_is_remembered(self) -> None:
        rules = OutlinkRules(CONF)
        for _ in range(2):
            [kept] = rules.keep(
                [("http://e.org/", run_of([Outlink("http://e.org/a/../b#f", "x")]))], 9, 99
            )
            assert kept.links == [Outlink("http://e.org/b", "x")]

    def test_rules_about_two_urls(self) -> None:
        rules = OutlinkRules(configuration(**{"db.ignore.external.links": "true"}))
        run = run_of([Outlink("http://e.org/a"), Outlink("http://f.org/a")])
        assert rules.keep([("http://e.org/", run)], 9, 99) == [([Outlink("http://e.org/a")], 0, 1)]

    def test_a_plugin_that_fails_on_columns(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object) -> None:
            raise PluginError("no")

        monkeypatch.setattr(URLFilters, "filter_column", fail)
        check(
            [("http://e.org/", [Outlink("http://e.org/a"), Outlink("http://e.org/a.gif")])], 9, 99
        )

    def test_a_place_that_is_no_url(self) -> None:
        rules = OutlinkRules(configuration(**{"db.ignore.external.links": "true"}))
        assert rules.origin("http://E.org/x") == "e.org"
        assert rules.accept("http://e.org/x", "no url", "e.org") is None
        assert rules.accept("http://e.org/x", "http://E.ORG/y", "e.org") == "http://e.org/y"


class TestSignatures:
    def test_by_name(self) -> None:
        for name in (
            "minutch.cycle.parse.signature.MD5Signature",
            "minutch.cycle.parse.signature:MD5Signature",
            "",
        ):
            assert isinstance(
                make_signature(Configuration().with_values({"db.signature.class": name})),
                MD5Signature,
            )

    @pytest.mark.parametrize(
        "name", ["org.example.None", "no.such.Module", "minutch.cycle.parse.signature:None", "x"]
    )
    def test_unknown_names(self, name: str) -> None:
        with pytest.raises(ConfigError, match=r"db\.signature\.class"):
            make_signature(Configuration().with_values({"db.signature.class": name}))

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
