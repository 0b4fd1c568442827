"""Tells whether a page was cut off when it was fetched. Pure: no I/O."""

from __future__ import annotations

import re
from typing import Final

from minutch.records.content import Content
from minutch.records.metadata import TRUNCATED_KEY

CONTENT_LENGTH_KEY: Final = "Content-Length"
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")


def is_truncated(content: Content) -> bool:
    """Returns whether content is cut off: by the protocol's mark if there is one, else by the
    Content-Length header.
    """
    mark = content.metadata.first(TRUNCATED_KEY)
    if mark is not None:
        return mark == "true"
    length = (content.metadata.field(CONTENT_LENGTH_KEY) or "").strip()
    if not _INTEGER.fullmatch(length):
        return False
    return int(length) > len(content.content)
