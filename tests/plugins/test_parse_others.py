"""parse-text, parse-tika, feed, parse-js, parse-zip, parse-ext: one document or several of each
type.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from minutch.conf import Configuration
from minutch.cycle.parse.dispatch import ParserNotFound
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import NutchDocument
from minutch.records.parsedata import FAILED, FAILED_TRUNCATED, SUCCESS
from plugins.feed.parser import FeedIndexingFilter
from tests.support.examples import tabled
from tests.support.pages import URL, configuration, content, links, parse, parse_all

RSS = """<?xml version="1.0"?>
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel>
<title>News &amp; <![CDATA[<b>more</b>]]></title><link>http://example.org/</link>\
<description>All the news</description>
<item><title>One</title><link>http://example.org/1</link><description>
&lt;p&gt;First &lt;a href="/x"&gt;x&lt;/a&gt;</description>
<author>a@example.org</author><category>c1</category><category>c2</category>
<pubDate>Sat, 21 Nov 2026 10:00:00 GMT</pubDate></item>
<item><title>Two</title><guid>http://example.org/2</guid>\
<content:encoded>&lt;b&gt;Second&lt;/b&gt;</content:encoded></item>
<item><title>No link</title><guid isPermaLink="false">123</guid></item>
</channel></rss>"""

ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>A feed</title><subtitle>Sub</subtitle>
<link rel="self" href="http://example.org/feed"/><link href="http://example.org/"/>
<entry><title>E</title><link rel="alternate" href="http://example.org/e"/><summary>plain &amp; \
simple</summary>
<author><name>N</name></author><category term="t"/><published>2026-11-21T10:00:00Z</published>
<updated>2026-11-21T11:00:00+01:00</updated></entry></feed>"""

SITEMAP = """<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc>http://example.org/a</loc><lastmod>2026-01-01</lastmod></url><url><loc> /b </loc></url>\
</urlset>"""


def archive(**members: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in members.items():
            file.writestr(name.replace("_", "."), text)
    return out.getvalue()


TIKA = configuration("parse-tika")


class TestText:
    def test_parse_text_keeps_the_text(self) -> None:
        found = parse(
            "two  lines\nsee http://e.org/x#y.", configuration("parse-text"), "text/plain"
        )
        assert found.text == "two  lines\nsee http://e.org/x#y."
        assert links(found) == [("http://e.org/x#y.", "")]

    def test_parse_tika_folds_it(self) -> None:
        assert parse("two  lines\n\tx", TIKA, "text/csv").text == "two lines x"

    def test_charset(self) -> None:
        page = content(
            "Žluťoučký".encode("iso-8859-2"), "text/plain", header="text/plain; charset=latin2"
        )
        assert parse_all(page, TIKA)[URL].text == "Žluťoučký"


class TestTika:
    def test_json_is_text(self) -> None:
        assert parse('{"a":  1}', TIKA, "application/json").text == '{"a": 1}'

    def test_html_too(self) -> None:
        found = parse("<title>T</title><a href=x>y</a>", TIKA)
        assert (found.data.title, links(found)) == ("T", [("http://example.org/dir/x", "y")])

    def test_xml(self) -> None:
        found = parse(
            "<doc><title>T</title><p>a <b>b</b></p>http://e.org/q</doc>", TIKA, "application/xml"
        )
        assert (found.data.title, found.text) == ("T", "T a b http://e.org/q")
        assert links(found) == [("http://e.org/q", "")]

    def test_sitemap(self) -> None:
        found = parse(SITEMAP, TIKA, "text/xml")
        assert links(found) == [("http://example.org/a", ""), ("http://example.org/b", "")]

    @pytest.mark.parametrize(
        ("page", "content_type", "expected"),
        [
            (
                RSS,
                "application/rss+xml",
                [("http://example.org/1", "One"), ("http://example.org/2", "Two")],
            ),
            (ATOM, "application/atom+xml", [("http://example.org/e", "E")]),
        ],
    )
    def test_feed_is_one_page(
        self, page: str, content_type: str, expected: list[tuple[str, str]]
    ) -> None:
        assert links(parse(page, TIKA, content_type)) == expected

    def test_what_it_cannot_read_has_nutchs_status(self) -> None:
        status = parse(b"\x89PNG", TIKA, "image/png").data.status
        assert (status.major, status.args) == (
            FAILED,
            ["Can't retrieve Tika parser for mime-type image/png"],
        )

    def test_entities_of_its_own_are_not_expanded(self) -> None:
        bomb = (
            '<!DOCTYPE d [<!ENTITY a "xx"><!ENTITY b "&a;&a;"><!ENTITY f SYSTEM'
            ' "file:///etc/passwd">]><d>t&b;&f;</d>'
        )
        assert parse(bomb, TIKA, "text/xml").text == "t&b;&f;"

    def test_without_it_there_is_no_parser(self) -> None:
        with pytest.raises(ParserNotFound, match="text/plain"):
            parse("x", configuration(), "text/plain")


class TestFeed:
    CONF = configuration("feed|parse-html|parse-text", parse_plugin_file="parse-plugins.xml")

    def test_a_document_for_each_entry(self) -> None:
        result = parse_all(content(RSS, "application/rss+xml"), self.CONF)
        assert list(result) == ["http://example.org/1", "http://example.org/2", URL]
        first = result["http://example.org/1"]
        assert (first.text, first.data.title, first.is_original) == ("First x", "One", False)
        assert links(first) == [("http://example.org/x", "x")]
        assert first.data.parse_meta["author"] == ["a@example.org"]
        assert first.data.parse_meta["tag"] == ["c1", "c2"]
        assert first.data.parse_meta["published"] == ["1795255200000"]
        assert first.data.parse_meta["feed"] == ["http://example.org/"]
        assert "Content-Type" not in first.data.content_meta
        assert result["http://example.org/2"].text == "Second"
        own = result[URL]
        assert (own.text, own.data.title, own.is_original) == ("All the news", "News & more", True)
        assert own.data.content_meta["Content-Type"] == ["application/rss+xml"]

    def test_entries_have_no_content_type_of_the_feed(self) -> None:
        """RFC 9110, 5.1: whatever the case of the header's name, as segments of others have it."""
        page = content(ATOM, "application/atom+xml")
        page.metadata["content-type"] = page.metadata.pop("Content-Type")
        found = [one for one in parse_all(page, self.CONF).values() if not one.is_original]
        assert {one.data.meta("Content-Type") for one in found} == {None}

    @pytest.mark.parametrize(
        ("feed", "text"),
        [
            ("<rss version='0.91'><channel><item>{}</item></channel></rss>", "<b>x</b> y"),
            ("<rss version='0.92'><channel><item>{}</item></channel></rss>", "x y"),
            ("<RDF xmlns='http://purl.org/rss/1.0/'><channel/><item>{}</item></RDF>", "<b>x</b> y"),
        ],
    )
    def test_descriptions_are_markup_from_092_on(self, feed: str, text: str) -> None:
        item = "<link>http://example.org/i</link><description>&lt;b&gt;x&lt;/b&gt; y</description>"
        result = parse_all(content(feed.format(item), "application/rss+xml"), self.CONF)
        assert result["http://example.org/i"].text == text

    def test_only_alternate_links_name_an_entry(self) -> None:
        page = ATOM.replace('rel="alternate"', 'rel="enclosure"')
        assert list(parse_all(content(page, "application/atom+xml"), self.CONF)) == [URL]

    def test_atom(self) -> None:
        entry = parse_all(content(ATOM, "application/atom+xml"), self.CONF)["http://example.org/e"]
        assert (entry.text, entry.data.title) == ("plain & simple", "E")
        assert entry.data.parse_meta["updated"] == ["1795255200000"]
        assert entry.data.parse_meta["author"] == ["N"]

    def test_an_entry_without_a_parser_for_its_type_fails_alone(self) -> None:
        result = parse_all(content(ATOM, "application/atom+xml"), configuration("feed|parse-html"))
        assert result["http://example.org/e"].data.status.major == FAILED
        assert result[URL].data.status.major == SUCCESS

    def test_an_entry_beyond_the_limits_is_empty_and_the_others_are_read(self) -> None:
        page = RSS.replace("Second", "&lt;b&gt;" * 10_000)
        result = parse_all(content(page, "application/rss+xml"), self.CONF)
        assert result["http://example.org/1"].text == "First x"
        assert result["http://example.org/2"].text == ""

    def test_links_that_filters_reject_have_no_document(self) -> None:
        page = RSS.replace("http://example.org/1", "ftp://example.org/1")
        assert "ftp://example.org/1" not in parse_all(
            content(page, "application/rss+xml"), self.CONF
        )

    @pytest.mark.parametrize("page", ["", "<html><body>x</body></html>", "no xml"])
    def test_what_is_no_feed_fails(self, page: str) -> None:
        assert (
            parse_all(content(page, "application/rss+xml"), self.CONF)[URL].data.status.major
            == FAILED
        )

    def test_index_fields(self) -> None:
        entry = parse_all(content(RSS, "application/rss+xml"), self.CONF)["http://example.org/1"]
        doc = FeedIndexingFilter(Configuration(), {}).filter(
            NutchDocument(), entry, URL, CrawlDatum(), None
        )
        assert doc is not None
        assert doc.first("author") == "a@example.org"
        assert doc.first("publishedDate") == 1795255200000


A = 'xmlns="http://www.w3.org/2005/Atom"'


def rss(item: str, more: str = "") -> str:
    return f'<rss version="2.0" {more}><channel><title>F</title>{item}</channel></rss>'


class TestFeedsOfTheWeb:
    """What feeds say is read alike by both parsers: as one page with links, and entry by entry."""

    CONF = TestFeed.CONF.with_values({"urlfilter.regex.rules": "+."})

    @tabled(
        ("feed", "target"),
        [
            # XML Base, section 4: outer bases first, each relative to the one around it
            (f'<feed {A} xml:base="/b/"><entry><link href="e"/></entry></feed>', "/b/e"),
            (
                f'<feed {A} xml:base="/b/"><entry xml:base="c/"><link href="e"/></entry></feed>',
                "/b/c/e",
            ),
            (f'<feed {A}><entry><link xml:base="/l/" href="e"/></entry></feed>', "/l/e"),
            # RFC 3986, section 5.1.3: without one the document's own URL
            (f'<feed {A}><entry><link href="e"/></entry></feed>', "/dir/e"),
            # RFC 4287, section 4.1.3.2: content that is elsewhere
            (f'<feed {A} xml:base="/b/"><entry><content src="s"/></entry></feed>', "/b/s"),
            # Namespaces in XML 1.0, section 6: a name is a namespace and a local name
            (
                rss(
                    '<item><atom:link rel="replies" href="/no"/><link>/yes</link></item>',
                    'xmlns:atom="http://www.w3.org/2005/Atom"',
                ),
                "/yes",
            ),
            (rss('<item><atom:link rel="replies" href="/no"/><link>/yes</link></item>'), "/yes"),
            # XML 1.0, section 4.1: no reference without its semicolon
            (rss("<item><link>/p?a=1&b=2&copy=3</link></item>"), "/p?a=1&b=2&copy=3"),
            (rss("<item><link>/p?a=1&amp;b=2</link></item>"), "/p?a=1&b=2"),
            (rss("<item><link><![CDATA[/p?a=1&b=2]]></link></item>"), "/p?a=1&b=2"),
            ('\n\n<?xml version="1.0"?>' + rss("<item><link>/p</link></item>"), "/p"),
            ('\ufeff\n<?xml version="1.0"?>' + rss("<item><link>/p</link></item>"), "/p"),
        ],
    )
    def test_links(self, feed: str, target: str) -> None:
        kind = "application/atom+xml" if "<feed" in feed else "application/rss+xml"
        url = f"http://example.org{target}"
        assert links(parse(feed, TIKA, kind))[0][0] == url
        assert url in parse_all(content(feed, kind), self.CONF)

    def test_links_in_an_entrys_markup(self) -> None:
        """RFC 4287, section 2: `xml:base` holds for the references in its content, too."""
        feed = (
            f'<feed {A} xml:base="/b/"><entry><link href="e"/>'
            '<content type="html">&lt;a href="x"&gt;x&lt;/a&gt;</content></entry>'
            '<entry><link href="f"/><content type="xhtml"><h:div xml:base="c/"'
            ' xmlns:h="http://www.w3.org/1999/xhtml"><h:a href="y">y</h:a></h:div></content>'
            "</entry></feed>"
        )
        found = parse_all(content(feed, "application/atom+xml"), self.CONF)
        assert links(found["http://example.org/b/e"]) == [("http://example.org/b/x", "x")]
        assert links(found["http://example.org/b/f"]) == [("http://example.org/b/c/y", "y")]

    @pytest.mark.parametrize(
        ("title", "text"),
        [
            ("A&nbsp;B caf&eacute;", "A B caf\u00e9"),  # the names of the HTML standard
            ("&lt;b&gt;A&lt;/b&gt; &amp;amp; B", "A & B"),
            ("1 < 2 &lt; 3", "1 < 2 < 3"),  # HTML, section 13.2.5.6: no tag without a letter
            ("AT&T", "AT&T"),
        ],
    )
    def test_titles(self, title: str, text: str) -> None:
        feed = rss("").replace("<title>F", f"<title>{title}")
        assert parse(feed, TIKA, "application/rss+xml").data.title == text

    def test_a_title_of_atom_that_is_text_has_no_markup(self) -> None:
        """RFC 4287, section 3.1.1.1."""
        feed = f"<feed {A}><title>Use &lt;b&gt;</title></feed>"
        assert parse(feed, TIKA, "application/atom+xml").data.title == "Use <b>"

    @pytest.mark.parametrize("charset", ["iso-8859-1", "utf-16", "utf-8"])
    def test_charsets(self, charset: str) -> None:
        """XML 1.0, section 4.3.3, and appendix F."""
        feed = f'<?xml version="1.0" encoding="{charset}"?>' + rss("").replace(">F<", ">\u00e9<")
        page = content(feed.encode(charset), "application/rss+xml")
        assert parse_all(page, TIKA)[URL].data.title == "\u00e9"


class TestScripts:
    CONF = configuration("parse-js|parse-html")

    def test_a_file(self) -> None:
        script = (
            "var first = 1;\nload('lib/a.js'); go(\"http://o.org/p?x=1&amp;y\"); n('plain');"
            " q('www.w.org/z')"
        )
        found = parse(script, self.CONF, "application/x-javascript")
        assert found.data.title == "var first = 1;"
        assert [url for url, _ in links(found)] == [
            "http://example.org/dir/lib/a.js",
            "http://o.org/p?x=1&y",
            "http://www.w.org/z",
        ]

    def test_only_strings_that_are_urls(self) -> None:
        script = """a('/x'); b('../y.html'); c('http://o.org/z'); d('//o.org/w');
            // http://o.org/in-words.
            e('text/html'); f('lodash.js'); g('/[a-z]*/b'); h('/${id}/c'); i('/u/{id}'); j('/')"""
        conf = configuration("parse-js|parse-html", parse_js_strings="urls")
        assert [url for url, _ in links(parse(script, conf, "text/javascript"))] == [
            "http://example.org/x",
            "http://example.org/y.html",
            "http://o.org/z",
            "http://o.org/w",
            "http://o.org/in-words",
        ]

    @tabled(
        ("script", "urls"),
        [
            ("go('/blog/' + \"new\")", "/blog/new"),
            (
                "const ROOT = '/api';\nget(ROOT + '/users'); get(ROOT+'/tags')",
                "/api /api/users /api/tags",
            ),
            ("var b='/q',base='/o',page='p';x(base + '/' + page);x(b + page)", "/q /o /o/p"),
            ("go('/blog/' + id); go(id + '/edit'); go('/at/'.concat(id)); i++; x('/n')", "/n"),
            ("let name = '/x'; name = '/y'; go(name + '/z')", "/x /y"),
            ("let name = '/x'; name += id; go(name + '/z')", "/x"),
            ("let bas = ''; go(bas + '/z'); go(bas.x + '/no'); go(bas[1] + '/no')", "/z"),
            ("go('/a' + '/b' + id()); go(id() + '/a' + '/b'); go(f + 'http://o.org/q')", ""),
            ("let it = '/x'; function f(it) { go(it + '/z') }", "/x"),
        ],
    )
    def test_sums(self, script: str, urls: str) -> None:
        """Strings that a script joins with others are links together, if all are known."""
        conf = configuration("parse-js|parse-html", parse_js_strings="urls")
        found = [url for url, _ in links(parse(script, conf, "text/javascript"))]
        assert [url.removeprefix("http://example.org") for url in found] == urls.split()

    @pytest.mark.parametrize("text", ["aaa+", "aaa ", "'/a'+", "aaa=", "'", "+ ", "aaa='/x'\n"])
    def test_sums_of_many(self, text: str) -> None:
        """Neither time nor memory grows with the square of a script."""
        script = f"aaa = '{'/x' * 4000}'\n{text * 50_000}"
        conf = configuration("parse-js|parse-html", parse_js_strings="urls")
        assert len(links(parse(script, conf, "text/javascript"))) <= 50_001

    def test_within_a_page(self) -> None:
        page = """<body onload="go('on/load')"><script>x('in/script')</script>
        <a href="javascript:open('in/href')">j</a><a href="plain.html">p</a>"""
        assert [
            url.removeprefix("http://example.org/dir/") for url, _ in links(parse(page, self.CONF))
        ] == [
            "on/load",
            "in/script",
            "in/href",
            "plain.html",
        ]


class TestArchives:
    CONF = configuration("parse-zip|parse-html|parse-text")

    def test_members(self) -> None:
        data = archive(
            a_html="<a href=x>link</a>", b_txt="text http://e.org/t", c_bin="\0", README="no suffix"
        )
        found = parse(data, self.CONF, "application/zip")
        assert found.text == "a.html link b.txt text http://e.org/t "
        assert [url for url, _ in links(found)] == [
            "http://example.org/dir/page.html/x",
            "http://e.org/t",
        ]

    def test_types_by_content(self) -> None:
        found = parse(
            archive(a_txt="<html><a href=x>link</a>", b_zip="text"), self.CONF, "application/zip"
        )
        assert found.text == "a.txt link b.zip text "

    def test_archives_inside_each_other(self) -> None:
        nested = archive(a_txt="innermost")
        for _ in range(3):
            nested = archive(a_zip=nested)
        assert "innermost" in parse(nested, self.CONF, "application/zip").text
        for _ in range(50):
            nested = archive(a_zip=nested, b_txt="beside")
        found = parse(nested, self.CONF, "application/zip")
        assert found.text.count("beside") == 4
        assert "innermost" not in found.text
        assert "innermost" in parse(archive(a_txt="innermost"), self.CONF, "application/zip").text

    def test_archives_inside_share_the_bounds(self) -> None:
        inner = archive(**{f"m{number}_txt": "word" for number in range(40)})
        outer = archive(**{f"n{number}_zip": inner for number in range(40)})
        assert (
            parse(outer, self.CONF, "application/zip").text.count("word") == 1000 - 1000 // 41 - 1
        )
        bomb = archive(a_txt="x" * (40 << 20))
        found = parse(archive(a_zip=bomb, b_zip=bomb, c_txt="late"), self.CONF, "application/zip")
        assert len(found.text) < 64 << 20
        assert "late" not in found.text

    def test_truncated(self) -> None:
        page = content(archive(a_txt="x")[:-5], "application/zip", Content_Length="1000")
        assert parse_all(page, self.CONF)[URL].data.status.minor == FAILED_TRUNCATED

    def test_broken(self) -> None:
        assert parse(b"PK\x03\x04 no zip", self.CONF, "application/zip").data.status.major == FAILED


class TestCommands:
    CONF = configuration("parse-ext")

    def test_output_is_text_and_links(self) -> None:
        found = parse("see http://e.org/a", self.CONF, "application/vnd.nutch.example.cat")
        assert found.text == "see http://e.org/a"
        assert links(found) == [("http://e.org/a", "")]

    def test_the_parameters_are_those_of_the_type(self) -> None:
        assert parse("", self.CONF, "application/vnd.nutch.example.md5sum").text.startswith(
            "d41d8cd98f00b204e9800998"
        )

    def test_a_command_that_fails(self) -> None:
        from plugins.parse_ext.command import ExtParser

        parser = ExtParser(Configuration(), {"command": "./example"})
        status = parser.get_parse(content("x", "other/type"))[URL].data.status
        assert status.major == FAILED
        assert "unknown type other/type" in (status.message or "")

    def test_no_program_is_taken_from_the_working_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from plugins.parse_ext.command import ExtParser

        (tmp_path / "planted").write_text("#!/bin/sh\ntouch was-run\n")
        (tmp_path / "planted").chmod(0o755)
        monkeypatch.chdir(tmp_path)
        parser = ExtParser(Configuration(), {"command": "./planted"})
        status = parser.get_parse(content("x", ""))[URL].data.status
        assert (status.major, (tmp_path / "was-run").exists()) == (FAILED, False)
        parser = ExtParser(Configuration(), {"command": str(tmp_path / "planted")})
        assert parser.get_parse(content("x", ""))[URL].data.status.is_success

    def test_a_command_that_hangs(self) -> None:
        from plugins.parse_ext.command import ExtParser

        parser = ExtParser(Configuration(), {"command": "tail -f /dev/null", "timeout": "1"})
        assert parser.get_parse(content("x", ""))[URL].data.status.major == FAILED
