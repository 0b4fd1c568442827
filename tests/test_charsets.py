"""Charsets: labels, and decoding, by the Encoding Standard.

The digests are of the standard's own index-*.txt and encodings.json (of May 2026), unpacked by a
decoder that was written after its text for this: a character for each pointer, U+FFFD for none.
"""

from __future__ import annotations

from hashlib import sha256

import numpy as np
import pytest

from minutch.charsets import LABELS, lookup
from tests.support.examples import tabled

BAD = "\ufffd"


def digest(text: str) -> str:
    return sha256(text.encode("utf-8")).hexdigest()[:16]


def decoded(encoding: str, data: bytes) -> str:
    return LABELS[encoding].decode(data)


def spans(*ends: int) -> list[int]:
    """The bytes of several ranges, of which the ends are given."""
    pairs = zip(ends[::2], ends[1::2], strict=True)
    return [byte for first, last in pairs for byte in range(first, last + 1)]


JIS = spans(0xA1, 0xFE)
SEVEN = spans(0x21, 0x7E)
JAPANESE = spans(0x40, 0x7E, 0x80, 0xFC)
CHINESE = spans(0x40, 0x7E, 0x80, 0xFE)
PAIRS = [
    # what stands before; first and second bytes in the order of the index
    ("big5", b"", spans(0x81, 0xFE), spans(0x40, 0x7E, 0xA1, 0xFE), "95654061e3e3be2b"),
    ("euc-kr", b"", spans(0x81, 0xFE), spans(0x41, 0xFE), "5c78f63b09bdb486"),
    ("gbk", b"", spans(0x81, 0xFE), CHINESE, "85373408efe24c65"),
    ("gb18030", b"", spans(0x81, 0xFE), CHINESE, "85373408efe24c65"),
    ("shift_jis", b"", spans(0x81, 0x9F, 0xE0, 0xFC), JAPANESE, "8bdf1922c862b7ae"),
    ("euc-jp", b"", JIS, JIS, "8b9d7687f5830297"),
    ("euc-jp", b"\x8f", JIS, JIS, "5eea0e0164f2e9df"),
    ("iso-2022-jp", b"\x1b$B", SEVEN, SEVEN, "8b9d7687f5830297"),
]  # fmt: skip


@tabled(("encoding", "before", "firsts", "seconds", "standard"), PAIRS)
def test_every_pair_of_bytes(
    encoding: str, before: bytes, firsts: list[int], seconds: list[int], standard: str
) -> None:
    """What is no character becomes U+FFFD, and a second byte of ASCII is read again."""
    escaped = before.startswith(b"\x1b")
    behind = b"\x1b(BA" if escaped else b"A"

    def bad(second: int) -> str:
        return BAD + chr(second) + "A" if second < 0x80 and not escaped else BAD + "A"

    found = []
    for first in firsts:
        for second in seconds:
            text = decoded(encoding, before + bytes((first, second)) + behind)
            found.append(BAD if text == bad(second) else text[:-1])
    assert digest("".join(found)) == standard
    begin_anew = {0x1B} if escaped else {0x8E, 0x8F} if encoding == "euc-jp" else set()
    fours = set(b"0123456789") if encoding in ("gbk", "gb18030") else set()
    for first in firsts:
        for second in set(range(256)) - set(seconds) - begin_anew - fours:
            text = decoded(encoding, before + bytes((first, second)) + behind)
            assert text == bad(second), (first, second)


def test_the_four_bytes_of_gb18030() -> None:
    grid = np.indices((126, 10, 126, 10), np.uint8).reshape(4, -1).T
    found = decoded("gb18030", (grid + np.array((0x81, 0x30, 0x81, 0x30), np.uint8)).tobytes())
    assert digest(found) == "92bdae0e6267fb86"


def test_the_encodings_of_single_bytes() -> None:
    others = {name for name, *_ in PAIRS} | {"iso-8859-8-i", "x-user-defined"}
    names = sorted({charset.codec for charset in LABELS.values()} - others)
    names = [name for name in names if not name.startswith("utf-")]
    upper = bytes(range(0x80, 0x100))
    found = "".join(name + decoded(name, upper) for name in names)
    assert (len(names), digest(found)) == (27, "9982ee7f48d0b3f8")
    assert decoded("iso-8859-8-i", upper) == decoded("iso-8859-8", upper)
    assert decoded("x-user-defined", upper) == "".join(map(chr, range(0xF780, 0xF800)))
    for name in names:
        assert decoded(name, bytes(range(0x80))) == bytes(range(0x80)).decode("ascii")


@tabled(
    ("encoding", "data", "text"),
    [
        ("euc-jp", "日本語①日本語".encode("euc_jisx0213"), "日本語①日本語"),
        ("iso-2022-jp", b"\x1b$B-!F|\x1b(B", "①日"),
        ("gbk", b"\x80\xff", f"€{BAD}"),
        ("koi8-u", b"\xae\xbe", "ўЎ"),
        ("windows-1252", b"\x80\x81", "€\x81"),
        ("big5", b"\x88\x62\x88\xa5", "Ê̄ê̌"),
        ("big5", b"\x81\x40\xff", f"{BAD}@{BAD}"),
        ("euc-jp", b"\x8e\xa1\x8e\xe0\x8f\xa1\xa1\x8f\xa1A\xa1", f"｡{BAD}{BAD}{BAD}A{BAD}"),
        ("shift_jis", b"\x80\xa0\xfd\x81", f"\x80{BAD}{BAD}{BAD}"),
        ("gb18030", b"\x81\x30\x81", BAD),
        ("gb18030", b"\x81\x30A\x81\x30\x81A", f"{BAD}0A{BAD}0丄"),
        ("gb18030", b"\x84\x31\xa4\x37\xfe\x39\xfe\x39", f"{BAD}{BAD}"),
        ("iso-2022-jp", b"\x1b$", f"{BAD}$"),
        ("iso-2022-jp", b"\x1b$B\x1b(B", BAD),
        ("iso-2022-jp", b"a\x1b(J\\~\x1b(I!\x0e\x1b$(D", f"a¥‾｡{BAD}{BAD}､ｨﾄ"),
        ("utf-16le", b"\x00\xd8A\x00\x00\xd8", f"{BAD}A{BAD}"),
    ],
)
def test_what_is_malformed(encoding: str, data: bytes, text: str) -> None:
    """Which bytes are replaced, and which are read again (Encoding Standard, 10 to 14)."""
    assert decoded(encoding, data) == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\xed\xa0\x80b", "a\ufffdb"),
        (b"a\xed\xbfb", "a\ufffdb"),
        (b"\xed\x9f\xbf\xed\x80", "\ud7ff\ufffd"),
        (b"\xef\xbb\xbf\xe1\x80\xed\xb0\xed", "\ufffd\ufffd\ufffd"),
        (b"\xf0\x80\x80", "\ufffd\ufffd\ufffd"),
    ],
)
def test_malformed_utf8_as_java_replaces_it(data: bytes, text: str) -> None:
    charset = lookup("utf-8")
    assert charset is not None
    assert charset.decode(data) == text
    assert charset.to_utf8(data).decode("utf-8", "replace") == text


@tabled(
    ("label", "name", "codec"),
    [
        ("UTF8", "utf-8", "utf-8"),
        (" latin1 ", "windows-1252", "windows-1252"),
        ("us-ascii", "us-ascii", "windows-1252"),
        ("iso-8859-9", "iso-8859-9", "windows-1254"),
        ("gb2312", "gb2312", "gbk"),
        ("GBK", "gb18030", "gbk"),
        ("ks_c_5601-1987", "x-windows-949", "euc-kr"),
        ("x-windows-949", "x-windows-949", "euc-kr"),
        ("x-sjis", "shift_jis", "shift_jis"),
        ("tis-620", "tis-620", "windows-874"),
        ("ujis", "euc-jp", "euc-jp"),
        ("latin-1", "windows-1252", "windows-1252"),
        ("cp850", "ibm850", "cp850"),
        ("iso-2022-kr", "iso-2022-kr", "iso2022_kr"),
    ],
)
def test_labels(label: str, name: str, codec: str) -> None:
    found = lookup(label)
    assert found is not None
    assert (found.name, found.codec) == (name, codec)


@tabled(
    "label",
    [
        "",
        "nonsense",
        "rot13",
        "base64",
        "\u212aoi8-r",
        "idna",
        "utf-7",
        "é",
        "x" * 100,
        "../os",
        "undefined",
    ],
)
def test_what_is_no_charset(label: str) -> None:
    assert lookup(label) is None


def test_the_labels_are_the_standards() -> None:
    """All but those of "replacement"."""
    of_replacement = "csiso2022kr hz-gb-2312 iso-2022-cn iso-2022-cn-ext iso-2022-kr replacement"
    labels = {label: charset.codec for label, charset in LABELS.items()}
    labels |= dict.fromkeys(of_replacement.split(), "replacement")
    lines = sorted(f"{label} {name}" for label, name in labels.items())
    assert (len(lines), digest("\n".join(lines))) == (228, "d9153e22e1ff5385")
