"""The entity tag (RFC 9110, section 8.8.3) of the version of a page that a CrawlDb entry describes.

    metadata `_etag_`    16 hex digits of the version, blank, the tag as the server sent it

The version is the page's URL with its signature. A tag may be sent with a request only where the
entry still has that signature: then "not modified" confirms the very content that the CrawlDb
knows. Whatever happened in between (a segment that never reached updatedb, Nutch, which carries the
metadata along, a redirect that inherits it), a tag of another version or page is never sent. Nutch
knows no such key and has no use for it.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from minutch.hadoop.formats.writables import Text
from minutch.records.crawldatum.datum import CrawlDatum

PROPERTY: Final = "http.store.etag"
KEY: Final = Text("_etag_")
LONGEST: Final = 512
"""Characters; a longer tag is not kept."""


def stored_tag(tag: str, url: str, signature: bytes) -> Text | None:
    """Returns the metadata's value for a page that came with `tag` and has this signature; None if
    it is not to be kept.
    """
    text = tag.strip()
    return (
        Text(f"{_version(url, signature)} {text}")
        if signature and 0 < len(text) <= LONGEST
        else None
    )


def known_tag(url: str, datum: CrawlDatum) -> str | None:
    """Returns the tag of the version that `datum` describes; None if there is none or it belongs to
    another version.
    """
    stored = datum.metadata.get(KEY)
    if stored is None or not datum.signature:
        return None
    version, _, tag = str(stored).partition(" ")
    return tag if version == _version(url, datum.signature) else None


def _version(url: str, signature: bytes) -> str:
    return blake2b(
        url.encode("utf-8", "surrogateescape"), digest_size=8, key=signature[:64]
    ).hexdigest()
