"""Says what is secret, and hides it: the one list that everything obeys which shows a configuration
or hands a stored request on.

A property is secret by its name; whatever its name, so are a user and a password within a URL; and
so are the fields of a request by which a server knows who asks (RFC 9110, 11.6; RFC 6265, 8.2).
"""

from __future__ import annotations

import re
from typing import Final

HIDDEN: Final = "********"

_NAMES: Final = re.compile(
    r"password|passwd|passphrase|secret|token(?!_len)|credential(?!s?\.file)|licensekey|auth\.basic|jaas"
    r"|api[._-]?key|access[._-]?key|private[._-]?key|cookie(?=$|\.(?:value|text)$)",
    re.IGNORECASE,
)
_IN_URLS: Final = re.compile(r"(?<=://)[^\s/@?#]+(?=@)")
_FIELDS: Final = re.compile(
    r"^((?:proxy-)?authorization|cookie2?)([ \t]*:)[^\r\n]*(?:\r?\n[ \t][^\r\n]*)*",
    re.IGNORECASE | re.MULTILINE,
)


def shown(name: str, value: str) -> str:
    """Returns the value of a property as it may be shown."""
    if not value:
        return value
    return HIDDEN if _NAMES.search(name) else _IN_URLS.sub(HIDDEN, value)


def shown_request(head: str) -> str:
    """Returns the head of a request as it may be handed on: without cookies and credentials."""
    return _FIELDS.sub(rf"\1\2 {HIDDEN}", head)
