"""parse-ext: parses content by a command of the user; its output is the text, and the URLs in it
are the links.

Parameters in plugin.xml, for each type: `command`, `timeout` (s, 30), `encoding` of the output
(UTF-8). No shell is involved. Source: org.apache.nutch.parse.ext.ExtParser.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from minutch.charsets import lookup
from minutch.conf import Configuration
from minutch.cycle.parse.outlinks import text_outlinks
from minutch.errors import ConfigError
from minutch.plugin.points import Parse, Parser, ParseResult
from minutch.processes import end_with
from minutch.records.metadata import Metadata
from minutch.records.parsedata import (
    FAILED,
    FAILED_EXCEPTION,
    FAILED_TRUNCATED,
    SUCCESS,
    ParseData,
    ParseStatus,
)
from minutch.records.protocol import Content

TIMEOUT = 30


class ExtParser(Parser):
    """The parser for one type; see the module."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self._command = _arguments(parameters.get("command", ""))
        self._timeout = int(parameters.get("timeout") or TIMEOUT)
        name = parameters.get("encoding") or "utf-8"
        charset = lookup(name)
        if charset is None:
            raise ConfigError(f"parse-ext: unknown encoding {name!r}")
        self._charset = charset

    def get_parse(self, content: Content) -> ParseResult:
        """Returns the parse, of one document."""
        if not self._command:
            return _failed(
                content, 0, f"No external command defined for contentType: {content.content_type}"
            )
        length = (content.metadata.field("Content-Length") or "").strip()
        # A number of any length would make Python compute with it.
        if length.isdecimal() and int(length[:18]) != len(content.content):
            reason = (
                f"Content truncated at {len(content.content)} bytes. Parser can't handle"
                " incomplete "
            )
            return _failed(content, FAILED_TRUNCATED, f"{reason}{content.content_type} file.")
        try:
            done = subprocess.run(
                # No shell: a media type of a page can't add a command. ExtParser passes it as the
                # last word, too.
                [*self._command, content.content_type],
                input=content.content,
                capture_output=True,
                timeout=self._timeout,
                check=False,
                preexec_fn=partial(end_with, os.getpid()),  # workers are killed
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return _failed(content, FAILED_EXCEPTION, str(error))
        if done.returncode:
            complaint = done.stderr.decode("utf-8", "replace").strip()
            return _failed(
                content, 0, f"External command {self._command[0]} failed with error: {complaint}"
            )
        text = self._charset.decode(done.stdout)
        data = ParseData(
            ParseStatus(SUCCESS), "", text_outlinks(text), content.metadata, Metadata()
        )
        return ParseResult.of(content.url, Parse(text, data))


def _arguments(command: str) -> list[str]:
    """Returns the command's words. A program with a slash is one of the plugin's folder: one of the
    working folder may be anybody's.
    """
    words = shlex.split(command)
    if words and "/" in words[0]:
        words[0] = str(Path(__file__).parent / words[0])
    return words


def _failed(content: Content, code: int, reason: str) -> ParseResult:
    return ParseResult.of(content.url, Parse("", ParseData(ParseStatus(FAILED, code, [reason]))))
