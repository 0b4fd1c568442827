"""Charsets: who says what first, labels, and a labelled set in more than 18 encodings that says
nothing.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.charsets import Charset, lookup
from minutch.cycle.parse.charset import GUESS_LIMIT, CharsetDetector, declared_labels, from_header
from minutch.errors import ConfigError
from tests.support.charset_texts import TEXTS
from tests.support.examples import tabled
from tests.support.pages import configuration

DETECTOR = CharsetDetector(configuration())
NUTCHS = CharsetDetector(configuration(**{"parser.character.encoding.detect": "false"}))

# The same text three times over, as pages of different make-up: enough words, few words, many
# links.
SHAPES = (
    "<html><head><title>{0}</title></head><body><p>{1}</p></body></html>",
    (
        "<html><head><title>{0}</title></head><body><ul><li><a"
        " href='1.html'>{0}</a><li>{1}</ul><!-- {1} --></body></html>"
    ),
    (
        "<!DOCTYPE html><title>{0}</title><script>var x = 1;</script><div"
        " class='menu'>{1}</div><div>{1}</div>"
    ),
)


def as_page(html: str, charset: Charset) -> bytes:
    """A page's bytes, with references to the characters that its charset lacks."""
    try:
        return charset.encode(html)
    except UnicodeError:
        return b"".join(
            as_page(f"&#{ord(each)};" if len(html) == 1 else each, charset) for each in html
        )


def labelled() -> list[tuple[str, str, str, bytes]]:
    """Language, encoding, text and bytes of every page of the set."""
    pages = []
    for language, (text, encodings) in TEXTS.items():
        for encoding in ("utf-8", *encodings):
            charset = lookup(encoding)
            assert charset is not None
            for shape in SHAPES:
                html = shape.format(text[:40], text)
                data = as_page(html, charset)
                pages.append((language, encoding, charset.decode(data), data))
    return pages


def test_pages_that_declare_nothing() -> None:
    pages = labelled()
    wrong = [
        (language, encoding, DETECTOR.detect(data).name)
        for language, encoding, html, data in pages
        if DETECTOR.detect(data).decode(data) != html
    ]
    assert len({encoding for _, encoding, _, _ in pages}) >= 18
    assert len(pages) >= 150
    assert len(wrong) <= len(pages) * 4 / 269, wrong


@pytest.mark.parametrize("encoding", ["utf-8", "shift_jis", "euc-jp", "iso-2022-jp"])
def test_pages_cut_off_within_a_character(encoding: str) -> None:
    charset = lookup(encoding)
    assert charset is not None
    data = charset.encode(f"<title>{TEXTS['japanese'][0]}</title>")
    for end in range(len(data) - 12, len(data)):
        assert DETECTOR.detect(data[:end]).name == encoding, end


@pytest.mark.parametrize(
    ("encoding", "language"), [("gb18030", "chinese"), ("big5", "taiwanese"), ("euc-kr", "korean")]
)
def test_long_pages_of_which_the_start_is_looked_at(encoding: str, language: str) -> None:
    charset = lookup(encoding)
    assert charset is not None
    data = charset.encode(TEXTS[language][0])
    for before in range(4):
        page = b"x" * before + data * (GUESS_LIMIT // len(data) + 1)
        assert DETECTOR.detect(page) == charset, before


def test_the_top_level_domain_is_a_hint() -> None:
    data = "<p>" + TEXTS["ukrainian"][0][:60]
    assert DETECTOR.detect(data.encode("cp1251"), url="http://h.ua/").codec == "windows-1251"


@tabled(
    ("data", "header", "name"),
    [
        (b"\xef\xbb\xbf<meta charset=koi8-r>", "text/html; charset=latin1", "utf-8"),
        (b"\xff\xfe<\0p\0", None, "utf-16le"),
        (b"\xfe\xff\0<\0p", None, "utf-16be"),
        (b"<meta charset=koi8-r>", 'text/html; charset="Windows-1251"', "windows-1251"),
        (b"<meta charset=koi8-r>", "text/html; charset=nonsense", "koi8-r"),
        (
            (
                b"<meta charset=koi8-r><meta http-equiv=content-type content='text/html;"
                b" charset=big5'>"
            ),
            None,
            "koi8-r",
        ),
        (
            b"<META  HTTP-EQUIV='Content-Type' content=\"text/html;charset = EUC-JP\">",
            None,
            "euc-jp",
        ),
        (b"<meta name=x charset='gb2312'>", None, "gb2312"),
        (
            (
                b"<meta name=x content='charset=big5'><meta http-equiv=refresh content='0;"
                b" charset=big5'>"
            ),
            None,
            "windows-1252",
        ),
        (
            b"<meta name=charset content=big5><meta data-charset=big5><meta/CHARSET = ' x-sjis '/>",
            None,
            "shift_jis",
        ),
        (
            b"<meta http-equiv='content-type content='text/html; charset=koi8-r'>",
            None,
            "windows-1252",
        ),
        (b"<meta http-equiv=content-type charset=koi8-r>", "text/html; charset='big5'", "koi8-r"),
        (b"<!--" + b"x" * 4000 + b"--><meta charset=utf8>", None, "utf-8"),
        (b"<!--" + b"x" * 8190 + b"--><meta charset=utf8>", None, "windows-1252"),
        (b"<meta charset=utf-16>", None, "utf-8"),
        (b"<meta charset=nonsense>\xc3\xa9", None, "utf-8"),
        (b"<!-- <meta charset=gbk> --><meta charset=utf-8>", None, "utf-8"),
        (b"<!--><meta charset=koi8-r>", None, "koi8-r"),
        (
            b"<!-- saved from url=(0014)about:<meta charset=gbk> --><meta charset=big5>",
            None,
            "big5",
        ),
        (b"<meta name=d content='<meta charset=gbk>'><meta charset=koi8-r>", None, "koi8-r"),
        (b"<p title='> <meta charset=gbk>'><meta charset=koi8-r>", None, "koi8-r"),
        (b"<meta content='a > b'><META/CHARSET = 'koi8-r' >", None, "koi8-r"),
        (b"<? <meta charset=gbk> ?><! <meta charset=big5><meta charset=koi8-r>", None, "koi8-r"),
        (
            b"<meta charset=utf-8><meta http-equiv=content-type content='text/html;charset=gbk'>",
            None,
            "utf-8",
        ),
        (b"<meta charset=none><meta charset=koi8-r>", None, "koi8-r"),
        (b"<meta content='charset=gbk'><meta charset=koi8-r>", None, "koi8-r"),
        (b"<meta http-equiv=content-type content='charset; charset = koi8-r;x'>", None, "koi8-r"),
        (b"<meta data-charset=gbk charset=koi8-r charset=gbk>", None, "koi8-r"),
        (b"<metacharset=gbk><meta charset=koi8-r", None, "koi8-r"),
        ("déjà vu, à l'été, où êtes-vous".encode() * 3 + b"\xff", None, "utf-8"),
        (b"plain ascii", None, "windows-1252"),
        (b"", None, "windows-1252"),
        (b"caf\xe9 au lait", None, "windows-1252"),
        (b"caf\xc3\xa9", None, "utf-8"),
        (b"d\xc3\xa9j\xc3\xa0 cut off caf\xc3", None, "utf-8"),
        (b"un caf\xe9", None, "windows-1252"),
        (b"<\0!\0d\0o\0", None, "utf-16le"),
        (b"<?xml version='1.0' encoding='iso-8859-2'?><p>\xb3", None, "iso-8859-2"),
        (b"\x1b$B%F%9%H\x1b(B", None, "iso-2022-jp"),
    ],
)
def test_order(data: bytes, header: str | None, name: str) -> None:
    """Of declarations: HTML Standard, 13.2.3.2 (prescan)."""
    assert DETECTOR.detect(data, header).name == name


def test_xhtml_declares_its_charset_as_xml_does() -> None:
    """XML 1.0, 4.3.3; of a page of HTML the meta element counts."""
    page = b"<?xml version='1.0' encoding='koi8-r'?><meta charset=windows-1251>\xf0"
    assert DETECTOR.detect(page, None, "application/xhtml+xml").name == "koi8-r"
    assert DETECTOR.detect(page, None, "text/html").name == "windows-1251"


@pytest.mark.parametrize(
    "page",
    [
        "<?xml version='1.0' encoding='UTF-16'?><p>d\xe9j\xe0 vu</p>",
        "<meta charset=no-charset><meta charset=utf-16><p>d\xe9j\xe0 vu</p>",
    ],
)
def test_what_can_be_read_in_ascii_is_not_in_utf_16(page: str) -> None:
    """HTML Standard, 13.2.3.2: a declaration that is read means UTF-8 then."""
    assert DETECTOR.detect(page.encode(), None, "application/xhtml+xml").name == "utf-8"


def test_nutchs_way_is_the_default_for_what_is_not_declared() -> None:
    assert NUTCHS.detect("déjà vu".encode()).name == "windows-1252"
    assert NUTCHS.detect("<meta charset=utf-8>déjà vu".encode()).name == "utf-8"


def test_configured_default() -> None:
    conf = configuration(parser_character_encoding_default="ISO-8859-7")
    assert CharsetDetector(conf).detect(b"ascii").name == "iso-8859-7"
    with pytest.raises(ConfigError, match="no-charset"):
        CharsetDetector(configuration(parser_character_encoding_default="no-charset"))


@pytest.mark.parametrize(
    ("confidence", "media_type", "name"),
    [
        ("-1", "text/html", "koi8-r"),
        ("90", "text/html", "utf-8"),
        ("90", "image/svg+xml", "koi8-r"),
    ],
)
def test_confidence_lets_the_content_overrule_the_header(
    confidence: str, media_type: str, name: str
) -> None:
    detector = CharsetDetector(configuration(encodingdetector_charset_min_confidence=confidence))
    data = TEXTS["russian"][0].encode()
    assert detector.detect(data, "text/html; charset=koi8-r", media_type).name == name


def test_a_guess_is_no_certainty() -> None:
    detector = CharsetDetector(configuration(encodingdetector_charset_min_confidence="60"))
    data = TEXTS["russian"][0].encode("cp1251")
    assert detector.detect(data, "text/html; charset=koi8-r", "text/html").name == "koi8-r"


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("text/html", False),
        ("text/html; charset=", False),
        ('a; CHARSET="utf-8" ; b', True),
        ("a; charset='utf-8'", False),
    ],
)
def test_header(header: str, found: bool) -> None:
    assert (from_header(header) is not None) == found


def test_meta_beyond_the_first_8192_bytes_does_not_count() -> None:
    assert not [*declared_labels(b" " * 8200 + b"<meta charset=koi8-r>")]


@given(st.binary(max_size=300), st.one_of(st.none(), st.text(max_size=40)))
def test_anything_decodes(data: bytes, header: str | None) -> None:
    assert isinstance(DETECTOR.detect(data, header, "text/html").decode(data), str)
