"""Knows charsets: what a header or a page calls them, Nutch's names for them, and how they decode.

Labels are read, and bytes decoded and encoded, as the WHATWG Encoding Standard says, by the library
of Firefox (encoding_rs, in the package endec); the names given out are those that Nutch stores. One
line of `_TABLE` is one encoding of the standard:

    standard's name, java.nio's name (lower case): the standard's labels

Nutch stores Java's canonical name of the label, some of them replaced (EncodingDetector: iso-8859-1
by windows-1252, euc-kr by x-windows-949, gbk by gb18030); a page is decoded as browsers do.
`_JAVA_NAMES` holds labels that Java knows by a name of their own although the standard folds them
into another encoding. Charsets that only Java knows (`ibm850`, …) are found through Python's own
table, and Python decodes them. The standard's "replacement" encoding, which keeps browsers from
reading pages in ISO-2022-KR and HZ for their users' safety, is not followed: a crawler may read
them.

Python's codecs differ from the standard's tables: they lack 457 characters of EUC-JP and of
ISO-2022-JP (the rows of NEC and IBM), and took the byte behind a missing one with it.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from codecs import lookup as python_codec
from dataclasses import dataclass
from functools import lru_cache

_TABLE = """\
utf-8 utf-8: unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8
ibm866 ibm866: 866 cp866 csibm866 ibm866
iso-8859-2 iso-8859-2: csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2
    iso_8859-2:1987 l2 latin2
iso-8859-3 iso-8859-3: csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3
    iso_8859-3:1988 l3 latin3
iso-8859-4 iso-8859-4: csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4
    iso_8859-4:1988 l4 latin4
iso-8859-5 iso-8859-5: csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595
    iso_8859-5 iso_8859-5:1988
iso-8859-6 iso-8859-6: arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6
    iso-8859-6-e iso-8859-6-i iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987
iso-8859-7 iso-8859-7: csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126
    iso8859-7 iso88597 iso_8859-7 iso_8859-7:1987 sun_eu_greek
iso-8859-8 iso-8859-8: csiso88598e csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e iso-ir-138
    iso8859-8 iso88598 iso_8859-8 iso_8859-8:1988 visual
iso-8859-8-i iso-8859-8: csiso88598i iso-8859-8-i logical
iso-8859-10 iso-8859-10: csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6
iso-8859-13 iso-8859-13: iso-8859-13 iso8859-13 iso885913
iso-8859-14 iso-8859-14: iso-8859-14 iso8859-14 iso885914
iso-8859-15 iso-8859-15: csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9
iso-8859-16 iso-8859-16: iso-8859-16
koi8-r koi8-r: cskoi8r koi koi8 koi8-r koi8_r
koi8-u koi8-u: koi8-ru koi8-u
macintosh x-macroman: csmacintosh mac macintosh x-mac-roman
windows-874 x-windows-874: dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874
windows-1250 windows-1250: cp1250 windows-1250 x-cp1250
windows-1251 windows-1251: cp1251 windows-1251 x-cp1251
windows-1252 windows-1252: ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1
    iso-ir-100 iso8859-1 iso88591 iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii windows-1252
    x-cp1252
windows-1253 windows-1253: cp1253 windows-1253 x-cp1253
windows-1254 windows-1254: cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9
    iso_8859-9:1989 l5 latin5 windows-1254 x-cp1254
windows-1255 windows-1255: cp1255 windows-1255 x-cp1255
windows-1256 windows-1256: cp1256 windows-1256 x-cp1256
windows-1257 windows-1257: cp1257 windows-1257 x-cp1257
windows-1258 windows-1258: cp1258 windows-1258 x-cp1258
x-mac-cyrillic x-maccyrillic: x-mac-cyrillic x-mac-ukrainian
gbk gb18030: chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk
gb18030 gb18030: gb18030
big5 big5: big5 big5-hkscs cn-big5 csbig5 x-x-big5
euc-jp euc-jp: cseucpkdfmtjapanese euc-jp x-euc-jp
iso-2022-jp iso-2022-jp: csiso2022jp iso-2022-jp
shift_jis shift_jis: csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis
euc-kr x-windows-949: cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989
    ksc5601 ksc_5601 windows-949
utf-16be utf-16be: unicodefffe utf-16be
utf-16le utf-16le: csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le
x-user-defined x-user-defined: x-user-defined
"""

_JAVA_NAMES = {
    "us-ascii": "ansi_x3.4-1968 ascii us-ascii",
    "iso-8859-9": (
        "csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso_8859-9 iso_8859-9:1989 l5 latin5"
    ),
    "x-iso-8859-11": "iso-8859-11",
    "tis-620": "tis-620",
    "gb2312": "gb2312",
    "big5-hkscs": "big5-hkscs",
    "windows-31j": "ms932 windows-31j",
    "utf-16": "unicode utf-16",
    "utf-16be": "iso-10646-ucs-2",
}
_TO_JAVA = {label: name for name, labels in _JAVA_NAMES.items() for label in labels.split()}

_JAVAS_NAME = re.compile(r"[a-z0-9][a-z0-9+.:_-]{0,63}")
"""What java.nio.charset.Charset takes for a name; Python's codecs overlook other characters."""
_NUMBERED = re.compile(r"(?:cp|ibm|ibm-|csibm|csp?c?p?)?(\d{3})")
_NOT_CHARSETS = frozenset((
    "idna", "punycode", "unicode_escape", "raw_unicode_escape", "unicode-escape",
    "raw-unicode-escape", "utf-7", "undefined",
))  # fmt: skip
_OF_PYTHON = {
    "big5hkscs": "big5", "cp874": "windows-874", "cp932": "windows-31j", "cp936": "gbk",
    "cp949": "windows-949", "mac-cyrillic": "x-mac-cyrillic", "mac-roman": "macintosh",
}  # fmt: skip
"""Names of Python (and so of chardetng-py) that are no labels, for encodings of the standard."""
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
"""Malformed, of course: one U+FFFD in Java, in browsers one for each byte. Common in Korean that is
taken for UTF-8.
"""
_REPLACEMENT = "\ufffd".encode()
_BLANKS = "\t\n\f\r "


@dataclass(frozen=True, slots=True)
class Charset:
    """A charset: `name` as Nutch stores it (Java's canonical name in lower case), `codec` the
    standard's name of the encoding in lower case, or Python's for what the standard lacks.
    """

    name: str
    codec: str

    @property
    def is_wide(self) -> bool:
        """Whether even ASCII has more than one byte a character."""
        return self.codec.startswith(("utf-16", "utf-32"))

    def decode(self, data: bytes, *, keep_mark: bool = False) -> str:
        """Decodes bytes without the byte order mark, U+FFFD for malformed ones; never raises."""
        if self.codec == "utf-8":
            text = _as_java_replaces(data).decode("utf-8", "replace")
        elif self.codec in ENCODINGS:
            from endec import decode

            text = decode(data, self.codec, "replace", bom="ignore")
        else:
            text = data.decode(self.codec, "replace")
        return text if keep_mark else text.removeprefix("\ufeff")

    def to_utf8(self, data: bytes) -> bytes:
        """Returns the same in UTF-8; a page in UTF-8 stays as it is, malformed or not, but for
        surrogates (see _SURROGATE).
        """
        if self.codec == "utf-8":
            return _as_java_replaces(data.removeprefix(BOM_UTF8))
        return self.decode(data).encode("utf-8", "replace")

    def encode(self, text: str) -> bytes:
        """Encodes text; UTF-16 gives UTF-8 (Encoding Standard, "get an output encoding"). Raises
        UnicodeError for a character that the charset lacks.
        """
        if self.codec not in ENCODINGS:
            return text.encode(self.codec)
        from endec import encode

        return encode(text, self.codec)


def _as_java_replaces(data: bytes) -> bytes:
    return _SURROGATE.sub(_REPLACEMENT, data) if b"\xed" in data else data


def _read_table() -> tuple[dict[str, Charset], dict[str, Charset]]:
    found: dict[str, Charset] = {}
    javas: dict[str, Charset] = {}
    for line in _TABLE.replace("\n    ", " ").splitlines():
        head, _, labels = line.partition(": ")
        name, java = head.split()
        javas.setdefault(java, Charset(java, name))
        for label in labels.split():
            found[label] = Charset(_TO_JAVA.get(label, java), name)
            javas.setdefault(found[label].name, found[label])
    return found, javas


LABELS, _BY_JAVAS_NAME = _read_table()
"""Label of the standard → charset; and the names that Nutch stores, which are no labels all."""
ENCODINGS = frozenset(charset.codec for charset in LABELS.values())
"""The standard's encodings."""
UTF_8 = LABELS["utf-8"]


@lru_cache(maxsize=512)
def lookup(label: str) -> Charset | None:
    """Returns the charset that a header or meta element calls `label`, in any case, or None."""
    if not label.isascii():
        return None  # the Kelvin sign in lower case is a k
    label = label.strip(_BLANKS).lower()
    return LABELS.get(label) or _BY_JAVAS_NAME.get(label) or _beyond_the_standard(label)


def _beyond_the_standard(label: str) -> Charset | None:
    if not _JAVAS_NAME.fullmatch(label):
        return None
    try:
        b"a".decode(label)
    except UnicodeDecodeError:
        pass  # more bytes a character than one
    except (LookupError, ValueError):
        return None
    name = python_codec(label).name
    if name in _NOT_CHARSETS:
        return None
    number = _NUMBERED.fullmatch(label)
    javas = f"ibm{number[1]}" if number else name.replace("_", "-").replace("iso2022", "iso-2022")
    return LABELS.get(_OF_PYTHON.get(name, javas)) or Charset(javas, name)
