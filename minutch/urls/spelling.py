"""A URL with its host in the other script: ASCII (Punycode) or Unicode (URLUtil.toASCII, toUNICODE)."""

from __future__ import annotations

from minutch.errors import UrlError
from minutch.urls.idn import to_ascii_2008, to_unicode_2008
from minutch.urls.parts import parse
from minutch.urls.uri import build_uri


def to_ascii(url: str) -> str | None:
    """The URL with an ASCII, lower-case host; None if that can't be had.

    A quirk: where the host changes, the rest is percent-encoded anew, `%` included.
    """
    try:
        parsed = parse(url)
        host = parsed.host.lower()
        if not host or (host == parsed.host and host.isascii()):
            return url
        ascii_host = to_ascii_2008(host)
        return build_uri(
            parsed.protocol, parsed.user_info, ascii_host, parsed.port, parsed.path, parsed.query, parsed.ref
        )
    except UrlError:
        return None


def to_unicode(url: str) -> str | None:
    """The URL with a Unicode, lower-case host; None if that can't be had."""
    try:
        parsed = parse(url)
        host = parsed.host.lower()
        if not host or (host == parsed.host and "xn--" not in host):
            return url
        user = "" if parsed.user_info is None else f"{parsed.user_info}@"
        port = "" if parsed.port == -1 else f":{parsed.port}"
        ref = "" if parsed.ref is None else f"#{parsed.ref}"
        return f"{parsed.protocol}://{user}{to_unicode_2008(host)}{port}{parsed.file}{ref}"
    except UrlError:
        return None
