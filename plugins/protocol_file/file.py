"""Reads file: URLs: a file's content, a directory as a page of links, a symbolic link as a
redirect.

    200  file or directory            401  not readable            300  not the canonical path: a
         symbolic link, `..`
    304  as old as the copy held      404  not there               500  neither file nor directory

Source: File and FileResponse of protocol-file. Listings are sorted by name (Nutch: as the file
system has them), and characters that would break a link are escaped in them.
"""

from __future__ import annotations

import asyncio
import html
import logging
import mimetypes
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, unquote_plus

from minutch.conf import Configuration
from minutch.errors import UrlError
from minutch.plugin.points import Protocol, ProtocolOutput
from minutch.records import protocol as codes
from minutch.records import validators
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import TRUNCATED_KEY, Metadata
from minutch.records.protocol import Content, ProtocolStatus
from minutch.urls.parts import Url, parse
from minutch.urls.robots import ALLOW_ALL, RobotRules

from ..lib_http.exchange import format_date, parse_date

log = logging.getLogger(__name__)

MAX_REDIRECTS: Final = 5
MAX_SIZE: Final = 0x7FFF_FFFF
_SAFE_IN_LINKS: Final = "/ !$()*+,-.:;=@[]^_`{|}~\\"
_SAFE_IN_URIS: Final = "/!$&'()*+,-.:;=@_~"


_STATUSES: Final = {304: codes.NOTMODIFIED, 401: codes.ACCESS_DENIED, 404: codes.NOTFOUND}


@dataclass(slots=True)
class _Answer:
    code: int
    body: bytes = b""
    headers: Metadata = field(default_factory=Metadata)


class File(Protocol):
    """protocol-file."""

    schemes = ("file",)

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.limit = conf.get_int("file.content.limit")
        self.crawl_parent = conf.get_boolean("file.crawl.parent")
        self.redirects = conf.get_boolean("file.crawl.redirect_noncanonical")

    async def get_protocol_output(self, url: str, datum: CrawlDatum) -> ProtocolOutput:
        """Reads a file or directory (File.getProtocolOutput)."""
        try:
            return await asyncio.to_thread(self._output, url, datum)
        except UrlError as exc:
            return _failed(f"java.net.MalformedURLException: {exc}")
        except OSError as exc:
            return _failed(f"java.io.IOException: {exc.strerror or exc}")

    async def get_robot_rules(
        self, url: str, datum: CrawlDatum, robots_content: list[Content] | None
    ) -> RobotRules:
        """Files have no robots.txt."""
        return ALLOW_ALL

    def _output(self, url: str, datum: CrawlDatum) -> ProtocolOutput:
        parsed, copy = parse(url), validators.held(url, datum)
        for _ in range(MAX_REDIRECTS + 1):
            answer = self._read(parsed, copy.last_modified if copy is not None else "")
            text = str(parsed)
            content = Content(
                text, text, answer.body, answer.headers.get("Content-Type") or "", answer.headers
            )
            if answer.code == 200:
                modified = parse_date(answer.headers.get("Last-Modified") or "") or 0
                return ProtocolOutput(
                    content, ProtocolStatus(codes.SUCCESS, last_modified=modified)
                )
            if answer.code != 300:
                break
            target = parse(answer.headers.get("Location") or "")
            if self.redirects:
                return ProtocolOutput(content, ProtocolStatus(codes.MOVED, [str(target)]))
            parsed = target
        if answer.code == 300:
            return ProtocolOutput(content, ProtocolStatus(codes.REDIR_EXCEEDED, [str(parsed)]))
        if answer.code in _STATUSES:
            return ProtocolOutput(content, ProtocolStatus(_STATUSES[answer.code]))
        return _failed(f"org.apache.nutch.protocol.file.FileError: File Error: {answer.code}")

    def _read(self, url: Url, known_date: str) -> _Answer:
        if url.protocol != "file":
            raise UrlError(f"not a file URL: {url}")
        if url.query is not None:
            log.warning("%s: the query of a file URL counts for nothing", url)
        path = _path_of(url)
        if not path.exists():
            return _Answer(404)
        if not os.access(path, os.R_OK):
            return _Answer(401)
        # FileResponse compares getCanonicalFile with the file asked for.
        canonical = path.resolve()
        if str(path) != str(canonical):
            return _Answer(300, headers=Metadata.of({"Location": _url_of(canonical)}))
        modified = path.stat().st_mtime_ns // 1_000_000
        dated = Metadata.of({"Last-Modified": format_date(modified)})
        if path.is_dir():  # whose date is not that of the files that its page lists
            return self._list(path, dated)
        # Seconds: HTTP's dates have no milliseconds.
        if format_date(modified) == known_date:
            return _Answer(304, headers=dated)
        return self._file(path, dated) if path.is_file() else _Answer(500)

    def _file(self, path: Path, headers: Metadata) -> _Answer:
        size = path.stat().st_size
        if size > MAX_SIZE:
            raise OSError(None, f"file is too large, size: {size}")
        with path.open("rb") as file:
            # A file that grows meanwhile is read as long as it was.
            body = file.read(size if self.limit < 0 else min(size, self.limit))
        headers.set("Content-Length", str(size))
        headers.set(
            "Content-Type", mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        )
        if len(body) < size:
            headers.set(TRUNCATED_KEY, "true")
            headers.set(TRUNCATED_KEY + ".reason", "length")
        return _Answer(200, body, headers)

    def _list(self, path: Path, headers: Metadata) -> _Answer:
        body = listing(path, parent=self.crawl_parent and str(path) != "/").encode(
            "utf-8", "surrogateescape"
        )
        headers.set("Content-Length", str(len(body)))
        headers.set("Content-Type", "text/html")
        return _Answer(200, body, headers)


def listing(path: Path, *, parent: bool) -> str:
    """Returns the page of links that stands for a directory."""
    title = html.escape(str(path), quote=False)
    lines = [
        f"<html><head><title>Index of {title}</title></head>\n<body><h1>Index of"
        f" {title}</h1><pre>\n"
    ]
    if parent:
        lines.append("<a href='../'>../</a>\t-\t-\t-\n")
    for entry in sorted(path.iterdir()):
        # Not sockets and devices: reading one would wait, or never end.
        if entry.is_dir() or entry.is_file():
            slash, size = ("/", "-") if entry.is_dir() else ("", str(entry.stat().st_size))
            time = format_date(entry.stat().st_mtime_ns // 1_000_000)
            text = html.escape(entry.name, quote=False)
            lines.append(
                f"<a href='{_link(entry.name)}{slash}'>{text}{slash}</a>\t{time}\t{size}\n"
            )
    lines.append("</pre></body></html>\n")
    return "".join(lines)


def _link(name: str) -> str:
    # A link is read as one of HTML, where letters beyond ASCII are escaped later.
    return "".join(c if not c.isascii() else quote(c, safe=_SAFE_IN_LINKS) for c in name)


def _path_of(url: Url) -> Path:
    """Returns the decoded path; `+` is a blank as in Nutch, unless only the literal name exists."""
    text = url.path or "/"
    decoded = Path(unquote_plus(text, errors="surrogateescape"))
    literal = Path(unquote(text, errors="surrogateescape"))
    return literal if literal.exists() and not decoded.exists() else decoded


def _url_of(path: Path) -> str:
    """`file:/path`, with a slash at the end of a directory (java.io.File.toURI)."""
    text = "".join(c if not c.isascii() else quote(c, safe=_SAFE_IN_URIS) for c in str(path))
    return f"file:{text}" + ("/" if path.is_dir() and not text.endswith("/") else "")


def _failed(message: str) -> ProtocolOutput:
    return ProtocolOutput(None, ProtocolStatus(codes.EXCEPTION, [message]))
