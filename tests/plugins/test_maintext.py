"""lib-html: the main text of a page (parser.html.text)."""

from __future__ import annotations

from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from minutch.cycle.parse.pageparser import PageParser, SegmentTask
from minutch.cycle.parse.partwriters import PartSettings
from minutch.errors import ConfigError
from minutch.kernels import blocks as kernels
from minutch.records.textblocks import BLOCKS_KEY, MOST, read_marks
from plugins.lib_html import maintext
from plugins.lib_html.maintext import (
    KINDS,
    MODEL,
    LearnedText,
    NameWeights,
    Scorer,
    best_blocks,
    features_of,
    said_once,
)
from plugins.lib_html.pages import HtmlPages
from plugins.lib_html.textblocks import (
    MOST_BLOCKS,
    Blocks,
    Flattener,
    block_of_line,
    page_tokens,
    places,
)
from plugins.lib_html.tree_reader import attribute_numbers
from tests.support.examples import examples, tabled
from tests.support.interpreted import compared  # noqa: F401
from tests.support.pages import URL, configuration, content, parse
from tests.support.plainblocks import plain_blocks, plain_lines, plain_places
from tests.support.plainfeatures import (
    plain_features,
    plain_kinds,
    plain_scores,
    random_forest,
)

ARTICLE = """<!doctype html><html><head><title>Tides</title></head><body class="single-post">
<nav class="menu"><ul><li><a href="/">Home</a></li><li><a href="/shop">Shop</a></li>
<li><a href="/contact">Contact</a></li></ul></nav>
<main><article class="post"><h1>Why there are two tides a day</h1>
<p>The Moon pulls the water on the near side of the Earth more strongly than the Earth itself, and
the Earth more strongly than the water on the far side. So there are two hills of water.</p>
<p>As the Earth turns below them, a coast passes both hills in a little more than a day, which is
why high water comes twice, about fifty minutes later each day.</p>
<h2>Spring tides</h2>
<p>At full and new moon the Sun pulls along the same line, and the hills are higher; in between, at
half moon, they are lower. Sailors have known this for as long as there have been harbours.</p>
</article></main>
<aside class="sidebar widget"><h3>Newsletter</h3><p>Subscribe to our newsletter</p></aside>
<footer class="site-footer"><p>Copyright 2024 Example. All rights reserved.</p>
<a href="/privacy">Privacy policy</a> <a href="/terms">Terms of use</a></footer></body></html>"""


def flattener() -> Flattener:
    numbers = attribute_numbers()
    assert numbers is not None
    return Flattener(numbers)


FLATTENER = flattener()
WEIGHTS = np.random.default_rng(1).integers(-127, 128, 1 << kernels.BITS, np.int8)
CHANCES = np.arange(len(KINDS), dtype=np.float32) / 21


def compare(page: str) -> Blocks | None:
    """Reads a page by the kernel and in Python: both find the same."""
    document = LexborHTMLParser(page)
    found, expected = FLATTENER.read(document), plain_blocks(document)
    if found is None or expected is None:
        assert found is expected
        return None
    found.boxes[:, kernels.NODE] = 0
    for name, ours, theirs in zip(Blocks._fields, found, expected, strict=True):
        if isinstance(ours, bytes):
            assert ours == theirs
        else:
            np.testing.assert_array_equal(ours, theirs, name)
    np.testing.assert_array_equal(places(found), plain_places(found))
    np.testing.assert_array_equal(block_of_line(found), plain_lines(found))
    rows = features_of(found, WEIGHTS, CHANCES)
    for number, (row, other) in enumerate(
        zip(rows, plain_features(found, WEIGHTS, CHANCES), strict=True)
    ):
        np.testing.assert_array_equal(row, other, f"feature {number}")
    return found


@pytest.mark.parametrize(
    "page",
    [
        ARTICLE,
        "",
        "<p> \xa0 </p>",
        "<p>a<br>b <b>c</b>d<i> e</i></p>f",
        "<a class=x href=/share>one<div id=postBody-12>two</div>three</a> <a href=#>four</a>five",
        "<div hidden><span class='aB c1 dd'></span></div><p style='display:none'>x, y. z; Ü 12</p>",
        "<p>a<script>b</script><svg><text>c</text></svg><img alt=d><select><option>e</select>f",
        "<ul><li class=card>A<li class=card>B</ul><x-own><template>t</template>u</x-own>",
        "<h2>a<a href='#x'>¶</a></h2><p>b<a href=#>\uf0c1</a> <a href=#>ü</a><a href=x>#</a>"
        "<a href='#y'>\u200b</a><a href='#z'><b>#</b></a><a href='#z'>🔗</a><a href='#z'>§§</a>c",
        "<p class='" + "ab " * 300 + "'>" + "word " * 20,
    ],
)
def test_the_kernel_finds_what_a_walk_in_python_finds(page: str) -> None:
    compare(page)


TAGS = (
    "a article b br button div h1 img li nav p picture script span sup table td template ul x-own"
)
VALUES = ["x", "#x", "post-12 entryTitle", "share", "", "é a", "display:none"]
openings = st.builds(
    lambda tag, name, value: f'<{tag} {name}="{value}">',
    st.sampled_from(TAGS.split()),
    st.sampled_from(["class", "id", "role", "hidden", "href", "style", "title"]),
    st.sampled_from(VALUES),
)
closings = st.sampled_from([f"</{tag}>" for tag in TAGS.split()])
texts = st.sampled_from(
    [" ", "\n", "w", "One, two. ", "\xa0", "é3 ", "\u3000", "\x01", "a\xa0b", "#", "¶"]
)


@settings(max_examples=examples(300))
@given(st.lists(openings | closings | texts, max_size=40))
def test_any_soup(tokens: list[str]) -> None:
    compare("".join(tokens))


def test_parser_html_text_chooses_the_text() -> None:
    whole, main = (
        parse(ARTICLE, configuration(**{"parser.html.text": value})) for value in ("page", "main")
    )
    assert "Contact" in whole.text
    assert "Copyright" in whole.text
    lines = main.text.split("\n")
    assert lines[0] == "Why there are two tides a day"
    assert "Spring tides" in lines
    assert len([line for line in lines if "water" in line or "Sailors" in line]) == 3
    assert not {"Contact", "Home", "Privacy"} & set(main.text.split())
    assert "Copyright" not in main.text
    assert "newsletter" not in main.text
    assert main.data.title == whole.data.title == "Tides"
    assert list(main.data.outlinks) == list(whole.data.outlinks)


def test_each_block_has_a_probability() -> None:
    judge = LearnedText(configuration(), {}).judge
    judged = judge("http://example.org/tides", ARTICLE.encode(), LexborHTMLParser(ARTICLE))
    assert judged is not None
    page, chances = judged
    bounds = page.blocks[:, [kernels.TEXT_AT, kernels.TEXT_END]].tolist()
    texts = [page.text[start:end].decode() for start, end in bounds]
    found = dict(zip(texts, chances.tolist(), strict=True))
    assert found["Spring tides"] > 0.5 > found["Contact"]
    assert 0 < min(chances) < max(chances) < 1
    assert judge("http://example.org/", b"", LexborHTMLParser("")) is None


_PIECES = (
    *("<p>Die Flut kommt", "<br>zweimal", "<p>The tide comes twice.", "<nav><a href=/a>x</a>"),
    *("<html lang=fr>", "<meta name=dc.language content=de>", "<h2>Springs</h2>", "<p>1 2</p>"),
    *("<table><tr><td>a<td>b</table>", "<!-- c -->", "<p>\U0001f600 \u00e9t\u00e9", ARTICLE),
)


@settings(max_examples=examples(20), deadline=None)
@example([_PIECES[0], ARTICLE, "".join(_PIECES[:3]), ARTICLE])
@given(st.lists(st.lists(st.sampled_from(_PIECES), max_size=6).map("".join), max_size=5))
def test_pages_that_are_finished_together_are_as_those_alone(pages: list[str]) -> None:
    task = _task()
    items = [content(page, url=f"{URL}{n}").to_bytes() for n, page in enumerate(pages)]
    alone = [task.finish([task.run(item)])[0] for item in items]
    assert task.finish([task.run(item) for item in items]) == alone


@cache
def _task() -> SegmentTask:
    values = {"parser.html.text": "blocks", "parse.filter.urls": "false"}
    conf = configuration("parse-html|language-identifier", **values)
    make = partial(PageParser, conf.freeze(), PartSettings.from_conf(conf), "20260101000000")
    return SegmentTask(make, 0)


def test_blocks_are_all_of_the_text_with_marks() -> None:
    page = ARTICLE.replace("water comes", "water<br>comes")
    conf = configuration(**{"parser.html.text": "blocks"})
    whole, found = parse(page), parse(page, conf)
    assert found.text.split() == whole.text.split()[1:]  # but for the title
    lines = found.text.split("\n")
    marks = found.data.parse_meta.get(BLOCKS_KEY)
    assert marks is not None
    chances, places = read_marks(marks.encode())
    chance, place = (dict(zip(lines, values.tolist(), strict=True)) for values in (chances, places))
    assert chance["Spring tides"] > MOST / 2 > chance["Contact"]
    assert place["Home"] == place["Shop"] == place["Contact"] != place["Spring tides"]
    texts = [line for line in lines if "water" in line or "comes twice" in line]
    assert len(texts) == 3
    assert len({place[line] for line in texts}) == 1
    assert found.data.title == whole.data.title
    assert list(found.data.outlinks) == list(whole.data.outlinks)


def test_markdown_of_some_lines() -> None:
    page = content(ARTICLE.replace("water comes", "water<br>comes"))
    pages = HtmlPages(configuration(**{"parser.html.text": "blocks"}))
    lines = pages.parse(page)[URL].text.split("\n")
    kept = [number for number, line in enumerate(lines) if line[:4] in {"Home", "Spri", "come"}]
    found = pages.markdown(page, kept=kept)
    assert found.startswith("- [Home](http://example.org/)\n\nAs the Earth turns")
    assert found.endswith("later each day.\n\n## Spring tides\n")
    assert pages.markdown(page, kept=[10_000]) == pages.markdown(page, kept=[]) == ""
    main = pages.markdown(page)
    assert "At full and new moon" in main
    assert "Home" not in main


def test_sections_in_each_other_are_one_place() -> None:
    page = FLATTENER.read(LexborHTMLParser("<div><p>a</p><div><p>b</p><div class=xy><p>d</div>e"))
    assert page is not None
    one, two, other, last = places(page).tolist()
    assert one == two != other
    assert last not in {one, other}


def test_an_unknown_extractor_is_named_with_those_there_are() -> None:
    with pytest.raises(
        ConfigError, match=r"page or blocks or main or resiliparse or trafilatura.*body"
    ):
        parse("<p>a", configuration(**{"parser.html.text": "body"}))


@pytest.mark.parametrize("outcome", ["", None, ValueError("odd page")])
def test_the_pages_text_is_kept_where_none_is_found(
    outcome: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    from minutch.plugin.points import TextExtractor
    from minutch.plugin.repository import PluginRepository, instance_of

    conf = configuration(**{"parser.html.text": "main"})
    found = PluginRepository.of(conf).extensions(TextExtractor.point_id)
    by_name = {extension.parameters["text"]: extension for extension in found}

    def extract(*_: object) -> object:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    extractor = instance_of(by_name["main"], TextExtractor)
    monkeypatch.setattr(extractor, "extract", extract)
    assert parse("<p>a <b>b</b>", conf).text == "a b"


@pytest.mark.parametrize("name", ["resiliparse", "trafilatura"])
def test_other_extractors_may_take_its_place(name: str) -> None:
    pytest.importorskip(name)
    text = parse(ARTICLE, configuration(**{"parser.html.text": name})).text
    assert "Sailors have known this" in text
    assert "Privacy policy" not in text


@tabled(
    "chances",
    [[0.9, 0.2, 0.55, 0.4, 0.05], [0.9, 0.88, 0.86, 0.1, 0.1], [0.2, 0.2, 0.1, 0.1, 0.05]],
)
def test_the_blocks_with_the_highest_expected_f1_are_kept(chances: list[float]) -> None:
    """As trying all sets finds them."""
    given, words = np.array(chances), np.array([3.0, 9.0, 1.0, 20.0, 2.0])

    def value(kept: np.ndarray) -> float:
        if not kept.any():
            return (1 - given.max()) / 2
        alone = 2 * (given * words)[kept].sum() / (words[kept].sum() + (given * words).sum())
        true = given >= ((np.arange(24) + 0.5) / 24)[:, None]
        both = (true * words).sum(axis=1) + words[kept].sum()
        together = 2 * (true & kept) @ words / both
        return float(alone + together.mean()) / 2

    sets = [np.array(kept) for kept in product([False, True], repeat=5)]
    found = best_blocks(given, words)
    assert value(found) == pytest.approx(max(map(value, sets)))
    assert found.any() == (max(chances) > 0.5)


@tabled(
    "page,chances,lines",
    [
        ("<p>A b c d<p>e<p>a B c d<p>e", [0.6, 0.9, 0.9, 0.9], [1, 2, 3]),
        ("<li>a b c d<h2>a b c d</h2><p>a b c d", [0.9, 0.6, 0.9], [1]),
        ("<p>a b c d" * 3, [0.9, 0.9, 0.9], [0]),
        ("<p>a b c d" * 4, [0.9] * 4, [0, 1, 2, 3]),
        ("<p>a b c d e f g h i j k l" * 4, [0.6, 0.6, 0.9, 0.6], [2]),
        ("<pre>a b c d</pre>" * 2 + "<p>a b c d", [0.9] * 3, [0, 1, 2]),
        ("<table><tr><th>a b c d<td>a b c d", [0.9] * 2, [0, 1]),
        ("<p>a b c d<p>a b c d", [0.9, 0.1], [0]),
    ],
)
def test_what_a_page_repeats_is_said_once(
    page: str, chances: list[float], lines: list[int]
) -> None:
    found = FLATTENER.read(LexborHTMLParser(page))
    assert found is not None
    given, kept = np.array(chances), np.array(chances) > 0.5
    kinds = (np.array(KINDS) == "forum").astype(float)
    assert np.flatnonzero(said_once(found, kinds, given, kept)).tolist() == lines
    kinds = (np.array(KINDS) == "documentation").astype(float)
    assert (said_once(found, kinds, given, kept) == kept).all()


@pytest.mark.parametrize(
    "page",
    [
        "<div>" * 3000 + "deep",
        "<p>a" * 20_000,
        "<i class='x y'>" * 400 + "b",
        "<div class='" + "ab" * 100_000 + "' id='" + "a b" * 100_000 + "'>c",
        "<ul>" + "<li><a href=/x>y</a>" * 5000,
        "<br>" * 50_000 + "d",
    ],
    ids=["deep", "wide", "inline", "long names", "cards", "empty"],
)
def test_hostile_pages_are_read_to_the_end(page: str) -> None:
    conf = configuration(**{"parser.html.text": "main", "parser.html.max.depth": "-1"})
    text = parse(page, conf).text
    assert text.split()[-1] in {"deep", "a", "b", "c", "y", "d"}


def test_pages_with_too_many_blocks_are_kept_whole() -> None:
    blocks = MOST_BLOCKS
    assert FLATTENER.read(LexborHTMLParser("<p>a" * blocks)) is not None
    assert FLATTENER.read(LexborHTMLParser("<p>a" * (blocks + 2))) is None


def test_what_a_page_is_called_outside_of_its_tree() -> None:
    def tokens(url: str, head: str = "") -> set[int]:
        return set(page_tokens(url, head.encode()).tolist())

    data = '<script type="application/ld+json">{"@type": "Product"}</script>'
    plain = tokens("http://h.org/shop/")
    assert tokens("http://h.org/shop/", data) > plain
    assert tokens("http://h.org/shop/", '<meta property="og:type" content="product">') > plain
    assert tokens("http://h.org/shop/?page=2") != plain
    assert tokens("http://h.org/") != plain
    assert tokens("http://\ud800/[") is not None
    assert tokens("file:///home/2024/blog/a-page.html") == tokens("file:///a-page.html")


@given(st.integers(0, 1 << 32), st.integers(1, 130), st.integers(1, 5), st.integers(1, 5))
@settings(max_examples=examples(60))
def test_a_forest_gives_what_its_trees_do(seed: int, count: int, trees: int, features: int) -> None:
    """To the last bit; values are often thresholds, zeros of both signs and far apart."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(features, count)).round(1).astype(np.float32)
    odd = np.array([0, -0.0, 1e30, -1e30, 1e-40, -1e-40, np.inf, -np.inf], np.float32)
    rows = np.where(rng.random(rows.shape) < 0.2, rng.choice(odd, rows.shape), rows)
    forest = random_forest(seed, 4 * trees, 3, features)
    forest.threshold[rng.integers(0, 7, 2)] = rng.choice(odd, 2)
    expected = 1 / (1 + np.exp(-plain_scores(forest, rows).astype(float)))
    assert Scorer(forest).chances(rows).tobytes() == expected.tobytes()


def test_a_forest_of_too_many_nodes_is_refused() -> None:
    with pytest.raises(ValueError, match="65535"):
        Scorer(random_forest(1, 520, 6, 1))


def test_kinds_of_a_page_are_those_of_its_tokens_each_once() -> None:
    page = FLATTENER.read(LexborHTMLParser(ARTICLE))
    assert page is not None
    with np.load(MODEL) as data:
        model = dict(data)
    names = NameWeights(model)
    for tokens in (page_tokens(URL, b""), np.repeat(model["kind_tokens"].astype(np.int64), 2)):
        expected = plain_kinds(model, page, tokens)
        assert names.kinds(page, tokens).tolist() == expected.tolist()
        assert names.kinds(page, tokens).tolist() == expected.tolist()  # nothing is left behind


def test_the_numbers_say_what_they_were_learned_from() -> None:
    path = Path(maintext.__file__).with_name("maintext.npz")
    assert path.stat().st_size < 200_000
    with np.load(path) as data:
        assert "CC BY 4.0" in str(data["source"])
