"""Reads media types: the values of Content-Type. Pure.

Source: MIME Sniffing Standard, 4.4 ("parse a MIME type"); Fetch Standard, 2.2 ("collect an HTTP
quoted string").
"""

from __future__ import annotations

import re
from typing import Final

_BLANKS: Final = "\t\n\r "
_TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_TYPE: Final = re.compile(rf"[\t\n\r ]*{_TOKEN}/{_TOKEN}[\t\n\r ]*(?=;|\Z)")
_PARAMETER: Final = re.compile(
    r"[;\t\n\r ]*([^;=]*)(?:=(?:\"((?:[^\"\\]|\\.)*+\\?)\"?[^;]*|([^;]*)))?", re.DOTALL
)
_NAME: Final = re.compile(_TOKEN)
_VALUE: Final = re.compile("[\t\x20-\x7e\x80-\xff]*")
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


def essence(value: str) -> str:
    """Returns type and subtype in lower case: what precedes the parameters, valid or not."""
    return value.partition(";")[0].strip(_BLANKS).lower()


def parameters(value: str) -> dict[str, str]:
    """Returns the parameters of a media type, names in lower case; of several the first counts.

    What is no media type (`charset=utf-8`, `html; charset=utf-8`), for which the standard knows no
    parameters, is read as if all of it were parameters, as Nutch finds a charset there.
    """
    found: dict[str, str] = {}
    type_ = _TYPE.match(value)
    at = type_.end() if type_ else 0
    while at < len(value):
        match = _PARAMETER.match(value, at)
        assert match is not None
        at = max(match.end(), at + 1)
        name, quoted, plain = match.groups()
        text = (plain or "").rstrip(_BLANKS) if quoted is None else _ESCAPED.sub(r"\1", quoted)
        is_one = _NAME.fullmatch(name) and _VALUE.fullmatch(text)
        if is_one and (text or quoted is not None):
            found.setdefault(name.lower(), text)
    return found
