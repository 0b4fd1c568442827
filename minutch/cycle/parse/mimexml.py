"""Reads rule files for media types in Tika's XML format: a user's own tika-mimetypes.xml.

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

import logging
import re
from collections.abc import Sequence
from pathlib import Path

from lxml import etree

from minutch.cycle.parse.mimerules import (
    Magic,
    Need,
    Test,
    TypeRegistry,
    all_of,
    any_of,
    bytes_test,
    needed_bytes,
    regex_test,
    type_name,
)
from minutch.errors import ConfigError

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
            test, need, size = _clause(match)
        except (ValueError, re.error) as error:
            log.warning("%s:%d: rule left out: %s", path, match.sourceline, error)
            continue
        result.append((size, Magic(priority, name, test, need)))
    return result


def _clause(element: etree._Element) -> tuple[Test, Need | None, int]:
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
    own, need, length = _own(element)
    return (all_of([own, inside]) if inside else own), need, length + size


def _some_of(tests: Sequence[Test], least: int) -> Test:
    if least <= 1:
        return any_of(tests)
    return lambda data: sum(test(data) for test in tests) >= least


def _own(element: etree._Element) -> tuple[Test, Need | None, int]:
    """Returns the bytes of a match itself: test, the byte it needs, length."""
    kind = element.get("type") or "string"
    low, _, high = (element.get("offset") or "0").partition(":")
    start, end = int(low), int(high or low)
    text = element.get("value")
    if kind == "regex":
        return regex_test(_plain(text, strict=False).encode("latin-1"), start, end), None, len(text)
    value = _value(kind, text)
    mask = _value("string", element.get("mask")) if element.get("mask") else b""
    if any(0 < bits < 0xFF for bits in mask):
        source = b"".join(map(_masked, value, mask.ljust(len(value), b"\xff")))
        return regex_test(source, start, end, len(value)), None, len(value)
    pattern: list[int | None] = [
        None if index < len(mask) and not mask[index] else byte for index, byte in enumerate(value)
    ]
    ignore_case = kind == "stringignorecase"
    need = needed_bytes(pattern, start, end, ignore_case=ignore_case)
    return bytes_test(pattern, start, end, ignore_case=ignore_case), need, len(value)


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
