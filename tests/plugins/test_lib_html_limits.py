"""lib-html: pages that would take long are refused at once, and no others; the estimate against
Lexbor's own trees.
"""

from __future__ import annotations

import random
from itertools import islice, product
from string import ascii_lowercase

import pytest
from selectolax.lexbor import LexborHTMLParser

from minutch.errors import ParseError
from minutch.kernels import markup as kernels
from minutch.records.parsedata import FAILED, SUCCESS
from plugins.lib_html.pages import Extractor
from plugins.lib_html.tree import Limits
from tests.plugins.test_lib_html import golden_pages
from tests.support.examples import tabled
from tests.support.golden import needs_golden
from tests.support.interpreted import compared  # noqa: F401
from tests.support.pages import configuration, parse


def limits(depth: int = 100_000, attributes: int = 100_000) -> Limits:
    names = {"parser.html.max.depth": str(depth), "parser.html.max.attributes": str(attributes)}
    return Limits(configuration(**names))


LIMITS = limits()
NAMES = [*islice(map("".join, product(ascii_lowercase, repeat=4)), 50_000)]


def depth(page: bytes) -> int:
    """Returns the depth of Lexbor's tree of a page."""
    depths = {0: 0}
    for node in LexborHTMLParser(page).root.traverse():  # type: ignore[union-attr]
        parent = node.parent
        depths[node.mem_id] = depths.get(parent.mem_id if parent is not None else 0, 0) + 1
    return max(depths.values())


HOSTILE = [
    "<div>" * 100_000,
    "<div></x>" * 60_000,
    "<div></div\0>" * 60_000,
    "<blockquote></blockquot></blockquoteblockquote></blockquo\1te>" * 20_000,
    "<p><div>" * 60_000,
    "<b><div></b>" * 40_000,
    "<a><div>" * 60_000,
    "<table><td>" * 60_000,
    "<select><div>" * 50_000,
    "<form><div></form>" * 30_000,
    "<svg><g>" * 60_000,
    "<svg>" + "<td>" * 90_000,
    "<math><mi><p>" * 40_000,
    "<svg><title>" + "<g>" * 90_000,
    "<svg><![CDATA[<!--]]>" + "<g>" * 90_000 + "-->",
    "<!-->" + "<div>" * 60_000,
    "<!--x--!>" + "<div>" * 60_000,
    "<frameset>" * 40_000,
    "<ruby><rt>" * 60_000,
    "<x-y>" * 60_000,
    "<font size=1>" * 30_000,
    "<button>" * 9 + "<object><p>" * 50_000,
    "".join(f"<b id={number}>" for number in range(9_000)),
    "<div>"
    + "".join(f"<b id={number}>" for number in range(900))
    + "</div>"
    + "<div>x</div>" * 20_000,
    "<p " + " ".join(NAMES) + ">",
    "<p " + "='>'".join(NAMES) + ">",
    "<html " + "><html ".join(NAMES) + ">",
    "<body " + "=x/><body ".join(NAMES[:20_000]) + ">",
]


@tabled("page", HOSTILE)
def test_hostile_pages_are_refused(page: str) -> None:
    with pytest.raises(ParseError, match=r"no tree of \d+ bytes: .*(parser\.html\.max\.|repeated)"):
        Extractor(configuration()).read(page.encode())


def test_the_page_is_a_failed_parse_that_says_why() -> None:
    status = parse("<div>" * 100_000).data.status
    assert status.major == FAILED
    assert "deeper than parser.html.max.depth = 1024" in str(status.args)


@tabled(
    "page",
    [
        "<p>x" * 30_000,
        "<ul>" + "<li>x" * 30_000,
        "<dl>" + "<dt>x<dd>y" * 20_000,
        "<table>" + "<tr><td>x<td><b>y" * 20_000 + "</table>",
        "<table>" + "<tbody><tr><th>x" * 20_000,
        "<select>" + "<option>x" * 30_000,
        "<br>x<img src=y>" * 20_000,
        "<b>x</b>y" * 20_000,
        "<fieldset></FIELDSET><blockQuote></Blockquote\n><an-element-of-our-own></an-element-of-OUR-own>"
        * 9_000,
        "<b><p>x</b></p>" * 10_000,
        "<p><i>x" * 20_000,
        "<td>x" * 30_000,
        "<svg>" + "<path d=x />" * 20_000 + "</svg>" + "<br>" * 5_000,
        "<svg><foreignObject><div>x<br></div></foreignObject></svg><input>" * 5_000,
        "<script>" + "'<div>'" * 20_000 + "</script>",
        "<style>" + "<g>" * 20_000 + "</style><textarea>" + "<div>" * 20_000 + "</textarea>",
        "<!--" + "<div>" * 20_000 + "-->x",
        "<a title='" + "<div>" * 20_000 + "'>x</a>",
        "<div " * 20_000 + ">",
        "<plaintext>" + "<div>" * 20_000,
        "</div></p></b>" * 20_000,
        "<x a=b c='d' e=\"f\" g></x>" * 9_000,
        "<a href=x>y" * 20_000,
        "x" * 200_000,
        "<" * 100_000,
        "<a" * 100_000,
        "</" * 100_000,
        "<!" * 100_000,
        "<a b='" * 30_000,
    ],
)
def test_long_pages_are_no_deep_ones(page: str) -> None:
    assert LIMITS.measure(page.encode())[1] < 60
    limits(depth=60, attributes=40_000).check(page.encode())


def test_limits_are_properties() -> None:
    page = (b"<div>" * 50 + b"</div>" * 50) * 100
    limits(depth=50).check(page)
    with pytest.raises(ParseError, match=r"max\.depth = 49"):
        limits(depth=49).check(page)
    page = b"<p a b c d/e=f g='h'>" + b"x" * 70_000
    limits(attributes=6).check(page)
    with pytest.raises(ParseError, match=r"max\.attributes = 5"):
        limits(attributes=5).check(page)


def test_small_pages_are_not_measured() -> None:
    assert parse("<div>" * 3_000).data.status.major == SUCCESS


TAGS = """a address applet b big blockquote body br button caption center col colgroup dd desc \
details div dl dt em font
foreignObject form h1 h2 head hr html i img input li listing marquee math mi nobr object ol \
optgroup option p pre rp rt
ruby select span style svg table tbody td template textarea th title tr u ul x-y"""


@tabled("seed", range(20))
def test_no_tree_is_much_deeper_than_estimated(seed: int) -> None:
    """This holds whatever is repeated: a table's rows may lie in two elements that no tag names."""
    rng = random.Random(seed)
    for _ in range(150):
        pieces = [
            rng.choice((f"<{tag}>", f"<{tag}>", f"<{tag}>", f"</{tag}>", f"<{tag}/>", "x"))
            for tag in rng.choices(TAGS.split(), k=rng.randrange(1, 6))
        ]
        before = "".join(f"<{tag}>" for tag in rng.choices(TAGS.split(), k=rng.randrange(3)))
        page = (before + "".join(pieces) * 60).encode()
        assert depth(page) <= 2 * LIMITS.measure(page)[1] + 20, page


@needs_golden
def test_real_pages_are_as_deep_as_estimated() -> None:
    for page in golden_pages():
        end, estimated = LIMITS.measure(page)
        assert end == kernels.FINE
        assert estimated <= depth(page) + 20


@tabled("seed", range(10))
def test_any_bytes_are_measured(seed: int) -> None:
    rng = random.Random(seed)
    small = limits(depth=3)
    for _ in range(500):
        page = b"".join(
            rng.choices(
                (b"<", b">", b"/", b"!--", b"a", b"b", b"'", b"=", b" ", b"svg", b"td", b"\0"), k=30
            )
        )
        assert LIMITS.measure(page)[0] == kernels.FINE
        assert small.measure(page)[0] in (kernels.FINE, kernels.TOO_DEEP)
