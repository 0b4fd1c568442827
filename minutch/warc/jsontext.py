"""Writes JSON as Nutch's libraries do: the same bytes for the same values. Pure: no I/O.

    Jackson's pretty printer     a member a line, ` : ` between name and value, arrays in one line
    Gson                         one line; `<`, `>`, `&`, `=` and `'` escaped

Strings that hold bytes that are not UTF-8 get U+FFFD in their place.
Source: com.fasterxml.jackson.core.util.DefaultPrettyPrinter, com.google.gson.stream.JsonWriter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from minutch.hadoop.formats.javaio import encode_text
from minutch.records.metadata import Metadata

Json = str | None | Mapping[str, "Json"] | Sequence["Json"]

_ESCAPED: Final = re.compile(r'["\\\x00-\x1f\U00010000-\U0010ffff]')
_SHORT: Final = {
    '"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r",
}  # fmt: skip
# U+2028 and U+2029 end lines in JavaScript: JsonWriter always escapes them.
_HTML: Final = {ord(c): f"\\u{ord(c):04x}" for c in "<>&='\u2028\u2029"}


def valid(text: str) -> str:
    """Returns the text without what UTF-8 can't say."""
    try:
        text.encode()
    except UnicodeEncodeError:
        # Bytes of a URL that were no UTF-8 are surrogates here.
        return encode_text(text).decode("utf-8", "replace")
    return text


def string(text: str) -> str:
    """Returns a JSON string as Jackson writes it: hexadecimal digits are capitals, characters
    beyond U+FFFF two escapes.
    """
    return f'"{_ESCAPED.sub(_escape, valid(text))}"'


def _escape(match: re.Match[str]) -> str:
    return _SHORT.get(match[0]) or re.sub(
        "(....)", r"\\u\1", match[0].encode("utf-16-be").hex().upper()
    )


def pretty(value: Json, indent: str = "") -> str:
    """Returns a value as Jackson's default pretty printer writes it."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return string(value)
    if isinstance(value, Mapping):
        inner = f"{indent}  "
        members = ",\n".join(
            f"{inner}{string(name)} : {pretty(member, inner)}" for name, member in value.items()
        )
        return f"{{\n{members}\n{indent}}}" if members else "{ }"
    return f"[ {', '.join(pretty(element, indent) for element in value)} ]" if value else "[ ]"


def metadata_object(metadata: Metadata) -> dict[str, str | list[str]]:
    """Returns the names of a Metadata in Java's order, each with its value or list of values."""
    found = {}
    for name in metadata.java_names():
        values = [valid(value) for value in metadata[name]]
        found[valid(name)] = values[0] if len(values) == 1 else values
    return found


def gson(value: object) -> str:
    """Returns a value as Gson writes it by default; strings must be valid."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_HTML)
