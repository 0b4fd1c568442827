"""Names of one server have one form."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from minutch.urls.hostname import canonical_host
from tests.support.examples import tabled


@tabled(
    ("host", "form"),
    [
        ("localhost.", "localhost"),
        ("LocalHost", "localhost"),
        ("127.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("0177.0.0.1.", "127.0.0.1"),
        ("BÜCHER.example.", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("[2001:db8::1]", "[2001:db8::1]"),
        ("[2001:0DB8:0:0::0001]", "[2001:db8::1]"),
        ("[0:0:0:0:0:0:0:1]", "[::1]"),
        ("[::0001]", "[::1]"),
        ("[0000000001:0:0:2:0:0:0:3]", "[1:0:0:2::3]"),
        ("[1:0:2:3:4:5:6:7]", "[1:0:2:3:4:5:6:7]"),
        ("[::]", "[::]"),
        ("[::ffff:127.0.0.1]", "127.0.0.1"),
        ("[::FFFF:7f00:1]", "127.0.0.1"),
        ("[::127.0.0.1]", "[::7f00:1]"),
        ("[64:ff9b::1.2.3.4]", "[64:ff9b::102:304]"),
        ("[::g]", "[::g]"),
        ("[]", "[]"),
        ("\uff11\uff12\uff17.1", "127.0.0.1"),
        ("256.1.1.1", "256.1.1.1"),
        ("a..", "a.."),
        ("", ""),
    ],
)
def test_forms(host: str, form: str) -> None:
    assert canonical_host(host) == form


@given(st.text(max_size=40))
def test_a_form_is_its_own_form(host: str) -> None:
    form = canonical_host(host)
    assert canonical_host(form) == form
