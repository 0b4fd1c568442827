"""Makes the target URIs of WARC records of the URLs of pages."""

from __future__ import annotations

import logging
from typing import Final

from minutch.errors import UrlError
from minutch.warc.warcfile import target_uri

log = logging.getLogger(__name__)

NO_URI: Final = "pages without a URI"


def uri_of(url: str) -> str | None:
    """Returns a page's URL as a URI, by which archives know it; None, and a warning, where none can
    be made of it (NO_URI).
    """
    try:
        return target_uri(url)
    except UrlError as error:
        log.warning("Invalid URI %s: %s", url, error)
        return None
