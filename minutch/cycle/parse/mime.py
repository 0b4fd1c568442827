"""Decides the media type of a page by header, suffix of the URL and first bytes. The one home of
that decision.

Source: org.apache.nutch.util.MimeUtil.autoResolveContentType over Tika's MimeTypes:

    1. the header's type, if it is a media type other than application/octet-stream; else the URL's
       suffix
    2. with mime.type.magic (the default): what the content's first bytes say, made more special by
       the suffix and then by the header where these name a special case of it; unless that is
       application/octet-stream, it wins
    3. XML is distinguished by its root element, also behind blank lines; content without magic is
       text if it looks like text

`mime.types.file` may name a rule file in Tika's XML format (a user's own tika-mimetypes.xml);
without it conf/mime-types.txt has the rules.

    <mime-type type="text/x-php" interpreted="true">
      <alias type="…"/>  <sub-class-of type="…"/>  <glob pattern="*.php"/>
      <root-XML localName="…" namespaceURI="…"/>
      <magic priority="50">
        <match value="&lt;?php" type="string" offset="0:64" mask="0xFF…"> <match …/> </match>
      </magic>
    </mime-type>

A match holds if its bytes are found and, when it has matches inside, one of these holds
(`minShouldMatch` of them). Source: org.apache.tika.mime.MimeTypesReader, MagicMatch. Globs other
than a name or a suffix are left out.
"""

from __future__ import annotations

import contextlib
import logging
import re
from codecs import BOM_UTF8
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote
from xml.parsers import expat

from lxml import etree

from minutch.charsets import lookup
from minutch.cycle.parse.mimerules import (
    HTML,
    OCTET_STREAM,
    TEXT_PLAIN,
    XML,
    Magic,
    MagicBytes,
    Test,
    TypeRegistry,
    all_of,
    any_of,
    bytes_test,
    literal_of,
    read_rules,
    regex_test,
    type_name,
)
from minutch.errors import ConfigError
from minutch.plugin.columns import map_distinct

if TYPE_CHECKING:
    import polars as pl

    from minutch.conf import Configuration


log = logging.getLogger(__name__)

_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|[nr\\]?)")
_ESCAPED = {"n": "\n", "r": "\r", "\\": "\\", "": "\0"}
"""A quirk of Tika's: a backslash before anything else is a NUL, so that `\\ ` is two bytes."""
_NUMBERS = {
    "byte": 1, "host16": 2, "big16": 2, "little16": 2, "host32": 4, "big32": 4, "little32": 4,
}  # fmt: skip
_DEFAULT_PRIORITY = 50


def read_tika_rules(path: Path) -> TypeRegistry:
    """Returns the rules of a file. Raises ConfigError."""
    try:
        # A user's file is no reason to read others, or the network.
        root = etree.parse(
            str(path), etree.XMLParser(resolve_entities=False, no_network=True)
        ).getroot()
    except (OSError, etree.XMLSyntaxError) as error:
        raise ConfigError(f"{path}: not a rule file for media types: {error}") from error
    registry = TypeRegistry()
    sized: list[tuple[int, Magic]] = []
    for element in root.iter("mime-type"):
        try:
            _add_type(registry, element)
            for magic in element.iterfind("magic"):
                sized += _magics(type_name(element.get("type")), magic, path)
        except (ValueError, AttributeError) as error:  # no number, no attribute
            raise ConfigError(
                f"{path}:{element.sourceline}: not a rule for media types: {error}"
            ) from error
    # `prepare` sorts stably: of one priority, what compares more comes first (Magic.compareTo).
    registry.magics = [magic for _, magic in sorted(sized, key=lambda pair: -pair[0])]
    return registry.prepare()


def _add_type(registry: TypeRegistry, element: etree._Element) -> None:
    name = type_name(element.get("type"))
    registry.names.add(name)
    registry.aliases.update({alias.get("type"): name for alias in element.iterfind("alias")})
    parent = element.find("sub-class-of")
    if parent is not None:
        registry.parents[name] = type_name(parent.get("type"))
    if element.get("interpreted") == "true":
        registry.interpreted.add(name)
    for glob in element.iterfind("glob"):
        pattern = glob.get("pattern", "")
        if pattern.startswith("*.") and not re.search(r"[*?\[\\]", pattern[1:]):
            registry.suffixes[pattern[1:]] = name
        elif not re.search(r"[*?\[\\]", pattern):
            registry.files[pattern] = name
    for xml in element.iterfind("root-XML"):
        registry.roots[xml.get("namespaceURI", ""), xml.get("localName", "")] = name


def _magics(name: str, element: etree._Element, path: Path) -> list[tuple[int, Magic]]:
    """Returns the rules of one magic element, each with the number of bytes that it compares."""
    priority = int(element.get("priority") or _DEFAULT_PRIORITY)
    result = []
    for match in element.iterfind("match"):
        try:
            test, literal, size = _clause(match)
        except (ValueError, re.error) as error:
            log.warning("%s:%d: rule left out: %s", path, match.sourceline, error)
            continue
        result.append((size, Magic(priority, name, [literal] if literal else [], test)))
    return result


def _clause(element: etree._Element) -> tuple[Test, MagicBytes | None, int]:
    inner = [_clause(child) for child in element.iterfind("match")]
    inside = (
        _some_of([test for test, _, _ in inner], int(element.get("minShouldMatch") or 1))
        if inner
        else None
    )
    size = max((size for _, _, size in inner), default=0)
    if element.get("value") is None:
        if inside is None:
            raise ValueError("a match with neither value nor matches inside")
        return inside, None, size
    own, literal, length = _own(element)
    return (all_of([own, inside]) if inside else own), literal, length + size


def _some_of(tests: Sequence[Test], least: int) -> Test:
    if least <= 1:
        return any_of(tests)
    return lambda data: sum(test(data) for test in tests) >= least


def _own(element: etree._Element) -> tuple[Test, MagicBytes | None, int]:
    """Returns the bytes of a match itself: test, the bytes it needs in any case, length."""
    kind = element.get("type") or "string"
    low, _, high = (element.get("offset") or "0").partition(":")
    start, end = int(low), int(high or low)
    text = element.get("value")
    if kind == "regex":
        # Latin-1 throughout: a character of a rule is a byte of a page.
        return regex_test(_plain(text, strict=False).encode("latin-1"), start, end), None, len(text)
    value = _value(kind, text)
    mask = _value("string", element.get("mask")) if element.get("mask") else b""
    # Bits within a byte need a class of bytes; a mask of whole bytes only leaves places open.
    if any(0 < bits < 0xFF for bits in mask):
        source = b"".join(map(_masked, value, mask.ljust(len(value), b"\xff")))
        return regex_test(source, start, end, len(value)), None, len(value)
    pattern: list[int | None] = [
        None if index < len(mask) and not mask[index] else byte for index, byte in enumerate(value)
    ]
    ignore_case = kind == "stringignorecase"
    literal = literal_of(pattern, start, end, ignore_case=ignore_case)
    return bytes_test(pattern, start, end, ignore_case=ignore_case), literal, len(value)


def _masked(value: int, bits: int) -> bytes:
    """Returns a pattern for the bytes that are like `value` in these bits."""
    return b"[%s]" % b"".join(
        b"\\x%02x" % byte for byte in range(256) if (byte ^ value) & bits == 0
    )


def _value(kind: str, text: str) -> bytes:
    if kind in _NUMBERS:
        number = (
            int(text, 16)
            if text.lower().startswith("0x")
            else int(text, 8)
            if text.startswith("0")
            else int(text)
        )
        return number.to_bytes(_NUMBERS[kind], "little" if kind.startswith("little") else "big")
    if kind.startswith("unicode"):
        return _plain(text).encode("utf-16-le" if kind == "unicodeLE" else "utf-16-be")
    if text.startswith("0x"):
        return bytes.fromhex(text[2:].rjust(len(text) - 2 + len(text) % 2, "0"))
    return _plain(text).encode("latin-1", "replace")


def _plain(text: str, *, strict: bool = True) -> str:
    r"""Escapes resolved; in a regular expression (`strict` false) only `\\`, which stands for one
    backslash.
    """
    if not strict:
        return text.replace("\\\\", "\\")

    def one(match: re.Match[str]) -> str:
        code = match[1]
        if code[:1] == "x":
            return chr(int(code[1:], 16))
        return chr(int(code, 8) & 0xFF) if code[:1].isdigit() else _ESCAPED[code]

    return _ESCAPE.sub(one, text)


HEAD: Final = 1 << 16
"""Bytes of a page that are examined."""
_CHUNK: Final = 512
RULES: Final = "mime-types.txt"

_URI: Final = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://[^/?#]*)?([^?#]*)")
_PLAIN: Final = re.compile(r"https?://[\w.:~/-]*", re.ASCII)
_LAST_OF_SCHEME: Final = len("https://") - 1
_NOT_URI: Final = re.compile(r"[\x00-\x20\"<>\\^`{|}\x7f]|%(?![0-9A-Fa-f]{2})")
_DECLARED: Final = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z][\w.:-]*)")
_ROOT_TAG: Final = re.compile(
    rb"(?:<\?xml[^<>]{0,200}>\s*)?(?:<!DOCTYPE[^<>\[]{0,300}>\s*)?<[A-Za-z][^<>]{0,300}>",
    re.IGNORECASE,
)
"""The beginning of a page up to the end of its root element's tag, where it is plain."""
_TEXT: Final = bytes(range(0x20, 0x80)) + b"\t\n\r\f\x1b"
_SAFE_CONTROLS: Final = b"\t\n\r\f\x1b"
_CONTROLS: Final = bytes(range(0x20))
_ROOTED: Final = (XML, HTML)


def clean_type(value: str) -> str:
    """Returns the header's value up to the first `;` (MimeUtil.cleanMimeType; nothing before it
    leaves the value as it is).
    """
    parts = value.split(";")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts[0] if len(parts) > 1 else value


class MimeUtil:
    """Media types by the configured rules."""

    def __init__(self, conf: Configuration) -> None:
        self._magic = conf.get_boolean("mime.type.magic")
        self.registry = _registry(*_rule_file(conf))
        self._from_url = lru_cache(maxsize=256)(self._type_of_url)  # several times for each page
        # Servers send few headers, but make up types as they like: bounded.
        self._of_header = lru_cache(maxsize=4096)(
            lambda header: self.registry.canonical(clean_type(header))
        )
        self._is_special_case = lru_cache(maxsize=4096)(self.registry.is_special_case)

    def resolve(self, header: str | None, url: str, data: bytes) -> str:
        """Returns the type of a page from its Content-Type header, URL and content
        (autoResolveContentType).
        """
        declared = None if header is None else self._of_header(header)
        # octet-stream is what servers say for lack of a type.
        result = declared if declared and declared != OCTET_STREAM else self.by_url(url)
        if not self._magic:
            return result
        found = self._detect(data, url, declared)
        return result if found == OCTET_STREAM else found

    def by_url(self, url: str) -> str:
        """Returns the type that the last segment of the URL's path stands for
        (MimeUtil.getMimeType).
        """
        name, interpreted = self._from_url(url)
        # index.php is what a server runs, not what it answers.
        return OCTET_STREAM if interpreted else name

    def by_content(self, data: bytes) -> str:
        """Returns the type that the content alone suggests (Tika.detect)."""
        return self._by_content(data)[0]

    def stated(self, header: str | None, url: str) -> str | None:
        """Returns the type that a Content-Type header states; without one the URL's; None for a
        header that is no type.
        """
        return self.by_url(url) if header is None else self._of_header(header)

    def stated_column(self, headers: pl.Series, urls: pl.Series) -> pl.Series:
        """`stated` for columns."""
        names = map_distinct(headers, self._of_header)
        # Then no URL has to be looked at.
        if not headers.null_count():
            return names
        return names.zip_with(headers.is_not_null(), map_distinct(urls, self.by_url))

    def _type_of_url(self, url: str) -> tuple[str, bool]:
        """Type by suffix, and whether it says nothing because servers run such files."""
        name, over_http = file_name(url)
        found = self.registry.by_file_name(name) if name else OCTET_STREAM
        return found, not name or (over_http and found in self.registry.interpreted)

    def _detect(self, data: bytes, url: str, declared: str | None) -> str:
        """MimeTypes.detect with a file name and a declared type for hints."""
        types = self._by_content(data)
        hint, interpreted = self._from_url(url)
        if not interpreted:
            types = self._apply(types, hint)
        if declared:
            types = self._apply(types, declared)
        return types[0]

    def _apply(self, types: list[str], hint: str) -> list[str]:
        """Returns the hint alone if it is one of the types or a special case of one."""
        for name in types:
            if hint == name or self._is_special_case(hint, name):
                return [hint]
        return types

    def _by_content(self, data: bytes) -> list[str]:
        if not data:
            return [OCTET_STREAM]
        head = data[:HEAD]
        # To expat a declaration behind blanks is an error.
        begins = head.removeprefix(BOM_UTF8).lstrip()
        if begins.startswith(b"<?xml"):
            head = begins
        found = self.registry.by_magic(head)
        if not found:
            return [TEXT_PLAIN if looks_like_text(head) else OCTET_STREAM]
        return [self._by_root(name, head) if name in _ROOTED else name for name in found]

    def _by_root(self, name: str, head: bytes) -> str:
        root = root_element(head)
        if root is not None:
            namespace, local = root
            roots = self.registry.roots
            return (
                roots.get((namespace, local)) or roots.get((namespace, "")) or name
                if namespace
                else roots.get(root, name)
            )
        if name != XML:
            return name
        # Tika: XML that breaks its own rules before the root is text; since Tika 3 it is HTML where
        # that has a magic, as in `<?xml version="1.0"?><html lang=en>`, which no parser had taken.
        return HTML if self.registry.holds(HTML, head) else TEXT_PLAIN


def _rule_file(conf: Configuration) -> tuple[Path, bool]:
    """Returns the rule file, and whether it is in Tika's format."""
    name = conf.get("mime.types.file")
    own = conf.resource(name) if name else None
    if own:
        return own, True
    shipped = conf.resource(RULES)
    if shipped is None:
        raise ConfigError(f"{RULES}: no such file in {', '.join(map(str, conf.conf_dirs))}")
    return shipped, False


@lru_cache(maxsize=8)
def _registry(path: Path, tika: bool) -> TypeRegistry:
    if tika:
        return read_tika_rules(path)
    return read_rules(path.read_text("utf-8", "replace").removeprefix("\ufeff"), str(path))


def file_name(url: str) -> tuple[str, bool]:
    """Returns the last segment of the URL's path ("" if there is none), and whether it is an http
    URL.

    A string that java.net.URI would refuse counts as a file name itself, as in Tika.
    """
    # Most URLs, in half of the time.
    if (slash := url.rfind("/")) > _LAST_OF_SCHEME and _PLAIN.fullmatch(url):
        return url[slash + 1 :], True
    if _NOT_URI.search(url):
        return url, False
    match = _URI.match(url)
    if not match:
        return url, False
    scheme, path = match[1] or "", match[2]
    return unquote(path.rpartition("/")[2]), scheme.lower().startswith("http")


def looks_like_text(data: bytes) -> bool:
    """Tika's TextDetector: mostly ASCII without control characters, or bytes that count up like
    UTF-8.
    """
    total = len(data)
    controls = total - len(data.translate(None, _CONTROLS))
    safe = total - len(data.translate(None, _SAFE_CONTROLS))
    text = total - len(data.translate(None, _TEXT))
    # TextDetector.detect: under 2 % of control characters, over 90 % of ASCII.
    unsafe = controls - safe
    if unsafe * 100 < total * 2 and text * 100 > total * 90:
        return True
    return _counts_like_utf8(data, unsafe)


def _counts_like_utf8(data: bytes, unsafe: int) -> bool:
    total = len(data)

    def count(low: int, high: int) -> int:
        return total - len(data.translate(None, bytes(range(low, high))))

    leading = [count(0xC0, 0xE0), count(0xE0, 0xF0), count(0xF0, 0xF8)]
    # Bytes that have to follow lead bytes of 2, 3 and 4; the last character may be cut off.
    expected = sum((index + 1) * number for index, number in enumerate(leading))
    multi = sum(leading)
    return (
        multi > 0
        and expected - 3 <= count(0x80, 0xC0) <= expected
        and not count(0xF8, 0x100)
        and unsafe * 100 < multi * 2
    )


def root_element(data: bytes) -> tuple[str, str] | None:
    """Namespace and local name of the root element; None if XML's rules are broken before it."""
    start = _ROOT_TAG.match(data)
    root = (None if start is None else _short_root(start[0])) or _root(data, None)
    if root is None and (declared := _DECLARED.match(data)) and lookup(declared[1].decode("ascii")):
        # A charset of several bytes: expat knows only UTF-8 and UTF-16 of these.
        return _root(data, "iso-8859-1")
    return root


@lru_cache(maxsize=1024)
def _short_root(data: bytes) -> tuple[str, str] | None:
    """Returns the root element of a page that begins so. Kept, since the pages of a site begin
    alike.
    """
    return _root(data, None)


def _root(data: bytes, encoding: str | None) -> tuple[str, str] | None:
    found: list[str] = []

    def start(name: str, _: dict[str, str]) -> None:
        if not found:
            found.append(name)

    # A blank is in no namespace's URI, nor in a name.
    parser = expat.ParserCreate(encoding, namespace_separator=" ")
    parser.StartElementHandler = start
    with contextlib.suppress(expat.ExpatError, ValueError, LookupError):
        # In pieces: expat can't be stopped within one, and the root is mostly in the first.
        for at in range(0, len(data), _CHUNK):
            parser.Parse(data[at : at + _CHUNK], False)
            if found:
                break
    if not found:
        return None
    namespace, _, local = found[0].rpartition(" ")
    return namespace, local
