"""lib-html: the kernel's walk over Lexbor's memory gives what the walk in Python gives, on any
page.
"""

from __future__ import annotations

import ctypes
import logging
import os
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.cycle.parse.dispatch import ParserFactory
from minutch.cycle.parse.workerpool import PoolSettings, WorkerPool
from minutch.cycle.segment.store import CONTENT, Segment
from minutch.errors import ParseError
from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.kernels import html as kernels
from minutch.records.links import Outlink, OutlinkRun
from minutch.records.protocol import Content
from plugins.lib_html import pages
from plugins.lib_html.pages import Extractor
from plugins.lib_html.tree_reader import TreeReader, attribute_numbers, tree_reader
from plugins.lib_html.walk import ParsedMarkup
from tests.faults.fuzz import damaged
from tests.faults.readers import WEB
from tests.support.examples import every, examples
from tests.support.golden import GOLDEN, HAS_ALL, needs_golden
from tests.support.interpreted import compared  # noqa: F401
from tests.support.pages import configuration, content

CONFIGURATIONS = [
    configuration(),
    configuration(
        **{
            "parser.html.line.separators": "b,x-own,iframe,img,title,li",
            "parser.html.outlinks.ignore_tags": "script,a",
        }
    ),
    configuration(**{"parser.html.templates": "false"}),
]
EXTRACTORS = [Extractor(conf) for conf in CONFIGURATIONS]


def reader(extractor: Extractor) -> TreeReader:
    """The kernel's side of an extractor; a test that gets this far has a Lexbor that the kernel
    knows.
    """
    found = tree_reader(extractor.elements, inert=extractor.inert)
    assert found is not None
    return found


READERS = [reader(extractor) for extractor in EXTRACTORS]


def compare(data: bytes) -> ParsedMarkup:
    """Read a page both ways, by every configuration; the page by the first of them."""
    pages = []
    for extractor, by_kernel in zip(EXTRACTORS, READERS, strict=True):
        marked = len(data) % 2 == 1
        expected_tree, expected = extractor.read_in_python(data, marked=marked)
        found_tree, found = extractor.read_by_kernel(by_kernel, data, marked=marked)
        assert found_tree.html == expected_tree.html
        assert replace(found, links=list(found.links)) == expected
        if isinstance(found.links, OutlinkRun):
            assert OutlinkRun.of(expected.links) == found.links
        pages.append(expected)
    return pages[0]


@pytest.mark.parametrize(
    "page",
    [
        "",
        "plain",
        "<p> a <b> b</b>\n\n<p>\x1c\x1d c\x0b d &nbsp; e</p> ",
        (
            "<title> A \n b </title><meta name=x content='y &amp; z'><base target=t><base"
            " href=b><meta property=p content>"
        ),
        "<body><title>late</title><meta name=a content=b><base href=c>",
        (
            "<frameset><title>t</title><frame src=x><frame src><noframes><a"
            " href=q>w</a></noframes></frameset>"
        ),
        (
            "<a href=x> <img alt=' q ' src=i> <img alt=' '> \x01 <script src=s>do()</script></a><a"
            " href=y>\x02</a>"
        ),
        (
            "<svg><a href=o xlink:href=p>1<a"
            " href=q>2<style>s<b>t</b></style><title>u</title></a></a></svg>"
        ),
        "<math><mi><a href=m>n</a></mi></math><svg><script>a<i>b</i></script><![CDATA[c]]></svg>",
        (
            "<a rel='x\tNOFOLLOW' href=1>a</a><a rel=nofollowing href=2>b</a><a rel='nofollowé'"
            " href=3>c</a><a rel href=7><a rel='nofollow\xa0x' href=4>d</a><a rel='nofollow-x'"
            " href=5>e</a><a rel=_nofollow href=6>f</a>"
        ),
        (
            "<form action=a method=PoSt>x</form><form action=b method=posts>x</form><form"
            " action=c></form><form method>y"
        ),
        (
            "<iframe src=f>x <a href=y>z</a></iframe><iframe src=g></iframe><iframe src=h>"
            " </iframe><IFrame src=i>q"
        ),
        "<iframe src=f/>x<a href=y>z</a><noembed><b>c<xmp>d<noframes>e",
        (
            "<template><a"
            " href=x>y</a></template><template shadowrootmode=open>s</template>"
            "<table><template><tr><td>z</template></table></TEMPLATE>"
        ),
        (
            "<x-own><a-very-long-name-of-an-element"
            " href=x>y</a-very-long-name-of-an-element><b>z</b></x-own><x-own>"
        ),
        "<a href='"
        + "long" * 5000
        + "'>"
        + "words of an anchor " * 9000
        + "</a>"
        + "<meta name=a>" * 900,
        "<head>" + "<meta name=a content=b>" * 900 + "<link href=c>" * 9000,
        "<svg>" + "<a href=x>" * 2000 + "<img alt=y>",
        "<p>\0&#0;\0</p>\ufdd0\ufdd1<a href=\0>\0</a>&#xfdd1;<title>\0",
        (
            "<body><a href='' href=second>x</a><area href alt=n><img src=a alt><img><source"
            " src=b>t</source>"
        ),
    ],
)
def test_pages_with_something_special(page: str) -> None:
    compare(page.encode())


def test_room_grows_for_links_that_the_tree_repeats() -> None:
    page = b"<p><a href='%s'>w</p>" % (b"x" * 3000) + b"<p>y</p>" * 400
    assert len(compare(page).links) >= 400


TAGS = """a area base body div em font form frame frameset head html iframe img li link math meta \
mi noembed noframes
noscript option p plaintext script select source style svg table td template textarea title tr ul \
x-own b desc
foreignObject xmp"""
ATTRIBUTES = "href src action rel method alt name content http-equiv xlink:href class HREF Alt"
VALUES = [
    "",
    " ",
    "x",
    " y ",
    "nofollow",
    "a nofollow b",
    "POST",
    "é",
    "\xa0nofollow",
    "&#x200b;",
    "\x01",
    "q'\"<",
]
TEXTS = [
    " ",
    "\n\t",
    "w",
    "\xa0",
    "é ",
    "\x01",
    "\x1f",
    "&amp;",
    "&#x3000;",
    "\0",
    "<",
    "</",
    "<!-- c -->",
    "<?p?>",
]
TEXTS += [
    "<![CDATA[ d ]]>",
    "\ufdd1",
    "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
    "x y\r\nz",
]

attributes = st.lists(
    st.tuples(st.sampled_from(ATTRIBUTES.split()), st.sampled_from(VALUES)), max_size=4
)
openings = st.builds(
    lambda tag, values, end: (
        "<" + tag + "".join(f' {name}="{value}"' for name, value in values) + end
    ),
    st.sampled_from(TAGS.split()),
    attributes,
    st.sampled_from([">", ">", ">", "/>", ""]),
)
closings = st.sampled_from([f"</{tag}>" for tag in TAGS.split()])


@settings(max_examples=examples(400))
@given(st.lists(openings | closings | st.sampled_from(TEXTS), max_size=40))
def test_any_soup(tokens: list[str]) -> None:
    compare("".join(tokens).encode())


CUT = (
    b"\xe2\x82",
    b"\xac",
    b"\xff",
    b"\xed\xa0\x80",
    b"\xc3",
    b"\xa9",
    b"a",
    b" ",
    b"\xc3\xa9",
    b"<b>",
)
PLACES = [
    b"%s",
    b"<p>%s</p>%s",
    b"<a href='%s'>%s</a>",
    b"<meta name='%s' content='%s'>",
    b"<img src=x alt='%s'>",
]
PLACES += [
    b"<a href=x><img alt='%s'><img alt='%s'></a>",
    b"<!--%s-->",
    b"<title>%s</title>",
    b"<a href='%s' id='%s'>",
]
cuts = st.lists(st.sampled_from(CUT), max_size=3).map(b"".join)


@settings(max_examples=examples(200))
@given(
    st.lists(
        st.tuples(
            st.sampled_from(PLACES), st.lists(st.sampled_from(CUT), max_size=3).map(b"".join)
        ),
        max_size=6,
    )
)
def test_what_is_not_utf8(parts: list[tuple[bytes, bytes]]) -> None:
    compare(b"".join(place.replace(b"%s", cut) for place, cut in parts))


@settings(max_examples=examples(100))
@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    compare(data)


def test_damaged_pages() -> None:
    seeds, words = [*WEB["html"].samples()], WEB["html"].words
    assert seeds
    for number in range(150):
        rng = random.Random(number)
        compare(damaged(rng.choice(seeds), words, rng))


def golden_pages() -> Iterator[bytes]:
    """The content of all segments of the golden crawls."""
    for directory in sorted(GOLDEN.rglob("segments/*")):
        segment = Segment(directory)
        if segment.has(CONTENT):
            for _, value in segment.raw_sorted(CONTENT):
                yield Content.from_bytes(value).content


@needs_golden
def test_golden_pages() -> None:
    texts = {compare(page).text for page in islice(golden_pages(), 0, None, every(4))}
    assert len(texts) > (100 if HAS_ALL else 50) // every(4)


def test_names_of_elements_need_the_walk_in_python() -> None:
    extractor = Extractor(configuration(**{"parser.html.outlinks.htmlnode_metadata_name": "node"}))
    [link] = extractor.read(b"<iframe src=x>y</iframe>")[1].links
    assert link == Outlink("x", "y", MapWritable({Text("node"): Text("iframe")}))


def test_the_kernel_reads_the_first_page_and_every_other() -> None:
    extractor = Extractor(CONFIGURATIONS[0])
    assert [type(extractor.read(b"<a href=x>y</a>")[1].links) for _ in range(3)] == [OutlinkRun] * 3


def test_the_plugin_as_the_repository_loads_it_has_compiled_kernels_of_its_own() -> None:
    """The same file under another module's name, with one cache of compiled code for both."""
    compare(b"<a href=x>y</a>")
    [parser] = ParserFactory(CONFIGURATIONS[0]).parsers("text/html")[:1]
    assert not type(parser).__module__.startswith("plugins.")
    [parse] = parser.get_parse(content("<a href=x>y</a>")).values()
    assert isinstance(parse.data.outlinks, OutlinkRun)
    assert parse.data.outlinks == [Outlink("http://example.org/dir/x", "y")]


def test_threads_have_pages_of_their_own() -> None:
    pages = [b"<a href=%d>" % number + b"word%d " % number * 3000 for number in range(40)]
    expected = [EXTRACTORS[0].read_in_python(page)[1] for page in pages]
    with ThreadPoolExecutor(4) as pool:
        found = [
            page
            for _, page in pool.map(
                lambda page: EXTRACTORS[0].read_by_kernel(READERS[0], page), pages
            )
        ]
    assert [replace(page, links=list(page.links)) for page in found] == expected


OFFSETS = """LOCAL_NAME NEXT PARENT FIRST_CHILD TYPE TEXT_STRING FIRST_ATTRIBUTE \
ATTRIBUTE_QUALIFIED ATTRIBUTE_VALUE
ATTRIBUTE_NEXT STRING_LENGTH ENTRY_LENGTH"""


@pytest.mark.parametrize("name", OFFSETS.split())
def test_another_layout_is_noticed(
    name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for other in (-8, 8, 64):
        attribute_numbers.cache_clear()
        with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
            patch.setattr(kernels, name, getattr(kernels, name) + other)
            assert attribute_numbers() is None
            extractor = Extractor(CONFIGURATIONS[0])
            assert extractor.read(b"<title>t")[1].title == "t"
            assert type(extractor.read(b"<a href=x>y</a>")[1].links) is list
    attribute_numbers.cache_clear()
    assert caplog.text.count("walked in Python") == 3


def test_a_system_without_such_files_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise PermissionError("no")

    attribute_numbers.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refused)
        assert attribute_numbers() is None
    attribute_numbers.cache_clear()
    assert attribute_numbers()


def test_memory_is_kept_where_the_library_can(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []

    class Library:
        def mallopt(self, parameter: int, value: int) -> None:
            asked.append((parameter, value))

    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    pages._keep_memory.__wrapped__()
    assert len(asked) == 3
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    pages._keep_memory.__wrapped__()


class HugePages:
    """A task that reads pages as parse-html does when there are many."""

    result_type = str

    def accepts(self, result: str) -> bool:
        return True

    def __init__(self) -> None:
        self.extractor = EXTRACTORS[0]

    def run(self, item: bytes) -> str:
        try:
            return self.extractor.read(b"<p>x" * int(item))[1].text.decode()
        except ParseError as error:
            return str(error)

    def finish(self, results: list[str]) -> list[str]:
        return results

    def fail(self, item: bytes, reason: str) -> str:
        return reason


def test_a_worker_that_keeps_memory_is_limited_all_the_same() -> None:
    with WorkerPool(HugePages, PoolSettings(workers=1, timeout=30, memory=96 << 20)) as pool:
        assert list(pool.map([b"1", b"1000000", b"2"])) == [
            "x",
            "no tree of 4000000 bytes: Can't parse HTML.",
            "x\nx",
        ]
