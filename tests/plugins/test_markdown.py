"""lib-html: a page as Markdown, read back by a parser of CommonMark."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.footnote import footnote_plugin
from selectolax.lexbor import LexborHTMLParser

from minutch.errors import ConfigError
from minutch.kernels import blocks as kernels
from minutch.plugin.points import Parser
from minutch.urls.resolve import Resolver
from plugins.lib_html.leaves import MOST_NESTED
from plugins.lib_html.markdown import to_markdown
from plugins.lib_html.textblocks import Choice
from plugins.parse_html.parser import HtmlParser
from plugins.parse_tika.parser import TikaParser
from tests.plugins.test_maintext import ARTICLE, FLATTENER
from tests.support.examples import examples, tabled
from tests.support.pages import URL, configuration, content

BASE = "http://example.org/dir/"
READER = MarkdownIt("commonmark", {"maxNesting": 200}).enable(["table", "strikethrough"])
WITH_NOTES = MarkdownIt("commonmark", {"maxNesting": 200}).use(footnote_plugin)


def markdown(page: str, kept: Choice | None = None) -> str:
    return to_markdown(LexborHTMLParser(page), Resolver(URL).resolve, kept)


def squeezed(text: str) -> str:
    """Without blanks, which markup may move."""
    return "".join(text.split())


Leaf = tuple[Any, ...]


def leaves(text: str) -> list[Leaf]:  # noqa: C901 - one branch a token
    """What a reader finds: of each leaf the items and quotes around it, its kind, its text."""
    found: list[Leaf] = []
    path: list[tuple[str, int]] = []
    counts: list[list[int]] = []
    for token in READER.parse(text):
        assert not token.type.startswith("html")
        kind, _, end = token.type.rpartition("_")
        if token.type in ("bullet_list_open", "ordered_list_open"):
            counts.append([int(token.attrs.get("start", 1)) - 1])
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            counts.pop()
        elif token.type == "list_item_open":
            counts[-1][0] += 1
            path.append((token.markup[-1:].translate({42: 45, 41: 46}), counts[-1][0]))
        elif token.type == "blockquote_open":
            path.append((">", 0))
        elif token.type in ("list_item_close", "blockquote_close"):
            path.pop()
        elif end == "open" and kind in ("paragraph", "heading", "th", "td"):
            leaf = token.tag
        elif token.type == "inline":
            if words := squeezed(words_of(token)):
                found.append((*path, leaf, words))
        elif token.type == "fence":
            found.append((*path, f"pre {token.info}", token.content))
        else:
            assert end == "close" or kind in ("table", "thead", "tbody", "tr")
    return found


def words_of(token: Token) -> str:
    words = []
    for child in token.children or ():
        assert child.type != "html_inline"
        words.append(child.content if child.type != "softbreak" else " ")
    return "".join(words)


def links(text: str) -> list[tuple[str, str]]:
    """Targets and texts."""
    found: list[tuple[str, str]] = []
    for token in READER.parse(text):
        for child in token.children or ():
            if child.type == "link_open":
                found.append((str(child.attrs["href"]), ""))
                inside = True
            elif child.type == "link_close":
                inside = False
            elif found and inside:
                found[-1] = (found[-1][0], found[-1][1] + squeezed(child.content))
    return found


# Pages of each kind


@tabled(
    ("page", "expected"),
    [
        ("<h1>One</h1><h3>Two <i>x</i> #</h3>text", "# One\n\n### Two *x* \\#\n\ntext\n"),
        (
            "<ul><li>a<ul><li>b</ul><li><p>c<p>d</ul><ul><li>e</ul>",
            "- a\n  - b\n- c\n\n  d\n\n* e\n",
        ),
        ("<ol start=9><li>a<li>b<ol><li>c</ol><li value=3>d</ol>", "9. a\n10. b\n    1. c\n3. d\n"),
        ("<ul><li>a<ul><li>b</li></ul></li><ul><li>c</ul></ul>", "- a\n  - b\n\n  * c\n"),
        (
            "<table><caption>C<tr><th>A<th>B|<tr><td>1<td>`x`<tr><td colspan=2>w</table>",
            "C\n\n| A | B\\| |\n| --- | --- |\n| 1 | \\`x\\` |\n| w |  |\n",
        ),
        (
            "<table><tr><td rowspan=2>a<td>b<tr><td>c</table>",
            "|  |  |\n| --- | --- |\n| a | b |\n|  | c |\n",
        ),
        (
            "<table><thead><tr><td>A<td>B<tbody><tr><td>1<td>2</table>",
            "| A | B |\n| --- | --- |\n| 1 | 2 |\n",
        ),
        ("<table><tr><td><h2>x</h2>y<td>z</table>", "## x\n\ny\n\nz\n"),
        (
            "<pre class='highlight-source-shell'>\n  ls ```\n\n\techo</pre>",
            "````shell\n  ls ```\n\n\techo\n````\n",
        ),
        ("<pre><code class='a language-c++'>x<br>y</code></pre>", "```c++\nx\ny\n```\n"),
        ("<div class=highlight-python><div><pre>x</pre></div></div>", "```python\nx\n```\n"),
        (
            "<pre><code data-lang=rust><span>a</span> <span>b</span></code></pre>",
            "```rust\na b\n```\n",
        ),
        ("<li><pre>a\n\nb</pre>", "- ```\n  a\n\n  b\n  ```\n"),
        (
            "<a href='/x y?a=(1)&amp;copy;'>l</a> <a href=javascript:f()>m</a>",
            "[l](http://example.org/x%20y?a=\\(1\\)\\&copy;) m\n",
        ),
        ("<a href=u><h2>h</h2>p</a>", f"## [h]({BASE}u)\n\n[p]({BASE}u)\n"),
        ("a<img alt='p [q]' src=i.png> <img src=j.png>b", f"a![p \\[q\\]]({BASE}i.png) b\n"),
        ("wow!<a href=u>x</a>", f"wow\\![x]({BASE}u)\n"),
        (
            "a <b>b <i>c</i></b> <s>d</s> <code>e`f</code> g<em>h</em>i<b>'j'</b>k",
            "a **b** ***c*** ~~d~~ ``e`f`` g*h*i'j'k\n",
        ),
        ("<b>a</b><i>b</i> <b> c </b>d", "ab **c** d\n"),
        (
            "<blockquote>a<blockquote><p>b<p>c</blockquote></blockquote>d",
            "> a\n>\n> > b\n> >\n> > c\n\nd\n",
        ),
        ("a<br>b<br><br>c<br>", "a\\\nb\n\nc\n"),
        (
            "<dl><dt>t<dd>d<dd>e<dt>u<div><dd><p>f<p>g</div></dl>",
            "- **t**\n  - d\n  - e\n- **u**\n  - f\n\n    g\n",
        ),
        (
            "# a<p>1. b<p>- c<p>+<p>===<p>> d<p>2) e",
            "\\# a\n\n1\\. b\n\n\\- c\n\n\\+\n\n\\===\n\n\\> d\n\n2\\) e\n",
        ),
        (
            "a_b __c__ &amp;amp; &lt;b> a &lt; b \\n",
            "a_b \\_\\_c\\_\\_ \\&amp; \\<b> a < b \\\\n\n",
        ),
        ("x<sup>2</sup><script>s</script><select><option>o</select><!-- c -->", "x2\n"),
    ],
)
def test_pages_of_each_kind(page: str, expected: str) -> None:
    assert markdown(page) == expected
    leaves(expected)


@tabled(
    "reference",
    [
        "<sup><a href='#fn'>1</a></sup>",
        "<a class=footnote-ref href='#fn'><sup>[1]</sup></a>",
        "<a role=doc-noteref href='#fn'>1</a>",
    ],
)
def test_footnotes(reference: str) -> None:
    page = (
        f"<p>said{reference}: so<ol><li id=fn><p>By <a href=/x>me</a>. <a href='#r'>↩</a>"
        "<p>more</ol>"
    )
    text = markdown(page)
    assert text == ("said[^1]: so\n\n[^1]: By [me](http://example.org/x).\n\n    more\n")
    tokens = [token.type for token in WITH_NOTES.parse(text)]
    assert tokens.count("footnote_open") == 1
    assert "footnote_ref" in {c.type for t in WITH_NOTES.parse(text) for c in t.children or ()}


def test_a_link_to_a_place_is_no_footnote() -> None:
    assert markdown("<a href='#x'>1</a><p id=x>y") == f"[1]({URL}#x)\n\ny\n"
    around = markdown("<div id=x>a<sup><a href='#x'>1</a></sup></div>")
    assert around == f"a[1]({URL}#x)\n"
    assert markdown("<sup><a href='#x'>1</a></sup>") == f"[1]({URL}#x)\n"


# Random trees


SIGNS = st.text(
    st.sampled_from("ab1 *_`[]()<>&#!|~-+=.:\\^;é\"'\xa0\u2019"), min_size=1, max_size=8
)
WORDS = SIGNS.filter(lambda text: text.strip(" \xa0"))
LINES = st.text(st.sampled_from("ab`~ \t\n#-*|<&"), min_size=1, max_size=12).map(
    lambda text: "x" + text.replace("\t", " \t") + "y"
)
inlines = st.recursive(
    WORDS.map(lambda text: ("", text)),
    lambda inner: st.tuples(
        st.sampled_from(["b", "i", "em", "s", "code", "span", "kbd"]), st.lists(inner, max_size=3)
    ),
    max_leaves=6,
)
linked = st.tuples(st.just("a"), st.lists(inlines, min_size=1, max_size=2))
lines = st.lists(inlines | linked, min_size=1, max_size=4)
blocks = st.recursive(
    st.tuples(st.sampled_from(["p", "h1", "h2", "h6"]), lines)
    | st.tuples(st.just("pre"), LINES)
    | st.tuples(
        st.just("table"), st.lists(st.lists(lines, min_size=2, max_size=3), min_size=1, max_size=3)
    ),
    lambda inner: (
        st.tuples(st.sampled_from(["blockquote", "div"]), st.lists(inner, min_size=1, max_size=3))
        | st.tuples(
            st.sampled_from(["ul", "ol", "dl"]),
            st.lists(st.lists(inner, min_size=1, max_size=3), min_size=1, max_size=3),
        )
    ),
    max_leaves=8,
)


def inline_html(parts: Any) -> str:
    found = []
    for tag, inside in parts:
        if not tag:
            found.append(escape(inside))
        else:
            attribute = " href='/t'" if tag == "a" else ""
            found.append(f"<{tag}{attribute}>{inline_html(inside)}</{tag}>")
    return "".join(found)


def text_of(parts: Any) -> str:
    return squeezed("".join(inside if not tag else text_of(inside) for tag, inside in parts))


def linked_texts(parts: Any) -> Iterator[str]:
    for tag, inside in parts:
        if tag == "a" and (words := text_of(inside)):
            yield words


def html_of(tree: Any) -> str:
    tag, inside = tree
    if tag == "pre":
        return f"<pre>\n{escape(inside)}</pre>"
    if tag == "table":
        rows = "".join(
            "<tr>" + "".join(f"<td>{inline_html(cell)}</td>" for cell in row) + "</tr>"
            for row in inside
        )
        return f"<table>{rows}</table>"
    if tag in ("ul", "ol", "dl"):
        item = "dd" if tag == "dl" else "li"
        items = [f"<{item}>{''.join(map(html_of, one))}</{item}>" for one in inside]
        return f"<{tag}>{''.join(items)}</{tag}>"
    if tag in ("blockquote", "div"):
        return f"<{tag}>{''.join(map(html_of, inside))}</{tag}>"
    return f"<{tag}>{inline_html(inside)}</{tag}>"


def expected_of(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[Leaf]:  # noqa: C901 - one branch a kind
    tag, inside = tree
    if tag == "pre":
        yield (*path, "pre ", inside.rstrip() + "\n")
    elif tag == "table":
        for row in inside:
            for cell in row:
                if words := text_of(cell):
                    yield (*path, "td", words)
    elif tag in ("ul", "ol", "dl"):
        number = 0
        for item in inside:
            found = [leaf for one in item for leaf in expected_of(one)]
            number += bool(found)
            for leaf in found:
                yield (*path, ("." if tag == "ol" else "-", number), *leaf)
    elif tag in ("blockquote", "div"):
        for one in inside:
            yield from expected_of(one, (*path, *[(">", 0)] * (tag == "blockquote")))
    elif words := text_of(inside):
        yield (*path, tag, words)


def inlines_of(tree: Any) -> Iterator[Any]:
    tag, inside = tree
    if tag in ("p", "h1", "h2", "h6"):
        yield inside
    elif tag == "table":
        for row in inside:
            yield from row
    elif tag in ("ul", "ol", "dl"):
        for item in inside:
            for one in item:
                yield from inlines_of(one)
    elif tag != "pre":
        for one in inside:
            yield from inlines_of(one)


@settings(max_examples=examples(120), deadline=None)
@given(st.lists(blocks, max_size=3))
def test_any_tree_is_read_back(trees: list[Any]) -> None:
    text = markdown("".join(map(html_of, trees)))
    assert leaves(text) == [leaf for tree in trees for leaf in expected_of(tree)]
    assert [words for _, words in links(text)] == [
        words for tree in trees for parts in inlines_of(tree) for words in linked_texts(parts)
    ]


TAGS = [
    "a",
    "b",
    "blockquote",
    "br",
    "code",
    "dd",
    "dl",
    "dt",
    "h2",
    "img",
    "li",
    "ol",
    "p",
    "pre",
    "s",
    "span",
    "sup",
    "table",
    "td",
    "th",
    "tr",
    "ul",
]
soup = st.lists(
    st.sampled_from([f"<{tag} href='#x' id=x alt=i class=lang-x>" for tag in TAGS])
    | st.sampled_from([f"</{tag}>" for tag in TAGS])
    | st.sampled_from(["w", " ", "*x_ ", "1. ", "\n", "\xa0"]),
    max_size=40,
).map("".join)


@settings(max_examples=examples(400), deadline=None)
@given(soup)
def test_any_soup_is_text_and_nothing_is_lost(page: str) -> None:
    """Of all blocks as without a choice; of none nothing."""
    document = LexborHTMLParser(page)
    text = to_markdown(document, Resolver(URL).resolve)
    leaves(text)
    found = FLATTENER.read(document)
    if found is None:
        return
    mask = found.blocks[:, kernels.WORDS] > 0
    assert to_markdown(document, Resolver(URL).resolve, Choice(found, mask)) == text
    assert to_markdown(document, Resolver(URL).resolve, Choice(found, ~mask)) == ""


# What is kept


@pytest.mark.parametrize("parser", [HtmlParser, TikaParser])
def test_the_blocks_that_are_the_text_are_written(parser: type[Parser]) -> None:
    whole, main = (
        parser(configuration(**{"parser.html.text": value}), {}).markdown(content(ARTICLE))
        for value in ("page", "main")
    )
    assert whole is not None
    assert main is not None
    assert f"- [Shop]({URL.partition('/dir')[0]}/shop)" in whole
    assert main.startswith("# Why there are two tides a day\n\nThe Moon pulls")
    assert "\n## Spring tides\n" in main
    assert "Shop" not in main
    assert "Copyright" not in main


def test_blocks_in_a_leaf_may_be_left_out() -> None:
    page = (
        "<p>a <button>b</button> c</p><ul><li>d<li>e</ul><table><tr><td>f<td>g</table><img alt=h>"
    )
    document = LexborHTMLParser(page)
    found = FLATTENER.read(document)
    assert found is not None
    texts = [found.text[a:b].decode() for a, b in found.blocks[:, [1, 2]].tolist()]
    mask = found.blocks[:, kernels.WORDS] < 0
    for kept in ("a", "c", "e", "g"):
        mask[texts.index(kept)] = True
    text = to_markdown(document, Resolver(URL).resolve, Choice(found, mask))
    assert (
        text
        == "a c\n\n- e\n\n|  |  |\n| --- | --- |\n|  | g |\n\n![h](http://example.org/dir/page.html)\n"
    )


@tabled(
    "page, fragment",
    [
        ("<h2 id=own><i id=in>Title</i></h2>", "own"),
        ("<h2><span class=mw-headline id=in>Title</span> <a href=/edit>edit</a></h2>", "in"),
        ("<h2>Title<a class=headerlink href='#of%20link'>¶</a></h2>", "of link"),
        (
            "<section id=sphinx>\n<span id=alias></span><h2>Title<a href='#sphinx'>¶</a></h2>",
            "sphinx",
        ),
        ("<section id=outer><div><header>\n<h2>Title</h2></header>", "outer"),
        ("<p>a</p><a name=before></a> <h2>Title</h2>", "before"),
        (
            "<div><h2>Title</h2><a id=user-content-title href='#title'><svg></svg></a></div>",
            "user-content-title",
        ),
        ("<section id=outer><p>a</p><h2>Title</h2>", ""),
        ("<main id=main><h2>Title</h2></main>", ""),
        ("<section id=outer>a<h2>Title</h2>", ""),
        ("<h2>Title<a id=next></a></h2>", "next"),
    ],
)
def test_the_anchor_of_a_heading(page: str, fragment: str) -> None:
    anchors: dict[int, str] = {}
    document = LexborHTMLParser("<p>z</p>" + page)
    text = to_markdown(document, Resolver(URL).resolve, anchors=anchors)
    at = next(number for number, line in enumerate(text.split("\n")) if line[:3] == "## ")
    assert anchors.get(at, "") == fragment
    assert len(anchors) == bool(fragment)
    assert "¶" not in text


def test_links_of_terms_and_figures_to_themselves_are_left_out() -> None:
    page = (
        "<dl><dt id='a.f g'><b>f</b>()<a href='#a.f%20g'>\uf0c1</a></dt>"
        "<dd>d <a href='#n'>*</a></dd></dl>"
        "<figure id=i><figcaption>c<a href='#i'>¶</a> <a href='#i'>i</a></figcaption></figure>"
    )
    found = to_markdown(LexborHTMLParser(page), Resolver(URL).resolve)
    assert "\uf0c1" not in found
    assert "¶" not in found
    assert f"[\\*]({URL}#n)" in found
    assert f"[i]({URL}#i)" in found


def test_parsers_give_anchors() -> None:
    page = content(ARTICLE.replace("<h2>", "<h2 id=x>"))
    for value in ("page", "main"):
        anchors: dict[int, str] = {}
        parser = HtmlParser(configuration(**{"parser.html.text": value}), {})
        lines = parser.markdown(page, anchors=anchors).split("\n")
        assert {lines[at] for at in anchors} == {"## Spring tides"}


def test_noindex_and_other_types_have_none() -> None:
    conf = configuration()
    assert HtmlParser(conf, {}).markdown(content("<meta name=robots content=noindex>a")) == ""
    assert TikaParser(conf, {}).markdown(content("a", "text/plain")) is None
    with pytest.raises(ConfigError):
        HtmlParser(configuration(**{"parser.html.text": "none"}), {})


# Hostile pages


@tabled(
    "page",
    [
        "<blockquote>" * 5000 + "deep",
        "<ul><li>a" * 1500,
        "<dl><dt>a<dd>b" * 1200,
        "<p>a" * 10_000,
        "<i>" * 3000 + "b",
        "<a href=u>" * 3000 + "b",
        "<table><tr><td>" * 3000 + "c",
        "<table><tr><td rowspan=65534 colspan=1000>x" + "<td>y" * 2000 + "<tr><td>z" * 2000,
        "<sup><a href='#n'>1</a></sup>" * 5000 + "<p id=n>n" * 5000,
        "<pre>" + "`" * 50_000 + "\n" * 50_000 + "</pre>",
        "<b>a</b><i>b</i>" * 5000,
        "_*[`&<" * 5000,
        "<code>" + "`".join("a" * 300) + "``</code>",
        "<div>" * 3000 + "<h2>d</h2>" * 3000,
    ],
)
def test_hostile_pages_are_written_in_lines_of_bounded_depth(page: str) -> None:
    text = markdown(page)
    is_bounded = 0 < len(text) < 40 * len(page) + 1000
    assert is_bounded
    most = max(len(line) - len(line.lstrip(" >")) for line in text.split("\n"))
    assert most <= 2 * MOST_NESTED
