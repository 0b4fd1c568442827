"""The parts of a URL, spelled as Nutch spells them: java.net.URL's way of splitting a string.

    url        = protocol ":" [ "//" authority ] path [ "?" query ] [ "#" ref ]
    authority  = [ user-info "@" ] host [ ":" port ]
    file       = path [ "?" query ]

Nothing is decoded, encoded or lower-cased here except the protocol; dot segments go only when a
relative path is joined to a base. Only the schemes that have a handler are known (`PROTOCOLS`, and
what a plugin registers), as with Nutch's URLStreamHandlerFactory: anything else is a UrlError,
Nutch's MalformedURLException.

Source: java.net.URL and URLStreamHandler of JDK 17 (`parse`, `compose`, `Url.__str__`), Nutch's
URLUtil.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from minutch.errors import UrlError

PROTOCOLS: dict[str, int] = {"http": 80, "https": 443, "ftp": 21, "file": -1, "jar": -1}
"""Known schemes with their default ports (-1: none)."""

_NEED_HOST = frozenset(("http", "https", "ftp"))
_BLANK = "".join(map(chr, range(0x21)))
_SCHEME = re.compile(r"[^\W\d_](?:[^\W_]|[.+-])*")
_PORT = re.compile(r"([+-]?)0*(\d{1,10})")  # int() refuses more than 4,300 digits
_GROUP = re.compile(r"0*[0-9A-Fa-f]{1,4}")
_MAX_PORT = 0x7FFFFFFF
# Characters that NFKC turns into one of `/?#@:` (sun.net.util.IPAddressUtil).
_HOST_TABOO = re.compile(
    "[\x00-\x1f/\x7f\u2047-\u2049\u2100\u2101\u2105\u2106\u2a74\ufe55\ufe56\ufe5f\ufe6b\uff03\uff0f\uff1a\uff1f\uff20]"
)
_PLAIN = re.compile(
    r"(https?)://([A-Za-z0-9._-]+)(?::([0-9]{1,5}))?(/[^?#\x00-\x20]*)?(?:\?([^#\x00-\x20]*))?"
)


class Url(NamedTuple):
    """One parsed URL; the fields are java.net.URL's: `None` for its null, port -1 for none."""

    protocol: str
    user_info: str | None
    host: str
    port: int
    authority: str | None
    path: str
    query: str | None
    ref: str | None

    @property
    def file(self) -> str:
        """Path and query."""
        return self.path if self.query is None else f"{self.path}?{self.query}"

    @property
    def default_port(self) -> int:
        """The port that the scheme stands for, or -1."""
        return PROTOCOLS.get(self.protocol, -1)

    @property
    def lacks_host(self) -> bool:
        """True if the scheme needs a host and none is named: nobody can be asked."""
        return not self.host and self.protocol in _NEED_HOST

    def __str__(self) -> str:
        """java.net.URL.toString: the parts as they are."""
        authority = f"//{self.authority}" if self.authority else ""
        ref = "" if self.ref is None else f"#{self.ref}"
        return f"{self.protocol}:{authority}{self.file}{ref}"


def register_protocol(name: str, default_port: int = -1) -> None:
    """Registers a scheme, as a plugin's `urlStreamHandler` does in Nutch, unless it is known."""
    PROTOCOLS.setdefault(name, default_port)


def parse(spec: str, context: Url | None = None) -> Url:
    """Returns the URL written in `spec`, relative to `context` if there is one (java.net.URL's
    constructor).

    Raises UrlError for an unknown or missing scheme, a port that is not a number and a broken IPv6
    host.
    """
    # Nearly all URLs: one regular expression in place of the rules below.
    plain = _PLAIN.fullmatch(spec) if context is None else None
    if plain is not None:
        protocol, host, port, path, query = plain.groups()
        authority = host if port is None else f"{host}:{port}"
        return Url(
            protocol,
            None,
            host,
            -1 if port is None else int(port),
            authority,
            path or "",
            query,
            None,
        )
    return _parse_any(spec, context)


def _parse_any(spec: str, context: Url | None) -> Url:
    text = spec.strip(_BLANK)
    # URL(URL, String): "url:" in front is passed over.
    if text[:4].lower() == "url:":
        text = text[4:]
    protocol, rest = _split_protocol(text)
    if context is not None and (protocol is None or protocol == context.protocol):
        # `http:foo` on an http base is relative: RFC 2396, 5.2.3, for backwards compatibility.
        if protocol is None or context.path.startswith("/"):
            return _parse_hierarchical(spec, rest, context, inherit=True)
    elif protocol is None:
        raise UrlError(f"no protocol: {spec}")
    if protocol not in PROTOCOLS:
        raise UrlError(f"unknown protocol: {protocol}")
    empty = Url(protocol, None, "", -1, None, "", None, None)
    if protocol == "jar":
        return _parse_jar(spec, rest, empty)
    return _parse_hierarchical(spec, rest, empty, inherit=False)


def _split_protocol(text: str) -> tuple[str | None, str]:
    """Returns the lower-cased scheme before the first colon, unless a slash or `#` comes first."""
    colon = text.find(":")
    if colon < 0 or text.startswith("#") or "/" in text[:colon]:
        return None, text
    if _SCHEME.fullmatch(text, 0, colon) is None:
        return None, text
    return text[:colon].lower(), text[colon + 1 :]


def _parse_jar(spec: str, rest: str, empty: Url) -> Url:
    """`jar:<url>!/<entry>`: the inner URL has to be one; all of it is the path
    (sun.net.www.protocol.jar.Handler).
    """
    text, sharp, ref = rest.partition("#")
    # The last one: jars may lie in jars.
    inner, bang, _ = text.rpartition("!/")
    if not bang or spec[:1] in _BLANK:
        raise UrlError(f"no !/ in {spec}")
    parse(inner)
    path, mark, query = text.rpartition("?")
    if not mark:
        path, query = query, ""
    return empty._replace(path=path, query=query if mark else None, ref=ref if sharp else None)


def _parse_hierarchical(spec: str, rest: str, base: Url, *, inherit: bool) -> Url:
    """Authority, path, query and ref of `rest`; missing ones come from `base`
    (URLStreamHandler.parseURL).
    """
    rest, sharp, fragment = rest.partition("#")
    ref = fragment if sharp else None
    # A fragment alone: the same document.
    if inherit and not rest:
        return base._replace(ref=ref if sharp else base.ref)
    text, mark, after = rest.partition("?")
    query = after if mark else None
    user_info, host, port, authority, base_path = (
        base.user_info,
        base.host,
        base.port,
        base.authority,
        base.path,
    )
    # parseURL: four slashes are a UNC path, no authority.
    has_authority = text.startswith("//") and not text.startswith("////")
    if has_authority:
        slash = text.find("/", 2)
        authority = text[2:] if slash < 0 else text[2:slash]
        text = "" if slash < 0 else text[slash:]
        user_info, host, port = _split_authority(spec, authority)
        if authority:
            base_path = ""
    joined = base._replace(authority=authority, path=base_path)
    # A query alone loses the last segment in java.net.URL; `Resolver` repairs it.
    if inherit and mark and not text and not has_authority:
        path = base_path[: max(base_path.rfind("/"), 0)] + "/"
    else:
        path = _joined(joined, text, has_authority=authority is not None)
    return Url(base.protocol, user_info, host, port, authority, path, query, ref)


def _joined(base: Url, text: str, *, has_authority: bool) -> str:
    """Returns the path that `text` gives after the base's path: dot segments are resolved only
    where the two are joined.
    """
    if not text:
        return base.path
    # Dot segments in it stay: java.net.URL removes them from joined paths alone.
    if text[0] == "/":
        return text
    if not base.path:
        return "/" + text if has_authority else text
    directory = base.path[: base.path.rfind("/") + 1]
    if not directory and has_authority:
        directory = "/"
    return remove_dot_segments(directory + text)


def remove_dot_segments(path: str) -> str:
    """Removes `.` and `..` as java.net.URL does from a joined path.

    Quirks: a `..` that would climb above the root stays; in a longer run every third also removes
    one before it.
    """
    if "/." not in path and not path.startswith("./"):
        return path
    path = re.sub(r"/(?:\./)+", "/", path)
    *segments, last = path.split("/")
    kept: list[str] = []  # no path is cut at each `..`: that copied 94 KB 30,000 times
    for segment in segments:
        if segment == ".." and len(kept) >= 2 and kept != ["", ".."]:
            kept.pop()
        else:
            kept.append(segment)
    path = "/".join([*kept, last])
    while path.endswith("/.."):
        parent = path.rfind("/", 0, path.find("/.."))
        if parent < 0:
            break
        path = path[: parent + 1]
    if path.startswith("./") and len(path) > 2:
        path = path[2:]
    return path[:-1] if path.endswith("/.") else path


def _split_authority(spec: str, authority: str) -> tuple[str | None, str, int]:
    """User info, host and port; an authority with two `@` names no host at all."""
    user_info: str | None = None
    host = authority
    if "@" in authority:
        user_info, host = authority.split("@", 1)
        # parseURL: "more than one '@' in authority", so there is neither host nor user.
        if "@" in host:
            return None, "", -1
    if host.startswith("["):
        return (user_info, *_split_literal(spec, host))
    host, _, port = host.partition(":")
    if _HOST_TABOO.search(host) is not None:
        raise UrlError(f"forbidden character in host {host!r} of {spec}")
    return user_info, host, _port_number(spec, port)


def _split_literal(spec: str, text: str) -> tuple[str, int]:
    """Host and port of `[IPv6]` or `[IPv6]:port`.

    An address with a scope (`%eth0`), which the JDK takes, means nothing outside of one machine and
    is no host (URL Standard, 3.1; RFC 9844): in one round it was asked for, in the next malformed.
    """
    end = text.find("]")
    if "%" in text[: end + 1]:
        raise UrlError(f"address {text[: end + 1]!r} with a scope in {spec}")
    if end <= 2 or not is_ipv6(text[1:end]):
        raise UrlError(f"invalid host {text!r} in {spec}")
    rest = text[end + 1 :]
    if rest and rest[0] != ":":
        raise UrlError(f"invalid authority {text!r} in {spec}")
    return text[: end + 1], _port_number(spec, rest[1:])


def _port_number(spec: str, text: str) -> int:
    """Integer.parseInt's reading; empty is -1, as is a literal -1."""
    if not text:
        return -1
    match = _PORT.fullmatch(text)
    number = int(match[1] + match[2]) if match else -2
    if not -1 <= number <= _MAX_PORT:
        raise UrlError(f"invalid port {text!r} in {spec}")
    return number


def compose(protocol: str, host: str, port: int, file: str) -> Url:
    """Returns a URL of its parts (java.net.URL's four-argument constructor); `file` may carry a
    query and a ref.

    The query starts at the *last* question mark. Raises UrlError for an unknown scheme and a host
    with control characters, a slash, or a character that host name mapping would turn into a
    delimiter.
    """
    protocol = protocol.lower()
    # An IPv6 address without its brackets.
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    if port < -1:
        raise UrlError(f"invalid port {port}")
    text, sharp, ref = file.partition("#")
    path, mark, query = text.rpartition("?")
    if not mark:
        path = text
    if protocol not in PROTOCOLS:
        raise UrlError(f"unknown protocol: {protocol}")
    if _HOST_TABOO.search(host) is not None:
        raise UrlError(f"invalid host: {host!r}")
    authority = host if port == -1 else f"{host}:{port}"
    return Url(
        protocol, None, host, port, authority, path, query if mark else None, ref if sharp else None
    )


def spelled_host(url: str) -> str | None:
    """Returns the host as it is spelled, "" where there is none; None if `url` is not a URL."""
    try:
        return parse(url).host
    except UrlError:
        return None


def host_of(url: str) -> str | None:
    """Returns the lower-cased host, None if `url` is not a URL (URLUtil.getHost)."""
    host = spelled_host(url)
    return None if host is None else host.lower()


def lacks_host(url: str) -> bool:
    """Returns whether a URL names no host (`Url.lacks_host`); false for what is no URL."""
    try:
        return parse(url).lacks_host
    except UrlError:
        return False


def split_labels(text: str, separator: str = ".") -> list[str]:
    """Java's String.split: Python's without the empty strings at the end (empty text stays one)."""
    parts = text.split(separator)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return [] if parts == [""] and text else parts


def is_ipv6(text: str) -> bool:
    """Returns an IPv6 address in text form, with an optional scope after `%`, as the JDK reads one.

    A quirk of the JDK: a group may have any number of leading zeros.
    """
    address, percent, scope = text.partition("%")
    if percent and not scope:
        return False
    head, dots, tail = address.partition("::")
    if tail.startswith(":") or "::" in tail:
        return False
    before = _groups(head, last=not dots)
    after = _groups(tail, last=True)
    if before is None or after is None:
        return False
    # `::` stands for one group of zeros at least.
    return before + after < 8 if dots else before == 8


def _groups(text: str, *, last: bool) -> int | None:
    """Counts the 16-bit groups of `text` (a trailing IPv4 address is two); None if malformed."""
    if not text:
        return 0
    fields = text.split(":")
    count = len(fields)
    if last and "." in fields[-1]:
        if not is_ipv4(fields.pop()):
            return None
        count += 1
    return count if all(_GROUP.fullmatch(field) for field in fields) else None


def is_ipv4(text: str) -> bool:
    """Four decimal numbers up to 255 in at most 15 characters (IPAddressUtil)."""
    fields = text.split(".")
    return (
        len(text) <= 15
        and len(fields) == 4
        and all(re.fullmatch(r"[0-9]+", f) and int(f) < 256 for f in fields)
    )
