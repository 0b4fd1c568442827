"""Host names in other scripts: between Unicode and the ASCII form (`xn--…`), by two standards.

IDNA 2003 (RFC 3490, nameprep) is java.net.IDN with ALLOW_UNASSIGNED; IDNA 2008 is ICU's UTS 46
processing, non-transitional, without STD3, bidi and joiner checks, which is what Nutch's URLUtil
asks of it. Names are expected in lower case. Both raise UrlError where Nutch throws
MalformedURLException.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from minutch.errors import UrlError
from minutch.urls.parts import parse
from minutch.urls.uri import build_uri

_ACE = "xn--"
_MAX_LABEL = 63
_MAX_NAME = 253
_DOTS = re.compile("[.\u3002\uff0e\uff61]")


def to_ascii_2003(host: str) -> str:
    """Returns each label through ToASCII (java.net.IDN.toASCII); ASCII labels stay as they are."""
    if host in (".", "\u3002", "\uff0e", "\uff61"):
        return "."
    labels = _DOTS.split(host)
    if len(labels) > 1 and not labels[-1]:
        return ".".join(label_to_ascii_2003(label) for label in labels[:-1]) + "."
    return ".".join(label_to_ascii_2003(label) for label in labels) if host else host


def label_to_ascii_2003(label: str) -> str:
    """RFC 3490's ToASCII of one label; UrlError for what nameprep forbids and for more than 63
    characters.
    """
    text = label if label.isascii() else _nameprep(label)
    if not text:
        raise UrlError("empty label in host name")
    if not text.isascii():
        if text.startswith(_ACE):
            raise UrlError(f"host label {label!r} starts with {_ACE} already")
        text = _ACE + text.encode("punycode").decode("ascii").lower()
    if len(text) > _MAX_LABEL:
        raise UrlError(f"host label {label!r} is longer than {_MAX_LABEL} characters")
    return text


def _nameprep(label: str) -> str:
    from encodings.idna import nameprep

    try:
        return nameprep(label)
    except UnicodeError as exc:
        raise UrlError(f"host label {label!r} can't be prepared: {exc}") from exc


def to_unicode_2003(host: str) -> str:
    """Returns each label through ToUnicode (java.net.IDN.toUnicode); a label that can't be decoded
    stays as it is.
    """
    if not host:
        return host
    return ".".join(_label_to_unicode_2003(label) for label in _DOTS.split(host))


def _label_to_unicode_2003(label: str) -> str:
    try:
        text = label if label.isascii() else _nameprep(label)
        if text[:4].lower() != _ACE:
            return label
        decoded = text[4:].encode("ascii").decode("punycode")
        return decoded if to_ascii_2003(decoded).lower() == text.lower() else label
    except ValueError:
        return label


def to_ascii_2008(host: str) -> str:
    """UTS 46 ToASCII with length checks; UrlError for what ICU reports as an error."""
    name = _process(host, _encode_label)
    if len(name.removesuffix(".")) > _MAX_NAME:
        raise UrlError(f"host name {host!r} is longer than {_MAX_NAME} characters")
    return name


def to_unicode_2008(host: str) -> str:
    """UTS 46 ToUnicode; UrlError for what ICU reports as an error."""
    return _process(host, lambda label: label)


def _process(host: str, finish: Callable[[str], str]) -> str:
    mapped = _map(host)
    labels = mapped.split(".")
    root = len(labels) > 1 and not labels[-1]
    if root:
        labels.pop()
    done = [finish(_check_label(label, host)) for label in labels]
    return ".".join(done) + ("." if root else "")


def _map(host: str) -> str:
    import idna

    try:
        return idna.uts46_remap(host, std3_rules=False, transitional=False)
    except (idna.IDNAError, UnicodeError) as exc:
        raise UrlError(
            f"host name {host!r} has a character that no host name may have: {exc}"
        ) from exc


def _encode_label(label: str) -> str:
    text = label if label.isascii() else _ACE + label.encode("punycode").decode("ascii")
    if len(text) > _MAX_LABEL:
        raise UrlError(f"host label {label!r} is longer than {_MAX_LABEL} characters")
    return text


def _check_label(label: str, host: str) -> str:
    """Returns the Unicode form of one mapped label, checked as UTS 46 (section 4.1) asks."""
    if label.startswith(_ACE):
        label = _decode_ace(label, host)
    units = label.encode("utf-16-be", "surrogatepass")
    if not label or label[0] == "-" or label[-1] == "-" or units[4:8] == b"\0-\0-":
        raise UrlError(
            f"label {label!r} of host name {host!r} is empty or has a hyphen in a forbidden place"
        )
    if unicodedata.category(label[0]).startswith("M"):
        raise UrlError(f"label {label!r} of host name {host!r} starts with a combining mark")
    return label


def _decode_ace(label: str, host: str) -> str:
    try:
        decoded = label[4:].encode("ascii").decode("punycode")
    except ValueError as exc:
        raise UrlError(f"label {label!r} of host name {host!r} is not Punycode") from exc
    if (
        not decoded
        or decoded.isascii()
        or unicodedata.normalize("NFC", decoded) != decoded
        or _map(decoded) != decoded
    ):
        raise UrlError(f"label {label!r} of host name {host!r} decodes to what it may not")
    return decoded


def url_to_ascii(url: str) -> str | None:
    """Returns the URL with its host in ASCII and lower case (URLUtil.toASCII); None if there is no
    such URL.

    A quirk: where the host changes, the rest is percent-encoded once more, `%` included.
    """
    try:
        parsed = parse(url)
        host = parsed.host.lower()
        if not host or (host == parsed.host and host.isascii()):
            return url
        ascii_host = to_ascii_2008(host)
        return build_uri(
            parsed.protocol,
            parsed.user_info,
            ascii_host,
            parsed.port,
            parsed.path,
            parsed.query,
            parsed.ref,
        )
    except UrlError:
        return None


def url_to_unicode(url: str) -> str | None:
    """Returns the URL with its host in Unicode and lower case (URLUtil.toUNICODE); None if there is
    no such URL.
    """
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
