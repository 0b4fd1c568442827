"""The page signature that updatedb and dedup compare: which pages are the same page. The one home
of that decision.

    MD5Signature          MD5 of the content's bytes; of the URL's, when there is no content
    TextMD5Signature      MD5 of the parse text; falls back on MD5Signature
    TextProfileSignature  MD5 of the frequent words and their rounded counts; falls back on
                          MD5Signature
    TextShapeSignature    TextMD5Signature, and then a hash of the text without its numbers and
                          paths: pages with the same one say the same of another day or address;
                          none of what says that it is no page for an index, and gives no link

Source:
org.apache.nutch.crawl.{Signature,SignatureFactory,MD5Signature,TextMD5Signature,TextProfileSignature}.
`db.signature.class` names one of them by Nutch's Java name, or a class of the user's by its Python
path (`package.module.Class` or `package.module:Class`), which is constructed with the
configuration. `minutch.cycle.parse.simhash` has one more, for near-duplicates.

Two quirks come with the bytes. Hadoop's MD5Hash hashes text in Java's modified UTF-8.
TextProfileSignature looks at UTF-16 units with the character tables of JDK 17 (Unicode 13):
characters above U+FFFF and letters that Unicode got later separate words, whatever the Unicode
version of the running Python.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable
from hashlib import md5
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from minutch.conf.properties import class_named
from minutch.cycle.parse.robotsdirectives import agents_of, directives_in
from minutch.hadoop.formats.javahash import float32, hash_map_order, string_hash
from minutch.hadoop.formats.javaio import encode_modified_utf8, encode_text
from minutch.kernels.scan import bag_of_words, drop_numbers
from minutch.records.metadata import ROBOTS_KEY

if TYPE_CHECKING:
    from minutch.conf import Configuration
    from minutch.plugin.points import Parse
    from minutch.records.protocol import Content

CLASS_PROPERTY = "db.signature.class"
_JAVA_PACKAGE = "org.apache.nutch.crawl."


class Signature(Protocol):
    """The class that `db.signature.class` names, made from the configuration."""

    def calculate(self, content: Content, text: str | None) -> bytes:
        """Returns the signature of a page: its content, and its parse text where it has been
        parsed. One that has `calculate_parse`, too, is given the parse instead.
        """


def signs_parses(signature: Signature) -> Callable[[Content, Parse], bytes]:
    """Returns what makes a signature of a parsed page."""
    own: Callable[[Content, Parse], bytes] | None = getattr(signature, "calculate_parse", None)
    return own or (lambda content, parse: signature.calculate(content, parse.text))


class MD5Signature:
    """MD5 of the raw content, or of the URL when the content is empty (so empty pages are no
    duplicates).
    """

    def __init__(self, conf: Configuration) -> None:
        pass

    def calculate(self, content: Content, text: str | None) -> bytes:
        """Returns 16 bytes; `text` plays no part."""
        return md5(_hashed(content), usedforsecurity=False).digest()


def _hashed(content: Content) -> bytes:
    """Returns the bytes that MD5Signature hashes."""
    return content.content or encode_text(content.url)


class TextMD5Signature:
    """MD5 of the parse text."""

    def __init__(self, conf: Configuration) -> None:
        self._fallback = MD5Signature(conf)

    def calculate(self, content: Content, text: str | None) -> bytes:
        """Returns 16 bytes."""
        return _text_digest(text) if text else self._fallback.calculate(content, text)


SHAPE: Final = slice(16, 24)
"""Where the second hash stands in a TextShapeSignature."""
_SEED: Final = 0x1F83_D9AB_FB41_BD6B
"""Any number but that of a word's bytes: by a seed of 1 all words of a letter were one."""
NOTHING: Final = bytes(SHAPE.stop - SHAPE.start)
"""The second hash of a page that says noindex and gives no link, as a wiki's forms, histories and
logins do, of which each article has its own.
"""


class TextShapeSignature:
    """MD5 of the parse text, and eight bytes of a hash of its words without digits, but for those
    with a slash, in whatever order they stand: a list is the same one, however it is sorted. Both
    depend on the text alone: signatures are equal where the texts are.
    """

    def __init__(self, conf: Configuration) -> None:
        self._fallback = MD5Signature(conf)
        self._agents = agents_of(conf)

    def calculate(self, content: Content, text: str | bytes | None) -> bytes:
        """Returns 24 bytes, or without a text, which may be given in UTF-8, the 16 of
        MD5Signature.
        """
        if not text:
            return self._fallback.calculate(content, None)
        utf8 = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        return _text_digest(utf8) + _shape(utf8)

    def calculate_parse(self, content: Content, parse: Parse) -> bytes:
        """Returns the same of a parsed page, whose UTF-8 need not be decoded; with NOTHING for a
        shape, 24 bytes.
        """
        text, data = parse.given, parse.data
        signature = self.calculate(content, text)
        if text or data.outlinks or not (robots := data.parse_meta.get_values(ROBOTS_KEY)):
            return signature
        # A shell that scripts fill has neither text nor links, and says "index, follow".
        is_kept_out = directives_in(robots, self._agents, 0).no_index
        return signature + (NOTHING if is_kept_out else b"")


def _shape(utf8: bytes) -> bytes:
    data = np.frombuffer(utf8, np.uint8)
    said = np.empty(len(data) + 1, np.uint8)
    size = drop_numbers(data, said)
    # Files hold it: not the hash by a seed of each process's own.
    return bag_of_words(said, size, _SEED).to_bytes(SHAPE.stop - SHAPE.start, "little", signed=True)


class TextProfileSignature:
    """MD5 of a profile: words by falling frequency, each with its count rounded down to a multiple
    of a quantum.
    """

    def __init__(self, conf: Configuration) -> None:
        self._fallback = MD5Signature(conf)
        self._min_length = conf.get_int("db.signature.text_profile.min_token_len")
        self._rate = conf.get_float("db.signature.text_profile.quant_rate")
        self._sorted = conf.get_boolean("db.signature.text_profile.sec_sort_lex", True)

    def calculate(self, content: Content, text: str | None) -> bytes:
        """Returns 16 bytes."""
        return _text_digest(self.profile(text)) if text else self._fallback.calculate(content, text)

    def profile(self, text: str) -> str:
        """Returns the text that is hashed: lines of `word count`."""
        counts = Counter(
            word for word in text.translate(_FOLD).split() if len(word) > self._min_length
        )
        quantum = _quantum(max(counts.values(), default=0), self._rate)
        # The order of equal counts: Collections.sort is stable, and so is this.
        order = sorted(counts) if self._sorted else _java_order(counts)
        # Words that round to nothing go.
        kept = [(word, counts[word] // quantum * quantum) for word in order]
        kept = sorted(((word, count) for word, count in kept if count), key=lambda pair: -pair[1])
        return "\n".join(f"{word} {count}" for word, count in kept)


CLASSES: dict[str, type[Signature]] = {
    _JAVA_PACKAGE + cls.__name__: cls
    for cls in (MD5Signature, TextMD5Signature, TextProfileSignature)
} | {"minutch.TextShapeSignature": TextShapeSignature}


def make_signature(conf: Configuration) -> Signature:
    """Reads the signature that the configuration names; ConfigError if there is no such class."""
    name = conf.get_text(CLASS_PROPERTY).strip() or _JAVA_PACKAGE + "MD5Signature"
    places = {java: f"{cls.__module__}:{cls.__name__}" for java, cls in CLASSES.items()}
    cls: type[Any] = class_named(
        conf, CLASS_PROPERTY, name, places, object
    )  # a protocol has no subclasses
    found: Signature = cls(conf)
    return found


def _text_digest(text: str | bytes) -> bytes:
    """Of a text, or its UTF-8."""
    utf8 = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    # NUL has two bytes in modified UTF-8; the rest of ASCII is the same.
    is_same = utf8.isascii() and b"\0" not in utf8
    return md5(utf8 if is_same else encode_modified_utf8(utf8), usedforsecurity=False).digest()


def _quantum(top: int, rate: float) -> int:
    """The step that counts are rounded down to: Java's Math.round of `top * rate` in 32 bits, but
    at least 2.
    """
    # Java multiplies floats: in 64 bits other counts would be rounded up.
    rounded = int(float32(float32(top) * rate) + 0.5)
    if rounded >= 2:
        return rounded
    # TextProfileSignature: "if (QUANT < 2) { if (maxFreq > 1) QUANT = 2; else QUANT = 1; }".
    return 2 if top > 1 else 1


def _java_order(counts: Counter[str]) -> list[str]:
    """Returns the words in the order of a java.util.HashMap that got them as they came."""
    words = list(counts)
    return [words[i] for i in hash_map_order([string_hash(word) for word in words])]


def _ranges(text: str) -> frozenset[int]:
    pairs = (item.partition("-") for item in text.split())
    return frozenset(
        i for low, _, high in pairs for i in range(int(low, 16), int(high or low, 16) + 1)
    )


# Letters of the Basic Multilingual Plane that came after Unicode 13 (14.0 to 17.0).
_NEWER = _ranges(
    "870-887 889-88f 8b5 8c8-8c9 c5c-c5d cdc-cdd 170d 171f 1b4c 1c89-1c8a 2c2f 2c5f 9ffd-9fff"
    " a7c0-a7c1 a7cb-a7d9 a7da-a7dc a7f1-a7f4"
)
_LETTERS_AND_DIGITS = frozenset(("Lu", "Ll", "Lt", "Lm", "Lo", "Nd"))


class _Fold(dict[int, str]):
    """A str.translate table, filled as characters are met: letters and digits in lower case, all
    else a space.
    """

    def __missing__(self, code: int) -> str:
        # Java looks at each half of a surrogate pair: neither is a letter.
        if code > 0xFFFF:
            return " "
        char = chr(code)
        if code in _NEWER or unicodedata.category(char) not in _LETTERS_AND_DIGITS:
            char = " "
        # Character.toLowerCase gives one character; Python's lower() two for U+0130.
        folded = self[code] = char.lower()[0]
        return folded


_FOLD = _Fold()
