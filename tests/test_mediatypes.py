"""Media types: essence and parameters, by the MIME Sniffing Standard and its tests."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from minutch.cycle.parse.charset import from_header
from minutch.mediatypes import essence, parameters
from tests.support.examples import tabled

LONG = "0123456789" * 13
TOKEN = "!#$%&'*+-.^_`|~" + "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@tabled(
    ("value", "encoding"),
    [
        ("text/html;charset=gbk", "gbk"),
        ("TEXT/HTML;CHARSET=GBK", "gbk"),
        ("text/html;charset=gbk(", None),
        ("text/html;x=(;charset=gbk", "gbk"),
        ("text/html;charset=gbk;charset=windows-1255", "gbk"),
        ("text/html;charset =gbk", None),
        ("text/html ;charset=gbk", "gbk"),
        ("text/html; charset=gbk", "gbk"),
        ("text/html;charset= gbk", "gbk"),
        ('text/html;charset= "gbk"', None),
        ("text/html;charset='gbk'", None),
        ("text/html;charset='gbk", None),
        ("text/html;charset=gbk'", None),
        ("text/html;test;charset=gbk", "gbk"),
        ("text/html;test=;charset=gbk", "gbk"),
        ("text/html;';charset=gbk", "gbk"),
        ('text/html;";charset=gbk', "gbk"),
        ("text/html ; ; charset=gbk", "gbk"),
        ("text/html;;;;charset=gbk", "gbk"),
        ('text/html;charset="', None),
        ('text/html;charset="gbk"', "gbk"),
        ('text/html;charset="gbk', "gbk"),
        ('text/html;charset=gbk"', None),
        ('text/html;charset=" gbk"', "gbk"),
        ('text/html;charset="\\ gbk"', "gbk"),
        ('text/html;charset="\\g\\b\\k"', "gbk"),
        ('text/html;charset="gbk"x', "gbk"),
        ('text/html;charset="";charset=gbk', None),
        ("text/html;charset=;charset=gbk", "gbk"),
        ("text/html;charset={gbk}", None),
        (f"text/html;{LONG}=x;charset=gbk", "gbk"),
        ("text/html;test=\xff;charset=gbk", "gbk"),
        ('text/html;x="charset=gbk"', None),
        ('text/html;x=";charset=gbk', None),
        ('text/html;x=";charset=gbk;";charset=koi8-r', "koi8-r"),
        ("text/html;xcharset=gbk", None),
        ("text/html;x-charset=gbk;charset=koi8-r", "koi8-r"),
        # no media types, read all the same
        ("charset=gbk", "gbk"),
        ("html; charset=gbk", "gbk"),
        ("; charset=gbk", "gbk"),
        ("", None),
    ],
)
def test_the_charset_that_a_header_names(value: str, encoding: str | None) -> None:
    charset = from_header(value)
    assert (charset and charset.codec) == encoding


@tabled(
    ("value", "type_", "found"),
    [
        (f"{TOKEN}/{TOKEN};{TOKEN}={TOKEN}", f"{TOKEN}/{TOKEN}".lower(), {TOKEN.lower(): TOKEN}),
        ("x/x;test", "x/x", {}),
        ('x/x;test="\\', "x/x", {"test": "\\"}),
        ('x/x;x="a\\"b;c" ; Y=1 ;z', "x/x", {"x": 'a"b;c', "y": "1"}),
        ("x/x;test=\ufffd;x=x", "x/x", {"x": "x"}),
        (" \tText/HTML\r\n;a=b ", "text/html", {"a": "b"}),
        ("text/html", "text/html", {}),
        ("", "", {}),
    ],
)
def test_essence_and_parameters(value: str, type_: str, found: dict[str, str]) -> None:
    assert (essence(value), parameters(value)) == (type_, found)


def test_characters_that_are_no_tokens() -> None:
    """In names they make no parameter; in values, quoted or not, they may stand unless controls."""
    for char in (chr(code) for code in range(256) if chr(code) not in TOKEN):
        if char not in ";=":
            name = char if char.strip() else f"a{char}b"
            assert parameters(f"x/x;{name}=x;bonus=x") == {"bonus": "x"}, repr(char)
        if char in '\t ";\\\n\r':
            continue
        kept = {"x": char} if char >= " " and char != "\x7f" else {}
        assert parameters(f"x/x;x={char};bonus=x") == {**kept, "bonus": "x"}
        assert parameters(f'x/x;x="{char}";bonus=x') == {**kept, "bonus": "x"}


@given(st.text(max_size=60), st.text('a;="\\/ \t\n', max_size=60))
def test_anything_is_read(some: str, odd: str) -> None:
    for value in (some, odd, f"text/html;{odd}"):
        assert all(parameters(value)), value
        assert essence(value) == essence(value).strip("\t\n\r ").lower()
