"""parse-zip: parses the members of an archive by the parsers for their types, and joins their texts
and links.

The type is that of name and content. The text has each member's name before its text. Members
without a suffix, and those that no parser handles, are skipped. At most `MOST_MEMBERS` members and
`MOST_BYTES` unpacked bytes are read, those of archives inside the archive included, and
`MOST_NESTED` archives inside each other: a small archive can't grow without end. Source:
org.apache.nutch.parse.zip.{ZipParser,ZipTextExtractor}.
"""

from __future__ import annotations

import io
import logging
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from functools import cached_property

from minutch.conf import Configuration
from minutch.cycle.parse.dispatch import ParserNotFound, ParseUtil
from minutch.cycle.parse.mime import MimeUtil
from minutch.plugin.points import Parse, Parser, ParseResult
from minutch.records.links import Outlink
from minutch.records.metadata import CONTENT_TYPE_KEY, Metadata
from minutch.records.parsedata import FAILED, FAILED_TRUNCATED, SUCCESS, ParseData, ParseStatus
from minutch.records.protocol import Content

log = logging.getLogger(__name__)

MOST_MEMBERS = 1000
MOST_BYTES = 64 << 20
MOST_NESTED = 4
_LENGTH = "Content-Length"


class ZipParser(Parser):
    """The parser; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self._mime = MimeUtil(conf)
        self._nested = 0
        self._members_left = MOST_MEMBERS
        self._bytes_left = MOST_BYTES

    @cached_property
    def _parsers(self) -> ParseUtil:
        # Not in __init__: it makes all parsers, this one among them.
        return ParseUtil(self.conf)

    def get_parse(self, content: Content) -> ParseResult:
        """Returns one document for the archive."""
        length = (content.metadata.field(_LENGTH) or "").strip()
        if length.isdecimal() and int(length[:18]) != len(content.content):
            reason = (
                f"Content truncated at {len(content.content)} bytes. Parser can't handle incomplete"
                " zip file."
            )
            return _failed(content, FAILED_TRUNCATED, reason)
        if self._nested >= MOST_NESTED:
            return _failed(
                content,
                0,
                f"Can't be handled as Zip document. More than {MOST_NESTED} inside each other",
            )
        # Archives within share what is left: else each layer would multiply it.
        if not self._nested:
            self._members_left, self._bytes_left = MOST_MEMBERS, MOST_BYTES
        self._nested += 1
        try:
            return self._read(content)
        finally:
            self._nested -= 1

    def _read(self, content: Content) -> ParseResult:
        texts: list[str] = []
        links: list[Outlink] = []
        try:
            for name, parse in self._members(content):
                texts.append(f"{name} {parse.text} ")
                links += parse.data.outlinks
        except (
            zipfile.BadZipFile,
            zlib.error,
            # zipfile raises it for members with a password.
            RuntimeError,
            NotImplementedError,
            EOFError,
            ValueError,
        ) as error:
            return _failed(content, 0, f"Can't be handled as Zip document. {error}")
        data = ParseData(ParseStatus(SUCCESS), "", links, content.metadata, Metadata())
        return ParseResult.of(content.url, Parse("".join(texts), data))

    def _members(self, content: Content) -> Iterator[tuple[str, Parse]]:
        """Name and parse of each member that has one."""
        with zipfile.ZipFile(io.BytesIO(content.content)) as archive:
            for member in archive.infolist():
                self._members_left -= 1
                if self._members_left < 0:
                    return
                # an empty name, which is_dir() of Python 3.11 looks into, has no suffix either
                if "." not in member.filename or member.is_dir():
                    continue
                with archive.open(member) as stream:
                    # One byte more tells that there is more; the size in the archive's directory
                    # may lie.
                    data = stream.read(max(0, self._bytes_left) + 1)
                self._bytes_left -= len(data)
                if self._bytes_left < 0:
                    log.warning(
                        "%s: more than %d bytes unpacked, the rest is left out",
                        content.url,
                        MOST_BYTES,
                    )
                    return
                parse = self._parse(f"{content.url}/{member.filename}", data)
                if parse is not None:
                    yield member.filename, parse

    def _parse(self, url: str, data: bytes) -> Parse | None:
        content_type = self._mime.resolve(self._mime.by_url(url), url, data)
        # ZipTextExtractor's own two fields; the length says that nothing was cut off.
        metadata = Metadata.of({_LENGTH: str(len(data)), CONTENT_TYPE_KEY: content_type})
        try:
            return self._parsers.parse(Content(url, url, data, content_type, metadata)).get(url)
        except ParserNotFound as error:
            log.info("%s: %s", url, error)
            return None


def _failed(content: Content, code: int, reason: str) -> ParseResult:
    return ParseResult.of(content.url, Parse("", ParseData(ParseStatus(FAILED, code, [reason]))))
