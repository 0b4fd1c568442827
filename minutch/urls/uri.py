"""java.net.URI's view of a URL: stricter than parts.py, and the one place that normalizes paths;
percent-encoding.

    uri           = scheme ":" ( hierarchical | opaque ) [ "#" fragment ]
    hierarchical  = [ "//" authority ] path [ "?" query ]
    opaque        = anything that does not start with a slash
    authority     = server-based: [ user-info "@" ] host [ ":" port ], else registry-based (no host)

RFC 2396 with the JDK's additions: visible characters outside ASCII are legal, an authority may be
empty. Nutch uses it in urlnormalizer-basic (`normalize`). Source: java.net.URI of JDK 17.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from minutch.errors import UrlError
from minutch.urls.parts import is_ipv6

# Character.isSpaceChar and isISOControl: all else beyond ASCII is "other" and legal.
_NOT_OTHER = "\x00-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_UNIT = f"%[0-9A-Fa-f]{{2}}|[^{_NOT_OTHER}]"
_UNRESERVED = r"A-Za-z0-9_.!~*'()\-"
_USER_CHARS = _UNRESERVED + ";:&=+$,"
_PATH_CHARS = _UNRESERVED + ":@&=+$,;/"
_URIC_CHARS = _UNRESERVED + r";/?:@&=+$,\[\]"

_URI = re.compile(r"(?:([^:/?#]*):)?([^#]*)(?:#(.*))?", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_PATH = re.compile(f"(?:[{_PATH_CHARS}]|{_UNIT})*")
_URIC = re.compile(f"(?:[{_URIC_CHARS}]|{_UNIT})*")
_USER = re.compile(f"(?:[{_USER_CHARS}]|{_UNIT})*")
_SERVER = re.compile(f"(?:[{_USER_CHARS}@\\[\\]]|{_UNIT})*")
_SERVER_SCOPED = re.compile(f"(?:[{_USER_CHARS}@\\[\\]%]|{_UNIT})*")
_REGISTRY = re.compile(f"(?:[{_UNRESERVED}$,;:@&=+]|{_UNIT})*")
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_HOST = re.compile(rf"(?:{_LABEL}\.)*[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.?|{_LABEL}\.?")
_IPV4 = re.compile(
    r"(?:(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]?[0-9])\.){3}(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]?[0-9])"
)
_SCOPE = re.compile(r"[A-Za-z0-9_.]+")
_PORT = re.compile(r":0*([0-9]{0,10})")
_MAX_PORT = 0x7FFFFFFF

_ESCAPED = re.compile("%([0-9A-Fa-f]{2})")
_TO_ESCAPE = re.compile('%(?![0-9A-Fa-f]{2})|[\x00-\x20"<>\\[\\]^`{|}\x7f-\U0010ffff]')
_NEVER_ESCAPED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_FORM = re.compile(r"\+|(?:%..?)+|%", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Uri:
    """A URI's parts as written; `None` where there is none. `opaque` replaces authority, path and
    query.

    `text` is what it was parsed from, None once a part has been changed.
    """

    scheme: str | None
    authority: str | None
    host: str | None
    path: str
    query: str | None
    fragment: str | None
    opaque: str | None = None
    text: str | None = None

    def normalize(self) -> Uri:
        """Returns the same URI without dot segments and empty segments in its path."""
        path = self.path if self.opaque is not None else normalize_path(self.path)
        return self if path == self.path else replace(self, path=path, text=None)

    def __str__(self) -> str:
        if self.text is not None:
            return self.text
        scheme = "" if self.scheme is None else f"{self.scheme}:"
        fragment = "" if self.fragment is None else f"#{self.fragment}"
        if self.opaque is not None:
            return f"{scheme}{self.opaque}{fragment}"
        authority = "" if self.authority is None else f"//{self.authority}"
        query = "" if self.query is None else f"?{self.query}"
        return f"{scheme}{authority}{self.path}{query}{fragment}"


def parse_uri(text: str) -> Uri:
    """Splits a URI into its parts; UrlError where java.net.URI throws URISyntaxException."""
    match = _URI.fullmatch(text)
    assert match is not None
    scheme, body, fragment = match.groups()
    if scheme is not None and _SCHEME.fullmatch(scheme) is None:
        raise UrlError(f"illegal scheme {scheme!r} in URI {text!r}")
    if fragment is not None:
        _check(_URIC, fragment, "fragment", text)
    # Opaque: `mailto:a@b`.
    if scheme is not None and not body.startswith("/"):
        if not body:
            raise UrlError(f"nothing after the scheme in URI {text!r}")
        _check(_URIC, body, "scheme-specific part", text)
        return Uri(scheme, None, None, "", None, fragment, opaque=body, text=text)
    before, mark, query = body.partition("?")
    authority: str | None = None
    host: str | None = None
    path = before
    if before.startswith("//"):
        slash = before.find("/", 2)
        named, path = (before[2:], "") if slash < 0 else (before[2:slash], before[slash:])
        if named:
            authority, host = named, _host_of(named, text)
        # "Expected authority": `http://` alone.
        elif not path and not mark and fragment is None:
            raise UrlError(f"no authority in URI {text!r}")
    _check(_PATH, path, "path", text)
    if mark:
        _check(_URIC, query, "query", text)
    return Uri(scheme, authority, host, path, query if mark else None, fragment, text=text)


def _check(allowed: re.Pattern[str], part: str, name: str, text: str) -> None:
    if allowed.fullmatch(part) is None:
        raise UrlError(f"illegal character in the {name} of URI {text!r}")


def _host_of(authority: str, text: str) -> str | None:
    """Returns the host of a server-based authority; None if it is registry-based; or UrlError."""
    literal = authority.find("]") > 0
    # A scope has a `%` that begins no escape.
    server = (_SERVER_SCOPED if literal else _SERVER).fullmatch(authority) is not None
    host = _server_host(authority) if server else None
    if host is None and _REGISTRY.fullmatch(authority) is None:
        raise UrlError(f"illegal authority in URI {text!r}")
    return host


def _server_host(authority: str) -> str | None:
    """Returns the host, if `authority` reads as user info, host and port; else None."""
    user, at, rest = authority.partition("@")
    if not at:
        rest = authority
    elif _USER.fullmatch(user) is None:
        return None
    if rest.startswith("["):
        end = rest.find("]")
        host, port = rest[: end + 1], rest[end + 1 :]
        valid = end > 1 and _is_scoped_ipv6(rest[1:end])
    else:
        colon = rest.find(":")
        host, port = (rest, "") if colon < 0 else (rest[:colon], rest[colon:])
        valid = _is_host_name(host)
    return host if valid and _is_port(port) else None


def _is_host_name(host: str) -> bool:
    if _IPV4.fullmatch(host) is not None:
        return True
    match = _HOST.fullmatch(host)
    if match is None:
        return False
    last = host.rstrip(".").rpartition(".")
    # RFC 2396, 3.2.2: the last label begins with a letter.
    return not last[1] or last[2][0].isalpha()


def _is_scoped_ipv6(text: str) -> bool:
    address, percent, scope = text.partition("%")
    return is_ipv6(address) and (not percent or _SCOPE.fullmatch(scope) is not None)


def _is_port(text: str) -> bool:
    match = _PORT.fullmatch(text)
    return not text or (match is not None and int(match[1] or 0) <= _MAX_PORT)


def normalize_path(path: str) -> str:
    """`path` without `.`, without `..` that has a name before it, and without empty segments
    (URI.normalize).

    A `..` that would climb above the root stays. A relative path that would then start with a
    segment that holds a colon gets `./` in front.
    """
    segments = [segment for segment in path.split("/") if segment]
    if not segments:
        return "/" if path.startswith("/") else ""
    kept: list[tuple[int, str]] = []
    for index, segment in enumerate(segments):
        if segment == ".." and kept and kept[-1][1] != "..":
            kept.pop()
        elif segment != ".":
            kept.append((index, segment))
    names = [segment for _, segment in kept]
    # A segment was removed behind the last one left, so that is a folder.
    if kept and (path.endswith("/") or kept[-1][0] != len(segments) - 1):
        names.append("")
    root = "/" if path.startswith("/") else ""
    # Otherwise the first segment would be read as a scheme.
    if not root and names and ":" in names[0]:
        names.insert(0, ".")
    return root + "/".join(names)


def unescape_unreserved(text: str) -> str:
    """Decodes escapes of unreserved characters, and writes the others in capitals."""
    return _ESCAPED.sub(_unescape, text) if "%" in text else text


def _unescape(match: re.Match[str]) -> str:
    code = int(match[1], 16)
    # RFC 3986, 6.2.2.1 and 6.2.2.2.
    return chr(code) if code in _NEVER_ESCAPED else match[0].upper()


def escape_unsafe(text: str) -> str:
    """Encodes control characters, blanks, quotes, brackets and the like, all beyond ASCII (as
    UTF-8), and a lone `%`.
    """
    return _TO_ESCAPE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    encoded = match[0].encode("utf-8", "replace")
    # Half a surrogate pair is a "?", as String.getBytes makes it.
    return "?" if encoded == b"?" else "".join(f"%{byte:02X}" for byte in encoded)


def normalize_escapes(file: str) -> str:
    """Path and query with exactly those characters encoded that have to be (BasicURLNormalizer)."""
    return escape_unsafe(unescape_unreserved(file))


def form_decode(text: str) -> str:
    """java.net.URLDecoder.decode with UTF-8: `+` is a blank; UrlError for an invalid escape."""
    return _FORM.sub(_form_part, text)


def _form_part(match: re.Match[str]) -> str:
    part = match[0]
    if part == "+":
        return " "
    pairs = [part[at + 1 : at + 3] for at in range(0, len(part), 3)]
    if any(re.fullmatch(r"[0-9A-Fa-f]{2}|\+[0-9A-Fa-f]", pair) is None for pair in pairs):
        raise UrlError(f"broken percent-encoding in {match.string!r}")
    return bytes(int(pair, 16) for pair in pairs).decode("utf-8", "replace")
