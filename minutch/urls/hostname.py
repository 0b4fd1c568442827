"""Names of hosts: in other scripts, in one form, and their addresses.

Between Unicode and the ASCII form (`xn--…`) there are two standards. IDNA 2003 (RFC 3490, nameprep)
is java.net.IDN with ALLOW_UNASSIGNED; IDNA 2008 is ICU's UTS 46 processing, non-transitional,
without STD3, bidi and joiner checks, which is what Nutch's URLUtil asks of it. Names are expected
in lower case. Both raise UrlError where Nutch throws MalformedURLException.

`canonical_host` names the server that a host name means, in one form: `localhost.` is `localhost`,
`127.1` is `127.0.0.1`, `[::0001]` is `[::1]`, `bücher.example` is `xn--bcher-kva.example`. Whatever
belongs to a server goes by this form: queues, robots.txt, credentials, cookies, the request itself.
`urls.parts.host_of` is the host as Nutch's records and rules have it.
"""

from __future__ import annotations

import re
import socket
import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from ipaddress import IPv6Address
from time import monotonic
from typing import NamedTuple

from minutch.errors import UrlError
from minutch.urls.parts import host_of, spelled_host

_ACE = "xn--"
_MAX_LABEL = 63
_MAX_NAME = 253
# RFC 3490, 3.1: full stops of other scripts separate labels, too.
_DOTS = re.compile("[.\u3002\uff0e\uff61]")


def to_ascii_2003(host: str) -> str:
    """Returns each label through ToASCII (java.net.IDN.toASCII); ASCII labels stay as they are."""
    if host in (".", "\u3002", "\uff0e", "\uff61"):
        return "."
    labels = _DOTS.split(host)
    # The root's empty label is none that ToASCII could refuse.
    if len(labels) > 1 and not labels[-1]:
        return ".".join(label_to_ascii_2003(label) for label in labels[:-1]) + "."
    return ".".join(label_to_ascii_2003(label) for label in labels) if host else host


def label_to_ascii_2003(label: str) -> str:
    """RFC 3490's ToASCII of one label; UrlError for over 63 characters or what nameprep forbids."""
    text = label if label.isascii() else _nameprep(label)
    if not text:
        raise UrlError("empty label in host name")
    if not text.isascii():
        # Step 5: it would be decoded to something else.
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
    """Returns each label through java.net.IDN.toUnicode; one that can't be decoded stays."""
    if not host:
        return host
    return ".".join(_label_to_unicode_2003(label) for label in _DOTS.split(host))


def _label_to_unicode_2003(label: str) -> str:
    try:
        text = label if label.isascii() else _nameprep(label)
        if text[:4].lower() != _ACE:
            return label
        decoded = text[4:].encode("ascii").decode("punycode")
        # ToUnicode, step 5 to 7: only what encodes to the same again.
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
        try:
            decoded = label[4:].encode("ascii").decode("punycode")
        except ValueError as exc:
            raise UrlError(f"label {label!r} of host name {host!r} is not Punycode") from exc
        if (
            not decoded
            or decoded.isascii()
            # UTS 46, 4.1: in NFC, and of characters that mapping leaves alone.
            or unicodedata.normalize("NFC", decoded) != decoded
            or _map(decoded) != decoded
        ):
            raise UrlError(f"label {label!r} of host name {host!r} decodes to what it may not")
        label = decoded
    # ICU counts UTF-16 units: hyphens in the third and fourth place.
    units = label.encode("utf-16-be", "surrogatepass")
    if not label or label[0] == "-" or label[-1] == "-" or units[4:8] == b"\0-\0-":
        raise UrlError(
            f"label {label!r} of host name {host!r} is empty or has a hyphen in a forbidden place"
        )
    if unicodedata.category(label[0]).startswith("M"):
        raise UrlError(f"label {label!r} of host name {host!r} starts with a combining mark")
    return label


_MAPPED = bytes(10) + b"\xff\xff"
_ZEROS = re.compile(r"(?<![0-9a-f])0+(?=[0-9a-f])")


def canonical_host(host: str) -> str:
    """Returns the form in which a host is asked for and counted: in lower case and ASCII, without a
    dot at its end (RFC 6066, 3), IPv4 addresses by four numbers (inet_aton(3)), IPv6 ones as short
    as can be (URL Standard, 3.5); one that stands for an IPv4 address is that (InetAddress).

    A name that has no such form is returned in lower case.
    """
    host = host.lower()
    # Nearly all hosts: no cache is asked.
    if host.isascii() and host.rpartition(".")[2][:1].isalpha():
        return host
    return _canonical(host)


@lru_cache(maxsize=4096)
def _canonical(host: str) -> str:
    if not host.isascii():
        try:
            host = to_ascii_2008(host).lower()
        except UrlError:
            return host
    if host.startswith("["):
        return _canonical_ipv6(host)
    # One dot at the end is the root; two are an empty label, and no such name.
    if not host.endswith(".."):
        host = host.removesuffix(".")
    # URL Standard, 3.5: a host is an IPv4 address if its last label is a number.
    if not host.rpartition(".")[2][:1].isdigit():
        return host
    try:
        # inet_aton takes octal, hexadecimal and fewer than four parts, as a connection does.
        return socket.inet_ntoa(socket.inet_aton(host))
    except (OSError, ValueError):  # ValueError: NUL in it
        return host


def _canonical_ipv6(host: str) -> str:
    """Returns the form of `[IPv6]`; a group may have any number of leading zeros, as in the JDK."""
    try:
        packed = socket.inet_pton(socket.AF_INET6, _ZEROS.sub("", host.strip("[]")))
    except (OSError, ValueError):
        return host
    # ::ffff:a.b.c.d reaches the same server as a.b.c.d.
    if packed.startswith(_MAPPED):
        return socket.inet_ntoa(packed[len(_MAPPED) :])
    return f"[{IPv6Address(packed).compressed}]"


def canonical_host_of(url: str) -> str:
    """Returns the canonical host of a URL; "" where it has none, or is none."""
    return canonical_host(spelled_host(url) or "")


class HostLookup(NamedTuple):
    """The result of looking up a host, which is None for an invalid URL."""

    host: str | None
    found: bool
    ms: int


def look_up_hosts(urls: Iterable[str], threads: int) -> Iterator[HostLookup]:
    """Looks up the hosts of URLs; yields the results in their order. Blank lines are ignored."""
    pool = ThreadPoolExecutor(threads)
    waiting: deque[Future[HostLookup]] = deque()
    try:
        for url in urls:
            if url.strip():
                waiting.append(pool.submit(_look_up, host_of(url)))
            # Looked up ahead, but never a whole file at a time.
            if len(waiting) >= 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        # A name server that does not answer would hold whoever has stopped.
        pool.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str | None) -> HostLookup:
    start = monotonic()
    try:
        found = bool(host) and bool(socket.getaddrinfo(host, None))
    except (OSError, UnicodeError):
        found = False
    return HostLookup(host, found, int((monotonic() - start) * 1000))
