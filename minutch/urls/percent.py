"""Percent-encoding: what to decode, what to encode, and what to leave, by Nutch's reading of RFC 3986."""

from __future__ import annotations

import re

from minutch.errors import UrlError

_ESCAPED = re.compile("%([0-9A-Fa-f]{2})")
_TO_ESCAPE = re.compile('%(?![0-9A-Fa-f]{2})|[\x00-\x20"<>\\[\\]^`{|}\x7f-\U0010ffff]')
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_FORM = re.compile(r"\+|(?:%..?)+|%", re.DOTALL)


def unescape_unreserved(text: str) -> str:
    """Decode what never needs encoding, and write the hexadecimal digits of the rest in capitals."""
    return _ESCAPED.sub(_unescape, text) if "%" in text else text


def _unescape(match: re.Match[str]) -> str:
    code = int(match[1], 16)
    return chr(code) if code in _UNRESERVED else match[0].upper()


def escape_unsafe(text: str) -> str:
    """Encode control characters, blanks, quotes, brackets and the like, all beyond ASCII (as UTF-8), and a lone `%`."""
    return _TO_ESCAPE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    encoded = match[0].encode("utf-8", "replace")
    return "?" if encoded == b"?" else "".join(f"%{byte:02X}" for byte in encoded)


def normalize_escapes(file: str) -> str:
    """Path and query with everything encoded that has to be, and nothing else (BasicURLNormalizer)."""
    return escape_unsafe(unescape_unreserved(file))


def form_decode(text: str) -> str:
    """java.net.URLDecoder.decode with UTF-8: `+` is a blank; UrlError for an incomplete or broken escape."""
    return _FORM.sub(_form_part, text)


def _form_part(match: re.Match[str]) -> str:
    part = match[0]
    if part == "+":
        return " "
    pairs = [part[at + 1 : at + 3] for at in range(0, len(part), 3)]
    if any(re.fullmatch(r"[0-9A-Fa-f]{2}|\+[0-9A-Fa-f]", pair) is None for pair in pairs):
        raise UrlError(f"broken percent-encoding in {match.string!r}")
    return bytes(int(pair, 16) for pair in pairs).decode("utf-8", "replace")
