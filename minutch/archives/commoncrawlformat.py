"""Makes the document of a page for commoncrawldump: JSON, in a CBOR string. Pure: no I/O.

    document  :=  d9 d9 f7 (self-described CBOR)  text string: the JSON, pretty-printed
    string    :=  definite length up to 3996 UTF-16 units, else chunks of that length:
                  7f chunk* ff

    url, timestamp (Last-Modified),
    request {method, client, headers, body}, response {status, server, headers, body},
    key, imported (Date), inlinks (with a LinkDb)

As in Nutch, `url` has `?`, `%` and `+` encoded, and `body` is the text of the record: its metadata,
then the page, decoded as UTF-8. `key` is the unchanged URL.

Source: org.apache.nutch.tools.AbstractCommonCrawlFormat.getJsonData, CommonCrawlFormatJackson,
CommonCrawlDataDumper.serializeCBORData; Jackson's CBORGenerator; RFC 8949, sections 3 and 3.4.6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from minutch.archives.pagenames import url_sha1
from minutch.clock import http_time
from minutch.conf import Configuration
from minutch.errors import UrlError
from minutch.hadoop.formats.javaio import encode_text
from minutch.records.metadata import CONTENT_TYPE_KEY, IP_ADDRESS_KEY
from minutch.records.protocol import Content
from minutch.urls.parts import host_of, parse, split_labels
from minutch.warc.jsontext import Json, pretty, valid
from minutch.warc.pagewriter import fetch_time

_SELF_DESCRIBED: Final = b"\xd9\xd9\xf7"
_TEXT: Final = 0x60
_CHUNKED_TEXT: Final = b"\x7f"
_BREAK: Final = b"\xff"
CHUNK: Final = 3996
"""Maximum length of a string that Jackson writes in one piece, in UTF-16 units."""

_PATH: Final = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.!~*'():@&=$,;/"
)
_ENCODED: Final = [chr(byte) if byte in _PATH else f"%{byte:02X}" for byte in range(256)]
_ALREADY_NAMED: Final = {"content-encoding", "content-type", "date", "server"}


@dataclass(frozen=True, slots=True)
class Crawler:
    """The crawler, as documents describe it."""

    agent_name: str = ""
    email: str = ""
    version: str = ""
    accept: str = ""
    accept_language: str = ""
    robots_agents: str = ""
    host: str = ""
    address: str = ""

    @classmethod
    def from_conf(cls, conf: Configuration, host: str, address: str) -> Crawler:
        """Reads the configuration; `host` and `address` are those of this machine."""
        return cls(
            agent_name=conf.get_text("http.agent.name"),
            email=conf.get_text("http.agent.email"),
            version=conf.get_text("http.agent.version"),
            accept=conf.get_text("http.accept"),
            accept_language=conf.get_text("http.accept.language"),
            robots_agents=conf.get_text("http.robots.agents"),
            host=host,
            address=address,
        )


@dataclass(frozen=True, slots=True)
class CommonCrawlFormat:
    """A maker of documents."""

    crawler: Crawler = Crawler()
    key_prefix: str = ""
    epoch_dates: bool = False
    """Write dates as ms since 1970 (-SimpleDateFormat), invalid ones as null."""
    arrays: bool = False
    """Write headers as lists of pairs (-jsonArray)."""
    reverse_key: bool = False

    def document(
        self, url: str, content: Content, epoch: int, inlinks: Sequence[str] | None = None
    ) -> str:
        """Returns a page as JSON; `epoch` is the time in a reversed key."""
        prefix = f"{self.key_prefix}-" if self.key_prefix else ""
        key = reversed_key(url, epoch) if self.reverse_key else url
        result: dict[str, Json] = {
            "url": encoded_path(url),
            "timestamp": self._date(content, "Last-Modified"),
            "request": self._request(),
            "response": self._response(url, content),
            "key": prefix + key,
            "imported": self._date(content, "Date"),
        }
        if inlinks is not None:
            result["inlinks"] = inlinks
        return pretty(result)

    def _request(self) -> Json:
        crawler = self.crawler
        client: dict[str, Json] = {
            "hostname": crawler.host,
            "address": crawler.address,
            "software": crawler.version,
            "robots": "CLASSIC",
            "contact": {"name": crawler.agent_name, "email": crawler.email},
        }
        headers = [
            ("Accept", crawler.accept),
            ("Accept-Encoding", ""),
            ("Accept-Language", crawler.accept_language),
            ("User-Agent", crawler.robots_agents),
        ]
        return {"method": "GET", "client": client, "headers": self._headers(headers), "body": None}

    def _response(self, url: str, content: Content) -> Json:
        meta = content.metadata
        first: Callable[[str], str] = lambda name: meta.field(name) or ""  # noqa: E731
        headers: list[tuple[str, str | None]]
        headers = [(name, first(name)) for name in ("Content-Encoding", CONTENT_TYPE_KEY)]
        headers += [("Date", self._date(content, "Date")), ("Server", first("Server"))]
        headers += [
            (name, first(name)) for name in meta.java_names() if name.lower() not in _ALREADY_NAMED
        ]
        return {
            "status": first("status"),
            "server": {"hostname": host_of(url), "address": first(IP_ADDRESS_KEY)},
            "headers": self._headers(headers),
            "body": str(content),
        }

    def _headers(self, headers: Sequence[tuple[str, str | None]]) -> Json:
        return headers if self.arrays else dict(headers)

    def _date(self, content: Content, name: str) -> str | None:
        text = content.metadata.field(name) or ""
        if not self.epoch_dates:
            return text
        time = http_time(text)
        return None if time is None else str(time)


def page_epoch(content: Content, now: int) -> int:
    """Returns the time of a page (ms), to the second: its Date, else its fetch time, else `now`."""
    time = http_time(content.metadata.field("Date") or "")
    if time is None:
        time = fetch_time(content)
    return (now if time is None else time) // 1000 * 1000


def reversed_key(url: str, epoch: int) -> str:
    """Returns `com_example_www_<sha1 of the URL>_<epoch>`."""
    try:
        labels = reversed(split_labels(parse(url).host))
    except UrlError:
        labels = reversed([""])
    return f"{'_'.join(labels)}_{url_sha1(url)}_{epoch}"


def encoded_path(url: str) -> str:
    """Encodes a URL as if it were all path (URIUtil.encodePath of Commons HttpClient 3)."""
    return "".join(map(_ENCODED.__getitem__, encode_text(url)))


def cbor_document(text: str) -> bytes:
    """Returns a string as a CBOR document."""
    units = valid(text).encode("utf-16-le")
    if len(units) <= 2 * CHUNK:
        return _SELF_DESCRIBED + _text_string(units)
    chunks = []
    begin = 0
    while begin < len(units):
        end = min(begin + 2 * CHUNK, len(units))
        if (
            end < len(units) and 0xD8 <= units[end - 1] <= 0xDB
        ):  # not between the halves of a character
            end -= 2
        chunks.append(_text_string(units[begin:end]))
        begin = end
    return b"".join((_SELF_DESCRIBED, _CHUNKED_TEXT, *chunks, _BREAK))


def _text_string(units: bytes) -> bytes:
    data = units.decode("utf-16-le").encode()
    size = len(data)
    if size < 24:
        return bytes((_TEXT + size,)) + data
    width = 0 if size < 1 << 8 else 1
    return bytes((_TEXT + 24 + width,)) + size.to_bytes(1 << width, "big") + data
