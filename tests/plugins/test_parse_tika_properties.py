"""parse-tika's properties: the main text of pages, documents inside of documents."""

from __future__ import annotations

import pytest

from minutch.errors import ConfigError
from plugins.parse_tika import office
from plugins.parse_tika.package import Document
from plugins.parse_tika.parser import ALGORITHMS, MainText
from tests.support.officefiles import OOXML, paragraph, word
from tests.support.pages import configuration, content, links, parse, parse_all
from tests.support.pdffiles import attachments
from tests.support.pdffiles import pdf as pdf_of

SENTENCE = (
    "This sentence of the article is long enough for all of the rules that tell main text from the"
    " rest. "
)
OTHER = (
    "It goes on and on, so that no one who is in it for the end of it can say how far it is to go"
    " on. "
)
PAGE = f"""<!doctype html><html><head><title>The title</title>\
<meta name=robots content="noarchive"></head><body>
<div><a href=/home>Home</a> <a href=/news>News</a> <a href=/shop>Shop</a></div>
<div><a href=/about>About us</a></div>
<div>By a writer</div>
<div><p>{SENTENCE * 3}</p><p>{OTHER * 3}</p></div>
<div><a href=/imprint>Imprint</a> | <a href=/privacy>Privacy</a> | <a href=/terms>Terms</a></div>\
</body></html>"""


def main_text(page: str = PAGE, content_type: str = "text/html", **values: str) -> str:
    named = {name.replace("_", "."): value for name, value in values.items()}
    return parse(page, configuration("parse-tika", **named), content_type).text


class TestMainText:
    def test_only_if_asked_for(self) -> None:
        assert main_text().startswith("The title\nHome\nNews\nShop\n")
        text = main_text(tika_extractor="boilerpipe")
        article = ["By a writer", (SENTENCE * 3).strip(), (OTHER * 3).strip()]
        assert text == "\n".join(
            ["The title", "About us", *article]
        )  # boilerpipe takes the block before along

    def test_the_rest_comes_from_the_whole_page(self) -> None:
        found = parse(
            PAGE, configuration("parse-tika|headings", **{"tika.extractor": "boilerpipe"})
        )
        assert len(links(found)) == 7
        assert found.data.title == "The title"
        assert found.data.parse_meta["caching.forbidden"] == ["content"]

    @pytest.mark.parametrize("algorithm", ALGORITHMS)
    def test_algorithms(self, algorithm: str) -> None:
        values = {"tika.extractor": "boilerpipe", "tika.extractor.boilerpipe.algorithm": algorithm}
        text = main_text(**values)
        assert SENTENCE.strip() in text
        assert ("Imprint" in text) is (algorithm == "KeepEverythingExtractor")

    def test_types(self) -> None:
        values = {
            "tika.extractor": "boilerpipe",
            "tika.extractor.boilerpipe.mime.types": "application/xhtml+xml",
        }
        assert "Imprint" in main_text(**values)
        assert "Imprint" not in main_text(content_type="application/xhtml+xml", **values)

    def test_noindex_counts(self) -> None:
        assert main_text(PAGE.replace("noarchive", "noindex"), tika_extractor="boilerpipe") == ""

    @pytest.mark.parametrize(
        ("page", "text"),
        [
            ("", ""),
            ("plain", ""),
            ("<title>t", "t"),
            ("<" * 100_000, ""),
            ("<div>" * 5_000 + "x", ""),
            ("<!--" * 1000 + "<script>" + "<a x=" * 10_000, ""),
        ],
    )
    def test_odd_pages(self, page: str, text: str) -> None:
        assert (
            main_text(page, tika_extractor="boilerpipe", **{"parser.html.max.depth": "10000"})
            == text
        )

    def test_a_failing_algorithm_leaves_all_of_the_text(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def fail(markup: str) -> object:
            raise AttributeError("lower")

        main = MainText("ArticleExtractor", frozenset())
        monkeypatch.setattr(main._extractor, "get_doc", fail)
        from plugins.lib_html.walk import ParsedMarkup

        assert main.text(b"<p>x", ParsedMarkup(text=b"all of it")) == "all of it"
        assert "no main text: AttributeError: lower" in caplog.text

    @pytest.mark.parametrize(
        ("name", "value"),
        [("tika.extractor", "goose"), ("tika.extractor.boilerpipe.algorithm", "BestExtractor")],
    )
    def test_wrong_values(self, name: str, value: str) -> None:
        with pytest.raises(ConfigError, match=f"{name}: expected .*found '{value}'"):
            MainText.from_conf(configuration("parse-tika", **{name: value}))


WORD = word(paragraph("One line") + paragraph("a note"))


def pdf(**files: bytes) -> bytes:
    """A PDF with attachments; `_` stands for the dot of a name."""
    objects, catalog = attachments(**files)
    return pdf_of("", more=objects, catalog=catalog)


def with_objects(**members: bytes) -> bytes:
    """A document of Word's with objects in it."""
    files = {name.replace("_", "."): data for name, data in members.items()}
    targets = {f"r{at}": f"package objects/{name}" for at, name in enumerate(files)}
    body = paragraph("One line") + paragraph("a note")
    return word(body, {f"word/objects/{name}": data for name, data in files.items()}, **targets)


def embedded_texts(data: bytes) -> list[str]:
    """The texts of the documents inside of one."""
    found = Document()
    office.add_embedded(data, found, lambda page: (page.decode(), []))
    return found.text.splitlines()


class TestEmbedded:
    @pytest.mark.parametrize(("value", "inner"), [("true", "\ninside"), ("false", "")])
    def test_an_attachment(self, value: str, inner: str) -> None:
        conf = configuration("parse-tika", **{"tika.parse.embedded": value})
        found = parse(pdf(note_txt=b"inside"), conf, "application/pdf")
        assert found.text == inner.strip()
        own = parse(WORD, conf, f"{OOXML}wordprocessingml.document").text
        both = parse(with_objects(o_txt=b"inside"), conf, f"{OOXML}wordprocessingml.document").text
        assert both == own + inner

    def test_documents_in_documents(self) -> None:
        inner = with_objects(deep_txt=b"deepest")
        texts = embedded_texts(pdf(b_docx=inner, a_txt=b"first", c_bin=b"\0\1"))
        assert texts == ["first", "One line", "a note", "deepest"]

    def test_not_without_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        data = b""
        for _ in range(6):
            objects, catalog = attachments(x_pdf=data)
            data = pdf_of("page", more=objects, catalog=catalog)
        assert len(embedded_texts(data)) == office.MOST_DEPTH
        monkeypatch.setattr(office, "MOST_DOCUMENTS", 2)
        assert len(embedded_texts(pdf(a_txt=b"1", b_txt=b"2", c_txt=b"3"))) == 2
        monkeypatch.setattr(office, "MOST_BYTES", 10)
        assert embedded_texts(pdf(a_txt=b"12345678901")) == []

    @pytest.mark.parametrize("data", [b"", b"%PDF-1.7 /EmbeddedFile", b"PK\x03\x04 junk", b"text"])
    def test_what_is_broken_has_none(self, data: bytes) -> None:
        assert embedded_texts(data) == []

    def test_a_broken_object_does_not_spoil_the_document(self) -> None:
        conf = configuration("parse-tika")
        data = with_objects(a_docx=b"PK\x03\x04 junk", b_pdf=b"%PDF-junk", c_txt=b"good")
        result = parse_all(content(data, f"{OOXML}wordprocessingml.document"), conf)
        (document,) = result.values()
        assert document.text.endswith("a note\ngood")


def test_parse_filters_see_other_documents_too() -> None:
    german = "Der schnelle braune Fuchs springt über den faulen Hund und läuft in den Wald zurück."
    conf = configuration("parse-tika|language-identifier|headings", headings="title,p")
    found = parse(german, conf, "text/plain").data.parse_meta
    assert (found["language"], found["p"]) == (["de"], [german])
    found = parse(WORD, conf, f"{OOXML}wordprocessingml.document").data.parse_meta
    assert (found["title"], found["p"]) == (["The title"], ["One line"])
